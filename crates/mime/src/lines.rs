//! Text as lines, whichever way they end: CRLF, a bare LF or a bare CR.
//!
//! All of this crate looks at text through [`Lines`], so that what is checked is exactly what is written.

/// The longest line of a message without its CRLF (RFC 5322, 2.1.1).
pub(crate) const LINE_OCTETS_MAX: usize = 998;

/// How a line ended in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    CrLf,
    Lf,
    Cr,
    /// The input ended first.
    None,
}

/// The lines of some bytes without their endings; what follows the last ending is a line only if not empty.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (&'a [u8], Ending);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = self.rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            return Some((std::mem::take(&mut self.rest), Ending::None));
        };
        let (line, tail) = self.rest.split_at(end);
        let (ending, width) = match tail {
            [b'\r', b'\n', ..] => (Ending::CrLf, 2),
            [b'\r', ..] => (Ending::Cr, 1),
            _ => (Ending::Lf, 1),
        };
        self.rest = &tail[width..];
        Some((line, ending))
    }
}

/// Appends `bytes` with every line ending as CRLF; an unfinished last line stays so.
pub(crate) fn write_crlf(bytes: &[u8], out: &mut Vec<u8>) {
    for (line, ending) in Lines::new(bytes) {
        out.extend_from_slice(line);
        if ending != Ending::None {
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
    fn an_ending_at_the_end_starts_no_further_line() {
        let lines: Vec<_> = Lines::new(b"a\n\n").collect();
        assert_eq!(lines, [(&b"a"[..], Ending::Lf), (&b""[..], Ending::Lf)]);
    }
}
