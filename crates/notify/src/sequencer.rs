//! The sequencer: gives what happened its place in the feed, and makes notifications of it.
//!
//! A duty: one node does it for all. It works in bounded batches until nothing is left, woken by the store and else once in
//! a poll. It also takes back notifications whose callers are gone.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Clock, Incarnation};
use postway_store::{Store, StoreError};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// Pages of the journal that get their places at once.
const SEQUENCE_PAGES_MAX: u32 = 1_000;
/// Pages that notifications are made of at once.
const FAN_OUT_PAGES_MAX: u32 = 64;
/// Notifications taken back at once.
const RECLAIM_MAX: u32 = 500;
/// How often who has the duty is asked, and the dead are looked for.
const DUTY_EVERY: Duration = Duration::from_secs(1);
/// Rounds are at least this far apart: what happens meanwhile shares the next one.
const ROUND_MIN: Duration = Duration::from_millis(20);

/// This process among the nodes of its database.
#[async_trait]
pub trait Node: Send + Sync {
    /// The processes that are alive; `None` while that cannot be told.
    fn alive(&self) -> Option<Vec<Incarnation>>;

    /// Whether this process sequences for all.
    async fn is_on_duty(&self) -> Result<bool, StoreError>;
}

/// See the module.
pub(crate) struct Sequencer {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub node: Arc<dyn Node>,
    /// Told when there may be notifications to send.
    pub made: Arc<Notify>,
    pub poll: Duration,
}

impl Sequencer {
    /// Works until it is stopped. A round that fails is tried again.
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
                // Somebody else has the duty by now, or the same will be tried again.
                Err(StoreError::Conflict(error)) => {
                    tracing::debug!(error, "a round of the sequencer was undone")
                }
                Err(error) if is_well => {
                    tracing::warn!(%error, "what happened could not be made into notifications yet");
                    is_well = false;
                }
                Err(_) => {}
            }
            // What another node makes is sent here as well.
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
            let is_done = placed < SEQUENCE_PAGES_MAX && made < FAN_OUT_PAGES_MAX;
            if is_done || stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Gives back what the dead, and those past their backstop, were telling.
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
