//! The meaning of the responses that the client uses.

use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::Offset,
};

use super::{
    error::{ImapFault, words},
    syntax::{ResponseWord, ResponseWords, number},
    wire::{RawMailText, RawResponse},
};

/// A response.
#[derive(Debug)]
pub(super) enum ImapResponse {
    /// The end of a command.
    Done {
        tag: String,
        state: StatusResponse,
    },
    /// A status response such as `* OK [UIDNEXT 7] …`.
    Status(StatusResponse),
    /// The server waits for more; its text, which a sign-in may decode.
    GoAhead(Vec<u8>),
    Capability(Vec<u8>),
    Exists(u32),
    Expunge,
    Mail(FetchResponse),
    /// UIDNEXT from STATUS.
    UidNext(u32),
    /// Any other response, which the client did not ask for.
    Other,
}

/// A status response: OK, NO, BAD, BYE or PREAUTH.
#[derive(Debug, Clone)]
pub(super) struct StatusResponse {
    pub(super) kind: StatusKind,
    /// The code in brackets, in upper case: `UIDNEXT 7`.
    pub(super) code: String,
    /// The text for people.
    pub(super) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusKind {
    Ok,
    No,
    Bad,
    Bye,
    Preauth,
}

/// The data of one mail in a FETCH response.
#[derive(Debug, Default)]
pub(super) struct FetchResponse {
    /// Its sequence number in the mailbox.
    pub(super) sequence_number: u64,
    pub(super) uid: Option<u32>,
    pub(super) size: Option<u64>,
    pub(super) date: Option<Timestamp>,
    /// Its text; `Missing` if the server sends NIL.
    pub(super) text: Option<FetchedText>,
    /// Its text was too long to be skipped; nothing more can be read from the session.
    pub(super) is_cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FetchedText {
    Whole(Vec<u8>),
    TooLong(u64),
    Missing,
}

impl StatusResponse {
    /// The number in the code with this name.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let digits = self.code.strip_prefix(name)?.strip_prefix(' ')?;
        number(digits.trim().as_bytes()).and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn capabilities(&self) -> Option<&[u8]> {
        self.code.strip_prefix("CAPABILITY ").map(str::as_bytes)
    }

    /// Whether waiting may help: by the codes of RFC 5530, and by the texts of servers that do not use them.
    pub(super) fn is_passing(&self) -> bool {
        let name = self.code.split(' ').next().unwrap_or_default();
        let words = self.words.to_ascii_lowercase();
        matches!(name, "UNAVAILABLE" | "INUSE" | "LIMIT" | "SERVERBUG")
            || ["too many", "unavailable", "temporar", "try again"].iter().any(|hint| words.contains(hint))
    }

    /// The fault that this response means.
    pub(super) fn refused(self, what: &'static str) -> ImapFault {
        match self.kind {
            StatusKind::Bye => ImapFault::Bye(self.words),
            StatusKind::Ok | StatusKind::No | StatusKind::Bad | StatusKind::Preauth => {
                ImapFault::Refused { what, words: self.words }
            }
        }
    }
}

impl ImapResponse {
    pub(super) fn read(raw: RawResponse) -> Result<Self, ImapFault> {
        let line = raw.line.as_slice();
        if line.first() == Some(&b'+') {
            return Ok(Self::GoAhead(line[1..].trim_ascii().to_vec()));
        }
        let (tag, rest) = split_word(line);
        if tag != b"*" {
            let state =
                state(rest).ok_or(ImapFault::Garbled("neither a response nor the end of a command"))?;
            return Ok(Self::Done { tag: String::from_utf8_lossy(tag).into_owned(), state });
        }
        if let Some(state) = state(rest) {
            return Ok(Self::Status(state));
        }
        let (first, after) = split_word(rest);
        if first.eq_ignore_ascii_case(b"CAPABILITY") {
            return Ok(Self::Capability(after.to_vec()));
        }
        if first.eq_ignore_ascii_case(b"STATUS") {
            return Ok(uid_next(ResponseWords::new(after, &raw.literals)).map_or(Self::Other, Self::UidNext));
        }
        let Some(count) = number(first) else {
            return Ok(Self::Other);
        };
        let (kind, after) = split_word(after);
        if kind.eq_ignore_ascii_case(b"EXISTS") {
            let count =
                u32::try_from(count).map_err(|_| ImapFault::Garbled("a mailbox of too many mails"))?;
            Ok(Self::Exists(count))
        } else if kind.eq_ignore_ascii_case(b"EXPUNGE") {
            Ok(Self::Expunge)
        } else if kind.eq_ignore_ascii_case(b"FETCH") {
            let mut mail = mail(ResponseWords::new(after, &raw.literals), raw.is_cut)
                .ok_or(ImapFault::Garbled("a FETCH response that does not parse"))?;
            mail.sequence_number = count;
            mail.is_cut = raw.is_cut;
            match raw.text {
                Some(RawMailText::Whole(text)) => mail.text = Some(FetchedText::Whole(text)),
                Some(RawMailText::TooLong(size)) => mail.text = Some(FetchedText::TooLong(size)),
                None => {}
            }
            Ok(Self::Mail(mail))
        } else {
            Ok(Self::Other)
        }
    }
}

fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|&b| b == b' ').unwrap_or(line.len());
    (&line[..end], line.get(end + 1..).unwrap_or_default())
}

