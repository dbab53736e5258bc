//! What a response means: just those that we use.

use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::Offset,
};

use super::{
    error::{Fault, words},
    syntax::{Word, Words, number},
    wire::{Raw, Text},
};

/// A response, as far as it matters to us.
#[derive(Debug)]
pub(super) enum Response {
    /// The end of a command.
    Done {
        tag: String,
        state: State,
    },
    /// A remark about the state of things; `* OK [UIDNEXT 7] …`.
    State(State),
    /// The server waits for more; its words, which a sign-in may decode.
    GoAhead(Vec<u8>),
    Capability(Vec<u8>),
    Exists(u32),
    Expunge,
    Mail(Mail),
    /// UIDNEXT as STATUS tells it.
    UidNext(u32),
    /// Anything else, which nobody asked for.
    Other,
}

/// A verdict of the server's.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) kind: Kind,
    /// What stands in brackets, in upper case: `UIDNEXT 7`.
    pub(super) code: String,
    /// The words for people.
    pub(super) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ok,
    No,
    Bad,
    Bye,
    Preauth,
}

/// What is told of one mail.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// Its place in the mailbox.
    pub(super) place: u64,
    pub(super) uid: Option<u32>,
    pub(super) size: Option<u64>,
    pub(super) date: Option<Timestamp>,
    /// Its text; `Missing` where the server has none to give.
    pub(super) text: Option<MailText>,
    /// Its text was too long to be passed over; nothing more can be read.
    pub(super) is_cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MailText {
    Whole(Vec<u8>),
    TooLong(u64),
    Missing,
}

impl State {
    /// The number in a code of this name.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let digits = self.code.strip_prefix(name)?.strip_prefix(' ')?;
        number(digits.trim().as_bytes()).and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn capabilities(&self) -> Option<&[u8]> {
        self.code.strip_prefix("CAPABILITY ").map(str::as_bytes)
    }

    /// Whether waiting may help: by the codes of RFC 5530, and by the words of servers that know none.
    pub(super) fn is_passing(&self) -> bool {
        let name = self.code.split(' ').next().unwrap_or_default();
        let words = self.words.to_ascii_lowercase();
        matches!(name, "UNAVAILABLE" | "INUSE" | "LIMIT" | "SERVERBUG")
            || ["too many", "unavailable", "temporar", "try again"].iter().any(|hint| words.contains(hint))
    }

    /// The refusal that this is.
    pub(super) fn refused(self, what: &'static str) -> Fault {
        match self.kind {
            Kind::Bye => Fault::Bye(self.words),
            Kind::Ok | Kind::No | Kind::Bad | Kind::Preauth => Fault::Refused { what, words: self.words },
        }
    }
}

