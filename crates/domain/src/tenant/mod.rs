//! Tenants: the owners of mail, with their settings and shares.

pub mod archive;
pub mod contact;
pub mod known_recipient;
pub mod locale;
pub mod quota;
mod retention;
pub mod route;
pub mod stream;
pub mod template;

use serde::{Deserialize, Serialize};

use crate::{
    address::pattern::AddressPattern,
    identity::{
        id::{AccountId, TenantId},
        secret::SealedSecret,
    },
    message::OnDoubt,
    tenant::{archive::ArchiveSettings, locale::MailLocale, quota::DailyQuota},
    time::Time,
};

/// A tenant's settings, without its secrets. An absent setting takes the gateway's default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSettings {
    /// Its share of the gateway when tenants compete, relative to the weights of the others.
    pub weight: u32,
    /// The bounds of its mail.
    pub content: ContentLimits,
    /// How long messages are retained after they ended and were reported, in days: the older form of
    /// [`Self::report_retention_seconds`].
    pub retention_days: Option<u32>,
    /// How long messages are retained after they ended and were reported.
    pub report_retention_seconds: Option<u64>,
    /// How long messages are retained that ended and could not be reported, in days.
    pub unreported_retention_days: Option<u32>,
    /// The address of its client sync.
    pub client_sync: Option<RemoteService>,
    /// The address from which attachments with `endpoint` are fetched.
    pub attachment_endpoint: Option<RemoteService>,
    /// The form of its callbacks.
    pub callback_form: CallbackForm,
    /// What to do with attachments that are too large for mail.
    pub large_files: LargeFiles,
    /// The bounce domain. If set, each message has a unique envelope sender at it.
    pub bounce_domain: Option<String>,
    /// The envelope sender if neither the mail nor its account sets one.
    pub return_path: Option<String>,
    /// The default `From`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_from: Option<String>,
    /// The sender part of `Feedback-ID`, by which receivers count complaints.
    pub feedback_id: Option<String>,
    /// Whether its mail is marked as automatic (`Auto-Submitted`), so that out-of-office programs do not
    /// reply.
    pub auto_submitted: bool,
    /// Whether it is a test tenant: mail that its sandbox captures counts as sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// The header field that gets the client's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_header: Option<String>,
    /// What to do with mail in doubt if neither the mail nor its account says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
    /// The allowed senders; any if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_senders: Vec<AddressPattern>,
    /// Whether `Reply-To` must be an allowed sender, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bind_reply_to: bool,
    /// What becomes of mail that could not be scanned for viruses.
    #[serde(skip_serializing_if = "VirusPolicy::is_default")]
    pub virus_policy: VirusPolicy,
    /// How much mail it may hand over in a day.
    #[serde(skip_serializing_if = "DailyQuota::is_unlimited")]
    pub daily_quota: DailyQuota,
    /// Whether reading bodies takes the right `read:content`, beside `read`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guard_content: bool,
    /// Where copies of what was sent go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveSettings>,
    /// The language of its templates for mail that names none, or one that a template does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<MailLocale>,
}

/// What becomes of mail that the virus scanner could not scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VirusPolicy {
    /// It passes.
    #[default]
    Open,
    /// It waits until it can be scanned.
    Closed,
    /// Nothing is scanned.
    Off,
}

impl VirusPolicy {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
            virus_policy: VirusPolicy::default(),
            daily_quota: DailyQuota::default(),
            guard_content: false,
            archive: None,
            locale: None,
        }
    }
}

/// The bounds of composed mail.
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
    /// Whether a message with html and no text gets a text made from its html, unless it says otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auto_text: bool,
}

impl ContentLimits {
    /// The default longest subject, in characters.
    pub const SUBJECT_CHARS: u32 = 150;
    /// The default largest HTML part, in bytes.
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

/// An HTTP service of the tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteService {
    /// The address.
    pub url: String,
    /// A path under it.
    #[serde(default)]
    pub path: Option<String>,
    /// How to sign in; the secret is stored separately, encrypted.
    #[serde(default)]
    pub auth: RemoteAuth,
    /// The user name for basic authentication.
    #[serde(default)]
    pub username: Option<String>,
}

