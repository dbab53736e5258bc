//! Prepares mail for a relay that lacks an extension that the mail needs.
//!
//! A header in UTF-8 needs SMTPUTF8, and a body with octets beyond ASCII needs 8BITMIME (RFC 6152). If the
//! relay lacks them, header text becomes encoded words and body parts are encoded. A body with a DKIM
//! signature, and a signed part, are not changed: most relays accept them anyway, and encoding would
//! certainly break the signature. The header is encoded even then, because the relay would not accept the
//! mail otherwise.

use super::{
    ascii_header::write_in_ascii,
    header::RawHeader,
    recode::{UnwantedOctets, recode},
};
use crate::reader::ReadMail;

/// The extensions that a relay does not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayLacks {
    /// 8BITMIME.
    pub eight_bit_mime: bool,
    /// SMTPUTF8.
    pub smtputf8: bool,
}

/// A mail that was changed for such a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DowngradedMail {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it still has octets beyond ASCII.
    pub eight_bit: bool,
    /// Whether its header still has such octets, for example in an address.
    pub smtputf8: bool,
    /// Whether its header was changed.
    pub header_encoded: bool,
    /// Whether its body was changed.
    pub body_encoded: bool,
}

/// Changes a mail so that the relay can accept it; `None` if nothing can be changed. The lines of the mail
/// end with CR LF.
pub fn downgrade(mail: &[u8], lacks: RelayLacks) -> Option<DowngradedMail> {
    let header = RawHeader::read(mail).ok()?;
    let is_signed = header.signed().is_signed;
    let header_end = mail.len() - header.body.len();
    let encode_header = lacks.smtputf8 && !mail[..header_end].is_ascii();
    let mut bytes = Vec::new();
    if encode_header {
        let charset = charset(mail);
        bytes.reserve(mail.len() + mail.len() / 8);
        for field in &header.fields {
            write_in_ascii(field, charset.as_deref(), &mut bytes);
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(header.body);
    }
    let body_start = if encode_header { bytes.len() - header.body.len() } else { header_end };
    let mut body_encoded = false;
    if lacks.eight_bit_mime && !is_signed && !header.body.is_ascii() {
        let unwanted = UnwantedOctets { eight_bit: true, long_lines: false };
        let recoded = recode(if encode_header { &bytes } else { mail }, unwanted);
        body_encoded = recoded.is_encoded;
        if body_encoded {
            bytes = recoded.bytes;
        }
    }
    if !encode_header && !body_encoded {
        return None;
    }
    let header_end = if body_encoded {
        RawHeader::read(&bytes).map_or(0, |header| bytes.len() - header.body.len())
    } else {
        body_start
    };
    Some(DowngradedMail {
        eight_bit: !bytes.is_ascii(),
        smtputf8: !bytes[..header_end].is_ascii(),
        header_encoded: encode_header,
        body_encoded,
        bytes,
    })
}

/// The charset of the mail's text. Its header most likely has the same.
pub(crate) fn charset(mail: &[u8]) -> Option<Vec<u8>> {
    let read = ReadMail::read(mail);
    let of_part = |part: crate::reader::MailPart<'_, '_>| {
        let charset = part.content_type()?.parameter("charset")?.into_owned();
        let is_other = !charset.eq_ignore_ascii_case(b"utf-8") && !charset.eq_ignore_ascii_case(b"us-ascii");
        is_other.then_some(charset)
    };
    read.parts().find_map(of_part)
}
