//! An envelope sender for each message (VERP), signed, so that a bounce names its message and nobody else can.
//!
//! `b+<uid>-<mac>@domain`: 16 octets of uid and 50 bits of a keyed digest over them, both in base32, which
//! survives servers that change the case of an address. The local part has 39 octets of the 64 allowed. Guessing
//! a digest takes 2⁴⁹ bounces, one by one; a forged one is not ours, and no error.
//!
//! The key comes from the gateway's secret key. Bounces come back for days: while a secret key is being replaced
//! both are known, and addresses made under either are read.

use std::fmt;

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};

use crate::{id::MessageUid, secret::SecretKey};

/// What every address begins with: a mailbox `b` that takes sub-addresses.
const PREFIX: &str = "b+";
/// A uid's 128 bits in base32.
const UID_CHARS: usize = 26;
/// How much of the digest is kept.
const MAC_CHARS: usize = 10;
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

    fn local_part(&self, uid: MessageUid) -> String {
        let mac = hmac::sign(&self.key, uid.as_bytes());
        let mut local = String::with_capacity(PREFIX.len() + UID_CHARS + 1 + MAC_CHARS);
        local.push_str(PREFIX);
        write_base32(uid.as_bytes(), UID_CHARS, &mut local);
        local.push('-');
        write_base32(mac.as_ref(), MAC_CHARS, &mut local);
        local
    }
}

impl fmt::Debug for VerpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerpKey(***)")
    }
}

/// The envelope sender of a message, at the tenant's bounce domain.
pub fn encode(uid: MessageUid, key: &VerpKey, domain: &str) -> String {
    let mut address = key.local_part(uid);
    address.push('@');
    address.push_str(domain);
    address
}

/// The message that an address was made for, in whatever case it comes back; `None` if we did not make it.
pub fn decode(address: &str, key: &VerpKey) -> Option<MessageUid> {
    let (local, _domain) = address.rsplit_once('@')?;
    let local = local.to_ascii_lowercase();
    let text = local.strip_prefix(PREFIX)?.get(..UID_CHARS)?;
    let uid = MessageUid::from_bytes(read_base32(text)?);
    // Made again and compared as a whole, so there is one way to write an address and nothing else to check.
    let made_by =
        |key: &VerpKey| verify_slices_are_equal(key.local_part(uid).as_bytes(), local.as_bytes()).is_ok();
    let mut keys = std::iter::successors(Some(key), |key| key.previous.as_deref());
    keys.any(made_by).then_some(uid)
}

/// Writes the first bits as so many characters, with zero bits where the bytes have ended.
fn write_base32(bytes: &[u8], chars: usize, out: &mut String) {
    for index in 0..chars {
        let (byte, shift) = (index * 5 / 8, index * 5 % 8);
        let at = |index: usize| u16::from(bytes.get(index).copied().unwrap_or(0));
        let window = at(byte) << 8 | at(byte + 1);
        out.push(char::from(ALPHABET[usize::from(window >> (11 - shift) & 31)]));
    }
}

/// Reads the 128 bits of a uid; what follows them is for the caller to compare.
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

    fn key(byte: u8) -> VerpKey {
        VerpKey::new(&SecretKey::from_bytes(&[byte; 32]).unwrap())
    }

    fn uid() -> MessageUid {
        "0190a4c2-7b3e-7def-8123-456789abcdef".parse().unwrap()
    }

    #[test]
    fn the_form_of_an_address_does_not_change() {
        let address = encode(uid(), &key(7), "bounces.example.com");
        let (local, domain) = address.split_once('@').unwrap();
        // Worked out elsewhere: a gateway that is upgraded must read what it has sent before.
        assert_eq!((local, domain), ("b+agikjqt3hz667ajdivtytk6n54-kiik364aey", "bounces.example.com"));
    }

    #[test]
    fn an_address_that_came_back_in_capitals_is_read() {
        let address = encode(uid(), &key(7), "b.example").to_uppercase();
        assert_eq!(decode(&address, &key(7)), Some(uid()));
    }

    #[test]
    fn a_forged_address_is_not_ours() {
        let address = encode(uid(), &key(7), "b.example");
        assert_eq!(decode(&address, &key(8)), None, "another key");
        // Every character counts, also the spare bits of the last one of the uid.
        for at in PREFIX.len()..address.find('@').unwrap() {
            for letter in "abcdefghijklmnopqrstuvwxyz234567-+".chars() {
                let mut forged: Vec<char> = address.chars().collect();
                if std::mem::replace(&mut forged[at], letter) != letter {
                    assert_eq!(decode(&forged.into_iter().collect::<String>(), &key(7)), None);
                }
            }
        }
    }

    #[test]
    fn a_truncated_or_strange_address_is_not_ours() {
        let address = encode(uid(), &key(7), "b.example");
        let (local, _) = address.split_once('@').unwrap();
        for end in 0..local.len() {
            assert_eq!(decode(&format!("{}@b.example", &local[..end]), &key(7)), None);
        }
        for strange in [local, "", "@", "b+@x", "someone@example.org", "b+ééééééééééééé-aaaaaaaaaa@x"]
        {
            assert_eq!(decode(strange, &key(7)), None, "{strange}");
        }
        assert_eq!(decode(&format!("{local}a@b.example"), &key(7)), None);
    }

    #[test]
    fn an_address_made_under_the_replaced_key_is_still_read() {
        let address = encode(uid(), &key(7), "b.example");
        let old = SecretKey::from_bytes(&[7; 32]).unwrap();
        let new = VerpKey::new(&SecretKey::from_bytes(&[8; 32]).unwrap().with_previous(old));
        assert_eq!(decode(&address, &new), Some(uid()));
        assert_ne!(encode(uid(), &new, "b.example"), address);
    }

    proptest! {
        #[test]
        fn every_uid_comes_back(bytes: [u8; 16]) {
            let uid = MessageUid::from_bytes(bytes);
            prop_assert_eq!(decode(&encode(uid, &key(7), "b.example"), &key(7)), Some(uid));
        }

        #[test]
        fn decoding_never_panics(text in ".{0,80}") {
            decode(&text, &key(7));
            decode(&format!("b+{text}@x"), &key(7));
        }
    }
}
