//! What a provider says, changed in any way: nobody is signed in by a token that was not made for this sign-in
//! and signed with a key that the provider publishes.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::JwkSet;
use postway_domain::Time;
use postway_fuzz::{feed, try_seeds};
use rand::{Rng, rngs::StdRng};
use serde_json::{Map, Value, json};

use super::{
    CodeAnswer, OidcError,
    discovery::{ProviderDocument, checked, choose},
    id_token::{ExpectedToken, header_of, verify},
};

const NOW_S: i64 = 1_800_000_000;
const ISSUER: &str = "https://id.example";

/// What the sign-in makes of a token, with these keys.
fn sign_in(token: &str, keys: &JwkSet) -> Result<Map<String, Value>, OidcError> {
    let header = header_of(token)?;
    let key = choose(keys, &header).ok_or_else(|| OidcError::Token("no key".to_owned()))?;
    let claims = verify(token, &header, key)?;
    let now = Time::from_millis(NOW_S * 1_000);
    ExpectedToken { issuer: ISSUER, audience: "postway", nonce: "n", now }.check(&claims)?;
    Ok(claims)
}

fn genuine_claims() -> Value {
    json!({"iss": ISSUER, "aud": "postway", "sub": "1", "nonce": "n", "iat": NOW_S, "exp": NOW_S + 60})
}

/// Something else in place of one claim, or of none.
fn change(random: &mut StdRng, claims: &mut Value) {
    let names = ["iss", "aud", "sub", "nonce", "iat", "exp", "nbf", "azp", "email"];
    let name = names[random.random_range(0..names.len())];
    claims[name] = match random.random_range(0..12) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!(ISSUER.to_uppercase()),
        3 => json!(format!("{ISSUER}/")),
        4 => json!(["postway"]),
        5 => json!(["other", "postway"]),
        6 => json!("postway"),
        7 => json!(random.random::<i64>()),
        8 => json!(random.random_range(-1e300..1e300)),
        9 => json!(NOW_S + random.random_range(-120..120)),
        10 => json!([["postway"], {"postway": 1}]),
        _ => json!("n\u{0}"),
    };
}

/// Whether claims are those of this sign-in, asked in another way than the code does.
fn are_ours(claims: &Value) -> bool {
    let lists_us = claims["aud"] == "postway"
        || claims["aud"].as_array().is_some_and(|all| all.contains(&json!("postway")));
    let is_number_up_to = |name: &str, max: f64| claims[name].as_f64().is_some_and(|at| at <= max);
    claims["iss"] == ISSUER
        && lists_us
        && claims["nonce"] == "n"
        && claims["sub"].as_str().is_some_and(|sub| !sub.is_empty())
        && claims["exp"].as_f64().is_some_and(|at| at > (NOW_S - 61) as f64)
        && is_number_up_to("iat", (NOW_S + 61) as f64)
}

#[test]
fn no_token_but_one_for_this_sign_in_opens() {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let ours = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let theirs = Ed25519KeyPair::generate().unwrap();
    let public = BASE64_URL_SAFE_NO_PAD.encode(ours.public_key().as_ref());
    let keys = json!({"keys": [
        {"kty": "OKP", "crv": "Ed25519", "x": public, "kid": "1", "use": "sig", "alg": "EdDSA"},
        {"kty": "oct", "k": public, "kid": "2"},
    ]});
    let keys: JwkSet = serde_json::from_value(keys).unwrap();
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let opened = std::cell::Cell::new(0);
    let tried = try_seeds(|random| {
        let mut claims = genuine_claims();
        for _ in 0..random.random_range(0..3) {
            change(random, &mut claims);
        }
        let algorithms = ["EdDSA", "EdDSA", "EdDSA", "EdDSA", "none", "HS256", "RS256", "ES256"];
        let algorithm = algorithms[random.random_range(0..algorithms.len())];
        let kid =
            [json!("1"), json!("1"), json!("2"), json!("3"), Value::Null][random.random_range(0..5)].clone();
        let mut header = json!({"alg": algorithm, "typ": "JWT"});
        if !kid.is_null() {
            header["kid"] = kid;
        }
        let text = format!("{}.{}", encode(&header), encode(&claims));
        let is_ours = random.random_bool(0.8);
        let signature = if is_ours { ours.sign(text.as_bytes()) } else { theirs.sign(text.as_bytes()) };
        let genuine = format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref()));
        let mut token = genuine.clone().into_bytes();
        if random.random_bool(0.2) {
            let at = random.random_range(0..token.len());
            token[at] = b"Ax._-="[random.random_range(0..6)];
        }
        let token = String::from_utf8(token).unwrap();
        if let Ok(found) = sign_in(&token, &keys) {
            assert!(is_ours && algorithm == "EdDSA" && token == genuine, "{token}");
            let found = Value::Object(found);
            assert!(are_ours(&found), "{found}");
            opened.set(opened.get() + 1);
        }
    });
    assert!(tried < 200 || opened.get() > 0, "no token opened: the test makes the wrong ones");
}

#[test]
fn whatever_a_provider_answers_is_read_or_refused() {
    let seeds: &[&[u8]] = &[
        br#"{"issuer":"https://id.example","authorization_endpoint":"https://id.example/a","token_endpoint":"https://id.example/t","jwks_uri":"https://id.example/k"}"#,
        br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA","kid":"b"},{"kty":"RSA","n":"AQAB","e":"AQAB","alg":"RS256"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}"#,
        br#"{"id_token":"a.b.c","access_token":"x","error":"invalid_grant","error_description":"no"}"#,
        b"eyJhbGciOiJFZERTQSIsImtpZCI6ImIifQ.e30.AAAA",
    ];
    let words: &[&[u8]] = &[
        b"{",
        b"}",
        b"[[[[[[[[",
        b"\"kty\":\"oct\",\"k\":\"AA\",",
        b"\"alg\":\"none\"",
        b"\"crit\":[\"x\"],",
        b"\\u0000",
        b"http://",
        b".",
        b"null",
        b"\xff",
        b"=",
        b"1e999",
    ];
    feed(seeds, words, |said| {
        let text = String::from_utf8_lossy(said);
        if let Ok(document) = serde_json::from_slice::<ProviderDocument>(said) {
            let url = checked(&document.token_endpoint, ISSUER);
            assert!(url.is_err() || url.is_ok_and(|url| url.scheme() == "https"));
        }
        drop(serde_json::from_slice::<CodeAnswer>(said));
        let header = header_of(&text);
        if let (Ok(keys), Ok(header)) = (serde_json::from_slice::<JwkSet>(said), header_of(UNSIGNED)) {
            for key in &keys.keys {
                assert!(verify(UNSIGNED, &header, key).is_err(), "{text}");
            }
        }
        drop(header);
    });
}

/// A token that nobody signed.
const UNSIGNED: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6ImIifQ.e30.AAAA";
