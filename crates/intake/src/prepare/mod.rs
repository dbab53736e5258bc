//! Preparing: messages that need something from elsewhere get it here, and are composed.
//!
//! A loop on the store like every room: it claims messages that are `accepted` (or whose next try is due), fetches their
//! files, composes them and writes them back as `ready`, `invalid`, or `scheduled` for another try. Each tenant has its own
//! few places, so one whose source is slow delays nobody else. A crash leaves a lease that others take back; a late
//! preparer's write is refused by the fence.

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
use postway_domain::{Incarnation, LeaseToken, MessageUid, Status, TenantId};
use postway_store::{
    StoreError,
    record::{Change, Lease, PrepareRequest, ToPrepare},
};
use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{accept::door::Door, accept::store::state_metrics::count_entered, budget::FairShare};
use message::prepare_one;
pub use outcome::FETCH_DELAY_MAX;
use outcome::Outcome;

/// How often the queue is polled.
const POLL: Duration = Duration::from_secs(1);
/// How long a lease lasts at least; it is twice as long as all files of a message may take.
const LEASE_MIN: Duration = Duration::from_secs(10 * 60);
/// By so much a preparation ends before its lease does.
const LEASE_MARGIN: Duration = Duration::from_secs(30);
/// The first wait when the store does not answer; doubles up to the last.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Which messages are being prepared in this process.
#[derive(Clone, Debug, Default)]
pub struct Preparing(Arc<Mutex<HashSet<MessageUid>>>);

impl Preparing {
    /// Whether this one is.
    pub fn holds(&self, uid: MessageUid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&uid)
    }

    fn take(&self, uid: MessageUid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid);
    }

    fn put_down(&self, uid: MessageUid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
    }
}

/// The room. One for the whole process.
pub struct Preparer {
    door: Arc<Door>,
    incarnation: Incarnation,
    preparing: Preparing,
    in_hand: HashMap<task::Id, (TenantId, MessageUid)>,
    tasks: JoinSet<()>,
}

impl Preparer {
    /// A preparer that works through this door.
    pub fn new(door: Arc<Door>, incarnation: Incarnation) -> Self {
        Self {
            door,
            incarnation,
            preparing: Preparing::default(),
            in_hand: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// What it has in hand, as it goes.
    pub fn preparing(&self) -> Preparing {
        self.preparing.clone()
    }

    /// Works until it is stopped, then gives back what it has not finished.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut poll_at = Instant::now();
        while !stop.is_cancelled() {
            if Instant::now() >= poll_at {
                poll_at = self.round(&stop).await;
            }
            let store = Arc::clone(&self.door.store);
            tokio::select! {
                () = stop.cancelled() => {}
                () = store.preparation_woken() => poll_at = Instant::now(),
                Some(done) = self.tasks.join_next_with_id() => {
                    self.put_down(done);
                    poll_at = Instant::now();
                }
                () = tokio::time::sleep_until(poll_at) => {}
            }
        }
        while let Some(done) = self.tasks.join_next_with_id().await {
            self.put_down(done);
        }
    }

    fn put_down(&mut self, done: Result<(task::Id, ()), JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a preparation broke off; its message is taken back later");
                error.id()
            }
        };
        if let Some((_, uid)) = self.in_hand.remove(&id) {
            self.preparing.put_down(uid);
        }
    }

    fn lease(&self) -> Duration {
        LEASE_MIN.max(self.door.fetcher.message_timeout() * 2)
    }

    /// Claims what there is room for; returns when to look again.
    async fn round(&mut self, stop: &CancellationToken) -> Instant {
        let looked_at = Instant::now();
        let now = self.door.clock.now();
        let state = match self.door.store.preparation_state(now).await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(%error, "messages to prepare could not be read");
                return looked_at + POLL;
            }
        };
        let (wants, mut places) = self.wants(state.due);
        if !wants.is_empty() {
            let token = LeaseToken::new(&mut rand::rng());
            let lease = Lease { incarnation: self.incarnation, token, until: now.plus(self.lease()) };
            match self.door.store.claim_preparation(PrepareRequest { lease, now, wants }).await {
                Ok(claimed) => {
                    for job in claimed {
                        let place = places.get_mut(&job.lane.tenant).map(|places| places.split(1));
                        self.start(job, place, stop);
                    }
                }
                Err(error) => tracing::warn!(%error, "messages to prepare could not be claimed"),
            }
        }
        let next = state.next_due_at.map_or(POLL, |due| due.since(now));
        looked_at + next.clamp(Duration::from_millis(10), POLL)
    }

    /// An equal share of what is free for each tenant that has work and places left; those with the least in hand first.
    /// The places are taken before the work is, so that no dry run takes them in between.
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
        let (mut wants, mut places) = (Vec::with_capacity(due.len()), HashMap::new());
        let count = due.len();
        for (index, (own, tenant)) in due.into_iter().enumerate() {
            // What others took just now leaves less for this one.
            let share = free.div_ceil(count - index).min(own).min(all.left(&tenant).1);
            if share > 0
                && let Some(place) = all.take(&tenant, share)
            {
                free -= share;
                wants.push((tenant.clone(), share as u32));
                places.insert(tenant, place);
            }
        }
        (wants, places)
    }

    fn start(&mut self, job: ToPrepare, place: Option<FairShare>, stop: &CancellationToken) {
        self.preparing.take(job.uid);
        let held = (job.lane.tenant.clone(), job.uid);
        let (door, stop) = (Arc::clone(&self.door), stop.clone());
        let within = self.lease().saturating_sub(LEASE_MARGIN);
        let started = Instant::now();
        count_entered(Status::Validating, 1);
        let task = self.tasks.spawn(async move {
            let prepared = timeout(within, AssertUnwindSafe(prepare_one(&door, &job)).catch_unwind());
            let outcome = tokio::select! {
                prepared = prepared => match prepared {
                    Ok(Ok(outcome)) => outcome,
                    Ok(Err(_)) => {
                        tracing::error!(uid = %job.uid, "preparing a message panicked; the message is refused");
                        Outcome::poison()
                    }
                    Err(_) => Outcome::Unavailable(StoreError::Unavailable("it took too long".to_owned())),
                },
                () = stop.cancelled() => Outcome::GivenBack,
            };
            let change = outcome.into_change(&job, door.clock.now());
            write(&door, &job, change, started, &stop).await;
            drop(place);
        });
        self.in_hand.insert(task.id(), held);
    }
}

/// One line and the metrics of a preparation. Never an address.
fn report(job: &ToPrepare, change: &Change, started: Instant) {
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

/// Writes what came of it, trying again while the store is away. Once stopped it tries once more: others take back what
/// could not be written.
async fn write(door: &Door, job: &ToPrepare, change: Change, started: Instant, stop: &CancellationToken) {
    let mut wait = WAIT_FIRST;
    loop {
        let last = stop.is_cancelled();
        match door.store.apply(vec![change.clone()]).await {
            Ok(held) => {
                if held == [true] {
                    report(job, &change, started);
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
