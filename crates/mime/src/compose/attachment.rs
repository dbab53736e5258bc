//! Files of a mail: attached, or shown inside the html.
//!
//! Content is always base64 and decodes to the same octets, with one exception that RFC 2046 (5.2.1) demands:
//! a `message/rfc822` part may not be encoded, so it is sent as 7bit or 8bit text if possible and otherwise
//! as `application/octet-stream`. Other `message/…` parts must be 7bit.
//!
//! The file name is written to `filename` by RFC 2231, and again to the `name` parameter of the content type,
//! which old versions of Outlook read: there in the form that Outlook writes, with encoded words inside the
//! quotes.

use mail_builder::headers::{Header, content_type::ContentType, raw::Raw};

use super::ComposeError;
use crate::wire::transfer_encoding::{BodyEncoding, TextSurvey, survey_mail, write_base64, write_text};

/// The longest file name, in characters.
pub const FILENAME_CHARS_MAX: usize = 255;
/// The longest content type, with its parameters.
const CONTENT_TYPE_OCTETS_MAX: usize = 255;
/// The longest content id.
const CONTENT_ID_OCTETS_MAX: usize = 255;

/// One file of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailAttachment {
    /// The name shown to the reader.
    pub filename: String,
    /// The media type, such as `application/pdf`, with parameters if need be.
    pub content_type: String,
    /// The content, not encoded.
    pub content: Vec<u8>,
    /// The name by which the html refers to it (`cid:…`), without angle brackets.
    pub content_id: Option<String>,
    /// Whether it is shown inside the text. With a content id it is a part of the html's `multipart/related`.
    pub inline: bool,
}

impl MailAttachment {
    /// Checks every value that is written to a header. The content is not checked.
    pub fn check(&self) -> Result<(), ComposeError> {
        let name = &self.filename;
        if name.is_empty() || name.chars().count() > FILENAME_CHARS_MAX || name.contains(char::is_control) {
            return Err(ComposeError::Filename { name: clip(name) });
        }
        if !is_media_type(&self.content_type) {
            return Err(ComposeError::ContentType { value: clip(&self.content_type) });
        }
        match &self.content_id {
            Some(id) if !is_content_id(id) => Err(ComposeError::ContentId { value: clip(id) }),
            _ => Ok(()),
        }
    }

