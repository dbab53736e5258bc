//! A mail as the report recognisers see it: its header, and its parts by their role in a report.
//!
//! The reader finds the parts; this module gives them a role. A part is decoded only when its text is needed.

use std::borrow::Cow;

use super::bytes::{contains, normalise, starts_with};
use super::header_field::{field_contains, is_of_mail};
use super::html_text::text_of_html;
use crate::reader::{ContentLabel, HeaderFields, MailPart, ReadMail, TransferEncoding, in_charset};

/// The maximum of text that is read as a report.
pub(super) const REPORT_OCTETS_MAX: usize = 256 * 1024;

/// The role of a part in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportPartKind {
    Text,
    Html,
    /// `message/delivery-status` (RFC 3464) or its UTF-8 form (RFC 6533).
    DeliveryStatus,
    /// `message/feedback-report` (RFC 5965).
    FeedbackReport,
    /// `message/disposition-notification` (RFC 8098).
    Disposition,
    /// The returned mail, or its header.
    Returned,
    Other,
}

/// A part of a mail without children.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportPart<'a> {
    pub(super) kind: ReportPartKind,
    pub(super) body: &'a [u8],
    encoding: TransferEncoding,
    content_type: Option<&'a [u8]>,
}

impl<'a> ReportPart<'a> {
    /// The decoded content, with LF line endings: encoded text may contain CR LF.
    pub(super) fn content(&self) -> Cow<'a, [u8]> {
        match self.encoding.decode(self.body).bytes {
            Cow::Borrowed(text) => Cow::Borrowed(text),
            Cow::Owned(decoded) => match normalise(&decoded, usize::MAX) {
                Cow::Owned(text) => Cow::Owned(text),
                Cow::Borrowed(_) => Cow::Owned(decoded),
            },
        }
    }

    /// The decoded content as UTF-8, if its charset is known. Content that is already valid UTF-8 is not
    /// changed, whatever charset it declares.
    fn text(&self) -> Cow<'a, [u8]> {
        let content = self.content();
        let content = match content {
            Cow::Borrowed(text) => Cow::Borrowed(limit(text)),
            Cow::Owned(mut text) => {
                text.truncate(REPORT_OCTETS_MAX);
                Cow::Owned(text)
            }
        };
        // ISO-2022 consists of ASCII octets, with an escape before other text.
        let is_escaped = memchr::memchr(0x1b, &content).is_some();
        if !is_escaped && std::str::from_utf8(&content).is_ok() {
            return content;
        }
        let Some(label) = self.content_type.and_then(ContentLabel::new) else { return content };
        let Some(charset) = label.parameter("charset") else { return content };
        let text = in_charset(&content, Some(&charset)).into_owned();
        // Text that cannot be decoded keeps its octets, because some phrases are recognised by them.
        if text.contains(char::REPLACEMENT_CHARACTER) { content } else { Cow::Owned(text.into_bytes()) }
    }
}

/// A mail that may be a report.
pub(super) struct ReportMail<'a> {
    read: ReadMail<'a>,
    pub(super) parts: Vec<ReportPart<'a>>,
    /// Whether the whole is a `multipart/report`.
    pub(super) is_report: bool,
}

impl<'a> ReportMail<'a> {
    /// Reads a mail whose lines end in LF.
    pub(super) fn parse(raw: &'a [u8]) -> Self {
        let read = ReadMail::read(raw);
        let mut parts = Vec::with_capacity(4);
        // The depth of a part whose children are skipped.
        let mut whole: Option<usize> = None;
        for part in read.parts() {
            if whole.is_some_and(|depth| part.depth() > depth) {
                continue;
            }
            whole = None;
            if is_unlabelled_mail(&part) {
                whole = Some(part.depth());
                let encoding = TransferEncoding::Identity;
                parts.push(ReportPart {
                    kind: ReportPartKind::Returned,
                    body: part.entity(),
                    encoding,
                    content_type: None,
                });
            } else if !part.has_children() {
                let content_type = part.header().get(b"content-type");
                let kind = content_type.map_or(ReportPartKind::Text, |value| kind_of(value, part.header()));
                parts.push(ReportPart { kind, body: part.body(), encoding: part.encoding(), content_type });
            }
        }
        let content_type = read.root().header().get(b"content-type");
        let is_report = content_type.is_some_and(|value| starts_with(value, b"multipart/report"));
        Self { read, parts, is_report }
    }

    /// The header of the mail itself.
    pub(super) fn header(&self) -> HeaderFields<'_, 'a> {
        self.read.root().header()
    }

