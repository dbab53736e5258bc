//! Reads and writes octets, within bounds.
//!
//! A response is read as its line, with the literals taken out and stored beside it. The line and its
//! literals together stay below a limit, except for the literal that is the text of a mail, for which the
//! caller sets the limit. Memory is not reserved because the server announced a length. The caller sets
//! deadlines; a read that is cancelled leaves the session out of step.

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::error::ImapFault;

/// How much is read at once, and the least growth of a mail's buffer.
const READ_BYTES: usize = 32 * 1024;
/// The longest response, with its literals but without a mail's text.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// The most octets of a mail's text that are read only to be dropped, so that the session can go on.
pub(super) const SKIP_BYTES_MAX: u64 = 32 << 20;

/// A connection, with the input that was read and not used yet.
#[derive(Debug)]
pub(super) struct ImapOctetStream<S> {
    stream: S,
    input: BytesMut,
}

/// A response, as received.
#[derive(Debug, Default)]
pub(super) struct RawResponse {
    /// The line, without the octets of its literals.
    pub(super) line: Vec<u8>,
    /// The contents of the literals, in order; empty for the mail's text.
    pub(super) literals: Vec<Vec<u8>>,
    /// The text of a mail.
    pub(super) text: Option<RawMailText>,
    /// The text was too long to be skipped: the response ends here, and so does the session.
    pub(super) is_cut: bool,
}

/// The text of a mail, or its length if that exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RawMailText {
    Whole(Vec<u8>),
    TooLong(u64),
}

