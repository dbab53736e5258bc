//! An amount that all tenants share: bytes of memory, or places for work.
//!
//! There is only so much of it, and one tenant may have only a part of it, so that one that takes all it can get leaves room
//! for the others. A share is given back when it is dropped, whatever ends the work that it was taken for.

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

/// What there is, and who has taken how much of it.
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

/// What was taken of a budget. Dropping it gives it back.
#[derive(Debug)]
pub struct FairShare {
    budget: Arc<FairBudget>,
    tenant: Option<TenantId>,
    amount: usize,
}

impl FairBudget {
    /// A budget of this amount, of which one tenant may have at most `tenant_max`.
    pub fn new(amount_max: usize, tenant_max: usize) -> Arc<Self> {
        let tenant_max = tenant_max.min(amount_max);
        Arc::new(Self { taken: Mutex::default(), amount_max, tenant_max, given_back: Notify::new() })
    }

    /// A share of nothing, to be made larger. Without a tenant it counts against the whole alone.
    pub fn share(self: &Arc<Self>, tenant: Option<TenantId>) -> FairShare {
        FairShare { budget: Arc::clone(self), tenant, amount: 0 }
    }

    /// Takes an amount for a tenant, if there is as much left for it.
    pub fn take(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Option<FairShare> {
        let mut share = self.share(Some(tenant.clone()));
        share.grow_to(amount).then_some(share)
    }

    /// The same, waiting until there is as much, but not longer than `within`.
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
            // From here on no giving back is missed.
            given_back.as_mut().enable();
            if let Some(share) = self.take(tenant, amount) {
                return Some(share);
            }
            timeout_at(until, given_back).await.ok()?;
        }
    }

    /// The most that one tenant may have.
    pub fn tenant_max(&self) -> usize {
        self.tenant_max
    }

    /// How much is left, of the whole and for this tenant.
    pub fn left(&self, tenant: &TenantId) -> (usize, usize) {
        let taken = self.taken();
        let own = taken.by_tenant.get(tenant).copied().unwrap_or(0);
        (self.amount_max.saturating_sub(taken.all), self.tenant_max.saturating_sub(own))
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
            let own = taken.by_tenant.get(tenant).copied().unwrap_or(0) + amount;
            if own > self.tenant_max {
                return false;
            }
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
    /// Makes it at least this large; false, and nothing taken, where there is not as much left.
    pub fn grow_to(&mut self, amount: usize) -> bool {
        let more = amount.saturating_sub(self.amount);
        let grown = more == 0 || self.budget.add(self.tenant.as_ref(), more);
        if grown {
            self.amount += more;
        }
        grown
    }

    /// Gives back what is beyond this amount.
    pub fn shrink_to(&mut self, amount: usize) {
        let less = self.amount.saturating_sub(amount);
        self.amount -= less;
        self.budget.give_back(self.tenant.as_ref(), less);
    }

    /// Takes a part of it out, as a share of its own.
    pub fn split(&mut self, amount: usize) -> FairShare {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        FairShare { budget: Arc::clone(&self.budget), tenant: self.tenant.clone(), amount }
    }

    /// Makes it a share of this tenant's. What it has already stays with the whole alone until it is given back.
    pub fn belong_to(&mut self, tenant: &TenantId) {
        if self.tenant.is_none() && self.amount == 0 {
            self.tenant = Some(tenant.clone());
        }
    }

    /// How much it is.
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
        let mut modest = budget.take(&tenant("modest"), 3).unwrap();
        assert!(modest.grow_to(4) && !modest.grow_to(5), "that is all there is");
        drop(greedy);
        assert!(modest.grow_to(6) && !modest.grow_to(7));
        modest.shrink_to(1);
        assert_eq!((modest.amount(), budget.left(&tenant("modest"))), (1, (9, 5)));
        drop(modest);
        assert_eq!(budget.left(&tenant("modest")), (10, 6));
        assert!(budget.taken().by_tenant.is_empty(), "nobody who has nothing is remembered");
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
