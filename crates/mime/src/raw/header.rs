//! The header of ready-made mail, field by field, for code that writes it out again.
//!
//! All code for ready-made mail reads the header through this module, so all of it sees the same fields: a
//! `Bcc` behind a bare CR, with a space before its colon, or after a line of white space is a `Bcc`. A
//! well-formed field is written back byte for byte.

use std::collections::HashSet;

use memchr::memchr;
use postway_domain::address::AddressError;

use crate::{
    compose::MailIdError,
    reader::unfold,
    wire::lines::{LINE_OCTETS_MAX, TextLines, write_wrapped},
};

/// The longest header block that is read.
pub(crate) const HEADER_BLOCK_OCTETS_MAX: usize = 256 * 1024;
/// The longest name of a field: a line is broken behind the colon at the earliest, never inside the name.
const FIELD_NAME_OCTETS_MAX: usize = 900;
/// The longest Message-ID that is kept, without its brackets.
pub(crate) const MESSAGE_ID_OCTETS_MAX: usize = 512;

/// The loop mark of a forwarded mail: one field for each mailbox that it was forwarded from.
pub const LOOP_MARK_FIELD: &str = "X-Postway-Forwarded";
/// The length of a mark: 16 octets of a keyed digest, in hex.
pub const LOOP_MARK_CHARS: usize = 32;

/// Whether a text has the form of a mark, of this gateway or another: the field may contain anything.
pub fn is_mark(text: &str) -> bool {
    text.len() == LOOP_MARK_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Why a ready-made mail cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    /// There is no header at all.
    #[error("the mail has no header: it must begin with fields such as \"From: …\" and a blank line")]
    NoHeader,
    /// A header line is neither a field nor the continuation of one.
    #[error("line {line} of the mail is no header field: a blank line must part header and body")]
    Malformed {
        /// The line number, from 1.
        line: usize,
    },
    /// The header is too long.
    #[error(
        "the header of the mail is longer than {HEADER_BLOCK_OCTETS_MAX} octets, as it is or once it is encoded"
    )]
    HeaderTooLong,
    /// The mail contains a NUL.
    #[error("line {line} of the mail contains a NUL character")]
    Nul {
        /// The line number, from 1.
        line: usize,
    },
    /// An address in the header is not valid.
    #[error("the {field} field of the mail has a bad address: {error}")]
    Address {
        /// The name of the field.
        field: &'static str,
        /// What is wrong with it.
        error: AddressError,
    },
    /// It cannot be sent on without a change to signed content.
    #[error("the mail is signed and no server may take it as it is")]
    Signed,
    /// The ids of the message cannot be written into a header.
    #[error(transparent)]
    Id(#[from] MailIdError),
}

/// One header field: its first line and its continuations, with their original line endings.
#[derive(Clone, Copy)]
pub(crate) struct RawField<'a> {
    pub(crate) name: &'a [u8],
    /// The text after the colon, up to the next field.
    pub(crate) value: &'a [u8],
}