impl<S: AsyncRead + AsyncWrite + Unpin> ImapOctetStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, input: BytesMut::new() }
    }

    /// Whether there is input that was not read yet.
    pub(super) fn has_unread(&self) -> bool {
        !self.input.is_empty()
    }

    /// Returns the stream.
    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Writes and flushes.
    pub(super) async fn write(&mut self, octets: &[u8]) -> Result<(), ImapFault> {
        self.stream.write_all(octets).await.map_err(ImapFault::Io)?;
        self.stream.flush().await.map_err(ImapFault::Io)
    }

    /// Shuts the stream down.
    pub(super) async fn shutdown(&mut self) -> Result<(), ImapFault> {
        self.stream.shutdown().await.map_err(ImapFault::Io)
    }

    /// Waits until there is something to read. May be cancelled without harm.
    pub(super) async fn ready(&mut self) -> Result<(), ImapFault> {
        if self.input.is_empty() { self.fill().await } else { Ok(()) }
    }

    /// Reads one response. A mail's text may have `text_bytes_max` octets; with `None`, no text is expected.
    pub(super) async fn response(&mut self, text_bytes_max: Option<usize>) -> Result<RawResponse, ImapFault> {
        let mut raw = RawResponse::default();
        let mut room = RESPONSE_BYTES_MAX;
        loop {
            let start = raw.line.len();
            self.line(&mut raw.line, room).await?;
            room = room.saturating_sub(raw.line.len() - start);
            let Some(length) = announced(&raw.line, start) else {
                return Ok(raw);
            };
            let Some(max) = text_bytes_max.filter(|_| is_text(&raw.line)) else {
                let length = usize::try_from(length).ok().filter(|length| *length <= room).ok_or(TOO_LONG)?;
                room -= length;
                let mut literal = Vec::new();
                self.octets(length, &mut literal).await?;
                raw.literals.push(literal);
                continue;
            };
            if raw.text.is_some() {
                return Err(ImapFault::Garbled("one response with two mails"));
            }
            // A placeholder, so that later literals keep their order.
            raw.literals.push(Vec::new());
            match usize::try_from(length).ok().filter(|length| *length <= max) {
                Some(length) => {
                    let mut text = Vec::new();
                    self.octets(length, &mut text).await?;
                    raw.text = Some(RawMailText::Whole(text));
                }
                None => {
                    raw.text = Some(RawMailText::TooLong(length));
                    if length > SKIP_BYTES_MAX {
                        raw.is_cut = true;
                        return Ok(raw);
                    }
                    self.skip(length).await?;
                }
            }
        }
    }

    /// Appends a line of at most `max` octets, without its end, to `line`.
    async fn line(&mut self, line: &mut Vec<u8>, max: usize) -> Result<(), ImapFault> {
        let mut searched = 0;
        let end = loop {
            if let Some(at) = self.input[searched..].iter().position(|&b| b == b'\n') {
                break searched + at;
            }
            searched = self.input.len();
            if searched > max {
                return Err(TOO_LONG);
            }
            self.fill().await?;
        };
        if end > max {
            return Err(TOO_LONG);
        }
        let found = &self.input[..end];
        line.extend_from_slice(found.strip_suffix(b"\r").unwrap_or(found));
        self.input.advance(end + 1);
        Ok(())
    }

    /// Appends exactly `count` octets to `into`.
    async fn octets(&mut self, count: usize, into: &mut Vec<u8>) -> Result<(), ImapFault> {
        let ready = count.min(self.input.len());
        into.reserve_exact(count.min(READ_BYTES));
        into.extend_from_slice(&self.input[..ready]);
        self.input.advance(ready);
        let mut rest = count - ready;
        while rest > 0 {
            if into.len() == into.capacity() {
                // Doubles what has arrived, but never reserves more than is announced.
                into.reserve_exact(rest.min(into.len().max(READ_BYTES)));
            }
            let read = self.stream.read_buf(&mut (&mut *into).limit(rest)).await.map_err(ImapFault::Io)?;
            if read == 0 {
                return Err(ImapFault::Closed);
            }
            rest -= read;
        }
        Ok(())
    }

    /// Reads and drops `count` octets.
    async fn skip(&mut self, mut count: u64) -> Result<(), ImapFault> {
        loop {
            let ready = usize::try_from(count).unwrap_or(usize::MAX).min(self.input.len());
            self.input.advance(ready);
            count -= ready as u64;
            if count == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    /// Reads some more input.
    async fn fill(&mut self) -> Result<(), ImapFault> {
        self.input.reserve(READ_BYTES);
        match self.stream.read_buf(&mut (&mut self.input).limit(READ_BYTES)).await {
            Ok(0) => Err(ImapFault::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(ImapFault::Io(error)),
        }
    }
}

const TOO_LONG: ImapFault = ImapFault::TooMuch { what: "a response", max: RESPONSE_BYTES_MAX as u64 };

/// The length of the literal that a line announces at its end, in the part that begins at `start`. Only data
/// responses have literals: the others end in text for people, which may look like one.
fn announced(line: &[u8], start: usize) -> Option<u64> {
    let data = line.strip_prefix(b"* ")?;
    let word = data.split(|&b| b == b' ').next()?;
    if [&b"OK"[..], b"NO", b"BAD", b"BYE", b"PREAUTH"].iter().any(|name| word.eq_ignore_ascii_case(name)) {
        return None;
    }
    let open = line[start..].strip_suffix(b"}")?;
    let digits = &open[open.iter().rposition(|&b| b == b'{')? + 1..];
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // A number too large for the type is treated as the largest.
    Some(std::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX))
}

/// Whether the literal at a line's end is the text of a mail.
fn is_text(line: &[u8]) -> bool {
    let name = line.rsplitn(2, |&b| b == b' ').nth(1).unwrap_or_default();
    let name = name.rsplit(|&b| b == b' ' || b == b'(').next().unwrap_or_default();
    name.eq_ignore_ascii_case(b"BODY[]")
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        pin::Pin,
        task::{Context, Poll},
    };

    use tokio::io::ReadBuf;

    use super::*;

    /// Sends `head`, then repeats `again` for ever, and counts what was read.
    struct FloodingStream {
        head: &'static [u8],
        again: &'static [u8],
        taken: usize,
    }

    impl AsyncRead for FloodingStream {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let flood = self.get_mut();
            let part = if flood.head.is_empty() { flood.again } else { flood.head };
            let count = part.len().min(buf.remaining());
            buf.put_slice(&part[..count]);
            flood.head = flood.head.get(count..).unwrap_or_default();
            flood.taken += count;
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for FloodingStream {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn flood(head: &'static [u8], again: &'static [u8]) -> ImapOctetStream<FloodingStream> {
        ImapOctetStream::new(FloodingStream { head, again, taken: 0 })
    }

    async fn read(text: &'static [u8], text_bytes_max: Option<usize>) -> RawResponse {
        flood(text, b"").response(text_bytes_max).await.unwrap()
    }

    #[tokio::test]
    async fn an_endless_response_is_given_up_after_the_bound() {
        for (head, again) in [
            (&b"* OK "[..], &b"xxxxxxxxxxxxxxxx"[..]),
            (b"", b"xxxx"),
            (b"* LIST ", b"{1}\r\nx "),
            (b"* LIST (", b"{0}\r\n"),
            (b"* LIST ", b"{40000}\r\n{40000}\r\n"),
            (b"* 1 FETCH (BODY[] {9999999999}\r\n", b"xxxxxxxxxxxxxxxx"),
            (b"* 1 FETCH (ENVELOPE {99999999999999999999999}\r\n", b"xxxxxxxxxxxxxxxx"),
        ] {
            let mut wire = flood(head, again);
            let fault = wire.response(None).await.unwrap_err();
            assert!(
                matches!(fault, ImapFault::TooMuch { max, .. } if max == RESPONSE_BYTES_MAX as u64),
                "{fault}"
            );
            assert!(wire.stream.taken <= RESPONSE_BYTES_MAX + 2 * READ_BYTES, "{}", wire.stream.taken);
            assert!(wire.input.capacity() <= 4 * RESPONSE_BYTES_MAX, "{}", wire.input.capacity());
        }
    }

    #[tokio::test]
    async fn a_mail_beyond_the_skip_is_told_before_any_of_it_is_read() {
        let mut wire = flood(b"* 1 FETCH (UID 7 BODY[] {9999999999}\r\n", b"xxxxxxxxxxxxxxxx");
        let raw = wire.response(Some(1000)).await.unwrap();
        assert_eq!(raw.text, Some(RawMailText::TooLong(9_999_999_999)));
        assert!(raw.is_cut);
        assert!(wire.stream.taken <= READ_BYTES, "{}", wire.stream.taken);
    }

    #[tokio::test]
    async fn a_mail_over_the_limit_is_passed_over_without_being_kept() {
        let again = b")\r\n".repeat(READ_BYTES).leak();
        let mut wire = flood(b"* 1 FETCH (UID 7 BODY[] {33554432}\r\n", again);
        let raw = wire.response(Some(1000)).await.unwrap();
        assert_eq!((raw.text, raw.is_cut), (Some(RawMailText::TooLong(SKIP_BYTES_MAX)), false));
        assert!(wire.stream.taken as u64 > SKIP_BYTES_MAX);
        assert!(wire.input.capacity() <= 4 * READ_BYTES, "{}", wire.input.capacity());
    }

    #[tokio::test]
    async fn a_mail_takes_no_more_room_than_has_come() {
        // Of the twenty-five million octets announced, a hundred thousand arrive.
        let mut text = Vec::new();
        let fault = flood(&[b'x'; 100_000], b"").octets(25_000_000, &mut text).await.unwrap_err();
        assert!(matches!(fault, ImapFault::Closed), "{fault}");
        assert_eq!(text.len(), 100_000);
        assert!(text.capacity() <= 2 * text.len() + READ_BYTES, "{} for {}", text.capacity(), text.len());
        let mut text = Vec::new();
        flood(b"", b"xxxxxxxxxx").octets(2_000, &mut text).await.unwrap();
        assert_eq!((text.len(), text.capacity()), (2_000, 2_000));
    }

    #[tokio::test]
    async fn literals_are_taken_out_and_words_for_people_have_none() {
        let raw = read(b"* 3 FETCH (BODY[] {5}\r\nab\r\nc UID 7 X {2}\r\n{3)\r\n", Some(10)).await;
        assert_eq!(raw.line, b"* 3 FETCH (BODY[] {5} UID 7 X {2})");
        assert_eq!(raw.text, Some(RawMailText::Whole(b"ab\r\nc".to_vec())));
        assert_eq!(raw.literals, [&b""[..], b"{3"]);
        for line in ["* OK smile {5}", "* BYE {5}", "A1 NO {5}", "+ {5}", "* X {}", "* X {a}", "* X {-1}"] {
            let text: &'static [u8] = format!("{line}\r\n").leak().as_bytes();
            assert_eq!(read(text, None).await.line, line.as_bytes());
        }
        // A literal may be the last part of a response.
        let raw = read(b"* LIST () \"/\" {5}\r\nINBOX\r\n", None).await;
        assert_eq!(
            (raw.line.as_slice(), raw.literals),
            (&b"* LIST () \"/\" {5}"[..], vec![b"INBOX".to_vec()])
        );
        // Line ends without CR are accepted.
        assert_eq!(read(b"* OK\n", None).await.line, b"* OK");
    }

    #[test]
    fn only_the_whole_text_counts_as_a_mail() {
        for line in ["* 1 FETCH (BODY[] {5}", "* 1 FETCH (UID 7 body[] {5}"] {
            assert!(is_text(line.as_bytes()), "{line}");
        }
        for line in
            ["* 1 FETCH (BODY[HEADER] {5}", "* 1 FETCH (ENVELOPE (BODY[]x {5}", "BODY[]", "* LIST {5}"]
        {
            assert!(!is_text(line.as_bytes()), "{line}");
        }
    }
}
