//! The one reader of mail that strangers wrote: it gives a mail as a flat list of parts, each a slice of its
//! bytes.
//!
//! All code that reads such mail uses this module: reports, receipts, rules, forwards, views, and the
//! detection of repeats. It promises, for any bytes:
//!
//! - It never fails, never panics, and never recurses: the parts are one list, and dropping it drops a list.
//! - Time and memory are linear in the size of the mail; the steps are counted, and have a maximum
//!   ([`limit`]).
//! - Passed limits are recorded ([`ReadMail::passed`]); the content up to a limit is kept.
//! - A part's [`entity`](MailPart::entity) is exactly the bytes that a signature covers.
//! - Content is decoded only on request, and within a budget ([`DecodeBudget`]).
//!
//! A mail in a mail (`message/rfc822`, in any encoding) is one part. Its content is another mail, which a
//! caller can read separately, to a depth that the caller decides.
//!
//! `walk` finds the parts, `header` reads fields, `label` their parameters, `word` and `address` decode
//! values, `transfer` decodes bodies, and `role` distinguishes text, html and attachments. The parsers of
//! addresses, charsets and html text are mail-parser's; they see one value of bounded length at a time.

mod address;
mod header;
mod label;
pub mod limit;
mod role;
mod transfer;
mod walk;
mod word;

use std::{borrow::Cow, ops::Range};

pub use address::{HeaderAddress, addresses};
pub use header::{HeaderBlock, HeaderField, HeaderFields, unfold, unstructured};
pub use label::{ContentLabel, MediaType};
pub use limit::{PassedLimits, ReaderLimit};
pub use role::{PartClass, PartRoles};
pub use transfer::{DecodeBudget, DecodedContent, TransferEncoding};

pub(crate) use word::in_charset;

use walk::{PartRecord, PartWalk};

/// The longest content id that html may refer to.
const CONTENT_ID_BYTES_MAX: usize = 256;

/// A mail and its parts. The first part is the mail itself. Parts are in the order in which they begin, each
/// after the multipart that contains it.
pub struct ReadMail<'a> {
    raw: &'a [u8],
    parts: Vec<PartRecord>,
    fields: Vec<HeaderField<'a>>,
    passed: PassedLimits,
    steps: usize,
}

impl<'a> ReadMail<'a> {
    /// Reads a mail.
    pub fn read(raw: &'a [u8]) -> Self {
        let PartWalk { parts, fields, passed, steps, .. } = PartWalk::new(raw).run();
        Self { raw, parts, fields, passed, steps: steps.spent() }
    }

    /// The mail itself.
    pub fn root(&self) -> MailPart<'_, 'a> {
        MailPart { mail: self, index: 0 }
    }

    /// All parts, multiparts included; at least one.
    pub fn parts(&self) -> impl Iterator<Item = MailPart<'_, 'a>> {
        (0..self.parts.len()).map(|index| MailPart { mail: self, index })
    }

    /// The part at that index of [`parts`](Self::parts).
    pub fn part(&self, index: usize) -> Option<MailPart<'_, 'a>> {
        (index < self.parts.len()).then_some(MailPart { mail: self, index })
    }

    /// The limits that were passed. If there are any, the parts do not contain the whole mail.
    pub fn passed(&self) -> PassedLimits {
        self.passed
    }

    /// The number of steps that reading took.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The parts that are text, html, and attachments.
    pub fn roles(&self) -> PartRoles {
        PartRoles::from_mail(self)
    }
}

/// A part of a mail, or the mail itself.
#[derive(Clone, Copy)]
pub struct MailPart<'m, 'a> {
    mail: &'m ReadMail<'a>,
    index: usize,
}

