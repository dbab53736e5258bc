//! Seats: a bounded number of places that tenants share.
//!
//! A free seat goes to the waiting tenant that holds the fewest, so a tenant may use what nobody else needs. When somebody waits and no
//! seat is free, seats are recalled: those that rest (an idle session) from whoever holds as many or more, and those in use from a tenant
//! that holds more than its share. Whoever holds a recalled seat gives it back at the next good moment; the bounds of its work say when
//! that is at the latest. A tenant never holds more than `per_tenant_max`.
//!
//! All decisions are made under one lock, in [`SeatPlan`], which is pure.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::TenantId;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

/// See the module.
pub(crate) struct TenantSeats {
    plan: Mutex<SeatPlan>,
}

/// A seat; given back when it is dropped.
pub(crate) struct TenantSeat {
    seats: Arc<TenantSeats>,
    number: u64,
    recall: watch::Receiver<Option<Instant>>,
}

struct SeatPlan {
    seats: usize,
    per_tenant_max: usize,
    /// Counts seats and those who wait, in the order in which they came.
    next: u64,
    held: BTreeMap<u64, HeldSeat>,
    waiting: BTreeMap<TenantId, VecDeque<SeatWaiter>>,
}

struct HeldSeat {
    tenant: TenantId,
    is_resting: bool,
    recall: watch::Sender<Option<Instant>>,
}

impl HeldSeat {
    fn is_recalled(&self) -> bool {
        self.recall.borrow().is_some()
    }
}

struct SeatWaiter {
    number: u64,
    grant: oneshot::Sender<TenantSeat>,
}

/// A seat that somebody gets once the lock is released.
type SeatGrant = (oneshot::Sender<TenantSeat>, u64, watch::Receiver<Option<Instant>>);

impl TenantSeats {
    /// Free seats, of which one tenant holds at most `per_tenant_max`.
    pub(crate) fn new(seats: usize, per_tenant_max: usize) -> Arc<Self> {
        let plan =
            SeatPlan { seats, per_tenant_max, next: 0, held: BTreeMap::new(), waiting: BTreeMap::new() };
        Arc::new(Self { plan: Mutex::new(plan) })
    }

    /// Waits for a seat.
    pub(crate) async fn take(self: &Arc<Self>, tenant: &TenantId) -> TenantSeat {
        self.queue(tenant).await
    }

