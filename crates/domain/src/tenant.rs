//! Tenants: whose mail it is, and how much of everything they get.

use serde::{Deserialize, Serialize};

use crate::{
    id::{AccountId, TenantId},
    secret::Sealed,
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
    /// How long finished messages are kept once they are reported, in days.
    pub retention_days: Option<u32>,
    /// Where its delivery reports go.
    pub client_sync: Option<Remote>,
    /// Where attachments named by `endpoint` are fetched.
    pub attachment_endpoint: Option<Remote>,
    /// How its reports are written.
    pub callback_form: CallbackForm,
    /// What to do with attachments too large to mail.
    pub large_files: LargeFiles,
    /// The domain its bounces come back to.
    pub bounce_domain: Option<String>,
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self {
            weight: Self::WEIGHT_DEFAULT,
            content: ContentLimits::default(),
            retention_days: None,
            client_sync: None,
            attachment_endpoint: None,
            callback_form: CallbackForm::default(),
            large_files: LargeFiles::default(),
            bounce_domain: None,
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
    /// Many in one call.
    Batch,
}

/// What to do with attachments too large to mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LargeFiles {
    /// Refuse the message.
    #[default]
    Reject,
    /// Warn, and send it anyway.
    Warn,
    /// Put a link in its place.
    Link,
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
        if self.retention_days.is_some_and(|days| days > Self::RETENTION_DAYS_MAX) {
            wrong.push(("retention_days", format!("must be at most {}", Self::RETENTION_DAYS_MAX)));
        }
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
        if let Some(domain) = &self.bounce_domain
            && format!("bounce@{domain}").parse::<crate::EmailAddress>().is_err()
        {
            wrong.push(("bounce_domain", "must be a domain".to_owned()));
        }
        wrong
    }
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
