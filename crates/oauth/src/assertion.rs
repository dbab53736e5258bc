//! The assertion of a service account (RFC 7523): a JWT with issuer and subject, signed with RS256.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use postway_domain::Time;
use serde_json::json;

use crate::error::TokenError;

/// The lifetime of an assertion: the longest that Google accepts.
const LIFETIME_S: i64 = 3_600;

/// The claims of an assertion.
pub(crate) struct ServiceAssertion<'a> {
    pub issuer: &'a str,
    pub audience: &'a str,
    pub scope: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub at: Time,
}

impl ServiceAssertion<'_> {
    /// The assertion, signed with a PKCS #8 key in PEM form.
    pub(crate) fn sign(&self, private_key_pem: &str) -> Result<String, TokenError> {
        let unusable = || TokenError::settings("the private key is not an RSA key in PKCS #8 PEM form");
        let key =
            RsaKeyPair::from_pkcs8(&der(private_key_pem).ok_or_else(unusable)?).map_err(|_| unusable())?;
        let issued_at = self.at.as_seconds();
        let mut claims = json!({
            "iss": self.issuer,
            "aud": self.audience,
            "iat": issued_at,
            "exp": issued_at + LIFETIME_S,
        });
        for (name, value) in [("scope", self.scope), ("sub", self.subject)] {
            if let Some(value) = value {
                claims[name] = value.into();
            }
        }
        let header = json!({"alg": "RS256", "typ": "JWT"});
        let encode = |part: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| unusable())?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The bytes of a key between its PEM lines.
fn der(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    BASE64_STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::AsDer,
        rsa::KeySize,
        signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
    };

    use super::*;

    #[test]
    fn an_assertion_says_who_asks_for_whom_and_verifies() {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&key).unwrap();
        let text = BASE64_STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
        let assertion = ServiceAssertion {
            issuer: "robot@project.example",
            audience: "https://oauth2.example/token",
            scope: Some("https://mail.example/"),
            subject: Some("shop@example.com"),
            at: Time::from_millis(1_700_000_000_500),
        };
        let signed = assertion.sign(&pem).unwrap();
        let (head, signature) = signed.rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
        public.verify(head.as_bytes(), &BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let (_, claims) = head.split_once('.').unwrap();
        let claims: serde_json::Value =
            serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        assert_eq!(
            claims,
            json!({"iss": "robot@project.example", "aud": "https://oauth2.example/token",
                   "iat": 1_700_000_000, "exp": 1_700_003_600, "scope": "https://mail.example/",
                   "sub": "shop@example.com"})
        );
        for bad in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"] {
            assert!(!assertion.sign(bad).unwrap_err().is_transient());
        }
    }
}
