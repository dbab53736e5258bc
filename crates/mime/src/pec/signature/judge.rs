//! Verifies one signature: digest, key, address and chain, in this order. The reported reason is the first
//! check that fails.

use std::time::Duration;

use postway_domain::Time;
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use super::{
    SignatureDoubt, TrustStore,
    algorithm::{StrongHash, algorithms},
    certificate::SignerCertificate,
    cms::{CmsSignerId, CmsSignerInfo, SignedData},
};
use crate::wire::lines::write_crlf;

/// `id-kp-emailProtection`.
const EMAIL_PROTECTION: &[u8] = &[0x2B, 6, 1, 5, 5, 7, 3, 4];
/// How far a signer's clock may be ahead of ours.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 3600);
/// The maximum age of a signature that is verified at its own signing time.
const AGE_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The address of the first valid signer, or why the last one is not valid.
pub(super) fn judge(
    data: &SignedData<'_>,
    detached: Option<&[u8]>,
    author: Option<String>,
    trust: &TrustStore,
    at: Time,
) -> Result<String, SignatureDoubt> {
    let content = detached.or(data.content.as_deref()).ok_or(SignatureDoubt::NoContent)?;
    let author = author.ok_or(SignatureDoubt::NoAuthor)?;
    // An unreadable certificate is skipped; if it is needed, verification fails below.
    let certificates: Vec<_> =
        data.certificates.iter().filter_map(|der| SignerCertificate::read(der).ok()).collect();
    let mut last = SignatureDoubt::NoSigner;
    for signer in &data.signers {
        match judge_signer(signer, &certificates, content, &author, trust, at) {
            Ok(address) => return Ok(address),
            Err(doubt) => last = doubt,
        }
    }
    Err(last)
}

fn judge_signer(
    signer: &CmsSignerInfo<'_>,
    certificates: &[SignerCertificate<'_>],
    content: &[u8],
    author: &str,
    trust: &TrustStore,
    at: Time,
) -> Result<String, SignatureDoubt> {
    let attributes = signer.attributes.as_ref().ok_or(SignatureDoubt::NoAttributes)?;
    let named = |certificate: &&SignerCertificate<'_>| match signer.id {
        CmsSignerId::IssuerAndSerial(issuer, serial) => {
            certificate.issuer == issuer && certificate.serial == serial
        }
        CmsSignerId::KeyIdentifier(id) => certificate.key_identifier == Some(id),
    };
    let certificate = certificates.iter().find(named).ok_or(SignatureDoubt::NoCertificate)?;
    let hash = StrongHash::from_oid(signer.digest_algorithm)?;
    if !digest_fits(hash, content, attributes.digest) {
        return Err(SignatureDoubt::Changed);
    }
    let der = CertificateDer::from(certificate.der);
    let end_entity = EndEntityCert::try_from(&der).map_err(SignatureDoubt::Chain)?;
    let fits =
        |candidate| end_entity.verify_signature(candidate, &attributes.signed, &signer.signature).is_ok();
    if !algorithms(signer, hash)?.into_iter().any(fits) {
        return Err(SignatureDoubt::WrongSignature);
    }
    if !certificate.may_sign {
        return Err(SignatureDoubt::NotForSigning);
    }
    let address = certificate
        .addresses
        .iter()
        .find(|address| same_address(address, author))
        .ok_or(SignatureDoubt::OtherAuthor)?;
    if trust.is_empty() {
        return Err(SignatureDoubt::NoTrust);
    }
    let others: Vec<CertificateDer<'_>> =
        certificates.iter().map(|one| CertificateDer::from(one.der)).collect();
    let usage = KeyUsage::required_if_present(EMAIL_PROTECTION);
    let time = judged_at(attributes.signed_at, at);
    end_entity
        .verify_for_usage(webpki::ALL_VERIFICATION_ALGS, trust.anchors(), &others, time, usage, None, None)
        .map_err(|error| match error {
            webpki::Error::UnknownIssuer => SignatureDoubt::UnknownIssuer,
            webpki::Error::CertExpired { .. } | webpki::Error::CertNotValidYet { .. } => {
                SignatureDoubt::NotValidThen
            }
            other => SignatureDoubt::Chain(other),
        })?;
    Ok(address.clone())
}

/// The time at which the chain must be valid.
fn judged_at(signed_at: Option<Time>, at: Time) -> UnixTime {
    let plausible = at.minus(AGE_MAX)..=at.plus(AHEAD_MAX);
    let judged = signed_at.filter(|signed_at| plausible.contains(signed_at)).unwrap_or(at);
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(judged.as_seconds()).unwrap_or(0)))
}

/// Whether this is the digest of the content, either unchanged or with CRLF line endings.
fn digest_fits(hash: StrongHash, content: &[u8], expected: &[u8]) -> bool {
    if hash.digest(content).as_ref() == expected {
        return true;
    }
    let mut canonical = Vec::with_capacity(content.len() + content.len() / 32);
    write_crlf(content, &mut canonical);
    canonical != content && hash.digest(&canonical).as_ref() == expected
}

/// Whether both are the same mailbox: the local part exactly, the domain in any case.
fn same_address(one: &str, other: &str) -> bool {
    match (one.trim().rsplit_once('@'), other.trim().rsplit_once('@')) {
        (Some((local, domain)), Some((other_local, other_domain))) => {
            local == other_local && domain.eq_ignore_ascii_case(other_domain)
        }
        _ => false,
    }
}
