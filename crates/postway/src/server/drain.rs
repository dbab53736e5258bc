//! The stop: no new work is taken in, what is on the wire is finished, and this node leaves the register
//! last.

use std::time::Duration;

use super::start::RunningServer;

/// How long open HTTP requests may take once the server stops.
const HTTP_DRAIN: Duration = Duration::from_secs(10);

impl RunningServer {
    /// Stops everything in order. Returns whether every attempt on the wire was finished.
    pub async fn drain(self) -> bool {
        self.stop_intake.cancel();
        // Together, so that the stop takes no longer than the longest of them.
        let (finished, http, submission, reception) = tokio::join!(
            self.dispatcher.drain(),
            tokio::time::timeout(HTTP_DRAIN, self.http),
            self.submission,
            self.reception
        );
        if let Err(error) = submission.and(reception) {
            tracing::warn!(%error, "the SMTP listener ended badly");
        }
        match http {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the HTTP server ended badly"),
            Err(_) => tracing::warn!("some HTTP requests were cut off"),
        }
        self.stop_upkeep.cancel();
        let (.., storage_check) = tokio::join!(
            self.intake,
            self.notifier,
            self.archiver,
            self.inbound,
            self.housekeeping,
            self.metrics,
            self.secret_check,
            self.domain_checks,
            self.storage_check
        );
        // A token that a provider has just given must be stored.
        self.tokens.finish().await;
        self.stop_heartbeat.cancel();
        if let Err(error) = self.heartbeat.await {
            tracing::warn!(%error, "this node could not leave in order; the others will notice");
        }
        if let Ok(storage_check) = storage_check {
            storage_check.leave().await;
        }
        self.store.close().await;
        // What was done until here may have spans.
        self.stop_traces.cancel();
        if let Some(Err(error)) = futures::future::OptionFuture::from(self.traces).await {
            tracing::warn!(%error, "the export of traces ended badly");
        }
        finished
    }
}
