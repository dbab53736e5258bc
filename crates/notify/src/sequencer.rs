//! The sequencer: gives events their position in the feed, and makes notifications of them.
//!
//! Sequencing is a duty: one node does it for all. It works in bounded batches until nothing is left, woken
//! by the store and otherwise once in each poll interval. It also reclaims notifications whose callers are
//! gone.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Clock, Incarnation};
use postway_store::{Store, StoreError};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// Pages of the journal that are sequenced in one call.
const SEQUENCE_PAGES_MAX: u32 = 2_048;
/// Pages of the feed that are turned into notifications in one call. With a thousand active tenants a message
/// leaves two pages, so a call must take many of them; the store bounds what one transaction does.
const FAN_OUT_PAGES_MAX: u32 = 2_048;
/// A call that took this many pages may have left some.
const FAN_OUT_PAGES_MANY: u32 = 64;
/// Notifications reclaimed in one call.
const RECLAIM_MAX: u32 = 500;
/// How often the duty is checked, and dead nodes are looked for.
const DUTY_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two rounds: events that happen meanwhile share the next one.
const ROUND_MIN: Duration = Duration::from_millis(20);

/// This process as a node of its database.
#[async_trait]
pub trait NotifierNode: Send + Sync {
    /// The incarnations that are alive; `None` while that is unknown.
    fn alive(&self) -> Option<Vec<Incarnation>>;

    /// Whether this process has the duty of sequencing.
    async fn is_on_duty(&self) -> Result<bool, StoreError>;
}

/// The sequencer. See the module.
pub(crate) struct FeedSequencer {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub node: Arc<dyn NotifierNode>,
    /// Wakes the notifier when there may be notifications to deliver.
    pub made: Arc<Notify>,
    pub poll: Duration,
}

impl FeedSequencer {
    /// Works until it is stopped. A round that fails is repeated.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (mut on_duty, mut ask_at) = (false, Instant::now());
        let mut is_well = true;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let round = async {
                if ask_at <= began {
                    on_duty = self.node.is_on_duty().await?;
                    ask_at = began + DUTY_EVERY.min(self.poll);
                    if on_duty {
                        self.reclaim().await?;
                    }
                }
                if on_duty { self.work(&stop).await } else { Ok(()) }
            };
            match round.await {
                Ok(()) => is_well = true,
                // Another node has the duty by now, or the same work is tried again.
                Err(StoreError::Conflict(error)) => {
                    tracing::debug!(error, "a round of the sequencer was undone")
                }
                Err(error) if is_well => {
                    tracing::warn!(%error, "what happened could not be made into notifications yet");
                    is_well = false;
                }
                Err(_) => {}
            }
            // Notifications that another node made are delivered here as well.
            if !on_duty {
                self.made.notify_one();
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(self.poll) => {}
                () = self.store.report_woken() => tokio::time::sleep_until(began + ROUND_MIN).await,
            }
        }
    }

    async fn work(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        loop {
            let placed = self.store.sequence(SEQUENCE_PAGES_MAX).await?;
            let made = self.store.fan_out(self.clock.now(), FAN_OUT_PAGES_MAX).await?;
            if made > 0 {
                self.made.notify_one();
            }
            let is_done = placed < SEQUENCE_PAGES_MAX && made < FAN_OUT_PAGES_MANY;
            if is_done || stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Gives back notifications whose nodes are dead or whose leases have expired.
    async fn reclaim(&self) -> Result<(), StoreError> {
        let Some(alive) = self.node.alive() else { return Ok(()) };
        loop {
            let taken = self.store.reclaim_notifications(&alive, self.clock.now(), RECLAIM_MAX).await?;
            if taken > 0 {
                tracing::info!(notifications = taken, "took back notifications whose callers are gone");
            }
            if taken < RECLAIM_MAX {
                return Ok(());
            }
        }
    }
}
