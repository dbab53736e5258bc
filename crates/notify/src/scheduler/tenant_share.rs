//! Each tenant's share of the scheduler: slots for calls, and leases.
//!
//! One rule covers both: a tenant may hold as many as are free. Alone it has nearly half of them; with
//! others, each has an equal part, and as much again stays free. An eighth is reserved for tenants that hold
//! nothing. So idle slots are used, and the first call of another tenant finds a slot at once, whatever the
//! others do and however many subscribers they have.

use std::collections::BTreeMap;

use postway_domain::TenantId;

use super::{CALLS_MAX, LEASED_MAX, UNPROVEN_CALLS_MAX};

/// One RESERVED_SHARE-th of the slots is reserved for tenants that hold nothing, one slot for each.
pub(super) const RESERVED_SHARE: usize = 8;

/// The slots and leases in use, by all tenants or by one.
#[derive(Clone, Copy, Default)]
struct TenantSlotUse {
    leased: usize,
    calls: usize,
    unproven_calls: usize,
}

/// The shares of all tenants. See the module.
#[derive(Default)]
pub(super) struct TenantShares {
    all: TenantSlotUse,
    tenants: BTreeMap<TenantId, TenantSlotUse>,
}

/// How many more a tenant may take that has `own`, if `used` of `most` are in use.
fn capacity(most: usize, used: usize, own: usize) -> usize {
    let free = most.saturating_sub(used);
    let shared = free.saturating_sub(most / RESERVED_SHARE).saturating_sub(own).div_ceil(2);
    match own {
        0 => shared.max(free.min(1)),
        _ => shared,
    }
}

impl TenantShares {
    fn own(&self, tenant: &TenantId) -> TenantSlotUse {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    fn change(&mut self, tenant: &TenantId, change: impl Fn(&mut TenantSlotUse)) {
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

    /// How many slots are free for unproven subscribers.
    pub(super) fn unproven_slots(&self) -> usize {
        UNPROVEN_CALLS_MAX.saturating_sub(self.all.unproven_calls)
    }

    /// How many more notifications may be leased for a tenant.
    pub(super) fn lease_capacity(&self, tenant: &TenantId) -> usize {
        capacity(LEASED_MAX, self.all.leased, self.own(tenant).leased)
    }

    /// How many more calls a tenant may have under way, to unproven subscribers or to others.
    pub(super) fn call_capacity(&self, tenant: &TenantId, is_unproven: bool) -> usize {
        let own = self.own(tenant);
        let calls = capacity(CALLS_MAX, self.all.calls, own.calls);
        match is_unproven {
            true => calls.min(capacity(UNPROVEN_CALLS_MAX, self.all.unproven_calls, own.unproven_calls)),
            false => calls,
        }
    }

    pub(super) fn lease(&mut self, tenant: &TenantId, count: usize) {
        self.change(tenant, |in_use| in_use.leased += count);
    }

    pub(super) fn settle(&mut self, tenant: &TenantId, count: usize) {
        self.change(tenant, |in_use| in_use.leased -= count);
    }

    pub(super) fn begin_call(&mut self, tenant: &TenantId, is_unproven: bool) {
        self.change(tenant, |in_use| {
            in_use.calls += 1;
            in_use.unproven_calls += usize::from(is_unproven);
        });
    }

    pub(super) fn end_call(&mut self, tenant: &TenantId, is_unproven: bool) {
        self.change(tenant, |in_use| {
            in_use.calls -= 1;
            in_use.unproven_calls -= usize::from(is_unproven);
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
        while shares.call_capacity(tenant, is_unproven) > 0 {
            shares.begin_call(tenant, is_unproven);
            begun += 1;
        }
        begun
    }

    /// The share of a tenant that is alone.
    fn alone(most: usize) -> usize {
        (most - most / RESERVED_SHARE) / 2
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
        for number in 0..CALLS_MAX / RESERVED_SHARE {
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
        let reserved = CALLS_MAX / RESERVED_SHARE;
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
        while shares.lease_capacity(&greedy) > 0 {
            shares.lease(&greedy, shares.lease_capacity(&greedy));
        }
        assert_eq!(
            (shares.leased(), shares.lease_capacity(&other)),
            (alone(LEASED_MAX), alone(LEASED_MAX) / 2)
        );
        shares.settle(&greedy, alone(LEASED_MAX));
        assert!(shares.tenants.is_empty());
    }
}
