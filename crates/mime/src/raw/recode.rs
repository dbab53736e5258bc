//! Re-encodes bodies that not every server accepts.
//!
//! A line over 998 octets is illegal on the wire, and only a server that offers 8BITMIME accepts octets
//! beyond ASCII. Encoding a part as quoted-printable or base64 removes both and does not change its content.
//! The parts are those that [`crate::reader`] finds. A mail inside a mail may not be encoded itself, so its
//! parts are encoded, down to a limited depth.
//!
//! Text outside the parts that the reader finds (a multipart without parts, parts beyond its limit) has its
//! long lines broken as Postfix does, and keeps its octets. Signed parts (`multipart/signed`) keep their
//! octets too, because a server may well accept them; their long lines are encoded, because no server may
//! accept those.

use memchr::memchr;

use super::{ascii_header::write_in_ascii, header::RawField};
use crate::{
    reader::{MailPart, ReadMail, TransferEncoding},
    wire::{
        lines::{TextLines, are_short, write_wrapped},
        transfer_encoding::write_base64,
    },
};

/// How many levels of mail inside mail are re-encoded.
const DEPTH_MAX: usize = 4;
/// Columns of a line of quoted-printable, its soft break included.
const QUOTED_COLUMNS: usize = 76;

/// What to remove from a body by encoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnwantedOctets {
    /// Octets beyond ASCII.
    pub(crate) eight_bit: bool,
    /// Lines over 998 octets.
    pub(crate) long_lines: bool,
}

impl UnwantedOctets {
    fn is_in(self, text: &[u8]) -> bool {
        (self.eight_bit && !text.is_ascii()) || (self.long_lines && !are_short(text))
    }
}

/// A re-encoded mail.
#[derive(Debug, Default)]
pub(crate) struct RecodedMail {
    pub(crate) bytes: Vec<u8>,
    /// Whether a part was encoded.
    pub(crate) is_encoded: bool,
    /// Whether a line was broken, which changes the content.
    pub(crate) is_broken: bool,
    /// Whether signed content was changed.
    pub(crate) is_signed_part_changed: bool,
}

/// Encodes every part of a mail that contains unwanted octets. The mail has CR LF endings. Of its own header
/// only the transfer encoding is changed.
pub(crate) fn recode(mail: &[u8], unwanted: UnwantedOctets) -> RecodedMail {
    let mut recoded = recode_parts(mail, unwanted, 0);
    if unwanted.long_lines && !are_short(&recoded.bytes) {
        let long = std::mem::take(&mut recoded.bytes);
        recoded.bytes.reserve(long.len() + long.len() / 256);
        for (line, _) in TextLines::new(&long) {
            write_wrapped(line, &mut recoded.bytes);
            recoded.bytes.extend_from_slice(b"\r\n");
        }
        recoded.is_broken = true;
    }
    recoded
}

fn recode_parts(mail: &[u8], unwanted: UnwantedOctets, depth: usize) -> RecodedMail {
    let read = ReadMail::read(mail);
    let mut recoded = RecodedMail::default();
    recoded.bytes.reserve(mail.len() + mail.len() / 4);
    let mut copied = 0;
    let leaves = read.parts().filter(|part| !part.has_children() && read.passed().is_empty());
    for part in leaves {
        let (entity, body) = (part.entity_range(), part.body_range());
        let header = &mail[entity.start..body.start];
        // The caller handles the header of the outer mail; that of a mail inside it is handled here.
        let is_inner = part.index() > 0 || depth > 0;
        let is_touched = unwanted.is_in(part.body()) || (is_inner && unwanted.is_in(header));
        let is_signed = is_signed(&part);
        if !is_touched || (is_signed && !unwanted.long_lines) {
            continue;
        }
        let Some((encoding, content)) = content(&part, unwanted, depth) else { continue };
        recoded.bytes.extend_from_slice(&mail[copied..entity.start]);
        write_header(header, encoding, is_inner, unwanted, &mut recoded.bytes);
        recoded.bytes.extend_from_slice(&content);
        copied = body.end;
        recoded.is_encoded = true;
        recoded.is_signed_part_changed |= is_signed;
    }
    recoded.bytes.extend_from_slice(&mail[copied..]);
    recoded
}

