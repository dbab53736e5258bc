//! Composing: a draft becomes an RFC 5322 message with an RFC 2045 body.
//!
//! The structure is `mixed(alternative(text, …, related(html, inline…), calendar), attachments…)`, with every
//! level that would have one child left out (`alternative.rs` defines the order). The bytes depend on the
//! draft alone: the caller supplies date, Message-ID and uid, and boundaries derive from the uid, so
//! composing again after a crash gives the same message.
//!
//! A boundary starts with `=_`, which occurs neither in base64 nor in quoted-printable. A plain part that
//! happens to contain a boundary is encoded, so content never contains one.
//!
//! There is no field for Bcc: only the envelope names those recipients. Local parts outside ASCII are written
//! to the header unchanged (RFC 6532) and set [`ComposedMail::smtputf8`]; domains are A-labels. Everything
//! else is ASCII, except attached mails, which are not encoded.

use mail_builder::headers::date::Date;
use postway_domain::address::NamedAddress;

pub mod deliverability;

mod alternative;
mod attachment;

pub use alternative::{ALTERNATIVES_MAX, AlternativeError, AlternativeKind, BodyAlternative};
pub use attachment::MailAttachment;

use attachment::FILENAME_CHARS_MAX;

use crate::{
    header::{
        HEADER_COUNT_MAX, HeaderError, check_header, check_subject, reserved_header,
        write::{write_extra, write_mailboxes, write_subject},
    },
    wire::transfer_encoding::{BodyEncoding, survey, write_base64, write_text},
};

/// The longest uid; a boundary made of it has at most 70 characters (RFC 2046, 5.1.1).
const UID_OCTETS_MAX: usize = 60;
/// The longest Message-ID without its brackets.
const MESSAGE_ID_OCTETS_MAX: usize = 320;

/// The content of a message to compose.
#[derive(Debug, Clone, Copy)]
pub struct MailDraft<'a> {
    /// The author.
    pub from: &'a NamedAddress,
    /// The sender, if it is not the author.
    pub sender: Option<&'a NamedAddress>,
    /// The recipients named in `To`.
    pub to: &'a [NamedAddress],
    /// The recipients named in `Cc`.
    pub cc: &'a [NamedAddress],
    /// The addresses that replies go to.
    pub reply_to: &'a [NamedAddress],
    /// The subject line.
    pub subject: &'a str,
    /// The plain text, if any. At least one of text and html is required.
    pub text: Option<&'a str>,
    /// The html, if any.
    pub html: Option<&'a str>,
    /// Further forms of the text, in any order.
    pub alternatives: &'a [BodyAlternative<'a>],
    /// Further header fields, in order.
    pub headers: &'a [(String, String)],
    /// Files, in order.
    pub attachments: &'a [MailAttachment],
    /// The Message-ID, `uid@domain`, without angle brackets.
    pub message_id: &'a str,
    /// The message's uid, for `X-Postway-ID` and the boundaries.
    pub uid: &'a str,
    /// The time for `Date`, in seconds since 1970.
    pub date_unix: i64,
}

/// A finished message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedMail {
    /// The message, ending with CRLF, not dot-stuffed.
    pub bytes: Vec<u8>,
    /// Whether it contains an octet over 127, so that it needs 8BITMIME.
    pub eight_bit: bool,
    /// Whether its header needs SMTPUTF8. Envelope addresses may need it too, which this does not say.
    pub smtputf8: bool,
}

/// Why a draft cannot become a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// There is neither text nor html.
    #[error("the message has neither text nor html: give at least one")]
    NoBody,
    /// A NUL in a text.
    #[error("the {part} contains a NUL character: remove it, or attach the content as a file")]
    Nul {
        /// `text` or `html`.
        part: &'static str,
    },
    /// A header field or the subject is refused.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// An attachment's name is refused.
    #[error(
        "attachment name {name:?} is not valid: use 1 to {FILENAME_CHARS_MAX} characters without control characters"
    )]
    Filename {
        /// The start of the name.
        name: String,
    },
    /// An attachment's content type is refused.
    #[error(
        "content type {value:?} is not valid: use type/subtype, such as application/pdf (multipart cannot be attached)"
    )]
    ContentType {
        /// The start of the content type.
        value: String,
    },
    /// An attachment's content id is refused.
    #[error(
        "content id {value:?} is not valid: use printable ASCII characters without spaces and angle brackets"
    )]
    ContentId {
        /// The start of the content id.
        value: String,
    },
    /// The ids of this message cannot be written into a header.
    #[error(transparent)]
    Id(#[from] MailIdError),
}

/// Why a Message-ID or uid cannot be written. This is a mistake of the program, not of the user's input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailIdError {
    /// The Message-ID is malformed.
    #[error("message id {0:?} is not of the form unique@domain")]
    MessageId(String),
    /// The uid is malformed.
    #[error("uid {0:?} is not 1 to {UID_OCTETS_MAX} letters, digits, dots and hyphens")]
    Uid(String),
}

