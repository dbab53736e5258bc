//! A mailbox's secrets: its password or token, and the password of its proxy. They are sealed as one JSON
//! object, for this mailbox only.

use postway_domain::{
    TenantId, WatchedMailbox,
    id::MailboxId,
    mailbox::{MailboxAuth, MailboxSettings},
    oauth::OAuthSecrets,
    secret::SealedSecret,
};
use serde::{Deserialize, Serialize};

use crate::{
    http::error::ApiError,
    setting::oauth::{self, OAuthSecretsEdit},
    state::AppState,
};

/// The change to one secret.
#[derive(Default, PartialEq)]
pub(super) enum SecretChange {
    /// The secret stays.
    #[default]
    Keep,
    /// The secret is removed.
    Remove,
    /// The secret is replaced.
    Set(String),
}

/// The changes to a mailbox's secrets.
#[derive(Default)]
pub(super) struct MailboxSecretsEdit {
    pub(super) login: Option<(MailboxAuth, String)>,
    pub(super) proxy_password: SecretChange,
    pub(super) grant: OAuthSecretsEdit,
}

impl std::fmt::Debug for MailboxSecretsEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(***)")
    }
}

/// The sealed content.
#[derive(Default, Deserialize, Serialize)]
struct StoredMailboxSecrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy_password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oauth: Option<OAuthSecrets>,
}

/// The stored secrets with these changes, sealed.
pub(super) fn seal(
    app: &AppState,
    tenant: &TenantId,
    id: &MailboxId,
    settings: &mut MailboxSettings,
    secrets: MailboxSecretsEdit,
    sealed: Option<SealedSecret>,
) -> Result<Option<SealedSecret>, ApiError> {
    let is_same = secrets.login.is_none() && secrets.proxy_password == SecretChange::Keep;
    if is_same && settings.oauth.is_none() {
        return Ok(sealed);
    }
    let place = WatchedMailbox::sealing_context(tenant, id);
    let mut stored = match &sealed {
        Some(sealed) => match app.secret_key.open(&place, sealed).map(|text| serde_json::from_str(&text)) {
            Ok(Ok(stored)) => stored,
            // A secret that no key opens any more does not prevent setting a new one.
            _ if secrets.login.is_some() || secrets.grant.gives_any() => StoredMailboxSecrets::default(),
            _ => {
                return Err(ApiError::conflict("the stored secret cannot be opened: give the password anew"));
            }
        },
        None => StoredMailboxSecrets::default(),
    };
    stored.oauth = match &mut settings.oauth {
        Some(oauth) => {
            (stored.password, stored.token) = (None, None);
            Some(oauth::apply_secrets(oauth, stored.oauth.unwrap_or_default(), secrets.grant)?)
        }
        None => None,
    };
    match secrets.login {
        Some((MailboxAuth::Password, password)) => (stored.password, stored.token) = (Some(password), None),
        Some((MailboxAuth::Xoauth2, token)) => (stored.password, stored.token) = (None, Some(token)),
        None => {}
    }
    match secrets.proxy_password {
        SecretChange::Keep => {}
        SecretChange::Remove => stored.proxy_password = None,
        SecretChange::Set(password) => stored.proxy_password = Some(password),
    }
    let text = serde_json::to_string(&stored).map_err(ApiError::internal)?;
    app.secret_key.seal(&place, &text).map(Some).map_err(ApiError::internal)
}
