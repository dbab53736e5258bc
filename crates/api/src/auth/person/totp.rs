//! Codes of authenticator apps (RFC 6238: SHA-1, six digits, thirty seconds), and recovery codes.
//!
//! A code is accepted in its own time step and the two beside it. The step of the last accepted code is
//! stored with the user, under a version: a code of that step or an earlier one is refused, on every node.
//! A recovery code works once, and is stored as a digest: it is random and long enough for that.

use aws_lc_rs::{constant_time, digest, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use data_encoding::BASE32_NOPAD;
use postway_domain::Time;
use rand::Rng;
use url::form_urlencoded::byte_serialize;

/// The bytes of a secret: as many as a SHA-1 digest has.
const SECRET_BYTES: usize = 20;
const STEP_MS: i64 = 30_000;
/// How many steps a clock may be off, either way.
const STEPS_OFF: i64 = 1;
const DIGITS: usize = 6;
/// How many recovery codes there are.
const RECOVERY_CODES: usize = 10;
const RECOVERY_BYTES: usize = 10;

/// The secret that an authenticator app and the gateway share.
pub(crate) struct TotpSecret([u8; SECRET_BYTES]);

impl TotpSecret {
    /// A new secret.
    pub(crate) fn make(random: &mut impl Rng) -> Self {
        Self(random.random())
    }

    /// From its base32 form.
    pub(crate) fn from_base32(text: &str) -> Option<Self> {
        Some(Self(BASE32_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()?))
    }

    /// The form that people type into an app.
    pub(crate) fn to_base32(&self) -> String {
        BASE32_NOPAD.encode(&self.0)
    }

    /// The form that apps read.
    pub(crate) fn to_url(&self, name: &str) -> String {
        let name: String = byte_serialize(name.as_bytes()).collect();
        format!("otpauth://totp/Postway:{name}?secret={}&issuer=Postway", self.to_base32())
    }

    /// The step whose code this is, if it is valid now and later than `last_step`.
    pub(crate) fn step_of(&self, code: &str, last_step: i64, now: Time) -> Option<i64> {
        let code: String = code.chars().filter(|character| !character.is_whitespace()).collect();
        if code.len() != DIGITS {
            return None;
        }
        let current = now.as_millis() / STEP_MS;
        let is_it = |step: &i64| {
            constant_time::verify_slices_are_equal(self.code(*step).as_bytes(), code.as_bytes()).is_ok()
        };
        (current - STEPS_OFF..=current + STEPS_OFF).filter(|step| *step > last_step).find(is_it)
    }

    /// The code of a step.
    fn code(&self, step: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        let offset = usize::from(tag[tag.len() - 1] & 0x0f);
        let word = [tag[offset] & 0x7f, tag[offset + 1], tag[offset + 2], tag[offset + 3]];
        format!("{:06}", u32::from_be_bytes(word) % 1_000_000)
    }
}

/// New recovery codes: as they are shown once, and the digests to store.
pub(crate) fn make_recovery_codes(random: &mut impl Rng) -> (Vec<String>, Vec<String>) {
    let code = |_| {
        let text = BASE32_NOPAD.encode(&random.random::<[u8; RECOVERY_BYTES]>()).to_lowercase();
        text.as_bytes().chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
    };
    let codes: Vec<String> = (0..RECOVERY_CODES).map(code).collect();
    let digests = codes.iter().map(|code| recovery_digest(code)).collect();
    (codes, digests)
}

/// The digest of a recovery code, however it is spaced.
pub(crate) fn recovery_digest(code: &str) -> String {
    let code: String = code.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, code.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 6238, whose codes have eight digits; ours are their last six.
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = TotpSecret(*b"12345678901234567890");
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let now = Time::from_millis(seconds * 1_000);
            assert_eq!(secret.step_of(code, 0, now), Some(seconds / 30), "{seconds}");
        }
    }

    #[test]
    fn a_code_works_in_its_time_and_once() {
        let secret = TotpSecret::make(&mut rand::rng());
        let at = |step: i64| Time::from_millis(step * STEP_MS + 7);
        let code = secret.code(1_000);
        for (step, works) in [(998, false), (999, true), (1_000, true), (1_001, true), (1_002, false)] {
            assert_eq!(secret.step_of(&code, 0, at(step)).is_some(), works, "at step {step}");
        }
        assert_eq!(secret.step_of(&format!(" {} {} ", &code[..3], &code[3..]), 0, at(1_000)), Some(1_000));
        assert_eq!(secret.step_of(&code, 1_000, at(1_000)), None, "it was used");
        assert_eq!(secret.step_of(&secret.code(999), 1_000, at(1_000)), None, "a later one was used");
        for wrong in ["", "12345", "1234567", "abcdef"] {
            assert_eq!(secret.step_of(wrong, 0, at(1_000)), None, "{wrong}");
        }
        let again = TotpSecret::from_base32(&secret.to_base32()).unwrap();
        assert_eq!(again.step_of(&code, 0, at(1_000)), Some(1_000));
        assert!(secret.to_url("a b@c").contains("Postway:a+b%40c?secret="));
    }

    #[test]
    fn recovery_codes_are_digested_however_they_are_typed() {
        let (codes, digests) = make_recovery_codes(&mut rand::rng());
        assert_eq!((codes.len(), digests.len()), (RECOVERY_CODES, RECOVERY_CODES));
        assert_eq!(codes[0].len(), 19, "{}", codes[0]);
        let typed = codes[0].to_uppercase().replace('-', " ");
        assert_eq!(recovery_digest(&typed), digests[0]);
        assert_ne!(digests[0], digests[1]);
    }
}
