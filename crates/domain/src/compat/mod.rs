//! The words of the reference systems for our states and events, shared by the compatibility APIs and the
//! views.
//!
//! Total by construction: every function matches on all states or kinds, so that a new one does not compile
//! before it has its words.

mod history;

use serde_json::Value;

pub use self::history::{callback_progress_000, event_004, history_000, is_callback_event, moves, sense};
use crate::{
    inbound::InboundState,
    message::{MessageState, ScheduleReason},
};

/// How far the callbacks about a message's end have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackProgress {
    /// No callback was asked for, or one has not begun.
    NotBegun = 0,
    /// A callback is under way.
    Calling = 1,
    /// Every subscriber has acknowledged.
    Acknowledged = 2,
}

/// What else decides the status of a message in reference 001, besides its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status001Basis {
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
pub enum EventConsequence {
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
pub enum RetryExpectation {
    /// Its state says it, or no attempt was made.
    Plain = 0,
    /// An attempt was made and used no retry: the account is at fault, or the message is in doubt and will be
    /// resent.
    Again = 1,
}

impl RetryExpectation {
    /// The trial of a message in `state` after `attempts` attempts. `is_due` says whether it continues
    /// without an operator. The views compute the same in SQL.
    pub fn of(state: MessageState, attempts: i64, is_due: bool) -> Self {
        match state {
            MessageState::Ready if attempts > 0 => Self::Again,
            MessageState::InDoubt if is_due => Self::Again,
            MessageState::Accepted
            | MessageState::Validating
            | MessageState::Ready
            | MessageState::Scheduled(_)
            | MessageState::Sending { .. }
            | MessageState::Sent
            | MessageState::Failed
            | MessageState::Invalid
            | MessageState::InDoubt
            | MessageState::Suppressed
            | MessageState::Cancelled
            | MessageState::Expired
            | MessageState::Captured => Self::Plain,
        }
    }
}

/// The outcome of the messages that forwarded a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardOutcome {
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
pub fn status_000(state: MessageState, callback: CallbackProgress) -> &'static str {
    match (state, callback) {
        (MessageState::Accepted | MessageState::Scheduled(ScheduleReason::Fetch), _) => "ACCEPTED",
        (MessageState::Validating, _) => "INTAKING",
        (
            MessageState::Ready | MessageState::Scheduled(ScheduleReason::SendAt | ScheduleReason::Retry),
            _,
        ) => "READY",
        (MessageState::Sending { .. } | MessageState::InDoubt, _) => "PROCESSING",
        (MessageState::Invalid, _) => "INVALID",
        (MessageState::Sent, CallbackProgress::NotBegun) => "SENT",
        (MessageState::Sent, CallbackProgress::Calling) => "CALLING-SENT-CALLBACK",
        (MessageState::Sent, CallbackProgress::Acknowledged) => "SENT-ACKNOWLEDGED",
        // The callback reports that it was not sent.
        (MessageState::Captured, CallbackProgress::NotBegun) => "CAPTURED",
        (
            MessageState::Failed
            | MessageState::Suppressed
            | MessageState::Cancelled
            | MessageState::Expired
            | MessageState::Captured,
            callback,
        ) => match callback {
            CallbackProgress::NotBegun => "FAILED",
            CallbackProgress::Calling => "CALLING-FAILED-CALLBACK",
            CallbackProgress::Acknowledged => "FAILED-ACKNOWLEDGED",
        },
    }
}

/// The state that a message of reference 001 is in.
pub fn status_001(state: MessageState, standing: Status001Basis) -> &'static str {
    match (state, standing) {
        (_, Status001Basis::Suspended) => "SUSPENDED",
        (_, Status001Basis::Bounced) => "BOUNCED",
        (_, Status001Basis::Reported) => "REPORTED",
        (_, Status001Basis::Due) => "PENDING",
        (MessageState::Accepted | MessageState::Validating | MessageState::Ready, Status001Basis::Plain) => {
            "PENDING"
        }
        (MessageState::Scheduled(_), Status001Basis::Plain) => "DEFERRED",
        (MessageState::Sending { .. } | MessageState::InDoubt, Status001Basis::Plain) => "SENDING",
        (MessageState::Sent, Status001Basis::Plain) => "SENT",
        (MessageState::Captured, Status001Basis::Plain) => "CAPTURED",
        (
            MessageState::Failed
            | MessageState::Invalid
            | MessageState::Suppressed
            | MessageState::Cancelled
            | MessageState::Expired,
            Status001Basis::Plain,
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
pub fn status_004(state: MessageState, trial: RetryExpectation) -> &'static str {
    match state {
        MessageState::Ready | MessageState::InDoubt if trial == RetryExpectation::Again => "RETRY_SCHEDULED",
        MessageState::Accepted
        | MessageState::Validating
        | MessageState::Scheduled(ScheduleReason::Fetch) => "RECEIVED",
        MessageState::Ready | MessageState::Scheduled(ScheduleReason::SendAt) => "VALIDATED",
        MessageState::Scheduled(ScheduleReason::Retry) => "RETRY_SCHEDULED",
        MessageState::Sending { .. } | MessageState::InDoubt => "SENT_ATTEMPT",
        MessageState::Sent => "SENT",
        MessageState::Captured => "CAPTURED",
        MessageState::Failed | MessageState::Suppressed | MessageState::Cancelled | MessageState::Expired => {
            "FAILED"
        }
        MessageState::Invalid => "VALIDATION_FAILED",
    }
}

/// What `monitored_emails_tasks.status` of reference 002 says.
pub fn status_002(state: InboundState, forwarded: ForwardOutcome) -> &'static str {
    match (state, forwarded) {
        (InboundState::Received, _) => "received",
        (InboundState::Routing, _) | (InboundState::Routed, ForwardOutcome::Open) => "in_progress",
        (InboundState::Routed, ForwardOutcome::Sent) => "forwarded",
        // Reference 002 has no word for an unknown outcome, and each of its words would be a guess.
        (InboundState::Routed, ForwardOutcome::Unknown) => "unknown",
        (InboundState::Routed, ForwardOutcome::Nothing) | (InboundState::NoMatch | InboundState::Gone, _) => {
            "skipped_no_match"
        }
        (InboundState::Routed, ForwardOutcome::Failed) | (InboundState::Waiting | InboundState::Dead, _) => {
            "error"
        }
    }
}

#[cfg(test)]
mod tests;
