//! The status terms of reference 004.

use postway_domain::{
    State, Status,
    reference::{Trial, status_004},
};
use postway_store::record::MessageSummary;

/// The status of a message.
pub(super) fn status(message: &MessageSummary) -> &'static str {
    let trial = Trial::of(message.state, message.attempt, message.due_at.is_some());
    status_004(message.state, trial)
}

/// The states that a status may mean; `None` if this API has no such status.
pub(super) fn states(of: &str) -> Option<Vec<Status>> {
    let stands_for =
        |state: &&State| [Trial::Plain, Trial::Again].iter().any(|trial| status_004(**state, *trial) == of);
    let mut statuses: Vec<Status> =
        State::ALL.iter().filter(stands_for).map(|state| state.status()).collect();
    statuses.dedup();
    (!statuses.is_empty()).then_some(statuses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_its_states() {
        assert_eq!(states("SENT_ATTEMPT"), Some(vec![Status::Sending, Status::InDoubt]));
        assert_eq!(states("VALIDATED"), Some(vec![Status::Ready, Status::Scheduled]));
        let retried = Some(vec![Status::Ready, Status::Scheduled, Status::InDoubt]);
        assert_eq!(states("RETRY_SCHEDULED"), retried);
        assert_eq!(states("sent"), None);
    }
}
