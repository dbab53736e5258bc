//! The words of the reference systems for our states and events, shared by the compatibility APIs and the
//! views.
//!
//! Total by construction: every function matches on all states or kinds, so that a new one does not compile
//! before it has its words.

mod history;

use serde_json::Value;

pub use self::history::{event_004, history_000, is_told_of, moves, sense, told_000};
use crate::{
    inbound::InboundState,
    message::{State, Wait},
};

/// How far the callbacks about a message's end have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// No callback was asked for, or one has not begun.
    No = 0,
    /// A callback is under way.
    Calling = 1,
    /// Every subscriber has acknowledged.
    Acknowledged = 2,
}

/// What else decides the status of a message in reference 001, besides its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Only its state.
    Plain = 0,
    /// Its tenant or batch is suspended.
    Suspended = 1,
    /// A bounce came.
    Bounced = 2,
    /// Every subscriber was notified of its end.
    Reported = 3,
    /// The time it waited for has passed.
    Due = 4,
}

/// What an event led to, if its kind does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Its kind says it, or it led to none of the following.
    Plain = 0,
    /// The message is sent.
    Sent = 1,
    /// The message has ended otherwise.
    Failed = 2,
    /// The message is tried again after an attempt.
    Retry = 3,
    /// The message waits to be prepared.
    Intake = 4,
}

/// Whether a message of reference 004 will be tried again after an attempt, if its state does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Its state says it, or no attempt was made.
    Plain = 0,
    /// An attempt was made and used no retry: the account is at fault, or the message is in doubt and will be
    /// resent.
    Again = 1,
}

impl Trial {
    /// The trial of a message in `state` after `attempts` attempts. `is_due` says whether it continues
    /// without an operator. The views compute the same in SQL.
    pub fn of(state: State, attempts: i64, is_due: bool) -> Self {
        match state {
            State::Ready if attempts > 0 => Self::Again,
            State::InDoubt if is_due => Self::Again,
            State::Accepted
            | State::Validating
            | State::Ready
            | State::Scheduled(_)
            | State::Sending { .. }
            | State::Sent
            | State::Failed
            | State::Invalid
            | State::InDoubt
            | State::Suppressed
            | State::Cancelled
            | State::Expired
            | State::Captured => Self::Plain,
        }
    }
}

/// The outcome of the messages that forwarded a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// The mail was not forwarded.
    Nothing = 0,
    /// All are sent.
    Sent = 1,
    /// One was deleted with its tombstone, so that its outcome is unknown.
    Unknown = 2,
    /// One is under way.
    Open = 3,
    /// One has ended otherwise.
    Failed = 4,
}

/// What `emails.status` of reference 000 says.
pub fn status_000(state: State, callback: Told) -> &'static str {
    match (state, callback) {
        (State::Accepted | State::Scheduled(Wait::Fetch), _) => "ACCEPTED",
        (State::Validating, _) => "INTAKING",
        (State::Ready | State::Scheduled(Wait::SendAt | Wait::Retry), _) => "READY",
        (State::Sending { .. } | State::InDoubt, _) => "PROCESSING",
        (State::Invalid, _) => "INVALID",
        (State::Sent, Told::No) => "SENT",
        (State::Sent, Told::Calling) => "CALLING-SENT-CALLBACK",
        (State::Sent, Told::Acknowledged) => "SENT-ACKNOWLEDGED",
        // The callback reports that it was not sent.
        (State::Captured, Told::No) => "CAPTURED",
        (
            State::Failed | State::Suppressed | State::Cancelled | State::Expired | State::Captured,
            callback,
        ) => match callback {
            Told::No => "FAILED",
            Told::Calling => "CALLING-FAILED-CALLBACK",
            Told::Acknowledged => "FAILED-ACKNOWLEDGED",
        },
    }
}

/// The state that a message of reference 001 is in.
pub fn status_001(state: State, standing: Standing) -> &'static str {
    match (state, standing) {
        (_, Standing::Suspended) => "SUSPENDED",
        (_, Standing::Bounced) => "BOUNCED",
        (_, Standing::Reported) => "REPORTED",
        (_, Standing::Due) => "PENDING",
        (State::Accepted | State::Validating | State::Ready, Standing::Plain) => "PENDING",
        (State::Scheduled(_), Standing::Plain) => "DEFERRED",
        (State::Sending { .. } | State::InDoubt, Standing::Plain) => "SENDING",
        (State::Sent, Standing::Plain) => "SENT",
        (State::Captured, Standing::Plain) => "CAPTURED",
        (
            State::Failed | State::Invalid | State::Suppressed | State::Cancelled | State::Expired,
            Standing::Plain,
        ) => "ERROR",
    }
}

/// A bounce as reference 001 reports it, with our own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounce001 {
    /// `hard` or `soft`.
    pub kind: String,
    /// The reply code of the server that refused the mail, or else the enhanced code.
    pub code: Option<String>,
    /// The text of that server, or else ours.
    pub reason: String,
    /// The enhanced code.
    pub status: Option<String>,
    /// Our own word for it, such as `user_unknown`.
    pub word: Option<String>,
}

impl Bounce001 {
    /// The bounce that event data describes. The view computes the same in SQL.
    pub fn of(particulars: &Value) -> Self {
        let text = |name: &str| match particulars.get(name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let (status, word) = (text("status"), text("reason"));
        Self {
            kind: text("type").unwrap_or_else(|| "soft".to_owned()),
            code: text("smtp_code").or_else(|| status.clone()),
            reason: text("diagnostic").or_else(|| word.clone()).unwrap_or_else(|| BOUNCED.to_owned()),
            status,
            word,
        }
    }
}

/// The reason of a bounce without one.
pub const BOUNCED: &str = "it bounced";

/// What `email_outbox.status` and `email_logs.status` of reference 004 say.
pub fn status_004(state: State, trial: Trial) -> &'static str {
    match state {
        State::Ready | State::InDoubt if trial == Trial::Again => "RETRY_SCHEDULED",
        State::Accepted | State::Validating | State::Scheduled(Wait::Fetch) => "RECEIVED",
        State::Ready | State::Scheduled(Wait::SendAt) => "VALIDATED",
        State::Scheduled(Wait::Retry) => "RETRY_SCHEDULED",
        State::Sending { .. } | State::InDoubt => "SENT_ATTEMPT",
        State::Sent => "SENT",
        State::Captured => "CAPTURED",
        State::Failed | State::Suppressed | State::Cancelled | State::Expired => "FAILED",
        State::Invalid => "VALIDATION_FAILED",
    }
}

/// What `monitored_emails_tasks.status` of reference 002 says.
pub fn status_002(state: InboundState, forwarded: Forwarded) -> &'static str {
    match (state, forwarded) {
        (InboundState::Received, _) => "received",
        (InboundState::Routing, _) | (InboundState::Routed, Forwarded::Open) => "in_progress",
        (InboundState::Routed, Forwarded::Sent) => "forwarded",
        // Reference 002 has no word for an unknown outcome, and each of its words would be a guess.
        (InboundState::Routed, Forwarded::Unknown) => "unknown",
        (InboundState::Routed, Forwarded::Nothing) | (InboundState::NoMatch | InboundState::Gone, _) => {
            "skipped_no_match"
        }
        (InboundState::Routed, Forwarded::Failed) | (InboundState::Waiting | InboundState::Dead, _) => {
            "error"
        }
    }
}

#[cfg(test)]
mod tests;
