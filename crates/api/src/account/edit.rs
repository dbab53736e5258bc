//! Settings from JSON: every field that is wrong is named, unknown ones too, and nothing is silently ignored.
//!
//! Fields of accounts that this version does not have yet are taken at their defaults, which is what they mean here,
//! and refused at anything else.

use postway_domain::{Account, AccountKind, AccountSettings, TlsMode, retry::RetryPolicy};
use serde_json::{Map, Value};

use super::AccountView;
use crate::error::FieldError;

const PASSWORD_BYTES_MAX: usize = 1024;
const CA_PEM_BYTES_MAX: usize = 256 * 1024;
const LATER: &str = "is not available in this version; leave it out";

/// What an edit makes.
#[derive(Debug)]
pub(super) struct Edited {
    pub(super) settings: AccountSettings,
    pub(super) password: Password,
}

/// What becomes of the stored password.
#[derive(PartialEq)]
pub(super) enum Password {
    Keep,
    Remove,
    Set(String),
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Password::Keep => "Keep",
            Password::Remove => "Remove",
            Password::Set(_) => "Set(***)",
        })
    }
}

/// The settings of an account about which nothing is said but, perhaps, its kind.
pub(super) fn defaults(body: &Map<String, Value>, current: Option<AccountKind>) -> AccountSettings {
    let kind = match body.get("kind").and_then(Value::as_str) {
        Some("sandbox") => AccountKind::Sandbox,
        Some(_) => AccountKind::Smtp,
        None => current.unwrap_or(AccountKind::Smtp),
    };
    let sandbox = AccountSettings::sandbox();
    match kind {
        AccountKind::Sandbox => sandbox,
        AccountKind::Smtp => {
            AccountSettings { kind, tls: TlsMode::default(), retry: RetryPolicy::smtp(), ..sandbox }
        }
    }
}

/// `base` with the fields of `body`. What `current` shows of fields that cannot be set may come back unchanged.
pub(super) fn edit(
    base: AccountSettings,
    body: &Map<String, Value>,
    current: Option<&Account>,
) -> Result<Edited, Vec<FieldError>> {
    let mut edited = Edited { settings: base, password: Password::Keep };
    let mut wrong = Vec::new();
    // First, since the defaults of other fields depend on it.
    if let Some(Ok(kind)) = body.get("kind").map(kind) {
        edited.settings.kind = kind;
    }
    let shown = current.and_then(|account| serde_json::to_value(AccountView::from(account)).ok());
    for (name, value) in body {
        let done = match name.as_str() {
            "id" | "tenant" | "version" | "created_at" | "updated_at" | "password_set" => {
                match shown.as_ref().and_then(|shown| shown.get(name)) == Some(value) {
                    true => Ok(()),
                    false => Err("cannot be set; leave it out".to_owned()),
                }
            }
            "limits" => {
                wrong.extend(limits(value));
                Ok(())
            }
            _ => set(&mut edited, name, value),
        };
        wrong.extend(done.err().map(|message| FieldError::new(name, message)));
    }
    if edited.settings.username.is_none() {
        match edited.password {
            Password::Set(_) => wrong.push(FieldError::new("password", "a password needs a username")),
            Password::Keep | Password::Remove => edited.password = Password::Remove,
        }
    }
    for (field, message) in edited.settings.check() {
        if !wrong.iter().any(|known| known.field == field) {
            wrong.push(FieldError::new(field, message));
        }
    }
    if wrong.is_empty() { Ok(edited) } else { Err(wrong) }
}

