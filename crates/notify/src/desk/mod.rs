//! Whose turn it is: a line of leased notifications for each subscriber, and the places that calls take.
//!
//! Promises: a subscriber has at most [`PLACES_PER_SUBSCRIBER`] calls at once and takes turns with the others, so that a
//! slow one delays only itself. How much is leased for it doubles with each call that it takes and halves with each that
//! it does not; one that failed repeatedly is called once at a time, with pauses between, until it answers. Subscribers
//! that have not proven themselves share [`UNPROVEN_CALLS_MAX`] places, so that however many of them are dead, the others
//! have room. Pure: it does no I/O, and what it gives out it gives out once.

mod line;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use postway_domain::Time;
use postway_store::record::DueSubscriber;

use crate::{
    client_sync,
    outcome::{Conduct, Leased},
    target::Target,
};
use line::Line;

/// Calls at once.
const CALLS_MAX: usize = 128;
/// Calls at once to one subscriber.
const PLACES_PER_SUBSCRIBER: usize = 8;
/// Calls at once to subscribers that have not answered yet, or not lately.
const UNPROVEN_CALLS_MAX: usize = 96;
/// Notifications leased at once, called or not.
pub(crate) const LEASED_MAX: usize = 1_024;
/// Subscribers named in one claim.
const CLAIM_SUBSCRIBERS_MAX: usize = 64;
/// Those of them that are kept for the unproven, where there are any.
const CLAIM_UNPROVEN_MIN: usize = 16;
/// Lines that are remembered although nothing is in them.
const LINES_MAX: usize = 20_000;
/// A call begins only if its lease lasts longer than the longest call.
const LEASE_REST: Duration = client_sync::TIMEOUT;

/// Notifications to tell in one go.
pub(crate) struct Batch {
    /// Whose.
    pub key: DueSubscriber,
    /// The subscriber.
    pub target: Arc<Target>,
    /// What to tell; nothing where a client asked to be called again.
    pub leased: Vec<Leased>,
    is_unproven: bool,
}

/// What a batch said about its subscriber.
pub(crate) struct Finished {
    key: DueSubscriber,
    conduct: Conduct,
    quiet_until: Option<Time>,
    comes_again: bool,
    is_unproven: bool,
}

