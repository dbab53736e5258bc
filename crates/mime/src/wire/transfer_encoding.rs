//! Text bodies: which transfer encoding they need, and writing them in it.
//!
//! 7bit when the text can travel as it is: ASCII, no line over 998 octets, no control characters, no white
//! space at the end of a line (relays trim it, and DKIM signers differ about it). Otherwise quoted-printable, or
//! base64 where that is shorter or where control characters would not survive. Line endings become CRLF in all
//! three.

use std::borrow::Cow;

use mail_builder::encoders::{Base64Encoder, QuotedPrintableEncoder};

use super::lines::{Ending, LINE_OCTETS_MAX, Lines, write_crlf};

/// A content transfer encoding (RFC 2045, 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    SevenBit,
    EightBit,
    QuotedPrintable,
    Base64,
}

impl Encoding {
    /// The whole header field with its CRLF.
    pub(crate) fn field(self) -> &'static [u8] {
        match self {
            Self::SevenBit => b"Content-Transfer-Encoding: 7bit\r\n",
            Self::EightBit => b"Content-Transfer-Encoding: 8bit\r\n",
            Self::QuotedPrintable => b"Content-Transfer-Encoding: quoted-printable\r\n",
            Self::Base64 => b"Content-Transfer-Encoding: base64\r\n",
        }
    }
}

/// What a look over a text has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Survey {
    pub(crate) encoding: Encoding,
    /// Every line ending is CRLF already.
    canonical: bool,
    bare_cr: bool,
}

/// Looks over a text once. `marker` is what every boundary of the message begins with, if there are any: a text
/// that contains it is not left plain.
pub(crate) fn survey(text: &[u8], marker: Option<&str>) -> Survey {
    let (mut canonical, mut bare_cr, mut plain, mut controls) = (true, false, true, false);
    for (line, ending) in Lines::new(text) {
        canonical &= matches!(ending, Ending::CrLf | Ending::None);
        bare_cr |= ending == Ending::Cr;
        plain &= line.len() <= LINE_OCTETS_MAX && !matches!(line.last(), Some(b' ' | b'\t'));
        // Counted without a branch, so that the compiler can take many octets at once.
        let odd: usize = line.iter().map(|byte| usize::from(is_control(*byte))).sum();
        controls |= odd > 0;
    }
    let encoding = if controls {
        Encoding::Base64
    } else if plain && text.is_ascii() && !marker.is_some_and(|marker| contains(text, marker.as_bytes())) {
        Encoding::SevenBit
    } else {
        let escapes: usize = text.iter().map(|byte| usize::from(*byte >= 0x7f || *byte == b'=')).sum();
        // An escape costs two octets more, base64 a third of the whole.
        if escapes * 6 > text.len() { Encoding::Base64 } else { Encoding::QuotedPrintable }
    };
    Survey { encoding, canonical, bare_cr }
}

/// Looks over a mail that may not be encoded (RFC 2046, 5.2.1): 7bit or 8bit, and none where it cannot travel as it is: a
/// line is too long, there is a NUL, or a boundary of the mail around it.
pub(crate) fn survey_mail(mail: &[u8], marker: &str) -> Option<Survey> {
    let (mut canonical, mut bare_cr) = (true, false);
    for (line, ending) in Lines::new(mail) {
        canonical &= matches!(ending, Ending::CrLf | Ending::None);
        bare_cr |= ending == Ending::Cr;
        if line.len() > LINE_OCTETS_MAX {
            return None;
        }
    }
    if mail.contains(&0) || contains(mail, marker.as_bytes()) {
        return None;
    }
    let encoding = if mail.is_ascii() { Encoding::SevenBit } else { Encoding::EightBit };
    Some(Survey { encoding, canonical, bare_cr })
}

/// A control character other than the tab (CR and LF are never inside a line).
fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, _)) = needle.split_first() else {
        return true;
    };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(needle) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// Writes a text in the encoding that [`survey`] chose for it. The last line has an ending only if the text had.
pub(crate) fn write_text(text: &[u8], survey: Survey, out: &mut Vec<u8>) {
    match survey.encoding {
        Encoding::SevenBit | Encoding::EightBit if survey.canonical => out.extend_from_slice(text),
        Encoding::SevenBit | Encoding::EightBit => write_crlf(text, out),
        Encoding::QuotedPrintable => {
            // mail-builder makes CRLF of a bare LF, but not of a bare CR.
            let text = if survey.bare_cr { canonical(text) } else { Cow::Borrowed(text) };
            QuotedPrintableEncoder::new().preserve_line_breaks().encode_into(&text, out);
        }
        Encoding::Base64 if survey.canonical => write_base64(text, out),
        Encoding::Base64 => write_base64(&canonical(text), out),
    }
}

fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    let mut copy = Vec::with_capacity(text.len() + text.len() / 16);
    write_crlf(text, &mut copy);
    Cow::Owned(copy)
}

/// Writes base64 in lines of 76, without an ending after the last.
pub(crate) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    Base64Encoder::new().wrap_lines().encode_into(bytes, out);
    if out.ends_with(b"\r\n") && !bytes.is_empty() {
        out.truncate(out.len() - 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (Encoding, String) {
        let found = survey(text.as_bytes(), Some("=_id_"));
        let mut out = Vec::new();
        write_text(text.as_bytes(), found, &mut out);
        (found.encoding, String::from_utf8(out).unwrap())
    }

    #[test]
    fn plain_text_stays_as_it_is_but_for_its_line_endings() {
        assert_eq!(written("a\nb\rc\r\nd"), (Encoding::SevenBit, "a\r\nb\r\nc\r\nd".to_owned()));
        assert_eq!(written(&"x".repeat(998)).0, Encoding::SevenBit);
    }

    #[test]
    fn text_that_could_be_damaged_on_its_way_is_encoded() {
        assert_eq!(
            written("Zoë is here\rnow\n"),
            (Encoding::QuotedPrintable, "Zo=C3=AB is here\r\nnow\r\n".to_owned())
        );
        assert_eq!(written(&"x".repeat(999)).0, Encoding::QuotedPrintable);
        assert_eq!(written("a \nb").1, "a=20\r\nb");
        assert_eq!(written("bell\u{7}").0, Encoding::Base64);
        assert_eq!(written("Привет, мир!").0, Encoding::Base64);
    }

    #[test]
    fn text_with_a_boundary_in_it_is_encoded() {
        let (encoding, text) = written("a\n--=_id_0--\nb, and enough other text to stay readable\n");
        assert_eq!(encoding, Encoding::QuotedPrintable);
        assert!(!text.contains("=_id_"));
    }
}
