//! Turns: whose job is next if several owners have jobs waiting.
//!
//! Self-clocked fair queueing. Each job has the time, on a clock that advances with the work, at which it
//! would be done if all owners had equal shares; the earliest is next. So one small job overtakes an owner
//! with a thousand large ones, a large job runs when the others have had as much, and no owner starves.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

/// An owner that had a turn is remembered until this many more owners than jobs are known, because its next
/// turn depends on it.
const REMEMBERED_SPARE: usize = 64;

/// Jobs `J` of owners `W` that take turns.
pub(super) struct JobTurns<W, J> {
    /// By when they would be done, then by arrival.
    waiting: BTreeMap<(u64, u64), J>,
    /// When the last job of each would be done.
    last: HashMap<W, u64>,
    clock: u64,
    arrivals: u64,
}

impl<W, J> Default for JobTurns<W, J> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), last: HashMap::new(), clock: 0, arrivals: 0 }
    }
}

impl<W: Eq + Hash, J> JobTurns<W, J> {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn push(&mut self, who: W, cost: u64, job: J) {
        if self.last.len() > self.waiting.len() + REMEMBERED_SPARE {
            let clock = self.clock;
            self.last.retain(|_, done| *done > clock);
        }
        let last = self.last.entry(who).or_default();
        *last = (*last).max(self.clock).saturating_add(cost.max(1));
        self.arrivals += 1;
        self.waiting.insert((*last, self.arrivals), job);
    }

    /// The job whose turn it is.
    pub fn next(&self) -> Option<&J> {
        self.waiting.values().next()
    }

    pub fn pop(&mut self) -> Option<J> {
        let ((done, _), job) = self.waiting.pop_first()?;
        self.clock = done;
        if self.waiting.is_empty() {
            self.last.clear();
            self.clock = 0;
        }
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(turns: &mut JobTurns<&'static str, &'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop()).collect()
    }

    #[test]
    fn jobs_of_one_stay_in_their_order() {
        let mut turns = JobTurns::default();
        turns.push("a", 9, "first");
        turns.push("a", 1, "second");
        turns.push("a", 5, "third");
        assert_eq!(drain(&mut turns), ["first", "second", "third"]);
    }

    #[test]
    fn a_small_job_passes_the_large_ones_of_many_others() {
        let mut turns = JobTurns::default();
        for who in ["a", "b", "c"] {
            turns.push(who, 1_000, "large");
            turns.push(who, 1_000, "large");
        }
        assert_eq!(turns.pop(), Some("large"));
        turns.push("d", 1, "small");
        turns.push("d", 1, "small");
        assert_eq!(drain(&mut turns)[..4], ["large", "large", "small", "small"]);
    }

    #[test]
    fn a_large_job_comes_up_when_the_others_have_had_as_much() {
        let mut turns = JobTurns::default();
        turns.push("a", 10, "large");
        let mut before = 0;
        for _ in 0..100 {
            turns.push("b", 1, "small");
        }
        while turns.pop() != Some("large") {
            before += 1;
        }
        assert_eq!(before, 9);
    }

    #[test]
    fn who_was_away_has_saved_nothing_up() {
        let mut turns = JobTurns::default();
        for _ in 0..50 {
            turns.push("a", 1, "a");
        }
        for _ in 0..40 {
            turns.pop();
        }
        for _ in 0..10 {
            turns.push("b", 1, "b");
        }
        let order: String = drain(&mut turns).concat();
        assert_eq!(order, "abababababababababab");
    }

    #[test]
    fn those_who_had_their_turns_are_forgotten() {
        let mut turns = JobTurns::default();
        for who in 0..10_000 {
            turns.push(who, 1, ());
            turns.push(who, 1, ());
            turns.pop();
            if who > 100 {
                turns.pop();
            }
        }
        assert!(turns.last.len() < 1_000, "{}", turns.last.len());
    }
}
