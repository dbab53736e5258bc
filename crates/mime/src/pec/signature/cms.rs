//! CMS signed data (RFC 5652): the signers, their certificates, and the content if it is included.
//!
//! Signed attributes are required: without them a signature over content could be one over attributes in
//! disguise.

use std::borrow::Cow;

use jiff::{civil::DateTime, tz::Offset};
use postway_domain::Time;

use super::asn1::{Asn1Reader, INTEGER, MalformedAsn1, OCTET_STRING, OID, SEQUENCE, SET, context};

/// The maximum number of certificates of one signature that are read.
const CERTIFICATES_MAX: usize = 32;
const SIGNERS_MAX: usize = 4;

const SIGNED_DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 2];
const CONTENT_TYPE: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 9, 3];
const MESSAGE_DIGEST: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 9, 4];
const SIGNING_TIME: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 9, 5];
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A `SignedData`.
pub(super) struct SignedData<'a> {
    /// The content, if it is not detached.
    pub(super) content: Option<Cow<'a, [u8]>>,
    /// The included certificates, as DER.
    pub(super) certificates: Vec<&'a [u8]>,
    pub(super) signers: Vec<CmsSignerInfo<'a>>,
}

/// One `SignerInfo`.
pub(super) struct CmsSignerInfo<'a> {
    pub(super) id: CmsSignerId<'a>,
    pub(super) digest_algorithm: &'a [u8],
    pub(super) signature_algorithm: &'a [u8],
    /// The digest in the parameters of RSASSA-PSS.
    pub(super) pss_digest: Option<&'a [u8]>,
    pub(super) signature: Cow<'a, [u8]>,
    pub(super) attributes: Option<SignedAttributes<'a>>,
}

/// How a signer names its certificate.
pub(super) enum CmsSignerId<'a> {
    IssuerAndSerial(&'a [u8], &'a [u8]),
    KeyIdentifier(&'a [u8]),
}

/// The signed attributes.
pub(super) struct SignedAttributes<'a> {
    /// The bytes that the signature covers: the attributes as a SET.
    pub(super) signed: Vec<u8>,
    pub(super) digest: &'a [u8],
    pub(super) signed_at: Option<Time>,
}

/// Reads a `ContentInfo`; `None` if its content is not signed data.
pub(super) fn read(bytes: &[u8]) -> Result<Option<SignedData<'_>>, MalformedAsn1> {
    let mut info = Asn1Reader::new(bytes).expect(SEQUENCE)?.open();
    if info.expect(OID)?.content != SIGNED_DATA {
        return Ok(None);
    }
    let mut data = info.expect(context(0))?.open().expect(SEQUENCE)?.open();
    data.expect(INTEGER)?;
    data.expect(SET)?;
    let mut inner = data.expect(SEQUENCE)?.open();
    let content_type = inner.expect(OID)?.content;
    let content = match inner.optional(context(0))? {
        Some(explicit) => Some(explicit.open().octet_string()?.octets()?),
        None => None,
    };
    let mut certificates = Vec::new();
    if let Some(bag) = data.optional(context(0))? {
        let mut bag = bag.open();
        while let Some(one) = bag.next()? {
            if one.tag == SEQUENCE && certificates.len() < CERTIFICATES_MAX {
                certificates.push(one.whole);
            }
        }
    }
    data.optional(context(1))?;
    let mut infos = data.expect(SET)?.open();
    let mut signers = Vec::new();
    while let (Some(info), true) = (infos.next()?, signers.len() < SIGNERS_MAX) {
        signers.push(signer(info.open(), content_type)?);
    }
    Ok(Some(SignedData { content, certificates, signers }))
}

fn signer<'a>(mut info: Asn1Reader<'a>, content_type: &[u8]) -> Result<CmsSignerInfo<'a>, MalformedAsn1> {
    info.expect(INTEGER)?;
    let named = info.next()?.ok_or(MalformedAsn1)?;
    let id = match named.tag {
        SEQUENCE => {
            let mut fields = named.open();
            CmsSignerId::IssuerAndSerial(fields.expect(SEQUENCE)?.content, fields.expect(INTEGER)?.content)
        }
        // `[0]`, implicitly an octet string.
        0x80 => CmsSignerId::KeyIdentifier(named.content),
        _ => return Err(MalformedAsn1),
    };
    let digest_algorithm = info.expect(SEQUENCE)?.open().expect(OID)?.content;
    let attributes = match info.optional(context(0))? {
        Some(set) => Some(attributes(set.content, content_type)?),
        None => None,
    };
    let mut algorithm = info.expect(SEQUENCE)?.open();
    let signature_algorithm = algorithm.expect(OID)?.content;
    let pss_digest = pss_digest(algorithm);
    let signature = info.octet_string()?.octets()?;
    Ok(CmsSignerInfo { id, digest_algorithm, signature_algorithm, pss_digest, signature, attributes })
}

