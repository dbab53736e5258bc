//! A mail composed anew: a header block with author and date, the original text, its images and its
//! attachments.

use std::fmt::Write as _;

use postway_domain::NamedAddress;
use postway_intake::ForwardNames;
use postway_mime::{
    ComposedMail, MailAttachment, MailDraft, compose,
    reader::{DecodeBudget, MailPart, PartClass, ReadMail},
};

use super::ForwardShape;
use crate::mail::{ParsedMail, bounded, is_shown_inside};

/// A mail with more attachments is forwarded inside a new mail instead.
const ATTACHMENTS_MAX: usize = 200;
/// The most bytes of text that are composed anew, in UTF-8; a mail with more is forwarded unchanged, inside a
/// new mail.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most authors in `Reply-To`.
const REPLY_TO_MAX: usize = 10;
/// The longest file name of an attachment, in characters.
const FILENAME_CHARS_MAX: usize = 255;
/// The most characters of a field in the header block.
const BLOCK_CHARS_MAX: usize = 500;

/// Composes the mail anew; `None` if it cannot be read completely or composed.
pub(super) fn composed(
    shape: &ForwardShape<'_>,
    from: &NamedAddress,
    given: &ForwardNames<'_>,
) -> Option<ComposedMail> {
    let mail = shape.mail;
    let parts = mail.read_parts();
    let roles = parts.roles();
    if !parts.passed().is_empty() || roles.attachments.len() > ATTACHMENTS_MAX {
        return None;
    }
    let (mut budget, mut texts) = (DecodeBudget::default(), DecodeBudget::of(TEXT_BYTES_MAX));
    let files = roles.attachments.iter().filter_map(|index| parts.part(*index));
    let attachments: Vec<MailAttachment> = files.map(|part| attachment(&part, &mut budget)).collect();
    if budget.is_passed() || attachments.iter().any(|file| file.check().is_err()) {
        return None;
    }
    let block = header_block(mail);
    let html =
        bodies(&parts, &roles.html, PartClass::Html, &mut texts)?.map(|html| with_block(&html, &block));
    // A plain text is used if the author wrote one; it is not derived from the HTML.
    let text = match (&html, bodies(&parts, &roles.text, PartClass::Plain, &mut texts)?) {
        (_, Some(mut text)) => {
            text.insert_str(0, &format!("{block}\n"));
            Some(text)
        }
        (Some(_), None) => None,
        (None, None) => Some(block),
    };
    let (reply_to, subject) = (reply_to(mail), shape.subject());
    let draft = shape.draft(from, given, &reply_to, "");
    compose(&MailDraft {
        subject: &subject,
        text: text.as_deref(),
        html: html.as_deref(),
        attachments: &attachments,
        ..draft
    })
    .ok()
}

/// A few lines with author, date, subject and recipients.
pub(super) fn header_block(mail: &ParsedMail<'_>) -> String {
    let mut block = String::from("---------- Forwarded message ----------\n");
    for name in ["From", "Date", "Subject", "To", "Cc"] {
        let value = match name {
            "Date" | "Subject" => mail.texts(name).next(),
            _ => {
                let people: Vec<_> = mail.people(name).iter().map(|one| one.full().into_owned()).collect();
                (!people.is_empty()).then(|| people.join(", "))
            }
        };
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            // Writing to a String does not fail.
            let _ = writeln!(
                block,
                "{name}: {}",
                bounded(&value.replace(char::is_control, " "), BLOCK_CHARS_MAX)
            );
        }
    }
    block
}

/// The addresses for replies: the author's `Reply-To`, or else the author.
pub(super) fn reply_to(mail: &ParsedMail<'_>) -> Vec<NamedAddress> {
    let named =
        ["Reply-To", "From"].into_iter().map(|name| mail.people(name)).find(|people| !people.is_empty());
    let mailbox = |person: &crate::mail::HeaderPerson| {
        let address = person.address.parse().ok()?;
        NamedAddress::new(person.name.as_deref(), address).ok()
    };
    named.unwrap_or_default().iter().take(REPLY_TO_MAX).filter_map(mailbox).collect()
}

/// The contents of the parts of this class, joined, if there are any; `None` if they exceed the budget. Only
/// one part is decoded at a time.
fn bodies(
    mail: &ReadMail<'_>,
    parts: &[usize],
    class: PartClass,
    budget: &mut DecodeBudget,
) -> Option<Option<String>> {
    let parts = parts.iter().filter_map(|index| mail.part(*index));
    let mut all: Option<String> = None;
    for part in parts.filter(|part| PartClass::of(part) == class) {
        let text = part.text(budget);
        if budget.is_passed() {
            return None;
        }
        if let Some(before) = &mut all {
            before.push('\n');
        }
        let all = all.get_or_insert_default();
        all.reserve(text.len());
        text.split('\0').for_each(|piece| all.push_str(piece));
    }
    Some(all)
}

/// The HTML with the block in front, inside its body element if it has one.
fn with_block(html: &str, block: &str) -> String {
    let mut escaped = String::with_capacity(block.len() + 64);
    for character in block.trim_end().chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' => escaped.push_str("<br>\n"),
            other => escaped.push(other),
        }
    }
    let body = html.as_bytes().windows(5).position(|five| five.eq_ignore_ascii_case(b"<body"));
    let at = body.and_then(|at| html[at..].find('>').map(|end| at + end + 1)).unwrap_or(0);
    format!("{}<p>{escaped}</p>\n{}", &html[..at], &html[at..])
}

fn attachment(part: &MailPart<'_, '_>, budget: &mut DecodeBudget) -> MailAttachment {
    let class = PartClass::of(part);
    let content = match class.is_text() {
        true => part.text(budget).into_owned().into_bytes(),
        false => part.content(budget).into_owned(),
    };
    let inline = is_shown_inside(part);
    let content_id = part.content_id().map(str::to_owned);
    let mut file = MailAttachment {
        filename: filename(part, class),
        content_type: content_type(part, class),
        content,
        content_id: content_id.filter(|_| inline),
        inline,
    };
    // Labels from other systems may not fit a header. A content id that does not fit cannot be referred to
    // either.
    if file.check().is_err() {
        file.content_type = "application/octet-stream".to_owned();
    }
    if file.check().is_err() {
        file.content_id = None;
        file.inline = false;
    }
    file
}

fn filename(part: &MailPart<'_, '_>, class: PartClass) -> String {
    let given = part.file_name().unwrap_or_default().replace(char::is_control, " ");
    let name = bounded(given.trim(), FILENAME_CHARS_MAX);
    match (name.is_empty(), class) {
        (false, _) => name,
        (true, PartClass::Message) => "message.eml".to_owned(),
        (true, _) => "attachment".to_owned(),
    }
}

fn content_type(part: &MailPart<'_, '_>, class: PartClass) -> String {
    let media = part.media_type();
    if part.content_type().is_none() || media.subtype.is_empty() {
        return "application/octet-stream".to_owned();
    }
    let kind = String::from_utf8_lossy(&[media.kind, b"/", media.subtype].concat()).to_ascii_lowercase();
    // Text in any charset has been converted to UTF-8.
    if class.is_text() { format!("{kind}; charset=utf-8") } else { kind }
}
