//! What each tenant has of the desk: places for calls, and leases.
//!
//! One rule for all of it: a tenant may hold as many as are free. Alone it has nearly half of them; with others each has an
//! equal part, and as much again stays free. An eighth is kept for tenants that hold nothing. So what is idle is used, and the
//! first call of another tenant finds a place at once, whatever the others do and however many subscribers they have.

use std::collections::BTreeMap;

use postway_domain::TenantId;

use super::{CALLS_MAX, LEASED_MAX, UNPROVEN_CALLS_MAX};

/// One part in so many is kept for tenants that hold nothing, one for each.
pub(super) const RESERVED_PART: usize = 8;

/// What is in use: by everybody, or by one tenant.
#[derive(Clone, Copy, Default)]
struct DeskUse {
    leased: usize,
    calls: usize,
    unproven_calls: usize,
}

/// See the module.
#[derive(Default)]
pub(super) struct TenantShares {
    all: DeskUse,
    tenants: BTreeMap<TenantId, DeskUse>,
}

/// How many more a tenant may hold that holds `own`, where `used` of `most` are in use.
fn room(most: usize, used: usize, own: usize) -> usize {
    let free = most.saturating_sub(used);
    let shared = free.saturating_sub(most / RESERVED_PART).saturating_sub(own).div_ceil(2);
    match own {
        0 => shared.max(free.min(1)),
        _ => shared,
    }
}

impl TenantShares {
    fn own(&self, tenant: &TenantId) -> DeskUse {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    fn change(&mut self, tenant: &TenantId, change: impl Fn(&mut DeskUse)) {
        change(&mut self.all);
        let own = self.tenants.entry(tenant.clone()).or_default();
        change(own);
        if own.leased == 0 && own.calls == 0 {
            self.tenants.remove(tenant);
        }
    }

    /// How many notifications are leased.
    pub(super) fn leased(&self) -> usize {
        self.all.leased
    }

    /// How many places the unproven have left.
    pub(super) fn unproven_places(&self) -> usize {
        UNPROVEN_CALLS_MAX.saturating_sub(self.all.unproven_calls)
    }

    /// How many notifications more may be leased for a tenant.
    pub(super) fn lease_room(&self, tenant: &TenantId) -> usize {
        room(LEASED_MAX, self.all.leased, self.own(tenant).leased)
    }

    /// How many calls more a tenant may have under way to subscribers that are unproven, or to others.
    pub(super) fn call_room(&self, tenant: &TenantId, is_unproven: bool) -> usize {
        let own = self.own(tenant);
        let calls = room(CALLS_MAX, self.all.calls, own.calls);
        match is_unproven {
            true => calls.min(room(UNPROVEN_CALLS_MAX, self.all.unproven_calls, own.unproven_calls)),
            false => calls,
        }
    }

    pub(super) fn lease(&mut self, tenant: &TenantId, count: usize) {
        self.change(tenant, |held| held.leased += count);
    }

    pub(super) fn settle(&mut self, tenant: &TenantId, count: usize) {
        self.change(tenant, |held| held.leased -= count);
    }

    pub(super) fn begin_call(&mut self, tenant: &TenantId, is_unproven: bool) {
        self.change(tenant, |held| {
            held.calls += 1;
            held.unproven_calls += usize::from(is_unproven);
        });
    }

    pub(super) fn end_call(&mut self, tenant: &TenantId, is_unproven: bool) {
        self.change(tenant, |held| {
            held.calls -= 1;
            held.unproven_calls -= usize::from(is_unproven);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(number: usize) -> TenantId {
        format!("t{number}").parse().unwrap()
    }

    fn fill(shares: &mut TenantShares, tenant: &TenantId, is_unproven: bool) -> usize {
        let mut begun = 0;
        while shares.call_room(tenant, is_unproven) > 0 {
            shares.begin_call(tenant, is_unproven);
            begun += 1;
        }
        begun
    }

    /// What one tenant alone may hold.
    fn alone(most: usize) -> usize {
        (most - most / RESERVED_PART) / 2
    }

    #[test]
    fn one_tenant_has_less_than_half_and_a_quarter_of_that_is_for_the_quick() {
        let mut shares = TenantShares::default();
        assert_eq!(fill(&mut shares, &tenant(1), true), alone(UNPROVEN_CALLS_MAX));
        let quick = fill(&mut shares, &tenant(1), false);
        assert_eq!(quick, alone(CALLS_MAX) - alone(UNPROVEN_CALLS_MAX));
        assert!(quick * 4 >= alone(CALLS_MAX));
    }

    #[test]
    fn the_first_call_of_another_tenant_finds_a_place_however_greedy_the_rest_is() {
        let mut shares = TenantShares::default();
        for number in 0..CALLS_MAX / RESERVED_PART {
            assert!(fill(&mut shares, &tenant(number), false) > 0, "{number}");
        }
    }

    #[test]
    fn shares_become_equal_as_calls_end_and_begin() {
        let mut shares = TenantShares::default();
        for _ in 0..CALLS_MAX {
            for number in 0..8 {
                if shares.own(&tenant(number)).calls > 0 {
                    shares.end_call(&tenant(number), false);
                }
                fill(&mut shares, &tenant(number), false);
            }
        }
        let reserved = CALLS_MAX / RESERVED_PART;
        let equal = (CALLS_MAX - reserved) / 9;
        for number in 0..8 {
            assert!(shares.own(&tenant(number)).calls.abs_diff(equal) <= 2, "{number}");
        }
        assert!(CALLS_MAX - shares.all.calls >= reserved + equal - 8, "as much as each stays free");
    }

    #[test]
    fn leases_follow_the_same_rule_and_what_ends_is_forgotten() {
        let mut shares = TenantShares::default();
        let (greedy, other) = (tenant(1), tenant(2));
        while shares.lease_room(&greedy) > 0 {
            shares.lease(&greedy, shares.lease_room(&greedy));
        }
        assert_eq!((shares.leased(), shares.lease_room(&other)), (alone(LEASED_MAX), alone(LEASED_MAX) / 2));
        shares.settle(&greedy, alone(LEASED_MAX));
        assert!(shares.tenants.is_empty());
    }
}