fn state(rest: &[u8]) -> Option<StatusResponse> {
    let (word, text) = split_word(rest);
    let kinds = [
        (&b"OK"[..], StatusKind::Ok),
        (b"NO", StatusKind::No),
        (b"BAD", StatusKind::Bad),
        (b"BYE", StatusKind::Bye),
        (b"PREAUTH", StatusKind::Preauth),
    ];
    let (_, kind) = kinds.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name))?;
    let coded = text.strip_prefix(b"[").and_then(|inside| {
        let end = inside.iter().position(|&b| b == b']')?;
        Some((&inside[..end], &inside[end + 1..]))
    });
    let code = coded.map_or(&[][..], |(code, _)| code);
    let code = String::from_utf8_lossy(code).to_ascii_uppercase();
    // If there is no text, the code is the text.
    let said = coded.map_or(text, |(_, after)| if after.trim_ascii().is_empty() { text } else { after });
    Some(StatusResponse { kind, code, words: words(said) })
}

/// `name (UIDNEXT 7 …)`.
fn uid_next(mut words: ResponseWords<'_>) -> Option<u32> {
    words.pass_over()?;
    if words.next()? != ResponseWord::Open {
        return None;
    }
    loop {
        match words.next()? {
            ResponseWord::Atom(name) if name.eq_ignore_ascii_case(b"UIDNEXT") => return words.index(),
            ResponseWord::Close => return None,
            ResponseWord::Atom(_) | ResponseWord::Text(_) | ResponseWord::Open => words.pass_over()?,
        }
    }
}

/// `(UID 7 RFC822.SIZE 2048 …)`; if it was cut, all that arrived of it.
fn mail(mut words: ResponseWords<'_>, is_cut: bool) -> Option<FetchResponse> {
    let mut mail = FetchResponse::default();
    if words.next()? != ResponseWord::Open {
        return None;
    }
    loop {
        let name = match words.next() {
            Some(ResponseWord::Atom(name)) => name,
            Some(ResponseWord::Close) => return Some(mail),
            None if is_cut => return Some(mail),
            Some(ResponseWord::Text(_) | ResponseWord::Open) | None => return None,
        };
        if name.eq_ignore_ascii_case(b"UID") {
            mail.uid = Some(words.index()?);
        } else if name.eq_ignore_ascii_case(b"RFC822.SIZE") {
            mail.size = Some(words.number()?);
        } else if name.eq_ignore_ascii_case(b"INTERNALDATE") {
            match words.next()? {
                // An unreadable date is treated as absent; the mail counts all the same.
                ResponseWord::Text(text) => mail.date = date(&text),
                ResponseWord::Atom(_) => {}
                ResponseWord::Open | ResponseWord::Close => return None,
            }
        } else if name.eq_ignore_ascii_case(b"BODY[]") {
            mail.text = Some(match words.next()? {
                ResponseWord::Text(text) => FetchedText::Whole(text.into_owned()),
                ResponseWord::Atom(nil) if nil.eq_ignore_ascii_case(b"NIL") => FetchedText::Missing,
                ResponseWord::Atom(_) | ResponseWord::Open | ResponseWord::Close => return None,
            });
        } else {
            words.pass_over()?;
        }
    }
}