impl Response {
    pub(super) fn read(raw: Raw) -> Result<Self, Fault> {
        let line = raw.line.as_slice();
        if line.first() == Some(&b'+') {
            return Ok(Self::GoAhead(line[1..].trim_ascii().to_vec()));
        }
        let (tag, rest) = split_word(line);
        if tag != b"*" {
            let state = state(rest).ok_or(Fault::Garbled("neither a response nor the end of a command"))?;
            return Ok(Self::Done { tag: String::from_utf8_lossy(tag).into_owned(), state });
        }
        if let Some(state) = state(rest) {
            return Ok(Self::State(state));
        }
        let (first, after) = split_word(rest);
        if first.eq_ignore_ascii_case(b"CAPABILITY") {
            return Ok(Self::Capability(after.to_vec()));
        }
        if first.eq_ignore_ascii_case(b"STATUS") {
            return Ok(uid_next(Words::new(after, &raw.literals)).map_or(Self::Other, Self::UidNext));
        }
        let Some(count) = number(first) else {
            return Ok(Self::Other);
        };
        let (kind, after) = split_word(after);
        if kind.eq_ignore_ascii_case(b"EXISTS") {
            let count = u32::try_from(count).map_err(|_| Fault::Garbled("a mailbox of too many mails"))?;
            Ok(Self::Exists(count))
        } else if kind.eq_ignore_ascii_case(b"EXPUNGE") {
            Ok(Self::Expunge)
        } else if kind.eq_ignore_ascii_case(b"FETCH") {
            let mut mail = mail(Words::new(after, &raw.literals), raw.is_cut)
                .ok_or(Fault::Garbled("a FETCH response that does not parse"))?;
            mail.place = count;
            mail.is_cut = raw.is_cut;
            match raw.text {
                Some(Text::Whole(text)) => mail.text = Some(MailText::Whole(text)),
                Some(Text::TooLong(size)) => mail.text = Some(MailText::TooLong(size)),
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

fn state(rest: &[u8]) -> Option<State> {
    let (word, text) = split_word(rest);
    let kinds = [
        (&b"OK"[..], Kind::Ok),
        (b"NO", Kind::No),
        (b"BAD", Kind::Bad),
        (b"BYE", Kind::Bye),
        (b"PREAUTH", Kind::Preauth),
    ];
    let (_, kind) = kinds.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name))?;
    let coded = text.strip_prefix(b"[").and_then(|inside| {
        let end = inside.iter().position(|&b| b == b']')?;
        Some((&inside[..end], &inside[end + 1..]))
    });
    let code = coded.map_or(&[][..], |(code, _)| code);
    let code = String::from_utf8_lossy(code).to_ascii_uppercase();
    // The code says more than the words where there are none.
    let said = coded.map_or(text, |(_, after)| if after.trim_ascii().is_empty() { text } else { after });
    Some(State { kind, code, words: words(said) })
}

/// `name (UIDNEXT 7 …)`.
fn uid_next(mut words: Words<'_>) -> Option<u32> {
    words.pass_over()?;
    if words.next()? != Word::Open {
        return None;
    }
    loop {
        match words.next()? {
            Word::Atom(name) if name.eq_ignore_ascii_case(b"UIDNEXT") => return words.index(),
            Word::Close => return None,
            Word::Atom(_) | Word::Text(_) | Word::Open => words.pass_over()?,
        }
    }
}

/// `(UID 7 RFC822.SIZE 2048 …)`; all that came of it, where it was cut.
fn mail(mut words: Words<'_>, is_cut: bool) -> Option<Mail> {
    let mut mail = Mail::default();
    if words.next()? != Word::Open {
        return None;
    }
    loop {
        let name = match words.next() {
            Some(Word::Atom(name)) => name,
            Some(Word::Close) => return Some(mail),
            None if is_cut => return Some(mail),
            Some(Word::Text(_) | Word::Open) | None => return None,
        };
        if name.eq_ignore_ascii_case(b"UID") {
            mail.uid = Some(words.index()?);
        } else if name.eq_ignore_ascii_case(b"RFC822.SIZE") {
            mail.size = Some(words.number()?);
        } else if name.eq_ignore_ascii_case(b"INTERNALDATE") {
            match words.next()? {
                // A date that nobody can read is as good as none; the mail counts all the same.
                Word::Text(text) => mail.date = date(&text),
                Word::Atom(_) => {}
                Word::Open | Word::Close => return None,
            }
        } else if name.eq_ignore_ascii_case(b"BODY[]") {
            mail.text = Some(match words.next()? {
                Word::Text(text) => MailText::Whole(text.into_owned()),
                Word::Atom(nil) if nil.eq_ignore_ascii_case(b"NIL") => MailText::Missing,
                Word::Atom(_) | Word::Open | Word::Close => return None,
            });
        } else {
            words.pass_over()?;
        }
    }
}

/// `17-Jul-1996 02:44:25 -0700`, the day perhaps with a blank for its first digit.
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
    // A leap second is read as the one before it.
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

    fn read(line: &str) -> Result<Response, Fault> {
        Response::read(Raw { line: line.as_bytes().to_vec(), ..Raw::default() })
    }

    fn fetched(line: &str) -> Mail {
        match read(line).unwrap() {
            Response::Mail(mail) => mail,
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
        assert_eq!(fetched("* 1 FETCH (BODY[] NIL UID 3)").text, Some(MailText::Missing));
        assert_eq!(fetched("* 1 FETCH (BODY[] \"a\\\"b\")").text, Some(MailText::Whole(b"a\"b".to_vec())));
        assert_eq!(fetched("* 1 FETCH (UID 3 INTERNALDATE \"soon\")").date, None);
    }

    #[test]
    fn a_mail_that_does_not_parse_is_an_error_and_not_overlooked() {
        for line in
            ["* 1 FETCH", "* 1 FETCH (UID", "* 1 FETCH (UID 0)", "* 1 FETCH (UID x)", "* 1 FETCH UID 3"]
        {
            assert!(matches!(read(line), Err(Fault::Garbled(_))), "{line}");
        }
    }

    #[test]
    fn states_are_read_with_code_and_words() {
        let Ok(Response::State(state)) = read("* ok [UIDNEXT 4392] Predicted next UID") else { panic!() };
        assert_eq!((state.kind, state.number("UIDNEXT"), state.number("UID")), (Kind::Ok, Some(4392), None));
        let Ok(Response::Done { tag, state }) = read("A7 NO [TRYCREATE]") else { panic!() };
        assert_eq!((tag.as_str(), state.words.as_str()), ("A7", "[TRYCREATE]"));
        let Ok(Response::State(state)) = read("* BYE") else { panic!() };
        assert_eq!((state.kind, state.words.as_str()), (Kind::Bye, "(no reason given)"));
        assert!(read("HTTP/1.1 400 Bad Request").is_err());
        assert!(read("").is_err());
    }

    #[test]
    fn status_tells_the_next_uid_whatever_the_folder_is_called() {
        for line in ["* STATUS INBOX (MESSAGES 2 UIDNEXT 7)", "* STATUS \"a (b\" (UIDNEXT 7)"] {
            assert!(matches!(read(line), Ok(Response::UidNext(7))), "{line}");
        }
        assert!(matches!(read("* STATUS INBOX ()"), Ok(Response::Other)));
        assert!(matches!(read("* 5000000000 EXISTS"), Err(Fault::Garbled(_))));
        assert!(matches!(read("* VANISHED 1:5"), Ok(Response::Other)));
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
