//! Chooses the transfer encoding of a text body and writes the body in it.
//!
//! Text is 7bit if it needs no encoding: ASCII, no line over 998 octets, no control characters, no white
//! space at the end of a line (relays trim it, and DKIM signers treat it differently). Otherwise it is
//! quoted-printable, or base64 if that is shorter or if control characters would not survive. Line endings
//! become CRLF in all three.

use std::borrow::Cow;

use mail_builder::encoders::{Base64Encoder, QuotedPrintableEncoder};
use memchr::memmem;

use super::lines::{LINE_OCTETS_MAX, LineEnding, TextLines, write_crlf};

/// A content transfer encoding (RFC 2045, 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEncoding {
    SevenBit,
    EightBit,
    QuotedPrintable,
    Base64,
}

impl BodyEncoding {
    /// The header field with its CRLF.
    pub(crate) fn field(self) -> &'static [u8] {
        match self {
            Self::SevenBit => b"Content-Transfer-Encoding: 7bit\r\n",
            Self::EightBit => b"Content-Transfer-Encoding: 8bit\r\n",
            Self::QuotedPrintable => b"Content-Transfer-Encoding: quoted-printable\r\n",
            Self::Base64 => b"Content-Transfer-Encoding: base64\r\n",
        }
    }
}

/// The encoding that a text needs, and the line endings that it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextSurvey {
    pub(crate) encoding: BodyEncoding,
    /// Whether every line ending is CRLF already.
    canonical: bool,
    bare_cr: bool,
}

/// Examines a text in one pass. `marker` is the beginning of every boundary of the message, if it has any: a
/// text that contains it is encoded.
pub(crate) fn survey(text: &[u8], marker: Option<&str>) -> TextSurvey {
    let (mut canonical, mut bare_cr, mut plain, mut controls) = (true, false, true, false);
    for (line, ending) in TextLines::new(text) {
        canonical &= matches!(ending, LineEnding::CrLf | LineEnding::None);
        bare_cr |= ending == LineEnding::Cr;
        plain &= line.len() <= LINE_OCTETS_MAX && !matches!(line.last(), Some(b' ' | b'\t'));
        // Counted without a branch, so that the compiler can vectorise the loop.
        let odd: usize = line.iter().map(|byte| usize::from(is_control(*byte))).sum();
        controls |= odd > 0;
    }
    let encoding = if controls {
        BodyEncoding::Base64
    } else if plain
        && text.is_ascii()
        && marker.is_none_or(|marker| memmem::find(text, marker.as_bytes()).is_none())
    {
        BodyEncoding::SevenBit
    } else {
        let escapes: usize = text.iter().map(|byte| usize::from(*byte >= 0x7f || *byte == b'=')).sum();
        // An escape costs two more octets, base64 a third of the text.
        if escapes * 6 > text.len() { BodyEncoding::Base64 } else { BodyEncoding::QuotedPrintable }
    };
    TextSurvey { encoding, canonical, bare_cr }
}

/// Examines a mail that may not be encoded (RFC 2046, 5.2.1): 7bit or 8bit, or `None` if it cannot be sent
/// unencoded because it has a long line, a NUL, or a boundary of the mail around it.
pub(crate) fn survey_mail(mail: &[u8], marker: &str) -> Option<TextSurvey> {
    let (mut canonical, mut bare_cr) = (true, false);
    for (line, ending) in TextLines::new(mail) {
        canonical &= matches!(ending, LineEnding::CrLf | LineEnding::None);
        bare_cr |= ending == LineEnding::Cr;
        if line.len() > LINE_OCTETS_MAX {
            return None;
        }
    }
    if mail.contains(&0) || memmem::find(mail, marker.as_bytes()).is_some() {
        return None;
    }
    let encoding = if mail.is_ascii() { BodyEncoding::SevenBit } else { BodyEncoding::EightBit };
    Some(TextSurvey { encoding, canonical, bare_cr })
}

/// A control character other than the tab (CR and LF are never inside a line).
fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// Writes a text in the encoding that [`survey`] chose for it. The last line has an ending only if it has one
/// in the text.
pub(crate) fn write_text(text: &[u8], survey: TextSurvey, out: &mut Vec<u8>) {
    match survey.encoding {
        BodyEncoding::SevenBit | BodyEncoding::EightBit if survey.canonical => out.extend_from_slice(text),
        BodyEncoding::SevenBit | BodyEncoding::EightBit => write_crlf(text, out),
        BodyEncoding::QuotedPrintable => {
            // mail-builder turns a bare LF into CRLF, but not a bare CR.
            let text = if survey.bare_cr { canonical(text) } else { Cow::Borrowed(text) };
            QuotedPrintableEncoder::new().preserve_line_breaks().encode_into(&text, out);
        }
        BodyEncoding::Base64 if survey.canonical => write_base64(text, out),
        BodyEncoding::Base64 => write_base64(&canonical(text), out),
    }
}

fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    let mut copy = Vec::with_capacity(text.len() + text.len() / 16);
    write_crlf(text, &mut copy);
    Cow::Owned(copy)
}

/// Writes base64 in lines of 76 characters, without an ending after the last.
pub(crate) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    Base64Encoder::new().wrap_lines().encode_into(bytes, out);
    if out.ends_with(b"\r\n") && !bytes.is_empty() {
        out.truncate(out.len() - 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (BodyEncoding, String) {
        let found = survey(text.as_bytes(), Some("=_id_"));
        let mut out = Vec::new();
        write_text(text.as_bytes(), found, &mut out);
        (found.encoding, String::from_utf8(out).unwrap())
    }

    #[test]
    fn plain_text_stays_as_it_is_but_for_its_line_endings() {
        assert_eq!(written("a\nb\rc\r\nd"), (BodyEncoding::SevenBit, "a\r\nb\r\nc\r\nd".to_owned()));
        assert_eq!(written(&"x".repeat(998)).0, BodyEncoding::SevenBit);
    }

    #[test]
    fn text_that_could_be_damaged_on_its_way_is_encoded() {
        assert_eq!(
            written("Zoë is here\rnow\n"),
            (BodyEncoding::QuotedPrintable, "Zo=C3=AB is here\r\nnow\r\n".to_owned())
        );
        assert_eq!(written(&"x".repeat(999)).0, BodyEncoding::QuotedPrintable);
        assert_eq!(written("a \nb").1, "a=20\r\nb");
        assert_eq!(written("bell\u{7}").0, BodyEncoding::Base64);
        assert_eq!(written("Привет, мир!").0, BodyEncoding::Base64);
    }

    #[test]
    fn text_with_a_boundary_in_it_is_encoded() {
        let (encoding, text) = written("a\n--=_id_0--\nb, and enough other text to stay readable\n");
        assert_eq!(encoding, BodyEncoding::QuotedPrintable);
        assert!(!text.contains("=_id_"));
    }
}
