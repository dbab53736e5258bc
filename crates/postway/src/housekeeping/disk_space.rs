//! The disk space of a database that is a file: has the store keep it small, sets its gauges, and warns when
//! another process keeps the file's log from shrinking.

use std::time::Duration;

use postway_store::{Store, StoreError, record::StoreSpace};
use tokio::time::Instant;

use super::{EVERY, cleanup};

/// How long a reader may keep the log from being folded back into the file before a warning is logged.
const LOG_HELD_MAX: Duration = Duration::from_secs(60);
/// The time between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(10 * 60);

/// Maintains the space, and remembers when it warned last.
#[derive(Default)]
pub(super) struct DiskSpaceWatch {
    warned_at: Option<Instant>,
}

impl DiskSpaceWatch {
    /// Maintains the space once, and returns the time until the next round.
    pub async fn look(&mut self, store: &dyn Store) -> Result<Duration, StoreError> {
        let Some(space) = store.tend_space().await? else { return Ok(cleanup::EVERY) };
        let held_for = space.log_held_for.unwrap_or_default();
        metrics::gauge!("postway_store_file_bytes").set(space.file_bytes as f64);
        metrics::gauge!("postway_store_free_bytes").set(space.free_bytes as f64);
        metrics::gauge!("postway_store_log_bytes").set(space.log_bytes as f64);
        metrics::gauge!("postway_store_log_held_seconds").set(held_for.as_secs_f64());
        if self.is_warning_due(&space, Instant::now()) {
            tracing::warn!(
                log_bytes = space.log_bytes,
                held_s = held_for.as_secs(),
                "something reads the database for long, and its log grows until that ends: see what else has the file open"
            );
        }
        Ok(EVERY)
    }

    fn is_warning_due(&mut self, space: &StoreSpace, now: Instant) -> bool {
        let is_held = space.log_held_for.is_some_and(|time| time >= LOG_HELD_MAX);
        let is_due = self.warned_at.is_none_or(|at| now - at >= WARN_EVERY);
        if is_held && is_due {
            self.warned_at = Some(now);
        }
        is_held && is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_holds_the_log_is_warned_of_now_and_then() {
        let (mut watch, start) = (DiskSpaceWatch::default(), Instant::now());
        let held = |seconds| StoreSpace {
            log_held_for: Some(Duration::from_secs(seconds)),
            ..StoreSpace::default()
        };
        assert!(!watch.is_warning_due(&StoreSpace::default(), start));
        assert!(!watch.is_warning_due(&held(59), start), "some reads take a while");
        assert!(watch.is_warning_due(&held(60), start));
        assert!(!watch.is_warning_due(&held(61), start + EVERY));
        assert!(watch.is_warning_due(&held(700), start + WARN_EVERY));
    }
}
