//! The values of `Content-Type` and `Content-Disposition`: a word and parameters.
//!
//! Parameters may be quoted or not, in pieces (RFC 2231), in another charset, or, against the rules, encoded
//! words. Each is found in one pass over the value.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::{
    transfer::nibble,
    word::{decode, in_charset},
};

/// The maximum number of pieces of one parameter.
const PIECES_MAX: usize = 100;

/// A media type such as `text/plain`, in whatever case it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// The type before the slash.
    pub kind: &'a [u8],
    /// The subtype after it; empty if it is absent.
    pub subtype: &'a [u8],
}

impl MediaType<'_> {
    /// The type of a part without `Content-Type`.
    pub(super) const TEXT: MediaType<'static> = MediaType { kind: b"text", subtype: b"plain" };
    /// The type of such a part in a digest.
    pub(super) const MESSAGE: MediaType<'static> = MediaType { kind: b"message", subtype: b"rfc822" };

    /// Whether its type is `kind`, in any case.
    pub fn is_kind(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind.as_bytes())
    }

    /// Whether it is `kind/subtype`, in any case.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.is_kind(kind) && self.subtype.eq_ignore_ascii_case(subtype.as_bytes())
    }

    /// Whether it is a mail in a mail.
    pub fn is_message(&self) -> bool {
        self.is("message", "rfc822") || self.is("message", "global")
    }
}

/// The value of a `Content-Type` or `Content-Disposition`.
#[derive(Debug, Clone, Copy)]
pub struct ContentLabel<'a> {
    value: &'a [u8],
}

impl<'a> ContentLabel<'a> {
    /// Wraps a field's value; `None` if it is empty.
    pub fn new(value: &'a [u8]) -> Option<Self> {
        let value = value.trim_ascii();
        (!value.is_empty()).then_some(Self { value })
    }

    /// The word before the parameters.
    pub fn word(&self) -> &'a [u8] {
        let ends = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
        &self.value[..self.value.iter().position(ends).unwrap_or(self.value.len())]
    }

    /// The word as a media type.
    pub fn media_type(&self) -> MediaType<'a> {
        let word = self.word();
        match memchr(b'/', word) {
            Some(slash) => MediaType { kind: &word[..slash], subtype: &word[slash + 1..] },
            None => MediaType { kind: word, subtype: b"" },
        }
    }

    /// The octets of the first parameter of that name, in any case.
    pub fn parameter(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        LabelParameters::from_value(self.value)
            .find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The parameter of that name as text: its pieces joined, decoded, and converted from its charset.
    pub fn text(&self, name: &str) -> Option<String> {
        let mut plain: Option<Cow<'a, [u8]>> = None;
        let mut pieces: Vec<ParameterPiece<'a>> = Vec::new();
        for (known, value) in LabelParameters::from_value(self.value) {
            match known.split_at_checked(name.len()) {
                Some((start, b"")) if start.eq_ignore_ascii_case(name.as_bytes()) => {
                    plain.get_or_insert(value);
                }
                Some((start, [b'*', number @ ..]))
                    if pieces.len() < PIECES_MAX && start.eq_ignore_ascii_case(name.as_bytes()) =>
                {
                    pieces.extend(ParameterPiece::new(number, value));
                }
                _ => {}
            }
        }
        if !pieces.is_empty() {
            return Some(join_pieces(pieces));
        }
        let plain = plain?;
        Some(match memmem::find(&plain, b"=?") {
            Some(_) => decode(&plain),
            None => String::from_utf8_lossy(&plain).into_owned(),
        })
    }
}

/// The parameters of a value.
struct LabelParameters<'a> {
    /// The text after the next semicolon.
    rest: Option<&'a [u8]>,
}

impl<'a> LabelParameters<'a> {
    fn from_value(value: &'a [u8]) -> Self {
        Self { rest: after_semicolon(value) }
    }
}

fn after_semicolon(text: &[u8]) -> Option<&[u8]> {
    memchr(b';', text).map(|at| &text[at + 1..])
}

impl<'a> Iterator for LabelParameters<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.rest.take()?.trim_ascii_start();
            let ends = |byte: &u8| matches!(byte, b'=' | b';') || byte.is_ascii_whitespace();
            let (name, after) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
            let Some(value) = after.trim_ascii_start().strip_prefix(b"=") else {
                self.rest = after_semicolon(after);
                continue;
            };
            let value = value.trim_ascii_start();
            let (value, after) = match value.strip_prefix(b"\"") {
                Some(quoted) => unquote(quoted),
                None => {
                    let ends = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
                    let (value, after) = value.split_at(value.iter().position(ends).unwrap_or(value.len()));
                    (Cow::Borrowed(value), after)
                }
            };
            self.rest = after_semicolon(after);
            return Some((name, value));
        }
    }
}

