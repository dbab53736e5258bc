//! What each of our states and events is called in the reference systems: one place for the doors and the views that speak
//! as they do.
//!
//! Total by construction: every function here matches on all states or kinds, so that a new one does not compile before it
//! has its words.

mod history;

use serde_json::Value;

pub use self::history::{event_004, history_000, is_told_of, moves, sense, told_000};
use crate::{
    inbound::InboundState,
    message::{State, Wait},
};

/// Whether those who asked to hear of a message's end have heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nobody asked, or somebody is still to hear.
    No = 0,
    /// Somebody is being called.
    Calling = 1,
    /// Everybody said so.
    Acknowledged = 2,
}

/// What a message of reference 001 is called by, beside its own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing else.
    Plain = 0,
    /// Its tenant or batch is suspended.
    Suspended = 1,
    /// A bounce came.
    Bounced = 2,
    /// Everybody was told of its end.
    Reported = 3,
    /// The time it waited for has passed.
    Due = 4,
}

/// What an event led to, where its kind does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Its kind says it, or it led to neither of these.
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

/// Whether a message of reference 004 is to be tried again after an attempt, where its state does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Its state says it, or no attempt was made.
    Plain = 0,
    /// An attempt was made and took no retry: the account is held, or the answer is missing and the mail is sent again.
    Again = 1,
}

impl Trial {
    /// Of a message in this state after so many attempts. `is_due` says whether it goes on by itself. The views say the
    /// same in SQL.
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

/// What became of the messages by which a mail was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// There is none.
    Nothing = 0,
    /// All are sent.
    Sent = 1,
    /// One is gone with its trace, and nobody can say any more how it ended.
    Unknown = 2,
    /// One is on its way.
    Open = 3,
    /// One has ended otherwise.
    Failed = 4,
}

/// What `emails.status` of reference 000 says.
pub fn status_000(state: State, told: Told) -> &'static str {
    match (state, told) {
        (State::Accepted | State::Scheduled(Wait::Fetch), _) => "ACCEPTED",
        (State::Validating, _) => "INTAKING",
        (State::Ready | State::Scheduled(Wait::SendAt | Wait::Retry), _) => "READY",
        (State::Sending { .. } | State::InDoubt, _) => "PROCESSING",
        (State::Invalid, _) => "INVALID",
        (State::Sent, Told::No) => "SENT",
        (State::Sent, Told::Calling) => "CALLING-SENT-CALLBACK",
        (State::Sent, Told::Acknowledged) => "SENT-ACKNOWLEDGED",
        // Whoever is called is told that it was not sent.
        (State::Captured, Told::No) => "CAPTURED",
        (State::Failed | State::Suppressed | State::Cancelled | State::Expired | State::Captured, told) => {
            match told {
                Told::No => "FAILED",
                Told::Calling => "CALLING-FAILED-CALLBACK",
                Told::Acknowledged => "FAILED-ACKNOWLEDGED",
            }
        }
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

/// A bounce as reference 001 tells it, and the words of ours beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounce001 {
    /// `hard` or `soft`.
    pub kind: String,
    /// The three digits of the server that refused it, or the enhanced code where it gave none.
    pub code: Option<String>,
    /// That server's words, or ours where it gave none.
    pub reason: String,
    /// The enhanced code.
    pub status: Option<String>,
    /// Our own word for it, such as `user_unknown`.
    pub word: Option<String>,
}

impl Bounce001 {
    /// As the particulars of a bounce tell it. The view says the same in SQL.
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

/// Of a bounce that says nothing of why.
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
        // Reference 002 has no word for it, and each of its own would claim what nobody knows.
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
