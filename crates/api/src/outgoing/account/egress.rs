//! The way that an account's connections take: its proxy, the password of that, and the address of this
//! machine that they leave from.
//!
//! Any key of the tenant may set a proxy; the guard decides about it and about what it is asked for. The
//! source address belongs to the machine, and its reputation to all tenants, so only the admin key sets it.

use std::net::IpAddr;

use postway_domain::{
    Account, AccountId, AccountSettings, TenantId,
    egress::{PROXY_CHARS_MAX, PROXY_PASSWORD_BYTES_MAX, ProxySetting},
};
use serde_json::{Map, Value};

use super::value::text;
use crate::{
    auth::CallerActor,
    http::error::{ApiError, FieldError},
    setting::{
        proxy::{ProxyPasswordEdit, fit_password, wrong_proxy},
        secret_destination::SecretDestination,
    },
    state::AppState,
};

/// The change to the stored password of the proxy. A password is never printed.
#[derive(Default, PartialEq)]
pub(super) enum AccountProxyEdit {
    #[default]
    Keep,
    Remove,
    Set(String),
}

impl std::fmt::Debug for AccountProxyEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Remove => "Remove",
            Self::Set(_) => "Set(***)",
        })
    }
}

/// Reads the fields of the way out, and returns what is wrong with them.
pub(super) fn edit(
    settings: &mut AccountSettings,
    password: &mut AccountProxyEdit,
    body: &Map<String, Value>,
) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let mut refuse = |field, message: String| wrong.push(FieldError::new(field, message));
    match body.get("proxy").map(text) {
        None => {}
        Some(Err(message)) => refuse("proxy", message),
        Some(Ok(None)) => settings.proxy = None,
        Some(Ok(Some(url))) if url.is_empty() => settings.proxy = None,
        Some(Ok(Some(url))) if url.chars().count() > PROXY_CHARS_MAX => {
            refuse("proxy", format!("must have at most {PROXY_CHARS_MAX} characters"));
        }
        Some(Ok(Some(url))) => match wrong_proxy(&url) {
            Some(message) => refuse("proxy", message.to_owned()),
            None => {
                let password = settings.proxy.take().and_then(|proxy| proxy.password);
                settings.proxy = Some(ProxySetting { url, password });
            }
        },
    }
    let given = match body.get("proxy_password").map(text) {
        None => None,
        Some(Ok(Some(password))) if !(1..=PROXY_PASSWORD_BYTES_MAX).contains(&password.len()) => {
            refuse("proxy_password", format!("must have 1 to {PROXY_PASSWORD_BYTES_MAX} bytes"));
            None
        }
        Some(Ok(password)) => Some(password),
        Some(Err(message)) => {
            refuse("proxy_password", message);
            None
        }
    };
    let url = settings.proxy.as_ref().map(|proxy| proxy.url.as_str());
    match fit_password(url, given.as_ref().map(Option::as_deref)) {
        Ok(ProxyPasswordEdit::Keep) => *password = AccountProxyEdit::Keep,
        Ok(ProxyPasswordEdit::Remove) => *password = AccountProxyEdit::Remove,
        Ok(ProxyPasswordEdit::Set(new)) => *password = AccountProxyEdit::Set(new.to_owned()),
        Err(message) => refuse("proxy_password", message.to_owned()),
    }
    match body.get("source_address").map(text) {
        None => {}
        Some(Err(message)) => refuse("source_address", message),
        Some(Ok(None)) => settings.source_address = None,
        Some(Ok(Some(address))) => match address.parse::<IpAddr>() {
            Ok(address) if !address.is_unspecified() && !address.is_multicast() => {
                settings.source_address = Some(address);
            }
            Ok(_) | Err(_) => {
                refuse("source_address", "must be an IPv4 or IPv6 address of this machine".to_owned());
            }
        },
    }
    wrong
}

/// Refuses a change of the source address by another key than the admin key. One that replaces all settings
/// and does not name it keeps it.
pub(super) fn check_source(
    actor: &CallerActor,
    before: Option<&AccountSettings>,
    settings: &mut AccountSettings,
    is_named: bool,
) -> Result<(), ApiError> {
    let stored = before.and_then(|before| before.source_address);
    if !is_named {
        settings.source_address = stored;
    }
    match settings.source_address == stored || actor.is_admin() {
        true => Ok(()),
        false => {
            Err(ApiError::field("source_address", "needs the admin key: it is an address of the server"))
        }
    }
}

/// Puts the password of the proxy into the settings, encrypted. One that is kept goes only to the proxy that
/// it was given for.
pub(super) fn seal_password(
    app: &AppState,
    (tenant, id): (&TenantId, &AccountId),
    settings: &mut AccountSettings,
    password: AccountProxyEdit,
    current: Option<&Account>,
) -> Result<(), ApiError> {
    let stored = current.and_then(|account| account.settings.proxy.as_ref());
    let Some(proxy) = &mut settings.proxy else { return Ok(()) };
    match password {
        AccountProxyEdit::Remove => proxy.password = None,
        AccountProxyEdit::Keep => {
            proxy.password = stored.and_then(|stored| stored.password.clone());
            if let Some(stored) = stored.filter(|_| proxy.password.is_some()) {
                let place = |proxy: &ProxySetting| SecretDestination::of_proxy(Some(&proxy.url));
                SecretDestination::check(&place(stored), &place(proxy), "proxy_password")
                    .map_err(|wrong| ApiError::invalid(vec![wrong]))?;
            }
        }
        AccountProxyEdit::Set(text) => {
            let context = ProxySetting::account_context(tenant, id);
            proxy.password = Some(app.secret_key.seal(&context, &text).map_err(ApiError::internal)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(settings: &mut AccountSettings, body: Value) -> (AccountProxyEdit, Vec<String>) {
        let mut password = AccountProxyEdit::Keep;
        let wrong = edit(settings, &mut password, body.as_object().unwrap());
        (password, wrong.into_iter().map(|wrong| wrong.field).collect())
    }

    #[test]
    fn the_way_out_is_read_and_its_faults_are_named() {
        let mut settings = AccountSettings::sandbox();
        let body =
            json!({"proxy": "socks5://u@p.example:1080", "proxy_password": "s", "source_address": "::1"});
        assert_eq!(read(&mut settings, body), (AccountProxyEdit::Set("s".to_owned()), Vec::new()));
        assert_eq!(settings.source_address, Some("::1".parse().unwrap()));
        assert_eq!(read(&mut settings, json!({})).0, AccountProxyEdit::Keep);
        assert_eq!(read(&mut settings, json!({"proxy": "socks5://p.example"})).0, AccountProxyEdit::Remove);
        for (body, wrong) in [
            (json!({"proxy": "ftp://p.example"}), "proxy"),
            (json!({"proxy": "socks5://u:s@p.example"}), "proxy"),
            (json!({"proxy": 7}), "proxy"),
            (json!({"proxy_password": "s"}), "proxy_password"),
            (json!({"proxy": "http://u@p.example", "proxy_password": ""}), "proxy_password"),
            (json!({"source_address": "eth0"}), "source_address"),
            (json!({"source_address": "0.0.0.0"}), "source_address"),
        ] {
            assert_eq!(read(&mut AccountSettings::sandbox(), body.clone()).1, [wrong], "{body}");
        }
        let none = json!({"proxy": null, "source_address": null});
        assert_eq!(read(&mut settings, none), (AccountProxyEdit::Remove, Vec::new()));
        assert_eq!((settings.proxy, settings.source_address), (None, None));
    }
}
