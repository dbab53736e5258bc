//! What a writer remembers of the lanes that it has stored.
//!
//! A lane is stored before its first message, and most messages go into lanes that are there. So a writer
//! asks the database only for lanes that it does not remember. Housekeeping removes lanes to which no message
//! refers, an hour after it has marked them. Storing a lane takes the mark away; a writer that relied on its
//! memory for as long as that hour could store mail into a lane that is gone. So it believes what it
//! remembers for a much shorter time, by the clock that marks go by and by the machine's own, which no one
//! sets.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use postway_domain::{LaneId, Time};

/// How long a writer relies on having stored a lane. Housekeeping waits much longer than this and the longest
/// transaction.
pub(crate) const REMEMBERED_FOR: Duration = Duration::from_secs(10 * 60);
/// How many lanes a writer remembers. Applications that make a lane for each mail do not fill the memory.
const REMEMBERED_MAX: usize = 20_000;

/// The lanes that a writer has stored lately.
#[derive(Default)]
pub(crate) struct LaneMemory {
    known: HashMap<LaneId, (Instant, Time)>,
    /// Those of the transaction under way.
    new: HashMap<LaneId, (Instant, Time)>,
}

impl LaneMemory {
    /// Whether a lane has to be stored now, for a message that is accepted at this time; notes that it will
    /// be.
    pub fn note(&mut self, lane: LaneId, now: Instant, at: Time) -> bool {
        let is_recent = |(since, from): &(Instant, Time)| {
            now.saturating_duration_since(*since) < REMEMBERED_FOR
                && *from <= at
                && at < from.plus(REMEMBERED_FOR)
        };
        if self.known.get(&lane).is_some_and(is_recent) || self.new.contains_key(&lane) {
            return false;
        }
        self.new.insert(lane, (now, at));
        true
    }

    /// Keeps what was noted: the transaction is committed.
    pub fn keep_new(&mut self) {
        if self.known.len() + self.new.len() > REMEMBERED_MAX {
            self.known.clear();
        }
        self.known.extend(self.new.drain());
    }

    /// Drops what was noted: the transaction is not committed.
    pub fn forget_new(&mut self) {
        self.new.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(number: usize) -> LaneId {
        LaneId::from_bytes((number as u128).to_be_bytes())
    }

    #[test]
    fn a_lane_is_stored_once_in_a_while_and_again_if_its_transaction_failed() {
        let (mut memory, now, at) = (LaneMemory::default(), Instant::now(), Time::from_millis(1_000));
        assert!(memory.note(lane(1), now, at) && !memory.note(lane(1), now, at));
        memory.forget_new();
        assert!(memory.note(lane(1), now, at));
        memory.keep_new();
        let soon = at.plus(REMEMBERED_FOR / 2);
        assert!(!memory.note(lane(1), now + REMEMBERED_FOR / 2, soon));
        let late =
            [(now + REMEMBERED_FOR, soon), (now, at.plus(REMEMBERED_FOR)), (now, Time::from_millis(999))];
        for (now, at) in late {
            assert!(memory.note(lane(1), now, at), "{at:?}");
            memory.forget_new();
        }
    }

    #[test]
    fn lanes_without_end_do_not_fill_the_memory() {
        let (mut memory, now, at) = (LaneMemory::default(), Instant::now(), Time::from_millis(1_000));
        for number in 0..3 * REMEMBERED_MAX {
            memory.note(lane(number), now, at);
            memory.keep_new();
            assert!(memory.known.len() <= REMEMBERED_MAX);
        }
    }
}