/// The `hashAlgorithm` of RSASSA-PSS parameters (RFC 4055).
fn pss_digest(mut algorithm: Asn1Reader<'_>) -> Option<&[u8]> {
    let mut parameters = algorithm.optional(SEQUENCE).ok()??.open();
    let hash = parameters.optional(context(0)).ok()??.open().expect(SEQUENCE).ok()?;
    hash.open().expect(OID).ok().map(|id| id.content)
}

fn attributes<'a>(content: &'a [u8], content_type: &[u8]) -> Result<SignedAttributes<'a>, MalformedAsn1> {
    let (mut digest, mut kind, mut signed_at) = (None, None, None);
    let mut attributes = Asn1Reader::new(content);
    while let Some(attribute) = attributes.next()? {
        let mut fields = attribute.open();
        let id = fields.expect(OID)?.content;
        let mut values = fields.expect(SET)?.open();
        match id {
            MESSAGE_DIGEST => once(&mut digest, values.expect(OCTET_STRING)?.content)?,
            CONTENT_TYPE => once(&mut kind, values.expect(OID)?.content)?,
            SIGNING_TIME => {
                let time = values.next()?.ok_or(MalformedAsn1)?;
                once(&mut signed_at, signing_time(time.tag, time.content).ok_or(MalformedAsn1)?)?;
            }
            _ => {}
        }
    }
    if kind != Some(content_type) {
        return Err(MalformedAsn1);
    }
    Ok(SignedAttributes { signed: as_set(content)?, digest: digest.ok_or(MalformedAsn1)?, signed_at })
}

/// Stores an attribute, which may occur only once (RFC 5652, 11).
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), MalformedAsn1> {
    if slot.replace(value).is_some() { Err(MalformedAsn1) } else { Ok(()) }
}

/// The attributes are stored as `[0]` and signed as a SET with a definite length.
fn as_set(content: &[u8]) -> Result<Vec<u8>, MalformedAsn1> {
    let length = u32::try_from(content.len()).map_err(|_| MalformedAsn1)?.to_be_bytes();
    let mut set = vec![SET];
    match length {
        [0, 0, 0, short] if short < 0x80 => set.push(short),
        _ => {
            let digits = &length[length.iter().take_while(|digit| **digit == 0).count()..];
            set.push(0x80 | digits.len() as u8);
            set.extend_from_slice(digits);
        }
    }
    set.extend_from_slice(content);
    Ok(set)
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn signing_time(tag: u8, content: &[u8]) -> Option<Time> {
    let digits = content.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |from: usize, to: usize| str::from_utf8(digits.get(from..to)?).ok()?.parse::<i16>().ok();
    let (year, rest) = match (tag, digits.len()) {
        // Two-digit years are from 1950 to 2049 (RFC 5652, 11.3).
        (UTC_TIME, 12) => (number(0, 2)? + if number(0, 2)? < 50 { 2000 } else { 1900 }, 2),
        (GENERALIZED_TIME, 14) => (number(0, 4)?, 4),
        _ => return None,
    };
    let small = |index: usize| i8::try_from(number(rest + 2 * index, rest + 2 * index + 2)?).ok();
    let at = DateTime::new(year, small(0)?, small(1)?, small(2)?, small(3)?, small(4)?, 0).ok()?;
    Some(Time::from_millis(Offset::UTC.to_timestamp(at).ok()?.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_two_and_of_four_digits_are_read() {
        assert_eq!(signing_time(UTC_TIME, b"240131235959Z").unwrap().to_string(), "2024-01-31T23:59:59.000Z");
        assert_eq!(signing_time(UTC_TIME, b"990131000000Z").unwrap().to_string(), "1999-01-31T00:00:00.000Z");
        assert_eq!(
            signing_time(GENERALIZED_TIME, b"20510131000000Z").unwrap().to_string(),
            "2051-01-31T00:00:00.000Z"
        );
        for bad in [&b"240131235959"[..], b"241331235959Z", b"2401312359Z", b"24013123595+Z", b"Z", b""] {
            assert_eq!(signing_time(UTC_TIME, bad), None);
        }
    }

    #[test]
    fn a_set_gets_the_shortest_length() {
        assert_eq!(as_set(&[7; 127]).unwrap()[..3], [0x31, 127, 7]);
        assert_eq!(as_set(&[7; 128]).unwrap()[..4], [0x31, 0x81, 128, 7]);
        assert_eq!(as_set(&[7; 256]).unwrap()[..5], [0x31, 0x82, 1, 0, 7]);
    }
}
