//! Parses commands from a line without its ending. Pure, and fuzzed: any line is a command or an error with
//! its reply.
//!
//! The parser is strict wherever two readers could differ: an address must follow the rules of the domain
//! crate (only a source route is dropped, as RFC 5321 says), and a parameter that was not offered is refused.
//! Devices and old programs write a path without angle brackets: it then ends at the first space, and a
//! bracket anywhere else in it is refused.

use std::net::IpAddr;

use postway_domain::{
    EmailAddress,
    dsn::{DsnEnvelopeId, DsnError, DsnReturn, RecipientDsn},
};

use super::reply::SubmissionReply;

/// A command of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmtpCommand<'a> {
    /// The client's name; it supports extensions.
    Ehlo(&'a str),
    /// The client's name.
    Helo(&'a str),
    /// Start TLS.
    StartTls,
    /// Start a login.
    Auth {
        /// The mechanism.
        mechanism: &'a str,
        /// The initial response.
        initial: Option<&'a str>,
    },
    /// Start a mail.
    Mail {
        /// The envelope sender; `None` for the null sender.
        from: Option<EmailAddress>,
        /// The size that the client declares.
        size: Option<u64>,
        /// Whether addresses may contain characters outside ASCII.
        smtputf8: bool,
        /// How much of the mail a report should return.
        ret: Option<DsnReturn>,
        /// The envelope id for reports.
        envid: Option<DsnEnvelopeId>,
    },
    /// Add a recipient.
    Rcpt {
        /// The recipient.
        to: RecipientPath,
        /// The reports that are requested for the recipient.
        dsn: RecipientDsn,
    },
    /// The mail follows.
    Data,
    /// A chunk of the mail follows.
    Bdat {
        /// The size of the chunk.
        octets: u64,
        /// Whether it is the last chunk.
        last: bool,
    },
    /// Drop the mail.
    Rset,
    /// Do nothing.
    Noop,
    /// Verify a user.
    Vrfy,
    /// Expand a list.
    Expn,
    /// Ask for help.
    Help,
    /// A server names its client.
    Xclient(NamedClient),
    /// End the session.
    Quit,
}

/// The client that XCLIENT names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedClient {
    /// It names none.
    Nobody,
    /// It says that the address is not known.
    Unknown,
    /// This one.
    Address(IpAddr),
}

/// The recipient of a RCPT command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientPath {
    /// This address.
    Address(EmailAddress),
    /// The postmaster of this server: the one name that needs no domain (RFC 5321, 4.5.1).
    Postmaster,
}

/// Why a line is not a valid command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpCommandError {
    /// The reply to the client.
    pub reply: SubmissionReply,
    /// Whether the following bytes can no longer be separated from commands.
    pub is_fatal: bool,
}

impl From<SubmissionReply> for SmtpCommandError {
    fn from(reply: SubmissionReply) -> Self {
        Self { reply, is_fatal: false }
    }
}

const UNKNOWN: SubmissionReply = SubmissionReply::new(500, "5.5.1", "this command is not known");
const NOT_TEXT: SubmissionReply = SubmissionReply::new(500, "5.5.2", "a command is printable text in UTF-8");
const NO_ARGUMENT: SubmissionReply = SubmissionReply::new(501, "5.5.4", "this command takes no argument");
const NO_PARAMETER: SubmissionReply =
    SubmissionReply::new(555, "5.5.4", "this parameter is not known or was not offered");

const NO_PROXY: SubmissionReply = SubmissionReply::new(
    554,
    "5.7.1",
    "PROXY is taken from the networks in smtp.proxy_networks only, before the greeting",
);

/// Parses one line.
pub fn parse(line: &[u8]) -> Result<SmtpCommand<'_>, SmtpCommandError> {
    let text = std::str::from_utf8(line).map_err(|_| NOT_TEXT)?;
    if text.chars().any(char::is_control) {
        return Err(NOT_TEXT.into());
    }
    let text = text.trim_end_matches(' ');
    let (verb, argument) = text.split_once(' ').unwrap_or((text, ""));
    let argument = argument.trim_start_matches(' ');
    let is = |name: &str| verb.eq_ignore_ascii_case(name);
    let alone =
        |command| if argument.is_empty() { Ok(command) } else { Err(SmtpCommandError::from(NO_ARGUMENT)) };
    if is("MAIL") {
        mail(argument).map_err(SmtpCommandError::from)
    } else if is("RCPT") {
        rcpt(argument).map_err(SmtpCommandError::from)
    } else if is("DATA") {
        alone(SmtpCommand::Data)
    } else if is("BDAT") {
        bdat(argument)
    } else if is("EHLO") || is("HELO") {
        match argument {
            "" => Err(SubmissionReply::new(501, "5.5.4", "say who you are: EHLO host.example.com").into()),
            name if is("EHLO") => Ok(SmtpCommand::Ehlo(name)),
            name => Ok(SmtpCommand::Helo(name)),
        }
    } else if is("AUTH") {
        let (mechanism, initial) = match argument.split_once(' ') {
            Some((mechanism, initial)) => (mechanism, Some(initial.trim_start_matches(' '))),
            None => (argument, None),
        };
        Ok(SmtpCommand::Auth { mechanism, initial })
    } else if is("STARTTLS") {
        alone(SmtpCommand::StartTls)
    } else if is("RSET") {
        alone(SmtpCommand::Rset)
    } else if is("QUIT") {
        alone(SmtpCommand::Quit)
    } else if is("NOOP") {
        Ok(SmtpCommand::Noop)
    } else if is("VRFY") {
        Ok(SmtpCommand::Vrfy)
    } else if is("EXPN") {
        Ok(SmtpCommand::Expn)
    } else if is("PROXY") {
        // The listener reads the header of a known proxy before the session begins.
        Err(SmtpCommandError { reply: NO_PROXY, is_fatal: true })
    } else if is("XCLIENT") {
        xclient(argument).map_err(SmtpCommandError::from)
    } else if is("HELP") {
        Ok(SmtpCommand::Help)
    } else {
        Err(UNKNOWN.into())
    }
}

