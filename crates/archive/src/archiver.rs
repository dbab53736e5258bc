//! The loop: which archives wait, a share of copies for each, and what came of them.
//!
//! One node has the duty. Should two believe so, both may make the same copy, which is the same object or the
//! same message. Storage that is away ends a tenant's turn, and what was leased and not begun is given back
//! without a try, for half a minute; a copy that is refused waits alone.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Clock, Incarnation, LeaseToken, Subscriber, TenantId, secret::SecretKey};
use postway_intake::Door;
use postway_store::{
    Store, StoreError,
    blob::BlobStorage,
    record::{
        ArchiveBacklog, DueSubscriber, LeaseGrant, NotificationCall, NotificationResult, NotificationState,
        ReportRequest, ToNotify,
    },
    until_durable,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    expiry::delete_expired,
    making::{CopyContext, CopyEnd, CopyFailure, next_try},
};

/// Copies made at the same time: each has a mail in memory, up to three times.
const COPIES_AT_ONCE: usize = 4;
/// Copies leased for one tenant in its turn.
const PER_TURN: u32 = 32;
/// Tenants served in one round.
const TENANTS_PER_ROUND: usize = 16;
/// The longest that making one copy may take.
const COPY_MAX: Duration = Duration::from_secs(90);
/// The lease of a turn: longer than all its copies may take.
const LEASE: Duration = Duration::from_secs(15 * 60);
/// How long a tenant's other copies wait while the storage is away.
const AWAY: Duration = Duration::from_secs(30);
/// How often expired copies are looked for.
const EXPIRY_EVERY: Duration = Duration::from_secs(600);
/// The longest reason that is stored, in characters.
const REASON_CHARS_MAX: usize = 500;

/// This process as a node of its database.
#[async_trait]
pub trait ArchiveNode: Send + Sync {
    /// Whether this node has the duty now.
    async fn is_on_duty(&self) -> Result<bool, StoreError>;
}

/// The dependencies of the archiver.
pub struct ArchiverParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where large bodies are, and copies go.
    pub depot: Arc<BlobStorage>,
    /// Takes copies that go to an address.
    pub door: Arc<Door>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Seals copies, and marks them.
    pub secret_key: Arc<SecretKey>,
    /// This process as a node of its database.
    pub node: Arc<dyn ArchiveNode>,
    /// This incarnation of the process.
    pub incarnation: Incarnation,
    /// How often to look for work: [`ArchiverParts::POLL`].
    pub poll: Duration,
}

impl ArchiverParts {
    /// How often to look for work.
    pub const POLL: Duration = Duration::from_secs(2);
}

/// Makes the copies of all tenants.
pub struct Archiver {
    context: Arc<CopyContext>,
    node: Arc<dyn ArchiveNode>,
    incarnation: Incarnation,
    poll: Duration,
    /// The tenant that was served last.
    after: Option<TenantId>,
    expiry_at: Instant,
}

impl Archiver {
    /// Creates an archiver that is not running yet.
    pub fn new(parts: ArchiverParts) -> Self {
        let ArchiverParts { store, depot, door, clock, secret_key, node, incarnation, poll } = parts;
        let context = Arc::new(CopyContext { store, depot, door, clock, secret_key });
        Self { context, node, incarnation, poll, after: None, expiry_at: Instant::now() }
    }

