//! The one reader of strangers' mail: a mail as a flat list of parts, each a slice of its bytes.
//!
//! Whatever looks into a mail that somebody else wrote does it through here: reports, receipts, rules, forwards, the view of
//! a mail, repeats. It promises, for any bytes:
//!
//! - It never fails, never panics, and never recurses: the parts are one list, and dropping it drops a list.
//! - Time and memory are linear in the size of the mail; the steps are counted, and have a maximum ([`limit`]).
//! - What is beyond a limit is named ([`ReadMail::passed`]); what was read up to there is kept.
//! - A part's [`entity`](MailPart::entity) is exactly the bytes that a signature is over.
//! - Nothing is decoded before it is asked for, and then within a budget ([`DecodeBudget`]).
//!
//! A mail in a mail (`message/rfc822`, in whatever encoding) is one part. Its content is another mail, which whoever wants
//! to see it reads on its own, as often as he has decided to.
//!
//! `walk` finds the parts, `header` reads fields, `label` their parameters, `word` and `address` what they say, `transfer`
//! undoes encodings, and `role` tells text, html and attachments apart. The grammars of addresses, of charsets and of the
//! text of html are mail-parser's; they see one value at a time, of bounded length.

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

/// A mail, taken apart. The first part is the mail itself; parts are in the order in which they begin, each after the
/// multipart it is in.
pub struct ReadMail<'a> {
    raw: &'a [u8],
    parts: Vec<PartRecord>,
    fields: Vec<HeaderField<'a>>,
    passed: PassedLimits,
    steps: usize,
}

impl<'a> ReadMail<'a> {
    /// Takes a mail apart.
    pub fn read(raw: &'a [u8]) -> Self {
        let PartWalk { parts, fields, passed, steps, .. } = PartWalk::new(raw).run();
        Self { raw, parts, fields, passed, steps: steps.spent() }
    }

    /// The mail itself.
    pub fn root(&self) -> MailPart<'_, 'a> {
        MailPart { mail: self, index: 0 }
    }

    /// All parts, multiparts included; never none.
    pub fn parts(&self) -> impl Iterator<Item = MailPart<'_, 'a>> {
        (0..self.parts.len()).map(|index| MailPart { mail: self, index })
    }

    /// The part of that place in [`parts`](Self::parts).
    pub fn part(&self, index: usize) -> Option<MailPart<'_, 'a>> {
        (index < self.parts.len()).then_some(MailPart { mail: self, index })
    }

    /// The limits that were passed: where there are any, the mail has more than the parts say.
    pub fn passed(&self) -> PassedLimits {
        self.passed
    }

    /// How many steps the reading took.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Which parts are the text, which the html, and which are attached.
    pub fn roles(&self) -> PartRoles {
        PartRoles::of(self)
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

    /// Its place among the parts.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The multipart that it is in.
    pub fn parent(&self) -> Option<MailPart<'m, 'a>> {
        self.record().parent.map(|index| MailPart { mail: self.mail, index })
    }

    /// How many multiparts it is in.
    pub fn depth(&self) -> usize {
        self.record().depth
    }

    /// Whether parts were found in it.
    pub fn has_children(&self) -> bool {
        self.record().has_children
    }

    /// The parts that are directly in it.
    pub fn children(&self) -> impl Iterator<Item = MailPart<'m, 'a>> {
        let (mail, parent) = (self.mail, self.index);
        let inside = (parent + 1..mail.parts.len())
            .take_while(move |index| mail.parts[*index].depth > mail.parts[parent].depth)
            .filter(move |index| mail.parts[*index].parent == Some(parent));
        inside.map(move |index| MailPart { mail, index })
    }

    /// Where its header and body stand in the mail.
    pub fn entity_range(&self) -> Range<usize> {
        self.record().entity.clone()
    }

    /// Where its body stands in the mail.
    pub fn body_range(&self) -> Range<usize> {
        self.record().body.clone()
    }

    /// Its header and body: what a signature of it is over.
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

    /// Its `Content-Type`, where it has one.
    pub fn content_type(&self) -> Option<ContentLabel<'a>> {
        self.header().get(b"content-type").and_then(ContentLabel::new)
    }

    /// What it is; where it does not say so, text, or, in a digest, a mail.
    pub fn media_type(&self) -> MediaType<'a> {
        // A multipart says what it is, so this asks one level up and no further.
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

    /// The name of the file that it is, from either of the fields that give one.
    pub fn file_name(&self) -> Option<String> {
        let disposition = self.header().get(b"content-disposition").and_then(ContentLabel::new);
        let name = disposition.and_then(|label| label.text("filename"));
        name.or_else(|| self.content_type()?.text("name"))
    }

    /// The id by which html refers to it, without its brackets.
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
        TransferEncoding::of(self.header().get(b"content-transfer-encoding"))
    }

    /// Its body with the transfer encoding undone.
    pub fn decoded(&self) -> DecodedContent<'a> {
        self.encoding().decode(self.body())
    }

    /// As [`decoded`](Self::decoded), as far as the budget of the mail reaches.
    pub fn content(&self, budget: &mut DecodeBudget) -> Cow<'a, [u8]> {
        self.encoding().decode(budget.take(self.body())).bytes
    }

    /// Its content as text of its charset, as far as the budget of the mail reaches; what it has in UTF-8 counts.
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
