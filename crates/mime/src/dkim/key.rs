//! Makes key pairs, reads them from PKCS #8, and signs digests with them.
//!
//! The private key leaves this file only as PKCS #8 bytes in a wrapper that is wiped and never printed.
//! Callers encrypt it before they store it.

use aws_lc_rs::{
    digest::Digest,
    encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der},
    rsa::KeySize,
    signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair},
};
use secrecy::SecretSlice;

use super::{Algorithm, DkimError};

/// The longest RSA key that every verifier must support (RFC 8301, 3.2).
const RSA_OCTETS_MAX: usize = 4096 / 8;

/// The `a=` tag of a signature.
pub(super) fn signature_tag(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Rsa => "rsa-sha256",
        Algorithm::Ed25519 => "ed25519-sha256",
    }
}

/// The `k=` tag of a record.
pub(super) fn key_tag(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Rsa => "rsa",
        Algorithm::Ed25519 => "ed25519",
    }
}

/// A new key pair: the private key to encrypt and store, the public key to publish.
#[derive(Debug)]
pub struct GeneratedKey {
    /// The private key in PKCS #8.
    pub private_pkcs8: SecretSlice<u8>,
    /// The public key as [`dns_record`](super::dns_record) takes it.
    pub public: Vec<u8>,
}

/// Makes a key from the system's randomness. This is slow for RSA, so it must not be called on a hot path.
pub fn generate(algorithm: Algorithm) -> Result<GeneratedKey, DkimError> {
    let failed = |_| DkimError::Generate(algorithm);
    let (pair, private) = match algorithm {
        Algorithm::Rsa => {
            let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(failed)?;
            let private = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).map_err(failed)?;
            (DkimKeyPair::Rsa(Box::new(pair)), private)
        }
        Algorithm::Ed25519 => {
            let pair = Ed25519KeyPair::generate().map_err(failed)?;
            let private = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).map_err(failed)?;
            (DkimKeyPair::Ed25519(Box::new(pair)), private)
        }
    };
    let public = pair.public().ok_or(DkimError::Generate(algorithm))?;
    Ok(GeneratedKey { private_pkcs8: SecretSlice::from(private.as_ref().to_vec()), public })
}

/// A key that signs.
pub(super) enum DkimKeyPair {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl DkimKeyPair {
    pub(super) fn read(algorithm: Algorithm, private_pkcs8: &[u8]) -> Result<Self, DkimError> {
        let refused = |_| DkimError::Key(algorithm);
        match algorithm {
            Algorithm::Rsa => {
                let pair = RsaKeyPair::from_pkcs8(private_pkcs8).map_err(refused)?;
                if pair.public_modulus_len() > RSA_OCTETS_MAX {
                    return Err(DkimError::Key(algorithm));
                }
                Ok(Self::Rsa(Box::new(pair)))
            }
            Algorithm::Ed25519 => {
                Ed25519KeyPair::from_pkcs8(private_pkcs8).map(Box::new).map(Self::Ed25519).map_err(refused)
            }
        }
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(_) => Algorithm::Rsa,
            Self::Ed25519(_) => Algorithm::Ed25519,
        }
    }

    /// The content of `p=`: for RSA a SubjectPublicKeyInfo, as everyone publishes it (RFC 6376, erratum
    /// 3017); for Ed25519 the bare 32 octets.
    fn public(&self) -> Option<Vec<u8>> {
        match self {
            Self::Rsa(pair) => {
                let der = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key()).ok()?;
                Some(der.as_ref().to_vec())
            }
            Self::Ed25519(pair) => Some(pair.public_key().as_ref().to_vec()),
        }
    }

    /// Signs a SHA-256 digest. For Ed25519 the digest is the message (RFC 8463, 3).
    pub(super) fn sign(&self, digest: &Digest) -> Result<Vec<u8>, DkimError> {
        let failed = |_| DkimError::Sign(self.algorithm());
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign_digest(&RSA_PKCS1_SHA256, digest, &mut signature).map_err(failed)?;
                Ok(signature)
            }
            Self::Ed25519(pair) => Ok(pair.try_sign(digest.as_ref()).map_err(failed)?.as_ref().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    /// The public half of a private key.
    fn public_key(algorithm: Algorithm, private_pkcs8: &[u8]) -> Result<Vec<u8>, DkimError> {
        DkimKeyPair::read(algorithm, private_pkcs8)?.public().ok_or(DkimError::Key(algorithm))
    }

    #[test]
    fn a_key_read_back_has_the_same_public_half() {
        for algorithm in [Algorithm::Rsa, Algorithm::Ed25519] {
            let key = generate(algorithm).unwrap();
            assert_eq!(public_key(algorithm, key.private_pkcs8.expose_secret()).unwrap(), key.public);
            assert!(!format!("{key:?}").contains("private_pkcs8: ["));
        }
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        let key = generate(Algorithm::Ed25519).unwrap();
        let refused = public_key(Algorithm::Rsa, key.private_pkcs8.expose_secret());
        assert_eq!(refused, Err(DkimError::Key(Algorithm::Rsa)));
        assert_eq!(public_key(Algorithm::Ed25519, b"pkcs8?"), Err(DkimError::Key(Algorithm::Ed25519)));
    }
}
