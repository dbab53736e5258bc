//! The journal entries of fenced writes.

use postway_domain::{EventKind, MessageState, MessageUid, Time};

use super::{AppendedEvent, EventJournal};
use crate::record::{MessageChange, NewEvent, WireCommit};

impl WireCommit {
    /// The events that granted wire commits add to their messages' histories: noted in the journal, and
    /// returned to be written. Each commit comes with the sequence number of its message's last event.
    pub(crate) fn note_events<'a>(
        given: impl Iterator<Item = (&'a Self, i64)>,
        journal: &mut EventJournal,
    ) -> Vec<(MessageUid, i64, Time, NewEvent)> {
        let mut events = Vec::new();
        for (commit, seq) in given {
            let Some(event) = commit.event() else { continue };
            let to = MessageState::Sending { wire_committed: true };
            let happening = AppendedEvent { uid: commit.uid, seq, at: commit.at, kind: event.kind, to };
            journal.note(&commit.lane.tenant, commit.lane.id(), happening);
            events.push((commit.uid, seq, commit.at, event));
        }
        events
    }
}

impl MessageChange {
    /// One of its events as a journal entry.
    pub(crate) fn happening(&self, seq: i64, kind: EventKind) -> AppendedEvent {
        AppendedEvent { uid: self.uid, seq, at: self.at, kind, to: self.to }
    }
}
