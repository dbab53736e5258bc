//! What proves a call of each provider but SES: SendGrid's ECDSA, Mailgun's HMAC, Postmark's basic
//! authentication, and Standard Webhooks, which Resend and the generic form use.
//!
//! A signature is accepted for a time only. Providers repeat a call that was not answered for hours or days,
//! and some sign it once; an event that came before is recognised for longer than any of these times.

use aws_lc_rs::{constant_time, hmac, signature};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::Time;
use serde::Deserialize;

use super::{HookCall, HookRefusal, split};

/// How old a signature of SendGrid may be: it repeats calls for a day.
const SENDGRID_S_MAX: i64 = 2 * 86_400;
/// How old a signature of Mailgun may be: it repeats calls for eight hours.
const MAILGUN_S_MAX: i64 = 12 * 3_600;
/// How old a signature of Standard Webhooks may be: each try is signed anew.
const STANDARD_S_MAX: i64 = 5 * 60;
/// How far ahead of ours the provider's clock may be.
const AHEAD_S_MAX: i64 = 5 * 60;
/// The prefix of a secret of Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

const WRONG: HookRefusal =
    HookRefusal::Forged("the signature is wrong: check the hook's key at the provider");
const OLD: HookRefusal =
    HookRefusal::Forged("the signature is too old, or of the future: check the clocks of both sides");

/// Refuses a time that is too long ago or ahead.
pub(super) fn check_age(at_s: i64, seconds_max: i64, now: Time) -> Result<(), HookRefusal> {
    let now_s = now.as_seconds();
    let is_recent = at_s >= now_s.saturating_sub(seconds_max) && at_s <= now_s.saturating_add(AHEAD_S_MAX);
    if is_recent { Ok(()) } else { Err(OLD) }
}

fn seconds(text: &str) -> Result<i64, HookRefusal> {
    text.trim().parse().map_err(|_| HookRefusal::Forged("the time of the signature is not a number"))
}

/// SendGrid: ECDSA with P-256 and SHA-256 over timestamp and body.
pub(super) fn check_sendgrid(
    public_key: Option<&str>,
    call: &HookCall<'_>,
    now: Time,
) -> Result<(), HookRefusal> {
    let signed =
        BASE64_STANDARD.decode(call.need("x-twilio-email-event-webhook-signature")?).map_err(|_| WRONG)?;
    let timestamp = call.need("x-twilio-email-event-webhook-timestamp")?;
    let key = BASE64_STANDARD.decode(public_key.unwrap_or_default()).map_err(|_| WRONG)?;
    let key = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, key);
    let text = [timestamp.as_bytes(), call.body].concat();
    key.verify(&text, &signed).map_err(|_| WRONG)?;
    check_age(seconds(&timestamp)?, SENDGRID_S_MAX, now)
}

/// Whether a text is a verification key of SendGrid.
pub fn is_sendgrid_key(text: &str) -> bool {
    let Ok(der) = BASE64_STANDARD.decode(text) else { return false };
    signature::ParsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, der).is_ok()
}

/// The proof in a call of Mailgun.
#[derive(Deserialize)]
struct SignedMailgunCall {
    signature: MailgunSignature,
}

#[derive(Deserialize)]
struct MailgunSignature {
    timestamp: String,
    token: String,
    signature: String,
}

/// Mailgun: HMAC-SHA256 over timestamp and token. It does not cover the body, so the token counts once.
pub(super) fn check_mailgun(key: &str, body: &[u8], now: Time) -> Result<String, HookRefusal> {
    let SignedMailgunCall { signature: MailgunSignature { timestamp, token, signature } } =
        split::read(body)?;
    let expected = hmac::sign(&hmac_key(key.as_bytes())?, format!("{timestamp}{token}").as_bytes());
    let hex: String = expected.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    same(&hex, &signature.to_ascii_lowercase())?;
    check_age(seconds(&timestamp)?, MAILGUN_S_MAX, now)?;
    Ok(token)
}

/// Postmark: the user name and the password of the hook.
pub(super) fn check_basic(
    username: Option<&str>,
    password: &str,
    call: &HookCall<'_>,
) -> Result<(), HookRefusal> {
    let given = call.need("authorization")?;
    let expected = BASE64_STANDARD.encode(format!("{}:{password}", username.unwrap_or_default()));
    let given =
        given.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case("basic ")).map(|_| given[6..].trim());
    if password.is_empty() {
        return Err(WRONG);
    }
    same(&expected, given.unwrap_or_default())
}

/// Standard Webhooks: HMAC-SHA256 over id, timestamp and body. Returns the id.
pub(super) fn check_standard(secret: &str, call: &HookCall<'_>, now: Time) -> Result<String, HookRefusal> {
    let either = |name: &str| {
        (call.header)(&format!("svix-{name}")).or_else(|| (call.header)(&format!("webhook-{name}")))
    };
    let need = |name: &str| {
        either(name).ok_or(HookRefusal::Forged("the signature is missing: have the provider sign its calls"))
    };
    let (id, timestamp, signed) = (need("id")?, need("timestamp")?, need("signature")?);
    let key =
        BASE64_STANDARD.decode(secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret)).map_err(|_| WRONG)?;
    let mut signing = hmac::Context::with_key(&hmac_key(&key)?);
    signing.update(format!("{id}.{timestamp}.").as_bytes());
    signing.update(call.body);
    let expected = format!("v1,{}", BASE64_STANDARD.encode(signing.sign()));
    // Several while the provider changes its secret.
    if !signed.split_whitespace().any(|one| same(&expected, one).is_ok()) {
        return Err(WRONG);
    }
    check_age(seconds(&timestamp)?, STANDARD_S_MAX, now)?;
    Ok(id)
}

/// Whether a text is a secret of Standard Webhooks.
pub fn is_standard_secret(text: &str) -> bool {
    let encoded = text.strip_prefix(SECRET_PREFIX);
    encoded.is_some_and(|encoded| BASE64_STANDARD.decode(encoded).is_ok_and(|key| key.len() >= 16))
}

fn hmac_key(key: &[u8]) -> Result<hmac::Key, HookRefusal> {
    if key.is_empty() { Err(WRONG) } else { Ok(hmac::Key::new(hmac::HMAC_SHA256, key)) }
}

/// Compares in constant time.
fn same(expected: &str, given: &str) -> Result<(), HookRefusal> {
    constant_time::verify_slices_are_equal(expected.as_bytes(), given.as_bytes()).map_err(|_| WRONG)
}

#[cfg(test)]
mod tests;
