//! Who wants to send, and how much each gets: turns and places among tenants, and among the accounts of each.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use postway_domain::{
    AccountId, TenantId, TenantSettings,
    fairness::{Turns, places},
};
use postway_store::record::AccountKey;

/// Accounts in one claim: so many statements, and no more, however many wait.
pub(crate) const CLAIM_ACCOUNTS_MAX: usize = 16;
/// What remains after the turns is given out in portions of this size, so that no account takes all of it.
const PORTION: usize = 16;

/// What an account could take now, and what it has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Appetite {
    /// Messages it has room for.
    pub room: usize,
    /// Messages that it has in hand.
    pub held: usize,
    /// Whether it must be asked for even without room, to take a standing claim back.
    pub withdraws: bool,
}

/// Room given to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub key: AccountKey,
    pub room: usize,
    appetite: Appetite,
}

impl Given {
    /// Whether it could take more than it was given.
    fn is_hungry(&self) -> bool {
        self.room < self.appetite.room
    }
}

/// A tenant's accounts that may have something to send, in the order of their names, from one behind the other.
#[derive(Default)]
struct AccountRing {
    waiting: BTreeSet<AccountId>,
    /// Who was first the last time: the next one is first this time, however soon the former is back.
    first: Option<AccountId>,
}

impl AccountRing {
    /// The next one behind `last`, all round.
    fn take_behind(&mut self, last: Option<&AccountId>) -> Option<AccountId> {
        let behind = match last {
            Some(last) => self.waiting.range((Bound::Excluded(last), Bound::Unbounded)).next(),
            None => None,
        };
        let account = behind.or_else(|| self.waiting.first())?.clone();
        self.waiting.take(&account)
    }
}

/// Places in hand, by tenant; what is given out on the way counts.
struct Places<'a> {
    free: usize,
    held: &'a dyn Fn(&TenantId) -> usize,
    given: HashMap<TenantId, usize>,
}

impl Places<'_> {
    /// How many more a tenant may take.
    fn of_tenant(&self, tenant: &TenantId, weight: u32) -> usize {
        let given = self.given.get(tenant).copied().unwrap_or(0);
        places(self.free, (self.held)(tenant) + given, weight)
    }

    /// How many more an account may take of its tenant's.
    fn of_account(&self, one: &Given, weight: u32) -> usize {
        let of_tenant = self.of_tenant(&one.key.tenant, weight);
        places(of_tenant, one.appetite.held + one.room, TenantSettings::WEIGHT_DEFAULT)
    }

    fn give(&mut self, one: &mut Given, messages: usize) {
        if messages == 0 {
            return;
        }
        one.room += messages;
        self.free -= messages;
        *self.given.entry(one.key.tenant.clone()).or_default() += messages;
    }
}

/// Accounts that may have something to send.
#[derive(Default)]
pub(crate) struct Demand {
    turns: Turns,
    accounts: BTreeMap<TenantId, AccountRing>,
    weights: HashMap<TenantId, u32>,
}

impl Demand {
    /// A tenant has this weight.
    pub fn weigh(&mut self, tenant: &TenantId, weight: u32) {
        if weight == TenantSettings::WEIGHT_DEFAULT {
            self.weights.remove(tenant);
        } else {
            self.weights.insert(tenant.clone(), weight);
        }
    }

    fn weight(&self, tenant: &TenantId) -> u32 {
        self.weights.get(tenant).copied().unwrap_or(TenantSettings::WEIGHT_DEFAULT)
    }

