//! A second implementation of a session, written for clarity: it reads the client's stream together with the
//! server's replies.
//!
//! It does not predict the server's answers. It says what an answer means: where the next command begins,
//! which bytes are a mail, and that every command has one reply. If the code under test disagrees, a mail can
//! be smuggled past it.

/// The longest command line, and the longest line of a login, with their endings.
const LINE_OCTETS_MAX: usize = 2_048;
const LOGIN_LINE_OCTETS_MAX: usize = 12_288;
/// The most lines and bytes of a relay's reply.
const REPLY_LINES_MAX: usize = 128;
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// The result of a session.
pub struct HeardSession<'a> {
    /// All that the server said.
    pub output: &'a [u8],
    /// The mails that it took.
    pub mails: Vec<&'a [u8]>,
    /// Whether it hung up.
    pub is_over: bool,
}

/// Why the stream cannot be read on.
enum ReadHalt {
    /// More has to come first.
    Unfinished,
    /// Here is something that no reader may go on after.
    Bad,
}

struct ClientStream {
    bytes: Vec<u8>,
    /// Where each piece ends.
    ends: Vec<usize>,
    at: usize,
}

impl ClientStream {
    fn of(pieces: &[Vec<u8>]) -> Self {
        let mut ends = Vec::with_capacity(pieces.len());
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(piece);
            ends.push(bytes.len());
        }
        Self { bytes, ends, at: 0 }
    }

    /// A line, without its ending.
    fn line(&mut self, is_login: bool) -> Result<Vec<u8>, ReadHalt> {
        let rest = &self.bytes[self.at..];
        let starts_login = rest.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"AUTH "));
        let limit = if is_login || starts_login { LOGIN_LINE_OCTETS_MAX } else { LINE_OCTETS_MAX };
        match rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            Some(end) if rest[end..].starts_with(b"\r\n") && end + 2 <= limit => {
                let line = rest[..end].to_vec();
                self.at += end + 2;
                Ok(line)
            }
            Some(end) if rest[end..] == *b"\r" && rest.len() < limit => Err(ReadHalt::Unfinished),
            None if rest.len() < limit => Err(ReadHalt::Unfinished),
            Some(_) | None => Err(ReadHalt::Bad),
        }
    }

    /// Forgets what came in the same read as what was read last.
    fn forget_piece(&mut self) {
        self.at = self.ends.iter().copied().find(|end| *end >= self.at).unwrap_or(self.bytes.len());
    }

    /// The next `count` bytes, if they have arrived.
    fn take(&mut self, count: u64) -> Option<Vec<u8>> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        let taken = self.bytes.get(self.at..end)?.to_vec();
        self.at = end;
        Some(taken)
    }

    /// A mail after DATA, line by line; leading dots are taken off. A line may end with a bare LF; a dot that
    /// is a line must have CR LF on both sides, and is the end.
    fn data(&mut self) -> Result<Vec<u8>, ReadHalt> {
        let mut mail = Vec::new();
        let mut after_cr_lf = true;
        loop {
            let rest = &self.bytes[self.at..];
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                return Err(ReadHalt::Unfinished);
            };
            if rest[end..] == *b"\r" {
                return Err(ReadHalt::Unfinished);
            }
            let ends_with_cr_lf = rest[end..].starts_with(b"\r\n");
            if rest[end] == b'\r' && !ends_with_cr_lf {
                return Err(ReadHalt::Bad);
            }
            let line = &rest[..end];
            if line == b"." && !(after_cr_lf && ends_with_cr_lf) {
                return Err(ReadHalt::Bad);
            }
            self.at += end + if ends_with_cr_lf { 2 } else { 1 };
            if line == b"." {
                return Ok(mail);
            }
            after_cr_lf = ends_with_cr_lf;
            mail.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            mail.extend_from_slice(b"\r\n");
        }
    }
}

