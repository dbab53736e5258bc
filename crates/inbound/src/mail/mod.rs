//! A mail as rules and lists see it: header fields, people, attachments.
//!
//! The mail comes from somebody else and is read by [`postway_mime::reader`], which sets all limits. Fields
//! are slices of its bytes and are decoded on demand. What cannot be read is absent, and nothing here fails.

mod authentication;
mod summary;

use std::{borrow::Cow, sync::OnceLock};

use jiff::fmt::rfc2822::DateTimeParser;
use postway_domain::Time;
use postway_mime::reader::{
    HeaderAddress, HeaderBlock, MailPart, PassedLimits, ReadMail, addresses, unfold, unstructured,
};

pub(crate) use self::{
    authentication::TrustedAuthentication,
    summary::{MailSummary, bounded},
};

/// The most people that are read from one field.
const PEOPLE_MAX: usize = 1_000;

/// A person named in a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderPerson {
    pub name: Option<String>,
    pub address: String,
}

impl HeaderPerson {
    /// Takes a header address that has an address part.
    fn new(found: HeaderAddress) -> Option<Self> {
        let address = found.address?.trim().to_owned();
        let name = found.name.map(|name| name.trim().replace(char::is_control, " "));
        Some(Self { name: name.filter(|name| !name.is_empty()), address })
    }

    /// Name and address: `Ada Lovelace <ada@example.org>`.
    pub(crate) fn full(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => Cow::Owned(format!("{name} <{}>", self.address)),
            None => Cow::Borrowed(&self.address),
        }
    }
}

/// A mail. See the module.
pub(crate) struct ParsedMail<'a> {
    raw: &'a [u8],
    header: HeaderBlock<'a>,
    attached: OnceLock<AttachmentNames>,
}

/// The attachments of a mail.
pub(crate) struct AttachmentNames {
    /// The file names of the attachments.
    pub names: Vec<String>,
    /// The limits that ended the search for more.
    pub passed: PassedLimits,
}

impl<'a> ParsedMail<'a> {
    /// Finds the header fields.
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { raw, header: HeaderBlock::read(raw), attached: OnceLock::new() }
    }

    /// The bytes of the mail.
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// How many fields have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.values(name).count()
    }

    /// The values of the fields with this name, unfolded.
    pub(crate) fn plain<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        self.values(name).map(text_of)
    }

    /// The values of the fields with this name, unfolded, with encoded words (RFC 2047) decoded.
    pub(crate) fn texts<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        // An encoded word may contain any character, but no reader of a field expects a line break.
        self.values(name).map(|value| unstructured(value).trim().replace(char::is_control, " "))
    }

    /// The people in the fields with this name, with groups resolved.
    pub(crate) fn people(&self, name: &str) -> Vec<HeaderPerson> {
        let mut people = Vec::new();
        for value in self.values(name) {
            let left = PEOPLE_MAX - people.len();
            people.extend(addresses(value, left).into_iter().filter_map(HeaderPerson::new));
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

    /// The date in its header; `None` if it cannot be read.
    pub(crate) fn dated_at(&self) -> Option<Time> {
        let text = self.plain("Date").next()?;
        let date = DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text.trim()).ok()?;
        // A date before 1970 is wrong, and not every database can store it.
        Some(Time::from_millis(date.as_millisecond())).filter(|at| at.as_millis() >= 0)
    }

    /// The attachments: parts that are neither text nor shown inside the HTML. The mail is read once, however
    /// many rules ask.
    pub(crate) fn attached(&self) -> &AttachmentNames {
        self.attached.get_or_init(|| self.find_attached())
    }

    fn find_attached(&self) -> AttachmentNames {
        let mail = self.read_parts();
        let parts = mail.roles().attachments;
        let attached =
            parts.iter().filter_map(|index| mail.part(*index)).filter(|part| !is_shown_inside(part));
        let names =
            attached.map(|part| part.file_name().unwrap_or_else(|| "attachment".to_owned())).collect();
        AttachmentNames { names, passed: mail.passed() }
    }

    /// All parts of the mail.
    pub(crate) fn read_parts(&self) -> ReadMail<'a> {
        ReadMail::read(self.raw)
    }

    fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.header.fields().all(name.as_bytes())
    }
}

