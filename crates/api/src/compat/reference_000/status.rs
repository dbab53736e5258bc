//! The status terms of reference 000: of a message, of its callback, and of its history.

use postway_domain::{
    Event, State, Status, Time,
    reference::{Told, history_000, is_told_of, sense, status_000, told_000},
};
use postway_store::record::{Kept, MessageRecord};

use crate::{compat::lookup::MessageWithStatus, message::view::path};

/// The status of a message.
pub(super) fn word(entry: &MessageWithStatus) -> &'static str {
    let (record, state) = (&entry.record, entry.record.summary.state);
    status_000(state, told_000(&record.events, state, entry.has_pending_notification()))
}

/// The version and the time of the last change. Progress of callbacks is a change there, but not of our
/// message; the views count in the same way.
pub(super) fn changed(record: &MessageRecord) -> (i64, Time) {
    let calls = || record.events.iter().filter(|event| is_told_of(event.kind));
    let last_call = calls().map(|event| event.at).max();
    let summary = &record.summary;
    (
        summary.version + calls().count() as i64,
        summary.updated_at.max(last_call.unwrap_or(summary.updated_at)),
    )
}

/// The location of bytes below the root of `storage.url`; `None` if they are in the database.
pub(super) fn file(kept: &Kept) -> Option<String> {
    match kept {
        Kept::Nowhere | Kept::Inline(_) => None,
        Kept::Blob(_) => path(kept),
    }
}

/// The states that a status may mean; `None` if this API has no such status.
pub(super) fn states(of: &str) -> Option<Vec<Status>> {
    let progress = [Told::No, Told::Calling, Told::Acknowledged];
    let is_it = |state: &&State| progress.iter().any(|one| status_000(**state, *one) == of);
    let mut statuses: Vec<Status> = State::ALL.iter().filter(is_it).map(|state| state.status()).collect();
    statuses.dedup();
    (!statuses.is_empty()).then_some(statuses)
}

/// The history of a mail: each event that is a change of state in this API.
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
