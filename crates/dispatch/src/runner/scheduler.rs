//! Divides free capacity: turns and slots among tenants, and among the accounts of each tenant.
//!
//! Tenants take turns (`domain`'s `TenantTurns`), so that free slots are divided by weight. A bound on slots
//! in use keeps some free for others: without it, mail that does not end, such as mail to a relay that hangs,
//! would collect every slot turn by turn.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use postway_domain::{
    AccountId, TenantId, TenantSettings,
    fairness::{TenantTurns, grantable_slots},
};
use postway_store::record::AccountKey;

/// The most accounts in one claim, so that its cost does not grow with the number of accounts that wait.
pub(crate) const CLAIM_ACCOUNTS_MAX: usize = 16;
/// Slots that remain after the turns are granted in portions of this size, so that no account takes all of
/// them.
const PORTION: usize = 16;

/// How much more an account could take now, and how much it has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountCapacity {
    /// Messages that it could take.
    pub free: usize,
    /// Messages that it has in flight.
    pub in_flight: usize,
    /// Whether the claim must name it even without free slots, to withdraw its standing claim.
    pub withdraws: bool,
}

/// Slots granted to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapacityGrant {
    pub key: AccountKey,
    pub slots: usize,
    capacity: AccountCapacity,
}

impl CapacityGrant {
    /// Whether the account could take more than it was granted.
    fn wants_more(&self) -> bool {
        self.slots < self.capacity.free
    }
}

/// The accounts of one tenant that may have something to send, as a ring in the order of their names.
#[derive(Default)]
struct AccountRing {
    waiting: BTreeSet<AccountId>,
    /// The account that was first the last time. The next one is first this time, however soon that one is
    /// back.
    first: Option<AccountId>,
}

impl AccountRing {
    /// Removes and returns the next account behind `last`, starting over at the end.
    fn take_behind(&mut self, last: Option<&AccountId>) -> Option<AccountId> {
        let behind = match last {
            Some(last) => self.waiting.range((Bound::Excluded(last), Bound::Unbounded)).next(),
            None => None,
        };
        let account = behind.or_else(|| self.waiting.first())?.clone();
        self.waiting.take(&account)
    }
}

/// The free slots of one claim, and what was granted to each tenant so far.
struct FreeSlots<'a> {
    free: usize,
    in_flight: &'a dyn Fn(&TenantId) -> usize,
    granted: HashMap<TenantId, usize>,
}

impl FreeSlots<'_> {
    /// How many more slots the tenant may take.
    fn for_tenant(&self, tenant: &TenantId, weight: u32) -> usize {
        let granted = self.granted.get(tenant).copied().unwrap_or(0);
        grantable_slots(self.free, (self.in_flight)(tenant) + granted, weight)
    }

    /// How many more slots the account may take of those for its tenant.
    fn for_account(&self, one: &CapacityGrant, weight: u32) -> usize {
        let for_tenant = self.for_tenant(&one.key.tenant, weight);
        grantable_slots(for_tenant, one.capacity.in_flight + one.slots, TenantSettings::WEIGHT_DEFAULT)
    }

    fn grant(&mut self, one: &mut CapacityGrant, messages: usize) {
        if messages == 0 {
            return;
        }
        one.slots += messages;
        self.free -= messages;
        *self.granted.entry(one.key.tenant.clone()).or_default() += messages;
    }
}

/// The accounts that may have something to send, and whose turn it is.
#[derive(Default)]
pub(crate) struct ClaimScheduler {
    turns: TenantTurns,
    accounts: BTreeMap<TenantId, AccountRing>,
    weights: HashMap<TenantId, u32>,
}

impl ClaimScheduler {
    /// Sets the weight of a tenant.
    pub fn set_weight(&mut self, tenant: &TenantId, weight: u32) {
        if weight == TenantSettings::WEIGHT_DEFAULT {
            self.weights.remove(tenant);
        } else {
            self.weights.insert(tenant.clone(), weight);
        }
    }

    fn weight(&self, tenant: &TenantId) -> u32 {
        self.weights.get(tenant).copied().unwrap_or(TenantSettings::WEIGHT_DEFAULT)
    }

