//! The monitor: one node at a time watches all mailboxes for all nodes.
//!
//! It keeps one task for each active mailbox, begins new ones and ends others as mailboxes are made, changed and removed,
//! and ends all of them when the duty goes to another node. For a moment two nodes may read the same mailbox; the cursor is
//! the fence, and each mail is registered once.
//!
//! Promises: a mail is registered before the cursor passes it, in one transaction with it; no mailbox delays another; memory
//! and sessions are bounded whatever servers do, and no tenant keeps another from its sessions: whoever waits for one gets it from who
//! has most, within a bound of time.

mod backoff;
mod bounded_folder;
mod page_reader;
mod start_position;
mod watch;

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Clock, WatchedMailbox};
use postway_store::{Store, StoreError, blob::Depot, record::MailboxKey};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
pub(crate) use self::page_reader::sha256;
use self::{
    page_reader::Reader,
    watch::{Means, Watch},
};
use crate::{mailbox_metrics, source::Source, tenant_slots::TenantSeats};

/// Sessions open at the same time.
const SESSIONS_MAX: usize = 200;
/// How often the list of mailboxes is read where nothing changed through this process.
const LIST_EVERY: Duration = Duration::from_secs(3);
/// How often the metrics of watched mailboxes are kept from going.
const KEEP_EVERY: Duration = Duration::from_secs(5 * 60);
/// How long watches may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// This process among the nodes of its database.
#[async_trait]
pub trait Node: Send + Sync {
    /// Whether this process watches the mailboxes for all.
    async fn is_on_duty(&self) -> Result<bool, StoreError>;
}

/// What the monitor works with.
pub struct MonitorParts {
    /// Where mail goes.
    pub store: Arc<dyn Store>,
    /// Where large mail goes.
    pub depot: Arc<Depot>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where mail comes from.
    pub source: Arc<dyn Source>,
    /// This process among the others.
    pub node: Arc<dyn Node>,
    /// How often duty and changes are looked for: [`MonitorParts::POLL`].
    pub poll: Duration,
}

impl MonitorParts {
    /// How often to look.
    pub const POLL: Duration = Duration::from_secs(1);
}

/// See the module. One for the whole process.
pub struct Monitor {
    means: Arc<Means>,
    node: Arc<dyn Node>,
    poll: Duration,
    watches: HashMap<MailboxKey, Running>,
    tasks: JoinSet<()>,
    /// The generation of the directory that was last read, and when.
    read: Option<(u64, Instant)>,
    /// When the metrics of all watched mailboxes were last kept.
    kept: Option<Instant>,
}

struct Running {
    version: i64,
    stop: CancellationToken,
}

impl Monitor {
    /// A monitor at rest.
    pub fn new(parts: MonitorParts) -> Self {
        let MonitorParts { store, depot, clock, source, node, poll } = parts;
        let reader = Reader::new(store.clone(), depot, clock.clone());
        // One tenant may have all of them as long as nobody else waits.
        let means =
            Means { store, clock, source, reader, seats: TenantSeats::new(SESSIONS_MAX, SESSIONS_MAX) };
        Self {
            means: Arc::new(means),
            node,
            poll,
            watches: HashMap::new(),
            tasks: JoinSet::new(),
            read: None,
            kept: None,
        }
    }

    /// Works until it is stopped.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut is_well = true;
        while !stop.is_cancelled() {
            let looked = self.look().await;
            match &looked {
                // Told once, not at each try. Watches go on meanwhile: the cursor is the fence.
                Err(error) if is_well => tracing::warn!(%error, "the list of mailboxes could not be read"),
                Ok(()) | Err(_) => {}
            }
            is_well = looked.is_ok();
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

    async fn look(&mut self) -> Result<(), StoreError> {
        if !self.node.is_on_duty().await? {
            if !self.watches.is_empty() {
                tracing::info!("another node watches the mailboxes now");
                self.end_all().await;
            }
            self.read = None;
            return Ok(());
        }
        if self.kept.is_none_or(|kept| kept.elapsed() >= KEEP_EVERY) {
            self.watches.keys().for_each(mailbox_metrics::keep);
            self.kept = Some(Instant::now());
        }
        let generation = self.means.store.generation();
        let is_fresh = |(at, when): (u64, Instant)| at == generation && when.elapsed() < LIST_EVERY;
        if self.read.is_some_and(is_fresh) {
            return Ok(());
        }
        let mailboxes = self.means.store.mailboxes(None).await?;
        self.read = Some((generation, Instant::now()));
        self.reconcile(mailboxes.into_iter().filter(|mailbox| mailbox.settings.active).collect());
        Ok(())
    }

    /// Ends watches of mailboxes that are gone or changed, and begins those that are missing.
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
            let watch = Watch::new(self.means.clone(), mailbox);
            self.tasks.spawn(watch.run(stop.clone()));
            self.watches.insert(key, Running { version, stop });
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
