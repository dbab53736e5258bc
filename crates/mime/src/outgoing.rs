//! Ready-made mail, as handed in by `postway send --eml` or raw submission.
//!
//! [`inspect_raw`] reads the recipients and the subject and refuses what no server would take: no header, a
//! header over 256 KiB, lines over 998 octets, NUL. [`finish_raw`] makes the mail ours: CRLF everywhere, `Bcc` and
//! `Return-Path` gone, our Message-ID (the user's is kept in `X-Original-Message-ID`) and `X-Postway-ID`, and
//! `Date` and `MIME-Version` where they were missing. The body is not touched but for its line endings. Of all other
//! `X-Postway-…` fields only marks against loops stay ([`MARK_FIELD`]): another gateway may have made them.
//!
//! Both read the header through the same iterator, so nothing is hidden from one that the other sees: a `Bcc`
//! behind a bare CR, with a space before its colon or after a line of white space is a `Bcc`.

use std::net::IpAddr;

use mail_builder::headers::date::Date;
use postway_domain::address::{AddressError, EmailAddress, Mailbox};

use crate::compose::{IdError, check_ids, write_own_fields};
use crate::lines::{LINE_OCTETS_MAX, Lines};
use crate::reader::{HeaderAddress, addresses, unstructured};

/// The field that marks a forwarded mail, once for each mailbox that it was forwarded from.
pub const MARK_FIELD: &str = "X-Postway-Forwarded";
/// How long a mark is: 16 octets of a keyed digest, in hex.
pub const MARK_CHARS: usize = 32;
/// How many marks a mail keeps. Far more than a mail may have and still be forwarded.
const MARKS_MAX: usize = 32;

/// Whether a text may be a mark, of whichever gateway: others may put anything into the field.
pub fn is_mark(text: &str) -> bool {
    text.len() == MARK_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The longest header block that is read.
const HEADER_BLOCK_OCTETS_MAX: usize = 256 * 1024;

/// What a ready-made mail says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawInfo {
    /// The first author.
    pub from: Option<Mailbox>,
    /// The recipients in `To`, groups dissolved.
    pub to: Vec<Mailbox>,
    /// The recipients in `Cc`.
    pub cc: Vec<Mailbox>,
    /// The recipients in `Bcc`, which will not be in the finished mail.
    pub bcc: Vec<Mailbox>,
    /// The subject, decoded.
    pub subject: Option<String>,
    /// Whether there is an octet over 127 in it, so that it needs 8BITMIME.
    pub eight_bit: bool,
    /// Whether there is one in its header, so that it needs SMTPUTF8.
    pub smtputf8: bool,
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
        /// The line, from 1.
        line: usize,
    },
    /// The header is too long.
    #[error("the header of the mail is longer than {HEADER_BLOCK_OCTETS_MAX} octets")]
    HeaderTooLong,
    /// A line is too long for SMTP.
    #[error(
        "line {line} of the mail is longer than {LINE_OCTETS_MAX} octets: encode the part as quoted-printable or base64"
    )]
    LineTooLong {
        /// The line, from 1.
        line: usize,
    },
    /// There is a NUL.
    #[error("line {line} of the mail contains a NUL character")]
    Nul {
        /// The line, from 1.
        line: usize,
    },
    /// The header has octets over 127 that are not UTF-8.
    #[error("the header of the mail is neither ASCII nor UTF-8: encode it as RFC 2047 says")]
    NotUtf8,
    /// A field that may occur once occurs twice, and readers would differ about which one counts.
    #[error("the mail has more than one {field} field")]
    Repeated {
        /// The name of the field.
        field: &'static str,
    },
    /// An address in the header is not valid.
    #[error("the {field} field of the mail has a bad address: {error}")]
    Address {
        /// The name of the field.
        field: &'static str,
        /// What is wrong with it.
        error: AddressError,
    },
    /// The ids that the message was given are unfit for a header.
    #[error(transparent)]
    Id(#[from] IdError),
}

