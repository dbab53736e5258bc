//! Files beside the text: attached, or shown inside the html.
//!
//! Content is always base64 and comes out octet for octet, with one exception that RFC 2046 (5.2.1) demands:
//! a `message/…` part may not be encoded, so it goes as 7bit text when it can and otherwise as
//! `application/octet-stream`.

use mail_builder::headers::{Header, content_type::ContentType, raw::Raw};

use crate::body::{Encoding, survey, write_base64, write_text};
use crate::compose::ComposeError;

/// The longest file name, in characters.
pub const FILENAME_CHARS_MAX: usize = 255;
/// The longest content type, with its parameters.
const CONTENT_TYPE_OCTETS_MAX: usize = 255;
/// The longest content id.
const CONTENT_ID_OCTETS_MAX: usize = 255;

/// One file of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The name shown to the reader.
    pub filename: String,
    /// The media type, such as `application/pdf`, with parameters if need be.
    pub content_type: String,
    /// The content as it is.
    pub content: Vec<u8>,
    /// The name by which the html refers to it (`cid:…`), without angle brackets.
    pub content_id: Option<String>,
    /// Whether it is shown inside the text; with a content id it travels together with the html.
    pub inline: bool,
}

impl Attachment {
    /// Checks everything that goes into a header; the content may be anything.
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
        let is_message = starts_with_ignore_case(&self.content_type, "message/");
        let content_type = match is_message && unencoded.is_none() {
            true => "application/octet-stream",
            false => &self.content_type,
        };
        out.extend_from_slice(b"Content-Type: ");
        Raw::new(content_type).write_header(out, "Content-Type: ".len());
        if let Some(id) = &self.content_id {
            out.extend_from_slice(b"Content-ID: <");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b">\r\n");
        }
        self.write_disposition(out);
        match unencoded {
            Some(survey) => {
                out.extend_from_slice(Encoding::SevenBit.field());
                out.extend_from_slice(b"\r\n");
                write_text(&self.content, survey, out);
            }
            None => {
                out.extend_from_slice(Encoding::Base64.field());
                out.extend_from_slice(b"\r\n");
                write_base64(&self.content, out);
            }
        }
    }

    fn message_survey(&self, marker: &str) -> Option<crate::body::Survey> {
        starts_with_ignore_case(&self.content_type, "message/")
            .then(|| survey(&self.content, Some(marker)))
            .filter(|survey| survey.encoding == Encoding::SevenBit)
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
            // Not folded inside the quotes, as mail-builder would do: readers keep the line break.
            out.extend_from_slice(b";\r\n filename=\"");
            for byte in self.filename.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
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

/// Whether readers find an ASCII name again in a quoted string, which they trim, unfold and decode too eagerly.
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

/// `type/subtype` and parameters, as in RFC 2045, 5.1; a multipart cannot be attached from outside.
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
    fn media_types_are_told_from_what_is_not() {
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
