//! A signed envelope sender for each message (VERP), so that a bounce names its message and cannot be forged.
//!
//! `b+<uid>-<mac>@domain`: 16 octets of uid and 50 bits of a keyed digest, both in base32, which survives
//! servers that change the case of an address. The local part has 39 octets of the 64 allowed. Guessing a
//! digest takes 2⁴⁹ bounces, one by one. An address with a wrong digest is simply not ours; that is not an
//! error.
//!
//! Every recipient can read the envelope sender. So the digest of a message with one recipient covers the uid
//! and that recipient ([`VerpScope::Recipient`]): a report sent to it can speak only about that recipient. If
//! several recipients share an envelope, the digest covers the uid alone ([`VerpScope::Message`]), and each
//! of them could write a report about the others. Addresses of the second kind also come back from mail with
//! one recipient that older versions sent.
//!
//! The key is derived from the gateway's secret key. Bounces come back for days: while a secret key is being
//! replaced, addresses made under either key are read.

use std::fmt;

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};

use crate::{
    address::EmailAddress,
    identity::{id::MessageUid, secret::SecretKey},
};

/// The prefix of every address: a mailbox `b` that accepts sub-addresses.
const PREFIX: &str = "b+";
/// A uid's 128 bits in base32.
const UID_CHARS: usize = 26;
/// How much of the digest is used, in characters.
const MAC_CHARS: usize = 10;
/// The length of a local part.
const LOCAL_CHARS: usize = PREFIX.len() + UID_CHARS + 1 + MAC_CHARS;
/// RFC 4648, 6, in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The key that signs envelope senders. Never printed.
pub struct VerpKey {
    key: hmac::Key,
    previous: Option<Box<VerpKey>>,
}

impl VerpKey {
    /// The key that belongs to the gateway's secret key, and to its predecessor if it has one.
    pub fn new(secret: &SecretKey) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.derive("verp"));
        Self { key, previous: secret.previous().map(|previous| Box::new(Self::new(previous))) }
    }

    fn local_part(&self, uid: MessageUid, only_recipient: Option<&str>) -> String {
        // A uid has a fixed length and a recipient is never empty, so the two forms cannot collide.
        let mut signed = hmac::Context::with_key(&self.key);
        signed.update(uid.as_bytes());
        if let Some(recipient) = only_recipient {
            signed.update(recipient.to_lowercase().as_bytes());
        }
        let mac = signed.sign();
        let mut local = String::with_capacity(LOCAL_CHARS);
        local.push_str(PREFIX);
        write_base32(uid.as_bytes(), UID_CHARS, &mut local);
        local.push('-');
        write_base32(mac.as_ref(), MAC_CHARS, &mut local);
        local
    }

    /// This key and its predecessors.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |key| key.previous.as_deref())
    }
}

impl fmt::Debug for VerpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerpKey(***)")
    }
}

/// The envelope sender of a message at the tenant's bounce domain. `only_recipient` is its recipient, if it
/// has only one.
pub fn encode(uid: MessageUid, only_recipient: Option<&str>, key: &VerpKey, domain: &str) -> String {
    let mut address = key.local_part(uid, only_recipient);
    address.push('@');
    address.push_str(domain);
    address
}

/// What the signature of an envelope sender covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerpScope {
    /// The message and its only recipient, who alone has seen the address.
    Recipient,
    /// The message. Any of its recipients has seen the address.
    Message,
}

/// An address in the form of our envelope senders. [`VerpAddress::scope`] checks whether we made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerpAddress {
    uid: MessageUid,
    /// The local part in lower case.
    local: String,
}

impl VerpAddress {
    /// Reads an address in any case; `None` if it has another form.
    pub fn read(address: &str) -> Option<Self> {
        let (local, _domain) = address.rsplit_once('@')?;
        let local = local.to_ascii_lowercase();
        let (uid, mac) = local.strip_prefix(PREFIX)?.split_at_checked(UID_CHARS)?;
        let mac = mac.strip_prefix('-')?;
        let is_mac = mac.len() == MAC_CHARS && mac.bytes().all(|byte| ALPHABET.contains(&byte));
        let uid = MessageUid::from_bytes(read_base32(uid)?);
        is_mac.then_some(Self { uid, local })
    }

    /// The message that the address names.
    pub fn uid(&self) -> MessageUid {
        self.uid
    }

    /// What its signature covers, given the recipients of the message that it names; `None` if it was forged.
    pub fn scope(&self, key: &VerpKey, recipients: &[String]) -> Option<VerpScope> {
        // The address is made again and compared as a whole, so there is nothing else to check.
        let is_made_with = |only_recipient: Option<&str>| {
            key.all().any(|key| {
                let made = key.local_part(self.uid, only_recipient);
                verify_slices_are_equal(made.as_bytes(), self.local.as_bytes()).is_ok()
            })
        };
        match recipients {
            [only] if EmailAddress::spellings_of(only).any(|only| is_made_with(Some(&only))) => {
                Some(VerpScope::Recipient)
            }
            _ => is_made_with(None).then_some(VerpScope::Message),
        }
    }
}

/// Writes the first bits of `bytes` as `chars` characters, padded with zero bits.
fn write_base32(bytes: &[u8], chars: usize, out: &mut String) {
    for index in 0..chars {
        let (byte, shift) = (index * 5 / 8, index * 5 % 8);
        let at = |index: usize| u16::from(bytes.get(index).copied().unwrap_or(0));
        let window = at(byte) << 8 | at(byte + 1);
        out.push(char::from(ALPHABET[usize::from(window >> (11 - shift) & 31)]));
    }
}

