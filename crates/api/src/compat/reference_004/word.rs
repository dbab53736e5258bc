//! Which states a word of reference 004 stands for.

use postway_domain::{State, Status, reference::status_004};

/// The states that a word may stand for; none for a word that is not its.
pub(super) fn states(of: &str) -> Option<Vec<Status>> {
    let mut statuses: Vec<Status> =
        State::ALL.iter().filter(|state| status_004(**state) == of).map(|state| state.status()).collect();
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
        assert_eq!(states("sent"), None);
    }
}
