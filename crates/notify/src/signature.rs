//! Signatures of webhooks, as defined by the Standard Webhooks specification.
//!
//! The signed text is `{id}.{timestamp}.{body}`, with HMAC-SHA256. Each secret gives one `v1` signature, so
//! that a receiver can change from one secret to the next while both are in use.

use std::fmt;

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

/// The prefix of a secret.
const PREFIX: &str = "whsec_";

/// A secret that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret must be whsec_ and padded base64: rotate the webhook's secret")]
pub struct UnreadableSecret;

/// A secret that signs a webhook's calls. Never printed.
#[derive(Clone)]
pub struct WebhookSecret(hmac::Key);

impl WebhookSecret {
    /// Parses the text of a secret.
    pub fn parse(text: &str) -> Result<Self, UnreadableSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(UnreadableSecret)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| UnreadableSecret)?;
        match bytes.is_empty() {
            true => Err(UnreadableSecret),
            false => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes))),
        }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(***)")
    }
}

/// The value of `webhook-signature`: one signature for each secret.
pub fn signatures(secrets: &[WebhookSecret], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    let head = format!("{id}.{timestamp_s}.");
    let sign = |WebhookSecret(key): &WebhookSecret| {
        let mut signing = hmac::Context::with_key(key);
        signing.update(head.as_bytes());
        signing.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(signing.sign()))
    };
    secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_known_vector_of_the_specification_is_met() {
        let secret = WebhookSecret::parse(KNOWN).unwrap();
        let signed =
            signatures(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_secrets_rotate_each_of_them_signs() {
        let other = WebhookSecret::parse("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
        let known = WebhookSecret::parse(KNOWN).unwrap();
        let both = signatures(&[other.clone(), known.clone()], "a", 1, b"x");
        let alone = [signatures(&[other], "a", 1, b"x"), signatures(&[known], "a", 1, b"x")];
        assert_eq!(both, alone.join(" "));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!", "whsec_MfKQ9"] {
            assert_eq!(WebhookSecret::parse(text).err(), Some(UnreadableSecret), "{text}");
        }
    }
}
