//! Header blocks: of the mail itself, of its parts and of the mail that came back.
//!
//! Reading is lenient, for what comes back has often been cut, indented or glued together: a line that is no
//! field is passed over. At most [`FIELDS_MAX`] fields are kept; the rest is read past, so a mail of a
//! million fields costs one pass and no memory.

use std::borrow::Cow;

use super::bytes::{contains, indent, lines, starts_with, trim};

/// The most fields that are kept of one header block.
pub(super) const FIELDS_MAX: usize = 500;

/// One field; the value may still be folded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
}

/// The fields of a header block, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Head<'a> {
    fields: Vec<Field<'a>>,
}

impl<'a> Head<'a> {
    /// Reads a header block; gives it and what comes after the blank line.
    pub(super) fn parse(text: &'a [u8]) -> (Self, &'a [u8]) {
        let mut fields: Vec<Field<'a>> = Vec::with_capacity(24);
        let mut lines = lines(text);
        let mut seen = false;
        // Where the value of the last field begins, when the line before this one belongs to it.
        let mut open = None;
        loop {
            let begin = lines.position();
            let Some(line) = lines.next() else { return (Self { fields }, b"") };
            if line.is_empty() {
                if seen {
                    return (Self { fields }, lines.rest());
                }
                continue;
            }
            seen = true;
            if matches!(line[0], b' ' | b'\t') {
                if let (Some(from), Some(field)) = (open, fields.last_mut()) {
                    field.value = &text[from..begin + line.len()];
                }
                continue;
            }
            if starts_with(line, b"boundary=")
                && let (Some(from), Some(field)) = (open, fields.last_mut())
            {
                // Some forget to indent the second line of a Content-Type.
                field.value = &text[from..begin + line.len()];
                continue;
            }
            open = None;
            if fields.len() < FIELDS_MAX
                && let Some(field) = split(line)
            {
                open = Some(begin + line.len() - field.value.len());
                fields.push(field);
            }
        }
    }

    /// The first field of that name.
    pub(super) fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Each field of that name.
    pub(super) fn all<'n>(&'n self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + 'n {
        self.fields
            .iter()
            .filter(move |field| field.name.len() == name.len() && field.name.eq_ignore_ascii_case(name))
            .map(|field| trim(field.value))
    }

    /// Whether there is a field of that name.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// Whether the field of that name contains the word, in any case.
    pub(super) fn says(&self, name: &[u8], word: &[u8]) -> bool {
        self.get(name).is_some_and(|value| contains(value, word))
    }

    /// Whether this is the header of a mail rather than of a part.
    pub(super) fn is_of_mail(&self) -> bool {
        let telling: [&[u8]; 4] = [b"message-id", b"from", b"subject", b"return-path"];
        self.has(b"received") || telling.iter().filter(|name| self.has(name)).count() > 1
    }

    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }
}

/// The name and the value of a line, when it is a field.
pub(super) fn split(line: &[u8]) -> Option<Field<'_>> {
    let colon = line.iter().position(|&b| b == b':' || b <= b' ' || b == 0x7f)?;
    // White space before the colon is obsolete, but read.
    let end = colon + indent(&line[colon..]);
    (colon > 0 && line.get(end) == Some(&b':'))
        .then(|| Field { name: &line[..colon], value: &line[end + 1..] })
}

/// A value without its folds.
pub(super) fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\n', value).is_none() {
        return Cow::Borrowed(trim(value));
    }
    let mut out = Vec::with_capacity(value.len());
    for line in lines(value) {
        let line = trim(line);
        if !out.is_empty() && !line.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(line);
    }
    Cow::Owned(out)
}

/// A value in lower case, its encoded words (RFC 2047) decoded.
pub(super) fn plain(value: &[u8]) -> String {
    let value = unfold(value);
    if memchr::memmem::find(&value, b"=?").is_none() {
        return String::from_utf8_lossy(&value).to_lowercase();
    }
    let raw = [b"Subject: ", &value[..value.len().min(998)], b"\n\n"].concat();
    let parsed = mail_parser::MessageParser::default().parse_headers(&raw);
    parsed.and_then(|mail| mail.subject().map(str::to_lowercase)).unwrap_or_default()
}

/// A parameter such as `boundary` of a value such as `multipart/mixed; boundary="x"`.
pub(super) fn parameter<'a>(value: &'a [u8], name: &[u8]) -> Option<Cow<'a, [u8]>> {
    let mut rest = value;
    while let Some(at) = memchr::memchr(b';', rest) {
        rest = &rest[at + 1..];
        let begin = rest.trim_ascii_start();
        if !starts_with(begin, name) {
            continue;
        }
        let Some(value) = begin[name.len()..].trim_ascii_start().strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        return Some(match value.strip_prefix(b"\"") {
            Some(quoted) => unquote(quoted),
            None => {
                let end =
                    value.iter().position(|&b| b == b';' || b.is_ascii_whitespace()).unwrap_or(value.len());
                Cow::Borrowed(&value[..end])
            }
        });
    }
    None
}

/// What stands before the closing quote, without its backslashes.
fn unquote(quoted: &[u8]) -> Cow<'_, [u8]> {
    let end = memchr::memchr2(b'"', b'\\', quoted).unwrap_or(quoted.len());
    if quoted.get(end) != Some(&b'\\') {
        return Cow::Borrowed(&quoted[..end]);
    }
    let mut out = Vec::with_capacity(quoted.len());
    let mut octets = quoted.iter();
    while let Some(&octet) = octets.next() {
        match octet {
            b'"' => break,
            b'\\' => out.extend(octets.next()),
            octet => out.push(octet),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_fields_are_read_whole_and_the_body_follows() {
        let (head, body) =
            Head::parse(b"Subject: one\n two\n\tthree\nTo : x@example.org\nnonsense\n\nbody\n");
        assert_eq!(unfold(head.get(b"subject").unwrap()).as_ref(), b"one two three");
        assert_eq!(head.get(b"TO"), Some(&b"x@example.org"[..]));
        assert_eq!((head.len(), body), (2, &b"body\n"[..]));
    }

    #[test]
    fn encoded_words_are_decoded() {
        assert_eq!(
            plain(b"=?utf-8?Q?Delivery_Status?=\n =?utf-8?B?IChGYWlsdXJlKQ==?="),
            "delivery status (failure)"
        );
        assert_eq!(plain(b"Failure NOTICE"), "failure notice");
    }

    #[test]
    fn parameters_may_be_quoted_and_escaped() {
        let value = b"multipart/report; Report-Type=delivery-status;\n boundary=\"a\\\"b=c\"";
        assert_eq!(parameter(value, b"boundary").unwrap().as_ref(), b"a\"b=c");
        assert_eq!(parameter(value, b"report-type").unwrap().as_ref(), b"delivery-status");
        assert_eq!(parameter(value, b"charset"), None);
    }

    #[test]
    fn a_million_fields_are_read_past() {
        let mut text = b"A: b\n".repeat(1_000_000);
        text.extend_from_slice(b"\nbody");
        let (head, body) = Head::parse(&text);
        assert_eq!((head.len(), body), (FIELDS_MAX, &b"body"[..]));
    }
}
