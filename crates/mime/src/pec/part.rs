//! A mail or a part of one, with the queries that receipts and signatures need.
//!
//! [`crate::reader`] takes the mail apart. Malformed values read as absent, and the content of a
//! `message/rfc822` is not read: that is another mail.

use std::borrow::Cow;

use crate::reader::{MailPart, MediaType, ReadMail, addresses, unfold, unstructured};

/// A mail, or one of its parts.
#[derive(Clone, Copy)]
pub(super) struct PecPart<'m, 'a> {
    part: MailPart<'m, 'a>,
}

impl<'m, 'a> PecPart<'m, 'a> {
    /// The whole mail.
    pub(super) fn from_mail(mail: &'m ReadMail<'a>) -> Self {
        Self { part: mail.root() }
    }

    /// The body, in its transfer encoding.
    pub(super) fn body(&self) -> &'a [u8] {
        self.part.body()
    }

    /// The first non-empty field of this name, unfolded.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let values = self.part.header().all(name.as_bytes()).find(|value| !value.is_empty());
        values.map(|value| String::from_utf8_lossy(&unfold(value)).into_owned())
    }

    /// The first non-empty field of this name with its encoded words (RFC 2047) decoded.
    pub(super) fn unstructured(&self, name: &str) -> Option<String> {
        let value = self.part.header().all(name.as_bytes()).find(|value| !value.is_empty())?;
        Some(unstructured(value).trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The address in `From`, if there is exactly one field with one mailbox.
    pub(super) fn from(&self) -> Option<String> {
        let mut fields = self.part.header().all(b"from");
        let mut found = addresses(fields.next()?, 2).into_iter();
        let author = found.next()?.address?;
        (fields.next().is_none() && found.next().is_none()).then_some(author)
    }

    /// The media type; `text/plain` if it is not given.
    pub(super) fn media_type(&self) -> MediaType<'a> {
        self.part.media_type()
    }

    /// The file name, from either of the fields that give one.
    pub(super) fn file_name(&self) -> Option<String> {
        self.part.file_name()
    }

    /// The body with its transfer encoding decoded; `None` if it is damaged.
    pub(super) fn decoded(&self) -> Option<Cow<'a, [u8]>> {
        let decoded = self.part.decoded();
        (!decoded.is_damaged).then_some(decoded.bytes)
    }

    /// The bytes that a signature of this part covers: header and body, unchanged.
    pub(super) fn signed_bytes(&self) -> &'a [u8] {
        self.part.entity()
    }

    /// The parts directly in it.
    pub(super) fn children(&self) -> impl Iterator<Item = PecPart<'m, 'a>> {
        self.part.children().map(|part| PecPart { part })
    }
}

/// All parts that are not multiparts, the outermost first. Of a signed multipart only the signed part counts,
/// because anybody can add parts beside it.
pub(super) fn leaves<'m, 'a>(mail: &'m ReadMail<'a>) -> Vec<PecPart<'m, 'a>> {
    let mut leaves = Vec::new();
    // The depth of a skipped part that is beside a signed one.
    let mut beside: Option<usize> = None;
    for part in mail.parts() {
        if beside.is_some_and(|depth| part.depth() > depth) {
            continue;
        }
        beside = is_beside_signed(&part).then(|| part.depth());
        if beside.is_none() && !part.media_type().is_kind("multipart") {
            leaves.push(PecPart { part });
        }
    }
    leaves.sort_by_key(|leaf| leaf.part.depth());
    leaves
}

/// Whether a part is in a signed multipart but is not the signed part, which comes first.
fn is_beside_signed(part: &MailPart<'_, '_>) -> bool {
    part.parent().is_some_and(|parent| {
        parent.media_type().is("multipart", "signed") && part.index() != parent.index() + 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_ends_their_lines() {
        for ending in ["\r\n", "\n", "\r"] {
            let raw =
                "x-A: one\n two\nFrom: \"P, C\" <p@Example.it>\nX-B:\n\nX-A: body".replace('\n', ending);
            let mail = ReadMail::read(raw.as_bytes());
            let part = PecPart::from_mail(&mail);
            assert_eq!(part.text("X-A").unwrap(), "one two");
            assert_eq!(part.from().unwrap(), "p@Example.it");
            assert_eq!(part.text("X-B"), None);
            assert_eq!(part.body(), b"X-A: body");
        }
    }

    #[test]
    fn two_authors_are_none() {
        for raw in [&b"From: a@b.it\nFrom: c@d.it\n\n"[..], b"From: a@b.it, c@d.it\n\n"] {
            assert_eq!(PecPart::from_mail(&ReadMail::read(raw)).from(), None);
        }
    }

    #[test]
    fn leaves_are_the_outermost_first_without_parts_beside_a_signed_one() {
        let raw = b"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/signed; boundary=s\n\n--s\n\n\
            signed\n--s\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\nbeside\n--i--\n--s--\n--o\n\nouter\n--o--\n";
        let mail = ReadMail::read(raw);
        let bodies: Vec<_> = leaves(&mail).iter().map(|leaf| leaf.body()).collect();
        assert_eq!(bodies, [&b"outer"[..], b"signed"]);
    }

    #[test]
    fn what_is_signed_is_every_byte_between_the_delimiters() {
        let raw = b"Content-Type: multipart/signed; boundary=ab\r\n\r\n--ab\r\nA: b\r\n\r\none\r\n--abc\r\n\r\n--ab \r\n\r\ntwo\r\n--ab--\r\n";
        let mail = ReadMail::read(raw);
        let signed: Vec<_> = PecPart::from_mail(&mail).children().map(|part| part.signed_bytes()).collect();
        assert_eq!(signed, [&b"A: b\r\n\r\none\r\n--abc\r\n"[..], b"\r\ntwo"]);
    }
}