/// Sets one field.
fn set(Edited { settings, password }: &mut Edited, name: &str, value: &Value) -> Result<(), String> {
    match name {
        "kind" => settings.kind = kind(value)?,
        "host" => settings.host = text(value)?,
        "port" => {
            settings.port = match value {
                Value::Null => None,
                value => Some(number(value).ok_or("must be between 1 and 65535")?),
            }
        }
        "tls" => {
            settings.tls = match value {
                Value::Null => TlsMode::default(),
                value => serde_json::from_value(value.clone())
                    .map_err(|_| "must be starttls, implicit, none or opportunistic")?,
            }
        }
        "username" => settings.username = text(value)?,
        "password" => *password = new_password(value)?,
        "allow_plaintext_auth" => settings.allow_plaintext_auth = flag(value)?,
        "ca_pem" => settings.ca_pem = ca_pem(value)?,
        "max_connections" => {
            settings.max_connections = match value {
                Value::Null => AccountSettings::CONNECTIONS_DEFAULT,
                value => number(value).ok_or("must be a whole number")?,
            }
        }
        "return_path" => settings.return_path = text(value)?,
        "retry" => {
            settings.retry = match value {
                Value::Null if settings.kind == AccountKind::Smtp => RetryPolicy::smtp(),
                Value::Null => RetryPolicy::api(),
                value => serde_json::from_value(value.clone()).map_err(|error| {
                    format!("must be like {{\"delays_s\":[1,5,30],\"jitter\":0.25}}: {error}")
                })?,
            }
        }
        "pec" => {
            if flag(value)? {
                return Err(LATER.to_owned());
            }
        }
        "fallback" | "region" | "access_key_id" | "secret_access_key" | "configuration_set" | "endpoint" => {
            if !value.is_null() {
                return Err(LATER.to_owned());
            }
        }
        _ => return Err("is not a field of an account".to_owned()),
    }
    Ok(())
}

fn kind(value: &Value) -> Result<AccountKind, String> {
    match value.as_str() {
        Some("smtp") => Ok(AccountKind::Smtp),
        Some("sandbox") => Ok(AccountKind::Sandbox),
        Some("ses") => Err("ses accounts are not available in this version; use smtp or sandbox".to_owned()),
        _ => Err("must be smtp or sandbox".to_owned()),
    }
}

fn text(value: &Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err("must be a text or null".to_owned()),
    }
}

fn flag(value: &Value) -> Result<bool, String> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        _ => Err("must be true or false".to_owned()),
    }
}

fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    value.as_u64().and_then(|number| T::try_from(number).ok())
}

fn new_password(value: &Value) -> Result<Password, String> {
    match text(value)? {
        None => Ok(Password::Remove),
        Some(password) if !(1..=PASSWORD_BYTES_MAX).contains(&password.len()) => {
            Err(format!("must have 1 to {PASSWORD_BYTES_MAX} bytes"))
        }
        // NUL parts the fields of AUTH PLAIN (RFC 4616), and no line can hold the others.
        Some(password) if password.contains(['\0', '\r', '\n']) => {
            Err("must not contain NUL, CR or LF".to_owned())
        }
        Some(password) => Ok(Password::Set(password)),
    }
}

fn ca_pem(value: &Value) -> Result<Option<String>, String> {
    match text(value)? {
        Some(pem) if pem.len() > CA_PEM_BYTES_MAX => {
            Err(format!("must have at most {CA_PEM_BYTES_MAX} bytes"))
        }
        Some(pem) if !pem.contains("-----BEGIN CERTIFICATE-----") => {
            Err("must hold certificates in PEM form (-----BEGIN CERTIFICATE-----)".to_owned())
        }
        pem => Ok(pem),
    }
}

