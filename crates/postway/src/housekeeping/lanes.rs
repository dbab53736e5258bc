//! The upkeep of lanes: mail is moved to where claims find it, and lanes without messages are removed.

use std::time::Duration;

use postway_store::StoreError;
use tokio::time::Instant;

use super::{EVERY, HousekeepingDuties, cleanup};

/// How long one round along the lanes may take.
const LANES_MAX: Duration = Duration::from_millis(100);

impl HousekeepingDuties {
    /// Moves mail that waits in lanes under earlier ids to where claims find it, for as long as a round may
    /// take.
    pub(super) async fn move_misplaced(&self) -> Result<Duration, StoreError> {
        let (deadline, mut moved) = (Instant::now() + LANES_MAX, 0);
        loop {
            let page = self.store.move_misplaced().await?;
            moved += page.done;
            if page.is_last || Instant::now() >= deadline {
                break;
            }
        }
        if moved > 0 {
            tracing::info!(messages = moved, "moved mail to its lanes");
        }
        Ok(EVERY)
    }

    /// Removes lanes to which no message refers any more.
    pub(super) async fn retire_lanes(&self) -> Result<Duration, StoreError> {
        let deadline = Instant::now() + LANES_MAX;
        loop {
            let page = self.store.retire_lanes(self.clock.now()).await?;
            if page.is_last {
                return Ok(cleanup::EVERY);
            }
            if Instant::now() >= deadline {
                return Ok(EVERY);
            }
        }
    }
}
