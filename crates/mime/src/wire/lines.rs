//! Text as lines that end with CRLF, a bare LF or a bare CR.
//!
//! All writers of this crate read text through [`TextLines`], so that the checks see exactly the lines that
//! are written.

/// The longest line of a message without its CRLF (RFC 5322, 2.1.1).
pub(crate) const LINE_OCTETS_MAX: usize = 998;

/// How a line ended in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnding {
    CrLf,
    Lf,
    Cr,
    /// The input ended first.
    None,
}

/// The lines of some bytes without their endings; the text after the last ending is a line only if it is not
/// empty.
#[derive(Debug, Clone)]
pub(crate) struct TextLines<'a> {
    rest: &'a [u8],
}

impl<'a> TextLines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The text that has not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for TextLines<'a> {
    type Item = (&'a [u8], LineEnding);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = self.rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            return Some((std::mem::take(&mut self.rest), LineEnding::None));
        };
        let (line, tail) = self.rest.split_at(end);
        let (ending, width) = match tail {
            [b'\r', b'\n', ..] => (LineEnding::CrLf, 2),
            [b'\r', ..] => (LineEnding::Cr, 1),
            _ => (LineEnding::Lf, 1),
        };
        self.rest = &tail[width..];
        Some((line, ending))
    }
}

/// Whether no line is too long for the wire, whatever the line endings are.
pub(crate) fn are_short(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    // Jumps from one line ending to the last one within reach; most text has one in every stretch of this
    // length.
    while rest.len() > LINE_OCTETS_MAX {
        match memchr::memrchr2(b'\r', b'\n', &rest[..=LINE_OCTETS_MAX]) {
            Some(end) => rest = &rest[end + 1..],
            None => return false,
        }
    }
    true
}

/// Appends a line without its ending, broken so that no piece exceeds [`LINE_OCTETS_MAX`]: before the white
/// space in front of a word, or inside a word that is longer than a line, with a space in front of the rest.
/// So a header field continues, and no piece can be mistaken for a boundary.
pub(crate) fn write_wrapped(line: &[u8], out: &mut Vec<u8>) {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut rest = line;
    // The separator before the next piece.
    let mut lead: &[u8] = b"";
    while rest.len() + 1 > LINE_OCTETS_MAX {
        // A line of white space alone would end a header.
        let indent = rest.iter().take_while(|byte| is_space(byte)).count();
        if indent == rest.len() {
            return;
        }
        rest = &rest[indent.saturating_sub(1)..];
        let room = LINE_OCTETS_MAX - usize::from(lead.ends_with(b" "));
        if rest.len() <= room {
            break;
        }
        let begins_word =
            |at: &usize| is_space(&rest[*at]) && rest.get(at + 1).is_some_and(|next| !is_space(next));
        let word = (2..=room).rev().find(begins_word);
        let end = word.unwrap_or_else(|| {
            // Not inside a character: in UTF-8 at most three octets follow the first.
            (room - 3..=room).rev().find(|at| rest[*at] & 0xc0 != 0x80).unwrap_or(room)
        });
        out.extend_from_slice(lead);
        out.extend_from_slice(rest[..end].trim_ascii_end());
        rest = &rest[end..];
        lead = if rest.first().is_some_and(is_space) { b"\r\n" } else { b"\r\n " };
    }
    if lead.is_empty() || !rest.trim_ascii().is_empty() {
        out.extend_from_slice(lead);
        out.extend_from_slice(rest);
    }
}

/// Appends `bytes` with every line ending as CRLF; an unfinished last line stays so.
pub(crate) fn write_crlf(bytes: &[u8], out: &mut Vec<u8>) {
    for (line, ending) in TextLines::new(bytes) {
        out.extend_from_slice(line);
        if ending != LineEnding::None {
            out.extend_from_slice(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_ending_becomes_crlf() {
        let mut out = Vec::new();
        write_crlf(b"a\nb\rc\r\nd\r\r\n\ne", &mut out);
        assert_eq!(out, b"a\r\nb\r\nc\r\nd\r\n\r\n\r\ne");
    }

    #[test]
    fn long_lines_are_known_whichever_way_lines_end() {
        for ending in ["\r\n", "\n", "\r"] {
            let lines = |length: usize| {
                ["a".repeat(length), "b".repeat(998), "c".repeat(length), String::new()]
                    .join(ending)
                    .into_bytes()
            };
            assert!(are_short(&lines(998)) && are_short(b"") && are_short(&[b'x'; 998]));
            assert!(!are_short(&lines(999)) && !are_short(&[b'x'; 999]));
        }
    }

    #[test]
    fn a_line_is_broken_at_words_and_never_into_nothing() {
        let wrapped = |line: &[u8]| {
            let mut out = Vec::new();
            write_wrapped(line, &mut out);
            out
        };
        let words = format!("Subject:{}", " word".repeat(500));
        let text = String::from_utf8(wrapped(words.as_bytes())).unwrap();
        assert_eq!(text.replace("\r\n", ""), words, "folded where white space is, nothing is added");
        let solid = String::from_utf8(wrapped("\u{e9}".repeat(2_000).as_bytes())).unwrap();
        assert_eq!(solid.replace("\r\n ", ""), "\u{e9}".repeat(2_000), "no character is torn apart");
        let spaces = [b"A:".as_slice(), &[b' '; 3_000], b"b", &[b' '; 3_000]].concat();
        for line in
            [words.as_bytes(), solid.replace("\r\n", "").as_bytes(), &spaces, &[b' '; 2_000], &[0xbf; 5_000]]
        {
            let out = wrapped(line);
            for (line, _) in TextLines::new(&out) {
                assert!(line.len() <= LINE_OCTETS_MAX && !line.trim_ascii().is_empty());
            }
        }
    }

    #[test]
    fn an_ending_at_the_end_starts_no_further_line() {
        let lines: Vec<_> = TextLines::new(b"a\n\n").collect();
        assert_eq!(lines, [(&b"a"[..], LineEnding::Lf), (&b""[..], LineEnding::Lf)]);
    }
}
