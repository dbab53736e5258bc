//! Credentials at rest: AES-256-GCM under the gateway's secret key.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use base64::{Engine, prelude::BASE64_STANDARD};

/// The key that encrypts stored credentials. Never printed.
pub struct SecretKey {
    key: RandomizedNonceKey,
}

/// Encrypted bytes: nonce and sealed text. Safe to store, useless without the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

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
    #[error("a stored secret does not open with this secret key; was POSTWAY_SECRET_KEY changed?")]
    Open,
}

impl SecretKey {
    /// The key's length.
    pub const BYTES: usize = 32;

    /// From its base64 form.
    pub fn from_base64(text: &str) -> Result<Self, SecretError> {
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| SecretError::Key)?;
        Self::from_bytes(&bytes)
    }

    /// From its 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecretError> {
        let key = RandomizedNonceKey::new(&AES_256_GCM, bytes).map_err(|_| SecretError::Key)?;
        Ok(Self { key })
    }

    /// Encrypts. `place` names where the secret belongs (a tenant and account, say): it opens nowhere else, so a
    /// row copied to another tenant is useless.
    pub fn seal(&self, place: &str, secret: &str) -> Result<Sealed, SecretError> {
        let mut text = secret.as_bytes().to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(place.as_bytes()), &mut text)
            .map_err(|_| SecretError::Seal)?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut text);
        Ok(Sealed(sealed))
    }

    /// Decrypts what was sealed for the same place.
    pub fn open(&self, place: &str, sealed: &Sealed) -> Result<String, SecretError> {
        let (nonce, text) = sealed.0.split_at_checked(12).ok_or(SecretError::Open)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SecretError::Open)?;
        let mut text = text.to_vec();
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(place.as_bytes()), &mut text)
            .map_err(|_| SecretError::Open)?;
        String::from_utf8(plain.to_vec()).map_err(|_| SecretError::Open)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(***)")
    }
}

impl fmt::Debug for Sealed {
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
        assert_eq!(key.open("default/relay", &Sealed(vec![1, 2])), Err(SecretError::Open));
    }
}