/// `17-Jul-1996 02:44:25 -0700`; the day may have a blank as its first digit.
fn date(text: &[u8]) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let text = std::str::from_utf8(text).ok()?.trim();
    let mut parts = text.split_ascii_whitespace();
    let (day, clock, zone) = (parts.next()?, parts.next()?, parts.next()?);
    let mut day = day.split('-');
    let (number, month, year) = (day.next()?, day.next()?, day.next()?);
    let month = 1 + MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let date = Date::new(year.parse().ok()?, i8::try_from(month).ok()?, number.parse().ok()?).ok()?;
    let mut clock = clock.split(':').map(|part| part.parse::<i8>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // A leap second is read as the second before it.
    let time = Time::new(hour, minute, second.min(59), 0).ok()?;
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits: i32 = if digits.len() == 4 { digits.parse().ok()? } else { return None };
    let offset = Offset::from_seconds(sign * (digits / 100 * 3600 + digits % 100 * 60)).ok()?;
    offset.to_timestamp(date.to_datetime(time)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ImapResponse, ImapFault> {
        ImapResponse::read(RawResponse { line: line.as_bytes().to_vec(), ..RawResponse::default() })
    }

    fn fetched(line: &str) -> FetchResponse {
        match read(line).unwrap() {
            ImapResponse::Mail(mail) => mail,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_told_of_a_mail_is_read_in_any_order() {
        let mail = fetched(
            "* 12 FETCH (FLAGS (\\Seen $X) INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" X (1 (2)) \
             rfc822.size 4286 UID 7)",
        );
        assert_eq!((mail.uid, mail.size), (Some(7), Some(4286)));
        assert_eq!(mail.date.unwrap().to_string(), "1996-07-17T09:44:25Z");
        assert_eq!(fetched("* 1 FETCH (BODY[] NIL UID 3)").text, Some(FetchedText::Missing));
        assert_eq!(fetched("* 1 FETCH (BODY[] \"a\\\"b\")").text, Some(FetchedText::Whole(b"a\"b".to_vec())));
        assert_eq!(fetched("* 1 FETCH (UID 3 INTERNALDATE \"soon\")").date, None);
    }

    #[test]
    fn a_mail_that_does_not_parse_is_an_error_and_not_overlooked() {
        for line in
            ["* 1 FETCH", "* 1 FETCH (UID", "* 1 FETCH (UID 0)", "* 1 FETCH (UID x)", "* 1 FETCH UID 3"]
        {
            assert!(matches!(read(line), Err(ImapFault::Garbled(_))), "{line}");
        }
    }

    #[test]
    fn states_are_read_with_code_and_words() {
        let Ok(ImapResponse::Status(state)) = read("* ok [UIDNEXT 4392] Predicted next UID") else {
            panic!()
        };
        assert_eq!(
            (state.kind, state.number("UIDNEXT"), state.number("UID")),
            (StatusKind::Ok, Some(4392), None)
        );
        let Ok(ImapResponse::Done { tag, state }) = read("A7 NO [TRYCREATE]") else { panic!() };
        assert_eq!((tag.as_str(), state.words.as_str()), ("A7", "[TRYCREATE]"));
        let Ok(ImapResponse::Status(state)) = read("* BYE") else { panic!() };
        assert_eq!((state.kind, state.words.as_str()), (StatusKind::Bye, "(no reason given)"));
        assert!(read("HTTP/1.1 400 Bad Request").is_err());
        assert!(read("").is_err());
    }

    #[test]
    fn status_tells_the_next_uid_whatever_the_folder_is_called() {
        for line in ["* STATUS INBOX (MESSAGES 2 UIDNEXT 7)", "* STATUS \"a (b\" (UIDNEXT 7)"] {
            assert!(matches!(read(line), Ok(ImapResponse::UidNext(7))), "{line}");
        }
        assert!(matches!(read("* STATUS INBOX ()"), Ok(ImapResponse::Other)));
        assert!(matches!(read("* 5000000000 EXISTS"), Err(ImapFault::Garbled(_))));
        assert!(matches!(read("* VANISHED 1:5"), Ok(ImapResponse::Other)));
    }

    #[test]
    fn dates_are_read_as_servers_write_them() {
        assert_eq!(date(b" 1-Feb-2024 00:00:00 +0530").unwrap().to_string(), "2024-01-31T18:30:00Z");
        for text in ["", "32-Jan-2024 00:00:00 +0000", "1-Foo-2024 00:00:00 +0000", "1-Jan-2024 00:00:00 UTC"]
        {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }
}
