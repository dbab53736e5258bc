//! An amount that all tenants share: bytes of memory, or slots for work.
//!
//! One tenant may have only a part of it: up to `tenant_max` while no other tenant has any, and
//! proportionally less as less is left. If `tenant_max` is half of the amount, a tenant may have as much as
//! it leaves to others. So tenants that take all they can always leave some for the next one, however many
//! they are, and as they give back and take again, their parts become equal. Dropping a share gives it back,
//! however the work ended that it was taken for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::TenantId;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// A shared amount, and how much of it each tenant has taken.
#[derive(Debug)]
pub struct FairBudget {
    taken: Mutex<TakenAmounts>,
    amount_max: usize,
    tenant_max: usize,
    given_back: Notify,
}

#[derive(Debug, Default)]
struct TakenAmounts {
    all: usize,
    by_tenant: HashMap<TenantId, usize>,
}

/// A part taken from a budget. Dropping it gives it back.
#[derive(Debug)]
pub struct FairShare {
    budget: Arc<FairBudget>,
    tenant: Option<TenantId>,
    amount: usize,
}

impl FairBudget {
    /// A budget of `amount_max`. One tenant may have at most `tenant_max`, and that only while others have
    /// nothing.
    pub fn new(amount_max: usize, tenant_max: usize) -> Arc<Self> {
        let tenant_max = tenant_max.min(amount_max);
        Arc::new(Self { taken: Mutex::default(), amount_max, tenant_max, given_back: Notify::new() })
    }

    /// An empty share that can grow. Without a tenant it counts only against the total.
    pub fn share(self: &Arc<Self>, tenant: Option<TenantId>) -> FairShare {
        FairShare { budget: Arc::clone(self), tenant, amount: 0 }
    }

    /// Takes `amount` for a tenant, if that much is left for it.
    pub fn take(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Option<FairShare> {
        let mut share = self.share(Some(tenant.clone()));
        share.grow_to(amount).then_some(share)
    }

    /// Takes `amount` for a tenant, waiting for it at most `within`.
    pub async fn wait(
        self: &Arc<Self>,
        tenant: &TenantId,
        amount: usize,
        within: Duration,
    ) -> Option<FairShare> {
        if amount > self.tenant_max {
            return None;
        }
        let until = Instant::now() + within;
        loop {
            let given_back = self.given_back.notified();
            tokio::pin!(given_back);
            // From here on, no share that is given back goes unnoticed.
            given_back.as_mut().enable();
            if let Some(share) = self.take(tenant, amount) {
                return Some(share);
            }
            timeout_at(until, given_back).await.ok()?;
        }
    }

    /// The most that one tenant may ever have.
    pub fn tenant_max(&self) -> usize {
        self.tenant_max
    }

    /// How much is left, in total and for this tenant.
    pub fn left(&self, tenant: &TenantId) -> (usize, usize) {
        let taken = self.taken();
        let own = taken.by_tenant.get(tenant).copied().unwrap_or(0);
        (self.amount_max.saturating_sub(taken.all), self.left_for(own, taken.all))
    }

    /// How much more a tenant may take that has `own` already, when `all` is taken in total.
    ///
    /// Let m be `tenant_max` and M be `amount_max`. After taking, a tenant has at most m / (M - m) of what is
    /// left, plus one: slots are few, and the last one must be available.
    fn left_for(&self, own: usize, all: usize) -> usize {
        let left = self.amount_max.saturating_sub(all);
        if self.amount_max == 0 {
            return 0;
        }
        let (most, whole) = (self.tenant_max as u128, self.amount_max as u128);
        let others = whole - most;
        let beyond = (most * left as u128 + others).saturating_sub(others * own as u128) / whole;
        usize::try_from(beyond).unwrap_or(usize::MAX).min(left).min(self.tenant_max.saturating_sub(own))
    }

    fn taken(&self) -> MutexGuard<'_, TakenAmounts> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, tenant: Option<&TenantId>, amount: usize) -> bool {
        let mut taken = self.taken();
        let Some(all) = taken.all.checked_add(amount).filter(|all| *all <= self.amount_max) else {
            return false;
        };
        if let Some(tenant) = tenant {
            let own = taken.by_tenant.get(tenant).copied().unwrap_or(0);
            if amount > self.left_for(own, taken.all) {
                return false;
            }
            let own = own + amount;
            match taken.by_tenant.get_mut(tenant) {
                Some(entry) => *entry = own,
                None => drop(taken.by_tenant.insert(tenant.clone(), own)),
            }
        }
        taken.all = all;
        true
    }

    fn give_back(&self, tenant: Option<&TenantId>, amount: usize) {
        if amount == 0 {
            return;
        }
        let mut taken = self.taken();
        taken.all = taken.all.saturating_sub(amount);
        if let Some(tenant) = tenant
            && let Some(own) = taken.by_tenant.get_mut(tenant)
        {
            *own = own.saturating_sub(amount);
            if *own == 0 {
                taken.by_tenant.remove(tenant);
            }
        }
        drop(taken);
        self.given_back.notify_waiters();
    }
}

impl FairShare {
    /// Grows the share to at least `amount`; if that much is not left, takes nothing and returns `false`.
    pub fn grow_to(&mut self, amount: usize) -> bool {
        let more = amount.saturating_sub(self.amount);
        let grown = more == 0 || self.budget.add(self.tenant.as_ref(), more);
        if grown {
            self.amount += more;
        }
        grown
    }

