//! A rate limit on unsubscribe links, by address.
//!
//! A forged link costs a decryption, a real one a read or a write of one row. The programs of large mailbox
//! providers make requests for many readers from few addresses, so the limit is high, and only a flood is
//! slowed down. The memory is bounded.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use postway_domain::client::ClientAddress;

use crate::http::recent_map::RecentMap;

/// Requests that an address may make at once.
const BURST: u32 = 200;
/// How soon it may make one more.
const ONE_MORE_IN: Duration = Duration::from_millis(20);
/// Half of the addresses that are remembered.
const REMEMBERED_HALF_MAX: usize = 8_192;

/// When each address will have its full allowance again.
pub(crate) struct ReaderRateLimit(Mutex<RecentMap<ClientAddress, Instant>>);

impl Default for ReaderRateLimit {
    fn default() -> Self {
        Self(Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)))
    }
}

impl ReaderRateLimit {
    /// Whether an address may make a request now; if so, the request is counted.
    pub(super) fn admits(&self, client: ClientAddress, now: Instant) -> bool {
        let mut full_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = full_at.get(&client).unwrap_or(now).max(now) + ONE_MORE_IN;
        let is_admitted = at <= now + ONE_MORE_IN * BURST;
        if is_admitted {
            full_at.insert(client, at);
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn an_address_may_ask_often_for_a_moment_and_at_a_pace_for_long() {
        let client = |number| ClientAddress::of(IpAddr::V4(Ipv4Addr::from_bits(number)));
        let (pace, now) = (ReaderRateLimit::default(), Instant::now());
        let admitted = (0..1_000).filter(|_| pace.admits(client(1), now)).count();
        assert_eq!(admitted, BURST as usize);
        assert!(pace.admits(client(2), now), "an address answers for itself alone");
        assert!(!pace.admits(client(1), now + Duration::from_millis(19)));
        assert!(pace.admits(client(1), now + ONE_MORE_IN));
        for number in 0..100_000 {
            pace.admits(client(number), now);
        }
        assert!(pace.0.lock().unwrap().len() <= 2 * REMEMBERED_HALF_MAX);
    }
}
