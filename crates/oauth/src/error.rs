//! Errors of token requests.

use std::{error::Error, fmt, time::Duration};

use postway_net::http::HttpError;

/// The longest server text that an error contains, in characters.
const WORDS_MAX: usize = 300;

/// Why there is no token. It contains the server's text and no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// The cause of the failure.
    pub kind: TokenErrorKind,
    message: String,
    /// How long the server asked to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// The cause of a failure to get a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenErrorKind {
    /// The server refuses: the grant must change, or a person must consent again.
    Refused,
    /// The server cannot be reached or has an error: a retry may help.
    Unavailable,
    /// The settings of the grant are wrong.
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

    /// True if a retry may help.
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

/// Shortens a server's text to one line of an error: bounded, without control characters.
pub(crate) fn shorten_text(text: &str) -> String {
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(WORDS_MAX).collect()
}