/// Reads the header and checks that the mail can be sent.
pub fn inspect_raw(bytes: &[u8]) -> Result<RawInfo, RawError> {
    let (fields, body) = split(bytes)?;
    for once in ["From", "Sender", "Reply-To", "To", "Cc", "Bcc", "Subject", "Date"] {
        if fields.iter().filter(|field| field.is(once)).count() > 1 {
            return Err(RawError::Repeated { field: once });
        }
    }
    if fields.iter().any(|field| std::str::from_utf8(field.value).is_err()) {
        return Err(RawError::NotUtf8);
    }
    let smtputf8 = fields.iter().any(|field| !field.is_dropped() && !field.value.is_ascii());
    let eight_bit = smtputf8 || !body.is_ascii();
    let subject = fields.iter().find(|field| field.is("Subject")).map(|field| unstructured(field.value));
    Ok(RawInfo {
        from: mailboxes("From", &fields)?.into_iter().next(),
        to: mailboxes("To", &fields)?,
        cc: mailboxes("Cc", &fields)?,
        bcc: mailboxes("Bcc", &fields)?,
        // An encoded word may hold any character; nobody who shows or stores a subject wants a line break.
        subject: subject.filter(|text| !text.is_empty()).map(|text| text.replace(char::is_control, " ")),
        eight_bit,
        smtputf8,
    })
}

/// Makes the mail ours and ready for the wire. The addresses in it are [`inspect_raw`]'s to check.
pub fn finish_raw(bytes: &[u8], message_id: &str, uid: &str, date_unix: i64) -> Result<Vec<u8>, RawError> {
    check_ids(message_id, uid)?;
    let (fields, body) = split(bytes)?;
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 32 + 512);
    let (mut original_id, mut marks) = (None, 0);
    for field in &fields {
        if field.is("Message-ID") {
            original_id = original_id.or(Some(field));
        } else if field.is_mark() {
            marks += 1;
            if marks <= MARKS_MAX {
                field.write(&mut out);
            }
        } else if !field.is_dropped() {
            field.write(&mut out);
        }
    }
    if let Some(field) = original_id {
        field.write_renamed("X-Original-Message-ID", &mut out);
    }
    if !fields.iter().any(|field| field.is("Date")) {
        out.extend_from_slice(b"Date: ");
        Date::new(date_unix).write_rfc822(&mut out);
        out.extend_from_slice(b"\r\n");
    }
    write_own_fields(message_id, uid, &mut out);
    if !fields.iter().any(|field| field.is("MIME-Version")) {
        out.extend_from_slice(b"MIME-Version: 1.0\r\n");
    }
    out.extend_from_slice(b"\r\n");
    for (line, _) in Lines::new(body) {
        out.extend_from_slice(line);
        out.extend_from_slice(b"\r\n");
    }
    Ok(out)
}

/// The fields of a mail that speak to Postway, `X-Postway-…`: their names and what they say, unfolded and decoded, in order: what
/// is not ASCII, or is long, mail programs write as encoded words. Only marks against loops are in the finished mail. Looks at the
/// header only; the rest is [`inspect_raw`]'s to check.
pub fn own_fields(bytes: &[u8]) -> Result<Vec<(String, String)>, RawError> {
    let (fields, _) = read_fields(bytes)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(fields
        .iter()
        .filter(|field| field.is_ours())
        .map(|field| (text(field.name), unstructured(field.value).trim().to_owned()))
        .collect())
}

/// From whom a mail was taken over SMTP, as its trace field tells (RFC 5321, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace<'a> {
    /// What the client called itself.
    pub greeted_as: &'a str,
    /// From where it came.
    pub peer: IpAddr,
    /// What we call ourselves.
    pub by: &'a str,
    /// The protocol's name, such as `ESMTPSA`.
    pub with: &'static str,
    /// Our name for the transaction.
    pub id: &'a str,
}

impl Trace<'_> {
    /// The field. What a client calls itself is its own invention: where it is no host's name, it is not repeated.
    pub fn field(&self, date_unix: i64) -> String {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let named = (1..=255).contains(&self.greeted_as.len()) && self.greeted_as.bytes().all(is_name);
        let greeted_as = if named { self.greeted_as } else { "unknown" };
        let tag = if self.peer.is_ipv6() { "IPv6:" } else { "" };
        let Self { peer, by, with, id, .. } = self;
        let date = Date::new(date_unix).to_rfc822();
        format!(
            "Received: from {greeted_as} ([{tag}{peer}])\r\n\tby {by} with {with} id {id};\r\n\t{date}\r\n"
        )
    }
}

