//! Replaces `cid:` references in html by the images that they name.
//!
//! This is one pass over the html. The inserted URLs have at most [`IMAGE_BYTES_MAX`] bytes in all, repeated
//! ones counted each time, so the result is at most that much longer than the html.

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use memchr::memmem;

use super::files;
use crate::reader::{
    DecodeBudget, MailPart, PartRoles, PassedLimits, ReadMail, ReaderLimit, limit::IMAGE_BYTES_MAX,
};

/// The scheme of a reference.
const SCHEME: &str = "cid:";
/// The longest id of a reference.
const ID_BYTES_MAX: usize = 256;
/// The longest subtype that is copied into a URL; no real subtype is longer.
const SUBTYPE_CHARS_MAX: usize = 40;

/// An image that html may refer to.
struct MailImage<'m, 'a> {
    part: MailPart<'m, 'a>,
    /// Its URL, once it was needed; the inner `None` means that it is too large.
    url: Option<Option<String>>,
}

/// Returns the html with its images inserted.
pub(super) fn in_place(
    html: &str,
    mail: &ReadMail<'_>,
    roles: &PartRoles,
    budget: &mut DecodeBudget,
    omitted: &mut PassedLimits,
) -> String {
    let mut images: HashMap<&str, MailImage<'_, '_>> = HashMap::new();
    for part in files(mail, roles).filter(|part| part.media_type().is_kind("image")) {
        if let Some(id) = part.content_id() {
            images.entry(id).or_insert(MailImage { part, url: None });
        }
    }
    let mut out = String::with_capacity(html.len());
    let mut left = IMAGE_BYTES_MAX;
    let mut written = 0;
    let mut at = 0;
    let scheme = memmem::Finder::new(SCHEME);
    while let Some(found) = scheme.find(&html.as_bytes()[at..]) {
        let reference = at + found;
        let from = reference + SCHEME.len();
        let id = id_at(html, from);
        at = from + id.len();
        let Some(image) = images.get_mut(id) else { continue };
        let url = image.url.get_or_insert_with(|| data_url(&image.part, left, budget));
        match url.as_deref().filter(|url| url.len() <= left) {
            Some(url) => {
                left -= url.len();
                out.push_str(&html[written..reference]);
                out.push_str(url);
                written = at;
            }
            None => omitted.add(ReaderLimit::Images),
        }
    }
    out.push_str(&html[written..]);
    out
}

/// The id at `from`, up to the end of an attribute, a URL in a style, or a word.
fn id_at(html: &str, from: usize) -> &str {
    let bytes = &html.as_bytes()[from..];
    let ends = |byte: &u8| matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'(' | b')' | b'&') || *byte <= b' ';
    let end = bytes.iter().take(ID_BYTES_MAX + 1).position(ends).unwrap_or(bytes.len().min(ID_BYTES_MAX));
    &html[from..from + bytes_floor(html, from, end)]
}

/// The largest length up to `length` at which a character ends.
fn bytes_floor(html: &str, from: usize, length: usize) -> usize {
    html.floor_char_boundary(from + length) - from
}

/// The image as a URL of at most `left` bytes.
fn data_url(part: &MailPart<'_, '_>, left: usize, budget: &mut DecodeBudget) -> Option<String> {
    let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let subtype = part.media_type().subtype;
    let subtype: String = match subtype.len() {
        1..=SUBTYPE_CHARS_MAX => subtype.iter().filter(plain).map(|byte| char::from(*byte)).collect(),
        _ => "png".to_owned(),
    };
    let content = part.content(budget);
    let head = format!("data:image/{subtype};base64,");
    if head.len() + content.len().div_ceil(3) * 4 > left {
        return None;
    }
    Some(head + &BASE64_STANDARD.encode(&content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reader::limit::SHOWN_HTML_BYTES_MAX, reading::read};

    fn related(html: &str, image_type: &str, image: &str) -> Vec<u8> {
        format!(
            "Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n{html}\n--r\n\
             Content-Type: {image_type}\nContent-ID: <x>\nContent-Transfer-Encoding: base64\n\n{image}\n--r--\n"
        )
        .into_bytes()
    }

    #[test]
    fn an_empty_image_with_a_long_type_does_not_multiply_the_html() {
        let html = "cid:x ".repeat(100_000);
        for subtype in ["p".repeat(980), "png".to_owned(), "p".repeat(SUBTYPE_CHARS_MAX)] {
            let reading = read(&related(&html, &format!("image/{subtype}"), ""));
            let shown = reading.html.unwrap();
            assert!(shown.len() <= html.len() + IMAGE_BYTES_MAX, "{} bytes", shown.len());
        }
        let reading = read(&related(&html, &format!("image/{}", "p".repeat(SUBTYPE_CHARS_MAX)), "AAAA"));
        assert!(reading.omitted.contains(ReaderLimit::Images));
    }

    #[test]
    fn references_without_end_are_bounded_by_the_html() {
        for piece in ["cid:", "cid:x", "cid:\u{20ac}", "cid:y "] {
            let html = piece.repeat(SHOWN_HTML_BYTES_MAX / piece.len() + 2);
            let shown = read(&related(&html, "image/png", &"A".repeat(1_000_000))).html.unwrap();
            assert!(shown.len() <= SHOWN_HTML_BYTES_MAX + IMAGE_BYTES_MAX, "{piece}");
        }
    }

    #[test]
    fn an_image_is_put_in_each_time_and_only_under_its_whole_id() {
        let html = "<img src=\"cid:x\"><p style=\"background:url(cid:x)\"><img src='cid:xy'>";
        let shown = read(&related(html, "image/svg+xml", "iVBORw0=")).html.unwrap();
        assert_eq!(
            shown,
            "<img src=\"data:image/svg+xml;base64,iVBORw0=\"><p style=\"background:url(data:image/svg+xml;base64,iVBORw0=)\">\
             <img src='cid:xy'>"
        );
    }

    #[test]
    fn an_image_that_is_too_large_is_left_out_and_said_to_be() {
        let raw = related("<img src=\"cid:x\">", "image/png", &"AAAA".repeat(IMAGE_BYTES_MAX / 4));
        let reading = read(&raw);
        assert_eq!(reading.html.as_deref(), Some("<img src=\"cid:x\">"));
        assert!(reading.omitted.contains(ReaderLimit::Images));
    }
}
