//! Decodes transfer encodings (RFC 2045, 6) leniently, within a budget for the whole mail.
//!
//! Invalid input is kept or skipped, never refused, and the result says so. Output is never longer than
//! input, except for text in another charset, which takes at most three bytes for one.

use std::borrow::Cow;

use memchr::memchr;

use super::{header::line_at, limit::DECODED_BYTES_MAX};

/// A transfer encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferEncoding {
    /// 7bit, 8bit, binary, or an unknown one: the octets are not changed.
    Identity,
    /// Quoted-printable.
    QuotedPrintable,
    /// Base64.
    Base64,
}

/// Decoded octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedContent<'a> {
    /// The octets.
    pub bytes: Cow<'a, [u8]>,
    /// Whether some of the encoded text was not valid.
    pub is_damaged: bool,
}

impl TransferEncoding {
    /// Reads a `Content-Transfer-Encoding`.
    pub fn from_header(value: Option<&[u8]>) -> Self {
        let begins = |value: &[u8], word: &[u8]| {
            value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        match value {
            Some(value) if begins(value, b"quoted-printable") => Self::QuotedPrintable,
            Some(value) if begins(value, b"base64") => Self::Base64,
            _ => Self::Identity,
        }
    }

    /// Decodes a text.
    pub fn decode(self, text: &[u8]) -> DecodedContent<'_> {
        let (bytes, is_damaged) = match self {
            Self::Identity => return DecodedContent { bytes: Cow::Borrowed(text), is_damaged: false },
            Self::QuotedPrintable if memchr(b'=', text).is_none() => {
                return DecodedContent { bytes: Cow::Borrowed(text), is_damaged: false };
            }
            Self::QuotedPrintable => quoted_printable(text),
            Self::Base64 => base64(text),
        };
        DecodedContent { bytes: Cow::Owned(bytes), is_damaged }
    }
}

/// The number of bytes of one mail that may still be decoded.
#[derive(Debug)]
pub struct DecodeBudget {
    left: usize,
    is_passed: bool,
}

impl Default for DecodeBudget {
    fn default() -> Self {
        Self::of(DECODED_BYTES_MAX)
    }
}

impl DecodeBudget {
    /// A budget of `bytes_max` bytes, at most [`DECODED_BYTES_MAX`].
    pub fn of(bytes_max: usize) -> Self {
        Self { left: bytes_max.min(DECODED_BYTES_MAX), is_passed: false }
    }

    /// Whether content was left out.
    pub fn is_passed(&self) -> bool {
        self.is_passed
    }

    /// Takes the beginning of an encoded body that may be decoded.
    pub(super) fn take<'a>(&mut self, body: &'a [u8]) -> &'a [u8] {
        let taken = body.len().min(self.left);
        self.is_passed |= taken < body.len();
        self.left -= taken;
        &body[..taken]
    }

    /// How much of a text of `length` bytes may be kept that was decoded from `made_of` bytes. In UTF-8 a
    /// text may be three times as long.
    pub(super) fn take_text(&mut self, made_of: usize, length: usize) -> usize {
        let more = length.saturating_sub(made_of);
        let taken = more.min(self.left);
        self.is_passed |= taken < more;
        self.left -= taken;
        length - (more - taken)
    }
}

fn quoted_printable(text: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len());
    let mut is_damaged = false;
    let mut at = 0;
    while at < text.len() {
        let (end, next) = line_at(text, at);
        // White space at the end of a line was added on the way (RFC 2045, 6.7, rule 3).
        let line = text[at..end].trim_ascii_end();
        let (line, is_soft) = match line.strip_suffix(b"=") {
            Some(line) => (line, true),
            None => (line, false),
        };
        is_damaged |= quoted_line(line, &mut out);
        if !is_soft {
            out.extend_from_slice(&text[end..next]);
        }
        at = next;
    }
    (out, is_damaged)
}

/// Decodes a line without its ending; returns whether it has an invalid `=`.
fn quoted_line(line: &[u8], out: &mut Vec<u8>) -> bool {
    let mut is_damaged = false;
    let mut rest = line;
    while let Some(at) = memchr(b'=', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest {
            [high, low, tail @ ..] if nibble(*high).is_some() && nibble(*low).is_some() => {
                out.extend(nibble(*high).zip(nibble(*low)).map(|(high, low)| high << 4 | low));
                rest = tail;
            }
            _ => {
                out.push(b'=');
                is_damaged = true;
            }
        }
    }
    out.extend_from_slice(rest);
    is_damaged
}

/// The value of a hexadecimal digit.
pub(super) fn nibble(octet: u8) -> Option<u8> {
    char::from(octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Marks an octet that is not a base64 digit.
const NONE: u8 = 0xff;
/// The value of each octet in base64, the URL-safe alphabet included.
const SEXTETS: [u8; 256] = {
    let mut table = [NONE; 256];
    let letters = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < letters.len() {
        table[letters[value] as usize] = value as u8;
        value += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
};

/// Decodes base64. Returns also whether there is text after the padding or the text ends within an octet.
/// Other characters are skipped.
pub(super) fn base64(text: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0_u32, 0);
    let (mut is_padded, mut is_damaged) = (false, false);
    for &octet in text {
        let sextet = SEXTETS[usize::from(octet)];
        if sextet == NONE {
            if octet == b'=' {
                // Decoding restarts after padding.
                is_damaged |= count == 6;
                (bits, count, is_padded) = (0, 0, true);
            }
            continue;
        }
        is_damaged |= is_padded;
        bits = bits << 6 | u32::from(sextet);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    (out, is_damaged || count == 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_printable_is_read_leniently() {
        assert_eq!(quoted_printable(b"a=20b=\nc=3D=ZZ = \nd="), (b"a bc==ZZ d".to_vec(), true));
        assert_eq!(quoted_printable(b"a=C3=A9 \t\r\nb=\r\nc"), ("aé\r\nbc".as_bytes().to_vec(), false));
        let plain = TransferEncoding::QuotedPrintable.decode(b"nothing to do");
        assert!(matches!(plain.bytes, Cow::Borrowed(_)));
    }

    #[test]
    fn base64_passes_over_what_it_does_not_know() {
        assert_eq!(base64(b"aGVs\r\nbG8="), (b"hello".to_vec(), false));
        assert_eq!(base64(b"aG!Vs bG8"), (b"hello".to_vec(), false));
        assert_eq!(base64(b"aGk=aGk="), (b"hihi".to_vec(), true), "two texts in one");
        assert_eq!(base64(b"aGVsb"), (b"hel".to_vec(), true), "cut in the middle");
    }

    #[test]
    fn a_budget_ends() {
        let mut budget = DecodeBudget { left: 5, is_passed: false };
        assert_eq!((budget.take(b"abc"), budget.is_passed()), (&b"abc"[..], false));
        assert_eq!((budget.take(b"defg"), budget.is_passed()), (&b"de"[..], true));
        assert_eq!(budget.take(b"x"), b"");
        let mut budget = DecodeBudget::of(10);
        assert_eq!((budget.take(b"abcd"), budget.take_text(4, 3), budget.left), (&b"abcd"[..], 3, 6));
        assert_eq!((budget.take_text(4, 8), budget.is_passed()), (8, false));
        assert_eq!((budget.take_text(4, 12), budget.is_passed()), (6, true));
    }
}
