//! The algorithms that are strong enough, by their object identifiers.

use aws_lc_rs::digest;
use rustls_pki_types::SignatureVerificationAlgorithm;
use webpki::aws_lc_rs as known;

use super::{SignatureDoubt, cms::CmsSignerInfo};

/// A digest that is strong enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StrongHash {
    Sha256,
    Sha384,
    Sha512,
}

impl StrongHash {
    pub(super) fn from_oid(id: &[u8]) -> Result<Self, SignatureDoubt> {
        match id {
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => Ok(Self::Sha256),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Ok(Self::Sha384),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Ok(Self::Sha512),
            [0x2B, 0x0E, 3, 2, 0x1A] => Err(SignatureDoubt::Weak("SHA-1")),
            [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 2, 5] => Err(SignatureDoubt::Weak("MD5")),
            _ => Err(SignatureDoubt::UnknownAlgorithm),
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

/// The algorithms that can verify a signature of this kind; webpki selects the one for the key.
pub(super) fn algorithms(
    signer: &CmsSignerInfo<'_>,
    hash: StrongHash,
) -> Result<Vec<&'static dyn SignatureVerificationAlgorithm>, SignatureDoubt> {
    match signer.signature_algorithm {
        // PKCS #1. If it names no digest, that of the attributes is used.
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, last] => match last {
            1 => Ok(pkcs1(hash)),
            4 => Err(SignatureDoubt::Weak("MD5")),
            5 => Err(SignatureDoubt::Weak("SHA-1")),
            10 => pss(signer.pss_digest),
            11 => Ok(pkcs1(StrongHash::Sha256)),
            12 => Ok(pkcs1(StrongHash::Sha384)),
            13 => Ok(pkcs1(StrongHash::Sha512)),
            _ => Err(SignatureDoubt::UnknownAlgorithm),
        },
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 1] => Err(SignatureDoubt::Weak("SHA-1")),
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, last] => match last {
            2 => Ok(vec![known::ECDSA_P256_SHA256, known::ECDSA_P384_SHA256, known::ECDSA_P521_SHA256]),
            3 => Ok(vec![known::ECDSA_P256_SHA384, known::ECDSA_P384_SHA384, known::ECDSA_P521_SHA384]),
            4 => Ok(vec![known::ECDSA_P256_SHA512, known::ECDSA_P384_SHA512, known::ECDSA_P521_SHA512]),
            _ => Err(SignatureDoubt::UnknownAlgorithm),
        },
        _ => Err(SignatureDoubt::UnknownAlgorithm),
    }
}

fn pkcs1(hash: StrongHash) -> Vec<&'static dyn SignatureVerificationAlgorithm> {
    vec![match hash {
        StrongHash::Sha256 => known::RSA_PKCS1_2048_8192_SHA256,
        StrongHash::Sha384 => known::RSA_PKCS1_2048_8192_SHA384,
        StrongHash::Sha512 => known::RSA_PKCS1_2048_8192_SHA512,
    }]
}

fn pss(digest: Option<&[u8]>) -> Result<Vec<&'static dyn SignatureVerificationAlgorithm>, SignatureDoubt> {
    // Parameters that do not name a digest mean SHA-1 (RFC 4055, 3.1).
    Ok(vec![match StrongHash::from_oid(digest.ok_or(SignatureDoubt::Weak("SHA-1"))?)? {
        StrongHash::Sha256 => known::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
        StrongHash::Sha384 => known::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
        StrongHash::Sha512 => known::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
    }])
}
