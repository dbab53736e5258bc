//! The status terms of reference 000: of a message, of its callback, and of its history.

use postway_domain::{
    MessageEvent, MessageState, MessageStatus, Time,
    reference::{CallbackProgress, callback_progress_000, history_000, is_callback_event, sense, status_000},
};
use postway_store::record::{BodyLocation, MessageRecord};

use crate::{compat::lookup::MessageWithStatus, message::view::path};

/// The status of a message.
pub(super) fn word(entry: &MessageWithStatus) -> &'static str {
    let (record, state) = (&entry.record, entry.record.summary.state);
    status_000(state, callback_progress_000(&record.events, state, entry.has_pending_notification()))
}

/// The version and the time of the last change. Progress of callbacks is a change there, but not of our
/// message; the views count in the same way.
pub(super) fn changed(record: &MessageRecord) -> (i64, Time) {
    let calls = || record.events.iter().filter(|event| is_callback_event(event.kind));
    let last_call = calls().map(|event| event.at).max();
    let summary = &record.summary;
    (
        summary.version + calls().count() as i64,
        summary.updated_at.max(last_call.unwrap_or(summary.updated_at)),
    )
}

/// The location of bytes below the root of `storage.url`; `None` if they are in the database.
pub(super) fn file(kept: &BodyLocation) -> Option<String> {
    match kept {
        BodyLocation::Nowhere | BodyLocation::Inline(_) => None,
        BodyLocation::Blob(_) => path(kept),
    }
}

/// The states that a status may mean; `None` if this API has no such status.
pub(super) fn states(of: &str) -> Option<Vec<MessageStatus>> {
    let progress = [CallbackProgress::NotBegun, CallbackProgress::Calling, CallbackProgress::Acknowledged];
    let is_it = |state: &&MessageState| progress.iter().any(|one| status_000(**state, *one) == of);
    let mut statuses: Vec<MessageStatus> =
        MessageState::ALL.iter().filter(is_it).map(|state| state.status()).collect();
    statuses.dedup();
    (!statuses.is_empty()).then_some(statuses)
}

/// The history of a mail: each event that is a change of state in this API.
pub(super) fn history(
    events: &[MessageEvent],
    state: MessageState,
) -> impl Iterator<Item = (&'static str, &MessageEvent)> {
    let word = move |(at, event): (usize, _)| {
        let event: &MessageEvent = event;
        Some((history_000(event.kind, sense(events, at, state))?, event))
    };
    events.iter().enumerate().filter_map(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_its_states() {
        assert_eq!(states("READY"), Some(vec![MessageStatus::Ready, MessageStatus::Scheduled]));
        assert_eq!(states("ACCEPTED"), Some(vec![MessageStatus::Accepted, MessageStatus::Scheduled]));
        assert_eq!(states("PROCESSING"), Some(vec![MessageStatus::Sending, MessageStatus::InDoubt]));
        assert_eq!(states("SENT-ACKNOWLEDGED"), Some(vec![MessageStatus::Sent]));
        assert_eq!(states("GONE"), None);
    }
}
