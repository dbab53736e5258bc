//! A mail as slices of its bytes: header fields by name, the parts of a multipart, transfer encodings undone.
//!
//! Made for mail that somebody else wrote: nothing is copied before it is asked for, what is malformed reads as
//! absent, and the walk stops at a depth and a number of parts, so that the work is linear in the size of the mail.
//! CRLF, LF and bare CR are the same. Nothing here looks into a `message/rfc822`: that is another mail.

use std::{borrow::Cow, collections::VecDeque};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use mail_parser::{HeaderValue, decoders::quoted_printable::quoted_printable_decode, parsers::MessageStream};

use crate::lines::{Ending, Lines};

/// Multiparts inside each other that are opened. A receipt has three.
const DEPTH_MAX: usize = 8;
/// Parts that are looked at. A receipt has five.
const PARTS_MAX: usize = 256;
/// The longest field value that is read; the rest of it is cut off.
const FIELD_BYTES_MAX: usize = 8 * 1024;

/// Base64 as mail has it: padded or not, and with whatever the last bits are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A mail, or one of its parts.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    header: &'a [u8],
    pub(super) body: &'a [u8],
}

/// What a `Content-Type` or `Content-Disposition` says: its word in lower case, and its parameters.
#[derive(Default)]
pub(super) struct Labelled {
    pub(super) word: String,
    parameters: Vec<(String, String)>,
}

impl Labelled {
    /// A parameter's value, by its name in lower case.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<'a> Part<'a> {
    /// Splits at the first empty line; without one, all is header.
    pub(super) fn split(raw: &'a [u8]) -> Self {
        let mut lines = Lines::new(raw);
        let mut header_end = 0;
        while let Some((line, _)) = lines.next() {
            if line.is_empty() {
                return Self { header: &raw[..header_end], body: lines.rest() };
            }
            header_end = raw.len() - lines.rest().len();
        }
        Self { header: raw, body: &[] }
    }

    /// The raw values of all fields of this name, folds included.
    pub(super) fn values(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Fields { header: self.header, lines: Lines::new(self.header) }
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The first field of this name that says something, unfolded.
    pub(super) fn text(&self, name: &'static str) -> Option<String> {
        self.values(name).map(unfold).find(|value| !value.is_empty())
    }

    /// The first field of this name with its encoded words (RFC 2047) read.
    pub(super) fn unstructured(&self, name: &'static str) -> Option<String> {
        let line = self.text(name)? + "\r\n";
        match MessageStream::new(line.as_bytes()).parse_unstructured() {
            HeaderValue::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// The address of the one mailbox in the one `From` field.
    pub(super) fn from(&self) -> Option<String> {
        let mut fields = self.values("From");
        let line = unfold(fields.next()?) + "\r\n";
        if fields.next().is_some() {
            return None;
        }
        let HeaderValue::Address(addresses) = MessageStream::new(line.as_bytes()).parse_address() else {
            return None;
        };
        let mut addresses = addresses.iter();
        let address = addresses.next()?.address()?.to_owned();
        addresses.next().is_none().then_some(address)
    }

    /// The media type, such as `multipart/signed`; what is not said is `text/plain`.
    pub(super) fn content_type(&self) -> Labelled {
        let mut found = self.labelled("Content-Type");
        if found.word.is_empty() {
            found.word.push_str("text/plain");
        }
        found
    }

    /// The file name, from either of the fields that give one.
    pub(super) fn file_name(&self) -> Option<String> {
        let disposition = self.labelled("Content-Disposition");
        let name = disposition.parameter("filename").map(str::to_owned);
        name.or_else(|| self.content_type().parameter("name").map(str::to_owned))
    }

    fn labelled(&self, name: &'static str) -> Labelled {
        let Some(line) = self.text(name).map(|value| value + "\r\n") else { return Labelled::default() };
        let HeaderValue::ContentType(found) = MessageStream::new(line.as_bytes()).parse_content_type() else {
            return Labelled::default();
        };
        let mut word = found.ctype().to_ascii_lowercase();
        if let Some(subtype) = found.subtype() {
            word.push('/');
            word.push_str(&subtype.to_ascii_lowercase());
        }
        let parameters = found.attributes().unwrap_or_default().iter();
        let parameters =
            parameters.map(|one| (one.name.to_ascii_lowercase(), one.value.to_string())).collect();
        Labelled { word, parameters }
    }

    /// The body with its transfer encoding undone; `None` if it cannot be.
    pub(super) fn decoded(&self) -> Option<Cow<'a, [u8]>> {
        match self.text("Content-Transfer-Encoding").unwrap_or_default().to_ascii_lowercase().as_str() {
            "base64" => {
                let kept = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
                let packed: Vec<u8> = self.body.iter().copied().filter(kept).collect();
                BASE64.decode(packed).ok().map(Cow::Owned)
            }
            "quoted-printable" => quoted_printable_decode(self.body).map(Cow::Owned),
            _ => Some(Cow::Borrowed(self.body)),
        }
    }

    /// The parts between the delimiters of this boundary, each without the line ending before its delimiter,
    /// which belongs to the delimiter (RFC 2046, 5.1.1). At most [`PARTS_MAX`].
    pub(super) fn children(&self, boundary: &str) -> Vec<&'a [u8]> {
        let mut children = Vec::new();
        if boundary.is_empty() {
            return children;
        }
        let mut lines = Lines::new(self.body);
        let mut start = None;
        let (mut line_start, mut content_end) = (0, 0);
        while let Some((line, ending)) = lines.next() {
            let line_end = self.body.len() - lines.rest().len();
            if let Some(closes) = delimiter(line, boundary.as_bytes()) {
                children.extend(start.map(|start| &self.body[start..content_end.max(start)]));
                start = Some(line_end);
                if closes || children.len() == PARTS_MAX {
                    return children;
                }
            }
            content_end = line_start + line.len();
            line_start = line_end;
            debug_assert!(ending == Ending::None || line_start > content_end);
        }
        children.extend(start.map(|start| &self.body[start..]));
        children
    }

    /// All parts that are not multiparts, the outermost first. Of a signed one only what is signed: beside it anybody
    /// can put anything.
    pub(super) fn leaves(self) -> Vec<Part<'a>> {
        let mut leaves = Vec::new();
        let mut open = VecDeque::from([(self, 0)]);
        let mut seen = 0;
        while let Some((part, depth)) = open.pop_front() {
            let label = part.content_type();
            if !label.word.starts_with("multipart/") {
                leaves.push(part);
            } else if let (Some(boundary), true) = (label.parameter("boundary"), depth < DEPTH_MAX) {
                let mut children = part.children(boundary);
                if label.word == "multipart/signed" {
                    children.truncate(1);
                }
                seen += children.len();
                open.extend(children.into_iter().map(|child| (Part::split(child), depth + 1)));
            }
            if seen > PARTS_MAX {
                break;
            }
        }
        leaves
    }
}