/// Reads the 128 bits of a uid; the caller compares what follows them.
fn read_base32(text: &str) -> Option<[u8; 16]> {
    let mut value: u128 = 0;
    let mut bits = 0;
    for byte in text.bytes() {
        let digit = ALPHABET.iter().position(|letter| *letter == byte)? as u128;
        let taken = (128 - bits).min(5);
        value = value << taken | digit >> (5 - taken);
        bits += taken;
    }
    (bits == 128).then(|| value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ADA: &str = "ada@example.org";

    fn key(byte: u8) -> VerpKey {
        VerpKey::new(&SecretKey::from_bytes(&[byte; 32]).unwrap())
    }

    fn uid() -> MessageUid {
        "0190a4c2-7b3e-7def-8123-456789abcdef".parse().unwrap()
    }

    fn recipients(addresses: &[&str]) -> Vec<String> {
        addresses.iter().map(|address| (*address).to_owned()).collect()
    }

    /// The message that an address was made for and what its signature covers.
    fn decode(address: &str, key: &VerpKey, to: &[&str]) -> Option<(MessageUid, VerpScope)> {
        let read = VerpAddress::read(address)?;
        Some((read.uid(), read.scope(key, &recipients(to))?))
    }

    #[test]
    fn the_form_of_an_address_does_not_change() {
        // Worked out elsewhere: a gateway that is upgraded must read what it has sent before.
        for (only, local) in [
            (None, "b+agikjqt3hz667ajdivtytk6n54-kiik364aey"),
            (Some("Ada@Example.org"), "b+agikjqt3hz667ajdivtytk6n54-4amx6ye5gr"),
        ] {
            let address = encode(uid(), only, &key(7), "bounces.example.com");
            assert_eq!(address, format!("{local}@bounces.example.com"));
        }
    }

    #[test]
    fn an_address_that_came_back_in_capitals_is_read() {
        for (only, scope) in [(None, VerpScope::Message), (Some(ADA), VerpScope::Recipient)] {
            let address = encode(uid(), only, &key(7), "b.example").to_uppercase();
            assert_eq!(decode(&address, &key(7), &["ADA@example.org"]), Some((uid(), scope)));
        }
    }

    #[test]
    fn an_address_of_one_recipient_says_nothing_about_others() {
        let address = encode(uid(), Some(ADA), &key(7), "b.example");
        for to in [&["bob@example.org"][..], &[ADA, "bob@example.org"], &[]] {
            assert_eq!(decode(&address, &key(7), to), None, "{to:?}");
        }
        let shared = encode(uid(), None, &key(7), "b.example");
        for to in [&[ADA][..], &[ADA, "bob@example.org"], &[]] {
            assert_eq!(decode(&shared, &key(7), to), Some((uid(), VerpScope::Message)), "{to:?}");
        }
    }

    #[test]
    fn a_forged_address_is_not_ours() {
        for only in [None, Some(ADA)] {
            let address = encode(uid(), only, &key(7), "b.example");
            assert_eq!(decode(&address, &key(8), &[ADA]), None, "another key");
            // Every character counts, also the spare bits of the last one of the uid.
            for at in PREFIX.len()..address.find('@').unwrap() {
                for letter in "abcdefghijklmnopqrstuvwxyz234567-+".chars() {
                    let mut forged: Vec<char> = address.chars().collect();
                    if std::mem::replace(&mut forged[at], letter) != letter {
                        assert_eq!(decode(&forged.into_iter().collect::<String>(), &key(7), &[ADA]), None);
                    }
                }
            }
        }
    }

    #[test]
    fn a_truncated_or_strange_address_is_not_ours() {
        let address = encode(uid(), None, &key(7), "b.example");
        let (local, _) = address.split_once('@').unwrap();
        for end in 0..local.len() {
            assert_eq!(VerpAddress::read(&format!("{}@b.example", &local[..end])), None);
        }
        for strange in [local, "", "@", "b+@x", "someone@example.org", "b+ééééééééééééé-aaaaaaaaaa@x"]
        {
            assert_eq!(VerpAddress::read(strange), None, "{strange}");
        }
        assert_eq!(VerpAddress::read(&format!("{local}a@b.example")), None);
    }

    #[test]
    fn an_address_made_under_the_replaced_key_is_still_read() {
        for (only, scope) in [(None, VerpScope::Message), (Some(ADA), VerpScope::Recipient)] {
            let address = encode(uid(), only, &key(7), "b.example");
            let old = SecretKey::from_bytes(&[7; 32]).unwrap();
            let new = VerpKey::new(&SecretKey::from_bytes(&[8; 32]).unwrap().with_previous(old));
            assert_eq!(decode(&address, &new, &[ADA]), Some((uid(), scope)));
            assert_ne!(encode(uid(), only, &new, "b.example"), address);
        }
    }

    proptest! {
        #[test]
        fn every_uid_comes_back(bytes: [u8; 16], recipient in ".{1,40}") {
            let uid = MessageUid::from_bytes(bytes);
            let address = encode(uid, Some(&recipient), &key(7), "b.example");
            prop_assert_eq!(decode(&address, &key(7), &[&recipient]), Some((uid, VerpScope::Recipient)));
        }

        #[test]
        fn reading_never_panics(text in ".{0,80}") {
            decode(&text, &key(7), &[&text]);
            decode(&format!("b+{text}@x"), &key(7), &[]);
        }
    }
}
