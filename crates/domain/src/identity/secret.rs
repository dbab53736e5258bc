//! Credentials at rest: AES-256-GCM under the gateway's secret key.
//!
//! A key can be replaced while secrets are sealed under the old one: the new key then knows its predecessors,
//! opens what any of them sealed, and seals only with itself. Code that derives a key to verify something
//! must try all [generations](SecretKey::generations), because links, codes, return paths and cookies in use
//! were made under an older one. A predecessor can be dropped once everything is sealed again and nothing
//! made under it matters any more.

use std::fmt;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey},
    hmac,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key that encrypts stored credentials. Never printed.
pub struct SecretKey {
    key: RandomizedNonceKey,
    /// The raw key, to derive keys for other purposes.
    root: hmac::Key,
    previous: Option<Box<SecretKey>>,
}

/// Encrypted bytes: nonce and ciphertext. Safe to store, useless without the key.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Vec<u8>);

/// Why a secret could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The configured key is malformed.
    #[error("the secret key must be 32 bytes in standard base64")]
    Key,
    /// Encryption failed.
    #[error("a secret could not be encrypted")]
    Seal,
    /// The stored bytes do not open with this key.
    #[error(
        "a stored secret does not open with this secret key; if POSTWAY_SECRET_KEY was changed, give the old one as POSTWAY_SECRET_KEY_PREVIOUS"
    )]
    Open,
}

impl SecretKey {
    /// The length of a key.
    pub const BYTES: usize = 32;

    /// From its base64 form.
    pub fn from_base64(text: &str) -> Result<Self, SecretError> {
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| SecretError::Key)?;
        Self::from_bytes(&bytes)
    }

    /// From its 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecretError> {
        let key = RandomizedNonceKey::new(&AES_256_GCM, bytes).map_err(|_| SecretError::Key)?;
        Ok(Self { key, root: hmac::Key::new(hmac::HMAC_SHA256, bytes), previous: None })
    }

    /// This key, which then also opens what `previous` sealed.
    pub fn with_previous(self, previous: SecretKey) -> Self {
        Self { previous: Some(Box::new(previous)), ..self }
    }

    /// The predecessor, while there is one.
    pub fn previous(&self) -> Option<&SecretKey> {
        self.previous.as_deref()
    }

    /// This key and its predecessors, the newest first.
    pub fn generations(&self) -> impl Iterator<Item = &SecretKey> {
        std::iter::successors(Some(self), |key| key.previous())
    }

    /// A key for the purpose that `label` names. It reveals nothing about this key or the keys of other
    /// labels.
    pub fn derive(&self, label: &str) -> [u8; Self::BYTES] {
        let mut derived = [0; Self::BYTES];
        derived.copy_from_slice(hmac::sign(&self.root, label.as_bytes()).as_ref());
        derived
    }

    /// Encrypts a secret. `place` is the context that it belongs to, such as a tenant and an account. It
    /// opens in no other context, so a row copied to another tenant is useless.
    pub fn seal(&self, place: &str, secret: &str) -> Result<SealedSecret, SecretError> {
        self.seal_bytes(place, secret.as_bytes())
    }

    /// The same for bytes, such as a mail.
    pub fn seal_bytes(&self, place: &str, bytes: &[u8]) -> Result<SealedSecret, SecretError> {
        let mut text = bytes.to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(place.as_bytes()), &mut text)
            .map_err(|_| SecretError::Seal)?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut text);
        Ok(SealedSecret(sealed))
    }

    /// Decrypts a secret that was sealed for the same context, by this key or a predecessor.
    pub fn open(&self, place: &str, sealed: &SealedSecret) -> Result<String, SecretError> {
        String::from_utf8(self.open_bytes(place, sealed)?).map_err(|_| SecretError::Open)
    }

    /// The same for bytes.
    pub fn open_bytes(&self, place: &str, sealed: &SealedSecret) -> Result<Vec<u8>, SecretError> {
        match (self.open_own(place, sealed), &self.previous) {
            (Err(_), Some(previous)) => previous.open_bytes(place, sealed),
            (opened, _) => opened,
        }
    }

    /// Seals a secret again that a predecessor sealed; `None` if this key sealed it.
    pub fn renew(&self, place: &str, sealed: &SealedSecret) -> Result<Option<SealedSecret>, SecretError> {
        match self.open_own(place, sealed) {
            Ok(_) => Ok(None),
            Err(_) => self.seal(place, &self.open(place, sealed)?).map(Some),
        }
    }

    fn open_own(&self, place: &str, sealed: &SealedSecret) -> Result<Vec<u8>, SecretError> {
        let (nonce, text) = sealed.0.split_at_checked(12).ok_or(SecretError::Open)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SecretError::Open)?;
        let mut text = text.to_vec();
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(place.as_bytes()), &mut text)
            .map_err(|_| SecretError::Open)?;
        Ok(plain.to_vec())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(***)")
    }
}

/// In JSON it is base64.
impl Serialize for SealedSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for SealedSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_in_its_place() {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let sealed = key.seal("default/relay", "hunter2").unwrap();
        assert!(!sealed.0.windows(7).any(|w| w == b"hunter2"));
        assert_eq!(key.open("default/relay", &sealed).unwrap(), "hunter2");
        assert_eq!(key.open("other/relay", &sealed), Err(SecretError::Open));
        let other = SecretKey::from_bytes(&[8; 32]).unwrap();
        assert_eq!(other.open("default/relay", &sealed), Err(SecretError::Open));
        assert_eq!(key.open("default/relay", &SealedSecret(vec![1, 2])), Err(SecretError::Open));
    }

    #[test]
    fn a_derived_key_belongs_to_its_label_and_its_key() {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        assert_eq!(key.derive("verp"), SecretKey::from_bytes(&[7; 32]).unwrap().derive("verp"));
        assert_ne!(key.derive("verp"), key.derive("other"));
        assert_ne!(key.derive("verp"), SecretKey::from_bytes(&[8; 32]).unwrap().derive("verp"));
    }

    #[test]
    fn a_new_key_opens_what_the_old_one_sealed_and_seals_it_anew() {
        let old = SecretKey::from_bytes(&[7; 32]).unwrap();
        let sealed = old.seal("default/relay", "hunter2").unwrap();
        let new = SecretKey::from_bytes(&[8; 32]).unwrap().with_previous(old);
        assert_eq!(new.open("default/relay", &sealed).unwrap(), "hunter2");
        let renewed = new.renew("default/relay", &sealed).unwrap().unwrap();
        assert_eq!(new.renew("default/relay", &renewed), Ok(None));
        let alone = SecretKey::from_bytes(&[8; 32]).unwrap();
        assert_eq!(alone.open("default/relay", &renewed).unwrap(), "hunter2");
        assert_eq!(alone.open("default/relay", &sealed), Err(SecretError::Open));
        assert_eq!(new.renew("other/relay", &sealed), Err(SecretError::Open));
    }

    #[test]
    fn every_predecessor_is_known_the_newest_first() {
        let key = |byte: u8| SecretKey::from_bytes(&[byte; 32]).unwrap();
        let sealed = key(7).seal("place", "hunter2").unwrap();
        let third = key(9).with_previous(key(8).with_previous(key(7)));
        assert_eq!(third.open("place", &sealed).unwrap(), "hunter2");
        let derived: Vec<_> = third.generations().map(|key| key.derive("x")).collect();
        assert_eq!(derived, [9, 8, 7].map(|byte| key(byte).derive("x")));
    }
}
