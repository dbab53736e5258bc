//! What can go wrong with a mailbox, and whose turn it is to act.

use std::io;

use postway_net::NetError;
use thiserror::Error;

/// The most characters of a server's own words that an error repeats.
pub(super) const WORDS_MAX: usize = 200;

/// A mailbox could not be used. Reads as a sentence for whoever set it up; holds no credentials.
#[derive(Debug, Error)]
#[error("mailbox at {server}: {fault}")]
pub struct MailboxError {
    /// Host and port of the server.
    pub server: String,
    /// What went wrong.
    pub fault: Fault,
}

impl MailboxError {
    /// True when the set-up is at fault (name, TLS, login, folder), so that waiting alone cannot help.
    pub fn is_setup(&self) -> bool {
        match &self.fault {
            // A proxy that refuses our credentials is reported as a connection denied.
            Fault::Net(error) => error.is_setup() || error.kind() == io::ErrorKind::PermissionDenied,
            Fault::NoStarttls
            | Fault::Preauthenticated
            | Fault::NotImap(_)
            | Fault::LoginUnsupported(_)
            | Fault::LoginRefused(_)
            | Fault::Unwritable(_)
            | Fault::NoFolder { .. } => true,
            Fault::Io(_)
            | Fault::Closed
            | Fault::Timeout(_)
            | Fault::Bye(_)
            | Fault::StarttlsInjected
            | Fault::Refused { .. }
            | Fault::TooMuch { .. }
            | Fault::Garbled(_)
            | Fault::OutOfStep => false,
        }
    }

    /// True when the session can go on: the server understood and said no, or was not even asked.
    pub fn leaves_session_usable(&self) -> bool {
        self.fault.is_refusal()
    }
}

/// What went wrong with a mailbox.
#[derive(Debug, Error)]
pub enum Fault {
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
    /// The server said goodbye, with these words.
    #[error("the server ended the session: {0}")]
    Bye(String),
    /// TLS is wanted and not offered.
    #[error("the server does not offer STARTTLS; change the mailbox's TLS mode or its port")]
    NoStarttls,
    /// Somebody put plain text where TLS was to begin.
    #[error("plain text followed the answer to STARTTLS; the connection was dropped")]
    StarttlsInjected,
    /// The server takes us for somebody already signed in.
    #[error("the server greets us as already signed in, so nobody knows as whom; check the port")]
    Preauthenticated,
    /// Something else answers there.
    #[error("this is no IMAP server, it says {0:?}; check host, port and TLS mode")]
    NotImap(String),
    /// The server does not take this kind of login.
    #[error("{0}")]
    LoginUnsupported(&'static str),
    /// The server refuses user name and password or token.
    #[error("login refused: {0}; check user name and password or token")]
    LoginRefused(String),
    /// A value cannot be sent at all.
    #[error("{0}")]
    Unwritable(&'static str),
    /// The folder is not there, or not ours.
    #[error("folder {folder:?} cannot be used: {words}; check its name and hierarchy separator")]
    NoFolder {
        /// The folder asked for.
        folder: String,
        /// The server's words.
        words: String,
    },
    /// The server understood and refused.
    #[error("the server refused {what}: {words}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// The server's words.
        words: String,
    },
    /// The server sends more than can be wanted.
    #[error("the server sent {what} of more than {max}; the connection was dropped")]
    TooMuch {
        /// What was too much.
        what: &'static str,
        /// The bound.
        max: u64,
    },
    /// The server's words make no sense.
    #[error("the server's answer makes no sense: {0}")]
    Garbled(&'static str),
    /// An earlier command did not end; the session cannot be used.
    #[error("an earlier command was broken off; open the mailbox again")]
    OutOfStep,
}

impl Fault {
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NoFolder { .. } | Self::Unwritable(_))
    }

    pub(super) fn at(self, server: &str) -> MailboxError {
        MailboxError { server: server.to_owned(), fault: self }
    }
}

/// A server's words, fit for one line of an error: bounded, and without control characters.
pub(super) fn words(text: &[u8]) -> String {
    // A character has at most four octets; what is behind is not even decoded.
    let text = String::from_utf8_lossy(&text[..text.len().min(WORDS_MAX * 4)]);
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let words: String = plain.take(WORDS_MAX).collect();
    if words.is_empty() { "(no reason given)".to_owned() } else { words }
}
