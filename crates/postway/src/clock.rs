//! The time, by the machine's clock, as all nodes of a database have it.
//!
//! Times that one node writes are read by others: when mail is due, what of a limit is used. So nodes agree on a clock.
//! The oldest follows its machine; each other keeps the distance to it that it measured by its heartbeats, and so goes
//! right even where its machine is a minute off. Whoever becomes the oldest keeps its distance, and time goes on.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use postway_domain::{Clock, Time};

/// Measurements that are kept: a beat is up to one look old, so the largest of several is the nearest.
const SAMPLES: usize = 16;
/// Clocks that differ by less are left alone.
const NEAR_MS: i64 = 500;

/// The only place that asks the machine.
struct Machine;

impl Clock for Machine {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Time {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since_epoch.map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
        Time::from_millis(millis.saturating_add(skew_ms()))
    }
}

/// A machine's clock, at the distance that the other nodes ask for.
pub struct NodeClock {
    machine: Arc<dyn Clock>,
    distance_ms: AtomicI64,
}

impl Default for NodeClock {
    fn default() -> Self {
        Self::of(Arc::new(Machine))
    }
}

impl NodeClock {
    /// On this machine.
    pub fn of(machine: Arc<dyn Clock>) -> Self {
        Self { machine, distance_ms: AtomicI64::new(0) }
    }

    /// Moves the clock by so much.
    fn shift(&self, by_ms: i64) {
        self.distance_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Time {
        let distance_ms = self.distance_ms.load(Ordering::Relaxed);
        Time::from_millis(self.machine.now().as_millis().saturating_add(distance_ms))
    }
}

/// How far a test lets this process's clock be off.
#[cfg(feature = "failpoints")]
fn skew_ms() -> i64 {
    static SKEW_MS: std::sync::LazyLock<i64> = std::sync::LazyLock::new(|| {
        let given = std::env::var("FAILPOINTS_CLOCK_SKEW_MS").ok();
        given.and_then(|millis| millis.parse().ok()).unwrap_or(0)
    });
    *SKEW_MS
}

#[cfg(not(feature = "failpoints"))]
const fn skew_ms() -> i64 {
    0
}

/// Follows another node's clock by its heartbeats.
#[derive(Default)]
pub struct Follower {
    samples: VecDeque<i64>,
    last_beat: Option<i64>,
}

impl Follower {
    /// The followed node has said the time. Counts only where its counter has moved since the last look: then it is no
    /// older than a look. Returns by how much our clock should move, once that is known well enough.
    fn hear(&mut self, beat: i64, its_now: Time, our_now: Time, enough: usize) -> Option<i64> {
        let moved = self.last_beat.is_some_and(|last| last != beat);
        self.last_beat = Some(beat);
        if !moved {
            return None;
        }
        self.samples.push_back(its_now.as_millis() - our_now.as_millis());
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        let nearest = self.samples.iter().max().copied()?;
        let known = self.samples.len() >= enough;
        (known && nearest.abs() > NEAR_MS).then_some(nearest)
    }

    /// Hears, and moves the clock where it must. One beat is enough for a look that is only moments long.
    pub fn follow(&mut self, clock: &NodeClock, beat: i64, its_now: Time, is_quick: bool) -> bool {
        let enough = if is_quick { 1 } else { SAMPLES / 2 };
        let before = self.samples.len();
        if let Some(by_ms) = self.hear(beat, its_now, clock.now(), enough) {
            clock.shift(by_ms);
            self.samples.clear();
            tracing::warn!(by_ms, "this machine's clock differs from the other nodes'; theirs is used");
            return true;
        }
        self.samples.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_quick_look_takes_over_the_others_time_once_its_counter_moves() {
        let mut follower = Follower::default();
        assert_eq!(follower.hear(1, at(0), at(60_000), 1), None, "it may be an old beat");
        assert_eq!(follower.hear(1, at(0), at(60_050), 1), None);
        assert_eq!(follower.hear(2, at(1_000), at(61_010), 1), Some(-60_010));
    }

    #[test]
    fn beats_that_are_a_look_old_do_not_move_the_clock() {
        let mut follower = Follower::default();
        for n in 1..100 {
            let age = (n * 37) % 1_000;
            assert_eq!(follower.hear(n, at(n * 1_000 - age), at(n * 1_000), 8), None, "beat {n}");
        }
    }

    #[test]
    fn a_step_of_the_followed_clock_is_followed() {
        let mut follower = Follower::default();
        let heard: Vec<_> = (1..=10)
            .filter_map(|n| follower.hear(n, at(n * 1_000 + 90_000 - n * 10), at(n * 1_000), 8))
            .collect();
        assert_eq!(heard.first(), Some(&89_980));
    }
}
