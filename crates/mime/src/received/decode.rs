//! Transfer encodings and HTML, as far as finding words and addresses in a report needs them.
//!
//! Lenient by design: what is not valid quoted-printable or base64 is kept or passed over, never refused.
//! Charsets are left alone, for the words that machines write into reports are ASCII in all of them.

use std::borrow::Cow;

use super::bytes::{find, normalise, starts_with, trim};

/// A transfer encoding that changes the octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// 7bit, 8bit, binary, or one that we do not know.
    Plain,
    QuotedPrintable,
    Base64,
}

impl Encoding {
    /// Reads a `Content-Transfer-Encoding`.
    pub(super) fn of(value: Option<&[u8]>) -> Self {
        match value.map(trim) {
            Some(value) if starts_with(value, b"quoted-printable") => Self::QuotedPrintable,
            Some(value) if starts_with(value, b"base64") => Self::Base64,
            _ => Self::Plain,
        }
    }

    /// The decoded text, its lines ending in LF.
    pub(super) fn decode(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Plain => Cow::Borrowed(text),
            Self::QuotedPrintable => match memchr::memchr(b'=', text) {
                None => Cow::Borrowed(text),
                Some(_) => own(quoted_printable(text)),
            },
            Self::Base64 => own(base64(text)),
        }
    }
}

/// The decoded octets with LF only: what was encoded may have had CR LF.
fn own(decoded: Vec<u8>) -> Cow<'static, [u8]> {
    match normalise(&decoded, usize::MAX) {
        Cow::Owned(text) => Cow::Owned(text),
        Cow::Borrowed(_) => Cow::Owned(decoded),
    }
}

fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'=', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let [high, low, ..] = rest
            && let (Some(high), Some(low)) = (nibble(*high), nibble(*low))
        {
            out.push(high << 4 | low);
            rest = &rest[2..];
            continue;
        }
        // A soft line break, maybe with white space before the end of the line.
        let blanks = super::bytes::indent(rest);
        match rest.get(blanks) {
            Some(b'\n') => rest = &rest[blanks + 1..],
            None => rest = b"",
            Some(_) => out.push(b'='),
        }
    }
    out.extend_from_slice(rest);
    out
}

fn nibble(octet: u8) -> Option<u8> {
    char::from(octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn base64(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for &octet in text {
        let value = match octet {
            b'A'..=b'Z' => octet - b'A',
            b'a'..=b'z' => octet - b'a' + 26,
            b'0'..=b'9' => octet - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => {
                // What follows the padding, if anything, begins anew.
                (bits, count) = (0, 0);
                continue;
            }
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

/// The text of an HTML part: tags become white space or line ends, the usual entities their characters.
pub(super) fn text_of_html(html: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some(at) = memchr::memchr2(b'<', b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if rest[0] == b'&' {
            rest = entity(rest, &mut out);
            continue;
        }
        let hidden: [(&[u8], &[u8]); 3] =
            [(b"<style", b"</style"), (b"<script", b"</script"), (b"<title", b"</title")];
        if let Some((_, end)) = hidden.into_iter().find(|(tag, _)| starts_with(rest, tag)) {
            let Some(at) = find(rest, end) else { return out };
            rest = &rest[at..];
        }
        let Some(end) = memchr::memchr(b'>', rest) else { return out };
        let inner = &rest[1..end];
        let inner = inner.strip_prefix(b"/").unwrap_or(inner);
        let breaks: [&[u8]; 8] = [b"br", b"p", b"div", b"tr", b"li", b"h", b"table", b"pre"];
        if breaks.iter().any(|tag| starts_with(inner, tag)) {
            out.push(b'\n');
        } else if starts_with(inner, b"td") {
            out.push(b' ');
        }
        rest = &rest[end + 1..];
    }
    out.extend_from_slice(rest);
    out
}

/// Writes the character of an entity; gives what comes after it.
fn entity<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let known: [(&[u8], u8); 10] = [
        (b"&lt;", b'<'),
        (b"&gt;", b'>'),
        (b"&amp;", b'&'),
        (b"&nbsp;", b' '),
        (b"&quot;", b'"'),
        (b"&#39;", b'\''),
        (b"&#43;", b'+'),
        (b"&#64;", b'@'),
        (b"&#46;", b'.'),
        (b"&#160;", b' '),
    ];
    match known.iter().find(|(name, _)| starts_with(rest, name)) {
        Some((name, octet)) => {
            out.push(*octet);
            &rest[name.len()..]
        }
        None => {
            out.push(b'&');
            &rest[1..]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_printable_is_read_leniently() {
        assert_eq!(quoted_printable(b"a=20b=\nc=3D=ZZ = \nd="), b"a bc==ZZ d");
    }

    #[test]
    fn base64_ends_in_line_feeds_only() {
        assert_eq!(Encoding::Base64.decode(b"YQ0K\nYg==").as_ref(), b"a\nb");
    }

    #[test]
    fn html_becomes_lines() {
        assert_eq!(text_of_html(b"<p>a&lt;b&gt;<br>c</p><style>x</style>d &x"), b"\na<b>\nc\nd &x");
    }
}