    /// Gives back everything beyond `amount`.
    pub fn shrink_to(&mut self, amount: usize) {
        let less = self.amount.saturating_sub(amount);
        self.amount -= less;
        self.budget.give_back(self.tenant.as_ref(), less);
    }

    /// Splits off a part as a share of its own.
    pub fn split(&mut self, amount: usize) -> FairShare {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        FairShare { budget: Arc::clone(&self.budget), tenant: self.tenant.clone(), amount }
    }

    /// Assigns an empty share to a tenant. A share that is not empty still counts only against the total
    /// until it is given back.
    pub fn belong_to(&mut self, tenant: &TenantId) {
        if self.tenant.is_none() && self.amount == 0 {
            self.tenant = Some(tenant.clone());
        }
    }

    /// The size of the share.
    pub fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for FairShare {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    #[test]
    fn a_tenant_that_takes_all_it_can_leaves_room_for_another() {
        let budget = FairBudget::new(10, 6);
        let greedy: Vec<_> = (0..20).map_while(|_| budget.take(&tenant("greedy"), 1)).collect();
        assert_eq!(greedy.len(), 6);
        assert_eq!(budget.left(&tenant("greedy")), (4, 0));
        let mut modest = budget.take(&tenant("modest"), 1).unwrap();
        assert!(modest.grow_to(2) && !modest.grow_to(3), "some is left for the next");
        drop(greedy);
        assert!(modest.grow_to(6) && !modest.grow_to(7));
        modest.shrink_to(1);
        assert_eq!((modest.amount(), budget.left(&tenant("modest"))), (1, (9, 5)));
        drop(modest);
        assert_eq!(budget.left(&tenant("modest")), (10, 6));
        assert!(budget.taken().by_tenant.is_empty(), "nobody who has nothing is remembered");
    }

    /// Lets each tenant take all it can, one piece at a time; returns what each has then, and what is left in
    /// total.
    fn taken_by(budget: &Arc<FairBudget>, tenants: usize, piece: usize) -> (Vec<usize>, usize) {
        let mut shares = Vec::new();
        let all = (0..tenants).map(|number| {
            let mut share = budget.share(Some(tenant(&format!("greedy-{number}"))));
            while share.grow_to(share.amount() + piece) {}
            shares.push(share);
            shares[number].amount()
        });
        let all = all.collect();
        (all, budget.left(&tenant("modest")).0)
    }

    #[test]
    fn greedy_tenants_together_always_leave_some_for_the_next() {
        assert_eq!(taken_by(&FairBudget::new(1_200, 600), 2, 1), (vec![600, 300], 300));
        assert_eq!(taken_by(&FairBudget::new(1_200, 600), 3, 1), (vec![600, 300, 150], 150));
        assert_eq!(taken_by(&FairBudget::new(1_200, 600), 2, 100), (vec![600, 300], 300));
        let (all, left) = taken_by(&FairBudget::new(192, 148), 3, 1);
        assert!(all[0] == 148 && all[1] > all[2] && left > 0, "{all:?} {left}");
        // The same is true of slots, of which there are few.
        assert_eq!(taken_by(&FairBudget::new(4, 2), 2, 1), (vec![2, 1], 1));
        assert_eq!(taken_by(&FairBudget::new(4, 2), 3, 1), (vec![2, 1, 1], 0), "each has one");
        assert_eq!(taken_by(&FairBudget::new(1, 1), 1, 1), (vec![1], 0));
        let budget = FairBudget::new(1_200, 600);
        let _held = budget.take(&tenant("a"), 600).unwrap();
        assert!(budget.take(&tenant("b"), 301).is_none() && budget.take(&tenant("b"), 300).is_some());
    }

    #[test]
    fn who_gave_back_is_given_an_equal_part() {
        let budget = FairBudget::new(1_200, 600);
        let mut first = budget.take(&tenant("a"), 600).unwrap();
        let mut second = budget.take(&tenant("b"), 300).unwrap();
        for _ in 0..20 {
            for share in [&mut first, &mut second] {
                share.shrink_to(0);
                while share.grow_to(share.amount() + 1) {}
            }
        }
        assert_eq!((first.amount(), second.amount(), budget.left(&tenant("c")).0), (400, 400, 400));
    }

    #[test]
    fn what_belongs_to_nobody_counts_against_the_whole() {
        let budget = FairBudget::new(10, 5);
        let mut unknown = budget.share(None);
        assert!(unknown.grow_to(8) && !unknown.grow_to(11));
        assert!(budget.take(&tenant("a"), 3).is_none());
        let mut known = budget.share(None);
        known.belong_to(&tenant("a"));
        drop(unknown);
        assert!(known.grow_to(5) && !known.grow_to(6));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_what_is_given_back_or_is_told_in_time() {
        let budget = FairBudget::new(1, 1);
        let first = budget.take(&tenant("a"), 1).unwrap();
        assert!(budget.wait(&tenant("b"), 1, SECOND).await.is_none());
        assert!(budget.wait(&tenant("b"), 2, SECOND * 1000).await.is_none(), "there will never be as much");
        let (second, ()) = tokio::join!(
            async { budget.wait(&tenant("b"), 1, SECOND).await.expect("it is given back") },
            async { drop(first) }
        );
        assert!(budget.take(&tenant("a"), 1).is_none());
        drop(second);
        assert!(budget.take(&tenant("a"), 1).is_some());
    }
}
