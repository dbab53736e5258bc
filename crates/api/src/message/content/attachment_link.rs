//! A signed, short-lived link to one file of a mail.
//!
//! It contains the mail, the file and the expiry, and is signed: it needs no key, opens nothing else, and
//! nothing is stored for it.

use std::time::Duration;

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{MessageUid, TenantId, Time, secret::SecretKey};

/// How long a link works.
pub(crate) const LINK_LASTS: Duration = Duration::from_secs(3_600);
const MAC_BYTES: usize = 32;
/// Longer tokens are not even decoded.
const TOKEN_CHARS_MAX: usize = 256;

/// The content of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachmentLink {
    pub(crate) tenant: TenantId,
    pub(crate) uid: MessageUid,
    /// The file's position in the mail, from 0.
    pub(crate) place: u16,
    pub(crate) until: Time,
}

impl AttachmentLink {
    /// The token that goes into the URL.
    pub(crate) fn token(&self, key: &SecretKey) -> String {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(self.uid.as_bytes());
        bytes.extend_from_slice(&self.place.to_be_bytes());
        bytes.extend_from_slice(&self.until.as_millis().to_be_bytes());
        bytes.extend_from_slice(self.tenant.as_str().as_bytes());
        let mac = hmac::sign(&signing_key(key), &bytes);
        bytes.extend_from_slice(mac.as_ref());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The link behind a token, expired or not, if its signature is ours.
    pub(crate) fn read(token: &str, key: &SecretKey) -> Option<Self> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (said, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
        let is_signed = |key: &SecretKey| {
            verify_slices_are_equal(mac, hmac::sign(&signing_key(key), said).as_ref()).is_ok()
        };
        if !is_signed(key) && !key.previous().is_some_and(is_signed) {
            return None;
        }
        let (uid, rest) = said.split_first_chunk::<16>()?;
        let (place, rest) = rest.split_first_chunk::<2>()?;
        let (until, tenant) = rest.split_first_chunk::<8>()?;
        Some(Self {
            tenant: std::str::from_utf8(tenant).ok()?.parse().ok()?,
            uid: MessageUid::from_bytes(*uid),
            place: u16::from_be_bytes(*place),
            until: Time::from_millis(i64::from_be_bytes(*until)),
        })
    }
}

fn signing_key(key: &SecretKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.derive("attachment link"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_what_it_was_made_for_and_nothing_else() {
        let (key, other) =
            (SecretKey::from_bytes(&[7; 32]).unwrap(), SecretKey::from_bytes(&[8; 32]).unwrap());
        let link = AttachmentLink {
            tenant: "acme".parse().unwrap(),
            uid: MessageUid::first_at(Time::from_millis(1_700_000_000_000)),
            place: 3,
            until: Time::from_millis(1_700_000_000_001),
        };
        let token = link.token(&key);
        assert_eq!(AttachmentLink::read(&token, &key), Some(link));
        assert_eq!(AttachmentLink::read(&token, &other), None);
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(
                AttachmentLink::read(&BASE64_URL_SAFE_NO_PAD.encode(changed), &key),
                None,
                "byte {at}"
            );
        }
        for wrong in ["", "AAAA", &"A".repeat(300), "%"] {
            assert_eq!(AttachmentLink::read(wrong, &key), None, "{wrong}");
        }
    }
}
