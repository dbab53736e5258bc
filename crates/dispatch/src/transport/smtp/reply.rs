//! The reply parser: line by line, bounded, and strict where looseness would desynchronise a pipeline.
//!
//! A reply is `CODE-text` lines and a last `CODE text` or bare `CODE`, all with one code between 200 and 599
//! (RFC 5321 4.2.1). A bare LF is accepted as a line end. A code that changes, other characters after the
//! digits, and a reply beyond the bounds are errors.

use bytes::{Buf, BytesMut};
use postway_domain::failure::EnhancedCode;
use thiserror::Error;

use crate::transport::RelayReply;

/// The most bytes one reply may have.
pub(super) const REPLY_BYTES_MAX: usize = 64 * 1024;
/// The most lines one reply may have.
const REPLY_LINES_MAX: usize = 128;
/// How much of a bad line an error shows.
const SHOWN_BYTES_MAX: usize = 80;

/// Why the input is not a reply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ReplySyntaxError {
    #[error("the reply is longer than {REPLY_BYTES_MAX} bytes")]
    TooLong,
    #[error("the reply has more than {REPLY_LINES_MAX} lines")]
    TooManyLines,
    #[error("the reply {0:?} does not start with a code from 200 to 599 and a space or hyphen")]
    Malformed(String),
    #[error("the reply changes its code from {0} to {1}")]
    CodeChanged(u16, u16),
}

/// The state of one reply being read.
#[derive(Debug, Default)]
pub(super) struct ReplyParser {
    code: u16,
    enhanced: Option<EnhancedCode>,
    text: String,
    lines: usize,
    bytes: usize,
    /// How much of the input was already searched for a line end.
    searched: usize,
}

impl ReplyParser {
    /// Takes complete lines from `input` until the reply is complete; `None` asks for more input. Bytes after
    /// the reply stay in `input`.
    pub(super) fn advance(&mut self, input: &mut BytesMut) -> Result<Option<RelayReply>, ReplySyntaxError> {
        loop {
            let Some(end) = input[self.searched..].iter().position(|&b| b == b'\n') else {
                self.searched = input.len();
                if self.bytes + input.len() > REPLY_BYTES_MAX {
                    return Err(ReplySyntaxError::TooLong);
                }
                return Ok(None);
            };
            let length = self.searched + end + 1;
            self.searched = 0;
            self.bytes += length;
            if self.bytes > REPLY_BYTES_MAX {
                return Err(ReplySyntaxError::TooLong);
            }
            let line = &input[..length - 1];
            let last = self.take_line(line.strip_suffix(b"\r").unwrap_or(line));
            input.advance(length);
            if last? {
                return Ok(Some(RelayReply {
                    code: self.code,
                    enhanced: self.enhanced,
                    text: std::mem::take(&mut self.text),
                }));
            }
        }
    }

    /// Adds one line. Returns whether it was the last.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, ReplySyntaxError> {
        let malformed = || {
            ReplySyntaxError::Malformed(
                String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES_MAX)]).into_owned(),
            )
        };
        let [a @ b'2'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] = line else {
            return Err(malformed());
        };
        let code = [a, b, c].into_iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        let (last, text) = match rest {
            [] => (true, rest),
            [b' ', text @ ..] => (true, text),
            [b'-', text @ ..] => (false, text),
            _ => return Err(malformed()),
        };
        let text = String::from_utf8_lossy(text);
        let (word, after) = text.split_once(' ').unwrap_or((&text, ""));
        // Only a digit can start an enhanced code; this skips most lines of an EHLO reply.
        let enhanced: Option<EnhancedCode> =
            if word.starts_with(|c: char| c.is_ascii_digit()) { word.parse().ok() } else { None };
        if self.lines == 0 {
            self.code = code;
            self.enhanced = enhanced;
        } else {
            if self.code != code {
                return Err(ReplySyntaxError::CodeChanged(self.code, code));
            }
            self.text.push('\n');
        }
        self.text.push_str(if enhanced.is_some() && enhanced == self.enhanced { after } else { &text });
        self.lines += 1;
        if self.lines > REPLY_LINES_MAX {
            return Err(ReplySyntaxError::TooManyLines);
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &str) -> Result<Option<RelayReply>, ReplySyntaxError> {
        ReplyParser::default().advance(&mut BytesMut::from(input))
    }

    #[test]
    fn one_line_and_many_lines_are_read() {
        let reply = parse("250 2.1.0 Ok\r\n").unwrap().unwrap();
        assert_eq!(
            (reply.code, reply.enhanced, reply.text.as_str()),
            (250, Some(EnhancedCode(2, 1, 0)), "Ok")
        );
        let reply = parse("550-5.7.1 First\r\n550-5.7.1 second\r\n550 5.7.1 third\r\n").unwrap().unwrap();
        assert_eq!(reply.text, "First\nsecond\nthird");
        let reply = parse("250-mx.example.org\r\n250-SIZE 1000\r\n250 HELP\r\n").unwrap().unwrap();
        assert_eq!((reply.enhanced, reply.text.as_str()), (None, "mx.example.org\nSIZE 1000\nHELP"));
        assert_eq!(parse("354\r\n").unwrap().unwrap().text, "");
        assert_eq!(parse("250 ok\n").unwrap().unwrap().text, "ok");
        assert_eq!(parse("250 5.1\r\n").unwrap().unwrap().text, "5.1");
    }

    #[test]
    fn a_reply_in_single_bytes_is_the_same_and_what_follows_stays() {
        let mut input = BytesMut::new();
        let mut parser = ReplyParser::default();
        for byte in b"250-a\r\n250 b\r" {
            input.extend_from_slice(&[*byte]);
            assert_eq!(parser.advance(&mut input), Ok(None));
        }
        input.extend_from_slice(b"\n354 go");
        assert_eq!(parser.advance(&mut input).unwrap().unwrap().text, "a\nb");
        assert_eq!(&input[..], b"354 go");
    }

    #[test]
    fn garbage_is_refused() {
        for garbage in
            ["\r\n", "hello\r\n", "25\r\n", "250ok\r\n", "150 ok\r\n", "600 ok\r\n", "99 \r\n", "\0\0\0\0\n"]
        {
            assert!(matches!(parse(garbage), Err(ReplySyntaxError::Malformed(_))), "{garbage:?}");
        }
        assert_eq!(parse("250-a\r\n550 b\r\n"), Err(ReplySyntaxError::CodeChanged(250, 550)));
    }

    #[test]
    fn endless_replies_are_bounded() {
        assert_eq!(parse(&"2".repeat(REPLY_BYTES_MAX + 1)), Err(ReplySyntaxError::TooLong));
        assert_eq!(
            parse(&format!("250 {}\r\n", "x".repeat(REPLY_BYTES_MAX))),
            Err(ReplySyntaxError::TooLong)
        );
        assert_eq!(parse(&"250-x\r\n".repeat(REPLY_LINES_MAX + 1)), Err(ReplySyntaxError::TooManyLines));
    }
}
