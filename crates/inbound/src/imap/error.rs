//! The errors of a mailbox, and whether waiting or a change of settings helps.

use std::io;

use postway_net::NetError;
use thiserror::Error;

/// The most characters of a server's text that an error repeats.
pub(super) const WORDS_MAX: usize = 200;

/// A mailbox could not be used. The text is a sentence for the person who set the mailbox up, and contains no
/// credentials.
#[derive(Debug, Error)]
#[error("mailbox at {server}: {fault}")]
pub struct MailboxError {
    /// Host and port of the server.
    pub server: String,
    /// What went wrong.
    pub fault: ImapFault,
}

impl MailboxError {
    /// Whether the settings are at fault (name, TLS, login, folder), so that waiting alone cannot help.
    pub fn is_setup(&self) -> bool {
        match &self.fault {
            // A proxy that refuses the credentials is reported as a connection denied.
            ImapFault::Net(error) => error.is_setup() || error.kind() == io::ErrorKind::PermissionDenied,
            ImapFault::NoStarttls
            | ImapFault::Preauthenticated
            | ImapFault::NotImap(_)
            | ImapFault::LoginUnsupported(_)
            | ImapFault::LoginRefused(_)
            | ImapFault::Unwritable(_)
            | ImapFault::NoFolder { .. } => true,
            ImapFault::Io(_)
            | ImapFault::Closed
            | ImapFault::Timeout(_)
            | ImapFault::Bye(_)
            | ImapFault::StarttlsInjected
            | ImapFault::Refused { .. }
            | ImapFault::TooMuch { .. }
            | ImapFault::Garbled(_)
            | ImapFault::OutOfStep => false,
        }
    }

    /// Whether the session can go on: the server understood and refused, or was not asked at all.
    pub fn leaves_session_usable(&self) -> bool {
        self.fault.is_refusal()
    }
}

/// What went wrong with a mailbox.
#[derive(Debug, Error)]
pub enum ImapFault {
    /// No connection, or no TLS.
    #[error(transparent)]
    Net(NetError),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The deadline passed first.
    #[error("no {0} before the deadline")]
    Timeout(&'static str),
    /// The server ended the session, with this text.
    #[error("the server ended the session: {0}")]
    Bye(String),
    /// TLS is required, and the server does not offer it.
    #[error("the server does not offer STARTTLS; change the mailbox's TLS mode or its port")]
    NoStarttls,
    /// Plain text followed where TLS was to begin.
    #[error("plain text followed the answer to STARTTLS; the connection was dropped")]
    StarttlsInjected,
    /// The server greets with PREAUTH.
    #[error("the server greets us as already signed in, so nobody knows as whom; check the port")]
    Preauthenticated,
    /// Another protocol answers at this port.
    #[error("this is no IMAP server, it says {0:?}; check host, port and TLS mode")]
    NotImap(String),
    /// The server does not support this kind of login.
    #[error("{0}")]
    LoginUnsupported(&'static str),
    /// The server refuses the user name and the password or token.
    #[error("login refused: {0}; check user name and password or token")]
    LoginRefused(String),
    /// A value cannot be sent.
    #[error("{0}")]
    Unwritable(&'static str),
    /// The folder does not exist, or may not be used.
    #[error("folder {folder:?} cannot be used: {words}; check its name and hierarchy separator")]
    NoFolder {
        /// The name of the folder.
        folder: String,
        /// The server's text.
        words: String,
    },
    /// The server understood and refused.
    #[error("the server refused {what}: {words}")]
    Refused {
        /// The refused step.
        what: &'static str,
        /// The server's text.
        words: String,
    },
    /// The server sent more than the limit.
    #[error("the server sent {what} of more than {max}; the connection was dropped")]
    TooMuch {
        /// What exceeded the limit.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// The server's answer cannot be understood.
    #[error("the server's answer makes no sense: {0}")]
    Garbled(&'static str),
    /// An earlier command did not end; the session cannot be used.
    #[error("an earlier command was broken off; open the mailbox again")]
    OutOfStep,
}

impl ImapFault {
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NoFolder { .. } | Self::Unwritable(_))
    }

    pub(super) fn at(self, server: &str) -> MailboxError {
        MailboxError { server: server.to_owned(), fault: self }
    }
}

/// A server's text for one line of an error: bounded, without control characters.
pub(super) fn words(text: &[u8]) -> String {
    // A character has at most four octets; later octets are not decoded at all.
    let text = String::from_utf8_lossy(&text[..text.len().min(WORDS_MAX * 4)]);
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let words: String = plain.take(WORDS_MAX).collect();
    if words.is_empty() { "(no reason given)".to_owned() } else { words }
}
