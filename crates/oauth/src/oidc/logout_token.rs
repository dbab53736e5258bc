//! Logout tokens: by these a provider says that somebody's sessions are over (OpenID Connect Back-Channel Logout
//! 1.0, 2.4 and 2.6).
//!
//! They are signed as ID tokens are. What tells them apart is the event that they name, and that they have no
//! nonce: an ID token is no logout token, and the other way round. One that is used again does no harm, and is
//! good for some minutes only. A token that names a session of the provider and no person is refused, because
//! those sessions are not known here.

use postway_domain::Time;
use serde_json::{Map, Value};

use super::{
    OidcError,
    id_token::{LEEWAY_S, check_parties, refuse},
};

/// The event that makes a token a logout token.
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// How old a token may be.
const AGE_S_MAX: i64 = 300;

/// What the claims of a token must say.
pub(super) struct ExpectedLogout<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    pub(super) now: Time,
}

impl ExpectedLogout<'_> {
    /// The subject whose sessions are over.
    pub(super) fn check(&self, claims: &Map<String, Value>) -> Result<String, OidcError> {
        check_parties(claims, self.issuer, self.audience)?;
        let seconds = |name: &str| claims.get(name).and_then(Value::as_f64).map(|seconds| seconds as i64);
        let now = self.now.as_millis() / 1_000;
        if seconds("iat")
            .is_none_or(|iat| iat > now + LEEWAY_S || now > iat.saturating_add(AGE_S_MAX + LEEWAY_S))
            || seconds("exp").is_some_and(|exp| now >= exp.saturating_add(LEEWAY_S))
        {
            return refuse("it is of another time: compare the clocks");
        }
        if !claims.get("events").is_some_and(|events| events.get(EVENT).is_some_and(Value::is_object)) {
            return refuse("it is no logout token");
        }
        if claims.contains_key("nonce") {
            return refuse("it has a nonce, which logout tokens have not");
        }
        match claims.get("sub").and_then(Value::as_str).filter(|subject| !subject.is_empty()) {
            Some(subject) => Ok(subject.to_owned()),
            None => refuse("it names nobody: let the provider send `sub`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_fresh_logout_token_for_this_client_names_somebody() {
        let check = |change: Value| {
            let mut claims = json!({
                "iss": "https://id.example", "aud": "postway", "sub": "1", "jti": "7", "iat": 1_000, "exp": 1_120,
                "events": {EVENT: {}},
            });
            for (name, value) in change.as_object().unwrap() {
                match value {
                    Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                    value => claims[name] = value.clone(),
                }
            }
            let now = Time::from_millis(1_100_000);
            let expected = ExpectedLogout { issuer: "https://id.example", audience: "postway", now };
            expected.check(claims.as_object().unwrap()).ok()
        };
        for good in [json!({}), json!({"exp": null}), json!({"aud": ["x", "postway"]}), json!({"sid": "s"})] {
            assert_eq!(check(good.clone()).as_deref(), Some("1"), "{good}");
        }
        for bad in [
            json!({"iss": "https://other.example"}),
            json!({"aud": "other"}),
            json!({"aud": null}),
            json!({"iat": null}),
            json!({"iat": 1_200}),
            json!({"iat": 700, "exp": null}),
            json!({"exp": 1_000}),
            json!({"events": null}),
            json!({"events": {}}),
            json!({"events": {EVENT: "x"}}),
            json!({"nonce": "n"}),
            json!({"sub": null, "sid": "s"}),
            json!({"sub": ""}),
        ] {
            assert_eq!(check(bad.clone()), None, "{bad}");
        }
    }
}