    /// Runs until the stop.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let wait = match self.round(&stop).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => self.poll,
                Err(error) => {
                    tracing::warn!(%error, "archives could not be served; they are tried again");
                    self.poll * 5
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(wait) => {}
            }
        }
    }

    /// Serves each archive that waits once; whether there may be more to do at once.
    async fn round(&mut self, stop: &CancellationToken) -> Result<bool, StoreError> {
        if !self.node.is_on_duty().await? {
            return Ok(false);
        }
        let store = &self.context.store;
        if Instant::now() >= self.expiry_at {
            let more = delete_expired(&**store, &self.context.depot, self.context.clock.now()).await?;
            self.expiry_at = Instant::now() + if more { Duration::ZERO } else { EXPIRY_EVERY };
        }
        let backlog = store.archive_backlog(None).await?;
        for ArchiveBacklog { tenant, waiting, .. } in &backlog {
            metrics::gauge!("postway_archive_waiting", "tenant" => tenant.to_string()).set(*waiting as f64);
        }
        let mut waiting: Vec<TenantId> =
            backlog.into_iter().filter(|one| one.waiting > 0).map(|one| one.tenant).collect();
        // The next one after the last that was served is first.
        let begin = self.after.as_ref().map_or(0, |after| waiting.partition_point(|of| of <= after));
        let count = waiting.len().max(1);
        waiting.rotate_left(begin % count);
        let mut is_busy = waiting.len() > TENANTS_PER_ROUND;
        for tenant in waiting.into_iter().take(TENANTS_PER_ROUND) {
            if stop.is_cancelled() {
                return Ok(false);
            }
            self.after = Some(tenant.clone());
            is_busy |= self.serve(tenant, stop).await? == PER_TURN;
        }
        Ok(is_busy)
    }

    /// Makes some of a tenant's copies; how many were due.
    async fn serve(&self, tenant: TenantId, stop: &CancellationToken) -> Result<u32, StoreError> {
        let now = self.context.clock.now();
        let lease = LeaseGrant {
            incarnation: self.incarnation,
            token: LeaseToken::new(&mut rand::rng()),
            until: now.plus(LEASE),
        };
        let Ok(subscriber) = Subscriber::ARCHIVE.parse() else { return Ok(0) };
        let wants = vec![(DueSubscriber { tenant: tenant.clone(), subscriber }, PER_TURN)];
        let due = self.context.store.claim_notifications(ReportRequest { lease, now, wants }).await?;
        let count = u32::try_from(due.len()).unwrap_or(PER_TURN);
        let mut left = due.into_iter();
        let mut making: JoinSet<(ToNotify, NotificationResult, bool)> = JoinSet::new();
        let mut results = Vec::new();
        let mut is_away = false;
        loop {
            while making.len() < COPIES_AT_ONCE && !is_away && !stop.is_cancelled() {
                let Some(due) = left.next() else { break };
                making.spawn(make_one(self.context.clone(), due, lease.token));
            }
            let Some(made) = making.join_next().await else { break };
            let Ok((due, result, failed_away)) = made else {
                tracing::error!(%tenant, "making a copy broke off; its lease is reclaimed later");
                continue;
            };
            is_away |= failed_away;
            let what = match result.state {
                NotificationState::Acknowledged => "made",
                _ => "failed",
            };
            metrics::counter!("postway_archive_copies_total", "tenant" => tenant.to_string(), "result" => what)
                .increment(1);
            tracing::debug!(uid = %due.key.uid, %tenant, what, "a copy for the archive");
            results.push(result);
        }
        // What was not begun is given back without a try.
        let now = self.context.clock.now();
        results.extend(left.map(|due| NotificationResult {
            key: due.key,
            token: lease.token,
            at: now,
            state: NotificationState::Pending,
            due_at: Some(if is_away { now.plus(AWAY) } else { now }),
            call: None,
            tells_history: false,
        }));
        if !results.is_empty() {
            let settle = || self.context.store.settle_notifications(results.clone());
            until_durable("copies for an archive", stop.cancelled(), settle).await?;
        }
        Ok(if is_away { 0 } else { count })
    }
}

/// Makes one copy; the result to write, and whether the storage is away.
async fn make_one(
    context: Arc<CopyContext>,
    due: ToNotify,
    token: LeaseToken,
) -> (ToNotify, NotificationResult, bool) {
    let (began, at) = (Instant::now(), context.clock.now());
    let made = timeout(COPY_MAX, context.make(&due)).await;
    let made = made.unwrap_or_else(|_| Err(CopyFailure::Away("it took too long".to_owned())));
    let is_away = matches!(made, Err(CopyFailure::Away(_)));
    let (state, request, answer) = match made {
        Ok(CopyEnd::Made(place)) => (NotificationState::Acknowledged, place, "archived".to_owned()),
        Ok(CopyEnd::None(why)) => (NotificationState::Acknowledged, String::new(), why.to_owned()),
        Err(failure) => {
            let (tenant, uid) = (&due.key.tenant, due.key.uid);
            // The reason is stored with the copy, because it may name a person.
            tracing::warn!(%tenant, %uid, tries = due.tries, "a copy for the archive could not be made");
            (NotificationState::Waiting, String::new(), failure.to_string())
        }
    };
    let now = context.clock.now();
    let call = NotificationCall {
        at,
        latency_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
        status: None,
        request,
        answer: answer.chars().take(REASON_CHARS_MAX).collect(),
    };
    let due_at = (state == NotificationState::Waiting).then(|| next_try(due.tries, now));
    let key = due.key.clone();
    let result =
        NotificationResult { key, token, at: now, state, due_at, call: Some(call), tells_history: false };
    (due, result, is_away)
}
