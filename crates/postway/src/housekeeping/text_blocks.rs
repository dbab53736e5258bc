//! The blocks of texts that searches read: planned and filled a little behind the mail, a slice at a time.

use std::time::Duration;

use postway_store::StoreError;
use tokio::time::Instant;

use super::{EVERY, HousekeepingDuties, duty_pace::DutyPace};

/// How long one round may take while there is something to do. The rest of the second belongs to mail.
const ROUND_MAX: Duration = Duration::from_millis(200);
/// The pause after some tenants had nothing to do, before the next are asked.
const IDLE: Duration = Duration::from_secs(5);

impl HousekeepingDuties {
    pub(super) async fn keep_text_blocks(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            pace.wait_after("text blocks", self.tend_text_blocks().await).await;
        }
    }

    /// Continues until nothing was done, or the round is over.
    async fn tend_text_blocks(&self) -> Result<Duration, StoreError> {
        let deadline = Instant::now() + ROUND_MAX;
        loop {
            if self.store.tend_text_blocks(self.clock.now()).await?.done == 0 {
                return Ok(IDLE);
            }
            if Instant::now() >= deadline {
                return Ok(EVERY);
            }
        }
    }
}