/// One header field: its first line and its continuations, with whatever endings they have.
pub(crate) struct Field<'a> {
    pub(crate) name: &'a [u8],
    /// What follows the colon, up to the next field.
    pub(crate) value: &'a [u8],
}

impl Field<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Whether it speaks to a gateway: it chooses something, names the message or marks it.
    pub(crate) fn is_ours(&self) -> bool {
        const OURS: &[u8] = b"X-Postway-";
        self.name.get(..OURS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OURS))
    }

    /// Whether it is a mark against loops.
    pub(crate) fn is_mark(&self) -> bool {
        self.is(MARK_FIELD) && std::str::from_utf8(self.value).is_ok_and(|value| is_mark(value.trim()))
    }

    fn is_dropped(&self) -> bool {
        ["Bcc", "Resent-Bcc", "Return-Path", "X-Original-Message-ID"].iter().any(|name| self.is(name))
            || self.is_ours()
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name);
        out.push(b':');
        // A continuation of white space alone says nothing, and some readers take it for the end of the header.
        for (index, (line, _)) in Lines::new(self.value).enumerate() {
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

    fn write_renamed(&self, name: &str, out: &mut Vec<u8>) {
        let fits = |line: &[u8]| line.len() + name.len() < LINE_OCTETS_MAX;
        if Lines::new(self.value).all(|(line, _)| fits(line)) {
            Field { name: name.as_bytes(), value: self.value }.write(out);
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// Parts header fields and body, of a mail whose every line is fit to send.
pub(crate) fn split(bytes: &[u8]) -> Result<(Vec<Field<'_>>, &[u8]), RawError> {
    check_lines(bytes)?;
    read_fields(bytes)
}

fn read_fields(bytes: &[u8]) -> Result<(Vec<Field<'_>>, &[u8]), RawError> {
    let mut lines = Lines::new(bytes);
    let mut fields: Vec<Field<'_>> = Vec::new();
    // Where the value of the field being read begins.
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
            None | Some(([], _)) if fields.is_empty() => return Err(RawError::NoHeader),
            None | Some(([], _)) => return Ok((fields, lines.rest())),
            // The envelope line of an mbox file is no part of the mail.
            Some((line, _)) if number == 1 && line.starts_with(b"From ") => {}
            Some((line, _)) => {
                let (name, colon) = field_name(line).ok_or(RawError::Malformed { line: number })?;
                value_start = start + colon + 1;
                fields.push(Field { name, value: &[] });
            }
        }
    }
}

fn field_name(line: &[u8]) -> Option<(&[u8], usize)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = line[..colon].trim_ascii_end();
    (!name.is_empty() && name.iter().all(u8::is_ascii_graphic)).then_some((name, colon))
}

fn check_lines(bytes: &[u8]) -> Result<(), RawError> {
    for (index, (line, _)) in Lines::new(bytes).enumerate() {
        if line.len() > LINE_OCTETS_MAX {
            return Err(RawError::LineTooLong { line: index + 1 });
        }
        if line.contains(&0) {
            return Err(RawError::Nul { line: index + 1 });
        }
    }
    Ok(())
}

/// The mailboxes in the field of that name, groups dissolved.
fn mailboxes(name: &'static str, fields: &[Field<'_>]) -> Result<Vec<Mailbox>, RawError> {
    let Some(field) = fields.iter().find(|field| field.is(name)) else { return Ok(Vec::new()) };
    let mailbox = |found: HeaderAddress| -> Result<Mailbox, AddressError> {
        let address: EmailAddress = found.address.as_deref().unwrap_or_default().parse()?;
        Mailbox::new(found.name.as_deref(), address)
    };
    // The header is bounded, and so is what it can name.
    let found = addresses(field.value, HEADER_BLOCK_OCTETS_MAX).into_iter();
    found.map(|found| mailbox(found).map_err(|error| RawError::Address { field: name, error })).collect()
}
