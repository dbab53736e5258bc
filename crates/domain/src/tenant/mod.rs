//! Tenants: whose mail it is, and how much of everything they get.

pub mod contact;
pub mod known_recipient;
mod retention;
pub mod stream;
pub mod template;

use serde::{Deserialize, Serialize};

use crate::{
    address::pattern::AddressPattern,
    identity::{
        id::{AccountId, TenantId},
        secret::Sealed,
    },
    message::OnDoubt,
    time::Time,
};

/// A tenant's settings, all but its secrets. What is absent takes the gateway's default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSettings {
    /// Its share of the gateway where tenants compete, against the others' weights.
    pub weight: u32,
    /// Bounds of what it may send.
    pub content: ContentLimits,
    /// How long messages are kept once they ended and were reported, in days: the older spelling of
    /// [`Self::report_retention_seconds`].
    pub retention_days: Option<u32>,
    /// How long messages are kept once they ended and were reported.
    pub report_retention_seconds: Option<u64>,
    /// How long messages are kept that ended and could not be reported, in days.
    pub unreported_retention_days: Option<u32>,
    /// Where its delivery reports go.
    pub client_sync: Option<Remote>,
    /// Where attachments named by `endpoint` are fetched.
    pub attachment_endpoint: Option<Remote>,
    /// How its reports are written.
    pub callback_form: CallbackForm,
    /// What to do with attachments too large to mail.
    pub large_files: LargeFiles,
    /// The domain its bounces come back to: each message then has an envelope sender of its own there.
    pub bounce_domain: Option<String>,
    /// The envelope sender of mail that names none, by accounts that name none.
    pub return_path: Option<String>,
    /// Whom mail is from that names nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_from: Option<String>,
    /// Who it is to receivers that count complaints (`Feedback-ID`).
    pub feedback_id: Option<String>,
    /// Whether its mail says that a program sent it (`Auto-Submitted`), so that no holiday notice answers.
    pub auto_submitted: bool,
    /// Whether it is there for tests: what its sandbox captures counts as sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// The name of a field in which its mail has the client's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_header: Option<String>,
    /// What to do with mail in doubt, where neither the mail nor its account says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
    /// Whom its mail may be from; anybody when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_senders: Vec<AddressPattern>,
    /// Whether `Reply-To` must be one of them, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bind_reply_to: bool,
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self {
            weight: Self::WEIGHT_DEFAULT,
            content: ContentLimits::default(),
            retention_days: None,
            report_retention_seconds: None,
            unreported_retention_days: None,
            client_sync: None,
            attachment_endpoint: None,
            callback_form: CallbackForm::default(),
            large_files: LargeFiles::default(),
            bounce_domain: None,
            return_path: None,
            default_from: None,
            feedback_id: None,
            auto_submitted: false,
            test: false,
            id_header: None,
            on_doubt: None,
            allowed_senders: Vec::new(),
            bind_reply_to: false,
        }
    }
}

/// Bounds of composed mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContentLimits {
    /// The longest subject, in characters.
    pub subject_chars: Option<u32>,
    /// The largest HTML part, in bytes.
    pub html_bytes: Option<u32>,
    /// The largest message, in bytes.
    pub message_bytes: Option<u32>,
    /// Whether every composed message must have html.
    pub html_required: bool,
    /// Whether a message with html and no text gets a text made of its html, unless it says otherwise itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auto_text: bool,
}

impl ContentLimits {
    /// The longest subject of a tenant that says nothing, in characters.
    pub const SUBJECT_CHARS: u32 = 150;
    /// The largest HTML part of a tenant that says nothing.
    pub const HTML_BYTES: u32 = 512 * 1024;

    /// The longest subject, in characters.
    pub fn subject_chars(&self) -> usize {
        self.subject_chars.unwrap_or(Self::SUBJECT_CHARS) as usize
    }

    /// The largest HTML part, in bytes.
    pub fn html_bytes(&self) -> usize {
        self.html_bytes.unwrap_or(Self::HTML_BYTES) as usize
    }
}

/// Somewhere of the tenant's own to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// The address.
    pub url: String,
    /// A path under it.
    #[serde(default)]
    pub path: Option<String>,
    /// How to sign in there; the secret is kept apart, encrypted.
    #[serde(default)]
    pub auth: RemoteAuth,
    /// Who signs in, for basic authentication.
    #[serde(default)]
    pub username: Option<String>,
}

/// How to sign in at a [`Remote`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteAuth {
    /// Not at all.
    #[default]
    None,
    /// With a token.
    Bearer,
    /// With name and password.
    Basic,
}

