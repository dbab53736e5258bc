//! A mailbox's secrets: the password or token it is signed in to with, and the password of its proxy. They are sealed as
//! one JSON object, for the mailbox's own place.

use postway_domain::{
    TenantId, WatchedMailbox,
    id::MailboxId,
    mailbox::{MailboxAuth, MailboxSettings},
    oauth::OAuthSecrets,
    secret::Sealed,
};
use serde::{Deserialize, Serialize};

use crate::{
    http::error::ApiError,
    setting::oauth::{self, OAuthSecretsEdit},
    state::App,
};

/// What becomes of one secret.
#[derive(Default, PartialEq)]
pub(super) enum Change {
    /// It stays as it is.
    #[default]
    Keep,
    /// It goes away.
    Remove,
    /// It is this from now on.
    Set(String),
}

/// What becomes of a mailbox's secrets.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) login: Option<(MailboxAuth, String)>,
    pub(super) proxy_password: Change,
    pub(super) grant: OAuthSecretsEdit,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(***)")
    }
}

/// What is sealed.
#[derive(Default, Deserialize, Serialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy_password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oauth: Option<OAuthSecrets>,
}

/// The stored secret with these changes, sealed.
pub(super) fn seal(
    app: &App,
    tenant: &TenantId,
    id: &MailboxId,
    settings: &mut MailboxSettings,
    secrets: Secrets,
    sealed: Option<Sealed>,
) -> Result<Option<Sealed>, ApiError> {
    let is_same = secrets.login.is_none() && secrets.proxy_password == Change::Keep;
    if is_same && settings.oauth.is_none() {
        return Ok(sealed);
    }
    let place = WatchedMailbox::secret_place(tenant, id);
    let mut stored = match &sealed {
        Some(sealed) => match app.secret_key.open(&place, sealed).map(|text| serde_json::from_str(&text)) {
            Ok(Ok(stored)) => stored,
            // What no key opens any more is not in the way of a new one.
            _ if secrets.login.is_some() || secrets.grant.gives_any() => Stored::default(),
            _ => {
                return Err(ApiError::conflict("the stored secret cannot be opened: give the password anew"));
            }
        },
        None => Stored::default(),
    };
    stored.oauth = match &mut settings.oauth {
        Some(oauth) => {
            (stored.password, stored.token) = (None, None);
            Some(oauth::settle(oauth, stored.oauth.unwrap_or_default(), secrets.grant)?)
        }
        None => None,
    };
    match secrets.login {
        Some((MailboxAuth::Password, password)) => (stored.password, stored.token) = (Some(password), None),
        Some((MailboxAuth::Xoauth2, token)) => (stored.password, stored.token) = (None, Some(token)),
        None => {}
    }
    match secrets.proxy_password {
        Change::Keep => {}
        Change::Remove => stored.proxy_password = None,
        Change::Set(password) => stored.proxy_password = Some(password),
    }
    let text = serde_json::to_string(&stored).map_err(ApiError::internal)?;
    app.secret_key.seal(&place, &text).map(Some).map_err(ApiError::internal)
}
