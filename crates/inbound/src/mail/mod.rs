//! A mail as rules and lists look at it: its header fields, who wrote it to whom, whether something is attached.
//!
//! Made for mail that somebody else wrote. Fields are slices of its bytes and are decoded when they are asked for; only
//! the first [`HEADER_BYTES_MAX`] octets of a header are looked at, and never more than [`FIELDS_MAX`] fields. What cannot
//! be read is absent: nothing here fails.

mod summary;

use std::borrow::Cow;

use mail_parser::{Address, HeaderValue, Message, MimeHeaders, parsers::MessageStream};
use postway_mime::reading::taken_apart;

pub(crate) use self::summary::{Summary, bounded};

/// How much of a header is looked at.
const HEADER_BYTES_MAX: usize = 256 * 1024;
/// How many of its fields.
const FIELDS_MAX: usize = 5_000;
/// How much of one field is decoded.
const FIELD_BYTES_MAX: usize = 16 * 1024;
/// How many people of one field are read.
const PEOPLE_MAX: usize = 1_000;

/// Somebody named in a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub name: Option<String>,
    pub address: String,
}

impl Person {
    /// As people write it: `Ada Lovelace <ada@example.org>`.
    pub(crate) fn full(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => Cow::Owned(format!("{name} <{}>", self.address)),
            None => Cow::Borrowed(&self.address),
        }
    }
}

/// See the module.
pub(crate) struct Mail<'a> {
    raw: &'a [u8],
    fields: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Mail<'a> {
    /// Finds the fields.
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { raw, fields: fields(&raw[..raw.len().min(HEADER_BYTES_MAX)]) }
    }

    /// All of it.
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// How many fields have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.values(name).count()
    }

    /// The fields of this name as they stand there, unfolded.
    pub(crate) fn plain<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        self.values(name).map(unfold)
    }

    /// The fields of this name, unfolded, with encoded words (RFC 2047) read.
    pub(crate) fn texts<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        self.plain(name).map(|text| decode(&text))
    }

    /// The people that the fields of this name tell of, groups dissolved.
    pub(crate) fn people(&self, name: &str) -> Vec<Person> {
        let mut people = Vec::new();
        for text in self.plain(name) {
            people.extend(addresses(&text));
            people.truncate(PEOPLE_MAX);
        }
        people
    }

    /// The subject.
    pub(crate) fn subject(&self) -> Option<String> {
        self.texts("Subject").next().filter(|subject| !subject.is_empty())
    }

    /// The Message-ID without its brackets.
    pub(crate) fn message_id(&self) -> Option<String> {
        let text = self.plain("Message-ID").next()?;
        let id = text.trim().trim_start_matches('<').trim_end_matches('>').trim();
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// Whether it has attachments: parts that are neither its text nor shown inside it.
    pub(crate) fn has_attachment(&self) -> bool {
        self.attachment_names().next().is_some()
    }

    /// What its attachments are called.
    pub(crate) fn attachment_names(&self) -> impl Iterator<Item = String> {
        let names: Vec<String> = self.taken_apart().map_or_else(Vec::new, |mail| {
            let attached = mail.attachments().filter(|part| !is_shown_inside(part));
            attached.map(|part| part.attachment_name().unwrap_or("attachment").to_owned()).collect()
        });
        names.into_iter()
    }

    /// All its parts, unless it was made to be costly.
    pub(crate) fn taken_apart(&self) -> Option<Message<'a>> {
        taken_apart(self.raw)
    }

    fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        let named = |known: &[u8]| known.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(move |(known, _)| named(known)).map(|(_, value)| *value)
    }
}

/// Whether a part is shown inside the html, which names it.
pub(crate) fn is_shown_inside(part: &mail_parser::MessagePart<'_>) -> bool {
    let is_attachment = part.content_disposition().is_some_and(|found| found.is_attachment());
    part.content_id().is_some() && !is_attachment
}

/// Names and values of header fields, up to the first empty line.
fn fields(block: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut fields: Vec<(&[u8], &[u8])> = Vec::new();
    let mut at = 0;
    // Where the value of the field being read begins, and its name.
    let mut open: Option<(&[u8], usize)> = None;
    while at < block.len() && fields.len() < FIELDS_MAX {
        let rest = &block[at..];
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let line = rest[..end].trim_ascii_end();
        let continues = matches!(rest.first(), Some(b' ' | b'\t'));
        // A continuation of white space alone says nothing, and ends nothing.
        if !continues {
            if let Some((name, start)) = open.take() {
                fields.push((name, &block[start..at]));
            }
            if line.is_empty() {
                return fields;
            }
            if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                open = Some((line[..colon].trim_ascii(), at + colon + 1));
            }
        }
        at += end;
    }
    if let Some((name, start)) = open {
        fields.push((name, &block[start..at.min(block.len())]));
    }
    fields.truncate(FIELDS_MAX);
    fields
}

