//! Slows down wrong calls of hooks.
//!
//! An unknown token costs a read of one row, and a wrong signature the computation of one. Providers call for
//! many customers from few addresses, so a wrong signature counts for its own hook alone: one customer's
//! wrong key must not hold up the events of others. The memory is bounded.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use postway_domain::{KeyDigest, client::ClientAddress};

use crate::http::recent_map::RecentMap;

/// Tokens that were not seen a moment ago, which an address may try at once, and how soon one more.
const TOKENS_AT_ONCE: u32 = 200;
const ONE_MORE_TOKEN_IN: Duration = Duration::from_millis(20);
/// Wrong signatures that an address may send to a hook at once, and how soon one more.
const WRONG_AT_ONCE: u32 = 10;
const ONE_MORE_WRONG_IN: Duration = Duration::from_secs(6);
/// Half of the addresses, and of their hooks, that are remembered.
const REMEMBERED_HALF_MAX: usize = 8_192;

/// When each address will have its full allowance again.
pub(crate) struct HookThrottle {
    tokens: Mutex<RecentMap<ClientAddress, Instant>>,
    wrong: Mutex<RecentMap<(ClientAddress, KeyDigest), Instant>>,
}

impl Default for HookThrottle {
    fn default() -> Self {
        Self {
            tokens: Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)),
            wrong: Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)),
        }
    }
}

impl HookThrottle {
    /// Whether an address may have another token looked up; if so, it is counted.
    pub(super) fn admits_token(&self, client: ClientAddress, now: Instant) -> bool {
        let mut full_at = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let at = full_at.get(&client).unwrap_or(now).max(now) + ONE_MORE_TOKEN_IN;
        let is_admitted = at <= now + ONE_MORE_TOKEN_IN * TOKENS_AT_ONCE;
        if is_admitted {
            full_at.insert(client, at);
        }
        is_admitted
    }

    /// Whether an address has sent this hook too many wrong signatures.
    pub(super) fn must_wait(&self, client: ClientAddress, hook: KeyDigest, now: Instant) -> bool {
        let full_at = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).get(&(client, hook));
        full_at.is_some_and(|at| at + ONE_MORE_WRONG_IN > now + ONE_MORE_WRONG_IN * WRONG_AT_ONCE)
    }

    /// Counts a wrong signature.
    pub(super) fn count_wrong(&self, client: ClientAddress, hook: KeyDigest, now: Instant) {
        let mut full_at = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let at = full_at.get(&(client, hook)).unwrap_or(now).max(now) + ONE_MORE_WRONG_IN;
        full_at.insert((client, hook), at.min(now + ONE_MORE_WRONG_IN * WRONG_AT_ONCE));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn client(number: u32) -> ClientAddress {
        ClientAddress::of(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn wrong_signatures_hold_up_their_own_hook_alone() {
        let (throttle, now) = (HookThrottle::default(), Instant::now());
        let (ours, theirs) = (KeyDigest([1; 32]), KeyDigest([2; 32]));
        for _ in 0..WRONG_AT_ONCE {
            assert!(!throttle.must_wait(client(1), ours, now));
            throttle.count_wrong(client(1), ours, now);
        }
        assert!(throttle.must_wait(client(1), ours, now));
        assert!(!throttle.must_wait(client(1), theirs, now));
        assert!(!throttle.must_wait(client(2), ours, now));
        assert!(!throttle.must_wait(client(1), ours, now + ONE_MORE_WRONG_IN));
    }

    #[test]
    fn unknown_tokens_are_looked_up_at_a_pace() {
        let (throttle, now) = (HookThrottle::default(), Instant::now());
        let admitted = (0..1_000).filter(|_| throttle.admits_token(client(1), now)).count();
        assert_eq!(admitted, TOKENS_AT_ONCE as usize);
        assert!(throttle.admits_token(client(2), now));
        for number in 0..100_000 {
            throttle.count_wrong(client(number), KeyDigest([3; 32]), now);
        }
        assert!(throttle.wrong.lock().unwrap().len() <= 2 * REMEMBERED_HALF_MAX);
    }
}
