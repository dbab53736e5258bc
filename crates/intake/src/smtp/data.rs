//! The mail after DATA: lines until one that is a dot alone, other leading dots undoubled (RFC 5321, 4.5.2).
//!
//! Reads what is there in one pass and copies runs of lines, not lines. What cannot be judged yet, a CR or a dot at the
//! end of what has come, stays in the input, so that the pieces in which a mail comes make no difference.

use bytes::{Buf, BytesMut};
use memchr::memchr2;

use super::{body::Body, line::BadLine};

/// What became of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// It was read as far as it can be; the mail goes on.
    More,
    /// The dot has come; what follows it is still in the input.
    End,
    /// It is no mail.
    Bad(BadLine),
}

/// Reads one mail.
#[derive(Debug)]
pub(super) struct DataReader {
    at_line_start: bool,
}

impl DataReader {
    pub(super) fn new() -> Self {
        Self { at_line_start: true }
    }

    /// Moves what has come into the body.
    pub(super) fn advance(&mut self, input: &mut BytesMut, body: &mut Body) -> Received {
        let bytes = &input[..];
        // Read up to here; kept from here, and not copied yet.
        let (mut at, mut run) = (0, 0);
        let received = loop {
            if self.at_line_start {
                match &bytes[at..] {
                    [] | [b'.'] | [b'.', b'\r'] => break Received::More,
                    [b'.', b'\r', b'\n', ..] => {
                        body.push(&bytes[run..at]);
                        at += 3;
                        run = at;
                        break Received::End;
                    }
                    [b'.', b'\r', ..] => break Received::Bad(BadLine::BareCr),
                    [b'.', ..] => {
                        body.push(&bytes[run..at]);
                        at += 1;
                        run = at;
                    }
                    _ => {}
                }
                self.at_line_start = false;
            }
            let Some(length) = memchr2(b'\r', b'\n', &bytes[at..]) else {
                at = bytes.len();
                break Received::More;
            };
            at += length;
            match &bytes[at..] {
                [b'\r', b'\n', ..] => {
                    at += 2;
                    self.at_line_start = true;
                }
                [b'\r'] => break Received::More,
                [b'\r', ..] => break Received::Bad(BadLine::BareCr),
                _ => break Received::Bad(BadLine::BareLf),
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
    use crate::smtp::budget::Budget;

    /// Reads a stream that comes in these pieces: what became of it, the body, and what is left.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Received, Vec<u8>, Vec<u8>) {
        let mut body = Body::new(1024, &Budget::new(1024 * 1024));
        let (mut reader, mut input) = (DataReader::new(), BytesMut::new());
        let mut received = Received::More;
        for piece in pieces {
            input.extend_from_slice(piece);
            if received == Received::More {
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
        ] {
            for cut in 0..=stream.len() {
                let (received, found, left) = read([&stream[..cut], &stream[cut..]]);
                let shown = stream.escape_ascii();
                assert_eq!(
                    (received, &found[..], &left[..]),
                    (Received::End, body, rest),
                    "{shown} at {cut}"
                );
            }
            let bytewise = read(stream.chunks(1));
            assert_eq!((bytewise.0, &bytewise.1[..]), (Received::End, body));
        }
    }

    #[test]
    fn whatever_else_looks_like_an_end_is_refused() {
        let tricks: [&[u8]; 12] = [
            b"\n.\n",
            b"\n.\r\n",
            b"\r.\r",
            b"\r.\r\n",
            b"\r\n.\n",
            b"\r\n.\r",
            b"\r\n.\r\r\n",
            b"\r\r\n.\r\n",
            b"\n\r\n.\r\n",
            b"\r\n\n.\r\n",
            b"\r\n.\0\n",
            b"\r\n..\n",
        ];
        for trick in tricks {
            let stream = [b"a", trick, b"MAIL FROM:<x@example.com>\r\n"].concat();
            for cut in 0..=stream.len() {
                let (received, ..) = read([&stream[..cut], &stream[cut..]]);
                assert!(
                    matches!(received, Received::Bad(_)),
                    "{} at {cut}: {received:?}",
                    stream.escape_ascii()
                );
            }
        }
    }
}
