//! Single account fields from JSON. Each refusal says what the field must be.

use std::collections::BTreeMap;

use postway_domain::{
    AccountId, AccountKind, AccountLimits, Time,
    destination::DestinationLimit,
    dsn::{DsnError, DsnRequest},
    limit::{LimitBehavior, WarmUpPlan},
    message::OnDoubt,
};
use serde_json::Value;

use super::edit::AccountSecretEdit;
use crate::http::error::FieldError;

const SECRET_BYTES_MAX: usize = 1024;
const CA_PEM_BYTES_MAX: usize = 256 * 1024;

pub(super) fn kind(value: &Value) -> Result<AccountKind, String> {
    value.as_str().and_then(AccountKind::from_word).ok_or_else(|| {
        let words = AccountKind::ALL.map(AccountKind::as_str);
        format!("must be one of {}", words.join(", "))
    })
}

pub(super) fn text(value: &Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err("must be a text or null".to_owned()),
    }
}

pub(super) fn flag(value: &Value) -> Result<bool, String> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        _ => Err("must be true or false".to_owned()),
    }
}

pub(super) fn on_doubt(value: &Value) -> Result<Option<OnDoubt>, String> {
    match text(value)?.as_deref() {
        None | Some("") => Ok(None),
        Some(word) => word.parse().map(Some).map_err(str::to_owned),
    }
}

pub(super) fn dsn(value: &Value) -> Result<Option<DsnRequest>, String> {
    match text(value)?.as_deref() {
        None | Some("") => Ok(None),
        Some(parameters) => parameters.parse().map(Some).map_err(|error: DsnError| error.to_string()),
    }
}

pub(super) fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    value.as_u64().and_then(|number| T::try_from(number).ok())
}

pub(super) fn secret(value: &Value) -> Result<AccountSecretEdit, String> {
    match text(value)? {
        None => Ok(AccountSecretEdit::Remove),
        Some(secret) if !(1..=SECRET_BYTES_MAX).contains(&secret.len()) => {
            Err(format!("must have 1 to {SECRET_BYTES_MAX} bytes"))
        }
        // NUL separates the fields of AUTH PLAIN (RFC 4616), and a line cannot contain the others.
        Some(secret) if secret.contains(['\0', '\r', '\n']) => {
            Err("must not contain NUL, CR or LF".to_owned())
        }
        Some(secret) => Ok(AccountSecretEdit::Set(secret)),
    }
}

pub(crate) fn ca_pem(value: &Value) -> Result<Option<String>, String> {
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

pub(super) fn fallback(value: &Value) -> Result<Option<AccountId>, String> {
    let id = text(value)?.map(|id| id.parse()).transpose();
    id.map_err(|error| format!("must be the id of another account: {error}"))
}

/// Changes the given limits and leaves the others.
pub(super) fn limits(limits: &mut AccountLimits, value: &Value) -> Vec<FieldError> {
    let given = match value {
        Value::Null => {
            *limits = AccountLimits::default();
            return Vec::new();
        }
        Value::Object(given) => given,
        _ => return vec![FieldError::new("limits", "must be an object or null")],
    };
    let mut set = |(name, value): (&String, &Value)| {
        let limit = match name.as_str() {
            "per_minute" => &mut limits.per_minute,
            "per_hour" => &mut limits.per_hour,
            "per_day" => &mut limits.per_day,
            "behavior" => {
                limits.behavior = match value.as_str() {
                    Some("defer") => LimitBehavior::Defer,
                    Some("reject") => LimitBehavior::Reject,
                    None if value.is_null() => LimitBehavior::default(),
                    _ => return Some("must be defer or reject"),
                };
                return None;
            }
            _ => return Some("is not a field of limits"),
        };
        let given = if value.is_null() { Some(0) } else { number(value) };
        *limit = given.unwrap_or(*limit);
        given.is_none().then_some("must be a whole number; 0 means no limit")
    };
    let wrong = given.iter().filter_map(|field| Some((field.0.clone(), set(field)?)));
    wrong.map(|(name, message)| FieldError::new(format!("limits.{name}"), message)).collect()
}

/// A warm-up begins now unless it names a time.
pub(super) fn warm_up(value: &Value, now: Time) -> Result<Option<WarmUpPlan>, String> {
    let mut value = value.clone();
    if let Value::Object(plan) = &mut value
        && plan.get("from").is_none_or(Value::is_null)
    {
        plan.insert("from".to_owned(), Value::from(now.to_string()));
    }
    let form = "must be like {\"from\":\"2030-01-31T00:00:00Z\",\"per_day\":[50,100,500]}";
    serde_json::from_value(value).map_err(|error| format!("{form}: {error}"))
}

pub(super) fn destinations(value: &Value) -> Result<BTreeMap<String, DestinationLimit>, String> {
    if value.is_null() {
        return Ok(BTreeMap::new());
    }
    let form = "must be like {\"example.com\":{\"connections\":5,\"per_second\":10}}";
    serde_json::from_value(value.clone()).map_err(|error| format!("{form}: {error}"))
}
