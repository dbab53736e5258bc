//! The states of a message. Database, JSON, log and dashboard use the same words.

use serde::{Deserialize, Serialize};

use super::recipient::coded;

/// The state of a message as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Durable; the client has its `202`.
    Accepted = 0,
    /// A preparer fetches and checks what it needs.
    Validating = 1,
    /// Can be sent, unless its lane is blocked.
    Ready = 2,
    /// Waits for its due time.
    Scheduled = 3,
    /// Leased for an attempt.
    Sending = 4,
    /// A relay took responsibility for at least one recipient, and none is open.
    Sent = 5,
    /// Ended without being sent.
    Failed = 6,
    /// Refused by intake.
    Invalid = 7,
    /// The dot was written and no answer is recorded.
    InDoubt = 8,
    /// Every recipient is on the suppression list.
    Suppressed = 9,
    /// Cancelled by its sender.
    Cancelled = 10,
    /// Its `expires_at` passed before it was sent.
    Expired = 11,
    /// The sandbox captured it; nothing was sent.
    Captured = 12,
}

coded!(Status: Accepted = "accepted", Validating = "validating", Ready = "ready", Scheduled = "scheduled",
    Sending = "sending", Sent = "sent", Failed = "failed", Invalid = "invalid", InDoubt = "in_doubt",
    Suppressed = "suppressed", Cancelled = "cancelled", Expired = "expired", Captured = "captured");

impl Status {
    /// Whether the message has ended: nothing more happens without an operator.
    pub fn is_final(self) -> bool {
        match self {
            Status::Accepted
            | Status::Validating
            | Status::Ready
            | Status::Scheduled
            | Status::Sending
            | Status::InDoubt => false,
            Status::Sent
            | Status::Failed
            | Status::Invalid
            | Status::Suppressed
            | Status::Cancelled
            | Status::Expired
            | Status::Captured => true,
        }
    }
}

impl std::str::FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text).ok_or(UnknownStatus)
    }
}

/// The word is not one of the thirteen states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown status: use accepted, validating, ready, scheduled, sending, sent, failed, invalid, in_doubt, \
     suppressed, cancelled, expired or captured"
)]
pub struct UnknownStatus;

/// What a scheduled message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// The time that its sender asked for.
    SendAt = 1,
    /// The next attempt after a transient failure.
    Retry = 2,
    /// The next try to fetch a file that it needs.
    Fetch = 3,
}

coded!(Wait: SendAt = "send_at", Retry = "retry", Fetch = "fetch");

/// A status with the data that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// See [`Status::Accepted`].
    Accepted,
    /// See [`Status::Validating`].
    Validating,
    /// See [`Status::Ready`].
    Ready,
    /// See [`Status::Scheduled`].
    Scheduled(Wait),
    /// See [`Status::Sending`].
    Sending {
        /// Whether the permission to write the final dot is durable. From then on a crash means doubt.
        wire_committed: bool,
    },
    /// See [`Status::Sent`].
    Sent,
    /// See [`Status::Failed`].
    Failed,
    /// See [`Status::Invalid`].
    Invalid,
    /// See [`Status::InDoubt`].
    InDoubt,
    /// See [`Status::Suppressed`].
    Suppressed,
    /// See [`Status::Cancelled`].
    Cancelled,
    /// See [`Status::Expired`].
    Expired,
    /// See [`Status::Captured`].
    Captured,
}

impl State {
    /// Every state, for tables and tests.
    pub const ALL: &'static [State] = &[
        State::Accepted,
        State::Validating,
        State::Ready,
        State::Scheduled(Wait::SendAt),
        State::Scheduled(Wait::Retry),
        State::Scheduled(Wait::Fetch),
        State::Sending { wire_committed: false },
        State::Sending { wire_committed: true },
        State::Sent,
        State::Failed,
        State::Invalid,
        State::InDoubt,
        State::Suppressed,
        State::Cancelled,
        State::Expired,
        State::Captured,
    ];

    /// The state without its data.
    pub fn status(self) -> Status {
        match self {
            State::Accepted => Status::Accepted,
            State::Validating => Status::Validating,
            State::Ready => Status::Ready,
            State::Scheduled(_) => Status::Scheduled,
            State::Sending { .. } => Status::Sending,
            State::Sent => Status::Sent,
            State::Failed => Status::Failed,
            State::Invalid => Status::Invalid,
            State::InDoubt => Status::InDoubt,
            State::Suppressed => Status::Suppressed,
            State::Cancelled => Status::Cancelled,
            State::Expired => Status::Expired,
            State::Captured => Status::Captured,
        }
    }

    /// Builds a state from the columns of a store. A scheduled row without a reason waits for a retry.
    pub fn from_parts(status: Status, wait: Option<Wait>, wire_committed: bool) -> Self {
        match status {
            Status::Accepted => State::Accepted,
            Status::Validating => State::Validating,
            Status::Ready => State::Ready,
            Status::Scheduled => State::Scheduled(wait.unwrap_or(Wait::Retry)),
            Status::Sending => State::Sending { wire_committed },
            Status::Sent => State::Sent,
            Status::Failed => State::Failed,
            Status::Invalid => State::Invalid,
            Status::InDoubt => State::InDoubt,
            Status::Suppressed => State::Suppressed,
            Status::Cancelled => State::Cancelled,
            Status::Expired => State::Expired,
            Status::Captured => State::Captured,
        }
    }

    /// What a scheduled message waits for.
    pub fn wait(self) -> Option<Wait> {
        match self {
            State::Scheduled(wait) => Some(wait),
            State::Accepted
            | State::Validating
            | State::Ready
            | State::Sending { .. }
            | State::Sent
            | State::Failed
            | State::Invalid
            | State::InDoubt
            | State::Suppressed
            | State::Cancelled
            | State::Expired
            | State::Captured => None,
        }
    }
}

/// How urgent a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Always before everything else.
    Immediate = 0,
    /// Before normal mail.
    High = 1,
    /// The default.
    #[default]
    Normal = 2,
    /// After normal mail.
    Low = 3,
}

coded!(Priority: Immediate = "immediate", High = "high", Normal = "normal", Low = "low");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_parts() {
        for &state in State::ALL {
            let committed = state == State::Sending { wire_committed: true };
            assert_eq!(State::from_parts(state.status(), state.wait(), committed), state);
            assert_eq!(Status::from_code(state.status().code()), Some(state.status()));
            assert_eq!(state.status().as_str().parse(), Ok(state.status()));
        }
    }
}
