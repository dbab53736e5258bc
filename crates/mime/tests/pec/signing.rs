//! Makes certificates and CMS signatures byte by byte, so that each byte can be wrong.

use postway_mime::pec::TrustStore;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SigningKey, date_time_ymd,
};

use crate::support::{SIGNER, base, signed};

const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
pub const SHA1: &[u8] = &[0x2B, 0x0E, 3, 2, 0x1A];
const ECDSA_SHA256: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2];
pub const PKCS7: [u8; 7] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1];

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub der: Vec<u8>,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str, above: Option<&Authority>) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2040, 1, 1));
        let key = KeyPair::generate().unwrap();
        let made = match above {
            Some(above) => params.signed_by(&key, &above.issuer).unwrap(),
            None => params.self_signed(&key).unwrap(),
        };
        Self { der: made.der().to_vec(), pem: made.pem(), issuer: Issuer::new(params, key) }
    }

    pub fn trust(&self) -> TrustStore {
        TrustStore::from_pem(self.pem.as_bytes()).unwrap()
    }
}

/// The parts of a signature; each test makes one of them wrong.
pub struct Signing {
    pub certificate: Vec<u8>,
    pub key: KeyPair,
    pub further: Vec<Vec<u8>>,
    pub signed_at: Option<&'static str>,
    pub digest: &'static [u8],
    pub attributes: bool,
    pub further_attribute: Vec<u8>,
    pub opaque: bool,
    pub stream: bool,
}

impl Signing {
    pub fn by(authority: &Authority, adjust: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Gestore di prova");
        params.subject_alt_names = vec![SanType::Rfc822Name(SIGNER.try_into().unwrap())];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::ContentCommitment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
        (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        Self {
            certificate: params.signed_by(&key, &authority.issuer).unwrap().der().to_vec(),
            key,
            further: Vec::new(),
            signed_at: Some("260808003012Z"),
            digest: SHA256,
            attributes: true,
            further_attribute: Vec::new(),
            opaque: false,
            stream: false,
        }
    }

    pub fn sign(&self, content: &[u8]) -> Vec<u8> {
        let data = tlv(6, &[&PKCS7[..], &[7, 1]].concat());
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
        let mut attributes = [attribute(3, &data), attribute(4, &tlv(4, digest.as_ref()))].concat();
        attributes
            .extend(self.signed_at.map(|at| attribute(5, &tlv(0x17, at.as_bytes()))).unwrap_or_default());
        attributes.extend_from_slice(&self.further_attribute);
        let over = if self.attributes { tlv(0x31, &attributes) } else { content.to_vec() };
        let body = inside(&inside(&self.certificate)[0]);
        // Version, serial, algorithm, issuer.
        let named = tlv(0x30, &[&body[3][..], &body[1]].concat());
        let info = [
            tlv(2, &[1]),
            named,
            tlv(0x30, &tlv(6, self.digest)),
            if self.attributes { tlv(0xA0, &attributes) } else { Vec::new() },
            tlv(0x30, &tlv(6, ECDSA_SHA256)),
            tlv(4, &self.key.sign(&over).unwrap()),
        ];
        let outer =
            |tag, content: &[u8]| if self.stream { indefinite(tag, content) } else { tlv(tag, content) };
        let pieces = || outer(0x24, &content.chunks(100).flat_map(|piece| tlv(4, piece)).collect::<Vec<_>>());
        let inner = if self.opaque { outer(0xA0, &pieces()) } else { Vec::new() };
        let certificates = [self.certificate.clone(), self.further.concat()].concat();
        let signed_data = [
            tlv(2, &[1]),
            tlv(0x31, &tlv(0x30, &tlv(6, self.digest))),
            outer(0x30, &[data, inner].concat()),
            outer(0xA0, &certificates),
            outer(0x31, &tlv(0x30, &info.concat())),
        ];
        let signed_data = outer(0xA0, &outer(0x30, &signed_data.concat()));
        outer(0x30, &[tlv(6, &[&PKCS7[..], &[7, 2]].concat()), signed_data].concat())
    }

    pub fn mail(&self) -> Vec<u8> {
        let content = base().content();
        signed(&base().header(), &content, &self.sign(content.as_bytes()))
    }
}

pub fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let header = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [header, content.to_vec()].concat()
}

fn indefinite(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, 0x80][..], content, &[0, 0]].concat()
}

pub fn attribute(number: u8, value: &[u8]) -> Vec<u8> {
    tlv(0x30, &[tlv(6, &[&PKCS7[..], &[9, number]].concat()), tlv(0x31, value)].concat())
}

/// The values inside this one.
fn inside(whole: &[u8]) -> Vec<Vec<u8>> {
    let split = |bytes: &[u8]| match bytes[1] {
        0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
        0x81 => (3, usize::from(bytes[2])),
        short => (2, usize::from(short)),
    };
    let mut rest = &whole[split(whole).0..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (start, length) = split(rest);
        found.push(rest[..start + length].to_vec());
        rest = &rest[start + length..];
    }
    found
}
