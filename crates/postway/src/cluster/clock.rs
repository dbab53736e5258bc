//! The time that all nodes of a database agree on.
//!
//! Times that one node writes are read by others: when mail is due, how much of a limit is used. So nodes
//! agree on a clock. A node that joins takes over the time of the others ([`ClockFollower`]), and each
//! continues by its own monotonic clock, so a machine whose time of day is wrong, or is set, changes nothing.
//! The node that becomes the oldest continues as well.

mod follower;
mod note;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use postway_domain::{Clock, Time};
use tokio::time::Instant;

pub use follower::{ClockDistance, ClockFollower};
pub use note::{ClockNote, KernelUptime};

/// The machine's clock. Nothing else reads it.
struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Time {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since_epoch.map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
        Time::from_millis(millis.saturating_add(skew_ms()))
    }
}

/// The clock of this node. It starts at the machine's time and continues by a monotonic clock. If the
/// machine's time of day is set meanwhile, [`crate::cluster::membership`] decides whether to follow it.
pub struct NodeClock {
    machine: Arc<dyn Clock>,
    started: Instant,
    /// The time at the start, as corrected so far.
    started_ms: AtomicI64,
}

impl Default for NodeClock {
    fn default() -> Self {
        Self::from_machine(Arc::new(SystemClock))
    }
}

impl NodeClock {
    /// A clock that starts at this machine's time.
    pub fn from_machine(machine: Arc<dyn Clock>) -> Self {
        let started_ms = AtomicI64::new(machine.now().as_millis());
        Self { machine, started: Instant::now(), started_ms }
    }

    /// Moves the clock by `by_ms`.
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

/// The clock skew that a test asks for.
#[cfg(feature = "failpoints")]
fn skew_ms() -> i64 {
    static SKEW_MS: std::sync::LazyLock<i64> = std::sync::LazyLock::new(|| {
        let skew = std::env::var("FAILPOINTS_CLOCK_SKEW_MS").ok();
        skew.and_then(|millis| millis.parse().ok()).unwrap_or(0)
    });
    *SKEW_MS
}

#[cfg(not(feature = "failpoints"))]
const fn skew_ms() -> i64 {
    0
}