/// A value without its folds and outer white space.
fn unfold(value: &[u8]) -> String {
    let value = &value[..value.len().min(FIELD_BYTES_MAX)];
    let text = String::from_utf8_lossy(value);
    text.trim().chars().filter(|character| !matches!(character, '\r' | '\n' | '\0')).collect()
}

/// An unfolded value with its encoded words read, on one line.
fn decode(text: &str) -> String {
    if !text.contains("=?") {
        return text.to_owned();
    }
    let line = format!("{text}\r\n");
    match MessageStream::new(line.as_bytes()).parse_unstructured() {
        // An encoded word may hold any character; nobody who compares or shows a field wants a line break.
        HeaderValue::Text(text) => text.trim().replace(char::is_control, " "),
        _ => text.to_owned(),
    }
}

fn addresses(text: &str) -> Vec<Person> {
    let line = format!("{text}\r\n");
    let HeaderValue::Address(found) = MessageStream::new(line.as_bytes()).parse_address() else {
        return Vec::new();
    };
    let found: Vec<_> = match &found {
        Address::List(list) => list.iter().collect(),
        Address::Group(groups) => groups.iter().flat_map(|group| &group.addresses).collect(),
    };
    let person = |one: &mail_parser::Addr<'_>| {
        let address = one.address()?.trim().to_owned();
        let name = one.name().map(|name| name.trim().replace(char::is_control, " "));
        Some(Person { name: name.filter(|name| !name.is_empty()), address })
    };
    found.into_iter().take(PEOPLE_MAX).filter_map(person).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "From: =?utf-8?q?Ad=C3=A0?= <ada@example.org>\nTo: a@x.example,\n \"B, C\" <b@x.example>\n\
        Cc: friends: c@x.example, d@x.example;\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\n of\n spring\n\
        X-Twice: one\nx-twice : two\nMessage-ID: <m@example.org>\n\nX-Body: no\n";

    #[test]
    fn fields_are_read_whatever_ends_their_lines_and_however_they_are_folded() {
        for ending in ["\n", "\r\n"] {
            let raw = MAIL.replace('\n', ending);
            let mail = Mail::new(raw.as_bytes());
            assert_eq!(mail.people("from")[0].full(), "Adà <ada@example.org>");
            let to: Vec<_> = mail.people("To").into_iter().map(|one| one.address).collect();
            assert_eq!(to, ["a@x.example", "b@x.example"]);
            assert_eq!(mail.people("Cc").len(), 2);
            assert_eq!(mail.subject().as_deref(), Some("Grüße of spring"));
            assert_eq!(mail.plain("X-TWICE").collect::<Vec<_>>(), ["one", "two"]);
            assert_eq!(mail.message_id().as_deref(), Some("m@example.org"));
            assert_eq!(mail.count("X-Body"), 0);
        }
    }

    #[test]
    fn hostile_headers_are_read_as_far_as_is_sane() {
        let many = "X-A: b\r\n".repeat(1_000_000);
        assert_eq!(Mail::new(many.as_bytes()).fields.len(), FIELDS_MAX);
        let long = format!("Subject: {}\r\n\r\n", "x".repeat(2_000_000));
        assert!(Mail::new(long.as_bytes()).subject().unwrap().len() <= FIELD_BYTES_MAX);
        for odd in [&b""[..], b"\n", b":\n", b" folded first\n", b"\xff\xfe: \xff\n\n", b"From:"] {
            let mail = Mail::new(odd);
            assert!(mail.people("From").is_empty() && mail.subject().is_none());
        }
    }

    #[test]
    fn an_image_in_the_text_is_no_attachment_and_a_file_is() {
        let mail = |part: &str| {
            format!(
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<img src='cid:i'>\r\n\
                 --b\r\n{part}\r\n\r\nx\r\n--b--\r\n"
            )
        };
        let image = mail("Content-Type: image/png\r\nContent-ID: <i>\r\nContent-Disposition: inline");
        assert!(!Mail::new(image.as_bytes()).has_attachment());
        let file = mail("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf");
        assert_eq!(Mail::new(file.as_bytes()).attachment_names().collect::<Vec<_>>(), ["a.pdf"]);
        let costly =
            format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", "--b\r\n\r\n".repeat(20_000));
        assert!(!Mail::new(costly.as_bytes()).has_attachment());
    }
}
