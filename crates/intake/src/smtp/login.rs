//! AUTH PLAIN (RFC 4616) and AUTH LOGIN, as far as a server's side goes: what was shown, not whether it opens.

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::SecretString;

use super::{gatekeeper::Credentials, reply::Reply};

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
}

/// What follows from a line.
#[derive(Debug)]
pub(super) enum Turn {
    /// Something is asked for.
    Ask(Awaited, Reply),
    /// A key was shown.
    Shown(Credentials),
    /// It went wrong, or was called off.
    Failed(Reply),
}

const ASK_PLAIN: Reply = Reply::new(334, "", "");
/// `Username:` and `Password:`.
const ASK_NAME: Reply = Reply::new(334, "", "VXNlcm5hbWU6");
const ASK_PASSWORD: Reply = Reply::new(334, "", "UGFzc3dvcmQ6");
const UNKNOWN: Reply = Reply::new(504, "5.5.4", "use AUTH PLAIN or AUTH LOGIN");
const CANCELLED: Reply = Reply::new(501, "5.7.0", "the login was called off");
const UNREADABLE: Reply = Reply::new(501, "5.5.2", "this is not base64 of what the mechanism wants");

/// Begins with the command.
pub(super) fn begin(mechanism: &str, initial: Option<&str>) -> Turn {
    let awaited = if mechanism.eq_ignore_ascii_case("PLAIN") {
        Awaited::Plain
    } else if mechanism.eq_ignore_ascii_case("LOGIN") {
        Awaited::Name
    } else {
        return Turn::Failed(UNKNOWN);
    };
    match (initial, awaited) {
        // An initial response of no octets (RFC 4954, 4).
        (Some("="), awaited) => go_on(awaited, b""),
        (Some(initial), awaited) => go_on(awaited, initial.as_bytes()),
        (None, Awaited::Plain) => Turn::Ask(Awaited::Plain, ASK_PLAIN),
        (None, awaited) => Turn::Ask(awaited, ASK_NAME),
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
    }
}

fn shown(username: &str, key: &str) -> Turn {
    Turn::Shown(Credentials { username: username.to_owned(), key: SecretString::from(key) })
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
            Turn::Shown(shown) => (shown.username.clone(), shown.key.expose_secret().to_owned()),
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
        let awaited = asked(begin("PLAIN", None), &ASK_PLAIN);
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
        assert_eq!(code(go_on(Awaited::Plain, b"*")), 501);
        for initial in ["!", "=", &base64("a"), &base64("\0a"), &base64("b\0a\0k"), &base64("\0a\0b\0c")] {
            assert_eq!(code(begin("PLAIN", Some(initial))), 501, "{initial}");
        }
    }
}
