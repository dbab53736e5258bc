//! Reads the mail after DATA: lines until one that is a single dot; other leading dots are removed (RFC 5321,
//! 4.5.2).
//!
//! Only CR LF . CR LF ends a mail. A bare LF inside it becomes CR LF, as in Postfix since 3.9: programs send
//! files unchanged, and admitted clients may do so. A line that a laxer reader could mistake for the end, a
//! single dot that begins or ends with a bare LF, ends the session: so a reader with other rules either
//! agrees with us about where each mail ends, or nothing was accepted. A bare CR is refused.
//!
//! The reader takes the input in one pass and copies runs of lines. A CR or a dot at the end of the input
//! cannot be decided yet and stays there, so that the pieces in which a mail arrives make no difference.

use bytes::{Buf, BytesMut};
use memchr::memchr2;

use super::{
    body::IncomingMail,
    line::{BadLine, CR_LF},
};

/// How far the input was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DataProgress {
    /// The input is used up; the mail continues.
    More,
    /// The final dot was read; the input after it is untouched.
    End,
    /// The mail has an invalid line ending.
    Bad(BadLine),
}

/// The position of the reader in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePosition {
    /// At the start of a line, after CR LF or at the start of the mail: a single dot ends the mail.
    AfterCrLf,
    /// At the start of a line, after a bare LF: a single dot here is an attack.
    AfterBareLf,
    /// Inside a line.
    Inside,
}

/// Reads one mail.
#[derive(Debug)]
pub(super) struct DataReader {
    position: LinePosition,
}

impl DataReader {
    pub(super) fn new() -> Self {
        Self { position: LinePosition::AfterCrLf }
    }

    /// Moves the input into the mail.
    pub(super) fn advance(&mut self, input: &mut BytesMut, body: &mut IncomingMail) -> DataProgress {
        let bytes = &input[..];
        // The input before `at` is read; the part from `run` on is not copied yet.
        let (mut at, mut run) = (0, 0);
        let received = loop {
            if self.position != LinePosition::Inside {
                match (&bytes[at..], self.position) {
                    ([] | [b'.'] | [b'.', b'\r'], _) => break DataProgress::More,
                    ([b'.', b'\r', b'\n', ..], LinePosition::AfterCrLf) => {
                        body.push(&bytes[run..at]);
                        at += 3;
                        run = at;
                        break DataProgress::End;
                    }
                    ([b'.', b'\r', b'\n', ..] | [b'.', b'\n', ..], _) => {
                        break DataProgress::Bad(BadLine::BareLf);
                    }
                    ([b'.', b'\r', ..], _) => break DataProgress::Bad(BadLine::BareCr),
                    ([b'.', ..], _) => {
                        body.push(&bytes[run..at]);
                        at += 1;
                        run = at;
                    }
                    _ => {}
                }
                self.position = LinePosition::Inside;
            }
            let Some(length) = memchr2(b'\r', b'\n', &bytes[at..]) else {
                at = bytes.len();
                break DataProgress::More;
            };
            at += length;
            match &bytes[at..] {
                [b'\r', b'\n', ..] => {
                    at += 2;
                    self.position = LinePosition::AfterCrLf;
                }
                [b'\r'] => break DataProgress::More,
                [b'\r', ..] => break DataProgress::Bad(BadLine::BareCr),
                _ => {
                    body.push(&bytes[run..at]);
                    body.push(CR_LF);
                    at += 1;
                    run = at;
                    self.position = LinePosition::AfterBareLf;
                }
            }
        };
        body.push(&bytes[run..at]);
        input.advance(at);
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::memory_budget::MailMemoryBudget;

    /// Reads a stream in these pieces: the progress, the mail, and the rest of the input.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (DataProgress, Vec<u8>, Vec<u8>) {
        let mut body = IncomingMail::new(1024, &MailMemoryBudget::new(1024 * 1024));
        let (mut reader, mut input) = (DataReader::new(), BytesMut::new());
        let mut received = DataProgress::More;
        for piece in pieces {
            input.extend_from_slice(piece);
            if received == DataProgress::More {
                received = reader.advance(&mut input, &mut body);
            }
        }
        (received, body.into_parts().0.to_vec(), input.to_vec())
    }

