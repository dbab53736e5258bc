//! When the jobs of housekeeping run: while this node has the duty, and until it stops.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use postway_store::StoreError;
use tokio_util::sync::CancellationToken;

use super::EVERY;

/// The pace of the jobs.
pub(super) struct DutyPace {
    pub(super) stop: CancellationToken,
    /// Whether this node has the housekeeping duty.
    pub(super) has_duty: AtomicBool,
}

impl DutyPace {
    pub(super) fn is_running(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Waits until a job is due again. A job that failed is tried again soon.
    pub(super) async fn wait_after(&self, duty: &'static str, done: Result<Duration, StoreError>) {
        let wait = done.unwrap_or_else(|error| {
            tracing::warn!(duty, %error, "a duty of housekeeping failed");
            EVERY
        });
        self.wait(wait).await;
    }

    /// Waits until this node has the duty; false if it is stopped before.
    pub(super) async fn wait_for_duty(&self) -> bool {
        while self.is_running() && !self.has_duty.load(Ordering::Relaxed) {
            self.wait(EVERY).await;
        }
        self.is_running()
    }

    async fn wait(&self, time: Duration) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(time) => {}
        }
    }
}
