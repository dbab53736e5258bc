//! What a message says: subject, texts, headers, files.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use postway_mime::{
    Attachment, ComposeError, check_header, check_subject,
    header::{HEADER_COUNT_MAX, HEADER_NAME_OCTETS_MAX},
    reserved_header,
};

use crate::{
    limits::Limits,
    refusal::{Findings, Refusal},
    request::{AttachmentRequest, MessageRequest},
};

const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// Standard base64, with its padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The words and files of a message.
pub(crate) struct Content<'a> {
    pub subject: &'a str,
    pub text: Option<&'a str>,
    pub html: Option<&'a str>,
    pub headers: Vec<(String, String)>,
    pub attachments: Vec<Attachment>,
}

/// Checks the content. More of it than a message can hold is refused at once.
pub(crate) fn content<'a>(
    request: &'a MessageRequest<'a>,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<Content<'a>, Refusal> {
    let [text, html] = texts(request, findings);
    let mut room = limits.message_bytes_max;
    let mut take_room = |bytes: usize| {
        room = room.checked_sub(bytes).ok_or_else(|| Refusal::message_too_large(limits.message_bytes_max))?;
        Ok(())
    };
    take_room(text.map_or(0, str::len) + html.map_or(0, str::len))?;
    Ok(Content {
        subject: subject(request, limits, findings),
        text,
        html,
        headers: headers(request, findings),
        attachments: attachments(request, limits, findings, take_room)?,
    })
}

/// The two texts; an empty one is none.
fn texts<'a>(request: &'a MessageRequest<'a>, findings: &mut Findings) -> [Option<&'a str>; 2] {
    let texts = [&request.text, &request.html].map(|text| text.as_deref().filter(|text| !text.is_empty()));
    if texts == [None, None] {
        findings.add("text", "the message has neither text nor html: give text or html");
    }
    for (field, text) in ["text", "html"].into_iter().zip(texts) {
        if text.is_some_and(|text| text.contains('\0')) {
            findings.add(field, "contains a NUL character: remove it");
        }
    }
    texts
}

fn subject<'a>(request: &'a MessageRequest<'a>, limits: &Limits, findings: &mut Findings) -> &'a str {
    let subject = request.subject.as_deref().unwrap_or_default();
    if subject.len() > limits.subject_bytes_max {
        findings.add("subject", format!("is longer than {} bytes: shorten it", limits.subject_bytes_max));
    } else {
        findings.take("subject", check_subject(subject));
    }
    subject
}

fn headers(request: &MessageRequest<'_>, findings: &mut Findings) -> Vec<(String, String)> {
    let headers = request.headers.as_ref().map_or(&[][..], |headers| &headers.0);
    if headers.len() > HEADER_COUNT_MAX {
        findings
            .add("headers", format!("there are {} headers: use at most {HEADER_COUNT_MAX}", headers.len()));
        return Vec::new();
    }
    let mut checked: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let mut refuse = |message: String| {
            let name: String = name.chars().take(HEADER_NAME_OCTETS_MAX).collect();
            findings.add(format!("headers.{name}"), message);
        };
        if let Err(error) = check_header(name, value) {
            refuse(error.to_string());
        } else if reserved_header(name) {
            refuse("is reserved: it is set by postway or has a field of its own".to_owned());
        } else if checked.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            refuse("is given twice (names are compared without case)".to_owned());
        } else {
            checked.push((name.to_string(), value.to_string()));
        }
    }
    checked
}

fn attachments(
    request: &MessageRequest<'_>,
    limits: &Limits,
    findings: &mut Findings,
    mut take_room: impl FnMut(usize) -> Result<(), Refusal>,
) -> Result<Vec<Attachment>, Refusal> {
    let files = request.attachments.as_ref().map_or(&[][..], |files| &files.0);
    if files.len() > limits.attachments_max {
        let max = limits.attachments_max;
        findings.add("attachments", format!("there are {} attachments: use at most {max}", files.len()));
        return Ok(Vec::new());
    }
    let mut attachments = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let attachment = attachment(&format!("attachments[{index}]"), &file.0, findings);
        take_room(attachment.content.len())?;
        attachments.push(attachment);
    }
    Ok(attachments)
}

fn attachment(path: &str, file: &AttachmentRequest<'_>, findings: &mut Findings) -> Attachment {
    let mut attachment = Attachment {
        filename: file.filename.as_deref().unwrap_or_default().to_owned(),
        content_type: file.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE).to_owned(),
        content: source(path, file, findings),
        content_id: file.content_id.as_deref().map(str::to_owned),
        inline: file.inline.unwrap_or(false),
    };
    if file.filename.is_none() {
        findings.add(format!("{path}.filename"), "is missing: name the file");
        attachment.filename = "file".to_owned();
    }
    // Each fault is mended after it is noted, so that the next one shows. There are three fields to mend.
    for _ in 0..3 {
        let Err(error) = attachment.check() else { break };
        let (field, message) = (mend(&mut attachment, &error), error.to_string());
        findings.add(format!("{path}.{field}"), message);
    }
    attachment
}

fn mend(attachment: &mut Attachment, error: &ComposeError) -> &'static str {
    match error {
        ComposeError::ContentType { .. } => {
            attachment.content_type = DEFAULT_CONTENT_TYPE.to_owned();
            "content_type"
        }
        ComposeError::ContentId { .. } => {
            attachment.content_id = None;
            "content_id"
        }
        ComposeError::Filename { .. }
        | ComposeError::NoBody
        | ComposeError::Nul { .. }
        | ComposeError::Header(_)
        | ComposeError::Id(_) => {
            attachment.filename = "file".to_owned();
            "filename"
        }
    }
}

/// The bytes of a file, from the one source this version knows.
fn source(path: &str, file: &AttachmentRequest<'_>, findings: &mut Findings) -> Vec<u8> {
    let mut elsewhere = false;
    for (field, given) in [("url", &file.url), ("endpoint", &file.endpoint), ("path", &file.path)] {
        if given.is_some() {
            elsewhere = true;
            findings.add(format!("{path}.{field}"), "not available in this version: send the content itself");
        }
    }
    let field = || format!("{path}.content");
    match &file.content {
        Some(content) => findings.take(&field(), decode(content)).unwrap_or_default(),
        None if elsewhere => Vec::new(),
        None => {
            findings.add(field(), "is missing: give the file's content in base64");
            Vec::new()
        }
    }
}

/// Decodes base64. Line breaks in it, as some encoders make them, cost a second pass and nothing else.
fn decode(content: &str) -> Result<Vec<u8>, String> {
    let refused = |error: base64::DecodeError| format!("is not valid base64: {error}");
    match BASE64.decode(content) {
        Ok(bytes) => Ok(bytes),
        Err(_) if content.bytes().any(|byte| byte.is_ascii_whitespace()) => {
            let packed: Vec<u8> = content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            BASE64.decode(packed).map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_taken_padded_unpadded_and_broken_into_lines() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs\r\nbG8=\n", " aGVs bG8"] {
            assert_eq!(decode(text).unwrap(), b"hello", "{text:?}");
        }
        for text in ["aGVsbG8*", "a", "aGVs=bG8", "data:text/plain;base64,aGVsbG8="] {
            assert!(decode(text).is_err(), "{text:?}");
        }
    }
}
