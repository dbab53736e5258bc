//! What the database takes of this machine's disk, where it is a file: kept small, measured, and told where somebody is in the way.

use std::time::Duration;

use postway_store::{Store, StoreError, record::StoreSpace};
use tokio::time::Instant;

use super::EVERY;
use crate::sweep;

/// How long a reader may keep the log from being folded back before that is told.
const LOG_HELD_MAX: Duration = Duration::from_secs(60);
/// How often it is told.
const TOLD_EVERY: Duration = Duration::from_secs(10 * 60);

/// Looks after the space, and knows what it has told.
#[derive(Default)]
pub(super) struct SpaceWatch {
    told_at: Option<Instant>,
}

impl SpaceWatch {
    /// One look; how long until the next.
    pub async fn look(&mut self, store: &dyn Store) -> Result<Duration, StoreError> {
        let Some(space) = store.tend_space().await? else { return Ok(sweep::EVERY) };
        let held_for = space.log_held_for.unwrap_or_default();
        metrics::gauge!("postway_store_file_bytes").set(space.file_bytes as f64);
        metrics::gauge!("postway_store_free_bytes").set(space.free_bytes as f64);
        metrics::gauge!("postway_store_log_bytes").set(space.log_bytes as f64);
        metrics::gauge!("postway_store_log_held_seconds").set(held_for.as_secs_f64());
        if self.is_to_tell(&space, Instant::now()) {
            tracing::warn!(
                log_bytes = space.log_bytes,
                held_s = held_for.as_secs(),
                "something reads the database for long, and its log grows until that ends: see what else has the file open"
            );
        }
        Ok(EVERY)
    }

    fn is_to_tell(&mut self, space: &StoreSpace, now: Instant) -> bool {
        let is_held = space.log_held_for.is_some_and(|time| time >= LOG_HELD_MAX);
        let is_due = self.told_at.is_none_or(|at| now - at >= TOLD_EVERY);
        if is_held && is_due {
            self.told_at = Some(now);
        }
        is_held && is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_in_the_way_is_told_once_in_a_while() {
        let (mut watch, start) = (SpaceWatch::default(), Instant::now());
        let held = |seconds| StoreSpace {
            log_held_for: Some(Duration::from_secs(seconds)),
            ..StoreSpace::default()
        };
        assert!(!watch.is_to_tell(&StoreSpace::default(), start));
        assert!(!watch.is_to_tell(&held(59), start), "some reads take a while");
        assert!(watch.is_to_tell(&held(60), start));
        assert!(!watch.is_to_tell(&held(61), start + EVERY));
        assert!(watch.is_to_tell(&held(700), start + TOLD_EVERY));
    }
}