    /// Writes the part: its header fields, a blank line, the content without a last line ending.
    pub(crate) fn write(&self, marker: &str, out: &mut Vec<u8>) {
        let unencoded = self.message_survey(marker);
        let content_type = match self.is_message() && unencoded.is_none() {
            true => "application/octet-stream",
            false => &self.content_type,
        };
        out.extend_from_slice(b"Content-Type: ");
        Raw::new(content_type).write_header(out, "Content-Type: ".len());
        if !has_name(content_type) {
            self.write_name(out);
        }
        if let Some(id) = &self.content_id {
            out.extend_from_slice(b"Content-ID: <");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b">\r\n");
        }
        self.write_disposition(out);
        match unencoded {
            Some(survey) => {
                out.extend_from_slice(survey.encoding.field());
                out.extend_from_slice(b"\r\n");
                write_text(&self.content, survey, out);
            }
            None => {
                out.extend_from_slice(BodyEncoding::Base64.field());
                out.extend_from_slice(b"\r\n");
                write_base64(&self.content, out);
            }
        }
    }

    /// Whether it is a mail or a part of one, which may not be encoded.
    pub(crate) fn is_message(&self) -> bool {
        starts_with_ignore_case(&self.content_type, "message/")
    }

    /// Whether its octets over 127 are written unencoded.
    pub(crate) fn is_eight_bit(&self, marker: &str) -> bool {
        self.message_survey(marker).is_some_and(|survey| survey.encoding == BodyEncoding::EightBit)
    }

    fn message_survey(&self, marker: &str) -> Option<TextSurvey> {
        let essence = self.content_type.split(';').next().unwrap_or_default().trim();
        // Only this one may be 8bit (RFC 2046, 5.2.2 and 5.2.3).
        let may_be_eight_bit = essence.eq_ignore_ascii_case("message/rfc822");
        self.is_message()
            .then(|| survey_mail(&self.content, marker))
            .flatten()
            .filter(|survey| may_be_eight_bit || survey.encoding == BodyEncoding::SevenBit)
    }

    /// Adds the name to the content type that was just written.
    fn write_name(&self, out: &mut Vec<u8>) {
        out.truncate(out.len() - b"\r\n".len());
        out.extend_from_slice(b";\r\n name=\"");
        if self.filename.is_ascii() && survives_quoting(&self.filename) {
            push_quoted(&self.filename, out);
        } else {
            write_words(&self.filename, out);
        }
        out.extend_from_slice(b"\"\r\n");
    }

    fn write_disposition(&self, out: &mut Vec<u8>) {
        const FIELD: &str = "Content-Disposition: ";
        let kind = if self.inline { "inline" } else { "attachment" };
        out.extend_from_slice(FIELD.as_bytes());
        if !self.filename.is_ascii() {
            let disposition = ContentType::new(kind).attribute("filename", self.filename.as_str());
            return disposition.write_header(out, FIELD.len());
        }
        out.extend_from_slice(kind.as_bytes());
        if survives_quoting(&self.filename) {
            // Not folded inside the quotes as mail-builder would do, because readers keep the line break.
            out.extend_from_slice(b";\r\n filename=\"");
            push_quoted(&self.filename, out);
            out.extend_from_slice(b"\"\r\n");
        } else {
            out.extend_from_slice(b";\r\n filename*=UTF-8''");
            for byte in self.filename.bytes() {
                push_percent(byte, out);
            }
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn push_quoted(name: &str, out: &mut Vec<u8>) {
    for byte in name.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

/// Writes a name as encoded words (RFC 2047), one per line. No word splits a character.
fn write_words(name: &str, out: &mut Vec<u8>) {
    /// Octets of text in a word, so that the encoded word has at most 75 characters.
    const OCTETS_MAX: usize = 42;
    let mut rest = name;
    while !rest.is_empty() {
        let mut end = rest.len().min(OCTETS_MAX);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (word, after) = rest.split_at(end);
        out.extend_from_slice(b"=?utf-8?B?");
        write_base64(word.as_bytes(), out);
        out.extend_from_slice(b"?=");
        if !after.is_empty() {
            out.extend_from_slice(b"\r\n ");
        }
        rest = after;
    }
}

/// Whether a content type has a `name` parameter.
fn has_name(content_type: &str) -> bool {
    content_type.split(';').skip(1).any(|parameter| starts_with_ignore_case(parameter.trim_start(), "name"))
}

/// Whether an ASCII name survives in a quoted string: readers trim, unfold and decode those too eagerly.
fn survives_quoting(name: &str) -> bool {
    !name.contains("=?") && !name.contains("  ") && !name.starts_with(' ') && !name.ends_with(' ')
}

fn push_percent(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

fn starts_with_ignore_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

fn is_content_id(id: &str) -> bool {
    (1..=CONTENT_ID_OCTETS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>'))
}

/// `type/subtype` and parameters, as in RFC 2045, 5.1; a multipart cannot be attached.
fn is_media_type(value: &str) -> bool {
    if value.len() > CONTENT_TYPE_OCTETS_MAX || starts_with_ignore_case(value, "multipart/") {
        return false;
    }
    let (essence, parameters) =
        value.split_once(';').map_or((value, None), |(head, tail)| (head, Some(tail)));
    let essence_is_good = essence
        .trim_end_matches(' ')
        .split_once('/')
        .is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    essence_is_good && parameters.is_none_or(are_parameters)
}

fn are_parameters(mut rest: &str) -> bool {
    loop {
        rest = rest.trim_matches(' ');
        if rest.is_empty() {
            return true;
        }
        let Some((name, value)) = rest.split_once('=') else {
            return false;
        };
        let Some(after) = skip_parameter_value(value) else {
            return false;
        };
        let after = after.trim_start_matches(' ');
        if !is_token(name) {
            return false;
        }
        match after.strip_prefix(';') {
            Some(next) => rest = next,
            None => return after.is_empty(),
        }
    }
}

fn skip_parameter_value(value: &str) -> Option<&str> {
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([';', ' ']).unwrap_or(value.len());
        let (token, after) = value.split_at(end);
        return is_token(token).then_some(after);
    };
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if !matches!(c, ' '..='~') => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(&quoted[at + 1..]),
            _ => {}
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_recognised_and_other_texts_refused() {
        for good in [
            "application/pdf",
            "text/plain; charset=utf-8",
            "text/calendar;method=REQUEST; charset=\"utf-8\"",
            "image/svg+xml",
            "application/x; name=\"a \\\" ; b\"",
            "message/rfc822",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "pdf",
            "a/",
            "/b",
            "a/b/c",
            "a b/c",
            "text/plain\r\nX: y",
            "text/plain; x",
            "text/plain; a=\"b",
            "text/plain; a=b c",
            "multipart/mixed",
            "Multipart/x; boundary=y",
            "té/x",
            "text/plain; a=é",
        ] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
