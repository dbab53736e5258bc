//! Why a file could not be had, and whether to try again.

use std::time::Duration;

use postway_net::http::HttpError;
use thiserror::Error;

/// Why nothing more is fetched for now.
pub(super) const NO_MEMORY: &str = "too much is being fetched at once";

/// A file of a message could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub(crate) struct FetchError {
    /// The field at fault, as the request names it: `attachments[1].url`.
    pub field: String,
    /// What is wrong and what to do. Holds no credential, and of a URL the host alone.
    pub message: String,
    /// Whether the same fetch may work later. What is not transient makes the message invalid.
    pub transient: bool,
    /// Whether it is only that too much is fetched at once here.
    pub is_busy: bool,
    /// How long the source asked to wait.
    pub retry_after: Option<Duration>,
}

/// The same, before it is known which field it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub message: String,
    pub transient: bool,
    pub is_busy: bool,
    pub retry_after: Option<Duration>,
    /// Whether it is this message that has no room, so that another message might have fared better.
    pub is_of_message: bool,
}

impl Fault {
    pub(super) fn permanent(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, transient: false, is_busy: false, retry_after: None, is_of_message: false }
    }

    pub(super) fn transient(message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::permanent(message) }
    }

    /// The files of a message are larger than they may be together.
    pub(super) fn no_room(bytes_max: usize) -> Self {
        let message = format!("the files of this message are larger than {bytes_max} bytes together");
        Self { is_of_message: true, ..Self::permanent(message) }
    }

    /// There is no memory left for what is being fetched. Others that wait for the same file may have some.
    pub(super) fn no_memory() -> Self {
        Self { is_of_message: true, is_busy: true, ..Self::transient(NO_MEMORY) }
    }

    pub(super) fn at(self, field: String) -> FetchError {
        let Self { message, transient, is_busy, retry_after, is_of_message: _ } = self;
        FetchError { field, message, transient, is_busy, retry_after }
    }
}

impl From<HttpError> for Fault {
    fn from(error: HttpError) -> Self {
        Self {
            transient: error.is_transient(),
            retry_after: error.retry_after(),
            ..Self::permanent(error.to_string())
        }
    }
}
