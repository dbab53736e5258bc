//! Detects that the time of day was set back, by a monotonic clock.

use std::time::Duration;

use postway_domain::Time;
use tokio::time::Instant;

/// A smaller step is a correction of the clock, and no mail waits long for it.
const STEP_MIN: Duration = Duration::from_secs(3);

/// The time of day at the last check, and the monotonic time of that check.
pub(super) struct RollbackDetector {
    time: Time,
    at: Instant,
}

impl RollbackDetector {
    pub fn new(time: Time, at: Instant) -> Self {
        Self { time, at }
    }

    /// Whether the time of day is earlier than it should be since the last check.
    pub fn went_back(&mut self, time: Time, at: Instant) -> bool {
        let last = std::mem::replace(self, Self::new(time, at));
        last.time.plus(at - last.at).since(time) >= STEP_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_was_set_back_went_back() {
        let (time, start) = (Time::from_millis, Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut steps = RollbackDetector::new(time(1_000_000), start);
        assert!(!steps.went_back(time(1_010_000), at(10)), "it goes as it should");
        assert!(!steps.went_back(time(9_000_000), at(10)), "forward");
        assert!(!steps.went_back(time(9_009_000), at(20)), "a nudge");
        assert!(steps.went_back(time(9_015_999), at(30)), "it stood still, nearly");
        assert!(!steps.went_back(time(9_015_999), at(30)), "a step is reported once");
        assert!(steps.went_back(time(1_000_000), at(30)), "back");
    }
}
