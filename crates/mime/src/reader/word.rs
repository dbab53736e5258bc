//! Encoded words (RFC 2047): `=?charset?b?…?=` in a field.
//!
//! They are read in one pass: a false beginning is text up to the point where it was recognised, and is not
//! read again. A parser that backtracks takes quadratic time for a field of `=?x?q?`.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;
use memchr::{memchr2, memmem};

use super::transfer::{base64, nibble};

/// The longest name of a charset, its language included.
const CHARSET_BYTES_MAX: usize = 64;

/// The result of reading at a `=?`.
enum WordScan<'a> {
    Word {
        charset: &'a [u8],
        is_base64: bool,
        data: &'a [u8],
        end: usize,
    },
    /// No encoded word begins here or before `until`.
    Text {
        until: usize,
    },
}

/// Decodes the encoded words of an unfolded value, wherever they are. White space between two of them is
/// dropped.
pub fn decode(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len());
    let mut text_from = 0;
    let mut after_word = false;
    let mut at = 0;
    while let Some(found) = memmem::find(&value[at..], b"=?") {
        match scan(value, at + found) {
            WordScan::Text { until } => at = until,
            WordScan::Word { charset, is_base64, data, end } => {
                let text = &value[text_from..at + found];
                if !(after_word && text.trim_ascii().is_empty()) {
                    out.push_str(&String::from_utf8_lossy(text));
                }
                let bytes = if is_base64 { base64(data).0 } else { quoted(data) };
                out.push_str(&in_charset(&bytes, Some(charset)));
                (text_from, at, after_word) = (end, end, true);
            }
        }
    }
    out.push_str(&String::from_utf8_lossy(&value[text_from..]));
    out
}

/// Inserts a space into each `=?` that does not begin an encoded word, so that a backtracking parser finds no
/// false beginning.
pub(super) fn without_false_words(value: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let mut written = 0;
    let mut at = 0;
    while let Some(found) = memmem::find(&value[at..], b"=?") {
        match scan(value, at + found) {
            WordScan::Word { end, .. } => at = end,
            WordScan::Text { until } => {
                let begin = at + found;
                out.extend_from_slice(&value[written..=begin]);
                out.push(b' ');
                written = begin + 1;
                at = until;
            }
        }
    }
    if written == 0 {
        return Cow::Borrowed(value);
    }
    out.extend_from_slice(&value[written..]);
    Cow::Owned(out)
}

/// Reads the encoded word whose `=?` is at `at`.
fn scan(value: &[u8], at: usize) -> WordScan<'_> {
    let from = at + 2;
    let is_charset = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'=');
    let length = value[from..].iter().take(CHARSET_BYTES_MAX).take_while(|byte| is_charset(byte)).count();
    let charset = &value[from..from + length];
    let data = from + length + 3;
    let is_base64 = match value.get(from + length..data) {
        Some([b'?', b'b' | b'B', b'?']) if length > 1 => true,
        Some([b'?', b'q' | b'Q', b'?']) if length > 1 => false,
        _ => return WordScan::Text { until: from + length },
    };
    let mut seen = data;
    loop {
        let stop = match is_base64 {
            true => value[seen..].iter().position(|byte| !is_base64_text(*byte)),
            false => memchr2(b'?', b'=', &value[seen..]),
        };
        let Some(stop) = stop.map(|stop| seen + stop) else {
            return WordScan::Text { until: value.len() };
        };
        match (value[stop], value.get(stop + 1)) {
            (b'?', Some(b'=')) => {
                let charset = charset.split(|byte| *byte == b'*').next().unwrap_or_default();
                return WordScan::Word { charset, is_base64, data: &value[data..stop], end: stop + 2 };
            }
            // The base64 may have ended in the `=` of the next `=?`.
            (b'?', _) if is_base64 => {
                let overlaps = stop > data && value[stop - 1] == b'=';
                return WordScan::Text { until: if overlaps { stop - 1 } else { stop } };
            }
            (b'=', Some(b'?')) => return WordScan::Text { until: stop },
            _ if is_base64 => return WordScan::Text { until: stop },
            _ => seen = stop + 1,
        }
    }
}

fn is_base64_text(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b' ' | b'\t')
}

/// The octets of a word in the `Q` encoding.
fn quoted(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'_', _) => out.push(b' '),
            (b'=', [high, low, tail @ ..]) => match (nibble(*high), nibble(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = tail;
                }
                _ => out.push(b'='),
            },
            _ => out.push(byte),
        }
    }
    out
}

/// Decodes octets from a charset, or from UTF-8 if the charset is unknown.
pub(crate) fn in_charset<'b>(bytes: &'b [u8], charset: Option<&[u8]>) -> Cow<'b, str> {
    let is_utf8 = |name: &[u8]| name.eq_ignore_ascii_case(b"utf-8") || name.eq_ignore_ascii_case(b"us-ascii");
    match charset.filter(|name| !is_utf8(name)).and_then(charset_decoder) {
        Some(decode) => Cow::Owned(decode(bytes)),
        None => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_wherever_they_stand() {
        for (written, read) in [
            ("=?utf-8?q?Gr=C3=BC=C3=9Fe_an?= Ada", "Grüße an Ada"),
            ("=?utf-8?b?R3LDvMOfZQ==?= =?iso-8859-1*de?Q?=FC?=", "Grüßeü"),
            ("Re: =?UTF-8?B?4oKs?= (5)", "Re: € (5)"),
            ("=?utf-8?q?with space?=", "with space"),
            ("a =?utf-8?x?b?= c", "a =?utf-8?x?b?= c"),
            ("=?utf-8?b?YQ=?utf-8?q?x?=", "=?utf-8?b?YQx"),
            ("=?utf-8?q?one =?utf-8?q?two?=", "=?utf-8?q?one two"),
            ("=?utf-8?q?never closed", "=?utf-8?q?never closed"),
            ("=?no-such?q?=41?=", "A"),
            ("=??q?x?=", "=??q?x?="),
        ] {
            assert_eq!(decode(written.as_bytes()), read, "{written}");
        }
    }

    #[test]
    fn false_beginnings_are_taken_away_and_words_are_not() {
        let value = b"=?utf-8?q?a?= x=?y =?utf-8?b?=?utf-8?q?b?=";
        let expected = b"=?utf-8?q?a?= x= ?y = ?utf-8?b?=?utf-8?q?b?=";
        assert_eq!(without_false_words(value).as_ref(), expected);
        assert!(matches!(without_false_words(b"=?utf-8?q?a?="), Cow::Borrowed(_)));
        assert!(matches!(without_false_words(b"plain"), Cow::Borrowed(_)));
    }
}