    /// The first part of that kind.
    pub(super) fn part(&self, kind: ReportPartKind) -> Option<&ReportPart<'a>> {
        self.parts.iter().find(|part| part.kind == kind)
    }

    /// The human-readable text: the plain text before the returned mail, or else the HTML as text.
    pub(super) fn report_text(&self) -> Cow<'a, [u8]> {
        let end = self
            .parts
            .iter()
            .position(|part| part.kind == ReportPartKind::Returned)
            .unwrap_or(self.parts.len());
        let mut texts = self.parts[..end].iter().filter(|part| part.kind == ReportPartKind::Text);
        let mut text = match texts.next() {
            Some(first) => first.text(),
            None => match self.parts[..end].iter().find(|part| part.kind == ReportPartKind::Html) {
                Some(html) => Cow::Owned(text_of_html(&html.text())),
                None => Cow::Borrowed(&b""[..]),
            },
        };
        for more in texts {
            if text.len() > REPORT_OCTETS_MAX {
                break;
            }
            let joined = text.to_mut();
            joined.push(b'\n');
            joined.extend_from_slice(&more.text());
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

/// Whether a part is the original mail without a matching content type.
fn is_unlabelled_mail(part: &MailPart<'_, '_>) -> bool {
    let head = part.header();
    let says_message = || head.get(b"content-type").is_some_and(|value| starts_with(value, b"message/"));
    part.depth() > 0 && is_of_mail(head) && !says_message()
}

fn kind_of(content_type: &[u8], head: HeaderFields<'_, '_>) -> ReportPartKind {
    let end =
        content_type.iter().position(|&b| b == b';' || b.is_ascii_whitespace()).unwrap_or(content_type.len());
    let media = content_type[..end].to_ascii_lowercase();
    match media.as_slice() {
        b"message/delivery-status" | b"message/global-delivery-status" | b"text/delivery-status" => {
            ReportPartKind::DeliveryStatus
        }
        b"message/feedback-report" => ReportPartKind::FeedbackReport,
        b"message/disposition-notification" | b"message/global-disposition-notification" => {
            ReportPartKind::Disposition
        }
        b"message/rfc822"
        | b"message/global"
        | b"message/global-headers"
        | b"message/rfc822-headers"
        | b"text/rfc822-headers"
        | b"text/rfc822-header"
        | b"text/rfc822"
        | b"message/partial" => ReportPartKind::Returned,
        b"text/html" => ReportPartKind::Html,
        b"text" => ReportPartKind::Text,
        media if media.starts_with(b"text/") => {
            if field_contains(head, b"content-description", b"delivery report")
                && contains(content_type, b"delivery-status")
            {
                ReportPartKind::DeliveryStatus
            } else {
                ReportPartKind::Text
            }
        }
        media if media.starts_with(b"multipart/") => ReportPartKind::Text,
        _ => ReportPartKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(raw: &[u8]) -> Vec<ReportPartKind> {
        ReportMail::parse(raw).parts.iter().map(|part| part.kind).collect()
    }

    #[test]
    fn parts_are_cut_at_their_delimiters() {
        let raw = b"Content-Type: multipart/report; boundary=b\n\npreamble\n--b\n\nhello\n--b\n\
            Content-Type: message/delivery-status\n\nA: b\n--b\nContent-Type: message/rfc822\n\nX: y\n\n--b--\n";
        let mail = ReportMail::parse(raw);
        assert!(mail.is_report);
        assert_eq!(
            kinds(raw),
            [ReportPartKind::Text, ReportPartKind::DeliveryStatus, ReportPartKind::Returned]
        );
        assert_eq!(mail.parts[0].body, b"hello");
        assert_eq!(mail.report_text().as_ref(), b"hello");
    }

    #[test]
    fn a_nested_boundary_may_equal_or_extend_the_outer_one() {
        let equal = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=b\n\n\
            --b\n\nx\n--b--\n";
        assert_eq!(kinds(equal), [ReportPartKind::Text, ReportPartKind::Text]);
        let longer = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; \
            boundary=bb\n\n--bb\n\nx\n--bb\nContent-Type: text/html\n\ny\n--bb--\n--b--\n";
        assert_eq!(kinds(longer), [ReportPartKind::Text, ReportPartKind::Html]);
    }

    #[test]
    fn a_mail_that_is_a_part_without_saying_so_is_one_whatever_is_in_it() {
        let raw = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nfailed\n--b\nFrom: a@example.org\nSubject: x\n\
            Content-Type: multipart/alternative; boundary=i\n\n--i\n\nhi\n--i--\n--b\n\nend\n--b--\n";
        assert_eq!(kinds(raw), [ReportPartKind::Text, ReportPartKind::Returned, ReportPartKind::Text]);
        assert!(ReportMail::parse(raw).parts[1].body.starts_with(b"From: a@example.org"));
    }

    #[test]
    fn encoded_content_ends_in_line_feeds_only() {
        let mail = ReportMail::parse(b"Content-Transfer-Encoding: base64\n\nYQ0K\nYg==");
        assert_eq!(mail.parts[0].content().as_ref(), b"a\nb");
    }

    #[test]
    fn a_multipart_without_delimiters_is_text() {
        assert_eq!(
            kinds(b"Content-Type: multipart/report; boundary=b\n\nAction: failed\n"),
            [ReportPartKind::Text]
        );
    }
}
