//! Commands, from a line without its ending. Pure, and fuzzed: any line is a command or a reply that says why not.
//!
//! Strict where readers could differ: an address is one by the rules of the domain (only a source route is dropped, as RFC
//! 5321 says), and a parameter that was not offered is refused. Devices and old programs write a path without its angle
//! brackets: it then ends at the first space, and what holds a bracket anywhere else is refused.

use postway_domain::{
    EmailAddress,
    dsn::{DsnEnvelopeId, DsnError, DsnReturn, RecipientDsn},
};

use super::reply::Reply;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Who it is, and that it knows extensions.
    Ehlo(&'a str),
    /// Who it is.
    Helo(&'a str),
    /// Go on under TLS.
    StartTls,
    /// A key is about to be shown.
    Auth {
        /// In which way.
        mechanism: &'a str,
        /// What it says at once.
        initial: Option<&'a str>,
    },
    /// A mail begins.
    Mail {
        /// Where failures go; none: nowhere.
        from: Option<EmailAddress>,
        /// Its size, by the client's word.
        size: Option<u64>,
        /// Whether addresses may be outside ASCII.
        smtputf8: bool,
        /// How much of it reports shall hold.
        ret: Option<DsnReturn>,
        /// What reports shall call it.
        envid: Option<DsnEnvelopeId>,
    },
    /// To whom it goes.
    Rcpt {
        /// Where to.
        to: RecipientPath,
        /// What is to be reported.
        dsn: RecipientDsn,
    },
    /// Its bytes follow.
    Data,
    /// So many of its bytes follow.
    Bdat {
        /// How many.
        octets: u64,
        /// Whether they are the last.
        last: bool,
    },
    /// Forget the mail.
    Rset,
    /// Nothing.
    Noop,
    /// Whether there is such a user.
    Vrfy,
    /// Who is on a list.
    Expn,
    /// What one can say.
    Help,
    /// That is all.
    Quit,
}

/// Where a mail goes, by RCPT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientPath {
    /// To this address.
    Address(EmailAddress),
    /// To whoever looks after this server: the one name that needs no domain (RFC 5321, 4.5.1).
    Postmaster,
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What to answer.
    pub reply: Reply,
    /// Whether what follows cannot be told from commands any more.
    pub is_fatal: bool,
}

impl From<Reply> for Fault {
    fn from(reply: Reply) -> Self {
        Self { reply, is_fatal: false }
    }
}

const UNKNOWN: Reply = Reply::new(500, "5.5.1", "this command is not known");
const NOT_TEXT: Reply = Reply::new(500, "5.5.2", "a command is printable text in UTF-8");
const NO_ARGUMENT: Reply = Reply::new(501, "5.5.4", "this command takes no argument");
const NO_PARAMETER: Reply = Reply::new(555, "5.5.4", "this parameter is not known or was not offered");

const NO_PROXY: Reply = Reply::new(
    554,
    "5.7.1",
    "PROXY is taken from the networks in smtp.proxy_networks only, before the greeting",
);

/// Reads one line.
pub fn parse(line: &[u8]) -> Result<Command<'_>, Fault> {
    let text = std::str::from_utf8(line).map_err(|_| NOT_TEXT)?;
    if text.chars().any(char::is_control) {
        return Err(NOT_TEXT.into());
    }
    let text = text.trim_end_matches(' ');
    let (verb, argument) = text.split_once(' ').unwrap_or((text, ""));
    let argument = argument.trim_start_matches(' ');
    let is = |name: &str| verb.eq_ignore_ascii_case(name);
    let alone = |command| if argument.is_empty() { Ok(command) } else { Err(Fault::from(NO_ARGUMENT)) };
    if is("MAIL") {
        mail(argument).map_err(Fault::from)
    } else if is("RCPT") {
        rcpt(argument).map_err(Fault::from)
    } else if is("DATA") {
        alone(Command::Data)
    } else if is("BDAT") {
        bdat(argument)
    } else if is("EHLO") || is("HELO") {
        match argument {
            "" => Err(Reply::new(501, "5.5.4", "say who you are: EHLO host.example.com").into()),
            name if is("EHLO") => Ok(Command::Ehlo(name)),
            name => Ok(Command::Helo(name)),
        }
    } else if is("AUTH") {
        let (mechanism, initial) = match argument.split_once(' ') {
            Some((mechanism, initial)) => (mechanism, Some(initial.trim_start_matches(' '))),
            None => (argument, None),
        };
        Ok(Command::Auth { mechanism, initial })
    } else if is("STARTTLS") {
        alone(Command::StartTls)
    } else if is("RSET") {
        alone(Command::Rset)
    } else if is("QUIT") {
        alone(Command::Quit)
    } else if is("NOOP") {
        Ok(Command::Noop)
    } else if is("VRFY") {
        Ok(Command::Vrfy)
    } else if is("EXPN") {
        Ok(Command::Expn)
    } else if is("PROXY") {
        // From a proxy the listener has read it before the session began.
        Err(Fault { reply: NO_PROXY, is_fatal: true })
    } else if is("HELP") {
        Ok(Command::Help)
    } else {
        Err(UNKNOWN.into())
    }
}

