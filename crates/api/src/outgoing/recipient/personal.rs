//! Personal numbers: encrypted for storage, digested for lookup, masked for display.
//!
//! A number has so little variety that a plain digest could be reversed by guessing. So the digest is keyed,
//! with a key for each tenant that is derived from the gateway's secret key. While a previous secret key is
//! configured, numbers stored under it are found as well.

use aws_lc_rs::hmac;
use postway_domain::{
    KnownRecipient, PersonalDigest, RecipientId, TenantId,
    secret::{SealedSecret, SecretError, SecretKey},
};

/// How many characters a personal number has.
pub(super) const CHARS: std::ops::RangeInclusive<usize> = 4..=64;

/// The stored form of a personal number.
#[derive(Clone, Debug)]
pub(crate) struct PersonalNumber {
    sealed: SealedSecret,
    digest: PersonalDigest,
    masked: String,
}

impl PersonalNumber {
    /// The stored form for the entry with this id.
    pub(crate) fn new(
        key: &SecretKey,
        tenant: &TenantId,
        id: &RecipientId,
        number: &str,
    ) -> Result<Self, SecretError> {
        Ok(Self {
            sealed: key.seal(&KnownRecipient::sealing_context(tenant, id), number)?,
            digest: digest(key, tenant, number),
            masked: mask(number),
        })
    }

    /// Sets the number of an entry, or removes it.
    pub(crate) fn store_in(personal: Option<Self>, recipient: &mut KnownRecipient) {
        let (sealed, digest, masked) = match personal {
            Some(Self { sealed, digest, masked }) => (Some(sealed), Some(digest), Some(masked)),
            None => (None, None, None),
        };
        recipient.personal_number = sealed;
        recipient.personal_number_digest = digest;
        recipient.personal_number_masked = masked;
    }
}

/// The digests to look up: by the current key, and by the previous one if configured.
pub(crate) fn digests(key: &SecretKey, tenant: &TenantId, number: &str) -> Vec<PersonalDigest> {
    key.generations().map(|key| digest(key, tenant, number)).collect()
}

fn digest(key: &SecretKey, tenant: &TenantId, number: &str) -> PersonalDigest {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key.derive(&format!("personal-number/{tenant}")));
    let mut digest = [0; 32];
    digest.copy_from_slice(hmac::sign(&key, normal(number).as_bytes()).as_ref());
    PersonalDigest(digest)
}

/// The form that is compared: without spaces and dashes, in one case.
fn normal(number: &str) -> String {
    let kept = number.chars().filter(|c| !c.is_whitespace() && *c != '-');
    kept.flat_map(char::to_uppercase).collect()
}

/// Hides all but the last characters: three of a long number, two of a short one, none of a very short one.
fn mask(number: &str) -> String {
    let count = number.chars().count();
    let shown = match count {
        0..=5 => 0,
        6..=8 => 2,
        _ => 3,
    };
    let hidden = count - shown;
    number.chars().enumerate().map(|(at, c)| if at < hidden { '*' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SecretKey {
        SecretKey::from_bytes(&[byte; 32]).unwrap()
    }

    fn tenant(id: &str) -> TenantId {
        id.parse().unwrap()
    }

    #[test]
    fn a_number_is_found_however_it_is_written_and_only_in_its_tenant() {
        let stored = digest(&key(7), &tenant("acme"), "19800101-1234");
        for same in ["198001011234", " 1980 0101 1234 "] {
            assert_eq!(digests(&key(7), &tenant("acme"), same), [stored], "{same}");
        }
        assert_eq!(
            digest(&key(7), &tenant("acme"), "rssmra80"),
            digest(&key(7), &tenant("acme"), "RSSMRA80")
        );
        for (key, tenant, number) in [
            (key(7), tenant("acme"), "19800101+1234"),
            (key(7), tenant("other"), "19800101-1234"),
            (key(8), tenant("acme"), "19800101-1234"),
        ] {
            assert_ne!(digest(&key, &tenant, number), stored);
        }
    }

    #[test]
    fn a_number_stored_under_the_previous_key_is_found() {
        let stored = digest(&key(7), &tenant("acme"), "19800101-1234");
        let renewed = key(8).with_previous(key(7));
        let sought = digests(&renewed, &tenant("acme"), "198001011234");
        assert!(sought.len() == 2 && sought[1] == stored);
    }

    #[test]
    fn only_the_end_of_a_number_is_shown() {
        for (number, masked) in [
            ("19800101-1234", "**********234"),
            ("1234567", "*****67"),
            ("12345", "*****"),
            ("éàüöäß", "****äß"),
        ] {
            assert_eq!(mask(number), masked);
        }
    }
}