/// Whether a part is shown inside the HTML, which refers to it.
pub(crate) fn is_shown_inside(part: &MailPart<'_, '_>) -> bool {
    part.content_id().is_some() && !part.is_attachment()
}

/// A value as text, unfolded.
fn text_of(value: &[u8]) -> String {
    String::from_utf8_lossy(&unfold(value)).replace('\0', "")
}

#[cfg(test)]
mod tests {
    use postway_mime::reader::{
        ReaderLimit,
        limit::{FIELD_BYTES_MAX, FIELDS_OF_PART_MAX},
    };

    use super::*;

    const MAIL: &str = "From: =?utf-8?q?Ad=C3=A0?= <ada@example.org>\nTo: a@x.example,\n \"B, C\" <b@x.example>\n\
        Cc: friends: c@x.example, d@x.example;\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\n of\n spring\n\
        X-Twice: one\nx-twice : two\nMessage-ID: <m@example.org>\n\nX-Body: no\n";

    #[test]
    fn fields_are_read_whatever_ends_their_lines_and_however_they_are_folded() {
        for ending in ["\n", "\r\n"] {
            let raw = MAIL.replace('\n', ending);
            let mail = ParsedMail::new(raw.as_bytes());
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
    fn a_mail_is_of_the_date_that_it_bears_if_that_is_one() {
        for (date, seconds) in [
            ("Fri, 21 Nov 1997 09:55:06 -0600", Some(880_127_706)),
            ("Mon, 21 Nov 1997 09:55:06 -0600 (a comment)", Some(880_127_706)),
            ("21 Nov 97 09:55:06 GMT", Some(880_106_106)),
            ("yesterday", None),
            ("Fri, 21 Nov 1937 09:55:06 -0600", None),
            ("Fri, 99 Nov 1997 09:55:06 -0600", None),
        ] {
            let raw = format!("Subject: s\r\nDate: {date}\r\n\r\n");
            let dated_at = ParsedMail::new(raw.as_bytes()).dated_at();
            assert_eq!(dated_at.map(Time::as_seconds), seconds, "{date}");
        }
        assert_eq!(ParsedMail::new(b"Subject: s\r\n\r\n").dated_at(), None);
    }

    #[test]
    fn hostile_headers_are_read_as_far_as_is_sane() {
        let many = "X-A: b\r\n".repeat(1_000_000);
        assert_eq!(ParsedMail::new(many.as_bytes()).count("X-A"), FIELDS_OF_PART_MAX);
        let long = format!("Subject: {}\r\n\r\n", "x".repeat(2_000_000));
        assert!(ParsedMail::new(long.as_bytes()).subject().unwrap().len() <= FIELD_BYTES_MAX);
        for odd in [&b""[..], b"\n", b":\n", b" folded first\n", b"\xff\xfe: \xff\n\n", b"From:"] {
            let mail = ParsedMail::new(odd);
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
        assert!(ParsedMail::new(image.as_bytes()).attached().names.is_empty());
        let file = mail("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf");
        assert_eq!(ParsedMail::new(file.as_bytes()).attached().names, ["a.pdf"]);
        let costly =
            format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", "--b\r\n\r\n".repeat(20_000));
        let mail = ParsedMail::new(costly.as_bytes());
        let attached = mail.attached();
        assert!(attached.names.is_empty() && attached.passed.contains(ReaderLimit::Parts));
        let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(60_000);
        let mail = ParsedMail::new(nested.as_bytes());
        assert_eq!(mail.attached().names, ["attachment"]);
        assert!(std::ptr::eq(mail.attached(), mail.attached()), "it is taken apart once");
    }
}