/// How to sign in at a [`RemoteService`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteAuth {
    /// No authentication.
    #[default]
    None,
    /// A bearer token.
    Bearer,
    /// User name and password.
    Basic,
}

/// The form of callbacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallbackForm {
    /// One JSON object for each event.
    #[default]
    Event,
    /// One call for each outcome, in the words of an outbox: `TRAVELING` or `DISPATCH-ERROR`.
    Outbox,
    /// Many outcomes in one call, whose answer says which of them were accepted.
    Batch,
}

/// Which attachments are too large for mail, and what to do with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LargeFilesForm")]
pub struct LargeFiles {
    /// What to do with them.
    pub policy: LargeFilePolicy,
    /// The largest attachment, in bytes; if absent, only the size of the message is bounded.
    pub above_bytes: Option<u64>,
    /// How long a link works, in days.
    pub link_days: Option<u32>,
}

impl LargeFiles {
    /// How long a link works by default, in days.
    pub const LINK_DAYS: u32 = 30;
    /// The longest a link may work, in days.
    pub const LINK_DAYS_MAX: u32 = 3_650;

    /// How long a link works, in days.
    pub fn link_days(&self) -> u32 {
        self.link_days.unwrap_or(Self::LINK_DAYS)
    }

    /// Whether a file of `bytes` bytes is too large.
    pub fn is_large(&self, bytes: u64) -> bool {
        self.above_bytes.is_some_and(|above| bytes > above)
    }
}

/// The settings as users write them: complete, or only the policy.
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

/// What to do with an attachment that is too large for mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LargeFilePolicy {
    /// Refuse the message.
    #[default]
    Reject,
    /// Note it in the message's history, and send it anyway.
    Warn,
    /// Store the file, and replace it by a link.
    #[serde(alias = "link")]
    Rewrite,
}

impl TenantSettings {
    /// The default weight.
    pub const WEIGHT_DEFAULT: u32 = 100;
    /// The largest weight.
    pub const WEIGHT_MAX: u32 = 10_000;
    /// The longest retention.
    pub const RETENTION_DAYS_MAX: u32 = 3_650;

    /// The faults of these settings, as pairs of field and message.
    pub fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if !(1..=Self::WEIGHT_MAX).contains(&self.weight) {
            wrong.push(("weight", format!("must be between 1 and {}", Self::WEIGHT_MAX)));
        }
        wrong.extend(self.check_retention());
        wrong.extend(self.daily_quota.check());
        wrong.extend(self.archive.iter().flat_map(|archive| archive.check(self.default_from.as_deref())));
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
            && from.parse::<crate::address::NamedAddress>().is_err()
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

/// Whether receivers accept the text as the sender part of a `Feedback-ID`.
fn is_feedback_id(id: &str) -> bool {
    (5..=15).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// Whether the name is free for use: it begins with `X-`, which no standard uses, and not with our own
/// prefix.
fn is_id_header(name: &str) -> bool {
    let is_named = |start: &str| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    (3..=62).contains(&name.len())
        && is_named("X-")
        && !is_named("X-Postway-")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl RemoteService {
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
    /// A name for people.
    pub name: String,
    /// The default account of its mail.
    pub default_account: Option<AccountId>,
    /// The other settings.
    pub settings: TenantSettings,
    /// Its secrets, encrypted: a JSON object.
    pub secret: Option<SealedSecret>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
    /// When it was deleted; its data is purged soon after.
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
    /// A new tenant with default settings.
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

    /// The context that its secrets are sealed for.
    pub fn sealing_context(id: &TenantId) -> String {
        format!("tenant/{id}")
    }

    /// The label of the key for digests of addresses that are not stored.
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
        let remote = |url: &str| RemoteService {
            url: url.to_owned(),
            path: None,
            auth: RemoteAuth::Basic,
            username: None,
        };
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