/// The codes of all replies; an error where what was said is no reply.
pub fn codes(output: &[u8]) -> Result<Vec<u16>, String> {
    let text = std::str::from_utf8(output).map_err(|_| "the replies are not text".to_owned())?;
    let Some(lines) = text.strip_suffix("\r\n") else { return Err("the last reply has no end".to_owned()) };
    let mut codes = Vec::new();
    for line in lines.split("\r\n") {
        let code = line.get(..3).and_then(|code| code.parse().ok());
        match (code, line.as_bytes().get(3)) {
            (Some(code), Some(b' ')) => codes.push(code),
            (Some(_), Some(b'-')) => {}
            _ => return Err(format!("{line:?} is no reply")),
        }
        if line.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) || line.len() > 510 {
            return Err(format!("{line:?} cannot be said"));
        }
    }
    Ok(codes)
}

/// The size of a chunk and whether it is the last; `None` where the command says neither.
fn chunk_of(line: &[u8]) -> Option<(u64, bool)> {
    // Spaces before the end of a line are common, and mean nothing.
    let text = std::str::from_utf8(line).ok()?.trim_end_matches(' ');
    let (size, rest) = text.get(5..)?.split_once(' ').unwrap_or((text.get(5..)?, ""));
    let is_number = (1..=20).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_digit());
    let last = rest.trim_start_matches(' ');
    match last.is_empty() || last.eq_ignore_ascii_case("LAST") {
        true if is_number => Some((size.parse().ok()?, !last.is_empty())),
        _ => None,
    }
}

/// Walks the session, and says where it went wrong.
pub fn check(pieces: &[Vec<u8>], heard: &HeardSession<'_>) -> Result<(), String> {
    let mut stream = ClientStream::of(pieces);
    let codes = codes(heard.output)?;
    let mut replies = codes.iter().copied();
    let mut mails = heard.mails.iter();
    if replies.next() != Some(220) {
        return Err("there is no greeting".to_owned());
    }
    // As far as the replies tell.
    let (mut admitted, mut in_login, mut has_sender, mut is_secure) = (false, false, false, false);
    let mut chunks: Option<Vec<u8>> = None;
    let mut spoilt = false;
    let mut take_mail = |expected: &[u8]| match mails.next() {
        Some(mail) if *mail != expected => Err(format!(
            "a mail was taken as \"{}\" that is \"{}\"",
            mail.escape_ascii(),
            expected.escape_ascii()
        )),
        Some(_) => Ok(()),
        None => Err("a mail was acknowledged and not taken".to_owned()),
    };
    loop {
        // Nothing is read after the end.
        let left: Vec<u16> = replies.clone().collect();
        if heard.is_over && (left.is_empty() || left == [421]) {
            break;
        }
        let line = match stream.line(in_login) {
            Ok(line) => line,
            Err(ReadHalt::Unfinished) if left.is_empty() && !heard.is_over => break,
            Err(ReadHalt::Unfinished) => return Err(format!("{left:?} answer what was not said")),
            Err(ReadHalt::Bad) if heard.is_over && matches!(left[..], [500 | 554]) => break,
            Err(ReadHalt::Bad) => return Err(format!("a bad line was followed by {left:?}")),
        };
        let verb = line.split(|byte| *byte == b' ').next().unwrap_or_default().to_ascii_uppercase();
        let no_reply = || format!("\"{}\" has no reply", line[..line.len().min(60)].escape_ascii());
        let was_login = std::mem::take(&mut in_login);
        if verb == b"BDAT" && !was_login && !line.contains(&0) {
            let Some((size, last)) = chunk_of(&line) else {
                match (replies.next(), replies.next()) {
                    (Some(501), None) if heard.is_over => break,
                    other => return Err(format!("a chunk of no size was answered with {other:?}")),
                }
            };
            let Some(chunk) = stream.take(size) else {
                match replies.next() {
                    None if !heard.is_over => break,
                    other => return Err(format!("half a chunk was answered with {other:?}")),
                }
            };
            match replies.next().ok_or_else(no_reply)? {
                250 if spoilt => return Err("a mail went on after a chunk of it was refused".to_owned()),
                250 if !admitted || !has_sender => return Err("a chunk came before its envelope".to_owned()),
                250 => {
                    let mut whole = chunks.take().unwrap_or_default();
                    whole.extend_from_slice(&chunk);
                    if last {
                        take_mail(&with_cr_lf(&whole))?;
                        has_sender = false;
                    } else {
                        chunks = Some(whole);
                    }
                }
                _ => {
                    chunks = None;
                    spoilt = !last && has_sender;
                    has_sender &= !last;
                }
            }
            continue;
        }
        let code = replies.next().ok_or_else(no_reply)?;
        in_login = code == 334;
        if was_login || verb == b"AUTH" {
            admitted |= code == 235;
            continue;
        }
        match (verb.as_slice(), code) {
            (b"EHLO" | b"HELO" | b"RSET", 250) => (has_sender, chunks, spoilt) = (false, None, false),
            (b"STARTTLS", 220) if is_secure => return Err("TLS began twice".to_owned()),
            (b"STARTTLS", 220) => {
                stream.forget_piece();
                (admitted, has_sender, chunks, spoilt, is_secure) = (false, false, None, false, true);
            }
            (b"MAIL", 250) if !admitted => return Err("MAIL was taken before a key".to_owned()),
            (b"MAIL", 250) => has_sender = true,
            (b"RCPT", 250) if !has_sender => return Err("RCPT was taken before MAIL".to_owned()),
            (b"DATA", 354) if !admitted || !has_sender || chunks.is_some() => {
                return Err("DATA was taken before its envelope".to_owned());
            }
            (b"DATA", 354) => match stream.data() {
                Ok(mail) => {
                    if replies.next().ok_or_else(no_reply)? == 250 {
                        take_mail(&mail)?;
                    }
                    has_sender = false;
                }
                Err(ReadHalt::Bad) => match (replies.next(), replies.next()) {
                    (Some(554), None) if heard.is_over => break,
                    other => return Err(format!("a bare CR or LF in a mail was answered with {other:?}")),
                },
                Err(ReadHalt::Unfinished) => match replies.next() {
                    None if !heard.is_over => break,
                    other => return Err(format!("half a mail was answered with {other:?}")),
                },
            },
            _ => {}
        }
    }
    if mails.next().is_some() {
        return Err("a mail was taken that nobody sent".to_owned());
    }
    match heard.mails.iter().any(|mail| has_bare_ending(mail)) {
        true => Err("a mail was taken with a bare CR or LF in it".to_owned()),
        false => Ok(()),
    }
}