    /// An account may have something to send.
    pub fn add(&mut self, key: &AccountKey) {
        self.turns.join(&key.tenant, self.weight(&key.tenant));
        self.accounts.entry(key.tenant.clone()).or_default().waiting.insert(key.account.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Gives out `free` messages' room, as far as those who already hold much leave it: to each tenant by its turn, account by
    /// account, then what is left to those that could take more. `held` is what a tenant has in hand. An account without
    /// appetite is forgotten until it is added again, and so is one that was served: the claim tells whether it wants more. One
    /// that got nothing keeps its place in the ring.
    pub fn serve(
        &mut self,
        free: usize,
        held: &dyn Fn(&TenantId) -> usize,
        mut appetite: impl FnMut(&AccountKey) -> Appetite,
    ) -> Vec<Given> {
        let mut places = Places { free, held, given: HashMap::new() };
        let mut given: Vec<Given> = Vec::new();
        // Twice round, so that where few tenants want something their other accounts get something, too.
        for _ in 0..2 * self.turns.len() {
            if given.len() >= CLAIM_ACCOUNTS_MAX {
                break;
            }
            let Some((tenant, turn)) = self.turns.take() else { break };
            self.serve_tenant(&tenant, turn as usize, &mut places, &mut given, &mut appetite);
        }
        self.give_rest(&mut places, &mut given);
        let (given, passed_over): (Vec<Given>, Vec<Given>) =
            given.into_iter().partition(|one| one.room > 0 || one.appetite.withdraws);
        for one in passed_over {
            self.add(&one.key);
        }
        given
    }

    fn serve_tenant(
        &mut self,
        tenant: &TenantId,
        mut turn: usize,
        places: &mut Places<'_>,
        given: &mut Vec<Given>,
        appetite: &mut impl FnMut(&AccountKey) -> Appetite,
    ) {
        let weight = self.weight(tenant);
        let Some(ring) = self.accounts.get_mut(tenant) else { return };
        let mut last = ring.first.clone();
        while turn > 0 && given.len() < CLAIM_ACCOUNTS_MAX && places.of_tenant(tenant, weight) > 0 {
            let Some(account) = ring.take_behind(last.as_ref()) else { break };
            last = Some(account.clone());
            let key = AccountKey { tenant: tenant.clone(), account };
            let mut one = Given { appetite: appetite(&key), key, room: 0 };
            if one.appetite.room == 0 && !one.appetite.withdraws {
                continue;
            }
            let taken = one.appetite.room.min(turn).min(places.of_account(&one, weight));
            if taken > 0 && !places.given.contains_key(tenant) {
                ring.first = Some(one.key.account.clone());
            }
            turn -= taken;
            self.turns.took(tenant, taken as u32);
            places.give(&mut one, taken);
            given.push(one);
        }
        if ring.waiting.is_empty() {
            self.turns.leave(tenant);
        }
    }

    /// Gives out what the turns have left, portion by portion.
    fn give_rest(&self, places: &mut Places<'_>, given: &mut [Given]) {
        let mut goes_on = true;
        while goes_on && places.free > 0 {
            goes_on = false;
            for one in given.iter_mut().filter(|one| one.is_hungry()) {
                let more = places.of_account(one, self.weight(&one.key.tenant));
                let more = more.min(one.appetite.room - one.room).min(PORTION);
                places.give(one, more);
                goes_on |= more > 0;
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

    fn hungry(room: usize) -> impl FnMut(&AccountKey) -> Appetite {
        move |_| Appetite { room, ..Appetite::default() }
    }

    fn serve(demand: &mut Demand, free: usize, room: usize) -> Vec<Given> {
        demand.serve(free, &|_| 0, hungry(room))
    }

    fn rooms(given: &[Given]) -> Vec<(&str, usize)> {
        given.iter().map(|one| (one.key.tenant.as_str(), one.room)).collect()
    }

    #[test]
    fn a_tenant_alone_gets_what_it_can_take() {
        let mut demand = Demand::default();
        demand.add(&key("a", "relay"));
        assert_eq!(rooms(&serve(&mut demand, 500, 200)), [("a", 200)]);
        assert!(demand.is_empty(), "served, until it is added again");
    }

    #[test]
    fn tenants_share_what_is_scarce_by_weight_and_nobody_is_passed_over() {
        let (mut demand, mut served) = (Demand::default(), HashMap::<TenantId, usize>::new());
        demand.weigh(&"b".parse().unwrap(), 300);
        for round in 0..999 {
            let mut tenants = ["a", "b", "c"];
            tenants.rotate_left(round % 3);
            for tenant in tenants {
                demand.add(&key(tenant, "relay"));
            }
            for one in serve(&mut demand, 64, 1_000) {
                *served.entry(one.key.tenant).or_default() += one.room;
            }
        }
        let [a, b, c] = ["a", "b", "c"].map(|tenant| served[&tenant.parse::<TenantId>().unwrap()]);
        assert!(a.abs_diff(c) < a / 4 && (2 * a..4 * a).contains(&b), "{served:?}");
    }

    /// Its relay does not answer, so nothing that it was given comes back.
    #[test]
    fn a_tenant_whose_mail_does_not_end_leaves_room_for_others() {
        let (mut demand, mut stuck) = (Demand::default(), 0);
        for _ in 0..100 {
            for account in ["hangs", "hangs-too"] {
                demand.add(&key("hog", account));
            }
            let given = demand.serve(512 - stuck, &|_| stuck, |_| Appetite {
                room: 600 - stuck / 2,
                held: stuck / 2,
                withdraws: false,
            });
            stuck += given.iter().map(|one| one.room).sum::<usize>();
        }
        assert!((256..=420).contains(&stuck), "{stuck}");
        demand.add(&key("other", "relay"));
        let held = |tenant: &TenantId| if tenant.as_str() == "hog" { stuck } else { 0 };
        let given = demand.serve(512 - stuck, &held, |key| match key.tenant.as_str() {
            "hog" => Appetite { room: 600 - stuck / 2, held: stuck / 2, withdraws: false },
            _ => Appetite { room: 20, ..Appetite::default() },
        });
        assert_eq!(rooms(&given), [("other", 20)]);
    }

    #[test]
    fn an_account_whose_mail_does_not_end_leaves_room_for_its_neighbour() {
        let (mut demand, mut stuck) = (Demand::default(), 0);
        for _ in 0..100 {
            demand.add(&key("a", "hangs"));
            let eats = |_: &AccountKey| Appetite { room: 1_000 - stuck, held: stuck, withdraws: false };
            stuck += demand.serve(512 - stuck, &|_| stuck, eats).iter().map(|one| one.room).sum::<usize>();
        }
        assert!((256..=400).contains(&stuck), "{stuck}");
        demand.add(&key("a", "works"));
        let eats = |key: &AccountKey| match key.account.as_str() {
            "works" => Appetite { room: 20, ..Appetite::default() },
            _ => Appetite { room: 1_000, held: stuck, withdraws: false },
        };
        let given = demand.serve(512 - stuck, &|_| stuck, eats);
        assert_eq!((given.len(), given[0].key.account.as_str(), given[0].room), (1, "works", 20));
    }

    #[test]
    fn accounts_of_a_tenant_take_turns_however_fast_the_first_is() {
        let (mut demand, mut served) = (Demand::default(), HashMap::<AccountId, usize>::new());
        for _ in 0..1_000 {
            demand.add(&key("t", "bulk"));
            demand.add(&key("t", "transactional"));
            for one in serve(&mut demand, 16, 1_000) {
                *served.entry(one.key.account).or_default() += one.room;
            }
        }
        let shares: Vec<usize> = served.values().copied().collect();
        assert!(shares.len() == 2 && shares[0].abs_diff(shares[1]) < shares[0] / 4, "{served:?}");
    }

    #[test]
    fn an_account_without_room_is_forgotten_and_a_withdrawal_is_not() {
        let mut demand = Demand::default();
        demand.add(&key("a", "full"));
        demand.add(&key("a", "broken"));
        let given = demand.serve(64, &|_| 0, |key| Appetite {
            withdraws: key.account.as_str() == "broken",
            ..Appetite::default()
        });
        assert_eq!(given.len(), 1);
        assert_eq!((given[0].key.account.as_str(), given[0].room), ("broken", 0));
        assert!(demand.is_empty());
    }

    #[test]
    fn a_claim_names_so_many_accounts_whoever_waits() {
        let mut demand = Demand::default();
        for n in 0..10_000 {
            demand.add(&key(&format!("t{n}"), "relay"));
        }
        let mut served = BTreeSet::new();
        for _ in 0..(10_000usize.div_ceil(CLAIM_ACCOUNTS_MAX)) {
            let given = serve(&mut demand, 100_000, 1);
            assert!(given.len() <= CLAIM_ACCOUNTS_MAX);
            served.extend(given.into_iter().map(|one| one.key));
        }
        assert_eq!(served.len(), 10_000, "each has had its turn");
    }
}
