//! Reads the response of a token endpoint, whatever it is: a token, a refusal, an HTML page, or nonsense.

use std::time::Duration;

use postway_domain::Time;
use postway_net::http::HttpAnswer;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{TokenError, TokenErrorKind, shorten_text},
    request::ANSWER_BYTES_MAX,
    token::AccessToken,
};

/// The longest token, in bytes. Those of large providers have several thousand.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// An access token, and the refresh token that came with it.
pub(crate) struct GrantedToken {
    pub token: AccessToken,
    pub refresh_token: Option<String>,
}

/// The relevant fields of a JSON response.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenAnswerFields {
    error: Option<Value>,
    error_description: Option<Value>,
    access_token: Option<String>,
    token_type: Option<Value>,
    /// A number, or a text on some servers.
    expires_in: Option<Value>,
    refresh_token: Option<String>,
}

/// Reads the response of a token endpoint.
pub(crate) fn read_answer(host: &str, answer: &HttpAnswer, now: Time) -> Result<GrantedToken, TokenError> {
    let later = answer.retry_after();
    let refuse = |kind, message: String| Err(TokenError::new(kind, message).after(later));
    let unusable = |what: &str| {
        let message = format!("{host} answered with status {} and {what}", answer.status);
        match answer.is_transient() {
            true => refuse(TokenErrorKind::Unavailable, message),
            false => refuse(TokenErrorKind::Settings, format!("{message}; check the token_url")),
        }
    };
    if answer.is_cut {
        let what = format!("more than {ANSWER_BYTES_MAX} bytes, or an answer that broke off");
        // An incomplete response may be complete the next time.
        let message = format!("{host} answered with status {} and {what}", answer.status);
        return refuse(TokenErrorKind::Unavailable, message);
    }
    let Ok(fields) = serde_json::from_slice::<TokenAnswerFields>(&answer.body) else {
        return unusable("something that is no JSON answer of an OAuth server");
    };
    if let Some(error) = fields.error.as_ref().map(text) {
        let description = fields.error_description.as_ref().map(text).unwrap_or_default();
        let said = shorten_text(format!("{error}: {description}").trim_end_matches([':', ' ']));
        let passes = matches!(error.as_str(), "temporarily_unavailable" | "server_error" | "slow_down");
        let kind = match passes || answer.is_transient() {
            true => TokenErrorKind::Unavailable,
            false => TokenErrorKind::Refused,
        };
        return refuse(kind, format!("{host} gives no token: {said}"));
    }
    if !answer.is_success() {
        return unusable("no reason");
    }
    let Some(token) = fields.access_token else { return unusable("no access_token") };
    let is_bearer =
        fields.token_type.as_ref().map(text).is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer {
        return unusable("a token that is no bearer token");
    }
    // The token is written into commands, so it must not contain a line break or a space.
    let is_token = |text: &str| {
        (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !is_token(&token) || fields.refresh_token.as_deref().is_some_and(|token| !is_token(token)) {
        return unusable("a token that cannot be used");
    }
    let lifetime = fields.expires_in.as_ref().and_then(seconds).map(Duration::from_secs);
    Ok(GrantedToken {
        token: AccessToken::new(token, now, lifetime),
        refresh_token: fields.refresh_token.filter(|token| !token.is_empty()),
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64().or_else(|| value.as_f64().filter(|s| *s >= 0.0).map(|s| s as u64)),
    }
}
