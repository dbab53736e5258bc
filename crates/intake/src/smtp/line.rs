//! Where lines end: at CR LF, and nowhere else (RFC 5321, 2.3.8).
//!
//! Servers that also end a line at a bare LF, or let one through, disagree about where a mail ends, and what one takes
//! for the body the next takes for commands. So a bare CR or LF is an error of the whole stream.

use memchr::{memchr2, memchr2_iter};

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadLine {
    /// An LF without a CR before it.
    BareLf,
    /// A CR without an LF after it.
    BareCr,
    /// No end within the limit.
    TooLong,
}

/// The length of the first line without its ending, if it is complete. With its ending it is `limit` octets at most.
pub(super) fn first(input: &[u8], limit: usize) -> Result<Option<usize>, BadLine> {
    let seen = &input[..input.len().min(limit)];
    let length = memchr2(b'\r', b'\n', seen);
    match length.map(|length| (length, &seen[length..])) {
        Some((_, [b'\n', ..])) => Err(BadLine::BareLf),
        Some((length, [b'\r', b'\n', ..])) => Ok(Some(length)),
        Some((_, [b'\r', _, ..])) => Err(BadLine::BareCr),
        _ if input.len() >= limit => Err(BadLine::TooLong),
        _ => Ok(None),
    }
}

/// Checks the line endings of a body that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Endings {
    after_cr: bool,
}

impl Endings {
    /// The next piece.
    pub(super) fn check(&mut self, piece: &[u8]) -> Result<(), BadLine> {
        // Where the last piece ended with a CR, it is as if one stood before this one.
        let mut cr_at = self.after_cr.then_some(None);
        for at in memchr2_iter(b'\r', b'\n', piece) {
            let follows = |cr_at: Option<usize>| cr_at.map_or(0, |cr_at| cr_at + 1) == at;
            match (cr_at, piece[at]) {
                (Some(cr), b'\n') if follows(cr) => cr_at = None,
                (Some(_), _) => return Err(BadLine::BareCr),
                (None, b'\n') => return Err(BadLine::BareLf),
                (None, _) => cr_at = Some(Some(at)),
            }
        }
        match cr_at {
            Some(cr) if cr.map_or(0, |cr| cr + 1) < piece.len() => Err(BadLine::BareCr),
            open => {
                self.after_cr = open.is_some();
                Ok(())
            }
        }
    }

    /// After the last piece.
    pub(super) fn finish(&self) -> Result<(), BadLine> {
        if self.after_cr { Err(BadLine::BareCr) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cr_lf_ends_a_line() {
        for (input, found) in [
            (&b""[..], Ok(None)),
            (b"NOOP", Ok(None)),
            (b"NOOP\r", Ok(None)),
            (b"NOOP\r\n", Ok(Some(4))),
            (b"\r\nQUIT", Ok(Some(0))),
            (b"NOOP\nQUIT\r\n", Err(BadLine::BareLf)),
            (b"NOOP\rQUIT\r\n", Err(BadLine::BareCr)),
            (b"NOOP\r\r\n", Err(BadLine::BareCr)),
            (b"12345678\r\n", Ok(Some(8))),
            (b"123456789\r\n", Err(BadLine::TooLong)),
            (b"1234567890123", Err(BadLine::TooLong)),
        ] {
            assert_eq!(first(input, 10), found, "{:?}", input.escape_ascii().to_string());
        }
    }

    #[test]
    fn endings_are_judged_alike_however_the_body_is_cut() {
        for (body, good) in [
            (&b"a\r\nb\r\n"[..], true),
            (b"a", true),
            (b"\r\n\r\n", true),
            (b"a\nb", false),
            (b"a\rb", false),
            (b"a\r", false),
            (b"\n", false),
            (b"\r\r\n", false),
            (b"a\r\n\n", false),
        ] {
            for cut in 0..=body.len() {
                for second in cut..=body.len() {
                    let mut endings = Endings::default();
                    let pieces = [&body[..cut], &body[cut..second], &body[second..]];
                    let checked = pieces.iter().try_for_each(|piece| endings.check(piece));
                    let checked = checked.and_then(|()| endings.finish());
                    assert_eq!(
                        checked.is_ok(),
                        good,
                        "{:?} at {cut}, {second}",
                        body.escape_ascii().to_string()
                    );
                }
            }
        }
    }
}