/// How reports are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallbackForm {
    /// One JSON object for each event.
    #[default]
    Event,
    /// One call for each outcome, in the words of an outbox: `TRAVELING` or `DISPATCH-ERROR`.
    Outbox,
    /// Many outcomes in one call, whose answer says which of them were taken.
    Batch,
}

/// What to do with attachments too large to mail, and from when on they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LargeFilesForm")]
pub struct LargeFiles {
    /// What to do.
    pub policy: LargeFilePolicy,
    /// The largest file that is not too large, in bytes; absent, only the message as a whole is bounded.
    pub above_bytes: Option<u64>,
    /// How long a link works, in days.
    pub link_days: Option<u32>,
}

impl LargeFiles {
    /// How long a link works where nothing is said, in days.
    pub const LINK_DAYS: u32 = 30;
    /// The longest a link may work, in days.
    pub const LINK_DAYS_MAX: u32 = 3_650;

    /// How long a link works, in days.
    pub fn link_days(&self) -> u32 {
        self.link_days.unwrap_or(Self::LINK_DAYS)
    }

    /// Whether a file of so many bytes is too large.
    pub fn is_large(&self, bytes: u64) -> bool {
        self.above_bytes.is_some_and(|above| bytes > above)
    }
}

/// The settings as people write them: all of them, or the policy alone.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum LargeFilesForm {
    Policy(LargeFilePolicy),
    Full {
        #[serde(default)]
        policy: LargeFilePolicy,
        #[serde(default)]
        above_bytes: Option<u64>,
        #[serde(default)]
        link_days: Option<u32>,
    },
}

impl From<LargeFilesForm> for LargeFiles {
    fn from(form: LargeFilesForm) -> Self {
        match form {
            LargeFilesForm::Policy(policy) => Self { policy, ..Self::default() },
            LargeFilesForm::Full { policy, above_bytes, link_days } => {
                Self { policy, above_bytes, link_days }
            }
        }
    }
}

/// What to do with an attachment too large to mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LargeFilePolicy {
    /// Refuse the message.
    #[default]
    Reject,
    /// Note it in the message's history, and send it anyway.
    Warn,
    /// Keep the file, and put a link in its place.
    #[serde(alias = "link")]
    Rewrite,
}

impl TenantSettings {
    /// The weight of a tenant of which nothing is said.
    pub const WEIGHT_DEFAULT: u32 = 100;
    /// The largest weight.
    pub const WEIGHT_MAX: u32 = 10_000;
    /// The longest retention.
    pub const RETENTION_DAYS_MAX: u32 = 3_650;

    /// What is wrong with these settings: field and message, one entry each.
    pub fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if !(1..=Self::WEIGHT_MAX).contains(&self.weight) {
            wrong.push(("weight", format!("must be between 1 and {}", Self::WEIGHT_MAX)));
        }
        wrong.extend(self.check_retention());
        for (field, limit) in [
            ("content.subject_chars", self.content.subject_chars),
            ("content.html_bytes", self.content.html_bytes),
            ("content.message_bytes", self.content.message_bytes),
        ] {
            if limit == Some(0) {
                wrong.push((field, "must be at least 1, or absent for the default".to_owned()));
            }
        }
        for (field, remote) in
            [("client_sync", &self.client_sync), ("attachment_endpoint", &self.attachment_endpoint)]
        {
            if let Some(remote) = remote {
                wrong.extend(remote.check().map(|message| (field, message)));
            }
        }
        if !(1..=LargeFiles::LINK_DAYS_MAX).contains(&self.large_files.link_days()) {
            let message = format!("link_days must be between 1 and {}", LargeFiles::LINK_DAYS_MAX);
            wrong.push(("large_files", message));
        }
        if self.large_files.above_bytes == Some(0) {
            wrong.push(("large_files", "above_bytes must be at least 1".to_owned()));
        }
        if let Some(path) = &self.return_path
            && path.parse::<crate::address::EmailAddress>().is_err()
        {
            wrong.push(("return_path", "must be an address".to_owned()));
        }
        if let Some(from) = &self.default_from
            && from.parse::<crate::address::Mailbox>().is_err()
        {
            wrong.push(("default_from", "must be an address such as Shop <shop@example.com>".to_owned()));
        }
        if self.feedback_id.as_deref().is_some_and(|id| !is_feedback_id(id)) {
            wrong.push((
                "feedback_id",
                "must be 5 to 15 letters, digits, dots, dashes or underscores".to_owned(),
            ));
        }
        if self.id_header.as_deref().is_some_and(|name| !is_id_header(name)) {
            wrong.push((
                "id_header",
                "must be X- and up to 60 letters, digits and dashes, and not X-Postway-".to_owned(),
            ));
        }
        if let Some(domain) = &self.bounce_domain
            && format!("bounce@{domain}").parse::<crate::address::EmailAddress>().is_err()
        {
            wrong.push(("bounce_domain", "must be a domain".to_owned()));
        }
        wrong
    }
}

