//! The journal entries of fenced writes.

use postway_domain::{EventKind, MessageUid, State, Time};

use super::{Happening, Journal};
use crate::record::{Change, NewEvent, WireCommit};

impl WireCommit {
    /// The events that granted wire commits add to their messages' histories: noted in the journal, and
    /// returned to be written. Each commit comes with the sequence number of its message's last event.
    pub(crate) fn note_events<'a>(
        given: impl Iterator<Item = (&'a Self, i64)>,
        journal: &mut Journal,
    ) -> Vec<(MessageUid, i64, Time, NewEvent)> {
        let mut events = Vec::new();
        for (commit, seq) in given {
            let Some(event) = commit.event() else { continue };
            let to = State::Sending { wire_committed: true };
            let happening = Happening { uid: commit.uid, seq, at: commit.at, kind: event.kind, to };
            journal.note(&commit.lane.tenant, commit.lane.id(), happening);
            events.push((commit.uid, seq, commit.at, event));
        }
        events
    }
}

impl Change {
    /// One of its events as a journal entry.
    pub(crate) fn happening(&self, seq: i64, kind: EventKind) -> Happening {
        Happening { uid: self.uid, seq, at: self.at, kind, to: self.to }
    }
}
