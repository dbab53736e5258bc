//! Extracts text from html, well enough to find words and addresses in a report.
//!
//! It is lenient and works in one pass. Charsets are ignored, because the words that servers write into
//! reports are ASCII in all of them.

use super::bytes::{find, starts_with};

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

/// Writes the character of an entity, and returns the text after it.
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
    fn html_becomes_lines() {
        assert_eq!(text_of_html(b"<p>a&lt;b&gt;<br>c</p><style>x</style>d &x"), b"\na<b>\nc\nd &x");
    }
}
