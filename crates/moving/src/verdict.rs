//! What becomes of a row.

use serde_json::{Map, Value};

/// What a row is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Whose mail it is.
    Tenant,
    /// A tenant that was not active.
    TenantHold,
    /// A way out.
    Account,
    /// A batch that was suspended.
    BatchHold,
    /// An address that gets no mail.
    Suppression,
    /// An entry of a tenant's directory.
    Recipient,
    /// A mailbox that is watched.
    Mailbox,
    /// Mail that waits.
    Message,
    /// A token whose mail waits.
    Token,
}

impl Kind {
    /// With how many there are: `1 account`, `2 accounts`.
    pub fn counted(self, count: u64) -> &'static str {
        match (count, self) {
            (1, Self::Tenant) => "tenant",
            (1, Self::TenantHold) => "suspended tenant",
            (1, Self::Account) => "account",
            (1, Self::BatchHold) => "suspended batch",
            (1, Self::Suppression) => "suppressed address",
            (1, Self::Recipient) => "recipient",
            (1, Self::Mailbox) => "mailbox",
            (1, Self::Message) => "waiting message",
            (1, Self::Token) => "waiting token",
            _ => self.plural(),
        }
    }

    /// What many of them are called.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Tenant => "tenants",
            Self::TenantHold => "suspended tenants",
            Self::Account => "accounts",
            Self::BatchHold => "suspended batches",
            Self::Suppression => "suppressed addresses",
            Self::Recipient => "recipients",
            Self::Mailbox => "mailboxes",
            Self::Message => "waiting messages",
            Self::Token => "waiting tokens",
        }
    }
}

/// In whose words a row is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In ours, as the API takes it.
    Ours,
    /// In those of the old system, as its door takes it.
    Theirs,
}

/// Where a row is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its table.
    pub table: String,
    /// Its key; empty for the table as a whole.
    pub key: String,
}

/// A row that can carry over.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// What it is here.
    pub kind: Kind,
    /// Where it was.
    pub place: Place,
    /// Whose it is, if it says so.
    pub tenant: Option<String>,
    /// In whose words `body` is.
    pub form: Form,
    /// What it says.
    pub body: Map<String, Value>,
}

/// A row that somebody has to decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where it is.
    pub place: Place,
    /// Why it does not carry over, and what to do.
    pub why: String,
}

/// Rows that need not carry over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stayed {
    /// Their table.
    pub table: String,
    /// What they are.
    pub what: String,
    /// How many.
    pub count: u64,
    /// Why they may stay.
    pub why: String,
}

/// What is wrong with a row or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it is.
    pub place: Place,
    /// The field or column, if it is one.
    pub field: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Fault {
    /// What is wrong with a field of a row.
    pub fn new(place: &Place, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.clone(), field: field.into(), message: message.into() }
    }
}

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It can carry over.
    Carry(Box<Carried>),
    /// Somebody has to decide.
    Leave(Left),
    /// It may stay.
    Stay(Stayed),
    /// It is wrong.
    Wrong(Fault),
}