pub(crate) fn check_ids(message_id: &str, uid: &str) -> Result<(), MailIdError> {
    let visible = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '<' | '>');
    let sides = message_id.split_once('@');
    if message_id.len() > MESSAGE_ID_OCTETS_MAX
        || !sides.is_some_and(|(left, right)| !left.is_empty() && !right.is_empty())
        || !message_id.chars().all(visible)
    {
        return Err(MailIdError::MessageId(message_id.to_owned()));
    }
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if uid.is_empty() || uid.len() > UID_OCTETS_MAX || !uid.bytes().all(is_good) {
        return Err(MailIdError::Uid(uid.to_owned()));
    }
    Ok(())
}

/// Composes the message, or returns what is wrong with the draft.
pub fn compose(draft: &MailDraft<'_>) -> Result<ComposedMail, ComposeError> {
    check(draft)?;
    let mut out = Vec::with_capacity(estimate(draft));
    write_header(draft, &mut out);
    // The header ends here. The rest is ASCII, except attached mails.
    let smtputf8 = !out.is_ascii();
    let header_end = out.len();
    write_node(&root(draft)?, &mut PartBoundaries::new(draft), &mut out);
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    let has_mail = draft.attachments.iter().any(MailAttachment::is_message);
    let eight_bit = smtputf8 || has_mail && !out[header_end..].is_ascii();
    Ok(ComposedMail { bytes: out, eight_bit, smtputf8 })
}

fn check(draft: &MailDraft<'_>) -> Result<(), ComposeError> {
    check_ids(draft.message_id, draft.uid)?;
    check_subject(draft.subject)?;
    if draft.headers.len() > HEADER_COUNT_MAX {
        return Err(HeaderError::TooMany.into());
    }
    for (name, value) in draft.headers {
        check_header(name, value)?;
        if reserved_header(name) {
            return Err(HeaderError::Reserved { name: name.clone() }.into());
        }
    }
    for (part, text) in [("text", draft.text), ("html", draft.html)] {
        if text.is_some_and(|text| text.as_bytes().contains(&0)) {
            return Err(ComposeError::Nul { part });
        }
    }
    draft.attachments.iter().try_for_each(MailAttachment::check)
}

/// A capacity at which the buffer usually does not grow.
fn estimate(draft: &MailDraft<'_>) -> usize {
    let alternatives: usize = draft.alternatives.iter().map(|one| one.content().len() * 3).sum();
    let texts = draft.text.map_or(0, str::len) + draft.html.map_or(0, str::len) + alternatives;
    let files: usize = draft.attachments.iter().map(|file| file.content.len() / 2 * 3 + 1024).sum();
    let fields: usize = draft.headers.iter().map(|(name, value)| name.len() + value.len() + 16).sum();
    1024 + 64 * (draft.to.len() + draft.cc.len()) + fields + texts + texts / 8 + files
}

fn write_header(draft: &MailDraft<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Date: ");
    Date::new(draft.date_unix).write_rfc822(out);
    out.extend_from_slice(b"\r\n");
    write_mailboxes("From", std::slice::from_ref(draft.from), out);
    if let Some(sender) = draft.sender {
        write_mailboxes("Sender", std::slice::from_ref(sender), out);
    }
    for (name, mailboxes) in [("Reply-To", draft.reply_to), ("To", draft.to), ("Cc", draft.cc)] {
        if !mailboxes.is_empty() {
            write_mailboxes(name, mailboxes, out);
        }
    }
    if draft.to.is_empty() && draft.cc.is_empty() {
        out.extend_from_slice(b"To: undisclosed-recipients:;\r\n");
    }
    write_subject(draft.subject, out);
    write_own_fields(draft.message_id, draft.uid, out);
    for (name, value) in draft.headers {
        write_extra(name, value, out);
    }
    out.extend_from_slice(b"MIME-Version: 1.0\r\n");
}

/// Writes the two fields that identify our own mail.
pub(crate) fn write_own_fields(message_id: &str, uid: &str, out: &mut Vec<u8>) {
    for piece in ["Message-ID: <", message_id, ">\r\nX-Postway-ID: ", uid, "\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// The tree of body parts. Every node writes its header fields, a blank line and its content without a last
/// CRLF.
enum BodyNode<'a> {
    Text(&'static str, &'a str),
    Alternative(&'a BodyAlternative<'a>),
    /// A calendar, attached as a file.
    Invitation(&'a BodyAlternative<'a>),
    File(&'a MailAttachment),
    Multipart(&'static str, Vec<BodyNode<'a>>),
}

impl BodyNode<'_> {
    /// Whether it has unencoded octets over 127. The multiparts around it must then declare 8bit (RFC 2045,
    /// 6.4).
    fn is_eight_bit(&self, marker: &str) -> bool {
        match self {
            BodyNode::File(file) => file.is_eight_bit(marker),
            BodyNode::Multipart(_, children) => children.iter().any(|child| child.is_eight_bit(marker)),
            BodyNode::Text(..) | BodyNode::Alternative(_) | BodyNode::Invitation(_) => false,
        }
    }
}

fn root<'a>(draft: &MailDraft<'a>) -> Result<BodyNode<'a>, ComposeError> {
    let goes_with_html =
        |file: &&MailAttachment| draft.html.is_some() && file.inline && file.content_id.is_some();
    let text = draft.text.map(|text| BodyNode::Text("plain", text));
    let html = draft.html.map(|html| {
        let inline = draft.attachments.iter().filter(goes_with_html).map(BodyNode::File);
        wrap("related; type=\"text/html\"", BodyNode::Text("html", html), inline)
    });
    if text.is_none() && html.is_none() {
        return Err(ComposeError::NoBody);
    }
    let (before, after): (Vec<&BodyAlternative<'_>>, Vec<_>) = in_order(draft.alternatives);
    let forms = text.into_iter().chain(before.into_iter().map(BodyNode::Alternative)).chain(html);
    let mut forms = forms.chain(after.into_iter().map(BodyNode::Alternative));
    let first = forms.next().ok_or(ComposeError::NoBody)?;
    let words = wrap("alternative", first, forms);
    let files = draft.attachments.iter().filter(|file| !goes_with_html(file)).map(BodyNode::File);
    let invitations = draft.alternatives.iter().filter(|one| one.is_attached()).map(BodyNode::Invitation);
    Ok(wrap("mixed", words, files.chain(invitations)))
}

