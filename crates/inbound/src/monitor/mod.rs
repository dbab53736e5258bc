//! The monitor: one node at a time watches all mailboxes for all nodes.
//!
//! It runs one task for each active mailbox, begins and ends tasks as mailboxes are created, changed and
//! deleted, and ends all of them when the duty goes to another node. For a moment two nodes may read the same
//! mailbox; the cursor is the fence, and each mail is registered once.
//!
//! Promises: a mail is registered in the same transaction that moves the cursor past it. No mailbox delays
//! another. Memory and sessions are bounded, whatever servers do. No tenant keeps another from its sessions:
//! a waiting tenant gets a session from the tenant with the most, within bounded time.

mod backoff;
mod bounded_folder;
mod page_reader;
mod start_position;
mod watch;

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Clock, WatchedMailbox};
use postway_store::{Store, StoreError, blob::BlobStorage, record::MailboxKey};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
pub(crate) use self::page_reader::sha256;
use self::{
    page_reader::PageReader,
    watch::{MailboxWatch, WatchContext},
};
use crate::{mailbox_metrics, source::FolderSource, tenant_slots::TenantSlots};

/// The most sessions open at the same time.
const SESSIONS_MAX: usize = 200;
/// How often the list of mailboxes is read if this process changed nothing.
const LIST_EVERY: Duration = Duration::from_secs(3);
/// How often the metrics of watched mailboxes are touched, so that they are not dropped.
const TOUCH_METRICS_EVERY: Duration = Duration::from_secs(5 * 60);
/// How long watches may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// This process as a node of its database.
#[async_trait]
pub trait MonitorNode: Send + Sync {
    /// Whether this process has the duty of watching mailboxes.
    async fn is_on_duty(&self) -> Result<bool, StoreError>;
}

/// The dependencies of the monitor.
pub struct MonitorParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The blobs of large mails.
    pub depot: Arc<BlobStorage>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Opens the folders of mailboxes.
    pub source: Arc<dyn FolderSource>,
    /// This process as a node of its database.
    pub node: Arc<dyn MonitorNode>,
    /// How often the duty and changes are checked: [`MonitorParts::POLL`].
    pub poll: Duration,
}

impl MonitorParts {
    /// The usual poll interval.
    pub const POLL: Duration = Duration::from_secs(1);
}

/// The monitor. There is one for each process.
pub struct Monitor {
    context: Arc<WatchContext>,
    node: Arc<dyn MonitorNode>,
    poll: Duration,
    watches: HashMap<MailboxKey, RunningMailboxWatch>,
    tasks: JoinSet<()>,
    /// The generation of the settings that were last read, and when they were read.
    read: Option<(u64, Instant)>,
    /// When the metrics of all watched mailboxes were last touched.
    metrics_touched_at: Option<Instant>,
}

struct RunningMailboxWatch {
    version: i64,
    stop: CancellationToken,
}

impl Monitor {
    /// Creates a monitor that is not running yet.
    pub fn new(parts: MonitorParts) -> Self {
        let MonitorParts { store, depot, clock, source, node, poll } = parts;
        let reader = PageReader::new(store.clone(), depot, clock.clone());
        // One tenant may have all of them as long as no other waits.
        let context = WatchContext {
            store,
            clock,
            source,
            reader,
            slots: TenantSlots::new(SESSIONS_MAX, SESSIONS_MAX),
        };
        Self {
            context: Arc::new(context),
            node,
            poll,
            watches: HashMap::new(),
            tasks: JoinSet::new(),
            read: None,
            metrics_touched_at: None,
        }
    }

    /// Works until it is stopped.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut is_well = true;
        while !stop.is_cancelled() {
            let polled = self.poll_mailboxes().await;
            match &polled {
                // Logged once, not at each try. Watches go on meanwhile: the cursor is the fence.
                Err(error) if is_well => tracing::warn!(%error, "the list of mailboxes could not be read"),
                Ok(()) | Err(_) => {}
            }
            is_well = polled.is_ok();
            while let Some(ended) = self.tasks.try_join_next() {
                if let Err(error) = ended {
                    tracing::error!(%error, "watching a mailbox broke off");
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(self.poll) => {}
            }
        }
        self.end_all().await;
    }

    async fn poll_mailboxes(&mut self) -> Result<(), StoreError> {
        if !self.node.is_on_duty().await? {
            if !self.watches.is_empty() {
                tracing::info!("another node watches the mailboxes now");
                self.end_all().await;
            }
            self.read = None;
            return Ok(());
        }
        if self.metrics_touched_at.is_none_or(|at| at.elapsed() >= TOUCH_METRICS_EVERY) {
            self.watches.keys().for_each(mailbox_metrics::touch);
            self.metrics_touched_at = Some(Instant::now());
        }
        let generation = self.context.store.generation();
        let is_fresh = |(at, when): (u64, Instant)| at == generation && when.elapsed() < LIST_EVERY;
        if self.read.is_some_and(is_fresh) {
            return Ok(());
        }
        let mailboxes = self.context.store.mailboxes(None).await?;
        self.read = Some((generation, Instant::now()));
        self.reconcile(
            mailboxes
                .into_iter()
                .filter(|mailbox| mailbox.settings.active && !mailbox.settings.is_received())
                .collect(),
        );
        Ok(())
    }

    /// Ends the watches of mailboxes that were deleted or changed, and begins missing ones.
    fn reconcile(&mut self, mailboxes: Vec<WatchedMailbox>) {
        let wanted: HashMap<MailboxKey, WatchedMailbox> = mailboxes
            .into_iter()
            .map(|mailbox| {
                (MailboxKey { tenant: mailbox.tenant.clone(), mailbox: mailbox.id.clone() }, mailbox)
            })
            .collect();
        self.watches.retain(|key, running| {
            let stays = wanted.get(key).is_some_and(|mailbox| mailbox.version == running.version);
            if !stays {
                running.stop.cancel();
            }
            stays
        });
        for (key, mailbox) in wanted {
            if self.watches.contains_key(&key) {
                continue;
            }
            let (version, stop) = (mailbox.version, CancellationToken::new());
            let watch = MailboxWatch::new(self.context.clone(), mailbox);
            self.tasks.spawn(watch.run(stop.clone()));
            self.watches.insert(key, RunningMailboxWatch { version, stop });
        }
    }

    async fn end_all(&mut self) {
        self.watches.drain().for_each(|(_, running)| running.stop.cancel());
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(STOP_WITHIN, ending).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}
