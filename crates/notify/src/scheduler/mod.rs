//! Whose turn it is: a queue of leased notifications for each subscriber, and the slots that calls take.
//!
//! Promises: a tenant has less than half of the slots, and fewer while others use theirs ([`tenant_share`]).
//! A subscriber has at most [`CALLS_PER_SUBSCRIBER`] calls at once and takes turns with the others. So a slow
//! subscriber delays only itself, and a tenant full of slow ones delays only itself.
//!
//! How much is leased for a subscriber doubles with each call that it takes and halves with each that fails.
//! A subscriber that failed repeatedly gets one call at a time, with pauses, until it answers. Subscribers
//! that have not proven to answer soon share [`UNPROVEN_CALLS_MAX`] slots, so that any number of dead or slow
//! ones leaves capacity for the others. The scheduler learns from time to time which subscribers have
//! something due, and chooses claims from that.
//!
//! Pure: it does no I/O, and gives out each notification once.

mod subscriber_queue;
mod tenant_share;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use postway_domain::{TenantId, Time};
use postway_store::record::DueSubscriber;

use crate::notification::{
    batch::{FinishedBatch, NotificationBatch},
    call_limits::CALL_MAX,
    outcome::LeasedNotification,
    target::SubscriberTarget,
};
use subscriber_queue::{SubscriberQueue, SubscriberRank};
use tenant_share::TenantShares;

/// The most calls at once.
const CALLS_MAX: usize = 256;
/// The most calls at once to one subscriber.
const CALLS_PER_SUBSCRIBER: usize = 8;
/// The most calls at once to subscribers that have not answered yet, not lately, or only slowly.
const UNPROVEN_CALLS_MAX: usize = 192;
/// The most notifications leased at once, including those being called.
pub(crate) const LEASED_MAX: usize = 1_024;
/// The most subscribers of one claim.
const CLAIM_SUBSCRIBERS_MAX: usize = 64;
/// The part of them reserved for unproven subscribers, if there are any.
const CLAIM_UNPROVEN_MIN: usize = 16;
/// How many empty queues are kept in memory.
const QUEUES_MAX: usize = 20_000;
/// A call begins only if its lease lasts longer than the longest call.
const LEASE_LEFT_MIN: Duration = CALL_MAX;

/// The scheduler. See the module.
#[derive(Default)]
pub(crate) struct CallScheduler {
    queues: BTreeMap<DueSubscriber, SubscriberQueue>,
    /// Subscribers with something to call, in the order of their turns.
    turns: VecDeque<DueSubscriber>,
    /// Subscribers known to have something due. A claim that gets all of it removes its subscriber.
    due: BTreeSet<DueSubscriber>,
    /// Clients that asked to be called again, until their due notifications have been polled for and claimed.
    again: Vec<DueSubscriber>,
    /// Subscribers that are back after a time away; what waits for them is made due.
    returned: VecDeque<DueSubscriber>,
    /// The number of claims so far.
    claims: u64,
    wants_claim: bool,
    /// Whether the last claim left somebody out for lack of capacity.
    left_some_out: bool,
    shares: TenantShares,
}

impl CallScheduler {
    /// Takes the subscribers that have something due.
    pub(crate) fn set_due(&mut self, due: Vec<DueSubscriber>) {
        if self.queues.len() > QUEUES_MAX {
            self.queues.retain(|_, queue| queue.is_worth_keeping());
        }
        self.due = due.into_iter().collect();
        self.wants_claim |= !self.due.is_empty();
    }

    /// Removes a subscriber that turned out to have nothing to claim.
    pub(crate) fn forget(&mut self, key: &DueSubscriber) {
        self.due.remove(key);
    }

