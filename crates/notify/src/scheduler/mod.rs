//! Whose turn it is: a line of leased notifications for each subscriber, and the places that calls take.
//!
//! Promises: a tenant has less than half of the places, and fewer while others use theirs ([`tenant_share`]); a subscriber has at
//! most [`PLACES_PER_SUBSCRIBER`] calls at once and takes turns with the others. So a slow one delays only itself, and a
//! tenant full of slow ones only itself. How much is leased for a subscriber doubles with each call that it takes and
//! halves with each that it does not; one that failed repeatedly is called once at a time, with pauses between, until it
//! answers. Subscribers that have not proven to answer soon share [`UNPROVEN_CALLS_MAX`] places, so that however many of
//! them are dead or slow, the others have room. Who has something due is learned from time to time, and claims go on from
//! there. Pure: it does no I/O, and what it gives out it gives out once.

mod subscriber_queue;
mod tenant_share;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use postway_domain::{TenantId, Time};
use postway_store::record::DueSubscriber;

use crate::{
    deliver::client_sync,
    notification::{
        outcome::{Conduct, Leased},
        target::Target,
    },
};
use subscriber_queue::Line;
use tenant_share::TenantShares;

/// Calls at once.
const CALLS_MAX: usize = 256;
/// Calls at once to one subscriber.
const PLACES_PER_SUBSCRIBER: usize = 8;
/// Calls at once to subscribers that have not answered yet, not lately, or only slowly.
const UNPROVEN_CALLS_MAX: usize = 192;
/// Notifications leased at once, called or not.
pub(crate) const LEASED_MAX: usize = 1_024;
/// Subscribers named in one claim.
const CLAIM_SUBSCRIBERS_MAX: usize = 64;
/// Those of them that are kept for the unproven, where there are any.
const CLAIM_UNPROVEN_MIN: usize = 16;
/// How many standings there are.
const RANKS: usize = 3;
/// The standing of one that answers soon.
const PROVEN: usize = 0;
/// Of one of which nothing is known.
const UNKNOWN: usize = 1;
/// Of one that failed repeatedly, or answers slowly.
const LAGGING: usize = 2;
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
    begun_at: Time,
}

/// What a batch said about its subscriber.
pub(crate) struct Finished {
    key: DueSubscriber,
    conduct: Conduct,
    quiet_until: Option<Time>,
    comes_again: bool,
    is_unproven: bool,
    begun_at: Time,
}