/// The text before the closing quote, without backslashes and folds, and the text after it.
fn unquote(quoted: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    if let Some(end) = memchr2(b'"', b'\\', quoted)
        && quoted[end] == b'"'
        && memchr2(b'\r', b'\n', &quoted[..end]).is_none()
    {
        return (Cow::Borrowed(&quoted[..end]), &quoted[end + 1..]);
    }
    let mut out = Vec::new();
    let mut octets = quoted.iter();
    while let Some(&octet) = octets.next() {
        match octet {
            b'"' => break,
            b'\\' => out.extend(octets.next()),
            b'\r' | b'\n' => {}
            octet => out.push(octet),
        }
    }
    (Cow::Owned(out), octets.as_slice())
}

/// A piece of a parameter: `name*0*=…`.
struct ParameterPiece<'a> {
    number: u32,
    is_encoded: bool,
    value: Cow<'a, [u8]>,
}

impl<'a> ParameterPiece<'a> {
    /// Reads a piece; `number` is the part of its name after the first `*`.
    fn new(number: &[u8], value: Cow<'a, [u8]>) -> Option<Self> {
        if number.is_empty() {
            return Some(Self { number: 0, is_encoded: true, value });
        }
        let (digits, is_encoded) = match number.strip_suffix(b"*") {
            Some(digits) => (digits, true),
            None => (number, false),
        };
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Self { number, is_encoded, value })
    }
}

/// Joins the pieces in their order and decodes them.
fn join_pieces(mut pieces: Vec<ParameterPiece<'_>>) -> String {
    pieces.sort_by_key(|piece| piece.number);
    let mut charset: Vec<u8> = Vec::new();
    let mut bytes = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let mut value = piece.value.as_ref();
        if index == 0 && piece.is_encoded {
            // The charset and the language come first, each before a quote.
            let mut parts = value.splitn(3, |byte| *byte == b'\'');
            if let (Some(named), Some(_), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
                charset = named.to_vec();
                value = rest;
            }
        }
        if piece.is_encoded { percent_decoded(value, &mut bytes) } else { bytes.extend_from_slice(value) }
    }
    in_charset(&bytes, Some(&charset)).into_owned()
}

fn percent_decoded(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'%', [high, low, tail @ ..]) if nibble(*high).is_some() && nibble(*low).is_some() => {
                out.extend(nibble(*high).zip(nibble(*low)).map(|(high, low)| high << 4 | low));
                rest = tail;
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(value: &str) -> ContentLabel<'_> {
        ContentLabel::new(value.as_bytes()).unwrap()
    }

    #[test]
    fn parameters_may_be_quoted_and_escaped() {
        let label = label(
            "multipart/report; Report-Type=delivery-status; x=\"; boundary=no\";\r\n boundary=\"a\\\"b=c\"",
        );
        assert!(label.media_type().is("multipart", "report"));
        assert_eq!(label.parameter("boundary").unwrap().as_ref(), b"a\"b=c");
        assert_eq!(label.parameter("report-type").unwrap().as_ref(), b"delivery-status");
        assert_eq!(label.parameter("charset"), None);
        assert_eq!(super::ContentLabel::new(b" \r\n ").map(|_| ()), None);
    }

    #[test]
    fn names_of_files_are_read_however_they_are_written() {
        for (value, name) in [
            ("attachment; filename=a.pdf", "a.pdf"),
            ("attachment; filename = \"a; b.pdf\"", "a; b.pdf"),
            ("attachment; filename=\"=?utf-8?b?w6kucGRm?=\"", "é.pdf"),
            ("attachment; filename=x.pdf; filename*=utf-8'en'%C3%A9%20a.pdf", "é a.pdf"),
            ("attachment; filename*1=\"b.pdf\"; filename*0*=iso-8859-1''%E9", "éb.pdf"),
            ("attachment; filename*0=\"a\"; FileName*1=\"b.pdf\"", "ab.pdf"),
            ("attachment; filename=\"never closed", "never closed"),
            ("attachment;;; filename =a.pdf ; x", "a.pdf"),
        ] {
            assert_eq!(label(value).text("filename").as_deref(), Some(name), "{value}");
        }
        assert_eq!(label("attachment; filenames=a").text("filename"), None);
    }
}
