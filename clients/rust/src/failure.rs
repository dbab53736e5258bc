//! What may go wrong with a call.

use std::time::Duration;

use serde::Deserialize;

/// Why a call has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// The gateway refused.
    #[error("{0}")]
    Refused(Box<RefusedCall>),
    /// The gateway could not be reached, or the connection was lost before its answer.
    #[error("the gateway did not answer: {source}")]
    NoAnswer {
        /// What happened to the connection.
        source: reqwest::Error,
        /// Whether the request may have been carried out all the same.
        may_have_happened: bool,
    },
    /// An answer came that the gateway does not give: something else listens there, or stands in between.
    #[error("{status}: the answer is not the gateway's: {reason}")]
    UnreadableAnswer {
        /// The answer's status.
        status: u16,
        /// What is wrong with it.
        reason: String,
    },
    /// The address, the key or an id cannot be used.
    #[error("{0}")]
    WrongArgument(String),
}

impl CallFailure {
    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&RefusedCall> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// What the gateway said no with.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status} {code}: {message}")]
pub struct RefusedCall {
    /// The answer's status.
    pub status: u16,
    /// A word for programs: `validation_error`, `not_found`, `conflict` and so on.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// The request in the gateway's log.
    pub request_id: Option<String>,
    /// Every field at fault.
    pub details: Vec<FieldFault>,
    /// How long to wait before a repeat.
    pub retry_after: Option<Duration>,
}

/// A field at fault.
#[derive(Clone, Debug, Deserialize)]
pub struct FieldFault {
    /// Which one.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

#[derive(Deserialize)]
struct RefusalAnswer {
    error: RefusalDetails,
}

#[derive(Deserialize)]
struct RefusalDetails {
    code: String,
    message: String,
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    details: Vec<FieldFault>,
}

/// The failure that an answer with this status is.
pub(crate) fn failure_of(status: u16, retry_after: Option<Duration>, body: &[u8]) -> CallFailure {
    let refused = |error: RefusalDetails| {
        let RefusalDetails { code, message, request_id, details } = error;
        let refusal = RefusedCall { status, code, message, request_id, details, retry_after };
        CallFailure::Refused(Box::new(refusal))
    };
    match serde_json::from_slice::<RefusalAnswer>(body) {
        Ok(answer) => refused(answer.error),
        // A proxy in between says so in words of its own.
        Err(_) if is_worth_a_repeat(status, true) => {
            let message = "the answer is not the gateway's".to_owned();
            refused(RefusalDetails {
                code: "unavailable".to_owned(),
                message,
                request_id: None,
                details: Vec::new(),
            })
        }
        Err(error) => CallFailure::UnreadableAnswer { status, reason: error.to_string() },
    }
}

/// Whether the call may be made again. Where it is not known if the request was carried out, it must be one
/// that may be done twice.
pub(crate) fn is_worth_a_repeat(status: u16, repeatable: bool) -> bool {
    matches!(status, 429 | 503) || (repeatable && matches!(status, 500 | 502 | 504))
}
