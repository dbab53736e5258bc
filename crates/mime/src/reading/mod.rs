//! A mail as a person sees it: decoded fields, text, html, and attachments. The other views of a mail are
//! beside it: fields for providers' APIs ([`dissected`]), the new text of a reply ([`reply`]), and a
//! fingerprint that recognises repeats.
//!
//! Content that cannot be read is left out, and passed limits are listed in [`MailView::omitted`]. The html
//! is as the author wrote it, except that images of the mail replace their `cid:` references as `data:` URLs.
//! It must be shown in a sandbox that runs no script and fetches nothing.

pub mod dissected;
pub mod reply;

mod fingerprint;
mod images;

pub use fingerprint::gist;

use mail_parser::decoders::html::html_to_text;

use crate::reader::{
    DecodeBudget, MailPart, PartClass, PartRoles, PassedLimits, ReadMail, ReaderLimit,
    limit::{
        SHOWN_FIELD_CHARS_MAX, SHOWN_FIELDS_MAX, SHOWN_FILES_MAX, SHOWN_HTML_BYTES_MAX, SHOWN_TEXT_BYTES_MAX,
    },
    unstructured,
};

/// Characters of a media type that are shown.
const MEDIA_TYPE_CHARS_MAX: usize = 100;

/// A mail, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailView {
    /// Its fields in order, names as written and values decoded.
    pub fields: Vec<(String, String)>,
    /// Its text, or the text of its html if it has none.
    pub text: Option<String>,
    /// Whether it has a text part. If not, `text` is made of its html.
    pub has_text: bool,
    /// Its html; `None` if it has only text.
    pub html: Option<String>,
    /// Its attachments.
    pub attachments: Vec<AttachedFile>,
    /// The limits that it passed, beyond which content was left out.
    pub omitted: PassedLimits,
}

/// A file in a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// Its name, if it has one.
    pub filename: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// Its size in bytes.
    pub size: usize,
    /// The id by which the html refers to it.
    pub content_id: Option<String>,
}

/// Reads a mail.
pub fn read(raw: &[u8]) -> MailView {
    view(raw, true)
}

/// Reads a mail for a program: its html keeps the references to its images (`cid:…`).
pub fn read_for_program(raw: &[u8]) -> MailView {
    view(raw, false)
}

fn view(raw: &[u8], puts_images_in_place: bool) -> MailView {
    let mail = ReadMail::read(raw);
    if mail.root().header().is_empty() && raw.trim_ascii().is_empty() {
        return MailView::default();
    }
    let roles = mail.roles();
    let mut omitted = mail.passed();
    let mut budget = DecodeBudget::default();
    let fields = shown_fields(&mail, &mut omitted);
    let text = shown_text(&mail, &roles, &mut budget, &mut omitted);
    let has_text = roles.text.iter().filter_map(|index| mail.part(*index)).any(|part| {
        let class = PartClass::of(&part);
        class.is_text() && class != PartClass::Html
    });
    let html = shown_html(&mail, &roles, &mut budget, &mut omitted);
    let html = match puts_images_in_place {
        true => html.map(|html| images::in_place(&html, &mail, &roles, &mut budget, &mut omitted)),
        false => html,
    };
    if roles.attachments.len() > SHOWN_FILES_MAX {
        omitted.add(ReaderLimit::ShownFiles);
    }
    if budget.is_passed() {
        omitted.add(ReaderLimit::DecodedBytes);
    }
    let attachments = files(&mail, &roles).map(|part| described(&part, part.decoded().bytes.len())).collect();
    MailView { fields, text, has_text, html, attachments, omitted }
}

/// The text of a mail alone, or of its html if it has no text.
pub fn text(raw: &[u8]) -> Option<String> {
    let mail = ReadMail::read(raw);
    let (mut budget, mut omitted) = (DecodeBudget::default(), mail.passed());
    shown_text(&mail, &mail.roles(), &mut budget, &mut omitted)
}

/// The bytes of the attachment at index `place`, with its description.
pub fn attachment(raw: &[u8], place: usize) -> Option<(AttachedFile, Vec<u8>)> {
    let mail = ReadMail::read(raw);
    let roles = mail.roles();
    let part = files(&mail, &roles).nth(place)?;
    let bytes = part.content(&mut DecodeBudget::default()).into_owned();
    Some((described(&part, bytes.len()), bytes))
}