fn limits(value: &Value) -> Vec<FieldError> {
    let limits = match value {
        Value::Null => return Vec::new(),
        Value::Object(limits) => limits,
        _ => return vec![FieldError::new("limits", "must be an object or null")],
    };
    let check = |(name, value): (&String, &Value)| {
        let message = match (name.as_str(), value) {
            (_, Value::Null) => return None,
            ("per_minute" | "per_hour" | "per_day", value) if value.as_u64() == Some(0) => return None,
            ("behavior", value) if value == "defer" => return None,
            ("per_minute" | "per_hour" | "per_day", _) => {
                "is not available in this version; 0 means no limit"
            }
            ("behavior", _) => LATER,
            _ => "is not a field of limits",
        };
        Some(FieldError::new(format!("limits.{name}"), message))
    };
    limits.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn create(body: Value) -> Result<Edited, Vec<FieldError>> {
        let body = body.as_object().unwrap();
        edit(defaults(body, None), body, None)
    }

    fn wrong_fields(body: Value) -> Vec<String> {
        create(body).unwrap_err().into_iter().map(|wrong| wrong.field).collect()
    }

    #[test]
    fn a_relay_needs_little_and_gets_the_smtp_schedule() {
        let made = create(json!({"host": "smtp.example.com"})).unwrap();
        assert_eq!(made.settings.retry, RetryPolicy::smtp());
        assert_eq!((made.settings.tls, made.settings.max_connections), (TlsMode::Starttls, 10));
        assert_eq!(create(json!({"kind": "sandbox"})).unwrap().settings, AccountSettings::sandbox());
    }

    #[test]
    fn every_wrong_field_is_named() {
        assert_eq!(wrong_fields(json!({})), ["host"]);
        assert_eq!(wrong_fields(json!({"kind": "ses", "host": "h"})), ["kind"]);
        assert_eq!(wrong_fields(json!({"host": 1})), ["host"]);
        assert_eq!(wrong_fields(json!({"host": "h", "port": 0})), ["port"]);
        assert_eq!(wrong_fields(json!({"host": "h", "port": 70000})), ["port"]);
        assert_eq!(wrong_fields(json!({"host": "h", "tls": "ssl"})), ["tls"]);
        assert_eq!(wrong_fields(json!({"host": "h", "password": "x"})), ["password"]);
        assert_eq!(wrong_fields(json!({"host": "h", "username": "u", "password": "a\u{0}b"})), ["password"]);
        assert_eq!(wrong_fields(json!({"host": "h", "max_connections": 501})), ["max_connections"]);
        assert_eq!(wrong_fields(json!({"host": "h", "retry": {"delays_s": [0]}})), ["retry.delays_s"]);
        assert_eq!(wrong_fields(json!({"host": "h", "retry": {"delays_s": [1], "x": 1}})), ["retry"]);
        assert_eq!(wrong_fields(json!({"host": "h", "ca_pem": "x"})), ["ca_pem"]);
        assert_eq!(wrong_fields(json!({"host": "h", "colour": "red"})), ["colour"]);
        assert_eq!(wrong_fields(json!({"host": "h", "version": 3})), ["version"]);
    }

    #[test]
    fn what_this_version_lacks_is_taken_at_its_default_only() {
        let defaults = json!({"host": "h", "fallback": null, "pec": false, "configuration_set": null,
            "limits": {"per_minute": 0, "per_hour": 0, "per_day": 0, "behavior": "defer"}});
        assert!(create(defaults).is_ok());
        assert_eq!(wrong_fields(json!({"host": "h", "pec": true})), ["pec"]);
        assert_eq!(wrong_fields(json!({"host": "h", "fallback": "b"})), ["fallback"]);
        assert_eq!(wrong_fields(json!({"host": "h", "limits": {"per_day": 5}})), ["limits.per_day"]);
        assert_eq!(wrong_fields(json!({"host": "h", "limits": {"per_week": 5}})), ["limits.per_week"]);
    }

    #[test]
    fn a_password_is_kept_replaced_or_removed() {
        let base = || create(json!({"host": "h", "username": "u"})).unwrap().settings;
        let password = |body: Value| edit(base(), body.as_object().unwrap(), None).unwrap().password;
        assert_eq!(password(json!({})), Password::Keep);
        assert_eq!(password(json!({"password": "p"})), Password::Set("p".to_owned()));
        assert_eq!(password(json!({"password": null})), Password::Remove);
        assert_eq!(password(json!({"username": null})), Password::Remove);
    }
}