fn mail(argument: &str) -> Result<Command<'_>, Reply> {
    const FORM: Reply = Reply::new(501, "5.5.4", "write MAIL FROM:<address>, or <> for none");
    let (path, parameters) = path(argument, "FROM:").ok_or(FORM)?;
    let from = match path {
        "" => None,
        path => Some(address(path).map_err(|error| bad_address("5.1.7", &error))?),
    };
    let (mut size, mut smtputf8, mut ret, mut envid) = (None, false, None, None);
    for (name, value) in parameters_of(parameters) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match value {
            Some(value) if is("SIZE") => {
                const SIZE: Reply = Reply::new(501, "5.5.4", "SIZE must be a number of bytes");
                size = Some(declared_size(value).ok_or(SIZE)?);
            }
            Some(value) if is("BODY") => {
                if !["7BIT", "8BITMIME"].iter().any(|kind| value.eq_ignore_ascii_case(kind)) {
                    return Err(Reply::new(501, "5.5.4", "BODY must be 7BIT or 8BITMIME"));
                }
            }
            Some(value) if is("RET") => once(&mut ret, value)?,
            Some(value) if is("ENVID") => once(&mut envid, value)?,
            // By RFC 4954 it may be said to anybody and need not be believed.
            Some(_) if is("AUTH") => {}
            None if is("SMTPUTF8") => smtputf8 = true,
            _ => return Err(NO_PARAMETER),
        }
    }
    if from.as_ref().is_some_and(EmailAddress::needs_smtputf8) && !smtputf8 {
        return Err(NEEDS_SMTPUTF8);
    }
    Ok(Command::Mail { from, size, smtputf8, ret, envid })
}

/// The parameters behind a path, each with its value.
fn parameters_of(parameters: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    parameters.split(' ').filter(|parameter| !parameter.is_empty()).map(|parameter| {
        match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        }
    })
}

/// Reads a parameter of DSN, which may stand once.
fn once<T: std::str::FromStr<Err = DsnError>>(slot: &mut Option<T>, value: &str) -> Result<(), Reply> {
    let parsed = value.parse().map_err(|error: DsnError| Reply::saying(501, "5.5.4", &error.to_string()))?;
    match slot.replace(parsed) {
        None => Ok(()),
        Some(_) => Err(Reply::new(501, "5.5.4", "a parameter is there more than once")),
    }
}

/// An address outside ASCII in a mail that was not announced so.
pub(super) const NEEDS_SMTPUTF8: Reply =
    Reply::new(553, "5.6.7", "an address outside ASCII needs the parameter SMTPUTF8 of MAIL");

fn rcpt(argument: &str) -> Result<Command<'_>, Reply> {
    const FORM: Reply = Reply::new(501, "5.5.4", "write RCPT TO:<address>");
    let (path, parameters) = path(argument, "TO:").ok_or(FORM)?;
    let mut dsn = RecipientDsn::default();
    for (name, value) in parameters_of(parameters) {
        match value {
            Some(value) if name.eq_ignore_ascii_case("NOTIFY") => once(&mut dsn.notify, value)?,
            Some(value) if name.eq_ignore_ascii_case("ORCPT") => once(&mut dsn.orcpt, value)?,
            _ => return Err(NO_PARAMETER),
        }
    }
    let to = match path {
        path if path.eq_ignore_ascii_case("Postmaster") => RecipientPath::Postmaster,
        path => RecipientPath::Address(address(path).map_err(|error| bad_address("5.1.3", &error))?),
    };
    Ok(Command::Rcpt { to, dsn })
}

fn bdat(argument: &str) -> Result<Command<'_>, Fault> {
    let (octets, rest) = argument.split_once(' ').unwrap_or((argument, ""));
    let last = rest.trim_start_matches(' ');
    match number(octets) {
        Some(octets) if last.is_empty() || last.eq_ignore_ascii_case("LAST") => {
            Ok(Command::Bdat { octets, last: !last.is_empty() })
        }
        // The chunk comes all the same, and nobody knows how long it is.
        _ => Err(Fault {
            reply: Reply::new(501, "5.5.4", "write BDAT size or BDAT size LAST"),
            is_fatal: true,
        }),
    }
}