impl<'a> RawField<'a> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    pub(crate) fn begins(&self, prefix: &str) -> bool {
        self.name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    }

    /// Whether it is a field of a gateway: an option, the id of the message, or a loop mark.
    pub(crate) fn is_ours(&self) -> bool {
        self.begins("X-Postway-")
    }

    /// Whether it is a loop mark.
    pub(crate) fn is_mark(&self) -> bool {
        self.is(LOOP_MARK_FIELD) && std::str::from_utf8(self.value).is_ok_and(|value| is_mark(value.trim()))
    }

    /// Whether it is somebody's signature over the mail.
    pub(crate) fn is_signature(&self) -> bool {
        self.is("DKIM-Signature") || self.is("ARC-Message-Signature") || self.is("ARC-Seal")
    }

    /// Whether none of its lines is too long for the wire.
    pub(crate) fn is_short(&self) -> bool {
        let mut room = LINE_OCTETS_MAX.saturating_sub(self.name.len() + 1);
        TextLines::new(self.value).all(|(line, _)| {
            let fits = line.len() <= room;
            room = LINE_OCTETS_MAX;
            fits
        })
    }

    /// Writes the field without folding it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name);
        out.push(b':');
        // A continuation of white space alone has no meaning, and some readers take it for the end of the
        // header.
        for (index, (line, _)) in TextLines::new(self.value).enumerate() {
            if index > 0 && is_blank(line) {
                continue;
            }
            if index > 0 {
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(line);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the field with long lines folded, at white space if there is some.
    pub(crate) fn write_folded(&self, out: &mut Vec<u8>) {
        if self.is_short() {
            return self.write(out);
        }
        let mut whole = Vec::with_capacity(self.name.len() + self.value.len() + 3);
        self.write(&mut whole);
        for (line, _) in TextLines::new(&whole) {
            write_wrapped(line, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// A header and the body behind it.
pub(crate) struct RawHeader<'a> {
    pub(crate) fields: Vec<RawField<'a>>,
    pub(crate) body: &'a [u8],
    /// Why it did not end at a blank line: there is no header, or a line is not a field. The body begins at
    /// that line.
    pub(crate) fault: Option<RawError>,
}

impl<'a> RawHeader<'a> {
    /// Separates header fields and body. Refuses NUL and a header that is too long.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, RawError> {
        if let Some(at) = memchr(0, bytes) {
            return Err(RawError::Nul { line: TextLines::new(&bytes[..=at]).count() });
        }
        let mut lines = TextLines::new(bytes);
        let mut fields: Vec<RawField<'a>> = Vec::new();
        // The offset at which the value of the current field begins.
        let mut value_start = 0;
        let mut number = 0;
        loop {
            let start = bytes.len() - lines.rest().len();
            let next = lines.next();
            number += 1;
            if start > HEADER_BLOCK_OCTETS_MAX {
                return Err(RawError::HeaderTooLong);
            }
            let continues = matches!(next, Some(([b' ' | b'\t', ..], _)));
            if continues && !fields.is_empty() {
                continue;
            }
            if let Some(field) = fields.last_mut() {
                field.value = &bytes[value_start..start];
            }
            match next {
                None | Some(([], _)) => {
                    let fault = fields.is_empty().then_some(RawError::NoHeader);
                    return Ok(Self { fields, body: lines.rest(), fault });
                }
                // The envelope line of an mbox file is not part of the mail.
                Some((line, _)) if number == 1 && line.starts_with(b"From ") => {}
                Some((line, _)) => match field_name(line) {
                    Some((name, colon)) => {
                        value_start = start + colon + 1;
                        fields.push(RawField { name, value: &[] });
                    }
                    None => {
                        let fault = Some(RawError::Malformed { line: number });
                        return Ok(Self { fields, body: &bytes[start..], fault });
                    }
                },
            }
        }
    }

    /// Reads a header that must be complete.
    pub(crate) fn read_whole(bytes: &'a [u8]) -> Result<Self, RawError> {
        let header = Self::read(bytes)?;
        match &header.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(header),
        }
    }

    /// The first field of that name.
    pub(crate) fn first(&self, name: &str) -> Option<&RawField<'a>> {
        self.fields.iter().find(|field| field.is(name))
    }

    /// The number of fields of that name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.fields.iter().filter(|field| field.is(name)).count()
    }

    /// The Message-ID without its brackets, if there is exactly one and it is valid.
    pub(crate) fn message_id(&self) -> Option<&'a str> {
        let mut ids = self.fields.iter().filter(|field| field.is("Message-ID"));
        let (field, None) = (ids.next()?, ids.next()) else { return None };
        let id = field.value.trim_ascii().strip_prefix(b"<")?.strip_suffix(b">")?;
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>');
        let at = memchr(b'@', id)?;
        let is_whole = at > 0 && at + 1 < id.len() && id.len() <= MESSAGE_ID_OCTETS_MAX;
        let fits = is_whole && field.is_short() && id.iter().all(is_plain);
        fits.then(|| std::str::from_utf8(id).ok())?
    }

    /// The fields that are covered by signatures in the mail.
    pub(crate) fn signed(&self) -> SignedFields {
        let mut signed = SignedFields::default();
        for field in self.fields.iter().filter(|field| field.is_signature()) {
            signed.is_signed = true;
            let value = unfold(field.value);
            let tags = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            for names in tags.filter_map(|tag| tag.strip_prefix(b"h")) {
                let Some(names) = names.trim_ascii_start().strip_prefix(b"=") else { continue };
                let names = names.split(|byte| *byte == b':').map(<[u8]>::trim_ascii);
                signed.names.extend(names.map(<[u8]>::to_ascii_lowercase));
            }
        }
        signed
    }
}

/// What the signatures in a mail cover.
#[derive(Default)]
pub(crate) struct SignedFields {
    /// Whether there is a signature. It covers the body as well.
    pub(crate) is_signed: bool,
    names: HashSet<Vec<u8>>,
}

impl SignedFields {
    /// Whether a field of that name, or its absence, is signed.
    pub(crate) fn cover(&self, name: &[u8]) -> bool {
        !self.names.is_empty() && self.names.contains(&name.to_ascii_lowercase())
    }
}

fn field_name(line: &[u8]) -> Option<(&[u8], usize)> {
    let colon = memchr(b':', line)?;
    let name = line[..colon].trim_ascii_end();
    let is_name = (1..=FIELD_NAME_OCTETS_MAX).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic);
    is_name.then_some((name, colon))
}
