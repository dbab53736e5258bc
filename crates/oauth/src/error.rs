//! Why there is no token.

use std::{error::Error, fmt, time::Duration};

use postway_net::http::HttpError;

/// The longest text of a server that an error repeats, in characters.
const WORDS_MAX: usize = 300;

/// Why there is no token. Holds the server's words and no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// Whose fault it is.
    pub kind: TokenErrorKind,
    message: String,
    /// How long the server asked to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// Whose fault it is that there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenErrorKind {
    /// The server refuses: the grant must change, or a person must consent again.
    Refused,
    /// The server, or the way to it, is out of order: waiting may help.
    Unavailable,
    /// The grant cannot be used as it is set up.
    Settings,
}

impl TokenError {
    pub(crate) fn new(kind: TokenErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(TokenErrorKind::Unavailable, message)
    }

    pub(crate) fn settings(message: impl Into<String>) -> Self {
        Self::new(TokenErrorKind::Settings, message)
    }

    pub(crate) fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// True when waiting may help.
    pub fn is_transient(&self) -> bool {
        self.kind == TokenErrorKind::Unavailable
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for TokenError {}

impl From<HttpError> for TokenError {
    fn from(error: HttpError) -> Self {
        let kind = match error.is_transient() {
            true => TokenErrorKind::Unavailable,
            false => TokenErrorKind::Settings,
        };
        Self::new(kind, format!("no token: {error}"))
    }
}

/// A server's words, fit for one line of an error: bounded, without control characters.
pub(crate) fn shorten_text(text: &str) -> String {
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(WORDS_MAX).collect()
}
