//! Why a file could not be fetched, and whether to try again.

use std::time::Duration;

use postway_net::http::HttpError;
use thiserror::Error;

/// The reason when the memory for fetching is used up.
pub(super) const NO_MEMORY: &str = "too much is being fetched at once";

/// A file of a message could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub(crate) struct FetchError {
    /// The field at fault, as the request names it: `attachments[1].url`.
    pub field: String,
    /// The fault, and what to do about it. Contains no credential, and only the host of a URL.
    pub message: String,
    /// Whether the same fetch may work later. A permanent error makes the message invalid.
    pub transient: bool,
    /// Whether the only reason is that too much is being fetched at once.
    pub is_busy: bool,
    /// How long the source asked to wait.
    pub retry_after: Option<Duration>,
}

/// A fetch error before its field is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchFault {
    pub message: String,
    pub transient: bool,
    pub is_busy: bool,
    pub retry_after: Option<Duration>,
    /// Whether the limit of this message is the reason, so that another message might have succeeded.
    pub is_of_message: bool,
}

impl FetchFault {
    pub(super) fn permanent(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, transient: false, is_busy: false, retry_after: None, is_of_message: false }
    }

    pub(super) fn transient(message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::permanent(message) }
    }

    /// The files of a message exceed their limit together.
    pub(super) fn too_large_together(bytes_max: usize) -> Self {
        let message = format!("the files of this message are larger than {bytes_max} bytes together");
        Self { is_of_message: true, ..Self::permanent(message) }
    }

    /// The memory for fetching is used up. Other messages that wait for the same file may have some.
    pub(super) fn no_memory() -> Self {
        Self { is_of_message: true, is_busy: true, ..Self::transient(NO_MEMORY) }
    }

    pub(super) fn at(self, field: String) -> FetchError {
        let Self { message, transient, is_busy, retry_after, is_of_message: _ } = self;
        FetchError { field, message, transient, is_busy, retry_after }
    }
}

impl From<HttpError> for FetchFault {
    fn from(error: HttpError) -> Self {
        Self {
            transient: error.is_transient(),
            retry_after: error.retry_after(),
            ..Self::permanent(error.to_string())
        }
    }
}