impl<'m, 'a> MailPart<'m, 'a> {
    fn record(&self) -> &'m PartRecord {
        &self.mail.parts[self.index]
    }

    /// Its index among the parts.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The multipart that contains it.
    pub fn parent(&self) -> Option<MailPart<'m, 'a>> {
        self.record().parent.map(|index| MailPart { mail: self.mail, index })
    }

    /// The number of multiparts around it.
    pub fn depth(&self) -> usize {
        self.record().depth
    }

    /// Whether it contains parts.
    pub fn has_children(&self) -> bool {
        self.record().has_children
    }

    /// The parts directly inside it.
    pub fn children(&self) -> impl Iterator<Item = MailPart<'m, 'a>> {
        let (mail, parent) = (self.mail, self.index);
        let inside = (parent + 1..mail.parts.len())
            .take_while(move |index| mail.parts[*index].depth > mail.parts[parent].depth)
            .filter(move |index| mail.parts[*index].parent == Some(parent));
        inside.map(move |index| MailPart { mail, index })
    }

    /// The range of its header and body in the mail.
    pub fn entity_range(&self) -> Range<usize> {
        self.record().entity.clone()
    }

    /// The range of its body in the mail.
    pub fn body_range(&self) -> Range<usize> {
        self.record().body.clone()
    }

    /// Its header and body, which are the bytes that a signature covers.
    pub fn entity(&self) -> &'a [u8] {
        &self.mail.raw[self.entity_range()]
    }

    /// Its body, in its transfer encoding.
    pub fn body(&self) -> &'a [u8] {
        &self.mail.raw[self.body_range()]
    }

    /// Its header fields.
    pub fn header(&self) -> HeaderFields<'m, 'a> {
        HeaderFields::new(&self.mail.fields[self.record().fields.clone()])
    }

    /// Its `Content-Type`, if it has one.
    pub fn content_type(&self) -> Option<ContentLabel<'a>> {
        self.header().get(b"content-type").and_then(ContentLabel::new)
    }

    /// Its media type. The default is text, or a mail inside a digest.
    pub fn media_type(&self) -> MediaType<'a> {
        // A multipart always has a type, so this looks one level up and no further.
        let in_digest = || self.parent().is_some_and(|parent| parent.media_type().is("multipart", "digest"));
        match self.content_type() {
            Some(label) => label.media_type(),
            None if in_digest() => MediaType::MESSAGE,
            None => MediaType::TEXT,
        }
    }

    /// Whether it is meant to be saved rather than shown.
    pub fn is_attachment(&self) -> bool {
        let label = self.header().get(b"content-disposition").and_then(ContentLabel::new);
        label.is_some_and(|label| label.word().eq_ignore_ascii_case(b"attachment"))
    }

    /// Its file name, from `Content-Disposition` or `Content-Type`.
    pub fn file_name(&self) -> Option<String> {
        let disposition = self.header().get(b"content-disposition").and_then(ContentLabel::new);
        let name = disposition.and_then(|label| label.text("filename"));
        name.or_else(|| self.content_type()?.text("name"))
    }

    /// The content id that html refers to, without brackets.
    pub fn content_id(&self) -> Option<&'a str> {
        let value = self.header().get(b"content-id")?;
        let inner = match memchr::memchr(b'<', value) {
            Some(at) => value[at + 1..].split(|byte| *byte == b'>').next().unwrap_or_default(),
            None => value,
        };
        let id = std::str::from_utf8(inner.trim_ascii()).ok()?;
        (1..=CONTENT_ID_BYTES_MAX).contains(&id.len()).then_some(id)
    }

    /// Its transfer encoding.
    pub fn encoding(&self) -> TransferEncoding {
        TransferEncoding::from_header(self.header().get(b"content-transfer-encoding"))
    }

    /// Its body with the transfer encoding decoded.
    pub fn decoded(&self) -> DecodedContent<'a> {
        self.encoding().decode(self.body())
    }

    /// As [`decoded`](Self::decoded), within the budget of the mail.
    pub fn content(&self, budget: &mut DecodeBudget) -> Cow<'a, [u8]> {
        self.encoding().decode(budget.take(self.body())).bytes
    }

    /// Its content as text in UTF-8, within the budget of the mail. The length in UTF-8 counts.
    pub fn text(&self, budget: &mut DecodeBudget) -> Cow<'a, str> {
        let charset = self.content_type().and_then(|label| label.parameter("charset"));
        let content = self.content(budget);
        let made_of = content.len();
        let text = match content {
            Cow::Borrowed(bytes) => word::in_charset(bytes, charset.as_deref()),
            Cow::Owned(bytes) => Cow::Owned(word::in_charset(&bytes, charset.as_deref()).into_owned()),
        };
        let kept = text.floor_char_boundary(budget.take_text(made_of, text.len()));
        match text {
            text if kept == text.len() => text,
            Cow::Borrowed(text) => Cow::Borrowed(&text[..kept]),
            Cow::Owned(mut text) => {
                text.truncate(kept);
                Cow::Owned(text)
            }
        }
    }
}

#[cfg(test)]
mod tests;
