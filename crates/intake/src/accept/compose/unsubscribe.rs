//! Unsubscribe links: made for a message, put into its header before it is signed, and followed later.
//!
//! A link contains the tenant, the stream, the message and the reader, and it is sealed: it cannot be forged,
//! needs no stored row, outlives its message, and reveals nothing in a log. Links made with previous secret
//! keys still open.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    MessageUid, TenantId,
    id::StreamId,
    secret::{SealedSecret, SecretKey},
};

/// The purpose under which link keys are derived and links are sealed.
const PURPOSE: &str = "unsubscribe link";
/// Longer tokens are not decoded.
const TOKEN_CHARS_MAX: usize = 800;
/// The path of unsubscribe links.
pub(super) const PATH: &str = "/unsubscribe/";
/// The placeholder for the link in the texts of a message.
pub(super) const PLACEHOLDER: &str = "%unsubscribe_url%";
/// The word before the token in the subject of a mail that a reader writes to unsubscribe.
pub(crate) const SUBJECT: &str = "unsubscribe";

/// Seals and opens links. Never printed.
pub(crate) struct UnsubscribeKey(SecretKey);

/// The contents of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsubscribeLink {
    /// The tenant that sent the mail.
    pub tenant: TenantId,
    /// The stream that the reader can leave.
    pub stream: StreamId,
    /// The message that the link was made for.
    pub uid: MessageUid,
    /// The reader, in lower case.
    pub address: String,
}

impl UnsubscribeKey {
    pub(crate) fn new(secret: &SecretKey) -> Self {
        Self(derived(secret))
    }

    /// The token in the URL of a link; `None` if it would be too long.
    pub(super) fn token(&self, link: &UnsubscribeLink) -> Option<String> {
        let UnsubscribeLink { tenant, stream, uid, address } = link;
        // Only the address may contain a space, and it comes last.
        let sealed = self.0.seal(PURPOSE, &format!("{tenant} {stream} {uid} {address}")).ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(sealed.0)).filter(|token| token.len() <= TOKEN_CHARS_MAX)
    }

    pub(super) fn read(&self, token: &str) -> Option<UnsubscribeLink> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        let sealed = SealedSecret(BASE64_URL_SAFE_NO_PAD.decode(token).ok()?);
        let text = self.0.open(PURPOSE, &sealed).ok()?;
        let mut parts = text.splitn(4, ' ');
        let mut next = || parts.next();
        Some(UnsubscribeLink {
            tenant: next()?.parse().ok()?,
            stream: next()?.parse().ok()?,
            uid: next()?.parse().ok()?,
            address: next()?.to_owned(),
        })
    }
}

/// The key for links, derived from a secret key and its predecessors.
fn derived(secret: &SecretKey) -> SecretKey {
    let key = SecretKey::from_bytes(&secret.derive(PURPOSE)).expect("a derived key is as long as a key");
    match secret.previous() {
        Some(previous) => key.with_previous(derived(previous)),
        None => key,
    }
}

/// The header fields for unsubscribing, and the link alone.
pub(crate) struct UnsubscribeFields {
    pub fields: Vec<(&'static str, String)>,
    pub url: Option<String>,
}

pub(super) fn is_unsubscribe(name: &str) -> bool {
    name.get(..16).is_some_and(|start| start.eq_ignore_ascii_case("List-Unsubscribe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SecretKey {
        SecretKey::from_bytes(&[byte; 32]).unwrap()
    }

    fn link() -> UnsubscribeLink {
        UnsubscribeLink {
            tenant: "acme".parse().unwrap(),
            stream: "news".parse().unwrap(),
            uid: MessageUid::from_bytes([3; 16]),
            address: "\"ada l\"@example.net".to_owned(),
        }
    }

    #[test]
    fn a_link_opens_what_it_was_made_for_also_after_the_key_was_changed() {
        let old = UnsubscribeKey::new(&key(7));
        let token = old.token(&link()).unwrap();
        assert_eq!(old.read(&token), Some(link()));
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{token}");
        let renewed = UnsubscribeKey::new(&key(9).with_previous(key(8).with_previous(key(7))));
        assert_eq!(renewed.read(&token), Some(link()));
        assert_eq!(UnsubscribeKey::new(&key(8)).read(&token), None);
    }

    #[test]
    fn a_forged_link_opens_nothing() {
        let ours = UnsubscribeKey::new(&key(7));
        let token = ours.token(&link()).unwrap();
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(ours.read(&BASE64_URL_SAFE_NO_PAD.encode(changed)), None, "byte {at}");
        }
        // Sealed by the same key for another purpose.
        let other = key(7).seal("default/relay", "acme news x ada@example.net").unwrap();
        for wrong in ["", "AAAA", "%", &"A".repeat(900), &BASE64_URL_SAFE_NO_PAD.encode(other.0)] {
            assert_eq!(ours.read(wrong), None, "{wrong}");
        }
        let long = UnsubscribeLink { address: format!("{}@example.net", "x".repeat(900)), ..link() };
        assert_eq!(ours.token(&long), None, "no link, rather than one that nobody can open");
    }

    #[test]
    fn the_fields_are_known_by_name_whatever_their_case() {
        assert!(is_unsubscribe("list-unsubscribe") && is_unsubscribe("List-Unsubscribe-Post"));
        assert!(!is_unsubscribe("List-Id") && !is_unsubscribe("é"));
    }
}
