//! The preparer: completes messages whose files must be fetched before they can be composed.
//!
//! It is a loop on the store, as in every subsystem: it claims messages that are `accepted` (or whose next
//! try is due), fetches their files, composes them and writes them back as `ready`, `invalid`, or `scheduled`
//! for another try. Each tenant has only a few slots, so a slow source delays no other tenant. After a crash
//! the leases expire and other nodes reclaim the messages; the fence refuses a write that comes too late.

mod message;
mod outcome;

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use postway_domain::{Incarnation, LeaseToken, MessageStatus, MessageUid, TenantId};
use postway_store::{
    StoreError,
    record::{LeaseGrant, MessageChange, PrepareRequest, ToPrepare},
};
use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{accept::door::Door, accept::store::state_metrics::count_entered, budget::FairShare};
use message::prepare_one;
pub use outcome::FETCH_DELAY_MAX;
use outcome::PreparationOutcome;

/// How often the queue is polled.
const POLL: Duration = Duration::from_secs(1);
/// The shortest lease; a lease lasts at least twice as long as all files of a message may take.
const LEASE_MIN: Duration = Duration::from_secs(10 * 60);
/// A preparation must end this long before its lease does.
const LEASE_MARGIN: Duration = Duration::from_secs(30);
/// The first wait when the store does not answer; it doubles up to [`WAIT_MAX`].
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The messages that are being prepared in this process.
#[derive(Clone, Debug, Default)]
pub struct MessagesInPreparation(Arc<Mutex<HashSet<MessageUid>>>);

impl MessagesInPreparation {
    /// Whether this message is being prepared.
    pub fn holds(&self, uid: MessageUid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&uid)
    }

    fn take(&self, uid: MessageUid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid);
    }

    fn release(&self, uid: MessageUid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
    }
}

/// Prepares messages. There is one for the process.
pub struct MessagePreparer {
    door: Arc<Door>,
    incarnation: Incarnation,
    preparing: MessagesInPreparation,
    tasks_by_id: HashMap<task::Id, (TenantId, MessageUid)>,
    tasks: JoinSet<()>,
}

