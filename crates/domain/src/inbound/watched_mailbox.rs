//! Mailboxes that are watched: where they are, what they are watched for, and where watching begins.

use serde::{Deserialize, Serialize};

use crate::{
    account::oauth::OAuthSettings,
    identity::{
        id::{MailboxId, TenantId},
        secret::Sealed,
    },
    message::OnDoubt,
    time::Time,
};

/// A folder of a mailbox on an IMAP server that Postway watches. Unique in its tenant by host, username and folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedMailbox {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: MailboxId,
    /// Where it is and what it is for.
    pub settings: MailboxSettings,
    /// Password, token or the secrets of its grant, and the proxy's password: a JSON object, encrypted.
    pub secret: Option<Sealed>,
    /// Rises with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl WatchedMailbox {
    /// The place for which its secret is sealed.
    pub fn secret_place(tenant: &TenantId, id: &MailboxId) -> String {
        format!("mailbox/{tenant}/{id}")
    }
}

/// What is kept of a mailbox as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxSettings {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub tls: MailboxTls,
    /// More roots to trust for this server, in PEM form.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// Who signs in.
    pub username: String,
    /// With what.
    #[serde(default)]
    pub auth: MailboxAuth,
    /// How it comes by the tokens that it signs in with; one that is given is used as it is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthSettings>,
    /// The folder that is watched.
    pub folder: String,
    /// What its mail is looked at for.
    pub roles: Vec<MailboxRole>,
    /// Whether it is watched at all.
    pub active: bool,
    /// What it is for, in people's words.
    #[serde(default)]
    pub description: Option<String>,
    /// How often it is asked where the server does not tell by itself.
    pub poll_seconds: u32,
    /// Where watching begins.
    pub start: Start,
    /// A proxy on the way, as a URL without password: `socks5://user@host:port` or `http://host:port`.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Whether reports in it may be about any tenant's messages; only an admin key may say so.
    #[serde(default)]
    pub all_tenants: bool,
    /// How often a mail that could not be dealt with is tried before it is dead.
    pub attempts_max: u32,
    /// What to do with forwarded mail in doubt, where the rule does not say it; as its account says where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
    /// The largest mail that is read, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail_bytes_max: Option<u32>,
}

impl MailboxSettings {
    /// The folder when none is named.
    pub const FOLDER_DEFAULT: &'static str = "INBOX";
    /// Seconds between two looks when nothing is said.
    pub const POLL_SECONDS_DEFAULT: u32 = 60;
    /// The shortest pause between two looks.
    pub const POLL_SECONDS_MIN: u32 = 5;
    /// The longest.
    pub const POLL_SECONDS_MAX: u32 = 86_400;
    /// Tries of one mail when nothing is said.
    pub const ATTEMPTS_DEFAULT: u32 = 3;
    /// The most tries that may be set.
    pub const ATTEMPTS_MAX: u32 = 20;

    /// The largest mail that is read when nothing is said.
    pub const MAIL_BYTES_DEFAULT: u32 = 25 * 1024 * 1024;
    /// The least that may be set.
    pub const MAIL_BYTES_LEAST: u32 = 64 * 1024;
    /// The most that may be set: what all mailboxes of a tenant may have on its way at the same time.
    pub const MAIL_BYTES_MOST: u32 = 64 * 1024 * 1024;

    /// The largest mail that is read, in bytes.
    pub fn mail_bytes_max(&self) -> usize {
        self.mail_bytes_max.unwrap_or(Self::MAIL_BYTES_DEFAULT) as usize
    }

    /// Whether its mail is looked at for this.
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
    /// Plain, then STARTTLS; without it nothing is said (port 143).
    Starttls,
    /// Not at all.
    None,
}

/// With what one signs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxAuth {
    /// A password.
    #[default]
    Password,
    /// An OAuth 2 bearer token (XOAUTH2 or OAUTHBEARER).
    Xoauth2,
}

/// What a mailbox's mail is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxRole {
    /// Rules: forwarding and the like.
    Forward,
    /// Bounces, delays, complaints, automatic replies.
    Bounces,
    /// Receipts of Italian certified mail.
    Pec,
}

/// Where watching begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// With what comes from now on.
    #[default]
    Now,
    /// With so many of the newest.
    Newest(u32),
    /// With the oldest there is.
    Beginning,
    /// With what came since then.
    Since(Time),
    /// With what has a higher UID than this: where another program left off.
    AfterUid(u32),
}