    #[test]
    fn a_mail_ends_at_its_dot_and_nowhere_else() {
        for (stream, body, rest) in [
            (&b"a\r\nb\r\n.\r\n"[..], &b"a\r\nb\r\n"[..], &b""[..]),
            (b".\r\nQUIT\r\n", b"", b"QUIT\r\n"),
            (b"..\r\n...\r\n.x\r\n.\r\n", b".\r\n..\r\nx\r\n", b""),
            (b"a.\r\n.\r\n", b"a.\r\n", b""),
            (b"\r\n\r\n.\r\n.\r\n", b"\r\n\r\n", b".\r\n"),
            (b".a\r\n. \r\n.\r\n", b"a\r\n \r\n", b""),
            // A bare LF ends a line of the mail, but never the mail.
            (b"a\nb\n\r\n.\r\nNOOP\r\n", b"a\r\nb\r\n\r\n", b"NOOP\r\n"),
            (b"\n\n\r\n.\r\n", b"\r\n\r\n\r\n", b""),
            (b"a\n..\n.x\n\r\n.\r\n", b"a\r\n.\r\nx\r\n\r\n", b""),
            (b"a\r\n..\n\r\n.\r\n", b"a\r\n.\r\n\r\n", b""),
            (b"a\n. \r\n.\r\n", b"a\r\n \r\n", b""),
        ] {
            for cut in 0..=stream.len() {
                let (received, found, left) = read([&stream[..cut], &stream[cut..]]);
                let shown = stream.escape_ascii();
                assert_eq!(
                    (received, &found[..], &left[..]),
                    (DataProgress::End, body, rest),
                    "{shown} at {cut}"
                );
            }
            let bytewise = read(stream.chunks(1));
            assert_eq!((bytewise.0, &bytewise.1[..]), (DataProgress::End, body));
        }
    }

    /// Where readers with other rules would end the mail: at a dot between any two of these line endings.
    fn ends_of_laxer_readers(stream: &[u8]) -> Vec<usize> {
        let endings: [&[u8]; 3] = [b"\r\n", b"\n", b"\r"];
        let mut ends = Vec::new();
        for at in (0..stream.len()).filter(|at| stream[*at] == b'.') {
            let starts = at == 0 || endings.iter().any(|ending| stream[..at].ends_with(ending));
            if starts && endings.iter().any(|ending| stream[at + 1..].starts_with(ending)) {
                ends.push(at);
            }
        }
        ends
    }

    /// Why a bare LF may be accepted: over all short streams of the relevant characters, no reader with laxer
    /// rules ends a mail before we do. An accepted mail has no other possible end in it, and contains only CR
    /// LF.
    #[test]
    fn no_reader_by_laxer_rules_ends_a_mail_that_was_taken_any_earlier() {
        const LETTERS: &[u8] = b"a.\r\n";
        const LENGTH_MAX: u32 = 8;
        let mut taken = 0;
        for length in 0..=LENGTH_MAX {
            for number in 0..LETTERS.len().pow(length) {
                let mut rest = number;
                let mut stream: Vec<u8> = (0..length)
                    .map(|_| {
                        let letter = LETTERS[rest % LETTERS.len()];
                        rest /= LETTERS.len();
                        letter
                    })
                    .collect();
                stream.extend_from_slice(b"\r\n.\r\n");
                let (received, body, left) = read([&stream[..]]);
                if received != DataProgress::End {
                    continue;
                }
                taken += 1;
                let end = stream.len() - left.len();
                let shown = stream.escape_ascii();
                assert!(stream[..end].ends_with(b".\r\n"), "{shown}");
                assert_eq!(ends_of_laxer_readers(&stream[..end]), [end - 3], "{shown}");
                let bare = body.split(|byte| *byte == b'\n').rev().skip(1).any(|line| !line.ends_with(b"\r"));
                assert!(
                    !bare
                        && body.iter().filter(|byte| **byte == b'\r').count()
                            == body.iter().filter(|byte| **byte == b'\n').count(),
                    "{shown}"
                );
            }
        }
        assert!(taken > 1_000, "{taken}");
    }

    #[test]
    fn whatever_else_looks_like_an_end_is_refused() {
        let tricks: [&[u8]; 16] = [
            b"\n.\n",
            b"\n.\r\n",
            b"\r.\r",
            b"\r.\r\n",
            b"\r\n.\n",
            b"\r\n.\r",
            b"\r\n.\r\r\n",
            b"\r\r\n.\r\n",
            b"\r\n\n.\r\n",
            b"\n\n.\r\n",
            b"\n\n.\n",
            b"\n\r\n.\n",
            b"\n.\r\r\n",
            b"\n.\r",
            b"\n..\n.\n",
            b"\n\r.\r\n",
        ];
        for trick in tricks {
            let stream = [b"a", trick, b"MAIL FROM:<x@example.com>\r\n"].concat();
            for cut in 0..=stream.len() {
                let (received, ..) = read([&stream[..cut], &stream[cut..]]);
                assert!(
                    matches!(received, DataProgress::Bad(_)),
                    "{} at {cut}: {received:?}",
                    stream.escape_ascii()
                );
            }
        }
    }
}
