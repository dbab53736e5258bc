//! AUTH PLAIN (RFC 4616), LOGIN and SCRAM-SHA-256 (`scram`), as far as a server's side goes: what was shown or proven, not
//! whether it opens.

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::SecretString;

use super::{
    authenticator::SmtpCredentials,
    reply::Reply,
    scram::{ScramEnd, ScramExchange, ScramHello},
};

/// What the next line will be.
#[derive(Debug)]
pub(super) enum Awaited {
    /// All of PLAIN.
    Plain,
    /// The name of LOGIN.
    Name,
    /// The password of LOGIN.
    Password {
        /// The name that came before.
        username: String,
    },
    /// The first message of SCRAM.
    ScramHello,
    /// The proof of SCRAM.
    ScramProof(ScramExchange),
    /// Nothing any more: the client has heard the server's proof.
    ScramEnd,
}

/// What follows from a line.
#[derive(Debug)]
pub(super) enum Turn {
    /// Something is asked for.
    Ask(Awaited, Reply),
    /// A key was shown, or a proof that does not hold.
    Shown(SmtpCredentials),
    /// What there is for a name has to be looked up.
    LookUp(ScramHello),
    /// A key was proven; where it opens, these words are said before the end.
    Proven(SmtpCredentials, Reply),
    /// The client has heard the server's proof.
    Over,
    /// It went wrong, or was called off.
    Failed(Reply),
}

const ASK_NOTHING: Reply = Reply::new(334, "", "");
/// `Username:` and `Password:`.
const ASK_NAME: Reply = Reply::new(334, "", "VXNlcm5hbWU6");
const ASK_PASSWORD: Reply = Reply::new(334, "", "UGFzc3dvcmQ6");
const UNKNOWN: Reply = Reply::new(504, "5.5.4", "use AUTH PLAIN, AUTH LOGIN or AUTH SCRAM-SHA-256");
const CANCELLED: Reply = Reply::new(501, "5.7.0", "the login was called off");
const UNREADABLE: Reply = Reply::new(501, "5.5.2", "this is not base64 of what the mechanism wants");

/// Begins with the command.
pub(super) fn begin(mechanism: &str, initial: Option<&str>) -> Turn {
    let awaited = if mechanism.eq_ignore_ascii_case("PLAIN") {
        Awaited::Plain
    } else if mechanism.eq_ignore_ascii_case("LOGIN") {
        Awaited::Name
    } else if mechanism.eq_ignore_ascii_case("SCRAM-SHA-256") {
        Awaited::ScramHello
    } else {
        return Turn::Failed(UNKNOWN);
    };
    match (initial, awaited) {
        // An initial response of no octets (RFC 4954, 4).
        (Some("="), awaited) => go_on(awaited, b""),
        (Some(initial), awaited) => go_on(awaited, initial.as_bytes()),
        (None, Awaited::Name) => Turn::Ask(Awaited::Name, ASK_NAME),
        (None, awaited) => Turn::Ask(awaited, ASK_NOTHING),
    }
}

/// Goes on with an answer.
pub(super) fn go_on(awaited: Awaited, line: &[u8]) -> Turn {
    if line == b"*" {
        return Turn::Failed(CANCELLED);
    }
    let Some(text) = BASE64_STANDARD.decode(line).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return Turn::Failed(UNREADABLE);
    };
    match awaited {
        Awaited::Plain => match text.split('\0').collect::<Vec<_>>()[..] {
            // Nobody speaks for another here.
            [as_whom, username, key] if as_whom.is_empty() || as_whom == username => shown(username, key),
            _ => Turn::Failed(UNREADABLE),
        },
        Awaited::Name => Turn::Ask(Awaited::Password { username: text }, ASK_PASSWORD),
        Awaited::Password { username } => shown(&username, &text),
        Awaited::ScramHello => ScramHello::read(&text).map_or(Turn::Failed(UNREADABLE), Turn::LookUp),
        Awaited::ScramProof(exchange) => match exchange.finish(&text) {
            Some(ScramEnd::Proven(key, words)) => {
                Turn::Proven(SmtpCredentials::Proven(key), challenge(&words))
            }
            Some(ScramEnd::Unproven) => Turn::Shown(SmtpCredentials::Unproven),
            None => Turn::Failed(UNREADABLE),
        },
        Awaited::ScramEnd if text.is_empty() => Turn::Over,
        Awaited::ScramEnd => Turn::Failed(UNREADABLE),
    }
}

/// Something that the client is told, and answers.
pub(super) fn challenge(words: &str) -> Reply {
    // Not cut, as words for people are: the client must be able to read it.
    Reply { code: 334, status: "", text: BASE64_STANDARD.encode(words).into() }
}

fn shown(username: &str, key: &str) -> Turn {
    Turn::Shown(SmtpCredentials::Key { username: username.to_owned(), key: SecretString::from(key) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn base64(text: &str) -> String {
        BASE64_STANDARD.encode(text)
    }

    fn opened(turn: Turn) -> (String, String) {
        match turn {
            Turn::Shown(SmtpCredentials::Key { username, key }) => (username, key.expose_secret().to_owned()),
            other => panic!("{other:?}"),
        }
    }

    fn asked(turn: Turn, reply: &Reply) -> Awaited {
        match turn {
            Turn::Ask(awaited, said) if said == *reply => awaited,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_is_shown_at_once_or_when_asked_for() {
        let expected = ("shop".to_owned(), "pw_x".to_owned());
        assert_eq!(opened(begin("plain", Some(&base64("\0shop\0pw_x")))), expected);
        assert_eq!(opened(begin("PLAIN", Some(&base64("shop\0shop\0pw_x")))), expected);
        let awaited = asked(begin("PLAIN", None), &ASK_NOTHING);
        assert_eq!(opened(go_on(awaited, base64("\0shop\0pw_x").as_bytes())), expected);
        for initial in [None, Some(base64("shop"))] {
            let mut turn = begin("LOGIN", initial.as_deref());
            if initial.is_none() {
                turn = go_on(asked(turn, &ASK_NAME), base64("shop").as_bytes());
            }
            let awaited = asked(turn, &ASK_PASSWORD);
            assert_eq!(opened(go_on(awaited, base64("pw_x").as_bytes())), expected);
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let code = |turn| match turn {
            Turn::Failed(reply) => reply.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(begin("CRAM-MD5", None)), 504);
        assert_eq!(code(begin("SCRAM-SHA-256-PLUS", None)), 504);
        assert_eq!(code(begin("SCRAM-SHA-256", Some(&base64("p=tls-exporter,,n=a,r=x")))), 501);
        assert_eq!(code(go_on(Awaited::ScramEnd, base64("x").as_bytes())), 501);
        assert_eq!(code(go_on(Awaited::Plain, b"*")), 501);
        for initial in ["!", "=", &base64("a"), &base64("\0a"), &base64("b\0a\0k"), &base64("\0a\0b\0c")] {
            assert_eq!(code(begin("PLAIN", Some(initial))), 501, "{initial}");
        }
    }
}
