//! A mail as a reader sees it: its fields decoded, its text, its html, and what is attached.
//!
//! For looking at mail, not for judging it: whatever cannot be read is left out. The html is as the author wrote it, but for
//! images that the mail brings along, which are put in its place as `data:` URLs; it must be shown where no script runs and
//! nothing is fetched.

use base64::{Engine, prelude::BASE64_STANDARD};
use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders};

/// Header fields that are given, at most.
const FIELDS_MAX: usize = 500;
/// Characters of one field, at most.
const FIELD_CHARS_MAX: usize = 10_000;
/// Attachments that are named, at most.
const ATTACHMENTS_MAX: usize = 200;
/// Lines that may begin a part; a mail with more of them is not taken apart.
const DELIMITERS_MAX: usize = 10_000;
/// Bytes of images that are put into the html, at most.
const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A mail, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Its fields in order, names as written and values decoded.
    pub fields: Vec<(String, String)>,
    /// Its text, or the text of its html.
    pub text: Option<String>,
    /// Its html; none where it has only text.
    pub html: Option<String>,
    /// What is attached.
    pub attachments: Vec<AttachedFile>,
}

/// A file in a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// Its name, where it has one.
    pub filename: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// How many bytes it has.
    pub size: usize,
    /// The id by which the html refers to it.
    pub content_id: Option<String>,
}

/// All parts of a mail, unless it was made to be costly.
pub fn taken_apart(raw: &[u8]) -> Option<Message<'_>> {
    let delimiters = memchr::memmem::find_iter(raw, b"\n--").take(DELIMITERS_MAX + 1).count();
    (delimiters <= DELIMITERS_MAX).then(|| MessageParser::default().parse(raw)).flatten()
}

/// Reads a mail. Of one that was made to be costly, the header only.
pub fn read(raw: &[u8]) -> Reading {
    let message = taken_apart(raw).or_else(|| MessageParser::default().parse_headers(raw));
    let Some(message) = message else { return Reading::default() };
    let fields = message
        .headers_raw()
        .take(FIELDS_MAX)
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect();
    let has_html = message.html_bodies().any(|part| part.is_text_html());
    Reading {
        fields,
        text: message.body_text(0).map(|text| text.into_owned()),
        html: has_html.then(|| message.body_html(0).map(|html| with_images(&html, &message))).flatten(),
        attachments: message.attachments().take(ATTACHMENTS_MAX).map(described).collect(),
    }
}

/// The bytes of an attachment by its place, with its description.
pub fn attachment(raw: &[u8], place: usize) -> Option<(AttachedFile, Vec<u8>)> {
    let message = taken_apart(raw)?;
    let part = message.attachments().take(ATTACHMENTS_MAX).nth(place)?;
    Some((described(part), part.contents().to_vec()))
}

fn described(part: &MessagePart<'_>) -> AttachedFile {
    let content_type = part.content_type().map_or_else(
        || "application/octet-stream".to_owned(),
        |kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("octet-stream")),
    );
    AttachedFile {
        filename: part.attachment_name().map(ToOwned::to_owned),
        content_type,
        size: part.contents().len(),
        content_id: part.content_id().map(ToOwned::to_owned),
    }
}

/// A field's value without folding, and with encoded words read, wherever they stand: as in a subject.
pub(crate) fn decoded(value: &str) -> String {
    let unfolded = || value.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = match value.contains("=?") {
        true => MessageParser::default()
            .parse(format!("Subject:{value}\r\n\r\n").as_bytes())
            .and_then(|message| message.subject().map(ToOwned::to_owned))
            .unwrap_or_else(unfolded),
        false => unfolded(),
    };
    text.chars().take(FIELD_CHARS_MAX).collect()
}

/// The html with the images it refers to by `cid:` in their place.
fn with_images(html: &str, message: &Message<'_>) -> String {
    if !html.contains("cid:") {
        return html.to_owned();
    }
    let (mut html, mut left) = (html.to_owned(), IMAGE_BYTES_MAX);
    for part in message.attachments().take(ATTACHMENTS_MAX) {
        let (Some(id), Some(kind)) = (part.content_id(), part.content_type()) else { continue };
        let is_image = kind.ctype().eq_ignore_ascii_case("image");
        let reference = format!("cid:{}", id.trim_matches(['<', '>']));
        let times = html.matches(&reference).count();
        let cost = part.contents().len().saturating_mul(times);
        if !is_image || times == 0 || cost > left {
            continue;
        }
        left -= cost;
        let subtype: String = kind
            .subtype()
            .unwrap_or("png")
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '+')
            .collect();
        let url = format!("data:image/{subtype};base64,{}", BASE64_STANDARD.encode(part.contents()));
        html = html.replace(&reference, &url);
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_mail_of_very_many_parts_is_shown_by_its_header() {
        let parts = "--b\r\n\r\nx\r\n".repeat(DELIMITERS_MAX + 1);
        let head = "Subject: many\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\r\n";
        let reading = read(format!("{head}{parts}").as_bytes());
        assert_eq!(reading.fields[0], ("Subject".to_owned(), "many".to_owned()));
        assert_eq!((reading.text, reading.attachments), (None, Vec::new()));
    }

    #[test]
    fn text_alone_has_no_html_and_nonsense_has_nothing() {
        let reading = read(b"Subject: hi\r\n\r\njust text\r\n");
        assert_eq!((reading.html, reading.text.as_deref()), (None, Some("just text\r\n")));
        assert_eq!(read(b"").fields, []);
    }
}
