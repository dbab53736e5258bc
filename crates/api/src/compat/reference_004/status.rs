//! The status terms of reference 004.

use postway_domain::{
    MessageState, MessageStatus,
    reference::{RetryExpectation, status_004},
};
use postway_store::record::MessageSummary;

/// The status of a message.
pub(super) fn status(message: &MessageSummary) -> &'static str {
    let trial = RetryExpectation::of(message.state, message.attempt, message.due_at.is_some());
    status_004(message.state, trial)
}

/// The states that a status may mean; `None` if this API has no such status.
pub(super) fn states(of: &str) -> Option<Vec<MessageStatus>> {
    let stands_for = |state: &&MessageState| {
        [RetryExpectation::Plain, RetryExpectation::Again]
            .iter()
            .any(|trial| status_004(**state, *trial) == of)
    };
    let mut statuses: Vec<MessageStatus> =
        MessageState::ALL.iter().filter(stands_for).map(|state| state.status()).collect();
    statuses.dedup();
    (!statuses.is_empty()).then_some(statuses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_its_states() {
        assert_eq!(states("SENT_ATTEMPT"), Some(vec![MessageStatus::Sending, MessageStatus::InDoubt]));
        assert_eq!(states("VALIDATED"), Some(vec![MessageStatus::Ready, MessageStatus::Scheduled]));
        let retried = Some(vec![MessageStatus::Ready, MessageStatus::Scheduled, MessageStatus::InDoubt]);
        assert_eq!(states("RETRY_SCHEDULED"), retried);
        assert_eq!(states("sent"), None);
    }
}
