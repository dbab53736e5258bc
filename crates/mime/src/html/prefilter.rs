//! A fast scan of the bytes that spares most mails the parser.
//!
//! It reports "clean" only if [`super::check_parsed`] certainly would; in doubt, the html is parsed. Why this
//! is correct, fault by fault:
//!
//! - an element, URL or attribute with script in it needs the letters `script`, `srcdoc` or `data:` (letters
//!   of a URL may have tabs and line breaks between them, or be written as `&#…;`; of the named entities only
//!   `&Tab;`, `&NewLine;`, `&colon;` and `&sol;` decode to a character that matters);
//! - an event handler needs white space, a quote or a slash, then `on…`, then `=`: entities are not decoded
//!   in names;
//! - a start tag opens at most two elements beside its own, so few tags cannot be deep or many;
//! - an attribute needs white space, a quote or a slash before it, so few of these cannot make too many.
//!
//! Control characters, which parsers drop or replace, always lead to a parse. A property test compares this
//! scan with the parser.

use super::{ATTRIBUTES_MAX, DEPTH_MAX};

/// Longer html has too many tags anyway.
const BYTES_MAX: usize = 16 * 1024;
const START_TAGS_MAX: u32 = DEPTH_MAX / 3 - 10;
const TAGS_MAX: u32 = 2_000;

/// Whether parsing would certainly find no fault.
pub(super) fn is_certainly_clean(html: &str) -> bool {
    let bytes = html.as_bytes();
    if bytes.len() > BYTES_MAX {
        return false;
    }
    let (mut start_tags, mut tags, mut separators) = (0u32, 0u32, 0u32);
    for (at, &byte) in bytes.iter().enumerate() {
        let rest = &bytes[at..];
        match byte {
            b' ' | b'/' | b'"' | b'\'' | b'\t' | b'\n' | b'\r' => {
                separators += 1;
                if is_handler(&rest[1..]) {
                    return false;
                }
            }
            b'<' => {
                tags += 1;
                start_tags += u32::from(rest.get(1).is_some_and(u8::is_ascii_alphabetic));
            }
            b'&' if is_significant_entity(&rest[1..]) => return false,
            b's' | b'S' if spelled(rest, b"script") || spelled(rest, b"srcdoc") => return false,
            b'd' | b'D' if spelled(rest, b"data:") => return false,
            0..0x20 | 0x7f => return false,
            _ => {}
        }
    }
    start_tags <= START_TAGS_MAX && tags <= TAGS_MAX && separators <= ATTRIBUTES_MAX
}

/// Whether the bytes begin with the letters of `word`, in any case, possibly with tabs and line breaks
/// between them.
fn spelled(bytes: &[u8], word: &[u8]) -> bool {
    let mut left = word;
    for byte in bytes {
        match byte {
            b'\t' | b'\n' | b'\r' => {}
            byte if byte.to_ascii_lowercase() == left[0] => left = &left[1..],
            _ => return false,
        }
        if left.is_empty() {
            return true;
        }
    }
    false
}

fn is_handler(bytes: &[u8]) -> bool {
    if !matches!(bytes, [b'o' | b'O', b'n' | b'N', ..]) {
        return false;
    }
    let name_end =
        bytes.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'/' | b'>' | b'='));
    let after = name_end.map_or(&[][..], |end| &bytes[end..]);
    let sign = after.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    sign == Some(&b'=')
}

fn is_significant_entity(name: &[u8]) -> bool {
    [&b"#"[..], b"Tab", b"NewLine", b"colon", b"sol"].iter().any(|entity| name.starts_with(entity))
}

/// Whether the html contains `word`, which is in lower case.
pub(super) fn contains_ignoring_case(html: &str, word: &[u8]) -> bool {
    html.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}
