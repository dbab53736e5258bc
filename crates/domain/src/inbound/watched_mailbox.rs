//! Watched mailboxes: where they are, what their mail is used for, and where watching starts.

use serde::{Deserialize, Serialize};

use crate::{
    account::oauth::OAuthSettings,
    identity::{
        id::{MailboxId, TenantId},
        secret::SealedSecret,
    },
    message::OnDoubt,
    time::Time,
};

/// A folder of a mailbox on an IMAP server that Postway watches. Unique in its tenant by host, username and
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedMailbox {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name.
    pub id: MailboxId,
    /// The settings.
    pub settings: MailboxSettings,
    /// Password, token or the secrets of its grant, and the proxy's password: a JSON object, encrypted.
    pub secret: Option<SealedSecret>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl WatchedMailbox {
    /// The context that its secret is sealed for.
    pub fn sealing_context(tenant: &TenantId, id: &MailboxId) -> String {
        format!("mailbox/{tenant}/{id}")
    }
}

/// The settings of a mailbox, stored as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxSettings {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub tls: MailboxTls,
    /// Additional roots to trust for this server, in PEM form.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The user name.
    pub username: String,
    /// The kind of credentials.
    #[serde(default)]
    pub auth: MailboxAuth,
    /// The grant whose tokens it signs in with; without it, a fixed token is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthSettings>,
    /// The folder that is watched.
    pub folder: String,
    /// What its mail is used for.
    pub roles: Vec<MailboxRole>,
    /// Whether it is watched.
    pub active: bool,
    /// A description for people.
    #[serde(default)]
    pub description: Option<String>,
    /// How often it is polled if the server does not push changes.
    pub poll_seconds: u32,
    /// Where watching starts.
    pub start: WatchStart,
    /// A proxy, as a URL without password: `socks5://user@host:port` or `http://host:port`.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Whether reports in it may be about any tenant's messages; only an admin key may set it.
    #[serde(default)]
    pub all_tenants: bool,
    /// How often processing of a mail is tried before it is dead.
    pub attempts_max: u32,
    /// What to do with forwarded mail in doubt if the rule does not say; the account's setting if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
    /// The largest mail that is read, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail_bytes_max: Option<u32>,
    /// The addresses whose mail it gets from the reception, instead of from a folder: `desk@example.com`,
    /// `*@example.com`, or `@bounces.example.com` for envelope senders that we signed. Empty for a watched
    /// folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The name of the server whose `Authentication-Results` are believed; without it, none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authserv_id: Option<String>,
}

impl MailboxSettings {
    /// The default folder.
    pub const FOLDER_DEFAULT: &'static str = "INBOX";
    /// The default number of seconds between two polls.
    pub const POLL_SECONDS_DEFAULT: u32 = 60;
    /// The fewest seconds between two polls.
    pub const POLL_SECONDS_MIN: u32 = 5;
    /// The most seconds between two polls.
    pub const POLL_SECONDS_MAX: u32 = 86_400;
    /// The default number of tries of a mail.
    pub const ATTEMPTS_DEFAULT: u32 = 3;
    /// The most tries of a mail.
    pub const ATTEMPTS_MAX: u32 = 20;

    /// The default for the largest mail that is read.
    pub const MAIL_BYTES_DEFAULT: u32 = 25 * 1024 * 1024;
    /// The lowest value for the largest mail.
    pub const MAIL_BYTES_LEAST: u32 = 64 * 1024;
    /// The highest value for the largest mail: the budget that all mailboxes of a tenant share.
    pub const MAIL_BYTES_MOST: u32 = 64 * 1024 * 1024;

    /// The largest mail that is read, in bytes.
    pub fn mail_bytes_max(&self) -> usize {
        self.mail_bytes_max.unwrap_or(Self::MAIL_BYTES_DEFAULT) as usize
    }

    /// The most addresses of a mailbox.
    pub const ADDRESSES_MAX: usize = 200;

    /// Whether its mail comes from the reception, and not from a folder.
    pub fn is_received(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Whether its mail is used for `role`.
    pub fn has(&self, role: MailboxRole) -> bool {
        self.roles.contains(&role)
    }
}

/// How a connection to an IMAP server is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxTls {
    /// TLS from the first byte (port 993).
    #[default]
    Implicit,
    /// STARTTLS; without it the connection fails (port 143).
    Starttls,
    /// Plain text.
    None,
}

/// The kind of credentials of a mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxAuth {
    /// A password.
    #[default]
    Password,
    /// An OAuth 2 bearer token (XOAUTH2 or OAUTHBEARER).
    Xoauth2,
}

/// What the mail of a mailbox is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxRole {
    /// Rules, such as forwarding.
    Forward,
    /// Bounces, delays, complaints, automatic replies.
    Bounces,
    /// Receipts of Italian certified mail.
    Pec,
    /// Events: every ordinary mail is reported to subscribers as `email.received`.
    Events,
    /// DMARC aggregate reports and TLS reports about the tenant's domains.
    DomainReports,
}

/// Where watching starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchStart {
    /// With mail that arrives from now on.
    #[default]
    Now,
    /// With this number of the newest mails.
    Newest(u32),
    /// With the oldest mail.
    Beginning,
    /// With mail that arrived since this time.
    Since(Time),
    /// With mail that has a higher UID, to continue after another program.
    AfterUid(u32),
}