/// The bytes of the attachments, in order, of which all together have at most `bytes_max`; `None` for each that
/// does not fit.
pub fn attachments_within(raw: &[u8], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
    let mail = ReadMail::read(raw);
    let roles = mail.roles();
    let mut budget = DecodeBudget::default();
    let mut left = bytes_max;
    let content = |part: MailPart<'_, '_>| {
        // Decoding makes a part smaller, never larger.
        let bytes = part.content(&mut budget);
        left = left.checked_sub(bytes.len())?;
        Some(bytes.into_owned())
    };
    files(&mail, &roles).map(content).collect()
}

/// The attachments that are shown.
fn files<'m, 'a>(
    mail: &'m ReadMail<'a>,
    roles: &'m PartRoles,
) -> impl Iterator<Item = MailPart<'m, 'a>> + use<'m, 'a> {
    roles.attachments.iter().take(SHOWN_FILES_MAX).filter_map(|index| mail.part(*index))
}

fn described(part: &MailPart<'_, '_>, size: usize) -> AttachedFile {
    let media = part.media_type();
    let said = part.content_type().is_some() || media.is_message();
    let content_type = match said && !media.subtype.is_empty() {
        true => String::from_utf8_lossy(&[media.kind, b"/", media.subtype].concat()).to_ascii_lowercase(),
        false => "application/octet-stream".to_owned(),
    };
    AttachedFile {
        filename: part.file_name(),
        content_type: content_type.chars().take(MEDIA_TYPE_CHARS_MAX).collect(),
        size,
        content_id: part.content_id().map(ToOwned::to_owned),
    }
}

fn shown_fields(mail: &ReadMail<'_>, omitted: &mut PassedLimits) -> Vec<(String, String)> {
    let header = mail.root().header();
    if header.len() > SHOWN_FIELDS_MAX {
        omitted.add(ReaderLimit::ShownFields);
    }
    let mut shown = |value: &[u8]| {
        let mut text = unstructured(value);
        if let Some((end, _)) = text.char_indices().nth(SHOWN_FIELD_CHARS_MAX) {
            omitted.add(ReaderLimit::ShownFieldChars);
            text.truncate(end);
        }
        text
    };
    let fields = header.iter().take(SHOWN_FIELDS_MAX);
    fields.map(|field| (String::from_utf8_lossy(field.name).into_owned(), shown(field.value))).collect()
}

/// The text parts, joined; html parts are converted to text.
fn shown_text(
    mail: &ReadMail<'_>,
    roles: &PartRoles,
    budget: &mut DecodeBudget,
    omitted: &mut PassedLimits,
) -> Option<String> {
    let mut shown: Option<String> = None;
    for part in roles.text.iter().filter_map(|index| mail.part(*index)) {
        let class = PartClass::of(&part);
        if !class.is_text() {
            continue;
        }
        let text = part.text(budget);
        let room = SHOWN_TEXT_BYTES_MAX - shown.as_ref().map_or(0, String::len).min(SHOWN_TEXT_BYTES_MAX);
        let start = &text[..text.floor_char_boundary(room)];
        if start.len() < text.len() {
            omitted.add(ReaderLimit::ShownText);
        }
        match class {
            PartClass::Html => join(&mut shown, &html_to_text(start)),
            _ => join(&mut shown, start),
        }
    }
    shown
}

fn shown_html(
    mail: &ReadMail<'_>,
    roles: &PartRoles,
    budget: &mut DecodeBudget,
    omitted: &mut PassedLimits,
) -> Option<String> {
    let mut shown: Option<String> = None;
    let parts = roles.html.iter().filter_map(|index| mail.part(*index));
    for part in parts.filter(|part| PartClass::of(part) == PartClass::Html) {
        let html = part.text(budget);
        let room = SHOWN_HTML_BYTES_MAX - shown.as_ref().map_or(0, String::len).min(SHOWN_HTML_BYTES_MAX);
        let start = &html[..html.floor_char_boundary(room)];
        if start.len() < html.len() {
            omitted.add(ReaderLimit::ShownHtml);
        }
        join(&mut shown, start);
    }
    shown
}

