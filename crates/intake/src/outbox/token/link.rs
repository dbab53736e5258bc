//! Links, signed so that they can be checked without the database.

use std::fmt;

use aws_lc_rs::{constant_time, hmac};
use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::secret::SecretKey;

/// The length of the secret in a link.
pub(in super::super) const SECRET_BYTES: usize = 32;
/// The longest secret of an application.
const SECRET_BYTES_MAX: usize = 256;
const TAG_BYTES: usize = 32;
/// Shorter keys are refused.
const KEY_BYTES_MIN: usize = 32;

/// The key that signs links.
#[derive(Clone)]
pub struct TokenLinkKey(hmac::Key);

/// The signature in a link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct LinkTag([u8; TAG_BYTES]);

/// The contents of a link's token.
pub(in super::super) struct SignedLink {
    pub secret: Vec<u8>,
    pub tag: LinkTag,
}

impl TokenLinkKey {
    /// A key that the application shares: at least 32 bytes in standard base64.
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text.trim()).ok()?;
        (bytes.len() >= KEY_BYTES_MIN).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The gateway's own key.
    pub fn own(secret_key: &SecretKey) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &secret_key.derive("token-link")))
    }

    /// Signs a secret and a code for a path.
    pub(in super::super) fn sign(&self, path: &str, secret: &[u8], code: &str) -> LinkTag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(path.as_bytes());
        context.update(secret);
        context.update(code.as_bytes());
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(context.sign().as_ref());
        LinkTag(tag)
    }
}

impl fmt::Debug for TokenLinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(***)")
    }
}

impl LinkTag {
    /// Whether the signatures are equal, in constant time.
    pub(in super::super) fn is(&self, other: &Self) -> bool {
        constant_time::verify_slices_are_equal(&self.0, &other.0).is_ok()
    }

    pub(in super::super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl SignedLink {
    /// The token in the link.
    pub(in super::super) fn write(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode([&self.secret[..], self.tag.as_bytes()].concat())
    }

    /// Reads the token of a link; `None` if it is malformed.
    pub(in super::super) fn read(token: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).ok()?;
        let split = bytes.len().checked_sub(TAG_BYTES)?;
        let (secret, tag) = bytes.split_at_checked(split)?;
        if !(1..=SECRET_BYTES_MAX).contains(&secret.len()) {
            return None;
        }
        Some(Self { secret: secret.to_vec(), tag: LinkTag(tag.try_into().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_back_and_holds_for_its_path_and_code_alone() {
        let key = TokenLinkKey::own(&SecretKey::from_bytes(&[7; 32]).unwrap());
        let secret = vec![9; SECRET_BYTES];
        let tag = key.sign("/activate", &secret, "01234");
        let read = SignedLink::read(&SignedLink { secret: secret.clone(), tag }.write()).unwrap();
        assert_eq!(read.secret, secret);
        assert!(read.tag.is(&tag));
        for (path, code) in [("/recover", "01234"), ("/activate", "01235"), ("/activate", "")] {
            assert!(!read.tag.is(&key.sign(path, &secret, code)), "{path} {code}");
        }
    }

    #[test]
    fn what_is_no_link_is_not_read_as_one() {
        for token in ["", "!", "AAAA", &BASE64_URL_SAFE_NO_PAD.encode([0; 32]), &"A".repeat(10_000)] {
            assert!(SignedLink::read(token).is_none(), "{token}");
        }
        assert!(TokenLinkKey::from_base64("c2hvcnQ=").is_none());
        assert!(TokenLinkKey::from_base64(&BASE64_STANDARD.encode([1; 32])).is_some());
    }
}