/// What receivers take for the sender's part of a `Feedback-ID`.
fn is_feedback_id(id: &str) -> bool {
    (5..=15).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// A field of nobody else's: no standard begins with `X-`, and what begins with ours is ours.
fn is_id_header(name: &str) -> bool {
    let is_named = |start: &str| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    (3..=62).contains(&name.len())
        && is_named("X-")
        && !is_named("X-Postway-")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Remote {
    const TEXT_MAX: usize = 2_048;

    fn check(&self) -> Option<String> {
        let is_http = self.url.starts_with("https://") || self.url.starts_with("http://");
        let has_space = |text: &str| text.chars().any(|c| c.is_whitespace() || c.is_control());
        if !is_http || self.url.len() > Self::TEXT_MAX || has_space(&self.url) {
            return Some(format!("url must be an http(s) address of at most {} bytes", Self::TEXT_MAX));
        }
        if let Some(path) = &self.path
            && (!path.starts_with('/') || path.len() > Self::TEXT_MAX || has_space(path))
        {
            return Some("path must begin with a slash".to_owned());
        }
        if self.auth == RemoteAuth::Basic && self.username.as_deref().unwrap_or_default().is_empty() {
            return Some("basic authentication needs a username".to_owned());
        }
        None
    }
}

/// A tenant as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its name for people.
    pub name: String,
    /// The account its mail takes when it names none.
    pub default_account: Option<AccountId>,
    /// Everything else.
    pub settings: TenantSettings,
    /// Its secrets, encrypted: a JSON object.
    pub secret: Option<Sealed>,
    /// Rises with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
    /// When it was deleted; what is left of it goes away soon.
    pub deleted_at: Option<Time>,
}

/// A tenant's secrets, as they are sealed together.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSecrets {
    /// The token or password of [`TenantSettings::client_sync`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_sync: Option<String>,
    /// The token or password of [`TenantSettings::attachment_endpoint`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachment_endpoint: Option<String>,
}

impl std::fmt::Debug for TenantSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TenantSecrets(***)")
    }
}

impl Tenant {
    /// A new one of which only the name is known.
    pub fn new(id: TenantId, name: impl Into<String>, now: Time) -> Self {
        Self {
            id,
            name: name.into(),
            default_account: None,
            settings: TenantSettings::default(),
            secret: None,
            version: 1,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// The place for which its secrets are sealed.
    pub fn secret_place(id: &TenantId) -> String {
        format!("tenant/{id}")
    }

    /// What the key of addresses' digests is derived by, where a digest stands for an address that is not kept.
    pub const TRACE_KEY_LABEL: &'static str = "trace/recipients";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_absent_take_their_defaults() {
        let settings: TenantSettings = serde_json::from_str(r#"{"retention_days": 30}"#).unwrap();
        assert_eq!(settings, TenantSettings { retention_days: Some(30), ..TenantSettings::default() });
        assert!(settings.check().is_empty());
        assert!(serde_json::from_str::<TenantSettings>(r#"{"wieght": 30}"#).is_err());
    }

    #[test]
    fn the_field_for_ids_is_one_that_nobody_else_has() {
        let is_wrong = |name: &str| {
            let settings = TenantSettings { id_header: Some(name.to_owned()), ..TenantSettings::default() };
            settings.check().iter().any(|(field, _)| *field == "id_header")
        };
        assert!(!is_wrong("X-Genro-Mail-ID") && !is_wrong("x-id"));
        for name in [
            "",
            "X-",
            "Subject",
            "X-Postway-ID",
            "x-postway-x",
            "X-A: b",
            "X-Ü",
            &format!("X-{}", "a".repeat(61)),
        ] {
            assert!(is_wrong(name), "{name}");
        }
    }

    #[test]
    fn each_wrong_setting_is_named() {
        let remote =
            |url: &str| Remote { url: url.to_owned(), path: None, auth: RemoteAuth::Basic, username: None };
        let settings = TenantSettings {
            weight: 0,
            retention_days: Some(9_999),
            client_sync: Some(remote("ftp://x")),
            attachment_endpoint: Some(remote("https://x")),
            bounce_domain: Some("a b".to_owned()),
            content: ContentLimits { html_bytes: Some(0), ..ContentLimits::default() },
            ..TenantSettings::default()
        };
        let fields: Vec<_> = settings.check().into_iter().map(|(field, _)| field).collect();
        assert_eq!(
            fields,
            [
                "weight",
                "retention_days",
                "content.html_bytes",
                "client_sync",
                "attachment_endpoint",
                "bounce_domain"
            ]
        );
    }
}
