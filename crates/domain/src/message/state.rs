//! The states of a message. Database, JSON, log and dashboard use the same words.

use serde::{Deserialize, Serialize};

use super::recipient::coded;

/// The state of a message as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
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

coded!(MessageStatus: Accepted = "accepted", Validating = "validating", Ready = "ready", Scheduled = "scheduled",
    Sending = "sending", Sent = "sent", Failed = "failed", Invalid = "invalid", InDoubt = "in_doubt",
    Suppressed = "suppressed", Cancelled = "cancelled", Expired = "expired", Captured = "captured");

impl MessageStatus {
    /// Whether the message has ended: nothing more happens without an operator.
    pub fn is_final(self) -> bool {
        match self {
            MessageStatus::Accepted
            | MessageStatus::Validating
            | MessageStatus::Ready
            | MessageStatus::Scheduled
            | MessageStatus::Sending
            | MessageStatus::InDoubt => false,
            MessageStatus::Sent
            | MessageStatus::Failed
            | MessageStatus::Invalid
            | MessageStatus::Suppressed
            | MessageStatus::Cancelled
            | MessageStatus::Expired
            | MessageStatus::Captured => true,
        }
    }
}

impl std::str::FromStr for MessageStatus {
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
pub enum ScheduleReason {
    /// The time that its sender asked for.
    SendAt = 1,
    /// The next attempt after a transient failure.
    Retry = 2,
    /// The next try to fetch a file that it needs.
    Fetch = 3,
}

coded!(ScheduleReason: SendAt = "send_at", Retry = "retry", Fetch = "fetch");

/// A status with the data that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageState {
    /// See [`MessageStatus::Accepted`].
    Accepted,
    /// See [`MessageStatus::Validating`].
    Validating,
    /// See [`MessageStatus::Ready`].
    Ready,
    /// See [`MessageStatus::Scheduled`].
    Scheduled(ScheduleReason),
    /// See [`MessageStatus::Sending`].
    Sending {
        /// Whether the permission to write the final dot is durable. From then on a crash means doubt.
        wire_committed: bool,
    },
    /// See [`MessageStatus::Sent`].
    Sent,
    /// See [`MessageStatus::Failed`].
    Failed,
    /// See [`MessageStatus::Invalid`].
    Invalid,
    /// See [`MessageStatus::InDoubt`].
    InDoubt,
    /// See [`MessageStatus::Suppressed`].
    Suppressed,
    /// See [`MessageStatus::Cancelled`].
    Cancelled,
    /// See [`MessageStatus::Expired`].
    Expired,
    /// See [`MessageStatus::Captured`].
    Captured,
}

impl MessageState {
    /// Every state, for tables and tests.
    pub const ALL: &'static [MessageState] = &[
        MessageState::Accepted,
        MessageState::Validating,
        MessageState::Ready,
        MessageState::Scheduled(ScheduleReason::SendAt),
        MessageState::Scheduled(ScheduleReason::Retry),
        MessageState::Scheduled(ScheduleReason::Fetch),
        MessageState::Sending { wire_committed: false },
        MessageState::Sending { wire_committed: true },
        MessageState::Sent,
        MessageState::Failed,
        MessageState::Invalid,
        MessageState::InDoubt,
        MessageState::Suppressed,
        MessageState::Cancelled,
        MessageState::Expired,
        MessageState::Captured,
    ];

    /// The state without its data.
    pub fn status(self) -> MessageStatus {
        match self {
            MessageState::Accepted => MessageStatus::Accepted,
            MessageState::Validating => MessageStatus::Validating,
            MessageState::Ready => MessageStatus::Ready,
            MessageState::Scheduled(_) => MessageStatus::Scheduled,
            MessageState::Sending { .. } => MessageStatus::Sending,
            MessageState::Sent => MessageStatus::Sent,
            MessageState::Failed => MessageStatus::Failed,
            MessageState::Invalid => MessageStatus::Invalid,
            MessageState::InDoubt => MessageStatus::InDoubt,
            MessageState::Suppressed => MessageStatus::Suppressed,
            MessageState::Cancelled => MessageStatus::Cancelled,
            MessageState::Expired => MessageStatus::Expired,
            MessageState::Captured => MessageStatus::Captured,
        }
    }

    /// Builds a state from the columns of a store. A scheduled row without a reason waits for a retry.
    pub fn from_parts(status: MessageStatus, wait: Option<ScheduleReason>, wire_committed: bool) -> Self {
        match status {
            MessageStatus::Accepted => MessageState::Accepted,
            MessageStatus::Validating => MessageState::Validating,
            MessageStatus::Ready => MessageState::Ready,
            MessageStatus::Scheduled => MessageState::Scheduled(wait.unwrap_or(ScheduleReason::Retry)),
            MessageStatus::Sending => MessageState::Sending { wire_committed },
            MessageStatus::Sent => MessageState::Sent,
            MessageStatus::Failed => MessageState::Failed,
            MessageStatus::Invalid => MessageState::Invalid,
            MessageStatus::InDoubt => MessageState::InDoubt,
            MessageStatus::Suppressed => MessageState::Suppressed,
            MessageStatus::Cancelled => MessageState::Cancelled,
            MessageStatus::Expired => MessageState::Expired,
            MessageStatus::Captured => MessageState::Captured,
        }
    }

    /// What a scheduled message waits for.
    pub fn wait(self) -> Option<ScheduleReason> {
        match self {
            MessageState::Scheduled(wait) => Some(wait),
            MessageState::Accepted
            | MessageState::Validating
            | MessageState::Ready
            | MessageState::Sending { .. }
            | MessageState::Sent
            | MessageState::Failed
            | MessageState::Invalid
            | MessageState::InDoubt
            | MessageState::Suppressed
            | MessageState::Cancelled
            | MessageState::Expired
            | MessageState::Captured => None,
        }
    }
}

/// How urgent a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePriority {
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

coded!(MessagePriority: Immediate = "immediate", High = "high", Normal = "normal", Low = "low");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_parts() {
        for &state in MessageState::ALL {
            let committed = state == MessageState::Sending { wire_committed: true };
            assert_eq!(MessageState::from_parts(state.status(), state.wait(), committed), state);
            assert_eq!(MessageStatus::from_code(state.status().code()), Some(state.status()));
            assert_eq!(state.status().as_str().parse(), Ok(state.status()));
        }
    }
}
