//! Who wants to send, and how much each gets: turns among tenants, room among their accounts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{AccountId, TenantId, TenantSettings, fairness::Turns};
use postway_store::record::AccountKey;

/// Accounts in one claim: so many statements, and no more, however many wait.
pub(crate) const CLAIM_ACCOUNTS_MAX: usize = 16;

/// What an account could take now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Appetite {
    /// Messages it has room for.
    pub room: usize,
    /// Whether it must be asked for even without room, to take a standing claim back.
    pub withdraws: bool,
}

/// Room given to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub key: AccountKey,
    pub room: usize,
    /// What it could have taken.
    appetite: usize,
}

/// Accounts that may have something to send.
#[derive(Default)]
pub(crate) struct Demand {
    turns: Turns,
    accounts: BTreeMap<TenantId, BTreeSet<AccountId>>,
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

    /// An account may have something to send.
    pub fn add(&mut self, key: &AccountKey) {
        let weight = self.weights.get(&key.tenant).copied().unwrap_or(TenantSettings::WEIGHT_DEFAULT);
        self.turns.join(&key.tenant, weight);
        self.accounts.entry(key.tenant.clone()).or_default().insert(key.account.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Gives out up to `budget` messages' room: to each tenant by its turn, then what is left to those that could take
    /// more. An account without appetite is forgotten until it is added again, and so is one that was served: the
    /// claim tells whether it wants more.
    pub fn serve(
        &mut self,
        mut budget: usize,
        mut appetite: impl FnMut(&AccountKey) -> Appetite,
    ) -> Vec<Given> {
        let mut given: Vec<Given> = Vec::new();
        for _ in 0..self.turns.len() {
            if given.len() >= CLAIM_ACCOUNTS_MAX {
                break;
            }
            let Some((tenant, turn)) = self.turns.take() else { break };
            let mut turn = (turn as usize).min(budget);
            let waiting = self.accounts.remove(&tenant).unwrap_or_default();
            let mut left = BTreeSet::new();
            for account in waiting {
                let key = AccountKey { tenant: tenant.clone(), account };
                if given.len() >= CLAIM_ACCOUNTS_MAX {
                    left.insert(key.account);
                    continue;
                }
                let Appetite { room, withdraws } = appetite(&key);
                if room > 0 && turn == 0 {
                    left.insert(key.account);
                    continue;
                }
                if room > 0 || withdraws {
                    let taken = room.min(turn);
                    turn -= taken;
                    budget -= taken;
                    self.turns.took(&tenant, taken as u32);
                    given.push(Given { key, room: taken, appetite: room });
                }
            }
            if left.is_empty() {
                self.turns.leave(&tenant);
            } else {
                self.accounts.insert(tenant, left);
            }
        }
        for one in &mut given {
            let more = (one.appetite - one.room).min(budget);
            one.room += more;
            budget -= more;
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: &str, account: &str) -> AccountKey {
        AccountKey { tenant: tenant.parse().unwrap(), account: account.parse().unwrap() }
    }

    fn hungry(room: usize) -> impl FnMut(&AccountKey) -> Appetite {
        move |_| Appetite { room, withdraws: false }
    }

    fn rooms(given: &[Given]) -> Vec<(&str, usize)> {
        given.iter().map(|one| (one.key.tenant.as_str(), one.room)).collect()
    }

    #[test]
    fn a_tenant_alone_gets_all_there_is() {
        let mut demand = Demand::default();
        demand.add(&key("a", "relay"));
        assert_eq!(rooms(&demand.serve(500, hungry(200))), [("a", 200)]);
        assert!(demand.is_empty(), "served, until it is added again");
    }

    #[test]
    fn tenants_share_what_is_scarce_by_weight_and_nobody_is_passed_over() {
        let mut demand = Demand::default();
        demand.weigh(&"b".parse().unwrap(), 300);
        for tenant in ["a", "b", "c"] {
            demand.add(&key(tenant, "relay"));
        }
        let first = demand.serve(64, hungry(1_000));
        assert_eq!(rooms(&first), [("a", 16), ("b", 48)]);
        demand.add(&key("a", "relay"));
        demand.add(&key("b", "relay"));
        let second = demand.serve(64, hungry(1_000));
        assert_eq!(rooms(&second)[0].0, "c", "it was not served the last time");
    }

    #[test]
    fn an_account_without_room_is_forgotten_and_a_withdrawal_is_not() {
        let mut demand = Demand::default();
        demand.add(&key("a", "full"));
        demand.add(&key("a", "broken"));
        let given = demand.serve(64, |key| Appetite { room: 0, withdraws: key.account.as_str() == "broken" });
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
            let given = demand.serve(100_000, hungry(1));
            assert!(given.len() <= CLAIM_ACCOUNTS_MAX);
            served.extend(given.into_iter().map(|one| one.key));
        }
        assert_eq!(served.len(), 10_000, "each has had its turn");
    }
}