impl Batch {
    /// What to say of it once it is told.
    pub(crate) fn finished(self, conduct: Conduct, quiet_until: Option<Time>, comes_again: bool) -> Finished {
        let Self { key, is_unproven, begun_at, .. } = self;
        Finished { key, conduct, quiet_until, comes_again, is_unproven, begun_at }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Desk {
    lines: BTreeMap<DueSubscriber, Line>,
    /// Those with something to call, in the order of their turns.
    turns: VecDeque<DueSubscriber>,
    /// Those that have something due, as far as it is known: a claim that gets all of it takes its subscriber out.
    due: BTreeSet<DueSubscriber>,
    /// Those that asked to be called again, until what is due has been looked for and claimed.
    again: Vec<DueSubscriber>,
    /// Those that are back after a time away: what waits for them is to be made due.
    returned: VecDeque<DueSubscriber>,
    /// How many claims there were.
    claims: u64,
    is_hungry: bool,
    /// Whether somebody was left out of the last claim for want of room.
    is_short: bool,
    shares: TenantShares,
}

impl Desk {
    /// Notes who has something due.
    pub(crate) fn learn(&mut self, due: Vec<DueSubscriber>) {
        if self.lines.len() > LINES_MAX {
            self.lines.retain(|_, line| line.is_worth_keeping());
        }
        self.due = due.into_iter().collect();
        self.is_hungry |= !self.due.is_empty();
    }

    /// This one has nothing to claim, whatever was thought.
    pub(crate) fn forget(&mut self, key: &DueSubscriber) {
        self.due.remove(key);
    }

    /// Of those that are due, the ones to claim for, in turns: those that have little left and answer soon, then those not
    /// known yet, then those that lag.
    pub(crate) fn hungry(&mut self, now: Time) -> Vec<DueSubscriber> {
        if self.shares.leased() >= LEASED_MAX {
            (self.is_short, self.is_hungry) = (true, false);
            return Vec::new();
        }
        let mut ranks: [Vec<(u64, &DueSubscriber)>; RANKS] = Default::default();
        for key in &self.due {
            match self.lines.get(key) {
                Some(line) if line.room(now) > 0 => ranks[line.rank()].push((line.claimed_in(), key)),
                Some(_) => {}
                None => ranks[UNKNOWN].push((0, key)),
            }
        }
        let count: usize = ranks.iter().map(Vec::len).sum();
        let [proven, unknown, lagging] = ranks;
        let places = self.shares.unproven_places().min(CLAIM_SUBSCRIBERS_MAX);
        let mut unproven = self.in_turn(unknown, places, true);
        unproven.extend(self.in_turn(lagging, places - unproven.len(), true));
        let most = CLAIM_SUBSCRIBERS_MAX - unproven.len().min(CLAIM_UNPROVEN_MIN);
        let mut chosen = self.in_turn(proven, most, false);
        chosen.extend(unproven);
        chosen.truncate(CLAIM_SUBSCRIBERS_MAX);
        self.is_short = count > chosen.len();
        self.is_hungry = self.is_short && !chosen.is_empty();
        self.claims += 1;
        for key in &chosen {
            self.lines.entry(key.clone()).or_default().claim_in(self.claims);
        }
        chosen
    }

    /// The first of each tenant, then the second of each and so on, as far as the tenant's share goes; among a tenant's and
    /// among tenants whoever was claimed for longest ago comes first.
    fn in_turn(
        &self,
        mut due: Vec<(u64, &DueSubscriber)>,
        count: usize,
        is_unproven: bool,
    ) -> Vec<DueSubscriber> {
        due.sort_by_key(|(claimed_in, _)| *claimed_in);
        let mut seats: BTreeMap<&TenantId, (usize, usize)> = BTreeMap::new();
        let mut seated: Vec<(usize, &DueSubscriber)> = Vec::with_capacity(due.len());
        for (_, key) in due {
            let (taken, most) = seats.entry(&key.tenant).or_insert_with(|| {
                let leases = self.shares.lease_room(&key.tenant);
                let calls = if is_unproven { self.shares.call_room(&key.tenant, true) } else { leases };
                (0, leases.min(calls))
            });
            if taken < most {
                seated.push((*taken, key));
                *taken += 1;
            }
        }
        seated.sort_by_key(|(seat, _)| *seat);
        seated.into_iter().take(count).map(|(_, key)| key.clone()).collect()
    }

    /// Notes how a subscriber is to be reached from now on.
    pub(crate) fn meet(&mut self, key: &DueSubscriber, target: Arc<Target>) {
        self.lines.entry(key.clone()).or_default().meet(target);
    }

    /// How much to claim for these: for each an equal share of the room that there is, and of what its tenant may have of
    /// it, as far as it can use it.
    pub(crate) fn wants(&self, hungry: Vec<DueSubscriber>, now: Time) -> Vec<(DueSubscriber, u32)> {
        let mut tenants: BTreeMap<TenantId, (usize, usize)> = BTreeMap::new();
        for key in &hungry {
            let room = || (self.shares.lease_room(&key.tenant), 0);
            tenants.entry(key.tenant.clone()).or_insert_with(room).1 += 1;
        }
        let mut free = LEASED_MAX.saturating_sub(self.shares.leased());
        let mut wants = Vec::with_capacity(hungry.len());
        let count = hungry.len();
        for (index, key) in hungry.into_iter().enumerate() {
            let room = self.lines.get(&key).map_or(0, |line| line.room(now));
            let Some((tenant_room, others)) = tenants.get_mut(&key.tenant) else { continue };
            let share = free.div_ceil(count - index).min(tenant_room.div_ceil(*others)).min(room);
            *others -= 1;
            if share > 0 {
                free -= share;
                *tenant_room -= share;
                wants.push((key, share as u32));
            }
        }
        wants
    }

    /// Puts what was claimed in its line. `is_all` says that there was no more.
    pub(crate) fn take(&mut self, key: DueSubscriber, leased: Vec<Leased>, is_all: bool) {
        self.shares.lease(&key.tenant, leased.len());
        if is_all {
            self.due.remove(&key);
        }
        self.lines.entry(key.clone()).or_default().take(leased, is_all);
        self.queue_up(key);
    }

    /// What is due has been looked for and claimed: whoever asked to be called again is, even with nothing to tell.
    pub(crate) fn close_round(&mut self) {
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
            let key = self.turns.pop_front()?;
            let Some(line) = self.lines.get_mut(&key) else { continue };
            line.leaves_turns();
            line.drop_lapsing(now.plus(LEASE_REST), back);
            let is_unproven = line.rank() != PROVEN;
            let has_place = self.shares.call_room(&key.tenant, is_unproven) > 0;
            let called = if has_place { line.next_batch() } else { None };
            self.queue_up(key.clone());
            if let Some((target, leased)) = called {
                self.shares.begin_call(&key.tenant, is_unproven);
                return Some(Batch { key, target, leased, is_unproven, begun_at: now });
            }
        }
        None
    }

    /// Notes how a subscriber behaved. What is in its line goes to `back` where it is to be left alone.
    pub(crate) fn finish(&mut self, finished: Finished, now: Time, back: &mut Vec<Leased>) {
        self.shares.end_call(&finished.key.tenant, finished.is_unproven);
        let Some(line) = self.lines.get_mut(&finished.key) else { return };
        line.finish(&finished, now, back);
        self.is_hungry |= self.is_short || (line.has_more() && line.room(now) > 0);
        if line.has_returned() {
            self.returned.push_back(finished.key.clone());
        }
        if line.is_asked_again() {
            self.again.push(finished.key);
        }
    }

    /// One that answers again after a time away, or for the first time in this life of the process: what was made to wait
    /// for it need not wait any longer. It is named once.
    pub(crate) fn next_returned(&mut self) -> Option<DueSubscriber> {
        self.returned.pop_front()
    }

    /// What waits for one that is back could not be made due: its next answer says once more that it is back.
    pub(crate) fn still_owes(&mut self, key: &DueSubscriber) {
        if let Some(line) = self.lines.get_mut(key) {
            line.forget_return();
        }
    }

    /// So many of a subscriber's notifications are written and no longer leased.
    pub(crate) fn settled(&mut self, key: &DueSubscriber, count: usize, now: Time) {
        self.shares.settle(&key.tenant, count);
        if let Some(line) = self.lines.get_mut(key) {
            line.settled(count);
            self.is_hungry |= self.is_short || (line.has_more() && line.room(now) > 0);
        }
    }

    /// Whether a claim would help: somebody has more than is leased of it.
    pub(crate) fn is_hungry(&self) -> bool {
        self.is_hungry
    }

    /// Whether somebody asked to be called again, for whom what is due must be looked for first.
    pub(crate) fn is_asked_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Everything that is not being called, for the store to have back.
    pub(crate) fn clear(&mut self) -> Vec<Leased> {
        self.turns.clear();
        self.lines.values_mut().flat_map(Line::clear).collect()
    }
}

#[cfg(test)]
mod tests;