    /// Joins the line for a seat now, whenever the future is first polled: those who queue in order are seated in order.
    pub(crate) fn queue(
        self: &Arc<Self>,
        tenant: &TenantId,
    ) -> impl Future<Output = TenantSeat> + Send + 'static {
        let (grant, granted) = oneshot::channel();
        let grants = {
            let mut plan = self.lock();
            plan.enqueue(tenant.clone(), grant);
            plan.settle(Instant::now())
        };
        self.hand_out(grants);
        async move {
            match granted.await {
                Ok(seat) => seat,
                // The plan keeps the other end until it grants a seat.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Whether somebody waits for a seat.
    pub(crate) fn is_crowded(&self) -> bool {
        self.lock().waiting.values().flatten().any(|waiter| !waiter.grant.is_closed())
    }

    /// Whether every seat is held.
    pub(crate) fn is_full(&self) -> bool {
        let plan = self.lock();
        plan.held.len() >= plan.seats
    }

    fn lock(&self) -> MutexGuard<'_, SeatPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Outside of the lock: a seat whose taker is gone is given back on the way.
    fn hand_out(self: &Arc<Self>, grants: Vec<SeatGrant>) {
        for (grant, number, recall) in grants {
            drop(grant.send(TenantSeat { seats: self.clone(), number, recall }));
        }
    }
}

impl TenantSeat {
    /// Says whether the seat is in use or rests. One that rests is recalled first.
    pub(crate) fn rest(&self, is_resting: bool) {
        let grants = {
            let mut plan = self.seats.lock();
            if let Some(held) = plan.held.get_mut(&self.number) {
                held.is_resting = is_resting;
            }
            if is_resting { plan.settle(Instant::now()) } else { Vec::new() }
        };
        self.seats.hand_out(grants);
    }

    /// Whether somebody else needs it.
    pub(crate) fn is_recalled(&self) -> bool {
        self.recall.borrow().is_some()
    }

    /// Pends until somebody else needs it; since when.
    pub(crate) async fn recalled(&self) -> Instant {
        let mut recall = self.recall.clone();
        match recall.wait_for(Option::is_some).await.ok().and_then(|since| *since) {
            Some(since) => since,
            // The plan keeps the other end as long as the seat is held.
            None => std::future::pending().await,
        }
    }
}

impl Drop for TenantSeat {
    fn drop(&mut self) {
        let grants = {
            let mut plan = self.seats.lock();
            plan.held.remove(&self.number);
            plan.settle(Instant::now())
        };
        self.seats.hand_out(grants);
    }
}

impl SeatPlan {
    fn enqueue(&mut self, tenant: TenantId, grant: oneshot::Sender<TenantSeat>) {
        let number = self.number();
        self.waiting.entry(tenant).or_default().push_back(SeatWaiter { number, grant });
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives out free seats and recalls others for those who still wait.
    fn settle(&mut self, now: Instant) -> Vec<SeatGrant> {
        self.waiting.retain(|_, line| {
            line.retain(|waiter| !waiter.grant.is_closed());
            !line.is_empty()
        });
        let mut grants = Vec::new();
        let mut held = self.held_by_tenant(|_| true);
        while self.held.len() < self.seats {
            let Some(tenant) = self.first_in_line(&held, &BTreeMap::new()) else { break };
            let Some(waiter) = self.waiting.get_mut(&tenant).and_then(VecDeque::pop_front) else { break };
            let (recall, recalled) = watch::channel(None);
            let number = self.number();
            *held.entry(tenant.clone()).or_default() += 1;
            self.held.insert(number, HeldSeat { tenant, is_resting: false, recall });
            grants.push((waiter.grant, number, recalled));
        }
        self.waiting.retain(|_, line| !line.is_empty());
        self.recall_for_waiting(now);
        grants
    }

    /// Recalls one seat for each who waits, as far as that is fair, counting those that are on their way back.
    fn recall_for_waiting(&mut self, now: Instant) {
        if self.waiting.is_empty() {
            return;
        }
        let mut held = self.held_by_tenant(|seat| !seat.is_recalled());
        let mut coming = self.held.values().filter(|seat| seat.is_recalled()).count();
        let tenants = held.keys().chain(self.waiting.keys()).collect::<std::collections::BTreeSet<_>>().len();
        let share = (self.seats / tenants.max(1)).max(1);
        let mut served: BTreeMap<TenantId, usize> = BTreeMap::new();
        while let Some(tenant) = self.first_in_line(&held, &served) {
            if coming > 0 {
                coming -= 1;
            } else {
                let Some(number) = self.victim(&tenant, &held, share) else { return };
                let Some(seat) = self.held.get(&number) else { return };
                seat.recall.send_replace(Some(now));
                *held.entry(seat.tenant.clone()).or_default() -= 1;
            }
            *held.entry(tenant.clone()).or_default() += 1;
            *served.entry(tenant).or_default() += 1;
        }
    }

    /// The seat that is recalled for this tenant.
    fn victim(&self, tenant: &TenantId, held: &BTreeMap<TenantId, usize>, share: usize) -> Option<u64> {
        let count = |of: &TenantId| held.get(of).copied().unwrap_or(0);
        let ours = count(tenant);
        let open = || self.held.iter().filter(|(_, seat)| !seat.is_recalled());
        let most = |(number, seat): &(&u64, &HeldSeat)| (count(&seat.tenant), std::cmp::Reverse(**number));
        let resting = open()
            .filter(|(_, seat)| seat.is_resting && (seat.tenant == *tenant || count(&seat.tenant) > ours));
        let in_use =
            open().filter(|(_, seat)| seat.tenant != *tenant && count(&seat.tenant) > share.max(ours));
        resting.max_by_key(most).or_else(|| in_use.max_by_key(most)).map(|(number, _)| *number)
    }

    /// The tenant that gets the next seat, where so many of its line were served already.
    fn first_in_line(
        &self,
        held: &BTreeMap<TenantId, usize>,
        served: &BTreeMap<TenantId, usize>,
    ) -> Option<TenantId> {
        let count = |of: &TenantId| held.get(of).copied().unwrap_or(0);
        let in_line = self.waiting.iter().filter_map(|(tenant, line)| {
            let first = line.get(served.get(tenant).copied().unwrap_or(0))?;
            (count(tenant) < self.per_tenant_max).then_some((tenant, first.number))
        });
        in_line.min_by_key(|(tenant, number)| (count(tenant), *number)).map(|(tenant, _)| tenant.clone())
    }

    fn held_by_tenant(&self, counts: impl Fn(&HeldSeat) -> bool) -> BTreeMap<TenantId, usize> {
        let mut held: BTreeMap<TenantId, usize> = BTreeMap::new();
        for seat in self.held.values().filter(|seat| counts(seat)) {
            *held.entry(seat.tenant.clone()).or_default() += 1;
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    async fn take(seats: &Arc<TenantSeats>, name: &str, count: usize) -> Vec<TenantSeat> {
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(seats.take(&tenant(name)).now_or_never().expect("a seat is free"));
        }
        taken
    }

    fn recalled(seats: &[TenantSeat]) -> usize {
        seats.iter().filter(|seat| seat.is_recalled()).count()
    }

    #[tokio::test]
    async fn whoever_holds_least_gets_the_next_seat_however_many_wait_before() {
        let seats = TenantSeats::new(2, 2);
        let mut greedy = take(&seats, "greedy", 2).await;
        let (a, b) = (tenant("greedy"), tenant("modest"));
        let mut more: Vec<_> = (0..5).map(|_| Box::pin(seats.take(&a))).collect();
        assert!(more.iter_mut().all(|wait| wait.as_mut().now_or_never().is_none()));
        let mut modest = Box::pin(seats.take(&b));
        assert!(modest.as_mut().now_or_never().is_none());
        assert_eq!(recalled(&greedy), 1, "one seat is asked back, because one tenant waits for its first");
        greedy.pop();
        let modest = modest.now_or_never().expect("the seat is not the greedy one's again");
        assert!(!modest.is_recalled());
        drop(greedy);
        assert!(more.remove(0).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_seat_that_rests_is_recalled_first_and_from_whoever_holds_most() {
        let seats = TenantSeats::new(6, 6);
        let (many, few) = (take(&seats, "many", 4).await, take(&seats, "few", 2).await);
        many[2].rest(true);
        few[0].rest(true);
        let (b, c) = (tenant("few"), tenant("new"));
        let mut wait = Box::pin(seats.take(&c));
        assert!(wait.as_mut().now_or_never().is_none());
        assert!(many[2].is_recalled() && recalled(&many) == 1 && recalled(&few) == 0);
        // One more of those who hold two: their own that rests, as the others hold no more than they.
        let mut own = Box::pin(seats.take(&b));
        assert!(own.as_mut().now_or_never().is_none());
        assert_eq!((recalled(&many), recalled(&few)), (1, 1));
        assert!(seats.is_crowded());
    }

    #[tokio::test]
    async fn a_seat_in_use_is_left_to_a_tenant_that_holds_no_more_than_its_share() {
        let seats = TenantSeats::new(2, 2);
        let held = [take(&seats, "a", 1).await, take(&seats, "b", 1).await];
        let c = tenant("c");
        let mut wait = Box::pin(seats.take(&c));
        assert!(wait.as_mut().now_or_never().is_none());
        assert_eq!(held.iter().map(|held| recalled(held)).sum::<usize>(), 0);
        held[1][0].rest(true);
        assert!(held[1][0].is_recalled(), "once it rests it is the other's turn");
    }

    #[tokio::test]
    async fn those_who_queue_in_order_are_seated_in_order_whoever_is_polled_first() {
        let seats = TenantSeats::new(1, 1);
        let (held, a) = (take(&seats, "a", 1).await, tenant("a"));
        let [first, mut second] = [(); 2].map(|()| Box::pin(seats.queue(&a)));
        assert!(second.as_mut().now_or_never().is_none());
        drop(held);
        assert!(second.as_mut().now_or_never().is_none());
        drop(first.now_or_never().expect("it came first"));
        assert!(second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn nobody_holds_more_than_the_bound_and_who_gave_up_waiting_gets_none() {
        let seats = TenantSeats::new(3, 2);
        let held = take(&seats, "a", 2).await;
        let (a, b) = (tenant("a"), tenant("b"));
        let mut third = Box::pin(seats.take(&a));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(recalled(&held), 0);
        let other = take(&seats, "b", 1).await;
        let mut gone = Box::pin(seats.take(&b));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        drop(other);
        assert!(seats.take(&b).now_or_never().is_some(), "the seat did not go to somebody who left");
        drop(held);
        assert!(third.now_or_never().is_some());
    }
}