impl Batch {
    /// What to say of it once it is told.
    pub(crate) fn finished(self, conduct: Conduct, quiet_until: Option<Time>, comes_again: bool) -> Finished {
        Finished { key: self.key, conduct, quiet_until, comes_again, is_unproven: self.is_unproven }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Desk {
    lines: BTreeMap<DueSubscriber, Line>,
    /// Those with something to call, in the order of their turns.
    turns: VecDeque<DueSubscriber>,
    /// Those that asked to be called again, until the next claim.
    again: Vec<DueSubscriber>,
    /// Where the last claim stopped, among those that answer and among the others.
    claimed_up_to: [Option<DueSubscriber>; 2],
    is_hungry: bool,
    leased: usize,
    calls: usize,
    unproven_calls: usize,
}

impl Desk {
    /// Of those that are due, the ones to claim for, in turns: those that have little left and answer, then those not
    /// known yet, then those that failed.
    pub(crate) fn hungry(&mut self, due: Vec<DueSubscriber>, now: Time) -> Vec<DueSubscriber> {
        if self.lines.len() > LINES_MAX {
            self.lines.retain(|_, line| line.is_worth_keeping());
        }
        let unknown = Line::default();
        let (mut proven, mut unproven) = (Vec::new(), Vec::new());
        for key in due {
            let line = self.lines.get(&key).unwrap_or(&unknown);
            match line.rank() {
                _ if line.room(now) == 0 => {}
                0 => proven.push((0, key)),
                rank => unproven.push((rank, key)),
            }
        }
        unproven.truncate_in_turn(
            &mut self.claimed_up_to[1],
            UNPROVEN_CALLS_MAX.saturating_sub(self.unproven_calls).min(CLAIM_SUBSCRIBERS_MAX),
        );
        let kept = unproven.len().min(CLAIM_UNPROVEN_MIN);
        proven.truncate_in_turn(&mut self.claimed_up_to[0], CLAIM_SUBSCRIBERS_MAX - kept);
        proven.extend(unproven);
        proven.truncate(CLAIM_SUBSCRIBERS_MAX);
        proven.into_iter().map(|(_, key)| key).collect()
    }

    /// Notes how a subscriber is to be reached from now on.
    pub(crate) fn meet(&mut self, key: &DueSubscriber, target: Arc<Target>) {
        self.lines.entry(key.clone()).or_default().meet(target);
    }

    /// How much to claim for these: an equal share of the room for each, as far as it can use it.
    pub(crate) fn wants(&self, hungry: Vec<DueSubscriber>, now: Time) -> Vec<(DueSubscriber, u32)> {
        let mut free = LEASED_MAX.saturating_sub(self.leased);
        let mut wants = Vec::with_capacity(hungry.len());
        let count = hungry.len();
        for (index, key) in hungry.into_iter().enumerate() {
            let room = self.lines.get(&key).map_or(0, |line| line.room(now));
            let share = free.div_ceil(count - index).min(room);
            if share > 0 {
                free -= share;
                wants.push((key, share as u32));
            }
        }
        wants
    }

    /// Puts what was claimed in its line. `is_all` says that there was no more.
    pub(crate) fn take(&mut self, key: DueSubscriber, leased: Vec<Leased>, is_all: bool) {
        self.leased += leased.len();
        self.lines.entry(key.clone()).or_default().take(leased, is_all);
        self.queue_up(key);
    }

    /// All claims of this round are in: whoever asked to be called again is, even with nothing to tell.
    pub(crate) fn close_round(&mut self) {
        self.is_hungry = false;
        for key in std::mem::take(&mut self.again) {
            if let Some(line) = self.lines.get_mut(&key) {
                line.call_again();
            }
            self.queue_up(key);
        }
    }

    fn queue_up(&mut self, key: DueSubscriber) {
        if let Some(line) = self.lines.get_mut(&key)
            && line.enters_turns()
        {
            self.turns.push_back(key);
        }
    }

    /// The next batch to tell, if there is one and a place for it. What has waited too long for its lease goes to `back`.
    pub(crate) fn next(&mut self, now: Time, back: &mut Vec<Leased>) -> Option<Batch> {
        for _ in 0..self.turns.len() {
            if self.calls >= CALLS_MAX {
                return None;
            }
            let key = self.turns.pop_front()?;
            let Some(line) = self.lines.get_mut(&key) else { continue };
            line.leaves_turns();
            line.drop_lapsing(now.plus(LEASE_REST), back);
            let is_unproven = line.rank() > 0;
            let has_place = !is_unproven || self.unproven_calls < UNPROVEN_CALLS_MAX;
            let called = if has_place { line.next_batch() } else { None };
            self.queue_up(key.clone());
            if let Some((target, leased)) = called {
                self.calls += 1;
                self.unproven_calls += usize::from(is_unproven);
                return Some(Batch { key, target, leased, is_unproven });
            }
        }
        None
    }

    /// Notes how a subscriber behaved. What is in its line goes to `back` where it is to be left alone.
    pub(crate) fn finish(&mut self, finished: Finished, now: Time, back: &mut Vec<Leased>) {
        self.calls -= 1;
        self.unproven_calls -= usize::from(finished.is_unproven);
        let Some(line) = self.lines.get_mut(&finished.key) else { return };
        line.finish(&finished, now, back);
        self.is_hungry |= line.has_more() && line.room(now) > 0;
        if line.is_asked_again() {
            self.is_hungry = true;
            self.again.push(finished.key);
        }
    }

    /// So many of a subscriber's notifications are written and no longer leased.
    pub(crate) fn settled(&mut self, key: &DueSubscriber, count: usize, now: Time) {
        self.leased -= count;
        if let Some(line) = self.lines.get_mut(key) {
            line.settled(count);
            self.is_hungry |= line.has_more() && line.room(now) > 0;
        }
    }

    /// Whether a claim would help: somebody has asked for a call, or has more than is leased of it.
    pub(crate) fn is_hungry(&self) -> bool {
        self.is_hungry
    }

    /// Everything that is not being called, for the store to have back.
    pub(crate) fn clear(&mut self) -> Vec<Leased> {
        self.turns.clear();
        self.lines.values_mut().flat_map(Line::clear).collect()
    }
}

trait InTurn {
    /// Keeps so many, those behind the last that was kept before; the lower ranks first.
    fn truncate_in_turn(&mut self, last: &mut Option<DueSubscriber>, count: usize);
}

impl InTurn for Vec<(u32, DueSubscriber)> {
    fn truncate_in_turn(&mut self, last: &mut Option<DueSubscriber>, count: usize) {
        if self.len() > count {
            self.sort_by(|one, other| {
                let behind = |key: &DueSubscriber| last.as_ref().is_some_and(|last| key <= last);
                (one.0, behind(&one.1), &one.1).cmp(&(other.0, behind(&other.1), &other.1))
            });
            self.truncate(count);
            if let Some((_, key)) = self.last() {
                *last = Some(key.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