/// Whether a signature covers this part.
fn is_signed(part: &MailPart<'_, '_>) -> bool {
    let mut around = part.parent();
    while let Some(multipart) = around {
        if multipart.media_type().is("multipart", "signed") {
            return true;
        }
        around = multipart.parent();
    }
    false
}

/// The re-encoded body of a part, with the name of the encoding if it is a new one; `None` if the part may
/// not be encoded.
fn content(
    part: &MailPart<'_, '_>,
    unwanted: UnwantedOctets,
    depth: usize,
) -> Option<(Option<&'static str>, Vec<u8>)> {
    let body = part.body();
    let media = part.media_type();
    if !unwanted.is_in(body) {
        return Some((None, body.to_vec()));
    }
    let mut out = Vec::with_capacity(body.len() + body.len() / 2);
    let encoding = match part.encoding() {
        TransferEncoding::Base64 if body.is_ascii() => {
            let letters: Vec<u8> = body.iter().copied().filter(u8::is_ascii_graphic).collect();
            for (index, line) in letters.chunks(QUOTED_COLUMNS).enumerate() {
                out.extend_from_slice(if index > 0 { b"\r\n" } else { b"" });
                out.extend_from_slice(line);
            }
            None
        }
        TransferEncoding::Base64 => return None,
        TransferEncoding::QuotedPrintable => {
            write_quoted(body, true, &mut out);
            None
        }
        TransferEncoding::Identity if media.is_message() => {
            // A mail inside the mail may not be encoded as a whole; its parts are.
            if depth >= DEPTH_MAX {
                return None;
            }
            out = recode_parts(body, unwanted, depth + 1).bytes;
            if unwanted.is_in(&out) {
                return None;
            }
            out.is_ascii().then_some("7bit")
        }
        TransferEncoding::Identity if media.is_kind("message") || media.is_kind("multipart") => return None,
        TransferEncoding::Identity if media.is_kind("text") && is_better_quoted(body) => {
            write_quoted(body, false, &mut out);
            Some("quoted-printable")
        }
        TransferEncoding::Identity => {
            write_base64(body, &mut out);
            Some("base64")
        }
    };
    Some((encoding, out))
}

/// Whether quoted-printable is shorter: an escape costs two more octets, base64 a third of the text.
fn is_better_quoted(body: &[u8]) -> bool {
    let escapes: usize = body.iter().map(|byte| usize::from(!byte.is_ascii() || *byte == b'=')).sum();
    escapes * 6 <= body.len()
}

/// Writes lines as quoted-printable. If `is_quoted`, existing escapes are kept.
fn write_quoted(text: &[u8], is_quoted: bool, out: &mut Vec<u8>) {
    let mut is_first = true;
    for (line, _) in TextLines::new(text) {
        if !is_first {
            out.extend_from_slice(b"\r\n");
        }
        is_first = false;
        write_quoted_line(line, is_quoted, out);
    }
    if text.ends_with(b"\n") {
        out.extend_from_slice(b"\r\n");
    }
}

fn write_quoted_line(line: &[u8], is_quoted: bool, out: &mut Vec<u8>) {
    let (line, is_soft) = match line.strip_suffix(b"=") {
        Some(start) if is_quoted => (start, true),
        _ => (line, false),
    };
    let mut column = 0;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let is_last = after.is_empty();
        let is_escape = is_quoted
            && byte == b'='
            && matches!(after, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
        let is_plain = match byte {
            b'=' => false,
            // Some servers remove white space at the end of a line.
            b' ' | b'\t' => !is_last || is_soft,
            // At the start of a line a hyphen could begin a boundary, and a dot an end.
            b'-' | b'.' => column > 0,
            byte => byte.is_ascii_graphic(),
        };
        let width = if is_plain { 1 } else { 3 };
        if column + width >= QUOTED_COLUMNS {
            out.extend_from_slice(b"=\r\n");
            column = 0;
            continue;
        }
        if is_escape {
            out.extend_from_slice(&rest[..3]);
            rest = &rest[3..];
        } else {
            match is_plain {
                true => out.push(byte),
                false => out.extend_from_slice(format!("={byte:02X}").as_bytes()),
            }
            rest = after;
        }
        column += width;
    }
    if is_soft {
        out.push(b'=');
    }
}