/// Adds a text on a new line.
fn join(shown: &mut Option<String>, text: &str) {
    match shown {
        None => *shown = Some(text.to_owned()),
        Some(before) => {
            before.push('\n');
            before.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::limit::PARTS_MAX;

    const MAIL: &str = "From: =?utf-8?q?Ren=C3=A9e?= <renee@example.org>\r\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\r\n \
        folded\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=r\r\n\r\n--r\r\n\
        Content-Type: text/html; charset=utf-8\r\n\r\n<p>Hello <img src=\"cid:logo@x\"></p>\r\n--r\r\n\
        Content-Type: image/png; name=logo.png\r\nContent-ID: <logo@x>\r\nContent-Transfer-Encoding: base64\r\n\r\n\
        iVBORw0=\r\n--r--\r\n";

    #[test]
    fn a_mail_is_read_with_its_images_in_place() {
        let reading = read(MAIL.as_bytes());
        let field = |name: &str| {
            reading.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(field("From"), Some("Renée <renee@example.org>"));
        assert_eq!(field("Subject"), Some("Grüße folded"));
        assert!(reading.html.unwrap().contains("src=\"data:image/png;base64,iVBORw0=\""));
        assert!(reading.text.unwrap().contains("Hello"));
        assert_eq!(reading.attachments[0].filename.as_deref(), Some("logo.png"));
        let (file, bytes) = attachment(MAIL.as_bytes(), 0).unwrap();
        assert_eq!((file.content_type.as_str(), bytes.len()), ("image/png", 5));
        assert_eq!(attachment(MAIL.as_bytes(), 1), None);
    }

    #[test]
    fn a_program_gets_html_as_written_and_files_as_far_as_they_fit() {
        let reading = read_for_program(MAIL.as_bytes());
        assert!(reading.html.unwrap().contains("src=\"cid:logo@x\""));
        assert_eq!(attachments_within(MAIL.as_bytes(), 5), [Some(b"\x89PNG\r".to_vec())]);
        assert_eq!(attachments_within(MAIL.as_bytes(), 4), [None]);
    }

    #[test]
    fn a_mail_of_very_many_parts_is_shown_as_far_as_the_limit() {
        let parts = "--b\r\n\r\nx\r\n".repeat(10_000);
        let head = "Subject: many\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\r\n";
        let reading = read(format!("{head}{parts}").as_bytes());
        assert_eq!(reading.fields[0], ("Subject".to_owned(), "many".to_owned()));
        assert_eq!(reading.text.unwrap().lines().count(), PARTS_MAX - 1);
        assert_eq!(reading.omitted.iter().collect::<Vec<_>>(), [ReaderLimit::Parts]);
    }

    #[test]
    fn files_fields_and_text_beyond_a_limit_are_said_to_be_left_out() {
        let file = "--b\nContent-Type: application/pdf\n\nx\n".repeat(SHOWN_FILES_MAX + 1);
        let head = "X: y\n".repeat(SHOWN_FIELDS_MAX);
        let long = "z".repeat(SHOWN_FIELD_CHARS_MAX + 1);
        let text = "t".repeat(SHOWN_TEXT_BYTES_MAX + 1);
        let raw = format!(
            "Subject: {long}\n{head}Content-Type: multipart/mixed; boundary=b\n\n--b\n\n{text}\n--b\n\
             Content-Type: text/html\n\n{text}\n{file}--b--"
        );
        let reading = read(raw.as_bytes());
        let omitted: Vec<_> = reading.omitted.iter().collect();
        use ReaderLimit::{ShownFieldChars, ShownFields, ShownFiles, ShownHtml, ShownText};
        assert_eq!(omitted, [ShownFieldChars, ShownFields, ShownText, ShownHtml, ShownFiles]);
        assert_eq!(reading.fields[0].1.len(), SHOWN_FIELD_CHARS_MAX);
        assert!(reading.text.unwrap().len() <= SHOWN_TEXT_BYTES_MAX + 1);
        assert_eq!(reading.html.unwrap().len(), SHOWN_HTML_BYTES_MAX);
        assert_eq!(reading.attachments.len(), SHOWN_FILES_MAX);
        assert!(attachment(raw.as_bytes(), SHOWN_FILES_MAX).is_none());
    }

    #[test]
    fn nested_html_is_text_without_recursion() {
        let read = || {
            for tag in ["div", "blockquote", "table", "b"] {
                let html = format!("<{tag}>").repeat(100_000);
                let raw = format!("Content-Type: text/html\n\n{html}hello<x {}>", "a=b ".repeat(250_000));
                assert_eq!(read(raw.as_bytes()).text.as_deref().map(str::trim), Some("hello"), "{tag}");
            }
        };
        std::thread::Builder::new().stack_size(256 * 1024).spawn(read).unwrap().join().unwrap();
    }

    #[test]
    fn text_alone_has_no_html_and_nonsense_has_nothing() {
        let reading = read(b"Subject: hi\r\n\r\njust text\r\n");
        assert_eq!((reading.html, reading.text.as_deref()), (None, Some("just text\r\n")));
        assert_eq!(read(b"").fields, []);
    }
}