impl MessagePreparer {
    /// A preparer that uses this door.
    pub fn new(door: Arc<Door>, incarnation: Incarnation) -> Self {
        Self {
            door,
            incarnation,
            preparing: MessagesInPreparation::default(),
            tasks_by_id: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// A live view of the messages that are being prepared.
    pub fn preparing(&self) -> MessagesInPreparation {
        self.preparing.clone()
    }

    /// Runs until it is stopped, then gives back unfinished messages.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut poll_at = Instant::now();
        while !stop.is_cancelled() {
            if Instant::now() >= poll_at {
                poll_at = self.claim_due(&stop).await;
            }
            let store = Arc::clone(&self.door.store);
            tokio::select! {
                () = stop.cancelled() => {}
                () = store.preparation_woken() => poll_at = Instant::now(),
                Some(done) = self.tasks.join_next_with_id() => {
                    self.release(done);
                    poll_at = Instant::now();
                }
                () = tokio::time::sleep_until(poll_at) => {}
            }
        }
        while let Some(done) = self.tasks.join_next_with_id().await {
            self.release(done);
        }
    }

    fn release(&mut self, done: Result<(task::Id, ()), JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a preparation broke off; its message is taken back later");
                error.id()
            }
        };
        if let Some((_, uid)) = self.tasks_by_id.remove(&id) {
            self.preparing.release(uid);
        }
    }

    fn lease(&self) -> Duration {
        LEASE_MIN.max(self.door.fetcher.message_timeout() * 2)
    }

    /// Claims as many messages as there are free slots; returns when to poll again.
    async fn claim_due(&mut self, stop: &CancellationToken) -> Instant {
        let polled_at = Instant::now();
        let now = self.door.clock.now();
        let state = match self.door.store.preparation_state(now).await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(%error, "messages to prepare could not be read");
                return polled_at + POLL;
            }
        };
        let (wants, mut slots) = self.wants(state.due);
        if !wants.is_empty() {
            let token = LeaseToken::new(&mut rand::rng());
            let lease = LeaseGrant { incarnation: self.incarnation, token, until: now.plus(self.lease()) };
            match self.door.store.claim_preparation(PrepareRequest { lease, now, wants }).await {
                Ok(claimed) => {
                    for job in claimed {
                        let slot = slots.get_mut(&job.lane.tenant).map(|slots| slots.split(1));
                        self.start(job, slot, stop);
                    }
                }
                Err(error) => tracing::warn!(%error, "messages to prepare could not be claimed"),
            }
        }
        let next = state.next_due_at.map_or(POLL, |due| due.since(now));
        polled_at + next.clamp(Duration::from_millis(10), POLL)
    }

    /// Divides the free slots equally among the tenants that have work and slots left; those with the most
    /// slots left come first. The slots are taken before the messages are claimed, so that no dry run takes
    /// them in between.
    fn wants(&self, due: Vec<TenantId>) -> (Vec<(TenantId, u32)>, HashMap<TenantId, FairShare>) {
        let all = &self.door.fetch_slots.all;
        let mut free = usize::MAX;
        let mut due: Vec<(usize, TenantId)> = due
            .into_iter()
            .filter_map(|tenant| {
                let (left, own) = all.left(&tenant);
                free = left;
                (own > 0).then_some((own, tenant))
            })
            .collect();
        due.sort_by_key(|(own, _)| Reverse(*own));
        due.truncate(free);
        let (mut wants, mut slots) = (Vec::with_capacity(due.len()), HashMap::new());
        let count = due.len();
        for (index, (own, tenant)) in due.into_iter().enumerate() {
            // The slots that others just took leave fewer for this tenant.
            let share = free.div_ceil(count - index).min(own).min(all.left(&tenant).1);
            if share > 0
                && let Some(slot) = all.take(&tenant, share)
            {
                free -= share;
                wants.push((tenant.clone(), share as u32));
                slots.insert(tenant, slot);
            }
        }
        (wants, slots)
    }

    fn start(&mut self, job: ToPrepare, slot: Option<FairShare>, stop: &CancellationToken) {
        self.preparing.take(job.uid);
        let in_progress = (job.lane.tenant.clone(), job.uid);
        let (door, stop) = (Arc::clone(&self.door), stop.clone());
        let within = self.lease().saturating_sub(LEASE_MARGIN);
        let started = Instant::now();
        count_entered(MessageStatus::Validating, 1);
        let task = self.tasks.spawn(async move {
            let prepared = timeout(within, AssertUnwindSafe(prepare_one(&door, &job)).catch_unwind());
            let outcome = tokio::select! {
                prepared = prepared => match prepared {
                    Ok(Ok(outcome)) => outcome,
                    Ok(Err(_)) => {
                        tracing::error!(uid = %job.uid, "preparing a message panicked; the message is refused");
                        PreparationOutcome::poison()
                    }
                    Err(_) => PreparationOutcome::Unavailable(StoreError::Unavailable("it took too long".to_owned())),
                },
                () = stop.cancelled() => PreparationOutcome::GivenBack,
            };
            let change = outcome.into_change(&job, door.clock.now());
            write_outcome(&door, &job, change, started, &stop).await;
            drop(slot);
        });
        self.tasks_by_id.insert(task.id(), in_progress);
    }
}

/// Logs one line and counts the metrics of a preparation. Never logs an address.
fn log_outcome(job: &ToPrepare, change: &MessageChange, started: Instant) {
    let status = change.to.status();
    count_entered(status, 1);
    tracing::info!(
        uid = %job.uid,
        request_id = job.request_id,
        tenant = %job.lane.tenant,
        attempt = 0,
        state = status.as_str(),
        duration_ms = started.elapsed().as_millis() as u64,
        "prepared"
    );
}

/// Writes the outcome, trying again while the store does not answer. Once stopped, it tries once more; other
/// nodes reclaim what could not be written.
async fn write_outcome(
    door: &Door,
    job: &ToPrepare,
    change: MessageChange,
    started: Instant,
    stop: &CancellationToken,
) {
    let mut wait = WAIT_FIRST;
    loop {
        let last = stop.is_cancelled();
        match door.store.apply(vec![change.clone()]).await {
            Ok(applied) => {
                if applied == [true] {
                    log_outcome(job, &change, started);
                } else {
                    tracing::info!(uid = %change.uid, "a preparation came too late and was refused");
                }
                return;
            }
            Err(error) => tracing::warn!(uid = %change.uid, %error, "a preparation could not be stored yet"),
        }
        if last {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(WAIT_MAX);
    }
}
