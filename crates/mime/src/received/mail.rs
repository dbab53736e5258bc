//! One cheap view of a mail: its header, and its parts as slices.
//!
//! Parts are cut, not decoded; a part is decoded when somebody asks for its text. Each level of multipart is
//! one search for its delimiter in its own slice, at most [`DEPTH_MAX`] levels deep and [`PARTS_MAX`] parts
//! in all, so the work is linear in the size however the parts are nested. A part whose boundary equals that
//! of its parent, or begins with it, is cut like any other: a delimiter counts only when nothing but white
//! space follows it.

use std::borrow::Cow;

use memchr::memmem;

use super::bytes::{contains, starts_with, trim};
use super::decode::{Encoding, text_of_html};
use super::field::{Head, parameter};

/// How deep multiparts are followed.
pub(super) const DEPTH_MAX: usize = 8;

/// The most parts that are looked at.
pub(super) const PARTS_MAX: usize = 64;

/// The most text that is read as a report.
pub(super) const REPORT_OCTETS_MAX: usize = 256 * 1024;

/// What a part is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Html,
    /// `message/delivery-status` (RFC 3464) or its UTF-8 form (RFC 6533).
    DeliveryStatus,
    /// `message/feedback-report` (RFC 5965).
    FeedbackReport,
    /// `message/disposition-notification` (RFC 8098).
    Disposition,
    /// A mail, or the header of one.
    Returned,
    Other,
}

/// A leaf of the mail.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub(super) kind: PartKind,
    pub(super) body: &'a [u8],
    encoding: Encoding,
}

impl<'a> Part<'a> {
    /// The decoded content.
    pub(super) fn content(&self) -> Cow<'a, [u8]> {
        self.encoding.decode(self.body)
    }
}

/// A mail.
#[derive(Debug, Clone)]
pub(super) struct Mail<'a> {
    pub(super) head: Head<'a>,
    pub(super) parts: Vec<Part<'a>>,
    /// Whether the whole is a `multipart/report`.
    pub(super) is_report: bool,
}

impl<'a> Mail<'a> {
    /// Cuts a mail whose lines end in LF.
    pub(super) fn parse(raw: &'a [u8]) -> Self {
        let (head, body) = Head::parse(raw);
        let mut parts = Vec::with_capacity(4);
        cut(&head, body, 0, &mut parts);
        let is_report =
            head.get(b"content-type").is_some_and(|value| starts_with(value, b"multipart/report"));
        Self { head, parts, is_report }
    }

    /// The first part of that kind.
    pub(super) fn part(&self, kind: PartKind) -> Option<&Part<'a>> {
        self.parts.iter().find(|part| part.kind == kind)
    }

    /// The words for people: the plain text before the returned mail, or else the HTML as text.
    pub(super) fn report_text(&self) -> Cow<'a, [u8]> {
        let end =
            self.parts.iter().position(|part| part.kind == PartKind::Returned).unwrap_or(self.parts.len());
        let mut texts = self.parts[..end].iter().filter(|part| part.kind == PartKind::Text);
        let mut text = match texts.next() {
            Some(first) => first.content(),
            None => match self.parts[..end].iter().find(|part| part.kind == PartKind::Html) {
                Some(html) => Cow::Owned(text_of_html(limit(&html.content()))),
                None => Cow::Borrowed(&b""[..]),
            },
        };
        for more in texts {
            if text.len() > REPORT_OCTETS_MAX {
                break;
            }
            let joined = text.to_mut();
            joined.push(b'\n');
            joined.extend_from_slice(limit(&more.content()));
        }
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(limit(text)),
            Cow::Owned(mut text) => {
                text.truncate(REPORT_OCTETS_MAX);
                Cow::Owned(text)
            }
        }
    }
}

fn limit(text: &[u8]) -> &[u8] {
    &text[..text.len().min(REPORT_OCTETS_MAX)]
}

/// Adds the leaves of an entity.
fn cut<'a>(head: &Head<'a>, body: &'a [u8], depth: usize, parts: &mut Vec<Part<'a>>) {
    let content_type = head.get(b"content-type");
    if let Some(value) = content_type
        && starts_with(value, b"multipart/")
        && depth < DEPTH_MAX
        && let Some(boundary) = parameter(value, b"boundary")
        && !boundary.is_empty()
    {
        let before = parts.len();
        for entity in Entities::new(body, &boundary) {
            if parts.len() >= PARTS_MAX {
                return;
            }
            cut_entity(entity, depth + 1, parts);
        }
        if parts.len() > before {
            return;
        }
    }
    let kind = content_type.map_or(PartKind::Text, |value| kind_of(value, head));
    parts.push(Part { kind, body, encoding: Encoding::of(head.get(b"content-transfer-encoding")) });
}

/// Adds the leaves of a part, whose own header comes first.
fn cut_entity<'a>(entity: &'a [u8], depth: usize, parts: &mut Vec<Part<'a>>) {
    // A part that begins with a blank line has no header.
    let (head, body) = match entity.strip_prefix(b"\n") {
        Some(body) => (Head::default(), body),
        None => Head::parse(entity),
    };
    if head.is_of_mail() && !head.get(b"content-type").is_some_and(|value| starts_with(value, b"message/")) {
        // Some send the original mail as a part without saying so.
        parts.push(Part { kind: PartKind::Returned, body: entity, encoding: Encoding::Plain });
        return;
    }
    if head.len() == 0 && body.is_empty() && !trim(entity).is_empty() {
        parts.push(Part { kind: PartKind::Text, body: entity, encoding: Encoding::Plain });
        return;
    }
    cut(&head, body, depth, parts);
}