/// The same with CR LF for each bare LF.
fn with_cr_lf(mail: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(mail.len());
    for &byte in mail {
        if byte == b'\n' && written.last() != Some(&b'\r') {
            written.push(b'\r');
        }
        written.push(byte);
    }
    written
}

fn has_bare_ending(mail: &[u8]) -> bool {
    let before = |at: usize| at.checked_sub(1).map(|before| mail[before]);
    let is_bare = |(at, byte): (usize, &u8)| match byte {
        b'\n' => before(at) != Some(b'\r'),
        b'\r' => mail.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    mail.iter().enumerate().any(is_bare)
}

/// The codes of the well-formed replies that these bytes begin with.
pub fn reply_codes(bytes: &[u8]) -> Vec<u16> {
    let mut codes = Vec::new();
    let mut rest = bytes;
    while let Some((code, length)) = first_reply(rest) {
        codes.push(code);
        rest = &rest[length..];
    }
    codes
}

/// The code and the length of the reply that these bytes begin with.
fn first_reply(bytes: &[u8]) -> Option<(u16, usize)> {
    let mut first = None;
    let mut at = 0;
    for _ in 0..REPLY_LINES_MAX {
        let length = bytes[at..].iter().position(|byte| *byte == b'\n')?;
        let line = &bytes[at..at + length];
        at += length + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let digits = line.get(..3)?;
        if !digits.iter().all(u8::is_ascii_digit) || !(b'2'..=b'5').contains(&digits[0]) {
            return None;
        }
        let code: u16 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        if *first.get_or_insert(code) != code || at > REPLY_BYTES_MAX {
            return None;
        }
        match line.get(3) {
            None | Some(b' ') => return Some((code, at)),
            Some(b'-') => {}
            Some(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: &str =
        "EHLO a\r\nAUTH PLAIN AHNob3AAZ29vZA==\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\n";
    const WELCOMED: &str = "220 x\r\n250-x\r\n250 y\r\n235 x\r\n250 x\r\n250 x\r\n";

    fn judged(pieces: &[&str], output: &str, mails: &[&str], is_over: bool) -> Result<(), String> {
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        let mails = mails.iter().map(|mail| mail.as_bytes()).collect();
        check(&pieces, &HeardSession { output: output.as_bytes(), mails, is_over })
    }

    fn mailed(said: &str, answered: &str, mails: &[&str], is_over: bool) -> Result<(), String> {
        judged(&[&format!("{OPENED}{said}")], &format!("{WELCOMED}{answered}"), mails, is_over)
    }

    #[test]
    fn sound_sessions_pass() {
        mailed("DATA\r\n..x\r\n.\r\nQUIT\r\n", "354 x\r\n250 x\r\n221 x\r\n", &[".x\r\n"], true).unwrap();
        mailed("BDAT 2\r\na\rBDAT 1 LAST\r\n\n", "250 x\r\n250 x\r\n", &["a\r\n"], false).unwrap();
        mailed("DATA\r\na\n.\r\n", "354 x\r\n554 x\r\n", &[], true).unwrap();
        mailed("DATA\r\na\r\n.\n", "354 x\r\n554 x\r\n", &[], true).unwrap();
        mailed("DATA\r\na\n\r\n.\r\n", "354 x\r\n250 x\r\n", &["a\r\n\r\n"], false).unwrap();
        mailed("BDAT 2\r\na\nBDAT 1 LAST\r\n\n", "250 x\r\n250 x\r\n", &["a\r\n\r\n"], false).unwrap();
        judged(&["STARTTLS\r\nMAIL FROM:<>\r\n", "NOOP\r\n"], "220 x\r\n220 x\r\n250 x\r\n", &[], false)
            .unwrap();
    }

    #[test]
    fn whatever_is_smuggled_is_found() {
        for (what, found) in [
            ("other bytes", mailed("DATA\r\n..x\r\n.\r\n", "354 x\r\n250 x\r\n", &["..x\r\n"], false)),
            (
                "a bare LF as the end",
                mailed("DATA\r\na\n.\r\nNOOP\r\n", "354 x\r\n250 x\r\n250 x\r\n", &["a\n"], false),
            ),
            (
                "a bare LF before the last dot as the end",
                mailed("DATA\r\na\n.\r\nNOOP\r\n", "354 x\r\n250 x\r\n250 x\r\n", &["a\r\n"], false),
            ),
            (
                "a bare LF behind the last dot as the end",
                mailed("DATA\r\na\r\n.\nNOOP\r\n", "354 x\r\n250 x\r\n250 x\r\n", &["a\r\n"], false),
            ),
            (
                "a bare LF that stays",
                mailed("DATA\r\na\n\r\n.\r\n", "354 x\r\n250 x\r\n", &["a\n\r\n"], false),
            ),
            ("a bare LF that stays in a chunk", mailed("BDAT 1 LAST\r\n\n", "250 x\r\n", &["\n"], false)),
            (
                "a chunk beyond its size",
                mailed("BDAT 1 LAST\r\naNOOP\r\n", "250 x\r\n250 x\r\n", &["aN"], false),
            ),
            ("a bare CR in a chunk", mailed("BDAT 2 LAST\r\n\ra", "250 x\r\n", &["\ra"], false)),
            ("a reply too many", mailed("NOOP\r\n", "250 x\r\n250 x\r\n", &[], false)),
            ("a reply too few", mailed("NOOP\r\nNOOP\r\n", "250 x\r\n", &[], false)),
            ("a mail of nobody", mailed("NOOP\r\n", "250 x\r\n", &["a"], false)),
            (
                "mail without a key",
                judged(&["EHLO a\r\nMAIL FROM:<>\r\n"], "220 x\r\n250 x\r\n250 x\r\n", &[], false),
            ),
            (
                "words from before TLS",
                judged(&["STARTTLS\r\nNOOP\r\n"], "220 x\r\n220 x\r\n250 x\r\n", &[], false),
            ),
        ] {
            assert!(found.is_err(), "{what}");
        }
    }

    #[test]
    fn replies_are_told_apart() {
        assert_eq!(reply_codes(b"250-a\r\n250 b\n354\r\nx"), [250, 354]);
        for none in [&b""[..], b"250 a", b"250-a\r\n550 b\r\n", b"250ok\r\n", b"199 x\r\n", b"25\r\n"] {
            assert!(reply_codes(none).is_empty(), "{}", none.escape_ascii());
        }
    }
}
