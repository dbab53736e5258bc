//! Whether a call that claims to be a webhook's was made by the gateway, as Standard Webhooks has it.

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

/// How old a call may be, and how far ahead of this clock.
const TOLERANCE_S: u64 = 300;

/// A call as it came: its three headers, and its body before anything parsed it.
#[derive(Clone, Copy, Debug)]
pub struct SignedCall<'a> {
    /// The header `webhook-id`. A call that is repeated has the same.
    pub id: &'a str,
    /// The header `webhook-timestamp`.
    pub timestamp: &'a str,
    /// The header `webhook-signature`.
    pub signature: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// A call that is not proven to come from the gateway. Answer it with 401, and do not read it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ForgedCall {
    /// The secret is not `whsec_` and base64.
    #[error("the webhook's secret is not `whsec_` and base64")]
    UnusableSecret,
    /// Its time is missing, too long ago, or in the future.
    #[error("the call is too old, or its time is in the future")]
    WrongTime,
    /// No signature is of one of these secrets.
    #[error("the signature is not of this secret")]
    WrongSignature,
}

/// Whether the call is signed with one of these secrets, and recent. `unix_time` is now, in seconds.
pub fn verify_webhook(secrets: &[&str], call: SignedCall<'_>, unix_time: u64) -> Result<(), ForgedCall> {
    let stamp: u64 = call.timestamp.parse().map_err(|_| ForgedCall::WrongTime)?;
    // `parse` takes a sign, which is no part of what was signed.
    if call.timestamp.starts_with('+') || unix_time.abs_diff(stamp) > TOLERANCE_S {
        return Err(ForgedCall::WrongTime);
    }
    let signed = [format!("{}.{}.", call.id, call.timestamp).as_bytes(), call.body].concat();
    let signatures: Vec<Vec<u8>> = (call.signature.split(' '))
        .filter_map(|one| one.strip_prefix("v1,"))
        .filter_map(|one| BASE64_STANDARD.decode(one).ok())
        .collect();
    for secret in secrets {
        let key = secret.strip_prefix("whsec_").unwrap_or(secret);
        let key = BASE64_STANDARD.decode(key).ok().filter(|key| !key.is_empty());
        // An empty key would make a signature that anybody can make.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key.ok_or(ForgedCall::UnusableSecret)?);
        if signatures.iter().any(|one| hmac::verify(&key, &signed, one).is_ok()) {
            return Ok(());
        }
    }
    Err(ForgedCall::WrongSignature)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_YSBzZWNyZXQgb2Ygc29tZSBsZW5ndGg=";
    const OTHER: &str = "whsec_YW5vdGhlcg==";
    const NOW: u64 = 1_900_000_000;

    fn signature(id: &str, timestamp: &str, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"a secret of some length");
        let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        format!("v1,bm90IG91cnM= v1,{}", BASE64_STANDARD.encode(hmac::sign(&key, &signed)))
    }

    #[test]
    fn what_is_signed_and_recent_is_believed_and_nothing_else() {
        let signature = signature("id-1", "1900000000", b"{}");
        let call = SignedCall { id: "id-1", timestamp: "1900000000", signature: &signature, body: b"{}" };
        assert_eq!(verify_webhook(&[SECRET], call, NOW + 300), Ok(()));
        assert_eq!(verify_webhook(&[OTHER, SECRET], call, NOW), Ok(()));
        assert_eq!(verify_webhook(&[OTHER], call, NOW), Err(ForgedCall::WrongSignature));
        assert_eq!(verify_webhook(&[SECRET], call, NOW + 301), Err(ForgedCall::WrongTime));
        assert_eq!(verify_webhook(&[SECRET], call, NOW - 301), Err(ForgedCall::WrongTime));
        assert_eq!(verify_webhook(&["whsec_"], call, NOW), Err(ForgedCall::UnusableSecret));
        let forged = [
            SignedCall { body: b"{ }", ..call },
            SignedCall { id: "id-2", ..call },
            SignedCall { timestamp: "1900000001", ..call },
            SignedCall { signature: "v1,", ..call },
            SignedCall { signature: "", ..call },
        ];
        for call in forged {
            assert_eq!(verify_webhook(&[SECRET], call, NOW), Err(ForgedCall::WrongSignature), "{call:?}");
        }
        for timestamp in ["", "+1900000000", "-1900000000", "now"] {
            let call = SignedCall { timestamp, ..call };
            assert_eq!(verify_webhook(&[SECRET], call, NOW), Err(ForgedCall::WrongTime), "{timestamp}");
        }
    }
}
