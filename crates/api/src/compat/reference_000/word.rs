//! Which words of reference 000 a message has: those of its state, of the callback about it, and of its history.

use postway_domain::{
    Event, State, Status,
    reference::{Told, history_000, sense, status_000},
};

use crate::compat::read::Whole;

/// Its word for how a message stands.
pub(super) fn word(whole: &Whole) -> &'static str {
    let told = match (whole.is_being_told(), whole.acknowledged_at()) {
        (true, _) => Told::Calling,
        (false, Some(_)) => Told::Acknowledged,
        (false, None) => Told::No,
    };
    status_000(whole.record.summary.state, told)
}

/// The states that a word may stand for; none for a word that is not its.
pub(super) fn states(of: &str) -> Option<Vec<Status>> {
    let told = [Told::No, Told::Calling, Told::Acknowledged];
    let is_it = |state: &&State| told.iter().any(|told| status_000(**state, *told) == of);
    let mut statuses: Vec<Status> = State::ALL.iter().filter(is_it).map(|state| state.status()).collect();
    statuses.dedup();
    (!statuses.is_empty()).then_some(statuses)
}

/// Its history of a mail: each event that is a change of state in its words.
pub(super) fn history(events: &[Event], state: State) -> impl Iterator<Item = (&'static str, &Event)> {
    let word = move |(at, event): (usize, _)| {
        let event: &Event = event;
        Some((history_000(event.kind, sense(events, at, state))?, event))
    };
    events.iter().enumerate().filter_map(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_its_states() {
        assert_eq!(states("READY"), Some(vec![Status::Ready, Status::Scheduled]));
        assert_eq!(states("PROCESSING"), Some(vec![Status::Sending, Status::InDoubt]));
        assert_eq!(states("SENT-ACKNOWLEDGED"), Some(vec![Status::Sent]));
        assert_eq!(states("GONE"), None);
    }
}
