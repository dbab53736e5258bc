//! Line endings: CR LF only (RFC 5321, 2.3.8).
//!
//! Servers that also end a command or a mail at a bare LF, or pass one on, disagree about where a mail ends,
//! and what is the mail for one is commands for the next. So in commands a bare CR or LF is an error that
//! ends the session. Inside a mail, whose end does not depend on it, a bare LF becomes CR LF, so that it is
//! never passed on ([`LineNormalizer`] for chunks, `data` after DATA); a bare CR is an error there too.

use memchr::memchr2;

use super::body::IncomingMail;

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadLine {
    /// An LF without a CR before it.
    BareLf,
    /// A CR without an LF after it.
    BareCr,
    /// No end within the limit.
    TooLong,
}

/// The length of the first line without its ending, if it is complete. With its ending it has at most `limit`
/// octets.
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

/// The replacement for a bare LF.
pub(super) const CR_LF: &[u8] = b"\r\n";

/// Gives every line of a mail that arrives in chunks a CR LF ending, however it is split into pieces.
#[derive(Debug, Default)]
pub(super) struct LineNormalizer {
    after_cr: bool,
}

impl LineNormalizer {
    /// Appends the next piece to the mail.
    pub(super) fn push(&mut self, piece: &[u8], body: &mut IncomingMail) -> Result<(), BadLine> {
        // The piece is copied up to `run`, and read up to `at`.
        let (mut at, mut run) = (0, 0);
        if self.after_cr && !piece.is_empty() {
            if piece[0] != b'\n' {
                return Err(BadLine::BareCr);
            }
            self.after_cr = false;
            at = 1;
        }
        while let Some(length) = memchr2(b'\r', b'\n', &piece[at..]) {
            at += length;
            match &piece[at..] {
                [b'\r', b'\n', ..] => at += 2,
                [b'\r'] => {
                    self.after_cr = true;
                    break;
                }
                [b'\r', ..] => return Err(BadLine::BareCr),
                _ => {
                    body.push(&piece[run..at]);
                    body.push(CR_LF);
                    at += 1;
                    run = at;
                }
            }
        }
        body.push(&piece[run..]);
        Ok(())
    }

    /// Checks the state after the last piece.
    pub(super) fn finish(&self) -> Result<(), BadLine> {
        if self.after_cr { Err(BadLine::BareCr) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::memory_budget::MailMemoryBudget;

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
    fn a_body_is_written_alike_however_it_is_cut() {
        for (body, written) in [
            (&b"a\r\nb\r\n"[..], Some(&b"a\r\nb\r\n"[..])),
            (b"a", Some(b"a")),
            (b"\r\n\r\n", Some(b"\r\n\r\n")),
            (b"a\nb", Some(b"a\r\nb")),
            (b"\n", Some(b"\r\n")),
            (b"\n\n.\n", Some(b"\r\n\r\n.\r\n")),
            (b"a\r\n\n", Some(b"a\r\n\r\n")),
            (b"a\n\r\n", Some(b"a\r\n\r\n")),
            (b"a\rb", None),
            (b"a\r", None),
            (b"\r\r\n", None),
            (b"a\n\rb", None),
        ] {
            for cut in 0..=body.len() {
                for second in cut..=body.len() {
                    let mut normalizer = LineNormalizer::default();
                    let mut whole = IncomingMail::new(1024, &MailMemoryBudget::new(1024 * 1024));
                    let pieces = [&body[..cut], &body[cut..second], &body[second..]];
                    let pushed = pieces.iter().try_for_each(|piece| normalizer.push(piece, &mut whole));
                    let pushed = pushed.and_then(|()| normalizer.finish());
                    let found = pushed.ok().map(|()| whole.into_parts().0);
                    let shown = body.escape_ascii();
                    assert_eq!(found.as_deref(), written, "{shown} at {cut}, {second}");
                }
            }
        }
    }
}
