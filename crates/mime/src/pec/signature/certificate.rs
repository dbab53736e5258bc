//! Reads what is needed of a certificate besides its chain: issuer, addresses, and key usage.

use super::asn1::{Asn1Element, Asn1Reader, BIT_STRING, INTEGER, MalformedAsn1, OID, SEQUENCE, SET, context};

/// `emailAddress` of a subject (PKCS #9).
const EMAIL_ADDRESS: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 9, 1];
const SUBJECT_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1D, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1D, 15];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1D, 17];
/// `rfc822Name` of a subject's alternative name.
const RFC822_NAME: u8 = 0x81;
/// digitalSignature and nonRepudiation.
const SIGNING_BITS: u8 = 0xC0;

/// A certificate of a signature's bag.
pub(super) struct SignerCertificate<'a> {
    pub(super) der: &'a [u8],
    pub(super) issuer: &'a [u8],
    pub(super) serial: &'a [u8],
    pub(super) key_identifier: Option<&'a [u8]>,
    /// Whether its key may sign mail; true if it does not say.
    pub(super) may_sign: bool,
    /// The e-mail addresses that it names.
    pub(super) addresses: Vec<String>,
}

impl<'a> SignerCertificate<'a> {
    pub(super) fn read(der: &'a [u8]) -> Result<Self, MalformedAsn1> {
        let mut body = Asn1Reader::new(der).expect(SEQUENCE)?.open().expect(SEQUENCE)?.open();
        body.optional(context(0))?;
        let serial = body.expect(INTEGER)?.content;
        body.expect(SEQUENCE)?;
        let issuer = body.expect(SEQUENCE)?.content;
        body.expect(SEQUENCE)?;
        let subject = body.expect(SEQUENCE)?;
        body.expect(SEQUENCE)?;
        let mut certificate =
            Self { der, issuer, serial, key_identifier: None, may_sign: true, addresses: Vec::new() };
        while let Some(field) = body.next()? {
            if field.tag == context(3) {
                let mut extensions = field.open().expect(SEQUENCE)?.open();
                while let Some(extension) = extensions.next()? {
                    certificate.take_extension(&extension)?;
                }
            }
        }
        certificate.take_subject(&subject)?;
        Ok(certificate)
    }

    fn take_extension(&mut self, extension: &Asn1Element<'a>) -> Result<(), MalformedAsn1> {
        let mut fields = extension.open();
        let id = fields.expect(OID)?.content;
        // An optional `critical`.
        fields.optional(0x01)?;
        let mut value = Asn1Reader::new(fields.expect(super::asn1::OCTET_STRING)?.content);
        match id {
            SUBJECT_KEY_IDENTIFIER => {
                self.key_identifier = Some(value.expect(super::asn1::OCTET_STRING)?.content);
            }
            KEY_USAGE => {
                // The first byte counts unused bits; the purposes begin at the top of the next.
                let bits = value.expect(BIT_STRING)?.content.get(1).copied().unwrap_or(0);
                self.may_sign = bits & SIGNING_BITS != 0;
            }
            SUBJECT_ALT_NAME => {
                let mut names = value.expect(SEQUENCE)?.open();
                while let Some(name) = names.next()? {
                    if name.tag == RFC822_NAME {
                        self.take_address(name.content);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take_subject(&mut self, subject: &Asn1Element<'a>) -> Result<(), MalformedAsn1> {
        let mut sets = subject.open();
        while let Some(set) = sets.optional(SET)? {
            let mut attributes = set.open();
            while let Some(attribute) = attributes.optional(SEQUENCE)? {
                let mut fields = attribute.open();
                if fields.expect(OID)?.content == EMAIL_ADDRESS {
                    self.take_address(fields.next()?.ok_or(MalformedAsn1)?.content);
                }
            }
        }
        Ok(())
    }

    fn take_address(&mut self, bytes: &[u8]) {
        if let Ok(address) = str::from_utf8(bytes) {
            self.addresses.push(address.to_owned());
        }
    }
}
