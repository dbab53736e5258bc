//! How often a password may be tried.
//!
//! Per account: ten tries, and one more every thirty seconds. A stranger can use these up, so they must not
//! be the person's own: a browser in which the person has signed in before keeps a cookie that says so, and
//! has tries of its own. A provider and the admin key are not slowed down by wrong passwords. Tries
//! per address are counted where wrong keys are (`wrong_keys.rs`).
//!
//! Each node counts for itself, and the memory is bounded. A name that does not exist is counted as well.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use aws_lc_rs::digest;

use crate::http::recent_map::RecentMap;

/// Tries at once.
const BURST: u32 = 10;
/// How soon there is one more.
const ONE_MORE_IN: Duration = Duration::from_secs(30);
/// Half of the accounts and browsers that are remembered.
const REMEMBERED_HALF_MAX: usize = 8_192;

/// Whose tries are counted, as a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TrierDigest([u8; 32]);

impl TrierDigest {
    /// Of an account, tried from a browser that nobody knows.
    pub(crate) fn account(name: &str) -> Self {
        Self::of("account", name)
    }

    /// Of a browser in which the account's owner has signed in before.
    pub(crate) fn browser(id: &str) -> Self {
        Self::of("browser", id)
    }

    fn of(kind: &str, text: &str) -> Self {
        let mut bytes = [0; 32];
        let text = format!("{kind}\n{text}");
        bytes.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
        Self(bytes)
    }
}

/// The memory of tries.
pub(crate) struct SignInPace(Mutex<RecentMap<TrierDigest, Instant>>);

impl Default for SignInPace {
    fn default() -> Self {
        Self(Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)))
    }
}

impl SignInPace {
    /// Takes a try, or says how long to wait for one.
    pub(crate) fn take(&self, trier: TrierDigest, now: Instant) -> Result<(), Duration> {
        let mut full_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = full_at.get(&trier).unwrap_or(now).max(now) + ONE_MORE_IN;
        let wait = at.saturating_duration_since(now + ONE_MORE_IN * BURST);
        if !wait.is_zero() {
            return Err(wait);
        }
        full_at.insert(trier, at);
        Ok(())
    }

    /// Gives all tries back: the right password was among them.
    pub(crate) fn forgive(&self, trier: TrierDigest, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(trier, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_wrong_passwords_are_mostly_not_tried_and_lock_nobody_else_out() {
        let (pace, now) = (SignInPace::default(), Instant::now());
        let (stranger, owner) = (TrierDigest::account("ada"), TrierDigest::browser("1"));
        let tried = (0..1_000).filter(|_| pace.take(stranger, now).is_ok()).count();
        assert_eq!(tried, BURST as usize);
        assert_eq!(pace.take(stranger, now), Err(ONE_MORE_IN));
        assert_eq!(pace.take(stranger, now + ONE_MORE_IN), Ok(()));
        assert_eq!(pace.take(owner, now), Ok(()));
        assert_eq!(pace.take(TrierDigest::account("eve"), now), Ok(()));
        pace.forgive(stranger, now);
        assert_eq!((0..1_000).filter(|_| pace.take(stranger, now).is_ok()).count(), BURST as usize);
    }
}
