//! Helpers for mail as bytes: lines, case-insensitive searches, and uniform line endings.
//!
//! [`normalise`] makes every line end with LF, so that the rest of the parser knows only one line ending, and
//! LF, CR LF and bare CR give the same report. It borrows if there is nothing to change. No function here
//! fails.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// The text with LF for each CR LF and each bare CR, cut to `octets_max`.
pub(super) fn normalise(raw: &[u8], octets_max: usize) -> Cow<'_, [u8]> {
    let raw = &raw[..raw.len().min(octets_max)];
    let Some(first) = memchr(b'\r', raw) else { return Cow::Borrowed(raw) };
    let mut out = Vec::with_capacity(raw.len());
    out.extend_from_slice(&raw[..first]);
    let mut rest = &raw[first..];
    // `rest` begins with a CR.
    while !rest.is_empty() {
        out.push(b'\n');
        rest = &rest[if rest.get(1) == Some(&b'\n') { 2 } else { 1 }..];
        let next = memchr(b'\r', rest).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(out)
}

/// The lines of a text whose lines end in LF, without their ends.
pub(super) fn lines(text: &[u8]) -> LfTextLines<'_> {
    LfTextLines { text, at: 0 }
}

/// See [`lines`].
#[derive(Clone)]
pub(super) struct LfTextLines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> LfTextLines<'a> {
    /// The offset of the next line.
    pub(super) fn position(&self) -> usize {
        self.at.min(self.text.len())
    }
}

impl<'a> Iterator for LfTextLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at >= self.text.len() {
            return None;
        }
        let rest = &self.text[self.at..];
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        self.at += end + 1;
        Some(&rest[..end])
    }
}

/// Whether `text` begins with `prefix`, in any case.
pub(super) fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.len() >= prefix.len() && text[..prefix.len()].eq_ignore_ascii_case(prefix)
}

/// The offset of the first `needle` in `text`, in any case.
pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let (&first, tail) = needle.split_first()?;
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let mut from = 0;
    while let Some(at) = memchr2(lower, upper, &text[from..]) {
        let begin = from + at;
        if starts_with(&text[begin + 1..], tail) {
            return Some(begin);
        }
        from = begin + 1;
    }
    None
}

/// Whether `needle` occurs in `text`, in any case.
pub(super) fn contains(text: &[u8], needle: &[u8]) -> bool {
    find(text, needle).is_some()
}

/// The text after the first `needle`, in any case.
pub(super) fn after<'a>(text: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    find(text, needle).map(|at| &text[at + needle.len()..])
}

/// The text without white space at its ends.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// How many columns of white space a line begins with.
pub(super) fn indent(line: &[u8]) -> usize {
    line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// The text as a string of at most `octets_max` octets: runs of white space become one space, text that is
/// not UTF-8 is read as Latin-1, and control characters are dropped.
pub(super) fn squeeze(text: &[u8], octets_max: usize) -> String {
    let decoded: Cow<'_, str> = match std::str::from_utf8(text) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(text.iter().map(|&b| char::from(b)).collect()),
    };
    let mut out = String::with_capacity(decoded.len().min(octets_max));
    for word in decoded.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if out.len() + word.len() + 1 > octets_max {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_ending_becomes_a_line_feed() {
        for raw in ["a\nb\n\nc", "a\r\nb\r\n\r\nc", "a\rb\r\rc"] {
            assert_eq!(normalise(raw.as_bytes(), 100).as_ref(), b"a\nb\n\nc");
        }
        assert!(matches!(normalise(b"a\nb", 100), Cow::Borrowed(_)));
    }

    #[test]
    fn searches_do_not_mind_case() {
        assert_eq!(find(b"xx Message-ID: y", b"message-id:"), Some(3));
        assert_eq!(find(b"mmmessage", b"message"), Some(2));
        assert_eq!(find(b"mess", b"message"), None);
    }

    #[test]
    fn squeezed_text_is_short_and_on_one_line() {
        assert_eq!(squeeze(b" a\t b\n\n c\xe9 ", 100), "a b c\u{e9}");
        assert_eq!(squeeze("wort ".repeat(10).as_bytes(), 12), "wort wort");
    }
}