/// Writes the header of a part, with a new transfer encoding if `encoding` is given.
fn write_header(
    header: &[u8],
    encoding: Option<&str>,
    is_inner: bool,
    unwanted: UnwantedOctets,
    out: &mut Vec<u8>,
) {
    let mut at = 0;
    while at < header.len() {
        let end = field_end(header, at);
        let text = &header[at..end];
        at = end;
        // The blank line at its end is written below; blank lines before it are dropped.
        if text.starts_with(b"\r\n") {
            continue;
        }
        let field = memchr(b':', text)
            .map(|colon| RawField { name: text[..colon].trim_ascii(), value: &text[colon + 1..] });
        match field {
            Some(field) if encoding.is_some() && field.is("Content-Transfer-Encoding") => {}
            Some(field) if is_inner && unwanted.eight_bit => write_in_ascii(&field, None, out),
            Some(field) if is_inner => field.write_folded(out),
            _ => out.extend_from_slice(text),
        }
    }
    if let Some(encoding) = encoding {
        out.extend_from_slice(format!("Content-Transfer-Encoding: {encoding}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// The end of the field that begins at `start`, with its continuation lines.
fn field_end(header: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        at = match memchr(b'\n', &header[at..]) {
            Some(end) => at + end + 1,
            None => return header.len(),
        };
        if !matches!(header.get(at), Some(b' ' | b'\t')) {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use mail_parser::{MessageParser, MimeHeaders};

    use super::*;

    const BOTH: UnwantedOctets = UnwantedOctets { eight_bit: true, long_lines: true };

    fn mail(body: &str) -> Vec<u8> {
        let parts = "From: a@b.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
        format!("{parts}{body}\r\n--b--\r\n").into_bytes()
    }

    #[test]
    fn a_long_or_foreign_text_is_quoted_and_reads_as_before() {
        let text = format!("Gr\u{fc}\u{df}e =3D \r\n--b is no boundary here\r\n{}\r\n", "long ".repeat(400));
        for header in
            ["", "Content-Type: text/plain; charset=utf-8\r\ncontent-transfer-encoding:\r\n 8bit\r\n"]
        {
            let whole = mail(&format!("{header}\r\n{text}"));
            let recoded = recode(&whole, BOTH);
            assert!(recoded.is_encoded && !recoded.is_broken && !recoded.is_signed_part_changed);
            assert!(recoded.bytes.is_ascii() && are_short(&recoded.bytes));
            let read = ReadMail::read(&recoded.bytes);
            let part = read.parts().nth(1).unwrap();
            assert_eq!(String::from_utf8(part.decoded().bytes.into_owned()).unwrap(), text);
            assert_eq!(part.header().all(b"content-transfer-encoding").count(), 1);
        }
        let fine = mail("\r\nplain\r\n");
        assert_eq!(recode(&fine, BOTH).bytes, fine, "what is fine stays as it is");
    }

    #[test]
    fn a_broken_line_begins_no_part() {
        // Each line of the text becomes several, and one of them would be the boundary.
        let text = format!("{}--b\r\nContent-Type: text/html\r\n\r\n<b>no</b>", "x".repeat(75 * 20));
        let recoded = recode(&mail(&format!("\r\n{text}")), BOTH);
        assert_eq!(ReadMail::read(&recoded.bytes).parts().count(), 2);
        let unparted = format!(
            "From: a@b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{}--b\r\n\r\nx\r\n",
            "x".repeat(998)
        );
        let recoded = recode(unparted.as_bytes(), BOTH);
        assert!(recoded.is_broken && are_short(&recoded.bytes));
        assert_eq!(ReadMail::read(&recoded.bytes).parts().count(), 1);
    }

    #[test]
    fn encodings_that_were_written_without_line_ends_get_some() {
        let letters = "QUJD".repeat(700);
        let recoded = recode(&mail(&format!("Content-Transfer-Encoding: base64\r\n\r\n{letters}")), BOTH);
        let read = ReadMail::read(&recoded.bytes);
        assert!(are_short(&recoded.bytes));
        assert_eq!(read.parts().nth(1).unwrap().decoded().bytes.as_ref(), "ABC".repeat(700).as_bytes());
        let quoted = format!("a=20{}=\r\nb \u{e9}", "=C3=A9-".repeat(300));
        let recoded =
            recode(&mail(&format!("Content-Transfer-Encoding: quoted-printable\r\n\r\n{quoted}")), BOTH);
        let read = ReadMail::read(&recoded.bytes);
        assert!(are_short(&recoded.bytes) && recoded.bytes.is_ascii());
        let text = format!("a {}b \u{e9}", "\u{e9}-".repeat(300));
        assert_eq!(read.parts().nth(1).unwrap().decoded().bytes.as_ref(), text.as_bytes());
    }

    #[test]
    fn a_file_is_encoded_as_octets_and_its_name_too() {
        let file = "Content-Type: application/x-thing\r\nContent-Disposition: attachment; filename=\"\u{e9}.bin\"\r\n\r\n\u{e9}\r\n \u{e8}";
        let recoded = recode(&mail(file), BOTH);
        assert!(recoded.bytes.is_ascii());
        let parsed = MessageParser::new().parse(&recoded.bytes).unwrap();
        let file = parsed.attachment(0).unwrap();
        assert_eq!(
            (file.contents(), file.attachment_name()),
            ("\u{e9}\r\n \u{e8}".as_bytes(), Some("\u{e9}.bin"))
        );
    }

    #[test]
    fn mail_inside_mail_is_gone_into_but_not_for_ever() {
        let nested = |depth: usize| {
            let inside = "From: a@b\r\nContent-Type: message/rfc822\r\n\r\n".repeat(depth);
            format!("{inside}From: a@b\r\nSubject: \u{e9}\r\n\r\ntext {}\r\n", "\u{e9}".repeat(1_000))
                .into_bytes()
        };
        let shallow = recode(&nested(2), BOTH);
        assert!(shallow.bytes.is_ascii() && are_short(&shallow.bytes) && !shallow.is_broken);
        let deep = recode(&nested(2_000), BOTH);
        assert!(!deep.bytes.is_ascii() && are_short(&deep.bytes) && deep.is_broken);
    }

    #[test]
    fn what_is_signed_keeps_its_octets_and_loses_only_long_lines() {
        let signed = |text: &str| {
            let start = "From: a@b\r\nContent-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\n";
            format!("{start}{text}\r\n--b\r\nContent-Type: application/pkcs7-signature\r\n\r\nx\r\n--b--\r\n")
                .into_bytes()
        };
        let short = signed("Gr\u{fc}\u{df}e");
        let recoded = recode(&short, UnwantedOctets { eight_bit: true, long_lines: false });
        assert_eq!((recoded.bytes == short, recoded.is_encoded), (true, false));
        let recoded = recode(&signed(&"x".repeat(2_000)), BOTH);
        assert!(are_short(&recoded.bytes) && recoded.is_signed_part_changed);
    }

    #[test]
    fn hostile_structure_costs_no_more_than_its_size() {
        for piece in [
            "--b\r\n",
            "--b\r\nContent-Type: message/rfc822\r\n\r\n\u{e9}\r\n",
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n",
        ] {
            let many = piece.repeat(1_000_000 / piece.len());
            let recoded = recode(&mail(&format!("{many}{}", "\u{e9}".repeat(5_000))), BOTH);
            assert!(are_short(&recoded.bytes));
        }
    }
}