    /// Notes that an account may have something to send.
    pub fn add(&mut self, key: &AccountKey) {
        self.turns.join(&key.tenant, self.weight(&key.tenant));
        self.accounts.entry(key.tenant.clone()).or_default().waiting.insert(key.account.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Grants `free` slots: to each tenant by its turn, account by account, then the remainder to those that
    /// could take more. `in_flight` says how many messages a tenant has in flight; the more it has, the less
    /// it gets.
    ///
    /// An account without capacity is dropped until it is added again. So is one that was granted slots: the
    /// result of the claim says whether it wants more. One that could take some and was granted none stays in
    /// the ring.
    pub fn grant_slots(
        &mut self,
        free: usize,
        in_flight: &dyn Fn(&TenantId) -> usize,
        mut capacity: impl FnMut(&AccountKey) -> AccountCapacity,
    ) -> Vec<CapacityGrant> {
        let mut slots = FreeSlots { free, in_flight, granted: HashMap::new() };
        let mut granted: Vec<CapacityGrant> = Vec::new();
        // Two rounds, so that when few tenants wait their other accounts get slots too.
        for _ in 0..2 * self.turns.len() {
            if granted.len() >= CLAIM_ACCOUNTS_MAX {
                break;
            }
            let Some((tenant, turn)) = self.turns.take() else { break };
            self.grant_to_tenant(&tenant, turn as usize, &mut slots, &mut granted, &mut capacity);
        }
        self.grant_remainder(&mut slots, &mut granted);
        let (granted, passed_over): (Vec<CapacityGrant>, Vec<CapacityGrant>) =
            granted.into_iter().partition(|one| one.slots > 0 || one.capacity.withdraws);
        for one in passed_over {
            self.add(&one.key);
        }
        granted
    }

    fn grant_to_tenant(
        &mut self,
        tenant: &TenantId,
        mut turn: usize,
        slots: &mut FreeSlots<'_>,
        granted: &mut Vec<CapacityGrant>,
        capacity: &mut impl FnMut(&AccountKey) -> AccountCapacity,
    ) {
        let weight = self.weight(tenant);
        let Some(ring) = self.accounts.get_mut(tenant) else { return };
        let mut last = ring.first.clone();
        while turn > 0 && granted.len() < CLAIM_ACCOUNTS_MAX && slots.for_tenant(tenant, weight) > 0 {
            let Some(account) = ring.take_behind(last.as_ref()) else { break };
            last = Some(account.clone());
            let key = AccountKey { tenant: tenant.clone(), account };
            let mut one = CapacityGrant { capacity: capacity(&key), key, slots: 0 };
            if one.capacity.free == 0 && !one.capacity.withdraws {
                continue;
            }
            let taken = one.capacity.free.min(turn).min(slots.for_account(&one, weight));
            if taken > 0 && !slots.granted.contains_key(tenant) {
                ring.first = Some(one.key.account.clone());
            }
            turn -= taken;
            self.turns.took(tenant, taken as u32);
            slots.grant(&mut one, taken);
            granted.push(one);
        }
        if ring.waiting.is_empty() {
            self.turns.leave(tenant);
        }
    }

    /// Grants the slots that remain after the turns, portion by portion.
    fn grant_remainder(&self, slots: &mut FreeSlots<'_>, granted: &mut [CapacityGrant]) {
        let mut progress = true;
        while progress && slots.free > 0 {
            progress = false;
            for one in granted.iter_mut().filter(|one| one.wants_more()) {
                let more = slots.for_account(one, self.weight(&one.key.tenant));
                let more = more.min(one.capacity.free - one.slots).min(PORTION);
                slots.grant(one, more);
                progress |= more > 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: &str, account: &str) -> AccountKey {
        AccountKey { tenant: tenant.parse().unwrap(), account: account.parse().unwrap() }
    }

    fn always_free(free: usize) -> impl FnMut(&AccountKey) -> AccountCapacity {
        move |_| AccountCapacity { free, ..AccountCapacity::default() }
    }

    fn serve(scheduler: &mut ClaimScheduler, free: usize, per_account: usize) -> Vec<CapacityGrant> {
        scheduler.grant_slots(free, &|_| 0, always_free(per_account))
    }

    fn slots(granted: &[CapacityGrant]) -> Vec<(&str, usize)> {
        granted.iter().map(|one| (one.key.tenant.as_str(), one.slots)).collect()
    }

    #[test]
    fn a_tenant_alone_gets_what_it_can_take() {
        let mut scheduler = ClaimScheduler::default();
        scheduler.add(&key("a", "relay"));
        assert_eq!(slots(&serve(&mut scheduler, 500, 200)), [("a", 200)]);
        assert!(scheduler.is_empty(), "served, until it is added again");
    }

    #[test]
    fn tenants_share_scarce_slots_by_weight_and_none_is_passed_over() {
        let (mut scheduler, mut served) = (ClaimScheduler::default(), HashMap::<TenantId, usize>::new());
        scheduler.set_weight(&"b".parse().unwrap(), 300);
        for round in 0..999 {
            let mut tenants = ["a", "b", "c"];
            tenants.rotate_left(round % 3);
            for tenant in tenants {
                scheduler.add(&key(tenant, "relay"));
            }
            for one in serve(&mut scheduler, 64, 1_000) {
                *served.entry(one.key.tenant).or_default() += one.slots;
            }
        }
        let [a, b, c] = ["a", "b", "c"].map(|tenant| served[&tenant.parse::<TenantId>().unwrap()]);
        assert!(a.abs_diff(c) < a / 4 && (2 * a..4 * a).contains(&b), "{served:?}");
    }

    /// The relay does not answer, so no granted slot becomes free again.
    #[test]
    fn a_tenant_whose_mail_does_not_end_leaves_slots_for_others() {
        let (mut scheduler, mut stuck) = (ClaimScheduler::default(), 0);
        for _ in 0..100 {
            for account in ["hangs", "hangs-too"] {
                scheduler.add(&key("hog", account));
            }
            let granted = scheduler.grant_slots(512 - stuck, &|_| stuck, |_| AccountCapacity {
                free: 600 - stuck / 2,
                in_flight: stuck / 2,
                withdraws: false,
            });
            stuck += granted.iter().map(|one| one.slots).sum::<usize>();
        }
        assert!((256..=420).contains(&stuck), "{stuck}");
        scheduler.add(&key("other", "relay"));
        let in_flight = |tenant: &TenantId| if tenant.as_str() == "hog" { stuck } else { 0 };
        let granted = scheduler.grant_slots(512 - stuck, &in_flight, |key| match key.tenant.as_str() {
            "hog" => AccountCapacity { free: 600 - stuck / 2, in_flight: stuck / 2, withdraws: false },
            _ => AccountCapacity { free: 20, ..AccountCapacity::default() },
        });
        assert_eq!(slots(&granted), [("other", 20)]);
    }

    #[test]
    fn an_account_whose_mail_does_not_end_leaves_slots_for_its_neighbour() {
        let (mut scheduler, mut stuck) = (ClaimScheduler::default(), 0);
        for _ in 0..100 {
            scheduler.add(&key("a", "hangs"));
            let eats =
                |_: &AccountKey| AccountCapacity { free: 1_000 - stuck, in_flight: stuck, withdraws: false };
            stuck += scheduler
                .grant_slots(512 - stuck, &|_| stuck, eats)
                .iter()
                .map(|one| one.slots)
                .sum::<usize>();
        }
        assert!((256..=400).contains(&stuck), "{stuck}");
        scheduler.add(&key("a", "works"));
        let eats = |key: &AccountKey| match key.account.as_str() {
            "works" => AccountCapacity { free: 20, ..AccountCapacity::default() },
            _ => AccountCapacity { free: 1_000, in_flight: stuck, withdraws: false },
        };
        let granted = scheduler.grant_slots(512 - stuck, &|_| stuck, eats);
        assert_eq!((granted.len(), granted[0].key.account.as_str(), granted[0].slots), (1, "works", 20));
    }

    #[test]
    fn accounts_of_a_tenant_take_turns_however_fast_the_first_is() {
        let (mut scheduler, mut served) = (ClaimScheduler::default(), HashMap::<AccountId, usize>::new());
        for _ in 0..1_000 {
            scheduler.add(&key("t", "bulk"));
            scheduler.add(&key("t", "transactional"));
            for one in serve(&mut scheduler, 16, 1_000) {
                *served.entry(one.key.account).or_default() += one.slots;
            }
        }
        let shares: Vec<usize> = served.values().copied().collect();
        assert!(shares.len() == 2 && shares[0].abs_diff(shares[1]) < shares[0] / 4, "{served:?}");
    }

    #[test]
    fn an_account_without_free_slots_is_dropped_and_a_withdrawal_is_not() {
        let mut scheduler = ClaimScheduler::default();
        scheduler.add(&key("a", "full"));
        scheduler.add(&key("a", "broken"));
        let granted = scheduler.grant_slots(64, &|_| 0, |key| AccountCapacity {
            withdraws: key.account.as_str() == "broken",
            ..AccountCapacity::default()
        });
        assert_eq!(granted.len(), 1);
        assert_eq!((granted[0].key.account.as_str(), granted[0].slots), ("broken", 0));
        assert!(scheduler.is_empty());
    }

    #[test]
    fn a_claim_names_a_bounded_number_of_accounts_however_many_wait() {
        let mut scheduler = ClaimScheduler::default();
        for n in 0..10_000 {
            scheduler.add(&key(&format!("t{n}"), "relay"));
        }
        let mut served = BTreeSet::new();
        for _ in 0..(10_000usize.div_ceil(CLAIM_ACCOUNTS_MAX)) {
            let granted = serve(&mut scheduler, 100_000, 1);
            assert!(granted.len() <= CLAIM_ACCOUNTS_MAX);
            served.extend(granted.into_iter().map(|one| one.key));
        }
        assert_eq!(served.len(), 10_000, "each has had its turn");
    }
}
