//! A bounded number of slots that tenants share.
//!
//! A free slot goes to the waiting tenant that has the fewest, so that a tenant may use what no other needs.
//! When a tenant waits and no slot is free, slots are recalled: idle ones (an idle session) from tenants that
//! have as many or more, and those in use from a tenant that has more than its share. The holder of a
//! recalled slot gives it back at the next suitable moment; the limits of its work say when that is at the
//! latest. A tenant never has more than `per_tenant_max`.
//!
//! All decisions are made under one lock, in [`TenantSlotPlan`], which is pure.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::TenantId;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

/// The shared slots. See the module.
pub(crate) struct TenantSlots {
    plan: Mutex<TenantSlotPlan>,
}

/// A slot, which is given back when it is dropped.
pub(crate) struct TenantSlot {
    slots: Arc<TenantSlots>,
    number: u64,
    recall: watch::Receiver<Option<Instant>>,
}

struct TenantSlotPlan {
    slots: usize,
    per_tenant_max: usize,
    /// Numbers slots and waiters in the order in which they came.
    next: u64,
    taken: BTreeMap<u64, TakenTenantSlot>,
    waiting: BTreeMap<TenantId, VecDeque<SlotWaiter>>,
}

struct TakenTenantSlot {
    tenant: TenantId,
    is_idle: bool,
    recall: watch::Sender<Option<Instant>>,
}

impl TakenTenantSlot {
    fn is_recalled(&self) -> bool {
        self.recall.borrow().is_some()
    }
}

struct SlotWaiter {
    number: u64,
    grant: oneshot::Sender<TenantSlot>,
}

/// A slot that is handed over once the lock is released.
type SlotGrant = (oneshot::Sender<TenantSlot>, u64, watch::Receiver<Option<Instant>>);

impl TenantSlots {
    /// Creates `slots` free slots, of which one tenant has at most `per_tenant_max`.
    pub(crate) fn new(slots: usize, per_tenant_max: usize) -> Arc<Self> {
        let plan = TenantSlotPlan {
            slots,
            per_tenant_max,
            next: 0,
            taken: BTreeMap::new(),
            waiting: BTreeMap::new(),
        };
        Arc::new(Self { plan: Mutex::new(plan) })
    }

    /// Waits for a slot.
    pub(crate) async fn take(self: &Arc<Self>, tenant: &TenantId) -> TenantSlot {
        self.queue(tenant).await
    }

