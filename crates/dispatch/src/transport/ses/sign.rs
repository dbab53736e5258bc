//! AWS Signature Version 4, as far as SES needs it: fixed paths, no query, the complete payload hashed.
//!
//! It is our own because it is one page of HMAC on the crypto library that is here already; AWS's crate
//! brings a second library and a runtime. The tests compare it with signatures that botocore made.

use std::fmt::Write as _;

use aws_lc_rs::{digest, hmac};
use postway_domain::Time;
use secrecy::ExposeSecret;

use super::credentials::AwsAccessKey;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "ses";

/// The signed parts of a request.
pub(super) struct SignableRequest<'a> {
    pub method: &'a str,
    /// The `Host` header: with the port, unless it is the default of the scheme.
    pub host: &'a str,
    pub path: &'a str,
    pub content_type: Option<&'a str>,
    /// The SHA-256 of the payload, in hex.
    pub payload_sha256: &'a str,
}

impl SignableRequest<'_> {
    /// The headers that prove the identity of the caller, in lower case. Valid for five minutes around `at`.
    pub fn headers(&self, region: &str, key: &AwsAccessKey, at: Time) -> Vec<(&'static str, String)> {
        let stamp = stamp(at);
        let day = &stamp[..8];
        let scope = format!("{day}/{region}/{SERVICE}/aws4_request");

        // Sorted by name, as the signature demands.
        let token = key.session_token.as_ref().map(|token| token.expose_secret());
        let headers = [
            ("content-type", self.content_type),
            ("host", Some(self.host)),
            ("x-amz-date", Some(stamp.as_str())),
            ("x-amz-security-token", token),
        ];
        let present = || headers.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        let names = present().map(|(name, _)| name).collect::<Vec<_>>().join(";");

        let mut request = format!("{}\n{}\n\n", self.method, self.path);
        for (name, value) in present() {
            request.extend([name, ":", value.trim(), "\n"]);
        }
        request.extend(["\n", &names, "\n", self.payload_sha256]);
        let to_sign = format!("{ALGORITHM}\n{stamp}\n{scope}\n{}", sha256_hex(request.as_bytes()));

        let secret = format!("AWS4{}", key.secret_access_key.expose_secret());
        let signing = [day, region, SERVICE, "aws4_request"]
            .into_iter()
            .fold(hmac_key(secret.as_bytes()), |key, part| {
                hmac_key(hmac::sign(&key, part.as_bytes()).as_ref())
            });
        let signature = hex(hmac::sign(&signing, to_sign.as_bytes()).as_ref());
        let id = &key.access_key_id;
        let authorization =
            format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");

        let mut proof = vec![("x-amz-date", stamp.clone()), ("authorization", authorization)];
        proof.extend(token.map(|token| ("x-amz-security-token", token.to_owned())));
        proof
    }
}

/// The SHA-256 of a payload, in hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac_key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `20260301T123045Z`: ISO 8601's basic form, in seconds.
fn stamp(at: Time) -> String {
    let extended = Time::from_millis(at.as_seconds() * 1000).to_string();
    let seconds = extended.split('.').next().unwrap_or(&extended);
    let mut stamp: String = seconds.chars().filter(|c| !matches!(c, '-' | ':' | 'Z')).collect();
    stamp.push('Z');
    stamp
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(signed: &SignableRequest<'_>, token: Option<&str>) -> Vec<(&'static str, String)> {
        let key = AwsAccessKey {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned().into(),
            session_token: token.map(|token| token.to_owned().into()),
        };
        signed.headers("eu-west-1", &key, "2026-03-01T12:30:45.678Z".parse().unwrap())
    }

    fn authorization(names: &str, signature: &str) -> (&'static str, String) {
        let scope = "AKIDEXAMPLE/20260301/eu-west-1/ses/aws4_request";
        let value = format!("{ALGORITHM} Credential={scope}, SignedHeaders={names}, Signature={signature}");
        ("authorization", value)
    }

    #[test]
    fn signatures_are_those_that_botocore_makes() {
        let date = ("x-amz-date", "20260301T123045Z".to_owned());
        let payload = sha256_hex(br#"{"a":1}"#);
        let send = SignableRequest {
            method: "POST",
            host: "email.eu-west-1.amazonaws.com",
            path: "/v2/email/outbound-emails",
            content_type: Some("application/json"),
            payload_sha256: &payload,
        };
        let expected = authorization(
            "content-type;host;x-amz-date",
            "a33c2d0e501439ed338defb824393edf9e27f28c0941cd9446a8fcd2940ffd28",
        );
        assert_eq!(signed(&send, None), [date.clone(), expected]);

        let elsewhere = SignableRequest { host: "127.0.0.1:5000", ..send };
        let expected = authorization(
            "content-type;host;x-amz-date;x-amz-security-token",
            "ea27f6eb2b538958f56542a3864700e4b09d96ead4483d35d181dcb12e1f9c13",
        );
        let token = ("x-amz-security-token", "the/token==".to_owned());
        assert_eq!(signed(&elsewhere, Some("the/token==")), [date.clone(), expected, token]);

        let account = SignableRequest {
            method: "GET",
            host: "email.eu-west-1.amazonaws.com",
            path: "/v2/email/account",
            content_type: None,
            payload_sha256: &sha256_hex(b""),
        };
        let expected = authorization(
            "host;x-amz-date",
            "6e298d582b2b17e6a08a6937dfb49c7d2f69b6564fb474b3d32bd3f5d6b95304",
        );
        assert_eq!(signed(&account, None), [date, expected]);
    }
}
