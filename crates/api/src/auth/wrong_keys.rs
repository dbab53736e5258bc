//! Wrong keys: how many an address may try, and which were tried a moment ago.
//!
//! A key cannot be guessed, but each wrong one would cost a lookup in the store. So an address has ten tries
//! at once and one more every six seconds; beyond that it must wait, and the store is not asked. This applies
//! to keys that this process does not know: a client that shares the address and presents a key that was
//! valid here before is admitted. A wrong key that is presented again within a moment is refused from memory;
//! a key that was created meanwhile on another node works as soon after.
//!
//! The memory is bounded: under a spray from millions of addresses the oldest entries are dropped.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use postway_domain::{KeyDigest, client::ClientAddress};

use crate::http::recent_map::RecentMap;

/// Wrong keys that an address may try at once.
const BURST: u32 = 10;
/// How soon it may try one more.
const ONE_MORE_IN: Duration = Duration::from_secs(6);
/// How long a wrong key is refused from memory: shorter than a valid one is trusted.
const WRONG_FOR: Duration = Duration::from_secs(2);
/// Half of the addresses, and of the wrong keys, that are remembered.
const REMEMBERED_HALF_MAX: usize = 8_192;

/// The memory of wrong keys.
pub(super) struct WrongKeyMemory {
    /// When each client will have all its tries again.
    full_at: Mutex<RecentMap<ClientAddress, Instant>>,
    seen: Mutex<RecentMap<KeyDigest, Instant>>,
}

impl Default for WrongKeyMemory {
    fn default() -> Self {
        Self {
            full_at: Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)),
            seen: Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)),
        }
    }
}

impl WrongKeyMemory {
    /// How long this client must wait before another unknown key is checked, if it must.
    pub(super) fn wait(&self, client: ClientAddress, now: Instant) -> Option<Duration> {
        let full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner).get(&client)?;
        let wait = (full_at + ONE_MORE_IN).saturating_duration_since(now + ONE_MORE_IN * BURST);
        (!wait.is_zero()).then_some(wait)
    }

    /// Whether this key was wrong a moment ago.
    pub(super) fn is_known_wrong(&self, digest: &KeyDigest, now: Instant) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(digest);
        seen.is_some_and(|seen| now.saturating_duration_since(seen) < WRONG_FOR)
    }

    /// Remembers that this key is wrong.
    pub(super) fn remember(&self, digest: KeyDigest, now: Instant) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, now);
    }

    /// Counts a wrong key of this client.
    pub(super) fn count_wrong_key(&self, client: ClientAddress, now: Instant) {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let at = full_at.get(&client).unwrap_or(now).max(now) + ONE_MORE_IN;
        full_at.insert(client, at.min(now + ONE_MORE_IN * BURST));
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
    fn an_address_has_ten_wrong_keys_and_then_one_in_six_seconds() {
        let (wrong, now) = (WrongKeyMemory::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(wrong.wait(client(1), now), None);
            wrong.count_wrong_key(client(1), now);
        }
        assert_eq!(wrong.wait(client(1), now), Some(ONE_MORE_IN));
        assert_eq!(wrong.wait(client(2), now), None, "an address answers for itself alone");
        let later = now + ONE_MORE_IN;
        assert_eq!(wrong.wait(client(1), later), None);
        wrong.count_wrong_key(client(1), later);
        assert!(wrong.wait(client(1), later).is_some());
        assert_eq!(wrong.wait(client(1), now + Duration::from_secs(120)), None);
    }

    #[test]
    fn a_wrong_key_is_refused_from_memory_for_a_moment() {
        let (wrong, now, digest) = (WrongKeyMemory::default(), Instant::now(), KeyDigest::of(b"pw_x"));
        assert!(!wrong.is_known_wrong(&digest, now));
        wrong.remember(digest, now);
        assert!(wrong.is_known_wrong(&digest, now + Duration::from_millis(1_999)));
        assert!(!wrong.is_known_wrong(&digest, now + WRONG_FOR));
    }

    #[test]
    fn a_spray_from_many_addresses_takes_no_more_memory_than_it_may() {
        let (wrong, now) = (WrongKeyMemory::default(), Instant::now());
        for number in 0..300_000 {
            wrong.count_wrong_key(client(number), now);
        }
        assert!(wrong.full_at.lock().unwrap().len() <= 2 * REMEMBERED_HALF_MAX);
    }
}