    /// Joins the queue for a slot at once, even before the future is first polled: waiters get their slots in
    /// the order of these calls.
    pub(crate) fn queue(
        self: &Arc<Self>,
        tenant: &TenantId,
    ) -> impl Future<Output = TenantSlot> + Send + 'static {
        let (grant, granted) = oneshot::channel();
        let grants = {
            let mut plan = self.lock();
            plan.enqueue(tenant.clone(), grant);
            plan.settle(Instant::now())
        };
        self.hand_out(grants);
        async move {
            match granted.await {
                Ok(slot) => slot,
                // The plan keeps the sender until it grants a slot.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Whether anybody waits for a slot.
    pub(crate) fn is_crowded(&self) -> bool {
        self.lock().waiting.values().flatten().any(|waiter| !waiter.grant.is_closed())
    }

    /// Whether every slot is taken.
    pub(crate) fn is_full(&self) -> bool {
        let plan = self.lock();
        plan.taken.len() >= plan.slots
    }

    fn lock(&self) -> MutexGuard<'_, TenantSlotPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs outside of the lock: a slot whose waiter is gone is given back here.
    fn hand_out(self: &Arc<Self>, grants: Vec<SlotGrant>) {
        for (grant, number, recall) in grants {
            drop(grant.send(TenantSlot { slots: self.clone(), number, recall }));
        }
    }
}

impl TenantSlot {
    /// Sets whether the slot is idle. Idle slots are recalled first.
    pub(crate) fn set_idle(&self, is_idle: bool) {
        let grants = {
            let mut plan = self.slots.lock();
            if let Some(taken) = plan.taken.get_mut(&self.number) {
                taken.is_idle = is_idle;
            }
            if is_idle { plan.settle(Instant::now()) } else { Vec::new() }
        };
        self.slots.hand_out(grants);
    }

    /// Whether the slot was recalled.
    pub(crate) fn is_recalled(&self) -> bool {
        self.recall.borrow().is_some()
    }

    /// Waits until the slot is recalled; returns when that was.
    pub(crate) async fn recalled(&self) -> Instant {
        let mut recall = self.recall.clone();
        match recall.wait_for(Option::is_some).await.ok().and_then(|since| *since) {
            Some(since) => since,
            // The plan keeps the sender as long as the slot is taken.
            None => std::future::pending().await,
        }
    }
}

impl Drop for TenantSlot {
    fn drop(&mut self) {
        let grants = {
            let mut plan = self.slots.lock();
            plan.taken.remove(&self.number);
            plan.settle(Instant::now())
        };
        self.slots.hand_out(grants);
    }
}

impl TenantSlotPlan {
    fn enqueue(&mut self, tenant: TenantId, grant: oneshot::Sender<TenantSlot>) {
        let number = self.number();
        self.waiting.entry(tenant).or_default().push_back(SlotWaiter { number, grant });
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Grants free slots, and recalls others for those who still wait.
    fn settle(&mut self, now: Instant) -> Vec<SlotGrant> {
        self.waiting.retain(|_, queue| {
            queue.retain(|waiter| !waiter.grant.is_closed());
            !queue.is_empty()
        });
        let mut grants = Vec::new();
        let mut taken = self.taken_by_tenant(|_| true);
        while self.taken.len() < self.slots {
            let Some(tenant) = self.next_tenant(&taken, &BTreeMap::new()) else { break };
            let Some(waiter) = self.waiting.get_mut(&tenant).and_then(VecDeque::pop_front) else { break };
            let (recall, recalled) = watch::channel(None);
            let number = self.number();
            *taken.entry(tenant.clone()).or_default() += 1;
            self.taken.insert(number, TakenTenantSlot { tenant, is_idle: false, recall });
            grants.push((waiter.grant, number, recalled));
        }
        self.waiting.retain(|_, queue| !queue.is_empty());
        self.recall_for_waiting(now);
        grants
    }

    /// Recalls one slot for each waiter, as far as that is fair, counting the slots that are on their way
    /// back.
    fn recall_for_waiting(&mut self, now: Instant) {
        if self.waiting.is_empty() {
            return;
        }
        let mut taken = self.taken_by_tenant(|slot| !slot.is_recalled());
        let mut coming = self.taken.values().filter(|slot| slot.is_recalled()).count();
        let tenants =
            taken.keys().chain(self.waiting.keys()).collect::<std::collections::BTreeSet<_>>().len();
        let share = (self.slots / tenants.max(1)).max(1);
        let mut served: BTreeMap<TenantId, usize> = BTreeMap::new();
        while let Some(tenant) = self.next_tenant(&taken, &served) {
            if coming > 0 {
                coming -= 1;
            } else {
                let Some(number) = self.victim(&tenant, &taken, share) else { return };
                let Some(slot) = self.taken.get(&number) else { return };
                slot.recall.send_replace(Some(now));
                *taken.entry(slot.tenant.clone()).or_default() -= 1;
            }
            *taken.entry(tenant.clone()).or_default() += 1;
            *served.entry(tenant).or_default() += 1;
        }
    }

    /// The slot to recall for this tenant.
    fn victim(&self, tenant: &TenantId, taken: &BTreeMap<TenantId, usize>, share: usize) -> Option<u64> {
        let count = |of: &TenantId| taken.get(of).copied().unwrap_or(0);
        let ours = count(tenant);
        let open = || self.taken.iter().filter(|(_, slot)| !slot.is_recalled());
        let most =
            |(number, slot): &(&u64, &TakenTenantSlot)| (count(&slot.tenant), std::cmp::Reverse(**number));
        let resting =
            open().filter(|(_, slot)| slot.is_idle && (slot.tenant == *tenant || count(&slot.tenant) > ours));
        let in_use =
            open().filter(|(_, slot)| slot.tenant != *tenant && count(&slot.tenant) > share.max(ours));
        resting.max_by_key(most).or_else(|| in_use.max_by_key(most)).map(|(number, _)| *number)
    }

    /// The tenant that gets the next slot, after `served` waiters of its queue have been served.
    fn next_tenant(
        &self,
        taken: &BTreeMap<TenantId, usize>,
        served: &BTreeMap<TenantId, usize>,
    ) -> Option<TenantId> {
        let count = |of: &TenantId| taken.get(of).copied().unwrap_or(0);
        let queued = self.waiting.iter().filter_map(|(tenant, queue)| {
            let first = queue.get(served.get(tenant).copied().unwrap_or(0))?;
            (count(tenant) < self.per_tenant_max).then_some((tenant, first.number))
        });
        queued.min_by_key(|(tenant, number)| (count(tenant), *number)).map(|(tenant, _)| tenant.clone())
    }

    fn taken_by_tenant(&self, counts: impl Fn(&TakenTenantSlot) -> bool) -> BTreeMap<TenantId, usize> {
        let mut taken: BTreeMap<TenantId, usize> = BTreeMap::new();
        for slot in self.taken.values().filter(|slot| counts(slot)) {
            *taken.entry(slot.tenant.clone()).or_default() += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    async fn take(slots: &Arc<TenantSlots>, name: &str, count: usize) -> Vec<TenantSlot> {
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(slots.take(&tenant(name)).now_or_never().expect("a slot is free"));
        }
        taken
    }

    fn recalled(slots: &[TenantSlot]) -> usize {
        slots.iter().filter(|slot| slot.is_recalled()).count()
    }

    #[tokio::test]
    async fn whoever_holds_least_gets_the_next_seat_however_many_wait_before() {
        let slots = TenantSlots::new(2, 2);
        let mut greedy = take(&slots, "greedy", 2).await;
        let (a, b) = (tenant("greedy"), tenant("modest"));
        let mut more: Vec<_> = (0..5).map(|_| Box::pin(slots.take(&a))).collect();
        assert!(more.iter_mut().all(|wait| wait.as_mut().now_or_never().is_none()));
        let mut modest = Box::pin(slots.take(&b));
        assert!(modest.as_mut().now_or_never().is_none());
        assert_eq!(recalled(&greedy), 1, "one slot is asked back, because one tenant waits for its first");
        greedy.pop();
        let modest = modest.now_or_never().expect("the slot is not the greedy one's again");
        assert!(!modest.is_recalled());
        drop(greedy);
        assert!(more.remove(0).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_seat_that_rests_is_recalled_first_and_from_whoever_holds_most() {
        let slots = TenantSlots::new(6, 6);
        let (many, few) = (take(&slots, "many", 4).await, take(&slots, "few", 2).await);
        many[2].set_idle(true);
        few[0].set_idle(true);
        let (b, c) = (tenant("few"), tenant("new"));
        let mut wait = Box::pin(slots.take(&c));
        assert!(wait.as_mut().now_or_never().is_none());
        assert!(many[2].is_recalled() && recalled(&many) == 1 && recalled(&few) == 0);
        // One more for the tenants that have two: their own idle slot, because the others have no more than
        // they.
        let mut own = Box::pin(slots.take(&b));
        assert!(own.as_mut().now_or_never().is_none());
        assert_eq!((recalled(&many), recalled(&few)), (1, 1));
        assert!(slots.is_crowded());
    }

    #[tokio::test]
    async fn a_seat_in_use_is_left_to_a_tenant_that_holds_no_more_than_its_share() {
        let slots = TenantSlots::new(2, 2);
        let taken = [take(&slots, "a", 1).await, take(&slots, "b", 1).await];
        let c = tenant("c");
        let mut wait = Box::pin(slots.take(&c));
        assert!(wait.as_mut().now_or_never().is_none());
        assert_eq!(taken.iter().map(|taken| recalled(taken)).sum::<usize>(), 0);
        taken[1][0].set_idle(true);
        assert!(taken[1][0].is_recalled(), "once it rests it is the other's turn");
    }

    #[tokio::test]
    async fn those_who_queue_in_order_are_seated_in_order_whoever_is_polled_first() {
        let slots = TenantSlots::new(1, 1);
        let (taken, a) = (take(&slots, "a", 1).await, tenant("a"));
        let [first, mut second] = [(); 2].map(|()| Box::pin(slots.queue(&a)));
        assert!(second.as_mut().now_or_never().is_none());
        drop(taken);
        assert!(second.as_mut().now_or_never().is_none());
        drop(first.now_or_never().expect("it came first"));
        assert!(second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn nobody_holds_more_than_the_bound_and_who_gave_up_waiting_gets_none() {
        let slots = TenantSlots::new(3, 2);
        let taken = take(&slots, "a", 2).await;
        let (a, b) = (tenant("a"), tenant("b"));
        let mut third = Box::pin(slots.take(&a));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(recalled(&taken), 0);
        let other = take(&slots, "b", 1).await;
        let mut gone = Box::pin(slots.take(&b));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        drop(other);
        assert!(slots.take(&b).now_or_never().is_some(), "the slot did not go to somebody who left");
        drop(taken);
        assert!(third.now_or_never().is_some());
    }
}
