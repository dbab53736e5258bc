//! The time, by the machine's clock, as all nodes of a database have it.
//!
//! Times that one node writes are read by others: when mail is due, what of a limit is used. So nodes agree on a clock.
//! Whoever joins takes over the time of those who are there ([`ClockFollower`]), and each goes on by its own monotonic clock, so a
//! machine whose time of day is wrong, or is set, changes nothing for anybody. Whoever becomes the oldest goes on as well.

mod follower;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use postway_domain::{Clock, Time};
use tokio::time::Instant;

pub use follower::{ClockDistance, ClockFollower};

/// The only place that asks the machine.
struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Time {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since_epoch.map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
        Time::from_millis(millis.saturating_add(skew_ms()))
    }
}

/// The time that this node goes by. It begins as the machine's and goes on by a clock that cannot be set: what becomes of the
/// machine's time of day in between is a matter of [`crate::cluster::membership`], not of whoever asks for the time.
pub struct NodeClock {
    machine: Arc<dyn Clock>,
    started: Instant,
    /// The time at the start, as it is known by now.
    started_ms: AtomicI64,
}

impl Default for NodeClock {
    fn default() -> Self {
        Self::of(Arc::new(SystemClock))
    }
}

impl NodeClock {
    /// On this machine.
    pub fn of(machine: Arc<dyn Clock>) -> Self {
        let started_ms = AtomicI64::new(machine.now().as_millis());
        Self { machine, started: Instant::now(), started_ms }
    }

    /// Moves the clock by so much.
    pub fn shift(&self, by_ms: i64) {
        self.started_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// How far the machine's clock is ahead of it.
    pub fn machine_ahead_ms(&self) -> i64 {
        self.machine.now().as_millis().saturating_sub(self.now().as_millis())
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Time {
        Time::from_millis(self.started_ms.load(Ordering::Relaxed)).plus(self.started.elapsed())
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
