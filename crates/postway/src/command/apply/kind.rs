//! The kinds of things that a folder of settings has.

use clap::ValueEnum;
use serde_json::Value;

/// A kind, in the order in which things are created: a later one may refer to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ResourceKind {
    /// Kinds of mail that readers can leave
    Streams,
    /// Ways out
    Accounts,
    /// Rules that choose the account of mail that names none
    Routes,
    /// Templates; a changed one becomes a new version
    Templates,
    /// Webhooks, known by their URL
    Webhooks,
    /// Watched mailboxes
    Mailboxes,
    /// Rules for the mail of mailboxes
    Rules,
    /// Keys, known by their name
    Keys,
}

impl ResourceKind {
    /// Every kind, in the order in which things are created.
    pub const ALL: [Self; 8] = [
        Self::Streams,
        Self::Accounts,
        Self::Routes,
        Self::Templates,
        Self::Webhooks,
        Self::Mailboxes,
        Self::Rules,
        Self::Keys,
    ];

    /// The name of its folder, and of its resource in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Accounts => "accounts",
            Self::Routes => "routes",
            Self::Templates => "templates",
            Self::Webhooks => "webhooks",
            Self::Mailboxes => "mailboxes",
            Self::Rules => "rules",
            Self::Keys => "keys",
        }
    }

    /// The kind with this folder.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The name of its requests in the API's description.
    pub fn schema(self) -> &'static str {
        match self {
            Self::Streams => "StreamRequest",
            Self::Accounts => "AccountRequest",
            Self::Routes => "RouteRequest",
            Self::Templates => "TemplateRequest",
            Self::Webhooks => "WebhookRequest",
            Self::Mailboxes => "MailboxRequest",
            Self::Rules => "RuleRequest",
            Self::Keys => "KeyRequest",
        }
    }

    /// The field by which a thing is the same on the server and in the folder.
    pub fn identity(self) -> &'static str {
        match self {
            Self::Streams | Self::Accounts | Self::Routes | Self::Mailboxes | Self::Rules => "id",
            Self::Templates | Self::Keys => "name",
            Self::Webhooks => "url",
        }
    }

    /// Whether the file's name is the identity. Otherwise the file has it as a field.
    pub fn is_named_by_file(self) -> bool {
        self != Self::Webhooks
    }

    /// The field of the answer to a creation that is shown once, and the reference to the file that it is
    /// written to.
    pub fn shown_once(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Keys => Some(("key", "key_file")),
            Self::Webhooks => Some(("secret", "secret_file")),
            Self::Streams
            | Self::Accounts
            | Self::Routes
            | Self::Templates
            | Self::Mailboxes
            | Self::Rules => None,
        }
    }

    /// The path of the list of a tenant.
    pub fn list_path(self, tenant: &str) -> Vec<String> {
        match self {
            Self::Keys => ["v1", "tenants", tenant, "keys"].map(str::to_owned).to_vec(),
            _ => ["v1", self.word()].map(str::to_owned).to_vec(),
        }
    }

    /// The path of one thing, which the server shows like this.
    pub fn path_of(self, tenant: &str, shown: &Value) -> Vec<String> {
        let field = if self == Self::Templates { "name" } else { "id" };
        let name = shown.get(field).and_then(Value::as_str).unwrap_or_default();
        let mut path = self.list_path(tenant);
        path.push(name.to_owned());
        path
    }

    /// Whether a thing on the server may be left out of what is compared and deleted: revoked keys, the
    /// sandbox that every tenant begins with, and the tenant's own reports.
    pub fn is_passed_over(self, shown: &Value) -> bool {
        match self {
            Self::Keys => !shown["revoked_at"].is_null(),
            Self::Accounts => shown["id"] == "sandbox",
            Self::Webhooks => shown["url"].is_null(),
            Self::Streams | Self::Routes | Self::Templates | Self::Mailboxes | Self::Rules => false,
        }
    }

    /// Takes out of a thing what the server adds inside its fields: whether the accounts of a route exist.
    pub fn without_findings(self, mut shown: Value) -> Value {
        if self == Self::Routes {
            for account in shown["accounts"].as_array_mut().into_iter().flatten() {
                account.as_object_mut().and_then(|account| account.remove("missing"));
            }
        }
        shown
    }
}
