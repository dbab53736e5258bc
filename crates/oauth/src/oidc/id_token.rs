//! Checking an ID token: signature and claims (OpenID Connect Core 3.1.3.7).
//!
//! The algorithm is one for public keys, and it must fit the key: `none`, and HMAC with a public key as its
//! secret, never come that far. Times are compared with the caller's clock.

use aws_lc_rs::constant_time;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, jwk::Jwk};
use postway_domain::Time;
use serde_json::{Map, Value};

use super::OidcError;

/// How far the provider's clock may be off.
pub(super) const LEEWAY_S: i64 = 60;
/// The longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;
/// The algorithms for public keys.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

pub(super) fn refuse<T>(why: impl Into<String>) -> Result<T, OidcError> {
    Err(OidcError::Token(why.into()))
}

/// The header of a token, if its algorithm is one that is accepted.
pub(super) fn header_of(token: &str) -> Result<Header, OidcError> {
    if token.len() > TOKEN_BYTES_MAX {
        return refuse("it is too long");
    }
    let Ok(header) = jsonwebtoken::decode_header(token) else { return refuse("it cannot be read") };
    match ALGORITHMS.contains(&header.alg) {
        true => Ok(header),
        false => refuse("its algorithm is none for public keys"),
    }
}

/// The claims of a token that this key has signed.
pub(super) fn verify(token: &str, header: &Header, key: &Jwk) -> Result<Map<String, Value>, OidcError> {
    let is_for =
        key.common.key_algorithm.as_ref().is_none_or(|of| format!("{of:?}") == format!("{:?}", header.alg));
    if !is_for {
        return refuse("its algorithm is not that of its key");
    }
    let Ok(key) = DecodingKey::from_jwk(key) else { return refuse("its key cannot be used") };
    let mut validation = Validation::new(header.alg);
    // Issuer, audience and times are checked below, by the caller's clock.
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
    match jsonwebtoken::decode::<Map<String, Value>>(token, &key, &validation) {
        Ok(token) => Ok(token.claims),
        Err(_) => refuse("its signature is not good"),
    }
}

/// Refuses claims of another issuer, or for another client.
pub(super) fn check_parties<'c>(
    claims: &'c Map<String, Value>,
    issuer: &str,
    audience: &str,
) -> Result<Vec<&'c str>, OidcError> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer) {
        return refuse("it is of another issuer");
    }
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match audiences.contains(&audience) {
        true => Ok(audiences),
        false => refuse("it is for another client"),
    }
}

/// What the claims of a token must say.
pub(super) struct ExpectedToken<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: Time,
}

impl ExpectedToken<'_> {
    /// Refuses claims of another issuer, for another client, of another time, or of another sign-in.
    pub(super) fn check(&self, claims: &Map<String, Value>) -> Result<(), OidcError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let seconds = |name: &str| claims.get(name).and_then(Value::as_f64).map(|seconds| seconds as i64);
        let audiences = check_parties(claims, self.issuer, self.audience)?;
        let party = text("azp");
        if party.is_some_and(|party| party != self.audience) || (audiences.len() > 1 && party.is_none()) {
            return refuse("it was given to another client");
        }
        let now = self.now.as_millis() / 1_000;
        if seconds("exp").is_none_or(|exp| now >= exp.saturating_add(LEEWAY_S)) {
            return refuse("it has expired");
        }
        if seconds("iat").is_none_or(|iat| iat > now + LEEWAY_S)
            || seconds("nbf").is_some_and(|nbf| nbf > now + LEEWAY_S)
        {
            return refuse("it is of a later time: compare the clocks");
        }
        let nonce = text("nonce").unwrap_or_default();
        if constant_time::verify_slices_are_equal(nonce.as_bytes(), self.nonce.as_bytes()).is_err() {
            return refuse("it is of another sign-in");
        }
        if text("sub").is_none_or(str::is_empty) {
            return refuse("it names nobody");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use serde_json::json;

    use super::*;

    fn claims(change: Value) -> Map<String, Value> {
        let mut claims = json!({
            "iss": "https://id.example", "aud": "postway", "sub": "1", "nonce": "n", "iat": 1_000, "exp": 2_000,
        });
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object().unwrap().clone()
    }

    fn check(change: Value, now_s: i64) -> Result<(), OidcError> {
        let now = Time::from_millis(now_s * 1_000);
        let expected = ExpectedToken { issuer: "https://id.example", audience: "postway", nonce: "n", now };
        expected.check(&claims(change))
    }

    #[test]
    fn a_token_for_another_client_issuer_time_or_sign_in_is_refused() {
        for good in
            [json!({}), json!({"aud": ["postway"]}), json!({"aud": ["x", "postway"], "azp": "postway"})]
        {
            assert!(check(good.clone(), 1_500).is_ok(), "{good}");
        }
        for bad in [
            json!({"iss": "https://id.example/"}),
            json!({"iss": null}),
            json!({"aud": "other"}),
            json!({"aud": []}),
            json!({"aud": ["postway", "other"]}),
            json!({"aud": ["postway", "other"], "azp": "other"}),
            json!({"azp": "other"}),
            json!({"exp": null}),
            json!({"exp": "2000"}),
            json!({"iat": null}),
            json!({"iat": 1_600}),
            json!({"nbf": 1_600}),
            json!({"nonce": "m"}),
            json!({"nonce": null}),
            json!({"sub": ""}),
            json!({"sub": null}),
        ] {
            assert!(check(bad.clone(), 1_500).is_err(), "{bad}");
        }
        assert!(check(json!({}), 2_059).is_ok() && check(json!({}), 2_060).is_err(), "it expires");
    }

    #[test]
    fn none_and_hmac_are_no_algorithms() {
        let token = |alg: &str| {
            let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
            format!("{}.{}.AAAA", encode(json!({"alg": alg})), encode(json!({})))
        };
        for alg in ["none", "None", "HS256", "HS384", "HS512", "XX"] {
            assert!(header_of(&token(alg)).is_err(), "{alg}");
        }
        assert!(header_of(&token("RS256")).is_ok());
        for unreadable in ["", "a", "a.b", "a.b.c", &"x".repeat(TOKEN_BYTES_MAX + 1)] {
            assert!(header_of(unreadable).is_err());
        }
    }
}
