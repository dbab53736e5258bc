//! Bulk actions, done by the node with the duty: a slice for each tenant, then other work gets its turn.

use std::time::Duration;

use postway_api::BulkWorker;

use super::{EVERY, HousekeepingDuties, duty_pace::DutyPace};

impl HousekeepingDuties {
    pub(super) async fn keep_bulk_actions(&self, pace: &DutyPace) {
        let mut worker = BulkWorker::new(self.store.clone(), self.clock.clone());
        while pace.wait_for_duty().await {
            let done = worker.round().await;
            let next = done.map(|is_more| if is_more { Duration::ZERO } else { EVERY });
            pace.wait_after("bulk actions", next).await;
        }
    }
}
