//! DKIM (RFC 6376, RFC 8463): keys, the DNS records that publish them, and signatures. It signs and does not
//! verify.
//!
//! A [`DkimSigner`] is made once per key and shared. [`DkimSigner::sign`] reads a finished message and
//! returns the `DKIM-Signature` field to put in front of it; the message itself is neither changed nor
//! copied. Header and body are canonicalised as `relaxed`, which survives the changes that relays make to
//! white space.
//!
//! Every field that a mail program shows is signed, and the most important ones once more than they occur, so
//! that a second `From` or `Subject` added in transit breaks the signature. Two keys make two signatures: a
//! signature does not cover other signatures, so their order does not matter.
//!
//! Signing fails if the signature would not last: for a message without `From`, a malformed header, or a bare
//! CR or LF, which some relay would change. Only [`generate`] uses randomness.

mod canonical;
mod key;
mod record;
mod sign;

pub use key::{GeneratedKey, generate};
pub use postway_domain::dkim_key::DkimAlgorithm as Algorithm;
pub use record::{check_names, dns_name, dns_record};
pub use sign::DkimSigner;

/// Why a key cannot be used or a message cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DkimError {
    /// The domain is not a valid DNS name.
    #[error(
        "domain {0:?} cannot sign: give a host name in ASCII, such as example.com or xn--bcher-kva.example"
    )]
    Domain(String),
    /// The selector is not a valid DNS name.
    #[error("selector {0:?} is not valid: use letters, digits and hyphens, such as postway1")]
    Selector(String),
    /// The private key cannot be read.
    #[error("the private key is no {} key in PKCS #8 that can be used: RSA keys have 2048 to 4096 bits", .0.as_str())]
    Key(Algorithm),
    /// The key could not be made.
    #[error("a {} key could not be made", .0.as_str())]
    Generate(Algorithm),
    /// The signature could not be computed.
    #[error("the {} signature could not be made", .0.as_str())]
    Sign(Algorithm),
    /// The header has a line that is not a field.
    #[error("the message to sign has a header line that is no field, at octet {at}")]
    Header {
        /// The offset at which that line begins.
        at: usize,
    },
    /// The message has no author.
    #[error("the message to sign has no From field: add one")]
    NoFrom,
    /// A CR without an LF, or an LF without a CR.
    #[error("the message to sign has a bare CR or LF at octet {at}: end its lines with CRLF")]
    LineBreak {
        /// Its offset.
        at: usize,
    },
}
