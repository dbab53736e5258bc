//! Which words of reference 000 a message has: those of its state, of the callback about it, and of its history.

use postway_domain::{
    Event, State, Status, Time,
    reference::{Told, history_000, is_told_of, sense, status_000, told_000},
};
use postway_store::record::{Kept, MessageRecord};

use crate::{compat::lookup::Whole, message::view::path};

/// Its word for how a message stands.
pub(super) fn word(whole: &Whole) -> &'static str {
    let (record, state) = (&whole.record, whole.record.summary.state);
    status_000(state, told_000(&record.events, state, whole.is_to_be_told()))
}

/// Its version, and when it last changed. What its callbacks do is a change there, and none of our message; the views count
/// them in the same way.
pub(super) fn changed(record: &MessageRecord) -> (i64, Time) {
    let calls = || record.events.iter().filter(|event| is_told_of(event.kind));
    let last_call = calls().map(|event| event.at).max();
    let summary = &record.summary;
    (
        summary.version + calls().count() as i64,
        summary.updated_at.max(last_call.unwrap_or(summary.updated_at)),
    )
}

/// Where bytes are, below the root of `storage.url`; none where they are in the database.
pub(super) fn file(kept: &Kept) -> Option<String> {
    match kept {
        Kept::Nowhere | Kept::Inline(_) => None,
        Kept::Blob(_) => path(kept),
    }
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
        assert_eq!(states("ACCEPTED"), Some(vec![Status::Accepted, Status::Scheduled]));
        assert_eq!(states("PROCESSING"), Some(vec![Status::Sending, Status::InDoubt]));
        assert_eq!(states("SENT-ACKNOWLEDGED"), Some(vec![Status::Sent]));
        assert_eq!(states("GONE"), None);
    }
}
