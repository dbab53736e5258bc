//! The algorithms that prove something, by their object identifiers.

use aws_lc_rs::digest;
use rustls_pki_types::SignatureVerificationAlgorithm;
use webpki::aws_lc_rs as known;

use super::{Doubt, cms::Signer};

/// A digest that is strong enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub(super) fn of(id: &[u8]) -> Result<Self, Doubt> {
        match id {
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => Ok(Self::Sha256),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Ok(Self::Sha384),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Ok(Self::Sha512),
            [0x2B, 0x0E, 3, 2, 0x1A] => Err(Doubt::Weak("SHA-1")),
            [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 2, 5] => Err(Doubt::Weak("MD5")),
            _ => Err(Doubt::UnknownAlgorithm),
        }
    }

    pub(super) fn digest(self, bytes: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes)
    }
}

/// The ways to check a signature of this kind; webpki tells which of them is for the key at hand.
pub(super) fn algorithms(
    signer: &Signer<'_>,
    hash: Hash,
) -> Result<Vec<&'static dyn SignatureVerificationAlgorithm>, Doubt> {
    match signer.signature_algorithm {
        // PKCS #1; without a digest of its own, the one of the attributes counts.
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, last] => match last {
            1 => Ok(pkcs1(hash)),
            4 => Err(Doubt::Weak("MD5")),
            5 => Err(Doubt::Weak("SHA-1")),
            10 => pss(signer.pss_digest),
            11 => Ok(pkcs1(Hash::Sha256)),
            12 => Ok(pkcs1(Hash::Sha384)),
            13 => Ok(pkcs1(Hash::Sha512)),
            _ => Err(Doubt::UnknownAlgorithm),
        },
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 1] => Err(Doubt::Weak("SHA-1")),
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, last] => match last {
            2 => Ok(vec![known::ECDSA_P256_SHA256, known::ECDSA_P384_SHA256, known::ECDSA_P521_SHA256]),
            3 => Ok(vec![known::ECDSA_P256_SHA384, known::ECDSA_P384_SHA384, known::ECDSA_P521_SHA384]),
            4 => Ok(vec![known::ECDSA_P256_SHA512, known::ECDSA_P384_SHA512, known::ECDSA_P521_SHA512]),
            _ => Err(Doubt::UnknownAlgorithm),
        },
        _ => Err(Doubt::UnknownAlgorithm),
    }
}

fn pkcs1(hash: Hash) -> Vec<&'static dyn SignatureVerificationAlgorithm> {
    vec![match hash {
        Hash::Sha256 => known::RSA_PKCS1_2048_8192_SHA256,
        Hash::Sha384 => known::RSA_PKCS1_2048_8192_SHA384,
        Hash::Sha512 => known::RSA_PKCS1_2048_8192_SHA512,
    }]
}

fn pss(digest: Option<&[u8]>) -> Result<Vec<&'static dyn SignatureVerificationAlgorithm>, Doubt> {
    // Parameters that do not name a digest mean SHA-1 (RFC 4055, 3.1).
    Ok(vec![match Hash::of(digest.ok_or(Doubt::Weak("SHA-1"))?)? {
        Hash::Sha256 => known::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
        Hash::Sha384 => known::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
        Hash::Sha512 => known::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
    }])
}
