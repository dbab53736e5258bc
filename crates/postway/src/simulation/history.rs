//! Checks that a message's history can have happened.
//!
//! A history is a word in the language of the state machine: there must be a path through `domain`'s one
//! table, from accepted to the message's present state, whose events are exactly these, in this order. So an
//! event too many, too few, or in the wrong place is found, without a second opinion here on what the table
//! should be.

use std::collections::HashSet;

use postway_domain::{
    EventKind, MessageState,
    message::{TransitionInput, transition},
};
use postway_store::record::MessageRecord;

/// Whether some path gives this history.
pub(super) fn is_possible(record: &MessageRecord) -> bool {
    // These events are about a part of the message and fit any step.
    let aside = |kind: &EventKind| matches!(kind, EventKind::RecipientFailed | EventKind::Validated);
    let events: Vec<EventKind> =
        record.events.iter().map(|event| event.kind).filter(|kind| !aside(kind)).collect();
    if events.first() != Some(&EventKind::Accepted) {
        return false;
    }
    let goal = (record.summary.state, events.len());
    let (mut met, mut open) = (HashSet::new(), vec![(MessageState::Accepted, 1)]);
    while let Some((state, told)) = open.pop() {
        if !met.insert((state, told)) {
            continue;
        }
        let steps = TransitionInput::ALL.iter().filter_map(|&input| transition(state, input).ok());
        for (next, effects) in steps {
            let tells: Vec<EventKind> = effects.events().collect();
            if events[told..].starts_with(&tells) {
                open.push((next, told + tells.len()));
            }
        }
    }
    met.contains(&goal)
}

/// The events, in a line.
pub(super) fn event_names(record: &MessageRecord) -> String {
    let kinds: Vec<&str> = record.events.iter().map(|event| event.kind.as_str()).collect();
    kinds.join(" ")
}
