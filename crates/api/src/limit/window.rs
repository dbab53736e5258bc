//! Counts of keys or addresses in windows of time.
//!
//! The memory is bounded: clients choose who is counted, so of a spray from millions of addresses the oldest
//! entries are dropped.

use std::{
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::http::recent_map::RecentMap;

/// Half of those that are counted at once.
const COUNTED_HALF_MAX: usize = 16_384;

/// The counts.
pub(super) struct WindowCounts<K>(Mutex<RecentMap<K, WindowCount>>);

#[derive(Clone, Copy)]
struct WindowCount {
    began: Instant,
    used: u64,
}

impl<K: Eq + Hash> Default for WindowCounts<K> {
    fn default() -> Self {
        Self(Mutex::new(RecentMap::new(COUNTED_HALF_MAX)))
    }
}

impl<K: Eq + Hash + Clone> WindowCounts<K> {
    /// How long `who` must wait, if its window has nothing left.
    pub(super) fn wait(&self, who: &K, quota: u64, window: Duration, now: Instant) -> Option<Duration> {
        let (used, resets_in) = self.read(who, window, now);
        (used >= quota).then_some(resets_in)
    }

    /// Counts an amount. The first one begins a window.
    pub(super) fn add(&self, who: &K, amount: u64, window: Duration, now: Instant) {
        let mut counts = self.counts();
        let current = counts.get(who).filter(|count| now.saturating_duration_since(count.began) < window);
        let count = current.unwrap_or(WindowCount { began: now, used: 0 });
        counts.insert(who.clone(), WindowCount { used: count.used.saturating_add(amount), ..count });
    }

    /// What is used of the window, and the time until it ends.
    pub(super) fn read(&self, who: &K, window: Duration, now: Instant) -> (u64, Duration) {
        match self.counts().get(who) {
            Some(count) if now.saturating_duration_since(count.began) < window => {
                (count.used, window - now.saturating_duration_since(count.began))
            }
            _ => (0, window),
        }
    }

    fn counts(&self) -> MutexGuard<'_, RecentMap<K, WindowCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_window_begins_with_the_first_and_is_over_after_its_length() {
        let (counts, now) = (WindowCounts::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        for second in [0, 10, 20] {
            assert_eq!(counts.wait(&"a", 3, MINUTE, later(second)), None);
            counts.add(&"a", 1, MINUTE, later(second));
        }
        assert_eq!(counts.wait(&"a", 3, MINUTE, later(20)), Some(Duration::from_secs(40)));
        assert_eq!(counts.wait(&"b", 3, MINUTE, later(20)), None, "each counts for itself");
        assert_eq!(counts.read(&"a", MINUTE, later(59)), (3, Duration::from_secs(1)));
        assert_eq!(counts.wait(&"a", 3, MINUTE, later(60)), None);
        counts.add(&"a", 5, MINUTE, later(60));
        assert_eq!(counts.read(&"a", MINUTE, later(61)), (5, Duration::from_secs(59)));
    }

    #[test]
    fn a_spray_takes_no_more_memory_than_it_may() {
        let (counts, now) = (WindowCounts::default(), Instant::now());
        for number in 0..200_000_u32 {
            counts.add(&number, 1, MINUTE, now);
        }
        assert!(counts.counts().len() <= 2 * COUNTED_HALF_MAX);
        assert_eq!(counts.read(&199_999, MINUTE, now).0, 1);
    }
}