/// What stands in the angle brackets after the keyword, or without them up to a space, and what follows.
fn path<'a>(argument: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (start, rest) = argument.split_at_checked(keyword.len())?;
    if !start.eq_ignore_ascii_case(keyword) {
        return None;
    }
    // A space here is wrong and common, and no reader takes it for anything else.
    let rest = rest.trim_start_matches(' ');
    let Some(rest) = rest.strip_prefix('<') else {
        let (path, parameters) = rest.split_once(' ').unwrap_or((rest, ""));
        // No sender at all is said with brackets, and half a pair of them is a mistake.
        let is_bare = !path.is_empty() && !path.contains(['<', '>']);
        return is_bare.then(|| (path, parameters.trim_matches(' ')));
    };
    let (mut quoted, mut escaped) = (false, false);
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'>' && !quoted && !escaped;
        quoted ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    let (path, after) = (&rest[..end], &rest[end + 1..]);
    let parameters = if after.is_empty() { "" } else { after.strip_prefix(' ')?.trim_matches(' ') };
    Some((path, parameters))
}

/// The address of a path, its source route dropped (RFC 5321, appendix C).
fn address(path: &str) -> Result<EmailAddress, postway_domain::address::AddressError> {
    let address = match path.split_once(':') {
        Some((route, address)) if route.starts_with('@') => address,
        _ => path,
    };
    address.parse()
}

fn bad_address(status: &'static str, error: &postway_domain::address::AddressError) -> Reply {
    Reply::saying(553, status, &error.to_string())
}

fn number(text: &str) -> Option<u64> {
    if is_number(text) { text.parse().ok() } else { None }
}

/// A size by the client's word. RFC 1870 allows more than fits here: that is a mail that is too large, and no bad number.
fn declared_size(text: &str) -> Option<u64> {
    is_number(text).then(|| text.parse().unwrap_or(u64::MAX))
}

fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> u16 {
        parse(line.as_bytes()).map_or_else(|fault| fault.reply.code, |_| 0)
    }

    #[test]
    fn commands_are_read_in_any_case_and_with_spaces_to_spare() {
        let mail = |from: &str, size, smtputf8| {
            let from = (!from.is_empty()).then(|| from.parse().unwrap());
            Ok(Command::Mail { from, size, smtputf8, ret: None, envid: None })
        };
        let rcpt = |to: &str| {
            let to = RecipientPath::Address(to.parse().unwrap());
            Ok(Command::Rcpt { to, dsn: RecipientDsn::default() })
        };
        let postmaster = || Ok(Command::Rcpt { to: RecipientPath::Postmaster, dsn: RecipientDsn::default() });
        let verp = "announce-bounces+some.long.user.name=some-long-company.example.net@lists.example.com";
        let (mail_verp, rcpt_verp) = (format!("MAIL FROM:<{verp}>"), format!("RCPT TO:<{verp}>"));
        for (line, expected) in [
            ("ehlo me", Ok(Command::Ehlo("me"))),
            ("HELO  [192.0.2.1] ", Ok(Command::Helo("[192.0.2.1]"))),
            ("Mail From:<a@example.com>", mail("a@example.com", None, false)),
            ("MAIL FROM: <a@example.com>", mail("a@example.com", None, false)),
            ("MAIL FROM:a@example.com", mail("a@example.com", None, false)),
            ("MAIL FROM:  a@example.com  SIZE=12", mail("a@example.com", Some(12), false)),
            ("RCPT TO:c@example.net", rcpt("c@example.net")),
            ("RCPT TO: c@example.net", rcpt("c@example.net")),
            ("RCPT TO:@a.example:c@example.net", rcpt("c@example.net")),
            (&mail_verp, mail(verp, None, false)),
            (&rcpt_verp, rcpt(verp)),
            ("RCPT TO:<Postmaster>", postmaster()),
            ("rcpt to:<postmaster>", postmaster()),
            ("RCPT TO:POSTMASTER", postmaster()),
            ("EXPN list", Ok(Command::Expn)),
            ("MAIL FROM:<>", mail("", None, false)),
            ("MAIL FROM:<> SIZE=12 BODY=8bitmime AUTH=<>", mail("", Some(12), false)),
            ("MAIL FROM:<> SIZE=99999999999999999999", mail("", Some(u64::MAX), false)),
            ("MAIL FROM:<é@example.com> SMTPUTF8", mail("é@example.com", None, true)),
            ("RCPT TO:<@a.example,@b.example:c@example.net>", rcpt("c@example.net")),
            (r#"RCPT TO:<"a>b"@example.net>"#, rcpt(r#""a>b"@example.net"#)),
            ("BDAT 86 last", Ok(Command::Bdat { octets: 86, last: true })),
            ("BDAT 0", Ok(Command::Bdat { octets: 0, last: false })),
            ("AUTH PLAIN AGEAYg==", Ok(Command::Auth { mechanism: "PLAIN", initial: Some("AGEAYg==") })),
            ("AUTH login", Ok(Command::Auth { mechanism: "login", initial: None })),
            ("NOOP anything", Ok(Command::Noop)),
            ("data", Ok(Command::Data)),
        ] {
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_command_is_told_why() {
        for (line, expected) in [
            ("", 500),
            ("GET / HTTP/1.1", 500),
            ("NOOP\0", 500),
            ("MAIL", 501),
            ("MAIL FROM:", 501),
            ("MAIL FROM: SIZE=1", 553),
            ("MAIL FROM:a@example.com>", 501),
            ("MAIL FROM:a<b@example.com>", 501),
            ("MAIL FROM:Ada <a@example.com>", 553),
            ("MAIL FROM:a@example.com b", 555),
            ("MAIL FROM:<Postmaster>", 553),
            ("RCPT TO:a@example.net>", 501),
            ("RCPT TO:<a@example.net", 501),
            ("RCPT TO:root", 553),
            ("MAIL FROM:<a@example.com>SIZE=1", 501),
            ("MAIL FROM:<a@example.com", 501),
            ("MAIL FROM:<a@example.com> SIZE=1x", 501),
            ("MAIL FROM:<a@example.com> SIZE=", 501),
            ("MAIL FROM:<a@example.com> SIZE=999999999999999999999", 501),
            ("MAIL FROM:<a@example.com> BODY=BINARYMIME", 501),
            ("MAIL FROM:<a@example.com> RET=SOME", 501),
            ("MAIL FROM:<a@example.com> RET", 555),
            ("MAIL FROM:<a@example.com> ENVID=a=b", 501),
            ("MAIL FROM:<a@example.com> ENVID=a ENVID=b", 501),
            ("MAIL FROM:<a@example.com> NOTIFY=NEVER", 555),
            ("MAIL FROM:<nobody>", 553),
            ("MAIL FROM:<é@example.com>", 553),
            ("RCPT TO:<>", 553),
            ("RCPT TO:<a b@example.net>", 553),
            ("RCPT TO:<a@example.net> NOTIFY=NEVER,DELAY", 501),
            ("RCPT TO:<a@example.net> NOTIFY=NEVER NOTIFY=DELAY", 501),
            ("RCPT TO:<a@example.net> ORCPT=a@example.net", 501),
            ("RCPT TO:<a@example.net> SIZE=1", 555),
            ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2", 554),
            ("RCPT FROM:<a@example.net>", 501),
            ("DATA now", 501),
            ("EHLO", 501),
        ] {
            assert_eq!(code(line), expected, "{line}");
        }
        assert_eq!(parse(b"NOOP \xff").unwrap_err().reply.code, 500);
    }

    #[test]
    fn wishes_about_reports_are_read() {
        let mail = parse(b"MAIL FROM:<a@example.com> ret=hdrs ENVID=QQ+2B1").unwrap();
        let Command::Mail { ret: Some(DsnReturn::Headers), envid: Some(envid), .. } = mail else {
            panic!("{mail:?}")
        };
        assert_eq!(envid.as_str(), "QQ+2B1");
        let rcpt = parse(b"RCPT TO:<b@example.net> NOTIFY=success,delay ORCPT=rfc822;b@example.net").unwrap();
        let Command::Rcpt { dsn, .. } = rcpt else { panic!("{rcpt:?}") };
        assert_eq!(dsn.notify.unwrap().to_string(), "SUCCESS,DELAY");
        assert_eq!(dsn.orcpt.unwrap().as_str(), "rfc822;b@example.net");
    }

    #[test]
    fn a_chunk_of_unknown_length_ends_the_session() {
        for line in ["BDAT", "BDAT x LAST", "BDAT -1", "BDAT 1 LAST LAST", "BDAT 99999999999999999999"] {
            assert!(parse(line.as_bytes()).unwrap_err().is_fatal, "{line}");
        }
    }
}