    /// Chooses the due subscribers to claim for: first those that answer soon and have little left, then
    /// those without history, then those that lag.
    pub(crate) fn choose_claims(&mut self, now: Time) -> Vec<DueSubscriber> {
        if self.shares.leased() >= LEASED_MAX {
            (self.left_some_out, self.wants_claim) = (true, false);
            return Vec::new();
        }
        let (mut proven, mut unknown, mut lagging) = (Vec::new(), Vec::new(), Vec::new());
        for key in &self.due {
            let (rank, claimed_in) = match self.queues.get(key) {
                Some(queue) if queue.capacity(now) > 0 => (queue.rank(), queue.claimed_in()),
                Some(_) => continue,
                None => (SubscriberRank::Unknown, 0),
            };
            let same_rank = match rank {
                SubscriberRank::Proven => &mut proven,
                SubscriberRank::Unknown => &mut unknown,
                SubscriberRank::Lagging => &mut lagging,
            };
            same_rank.push((claimed_in, key));
        }
        let count = proven.len() + unknown.len() + lagging.len();
        let slots = self.shares.unproven_slots().min(CLAIM_SUBSCRIBERS_MAX);
        let mut unproven = self.in_turn(unknown, slots, true);
        unproven.extend(self.in_turn(lagging, slots - unproven.len(), true));
        let most = CLAIM_SUBSCRIBERS_MAX - unproven.len().min(CLAIM_UNPROVEN_MIN);
        let mut chosen = self.in_turn(proven, most, false);
        chosen.extend(unproven);
        chosen.truncate(CLAIM_SUBSCRIBERS_MAX);
        self.left_some_out = count > chosen.len();
        self.wants_claim = self.left_some_out && !chosen.is_empty();
        self.claims += 1;
        for key in &chosen {
            self.queues.entry(key.clone()).or_default().note_claim(self.claims);
        }
        chosen
    }

    /// Orders subscribers by turns: the first of each tenant, then the second of each, as far as the tenant's
    /// share goes. Within a tenant and among tenants the one with the oldest claim comes first.
    fn in_turn(
        &self,
        mut due: Vec<(u64, &DueSubscriber)>,
        count: usize,
        is_unproven: bool,
    ) -> Vec<DueSubscriber> {
        due.sort_by_key(|(claimed_in, _)| *claimed_in);
        let mut counts: BTreeMap<&TenantId, (usize, usize)> = BTreeMap::new();
        let mut ordered: Vec<(usize, &DueSubscriber)> = Vec::with_capacity(due.len());
        for (_, key) in due {
            let (taken, most) = counts.entry(&key.tenant).or_insert_with(|| {
                let leases = self.shares.lease_capacity(&key.tenant);
                let calls = if is_unproven { self.shares.call_capacity(&key.tenant, true) } else { leases };
                (0, leases.min(calls))
            });
            if taken < most {
                ordered.push((*taken, key));
                *taken += 1;
            }
        }
        ordered.sort_by_key(|(turn, _)| *turn);
        ordered.into_iter().take(count).map(|(_, key)| key.clone()).collect()
    }

    /// Sets how a subscriber is reached from now on.
    pub(crate) fn set_target(&mut self, key: &DueSubscriber, target: Arc<SubscriberTarget>) {
        self.queues.entry(key.clone()).or_default().set_target(target);
    }

    /// How much to claim for these subscribers: each gets an equal share of the capacity and of its tenant's
    /// share of it, as far as it can use it.
    pub(crate) fn claim_sizes(
        &self,
        subscribers: Vec<DueSubscriber>,
        now: Time,
    ) -> Vec<(DueSubscriber, u32)> {
        let mut tenants: BTreeMap<TenantId, (usize, usize)> = BTreeMap::new();
        for key in &subscribers {
            let capacity = || (self.shares.lease_capacity(&key.tenant), 0);
            tenants.entry(key.tenant.clone()).or_insert_with(capacity).1 += 1;
        }
        let mut free = LEASED_MAX.saturating_sub(self.shares.leased());
        let mut wants = Vec::with_capacity(subscribers.len());
        let count = subscribers.len();
        for (index, key) in subscribers.into_iter().enumerate() {
            let capacity = self.queues.get(&key).map_or(0, |queue| queue.capacity(now));
            let Some((tenant_capacity, others)) = tenants.get_mut(&key.tenant) else { continue };
            let share = free.div_ceil(count - index).min(tenant_capacity.div_ceil(*others)).min(capacity);
            *others -= 1;
            if share > 0 {
                free -= share;
                *tenant_capacity -= share;
                wants.push((key, share as u32));
            }
        }
        wants
    }