fn kind_of(content_type: &[u8], head: &Head<'_>) -> PartKind {
    let end =
        content_type.iter().position(|&b| b == b';' || b.is_ascii_whitespace()).unwrap_or(content_type.len());
    let media = content_type[..end].to_ascii_lowercase();
    match media.as_slice() {
        b"message/delivery-status" | b"message/global-delivery-status" | b"text/delivery-status" => {
            PartKind::DeliveryStatus
        }
        b"message/feedback-report" => PartKind::FeedbackReport,
        b"message/disposition-notification" | b"message/global-disposition-notification" => {
            PartKind::Disposition
        }
        b"message/rfc822"
        | b"message/global"
        | b"message/global-headers"
        | b"message/rfc822-headers"
        | b"text/rfc822-headers"
        | b"text/rfc822-header"
        | b"text/rfc822"
        | b"message/partial" => PartKind::Returned,
        b"text/html" => PartKind::Html,
        b"text" => PartKind::Text,
        media if media.starts_with(b"text/") => {
            if head.says(b"content-description", b"delivery report")
                && contains(content_type, b"delivery-status")
            {
                PartKind::DeliveryStatus
            } else {
                PartKind::Text
            }
        }
        media if media.starts_with(b"multipart/") => PartKind::Text,
        _ => PartKind::Other,
    }
}

/// The entities between the delimiters of a multipart.
struct Entities<'a> {
    body: &'a [u8],
    delimiter: Vec<u8>,
    at: Option<usize>,
}

impl<'a> Entities<'a> {
    fn new(body: &'a [u8], boundary: &[u8]) -> Self {
        let mut delimiter = Vec::with_capacity(boundary.len() + 3);
        delimiter.extend_from_slice(b"\n--");
        delimiter.extend_from_slice(boundary);
        let mut entities = Self { body, delimiter, at: None };
        entities.at = if entities.closes(0, 1).is_some() {
            entities.closes(0, 1)
        } else {
            entities.delimiter_from(0).map(|f| f.1)
        };
        entities
    }

    /// Whether a delimiter stands at `at`, of which the first `skip` octets are left away; gives where its
    /// line ends. The last delimiter, with two hyphens after it, gives the end of the body.
    fn closes(&self, at: usize, skip: usize) -> Option<usize> {
        let rest = self.body.get(at..)?.strip_prefix(&self.delimiter[skip..])?;
        let rest_at = self.body.len() - rest.len();
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = trim(&rest[..end]);
        match line {
            b"" => Some((rest_at + end + 1).min(self.body.len())),
            _ if line.starts_with(b"--") => Some(self.body.len()),
            _ => None,
        }
    }

    /// The next delimiter from `from` on: where it begins and where its line ends.
    fn delimiter_from(&self, from: usize) -> Option<(usize, usize)> {
        for found in memmem::find_iter(self.body.get(from..)?, &self.delimiter) {
            if let Some(end) = self.closes(from + found, 0) {
                return Some((from + found, end));
            }
        }
        None
    }
}

impl<'a> Iterator for Entities<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.at.filter(|&at| at < self.body.len())?;
        // The delimiter's line feed belongs to it: search from the one that ended the line before.
        let (end, after) = match self.delimiter_from(begin - 1) {
            Some((end, after)) => (end.max(begin), Some(after)),
            None => (self.body.len(), None),
        };
        self.at = after;
        Some(&self.body[begin..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(raw: &[u8]) -> Vec<PartKind> {
        Mail::parse(raw).parts.iter().map(|part| part.kind).collect()
    }

    #[test]
    fn parts_are_cut_at_their_delimiters() {
        let raw = b"Content-Type: multipart/report; boundary=b\n\npreamble\n--b\n\nhello\n--b\n\
            Content-Type: message/delivery-status\n\nA: b\n--b\nContent-Type: message/rfc822\n\nX: y\n\n--b--\n";
        let mail = Mail::parse(raw);
        assert!(mail.is_report);
        assert_eq!(kinds(raw), [PartKind::Text, PartKind::DeliveryStatus, PartKind::Returned]);
        assert_eq!(mail.parts[0].body, b"hello");
        assert_eq!(mail.report_text().as_ref(), b"hello");
    }

    #[test]
    fn a_nested_boundary_may_equal_or_extend_the_outer_one() {
        let equal = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=b\n\n\
            --b\n\nx\n--b--\n";
        assert_eq!(kinds(equal), [PartKind::Text, PartKind::Text]);
        let longer = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; \
            boundary=bb\n\n--bb\n\nx\n--bb\nContent-Type: text/html\n\ny\n--bb--\n--b--\n";
        assert_eq!(kinds(longer), [PartKind::Text, PartKind::Html]);
    }

    #[test]
    fn depth_and_number_of_parts_are_bounded() {
        let mut deep = Vec::new();
        for level in 0..10_000 {
            deep.extend_from_slice(
                format!("Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n").as_bytes(),
            );
        }
        assert_eq!(Mail::parse(&deep).parts.len(), 1);
        let mut wide = b"Content-Type: multipart/mixed; boundary=b\n\n".to_vec();
        wide.extend(b"--b\n\nx\n".repeat(10_000));
        assert_eq!(Mail::parse(&wide).parts.len(), PARTS_MAX);
    }

    #[test]
    fn a_multipart_without_delimiters_is_text() {
        assert_eq!(
            kinds(b"Content-Type: multipart/report; boundary=b\n\nAction: failed\n"),
            [PartKind::Text]
        );
    }
}