/// The alternatives before the html and those after it, each sorted by kind.
fn in_order<'a>(
    alternatives: &'a [BodyAlternative<'a>],
) -> (Vec<&'a BodyAlternative<'a>>, Vec<&'a BodyAlternative<'a>>) {
    let mut sorted: Vec<&BodyAlternative<'_>> = alternatives.iter().collect();
    sorted.sort_by_key(|one| one.kind());
    sorted.into_iter().partition(|one| one.is_before_html())
}

/// The first node alone, or a multipart if there are others.
fn wrap<'a>(
    kind: &'static str,
    first: BodyNode<'a>,
    others: impl Iterator<Item = BodyNode<'a>>,
) -> BodyNode<'a> {
    let mut others = others.peekable();
    if others.peek().is_none() {
        return first;
    }
    BodyNode::Multipart(kind, std::iter::once(first).chain(others).collect())
}

/// The numbered boundaries of one message. All begin with the marker.
struct PartBoundaries {
    marker: String,
    used: u8,
    single_part: bool,
}

impl PartBoundaries {
    fn new(draft: &MailDraft<'_>) -> Self {
        let single_part = draft.attachments.is_empty()
            && draft.alternatives.is_empty()
            && !(draft.text.is_some() && draft.html.is_some());
        Self { marker: format!("=_{}_", draft.uid), used: 0, single_part }
    }

    fn next(&mut self) -> String {
        self.used += 1;
        format!("{}{}", self.marker, self.used)
    }
}

fn write_node(node: &BodyNode<'_>, boundaries: &mut PartBoundaries, out: &mut Vec<u8>) {
    match node {
        BodyNode::Text(kind, text) => {
            let marker = (!boundaries.single_part).then_some(boundaries.marker.as_str());
            let survey = survey(text.as_bytes(), marker);
            out.extend_from_slice(b"Content-Type: text/");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"; charset=utf-8\r\n");
            out.extend_from_slice(survey.encoding.field());
            out.extend_from_slice(b"\r\n");
            write_text(text.as_bytes(), survey, out);
        }
        BodyNode::Alternative(alternative) => {
            let content = alternative.content().as_bytes();
            let mut survey = survey(content, Some(&boundaries.marker));
            if survey.encoding != BodyEncoding::SevenBit {
                // Many calendar programs cannot read quoted-printable.
                survey.encoding = BodyEncoding::Base64;
            }
            for piece in ["Content-Type: ", &alternative.content_type(), "\r\n"] {
                out.extend_from_slice(piece.as_bytes());
            }
            out.extend_from_slice(survey.encoding.field());
            out.extend_from_slice(b"\r\n");
            write_text(content, survey, out);
        }
        BodyNode::Invitation(calendar) => {
            out.extend_from_slice(
                b"Content-Type: application/ics;\r\n name=\"invite.ics\"\r\n\
                  Content-Disposition: attachment;\r\n filename=\"invite.ics\"\r\n",
            );
            out.extend_from_slice(BodyEncoding::Base64.field());
            out.extend_from_slice(b"\r\n");
            write_base64(calendar.content().as_bytes(), out);
        }
        BodyNode::File(file) => file.write(&boundaries.marker, out),
        BodyNode::Multipart(kind, children) => {
            let boundary = boundaries.next();
            for piece in ["Content-Type: multipart/", kind, ";\r\n boundary=\"", &boundary, "\"\r\n"] {
                out.extend_from_slice(piece.as_bytes());
            }
            if children.iter().any(|child| child.is_eight_bit(&boundaries.marker)) {
                out.extend_from_slice(BodyEncoding::EightBit.field());
            }
            out.extend_from_slice(b"\r\n");
            for child in children {
                for piece in ["--", &boundary, "\r\n"] {
                    out.extend_from_slice(piece.as_bytes());
                }
                write_node(child, boundaries, out);
                out.extend_from_slice(b"\r\n");
            }
            for piece in ["--", &boundary, "--"] {
                out.extend_from_slice(piece.as_bytes());
            }
        }
    }
}