/// Whether the line is a delimiter of this boundary, and then whether it closes the multipart.
fn delimiter(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?.trim_ascii_end();
    match rest {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

/// A raw value without its folds and outer white space.
fn unfold(value: &[u8]) -> String {
    let mut value = &value[..value.len().min(FIELD_BYTES_MAX)];
    value = value.trim_ascii();
    let mut text = Vec::with_capacity(value.len());
    for (line, _) in Lines::new(value) {
        text.extend_from_slice(line);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The fields of a header: name and raw value.
struct Fields<'a> {
    header: &'a [u8],
    lines: Lines<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.header.len() - self.lines.rest().len();
            let (line, _) = self.lines.next()?;
            while matches!(self.lines.rest().first(), Some(b' ' | b'\t')) {
                self.lines.next();
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let end = self.header.len() - self.lines.rest().len();
            return Some((line[..colon].trim_ascii(), &self.header[start + colon + 1..end]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_ends_their_lines() {
        for ending in ["\r\n", "\n", "\r"] {
            let raw =
                "x-A: one\n two\nFrom: \"P, C\" <p@Example.it>\nX-B:\n\nX-A: body".replace('\n', ending);
            let part = Part::split(raw.as_bytes());
            assert_eq!(part.text("X-A").unwrap(), "one two");
            assert_eq!(part.from().unwrap(), "p@Example.it");
            assert_eq!(part.text("X-B"), None);
            assert_eq!(part.body, b"X-A: body");
        }
    }

    #[test]
    fn two_authors_are_none() {
        assert_eq!(Part::split(b"From: a@b.it\nFrom: c@d.it\n\n").from(), None);
        assert_eq!(Part::split(b"From: a@b.it, c@d.it\n\n").from(), None);
    }

    #[test]
    fn a_boundary_that_begins_like_another_does_not_end_its_parts() {
        let raw = b"Content-Type: multipart/mixed; boundary=ab\n\npre\n--ab \n\none\n--abc\n--ab\n\ntwo\n\n--ab--\nend";
        let part = Part::split(raw);
        assert_eq!(part.children("ab"), [&b"\none\n--abc"[..], b"\ntwo\n"]);
        assert_eq!(part.leaves().len(), 2);
    }

    #[test]
    fn an_unfinished_multipart_keeps_its_last_part() {
        let part = Part::split(b"\n--x\n\none\n--x\n--x\n\ntwo");
        assert_eq!(part.children("x"), [&b"\none"[..], b"", b"\ntwo"]);
    }
}