    /// Puts claimed notifications into their queue. `is_all` says that there were no more.
    pub(crate) fn take(&mut self, key: DueSubscriber, leased: Vec<LeasedNotification>, is_all: bool) {
        self.shares.lease(&key.tenant, leased.len());
        if is_all {
            self.due.remove(&key);
        }
        self.queues.entry(key.clone()).or_default().take(leased, is_all);
        self.queue_up(key);
    }

    /// Ends a round: what was due is claimed, so clients that asked to be called again are called, even with
    /// nothing to deliver.
    pub(crate) fn close_round(&mut self) {
        for key in std::mem::take(&mut self.again) {
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.call_again();
            }
            self.queue_up(key);
        }
    }

    fn queue_up(&mut self, key: DueSubscriber) {
        if let Some(queue) = self.queues.get_mut(&key)
            && queue.enters_turns()
        {
            self.turns.push_back(key);
        }
    }

    /// The next batch to deliver, if there is one and a slot for it. Notifications that have waited too long
    /// for their lease go to `back`.
    pub(crate) fn next(
        &mut self,
        now: Time,
        back: &mut Vec<LeasedNotification>,
    ) -> Option<NotificationBatch> {
        for _ in 0..self.turns.len() {
            let key = self.turns.pop_front()?;
            let Some(queue) = self.queues.get_mut(&key) else { continue };
            queue.leaves_turns();
            queue.drop_expiring(now.plus(LEASE_LEFT_MIN), back);
            let is_unproven = queue.rank() != SubscriberRank::Proven;
            let has_slot = self.shares.call_capacity(&key.tenant, is_unproven) > 0;
            let called = if has_slot { queue.next_batch() } else { None };
            self.queue_up(key.clone());
            if let Some((target, leased)) = called {
                self.shares.begin_call(&key.tenant, is_unproven);
                return Some(NotificationBatch { key, target, leased, is_unproven, begun_at: now });
            }
        }
        None
    }

    /// Notes how a subscriber behaved. If it is to be left alone, its queue goes to `back`.
    pub(crate) fn finish(&mut self, finished: FinishedBatch, now: Time, back: &mut Vec<LeasedNotification>) {
        self.shares.end_call(&finished.key.tenant, finished.is_unproven);
        let Some(queue) = self.queues.get_mut(&finished.key) else { return };
        queue.finish(&finished, now, back);
        self.wants_claim |= self.left_some_out || (queue.has_more() && queue.capacity(now) > 0);
        if queue.has_returned() {
            self.returned.push_back(finished.key.clone());
        }
        if queue.is_asked_again() {
            self.again.push(finished.key);
        }
    }

    /// The next subscriber that answers after a time away, or for the first time in this incarnation: what
    /// waits for it need not wait any longer. Each return is reported once.
    pub(crate) fn next_returned(&mut self) -> Option<DueSubscriber> {
        self.returned.pop_front()
    }

    /// Notes that the waiting notifications could not be made due: the subscriber's next answer reports its
    /// return again.
    pub(crate) fn return_not_served(&mut self, key: &DueSubscriber) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.forget_return();
        }
    }

    /// Notes that `count` of a subscriber's notifications are written and no longer leased.
    pub(crate) fn settled(&mut self, key: &DueSubscriber, count: usize, now: Time) {
        self.shares.settle(&key.tenant, count);
        if let Some(queue) = self.queues.get_mut(key) {
            queue.settled(count);
            self.wants_claim |= self.left_some_out || (queue.has_more() && queue.capacity(now) > 0);
        }
    }

    /// Whether a claim would help: a subscriber has more due than is leased.
    pub(crate) fn wants_claim(&self) -> bool {
        self.wants_claim
    }

    /// Whether a client asked to be called again, which needs a poll first.
    pub(crate) fn is_asked_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Removes everything that is not being called, to be given back to the store.
    pub(crate) fn clear(&mut self) -> Vec<LeasedNotification> {
        self.turns.clear();
        self.queues.values_mut().flat_map(SubscriberQueue::clear).collect()
    }
}

#[cfg(test)]
mod tests;