/// Reads the attributes of XCLIENT, as Postfix documents them. Only the address is used; a name proves nothing.
fn xclient(argument: &str) -> Result<SmtpCommand<'_>, SubmissionReply> {
    const FORM: SubmissionReply = SubmissionReply::new(
        501,
        "5.5.4",
        "write XCLIENT ADDR=address, and NAME, PORT, PROTO, HELO as offered",
    );
    const UNKNOWN_ADDRESSES: [&str; 2] = ["[UNAVAILABLE]", "[TEMPUNAVAIL]"];
    const OTHERS: [&str; 6] = ["NAME", "PORT", "PROTO", "HELO", "DESTADDR", "DESTPORT"];
    let mut client = NamedClient::Nobody;
    for attribute in argument.split(' ').filter(|attribute| !attribute.is_empty()) {
        let (name, value) = attribute.split_once('=').ok_or(FORM)?;
        if name.eq_ignore_ascii_case("ADDR") {
            let bare = value.get(5..).filter(|_| value[..5.min(value.len())].eq_ignore_ascii_case("IPV6:"));
            client = match bare.unwrap_or(value).parse::<IpAddr>() {
                Ok(address) => NamedClient::Address(address.to_canonical()),
                Err(_) if UNKNOWN_ADDRESSES.iter().any(|known| value.eq_ignore_ascii_case(known)) => {
                    NamedClient::Unknown
                }
                Err(_) => return Err(FORM),
            };
        } else if !OTHERS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Err(FORM);
        }
    }
    match argument.is_empty() {
        true => Err(FORM),
        false => Ok(SmtpCommand::Xclient(client)),
    }
}

fn mail(argument: &str) -> Result<SmtpCommand<'_>, SubmissionReply> {
    const FORM: SubmissionReply =
        SubmissionReply::new(501, "5.5.4", "write MAIL FROM:<address>, or <> for none");
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
                const SIZE: SubmissionReply =
                    SubmissionReply::new(501, "5.5.4", "SIZE must be a number of bytes");
                size = Some(declared_size(value).ok_or(SIZE)?);
            }
            Some(value) if is("BODY") => {
                if !["7BIT", "8BITMIME"].iter().any(|kind| value.eq_ignore_ascii_case(kind)) {
                    return Err(SubmissionReply::new(501, "5.5.4", "BODY must be 7BIT or 8BITMIME"));
                }
            }
            Some(value) if is("RET") => once(&mut ret, value)?,
            Some(value) if is("ENVID") => once(&mut envid, value)?,
            // RFC 4954 lets any client send it, and does not require the server to trust it.
            Some(_) if is("AUTH") => {}
            None if is("SMTPUTF8") => smtputf8 = true,
            _ => return Err(NO_PARAMETER),
        }
    }
    if from.as_ref().is_some_and(EmailAddress::needs_smtputf8) && !smtputf8 {
        return Err(NEEDS_SMTPUTF8);
    }
    Ok(SmtpCommand::Mail { from, size, smtputf8, ret, envid })
}

/// The parameters after a path, each with its value.
fn parameters_of(parameters: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    parameters.split(' ').filter(|parameter| !parameter.is_empty()).map(|parameter| {
        match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        }
    })
}

/// Parses a DSN parameter, which may occur once.
fn once<T: std::str::FromStr<Err = DsnError>>(
    slot: &mut Option<T>,
    value: &str,
) -> Result<(), SubmissionReply> {
    let parsed = value
        .parse()
        .map_err(|error: DsnError| SubmissionReply::with_text(501, "5.5.4", &error.to_string()))?;
    match slot.replace(parsed) {
        None => Ok(()),
        Some(_) => Err(SubmissionReply::new(501, "5.5.4", "a parameter is there more than once")),
    }
}

/// The reply to an address outside ASCII in a mail without SMTPUTF8.
pub(super) const NEEDS_SMTPUTF8: SubmissionReply =
    SubmissionReply::new(553, "5.6.7", "an address outside ASCII needs the parameter SMTPUTF8 of MAIL");

