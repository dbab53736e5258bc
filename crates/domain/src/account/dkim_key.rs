//! A tenant's keys for signing mail, one or more per domain.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{id::TenantId, secret::SealedSecret},
    time::Time,
};

/// The algorithm of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DkimAlgorithm {
    /// `rsa-sha256` with 2,048 bits.
    Rsa = 1,
    /// `ed25519-sha256`.
    Ed25519 = 2,
}

impl DkimAlgorithm {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Rsa, Self::Ed25519];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rsa => "rsa",
            Self::Ed25519 => "ed25519",
        }
    }

    /// The code that a store keeps.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The value of a code that a store keeps.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.code() == code)
    }
}

/// A signing key. All active keys of the author's domain sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DkimKey {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The domain, in lower case.
    pub domain: String,
    /// The selector: under `selector._domainkey.domain` the public key is published.
    pub selector: String,
    /// The algorithm.
    pub algorithm: DkimAlgorithm,
    /// The private key (PKCS #8 in base64), encrypted.
    pub private: SealedSecret,
    /// The public key as it is published, in base64.
    pub public: String,
    /// Whether it signs.
    pub active: bool,
    /// When it was created.
    pub created_at: Time,
}

impl DkimKey {
    /// The context that its private key is sealed for.
    pub fn sealing_context(tenant: &TenantId, domain: &str, selector: &str) -> String {
        format!("dkim/{tenant}/{domain}/{selector}")
    }
}
