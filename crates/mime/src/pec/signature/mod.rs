//! S/MIME signatures of receipts (RFC 8551): who signed, and whether the signature is valid.
//!
//! A signature is verified if all of these hold, and otherwise unverified, with a reason:
//!
//! - It is `multipart/signed` with a PKCS #7 signature, or an opaque `application/pkcs7-mime`, of the whole
//!   mail. The content is verified unchanged or, if a store has changed its line endings, with CRLF.
//! - One of its signers has signed attributes, with the digest of the content: SHA-256, SHA-384 or SHA-512;
//!   with RSA of 2048 bits or more (PKCS #1, or PSS with a salt as long as the digest) or ECDSA on P-256,
//!   P-384 or P-521.
//! - That signer's certificate, which is included, names the address in `From` (exactly one field with one
//!   mailbox; the domain in any case), and its key may sign.
//! - The certificate chains to the trust store at the signing time that the signer states. If none is stated,
//!   or one later than `at` or more than ten years earlier, `at` is used.
//!
//! webpki verifies the chain. Its rules are made for TLS and apply here as follows: an extended key usage, if
//! present, must include e-mail protection, in authorities too; critical extensions must be known (key usage,
//! basic and name constraints, alternative names); an authority constrained to certain addresses is refused,
//! because such constraints are not read; a certificate that signs mail may not be an authority, unless it is
//! itself in the trust store. Revocation is not checked, because this crate does no I/O.

mod algorithm;
mod asn1;
mod certificate;
mod cms;
mod judge;
mod trust;

use std::borrow::Cow;

use postway_domain::Time;

pub use trust::{TrustError, TrustStore};

use super::part::PecPart;
use crate::reader::{MediaType, ReadMail};

/// The result of verifying the signature of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The mail is from the author in `From`, and unchanged.
    Verified {
        /// The address that the certificate names.
        signer: String,
    },
    /// It has a signature that is not valid or not trusted.
    Unverified {
        /// The reason.
        why: String,
    },
    /// It is not signed.
    Absent,
}

/// Why a signature is not verified.
#[derive(Debug, thiserror::Error)]
enum SignatureDoubt {
    #[error("the signature cannot be decoded or is not CMS")]
    Unreadable,
    #[error("the mail has more parts than are read before its signature")]
    TooMuch,
    #[error("the signature has no signer")]
    NoSigner,
    #[error("the signed content is missing")]
    NoContent,
    #[error("the signature has no signed attributes")]
    NoAttributes,
    #[error("the signer's certificate did not come along")]
    NoCertificate,
    #[error("{0} is too weak to prove anything")]
    Weak(&'static str),
    #[error("the signature uses an algorithm that is not known here")]
    UnknownAlgorithm,
    #[error("the content was changed after it was signed")]
    Changed,
    #[error("the signature does not fit the signer's key")]
    WrongSignature,
    #[error("the certificate's key is not meant to sign")]
    NotForSigning,
    #[error("the mail has no From with exactly one address")]
    NoAuthor,
    #[error("the certificate does not name the address in From")]
    OtherAuthor,
    #[error("there is no trust store: set one up with the certificates of the authorities")]
    NoTrust,
    #[error("the certificate's issuer is not in the trust store")]
    UnknownIssuer,
    #[error("the certificate was not valid when the mail was signed")]
    NotValidThen,
    #[error("the certificate chain was refused: {0}")]
    Chain(webpki::Error),
}

impl From<asn1::MalformedAsn1> for SignatureDoubt {
    fn from(_: asn1::MalformedAsn1) -> Self {
        Self::Unreadable
    }
}

/// Verifies the signature of a mail. `at` is when the mail was received.
pub fn verify(raw: &[u8], trust: &TrustStore, at: Time) -> SignatureCheck {
    let read = ReadMail::read(raw);
    let mail = PecPart::from_mail(&read);
    let judged = match find_signature(&read) {
        None => return SignatureCheck::Absent,
        Some(Err(doubt)) => Err(doubt),
        Some(Ok((bytes, content))) => match cms::read(&bytes) {
            Ok(None) => return SignatureCheck::Absent,
            Ok(Some(data)) => judge::judge(&data, content, mail.from(), trust, at),
            Err(malformed) => Err(malformed.into()),
        },
    };
    match judged {
        Ok(signer) => SignatureCheck::Verified { signer },
        Err(doubt) => SignatureCheck::Unverified { why: doubt.to_string() },
    }
}

/// The bytes that the signature of a mail covers, valid or not. [`verify`] verifies the same bytes.
pub(super) fn signed_content<'a>(read: &ReadMail<'a>) -> Option<Cow<'a, [u8]>> {
    let (bytes, detached) = find_signature(read)?.ok()?;
    if let Some(content) = detached {
        return Some(Cow::Borrowed(content));
    }
    Some(Cow::Owned(cms::read(&bytes).ok()??.content?.into_owned()))
}

fn is_opaque(media: MediaType<'_>) -> bool {
    media.is("application", "pkcs7-mime") || media.is("application", "x-pkcs7-mime")
}

/// The CMS bytes and, if detached, the signed content. `None` if the mail has no PKCS #7 signature.
#[expect(clippy::type_complexity, reason = "used once, and the parts have names where they are taken")]
fn find_signature<'a>(
    read: &ReadMail<'a>,
) -> Option<Result<(Cow<'a, [u8]>, Option<&'a [u8]>), SignatureDoubt>> {
    let mail = PecPart::from_mail(read);
    if is_opaque(mail.media_type()) {
        return Some(mail.decoded().map(|bytes| (bytes, None)).ok_or(SignatureDoubt::Unreadable));
    }
    if !mail.media_type().is("multipart", "signed") {
        return None;
    }
    let mut children = mail.children();
    let (Some(content), Some(signature)) = (children.next(), children.next()) else {
        // The signature may be beyond a limit of the reader.
        return (!read.passed().is_empty()).then_some(Err(SignatureDoubt::TooMuch));
    };
    let media = signature.media_type();
    if !media.is("application", "pkcs7-signature") && !media.is("application", "x-pkcs7-signature") {
        return None;
    }
    let content = content.signed_bytes();
    Some(signature.decoded().map(|bytes| (bytes, Some(content))).ok_or(SignatureDoubt::Unreadable))
}