fn rcpt(argument: &str) -> Result<SmtpCommand<'_>, SubmissionReply> {
    const FORM: SubmissionReply = SubmissionReply::new(501, "5.5.4", "write RCPT TO:<address>");
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
    Ok(SmtpCommand::Rcpt { to, dsn })
}

fn bdat(argument: &str) -> Result<SmtpCommand<'_>, SmtpCommandError> {
    let (octets, rest) = argument.split_once(' ').unwrap_or((argument, ""));
    let last = rest.trim_start_matches(' ');
    match number(octets) {
        Some(octets) if last.is_empty() || last.eq_ignore_ascii_case("LAST") => {
            Ok(SmtpCommand::Bdat { octets, last: !last.is_empty() })
        }
        // The chunk arrives anyway, and its length is unknown.
        _ => Err(SmtpCommandError {
            reply: SubmissionReply::new(501, "5.5.4", "write BDAT size or BDAT size LAST"),
            is_fatal: true,
        }),
    }
}

/// Splits the argument after the keyword into the path, in angle brackets or up to a space, and the rest.
fn path<'a>(argument: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (start, rest) = argument.split_at_checked(keyword.len())?;
    if !start.eq_ignore_ascii_case(keyword) {
        return None;
    }
    // A space here is wrong but common, and cannot be misread.
    let rest = rest.trim_start_matches(' ');
    let Some(rest) = rest.strip_prefix('<') else {
        let (path, parameters) = rest.split_once(' ').unwrap_or((rest, ""));
        // The null sender needs brackets, and a single bracket is a mistake.
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

/// The address of a path, without its source route (RFC 5321, appendix C).
fn address(path: &str) -> Result<EmailAddress, postway_domain::address::AddressError> {
    let address = match path.split_once(':') {
        Some((route, address)) if route.starts_with('@') => address,
        _ => path,
    };
    address.parse()
}

fn bad_address(status: &'static str, error: &postway_domain::address::AddressError) -> SubmissionReply {
    SubmissionReply::with_text(553, status, &error.to_string())
}

fn number(text: &str) -> Option<u64> {
    if is_number(text) { text.parse().ok() } else { None }
}

/// The declared size. RFC 1870 allows larger numbers than fit here: such a mail is too large, but the number
/// is valid.
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
            Ok(SmtpCommand::Mail { from, size, smtputf8, ret: None, envid: None })
        };
        let rcpt = |to: &str| {
            let to = RecipientPath::Address(to.parse().unwrap());
            Ok(SmtpCommand::Rcpt { to, dsn: RecipientDsn::default() })
        };
        let postmaster =
            || Ok(SmtpCommand::Rcpt { to: RecipientPath::Postmaster, dsn: RecipientDsn::default() });
        let verp = "announce-bounces+some.long.user.name=some-long-company.example.net@lists.example.com";
        let (mail_verp, rcpt_verp) = (format!("MAIL FROM:<{verp}>"), format!("RCPT TO:<{verp}>"));
        for (line, expected) in [
            ("ehlo me", Ok(SmtpCommand::Ehlo("me"))),
            ("HELO  [192.0.2.1] ", Ok(SmtpCommand::Helo("[192.0.2.1]"))),
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
            ("EXPN list", Ok(SmtpCommand::Expn)),
            ("MAIL FROM:<>", mail("", None, false)),
            ("MAIL FROM:<> SIZE=12 BODY=8bitmime AUTH=<>", mail("", Some(12), false)),
            ("MAIL FROM:<> SIZE=99999999999999999999", mail("", Some(u64::MAX), false)),
            ("MAIL FROM:<é@example.com> SMTPUTF8", mail("é@example.com", None, true)),
            ("RCPT TO:<@a.example,@b.example:c@example.net>", rcpt("c@example.net")),
            (r#"RCPT TO:<"a>b"@example.net>"#, rcpt(r#""a>b"@example.net"#)),
            ("BDAT 86 last", Ok(SmtpCommand::Bdat { octets: 86, last: true })),
            ("BDAT 0", Ok(SmtpCommand::Bdat { octets: 0, last: false })),
            ("AUTH PLAIN AGEAYg==", Ok(SmtpCommand::Auth { mechanism: "PLAIN", initial: Some("AGEAYg==") })),
            ("AUTH login", Ok(SmtpCommand::Auth { mechanism: "login", initial: None })),
            ("NOOP anything", Ok(SmtpCommand::Noop)),
            ("data", Ok(SmtpCommand::Data)),
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
        let SmtpCommand::Mail { ret: Some(DsnReturn::Headers), envid: Some(envid), .. } = mail else {
            panic!("{mail:?}")
        };
        assert_eq!(envid.as_str(), "QQ+2B1");
        let rcpt = parse(b"RCPT TO:<b@example.net> NOTIFY=success,delay ORCPT=rfc822;b@example.net").unwrap();
        let SmtpCommand::Rcpt { dsn, .. } = rcpt else { panic!("{rcpt:?}") };
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
