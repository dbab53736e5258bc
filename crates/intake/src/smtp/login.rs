//! The server side of AUTH PLAIN (RFC 4616), LOGIN and SCRAM-SHA-256 (`scram`): reads what was shown or
//! proven, and does not decide whether it is valid.

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::SecretString;

use super::{
    authenticator::SmtpCredentials,
    reply::SubmissionReply,
    scram::{ScramEnd, ScramExchange, ScramHello},
};

/// What the next line must be.
#[derive(Debug)]
pub(super) enum LoginStage {
    /// The response of PLAIN.
    Plain,
    /// The user name of LOGIN.
    Name,
    /// The password of LOGIN.
    Password {
        /// The user name.
        username: String,
    },
    /// The first message of SCRAM.
    ScramHello,
    /// The proof of SCRAM.
    ScramProof(ScramExchange),
    /// An empty line: the client has received the server's proof.
    ScramEnd,
}

/// The result of a line.
#[derive(Debug)]
pub(super) enum LoginTurn {
    /// The client must send more.
    Ask(LoginStage, SubmissionReply),
    /// A key was shown, or a proof failed.
    Shown(SmtpCredentials),
    /// The keys of a user name must be looked up.
    LookUp(ScramHello),
    /// A key was proven; if it is valid, this reply is sent before the end.
    Proven(SmtpCredentials, SubmissionReply),
    /// The client has received the server's proof.
    Over,
    /// The login failed or was cancelled.
    Failed(SubmissionReply),
}

const ASK_NOTHING: SubmissionReply = SubmissionReply::new(334, "", "");
/// `Username:` and `Password:`.
const ASK_NAME: SubmissionReply = SubmissionReply::new(334, "", "VXNlcm5hbWU6");
const ASK_PASSWORD: SubmissionReply = SubmissionReply::new(334, "", "UGFzc3dvcmQ6");
const UNKNOWN: SubmissionReply =
    SubmissionReply::new(504, "5.5.4", "use AUTH PLAIN, AUTH LOGIN or AUTH SCRAM-SHA-256");
const CANCELLED: SubmissionReply = SubmissionReply::new(501, "5.7.0", "the login was called off");
const UNREADABLE: SubmissionReply =
    SubmissionReply::new(501, "5.5.2", "this is not base64 of what the mechanism wants");

/// Starts a login with the AUTH command.
pub(super) fn begin(mechanism: &str, initial: Option<&str>) -> LoginTurn {
    let awaited = if mechanism.eq_ignore_ascii_case("PLAIN") {
        LoginStage::Plain
    } else if mechanism.eq_ignore_ascii_case("LOGIN") {
        LoginStage::Name
    } else if mechanism.eq_ignore_ascii_case("SCRAM-SHA-256") {
        LoginStage::ScramHello
    } else {
        return LoginTurn::Failed(UNKNOWN);
    };
    match (initial, awaited) {
        // An initial response of no octets (RFC 4954, 4).
        (Some("="), awaited) => resume(awaited, b""),
        (Some(initial), awaited) => resume(awaited, initial.as_bytes()),
        (None, LoginStage::Name) => LoginTurn::Ask(LoginStage::Name, ASK_NAME),
        (None, awaited) => LoginTurn::Ask(awaited, ASK_NOTHING),
    }
}

/// Continues a login with a line of the client.
pub(super) fn resume(awaited: LoginStage, line: &[u8]) -> LoginTurn {
    if line == b"*" {
        return LoginTurn::Failed(CANCELLED);
    }
    let Some(text) = BASE64_STANDARD.decode(line).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return LoginTurn::Failed(UNREADABLE);
    };
    match awaited {
        LoginStage::Plain => match text.split('\0').collect::<Vec<_>>()[..] {
            // A client may not act for another user.
            [as_whom, username, key] if as_whom.is_empty() || as_whom == username => shown(username, key),
            _ => LoginTurn::Failed(UNREADABLE),
        },
        LoginStage::Name => LoginTurn::Ask(LoginStage::Password { username: text }, ASK_PASSWORD),
        LoginStage::Password { username } => shown(&username, &text),
        LoginStage::ScramHello => {
            ScramHello::read(&text).map_or(LoginTurn::Failed(UNREADABLE), LoginTurn::LookUp)
        }
        LoginStage::ScramProof(exchange) => match exchange.finish(&text) {
            Some(ScramEnd::Proven(key, words)) => {
                LoginTurn::Proven(SmtpCredentials::Proven(key), challenge(&words))
            }
            Some(ScramEnd::Unproven) => LoginTurn::Shown(SmtpCredentials::Unproven),
            None => LoginTurn::Failed(UNREADABLE),
        },
        LoginStage::ScramEnd if text.is_empty() => LoginTurn::Over,
        LoginStage::ScramEnd => LoginTurn::Failed(UNREADABLE),
    }
}

/// A challenge that the client must answer.
pub(super) fn challenge(words: &str) -> SubmissionReply {
    // A challenge is not truncated like text for people: the client must be able to decode it.
    SubmissionReply { code: 334, status: "", text: BASE64_STANDARD.encode(words).into() }
}

fn shown(username: &str, key: &str) -> LoginTurn {
    LoginTurn::Shown(SmtpCredentials::Key { username: username.to_owned(), key: SecretString::from(key) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn base64(text: &str) -> String {
        BASE64_STANDARD.encode(text)
    }

    fn opened(turn: LoginTurn) -> (String, String) {
        match turn {
            LoginTurn::Shown(SmtpCredentials::Key { username, key }) => {
                (username, key.expose_secret().to_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    fn asked(turn: LoginTurn, reply: &SubmissionReply) -> LoginStage {
        match turn {
            LoginTurn::Ask(awaited, said) if said == *reply => awaited,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_is_shown_at_once_or_when_asked_for() {
        let expected = ("shop".to_owned(), "pw_x".to_owned());
        assert_eq!(opened(begin("plain", Some(&base64("\0shop\0pw_x")))), expected);
        assert_eq!(opened(begin("PLAIN", Some(&base64("shop\0shop\0pw_x")))), expected);
        let awaited = asked(begin("PLAIN", None), &ASK_NOTHING);
        assert_eq!(opened(resume(awaited, base64("\0shop\0pw_x").as_bytes())), expected);
        for initial in [None, Some(base64("shop"))] {
            let mut turn = begin("LOGIN", initial.as_deref());
            if initial.is_none() {
                turn = resume(asked(turn, &ASK_NAME), base64("shop").as_bytes());
            }
            let awaited = asked(turn, &ASK_PASSWORD);
            assert_eq!(opened(resume(awaited, base64("pw_x").as_bytes())), expected);
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let code = |turn| match turn {
            LoginTurn::Failed(reply) => reply.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(begin("CRAM-MD5", None)), 504);
        assert_eq!(code(begin("SCRAM-SHA-256-PLUS", None)), 504);
        assert_eq!(code(begin("SCRAM-SHA-256", Some(&base64("p=tls-exporter,,n=a,r=x")))), 501);
        assert_eq!(code(resume(LoginStage::ScramEnd, base64("x").as_bytes())), 501);
        assert_eq!(code(resume(LoginStage::Plain, b"*")), 501);
        for initial in ["!", "=", &base64("a"), &base64("\0a"), &base64("b\0a\0k"), &base64("\0a\0b\0c")] {
            assert_eq!(code(begin("PLAIN", Some(initial))), 501, "{initial}");
        }
    }
}
