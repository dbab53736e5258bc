//! A signed, short-lived link to one file of a mail that was sent or received, or to a received mail itself.
//!
//! It contains the mail, the file and the expiry, and is signed: it needs no key, opens nothing else, and
//! nothing is stored for it. Links to sent and to received mail are signed with different keys, so that
//! neither can be turned into the other.

use std::time::Duration;

use super::{
    id::{MessageUid, TenantId},
    secret::SecretKey,
};
use crate::time::Time;
use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

/// How long a link to a file of a sent message works.
pub const LINK_LASTS: Duration = Duration::from_secs(3_600);
/// How long the links in an event about received mail work, from each call on.
pub const RECEIVED_LINK_LASTS: Duration = Duration::from_secs(24 * 3_600);
const MAC_BYTES: usize = 32;
/// Longer tokens are not even decoded.
const TOKEN_CHARS_MAX: usize = 256;

/// The mail that a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedMail {
    /// A message of the tenant.
    Message,
    /// A mail that the tenant received.
    Inbound,
}

impl LinkedMail {
    const ALL: [Self; 2] = [Self::Message, Self::Inbound];

    fn signing_key(self, key: &SecretKey) -> hmac::Key {
        let purpose = match self {
            Self::Message => "attachment link",
            Self::Inbound => "inbound attachment link",
        };
        hmac::Key::new(hmac::HMAC_SHA256, &key.derive(purpose))
    }
}

/// The content of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentLink {
    /// The kind of mail.
    pub mail: LinkedMail,
    /// The tenant that the mail belongs to.
    pub tenant: TenantId,
    /// The mail.
    pub uid: MessageUid,
    /// The file's position in the mail, from 0, or [`AttachmentLink::WHOLE`].
    pub place: u16,
    /// When the link stops working.
    pub until: Time,
}

impl AttachmentLink {
    /// The place of the whole mail. No mail has this many files.
    pub const WHOLE: u16 = u16::MAX;

    /// The token that goes into the URL.
    pub fn token(&self, key: &SecretKey) -> String {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(self.uid.as_bytes());
        bytes.extend_from_slice(&self.place.to_be_bytes());
        bytes.extend_from_slice(&self.until.as_millis().to_be_bytes());
        bytes.extend_from_slice(self.tenant.as_str().as_bytes());
        let mac = hmac::sign(&self.mail.signing_key(key), &bytes);
        bytes.extend_from_slice(mac.as_ref());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The link behind a token, expired or not, if its signature is ours.
    pub fn read(token: &str, key: &SecretKey) -> Option<Self> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (said, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
        let is_signed = |mail: LinkedMail, key: &SecretKey| {
            verify_slices_are_equal(mac, hmac::sign(&mail.signing_key(key), said).as_ref()).is_ok()
        };
        let is_ours = |mail: &LinkedMail| {
            is_signed(*mail, key) || key.previous().is_some_and(|previous| is_signed(*mail, previous))
        };
        let mail = LinkedMail::ALL.into_iter().find(is_ours)?;
        let (uid, rest) = said.split_first_chunk::<16>()?;
        let (place, rest) = rest.split_first_chunk::<2>()?;
        let (until, tenant) = rest.split_first_chunk::<8>()?;
        Some(Self {
            mail,
            tenant: std::str::from_utf8(tenant).ok()?.parse().ok()?,
            uid: MessageUid::from_bytes(*uid),
            place: u16::from_be_bytes(*place),
            until: Time::from_millis(i64::from_be_bytes(*until)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_what_it_was_made_for_and_nothing_else() {
        let (key, other) =
            (SecretKey::from_bytes(&[7; 32]).unwrap(), SecretKey::from_bytes(&[8; 32]).unwrap());
        for mail in LinkedMail::ALL {
            opens_only_itself(mail, &key, &other);
        }
    }

    fn opens_only_itself(mail: LinkedMail, key: &SecretKey, other: &SecretKey) {
        let link = AttachmentLink {
            mail,
            tenant: "acme".parse().unwrap(),
            uid: MessageUid::first_at(Time::from_millis(1_700_000_000_000)),
            place: 3,
            until: Time::from_millis(1_700_000_000_001),
        };
        let token = link.token(key);
        assert_eq!(AttachmentLink::read(&token, key), Some(link));
        assert_eq!(AttachmentLink::read(&token, other), None);
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(AttachmentLink::read(&BASE64_URL_SAFE_NO_PAD.encode(changed), key), None, "byte {at}");
        }
        for wrong in ["", "AAAA", &"A".repeat(300), "%"] {
            assert_eq!(AttachmentLink::read(wrong, key), None, "{wrong}");
        }
    }
}
