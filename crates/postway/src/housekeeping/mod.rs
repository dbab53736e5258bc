//! Housekeeping: reclaims lost leases, expires messages, applies retention, and updates gauges.
//!
//! Each job is a read, a decision by the domain's state table, and one fenced write; a crash in between
//! leaves the work for the next round. Jobs run concurrently: a takeover never waits for a cleanup.

mod bulk_actions;
mod cleanup;
mod clock_rollback;
mod disk_space;
mod duty_pace;
mod lanes;
mod retention;
mod stream_gauges;
mod text_blocks;
mod verdict;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use postway_dispatch::InFlightMessages;
use postway_domain::{
    Clock, Incarnation, MessageState, MessageStatus, MessageUid, Time, retry::RetryPolicy, secret::SecretKey,
};
use postway_intake::{FETCH_DELAY_MAX, MessagesInPreparation};
use postway_store::{
    Store, StoreError,
    blob::BlobStorage,
    record::{AccountKey, ChangeResult, DirectoryChange, MessageChange, StalledMessage},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    clock_rollback::RollbackDetector,
    disk_space::DiskSpaceWatch,
    duty_pace::DutyPace,
    retention::{RetentionRound, RetentionRounds},
    verdict::{expiry_change, lost_lease_change},
};
use crate::{cluster::membership::ClusterMembership, config};

/// How often a job runs by default.
const EVERY: Duration = Duration::from_secs(1);
/// Messages in one round; a full round is followed by another at once.
const ROUND_MESSAGES: u32 = 500;
/// How long one round of retention may take. It rests for half of that.
const RETAIN_MAX: Duration = Duration::from_secs(1);
/// The wait before the next round while there is more to remove.
const RETAIN_AGAIN: Duration = Duration::from_millis(20);
/// How often a node searches for leases of its own that its subsystems do not know.
const STRAYS_EVERY: Duration = Duration::from_secs(10);
/// How often the database is asked whether it makes commits durable.
const DURABILITY_EVERY: Duration = Duration::from_secs(60);
/// How long a lease of a living node must have been seen past its expiry, by this node's monotonic clock.
/// That is as long as a lease lasts, so it has expired even if the time of day was set meanwhile.
const OUTSTAYED_FOR: Duration = Duration::from_secs(10 * 60);
/// Gauges cost by the lanes in which mail waits. At most 1/MEASURE_SHARE of the time is spent on them, but
/// they are refreshed at least every MEASURE_AFTER.
const MEASURE_SHARE: u32 = 20;
const MEASURE_AFTER: Duration = Duration::from_secs(30);
/// After the clock was set back: how many accounts one transaction searches for mail that is due too late.
const PULLED_ACCOUNTS: usize = 100;
/// After the clock was set back: how many slices of ready mail one round makes due.
const SLICES_MAX: u32 = 20;

/// The jobs of housekeeping, and what they work on.
pub struct HousekeepingDuties {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The storage of large bodies.
    pub depot: Arc<BlobStorage>,
    /// Derives the key of the digests by which recipients of removed messages are recognised.
    pub secret_key: Arc<SecretKey>,
    /// How long data that belongs to no tenant is retained.
    pub retention: config::RetentionSection,
    /// This node among the others.
    pub membership: Arc<ClusterMembership>,
}

/// The duty of reclaiming and expiring, which one node at a time has.
const DUTY: &str = "housekeeping";

impl HousekeepingDuties {
    /// Runs until cancelled. `in_hand` and `preparing` say which messages the other subsystems of this
    /// process work on. Each job has its own interval, and none waits for another: one that fails, or takes
    /// long, is tried again and delays nothing else.
    pub async fn run(
        self,
        in_hand: InFlightMessages,
        preparing: MessagesInPreparation,
        stop: CancellationToken,
    ) {
        let pace = &DutyPace { stop, has_duty: AtomicBool::new(false) };
        tokio::join!(
            self.keep_taking_over(pace),
            self.keep_looking_for_strays(pace, StrayLeases { in_hand, preparing, met: HashMap::new() }),
            self.keep_following_the_clock(pace),
            self.keep_measuring(pace),
            self.keep_measuring_streams(pace),
            self.keep_expiring(pace),
            self.keep_bulk_actions(pace),
            self.keep_text_blocks(pace),
            self.keep_reclaiming_inbound(pace),
            self.keep_timing_out_receipts(pace),
            self.keep_cleaning_up(pace),
            self.keep_retention(pace),
            self.keep_mail_in_its_lanes(pace),
            self.keep_retiring_lanes(pace),
            self.keep_space(pace),
            self.keep_reviewing_durability(pace),
        );
    }

    async fn keep_taking_over(&self, pace: &DutyPace) {
        let mut overdue = OverdueLeases::new();
        while pace.is_running() {
            let done = self.take_over(pace, &mut overdue).await;
            pace.wait_after("takeover", done.map(|()| EVERY)).await;
        }
    }

    async fn keep_looking_for_strays(&self, pace: &DutyPace, mut strays: StrayLeases) {
        while pace.is_running() {
            let done = self.reclaim_strays(&mut strays).await;
            pace.wait_after("strays", done.map(|()| STRAYS_EVERY)).await;
        }
    }

    async fn keep_following_the_clock(&self, pace: &DutyPace) {
        let mut steps = RollbackDetector::new(self.clock.now(), Instant::now());
        // The clock may have been set back while no node was running.
        let mut pulls = PendingPulls { ready: false, beyond: true };
        while pace.is_running() {
            pace.wait_after("clock", self.follow_clock(&mut steps, &mut pulls).await).await;
        }
    }

    async fn keep_measuring(&self, pace: &DutyPace) {
        while pace.is_running() {
            pace.wait_after("measuring", self.measure().await).await;
        }
    }

    async fn keep_expiring(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            pace.wait_after("expiry", self.expire().await).await;
        }
    }

    async fn keep_reclaiming_inbound(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            pace.wait_after("inbound leases", self.reclaim_inbound().await).await;
        }
    }

    async fn keep_timing_out_receipts(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            pace.wait_after("receipts", self.time_out_receipts().await).await;
        }
    }

    async fn keep_cleaning_up(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            let cleaned = cleanup::clean_up(&*self.store, &self.depot, self.clock.now()).await;
            pace.wait_after("sweeping", cleaned.map(|()| cleanup::EVERY)).await;
        }
    }

    async fn keep_retention(&self, pace: &DutyPace) {
        let mut retention = RetentionRounds::new(self.secret_key.clone(), self.retention.clone());
        while pace.wait_for_duty().await {
            pace.wait_after("retention", self.retain(&mut retention).await).await;
        }
    }

    async fn keep_mail_in_its_lanes(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            pace.wait_after("moving mail to its lanes", self.move_misplaced().await).await;
        }
    }

    async fn keep_retiring_lanes(&self, pace: &DutyPace) {
        while pace.wait_for_duty().await {
            pace.wait_after("retiring lanes", self.retire_lanes().await).await;
        }
    }

    async fn keep_space(&self, pace: &DutyPace) {
        let mut watch = DiskSpaceWatch::default();
        while pace.is_running() {
            pace.wait_after("space", watch.look(&*self.store).await).await;
        }
    }

    /// Another database server may have taken over since, and settings may have been changed.
    async fn keep_reviewing_durability(&self, pace: &DutyPace) {
        while pace.is_running() {
            let reviewed = self.store.review_durability().await;
            pace.wait_after("durability", reviewed.map(|()| DURABILITY_EVERY)).await;
        }
    }

    /// Takes over the work of dead nodes, and leases that outlasted their time, if this node has the duty.
    async fn take_over(&self, pace: &DutyPace, outstayed: &mut OverdueLeases) -> Result<(), StoreError> {
        let on_duty = self.membership.roster().is_calm() && self.membership.has_duty(DUTY).await?;
        pace.has_duty.store(on_duty, Ordering::Relaxed);
        if !on_duty {
            return Ok(());
        }
        self.reclaim().await?;
        self.membership.strike_dead().await?;
        self.reclaim_outstayed(outstayed).await
    }

    /// Removes messages that ended and were reported, a slice at a time.
    async fn retain(&self, retention: &mut RetentionRounds) -> Result<Duration, StoreError> {
        let round = retention.round(&*self.store, self.clock.now(), RETAIN_MAX).await?;
        if round.removed > 0 {
            tracing::info!(messages = round.removed, "removed what was kept long enough");
        }
        Ok(match round {
            RetentionRound { more: false, .. } => cleanup::EVERY,
            RetentionRound { removed: 0, .. } => EVERY,
            RetentionRound { .. } => RETAIN_AGAIN,
        })
    }

    /// After the clock was set back: makes mail due that would wait for the earlier time.
    async fn follow_clock(
        &self,
        steps: &mut RollbackDetector,
        pulls: &mut PendingPulls,
    ) -> Result<Duration, StoreError> {
        self.membership.follow_machine().await?;
        if steps.went_back(self.clock.now(), Instant::now()) {
            tracing::warn!("the clock was set back: mail that was ready before is due now");
            *pulls = PendingPulls { ready: true, beyond: true };
        }
        if pulls.ready {
            pulls.ready = self.pull_ready().await?;
        }
        if pulls.beyond {
            pulls.beyond = self.pull_preparation().await? | self.pull_beyond().await?;
        }
        Ok(EVERY)
    }

    /// Takes back leases of this node that none of its subsystems has.
    async fn reclaim_strays(&self, strays: &mut StrayLeases) -> Result<(), StoreError> {
        let now = self.clock.now();
        let roster = self.membership.roster();
        let others: Vec<Incarnation> = roster.alive().into_iter().filter(|one| *one != roster.me()).collect();
        let mut stalled = self.store.stalled(&others, epoch(), ROUND_MESSAGES).await?;
        stalled.retain(|one| one.holder == Some(roster.me()));
        self.reclaim_leases(strays.still_unknown(stalled), now).await.map(drop)
    }

    /// Takes back everything leased to dead nodes. Heartbeats decide which nodes are dead, not the time of
    /// day.
    pub async fn reclaim(&self) -> Result<u64, StoreError> {
        let mut reclaimed = 0;
        let roster = self.membership.roster();
        loop {
            let mut stalled = self.store.stalled(&roster.alive(), epoch(), ROUND_MESSAGES).await?;
            stalled.retain(|one| one.holder.is_none_or(|holder| roster.is_dead(holder)));
            if stalled.is_empty() {
                return Ok(reclaimed);
            }
            let taken = self.reclaim_leases(stalled, self.clock.now()).await?;
            if taken == 0 {
                return Ok(reclaimed);
            }
            reclaimed += taken;
        }
    }

    /// Takes back messages that other living nodes have leased for longer than a lease lasts. This node's own
    /// lost leases are reclaimed by `reclaim_strays`.
    async fn reclaim_outstayed(&self, met: &mut OverdueLeases) -> Result<(), StoreError> {
        let now = self.clock.now();
        let roster = self.membership.roster();
        let alive = roster.alive();
        let is_of_another = |holder: Incarnation| holder != roster.me() && alive.contains(&holder);
        let mut stalled = self.store.stalled(&alive, now, ROUND_MESSAGES).await?;
        stalled.retain(|one| one.holder.is_some_and(is_of_another));
        let over = long_overdue(met, stalled, Instant::now());
        self.reclaim_leases(over, now).await.map(drop)
    }

    /// Makes ready mail due that would wait for the time before the clock was set back, a slice at a time.
    /// Returns whether there may be more.
    async fn pull_ready(&self) -> Result<bool, StoreError> {
        for _ in 0..SLICES_MAX {
            let pull = DirectoryChange::PullReady(self.clock.now(), ROUND_MESSAGES);
            if self.store.change(pull, None).await? != ChangeResult::Done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes mail due whose next attempt is later than any retry delay allows, and dates the use of limits in
    /// the future as used now. Returns whether there may be more.
    async fn pull_beyond(&self) -> Result<bool, StoreError> {
        let now = self.clock.now();
        self.store.change(DirectoryChange::RedateUse(now), None).await?;
        let policies = self.retry_policies().await?.into_iter();
        let mut latest: Vec<(AccountKey, Time)> =
            policies.map(|(key, retry)| (key, now.plus(retry.longest()))).collect();
        latest.sort();
        let mut more = false;
        for some in latest.chunks(PULLED_ACCOUNTS) {
            let pull = DirectoryChange::PullBeyond(some.to_vec(), now, ROUND_MESSAGES);
            if self.store.change(pull, None).await? == ChangeResult::Done {
                tracing::warn!(
                    "mail that waited for a time beyond every delay is due now: the clock was ahead"
                );
                more = true;
            }
        }
        Ok(more)
    }

    /// Makes preparations due whose time was set by a clock that was ahead. Returns whether there may be
    /// more.
    async fn pull_preparation(&self) -> Result<bool, StoreError> {
        for _ in 0..SLICES_MAX {
            let now = self.clock.now();
            let latest = now.plus(FETCH_DELAY_MAX);
            let pull = DirectoryChange::PullPreparation { now, latest, limit: ROUND_MESSAGES };
            if self.store.change(pull, None).await? != ChangeResult::Done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes back inbound mail and reported events from dead nodes and from leases past their expiry.
    async fn reclaim_inbound(&self) -> Result<Duration, StoreError> {
        let alive = self.membership.roster().alive();
        let taken = self.store.reclaim_inbound(&alive, self.clock.now(), ROUND_MESSAGES).await?;
        if taken > 0 {
            tracing::info!(mails = taken, "took back mail whose workers are gone");
        }
        let now = self.clock.now();
        let events = self.store.reclaim_provider_events(&alive, now, ROUND_MESSAGES).await?;
        if events > 0 {
            tracing::info!(events, "took back reported events whose workers are gone");
        }
        Ok(if taken.max(events) < ROUND_MESSAGES { EVERY } else { Duration::ZERO })
    }

    /// Reports certified mail whose receipt has not arrived in time.
    async fn time_out_receipts(&self) -> Result<Duration, StoreError> {
        let reported = self.store.time_out_receipts(self.clock.now(), ROUND_MESSAGES).await?;
        Ok(if reported < ROUND_MESSAGES { EVERY } else { Duration::ZERO })
    }

    /// Ends these leases, and returns how many were ended.
    async fn reclaim_leases(&self, stalled: Vec<StalledMessage>, now: Time) -> Result<u64, StoreError> {
        if stalled.is_empty() {
            return Ok(0);
        }
        let policies = self.retry_policies().await?;
        let changes: Vec<MessageChange> =
            stalled.iter().filter_map(|one| lost_lease_change(one, policies.get(&one.key), now)).collect();
        let applied = self.store.apply(changes.clone()).await?;
        let mut taken = 0;
        // Only applied changes count: a late worker may have been faster.
        for change in changes.iter().zip(applied).filter_map(|(change, applied)| applied.then_some(change)) {
            tracing::warn!(uid = %change.uid, state = change.to.status().as_str(), "a lost lease was taken back");
            count(change);
            taken += 1;
        }
        Ok(taken)
    }

    async fn retry_policies(&self) -> Result<HashMap<AccountKey, RetryPolicy>, StoreError> {
        let accounts = self.store.accounts(None).await?;
        let policy = |account: postway_domain::Account| {
            (AccountKey { tenant: account.tenant, account: account.id }, account.settings.retry)
        };
        Ok(accounts.into_iter().map(policy).collect())
    }

    /// Ends messages that have expired, a slice at a time.
    async fn expire(&self) -> Result<Duration, StoreError> {
        let now = self.clock.now();
        let overdue = self.store.overdue(now, ROUND_MESSAGES).await?;
        let changes: Vec<MessageChange> = overdue.iter().filter_map(|one| expiry_change(one, now)).collect();
        if changes.is_empty() {
            return Ok(EVERY);
        }
        let applied = self.store.apply(changes.clone()).await?;
        let written = changes.iter().zip(applied).filter_map(|(change, applied)| applied.then_some(change));
        // If other writers moved them all, the next round tries again.
        Ok(if written.inspect(|change| count(change)).count() == 0 { EVERY } else { Duration::ZERO })
    }

    /// Sets the gauges. That costs O(lanes), so it takes only its share of the time.
    async fn measure(&self) -> Result<Duration, StoreError> {
        let (began, now) = (Instant::now(), self.clock.now());
        let stats = self.store.stats(None, now).await?;
        for &status in MessageStatus::ALL.iter().filter(|status| !status.is_final()) {
            let depth = stats.by_status.get(&status).copied().unwrap_or(0);
            metrics::gauge!("postway_queue_depth", "state" => status.as_str()).set(depth as f64);
        }
        let age = |due: Option<Time>| due.map_or(Duration::ZERO, |due| now.since(due)).as_secs_f64();
        metrics::gauge!("postway_oldest_due_seconds").set(age(stats.oldest_due_at));
        metrics::gauge!("postway_oldest_held_seconds").set(age(stats.oldest_held_at));
        metrics::gauge!("postway_in_doubt_held").set(stats.doubts_held as f64);
        let circuits = self.store.circuits(None).await?;
        metrics::gauge!("postway_circuits_open").set(circuits.len() as f64);
        Ok((began.elapsed() * MEASURE_SHARE).clamp(EVERY, MEASURE_AFTER))
    }
}

/// Which mail is still to be made due after the clock was set back.
struct PendingPulls {
    /// Ready mail.
    ready: bool,
    /// Mail whose next attempt is later than any retry delay allows.
    beyond: bool,
}

/// The epoch: passing it disables the check for expired leases.
fn epoch() -> Time {
    Time::from_millis(0)
}

/// Leases of other living nodes that are past their expiry, with their versions and since when they were
/// seen.
type OverdueLeases = HashMap<MessageUid, (i64, Instant)>;

/// The leases that have been seen overdue for at least OUTSTAYED_FOR.
fn long_overdue(
    met: &mut OverdueLeases,
    mut stalled: Vec<StalledMessage>,
    now: Instant,
) -> Vec<StalledMessage> {
    let before = std::mem::take(met);
    for one in &stalled {
        let since = before.get(&one.uid).filter(|(version, _)| *version == one.version);
        met.insert(one.uid, (one.version, since.map_or(now, |(_, since)| *since)));
    }
    stalled.retain(|one| met.get(&one.uid).is_some_and(|(_, since)| now - *since >= OUTSTAYED_FOR));
    stalled
}

/// Leases of this node that its subsystems do not know: the database went away while they were committed, and
/// the answer never arrived. Otherwise they would stay until they expire.
struct StrayLeases {
    in_hand: InFlightMessages,
    preparing: MessagesInPreparation,
    /// The unknown leases of the last round, with their versions. A lease on its way from the store to the
    /// dispatcher is unknown as well, but not twice.
    met: HashMap<MessageUid, i64>,
}

impl StrayLeases {
    /// The leases of this node that were unknown in the last round and still are.
    fn still_unknown(&mut self, mut own: Vec<StalledMessage>) -> Vec<StalledMessage> {
        own.retain(|one| !self.in_hand.contains(one.uid) && !self.preparing.holds(one.uid));
        let met = own.iter().map(|one| (one.uid, one.version)).collect();
        let before = std::mem::replace(&mut self.met, met);
        own.retain(|one| before.get(&one.uid) == Some(&one.version));
        own
    }
}

fn count(change: &MessageChange) {
    let state = change.to.status();
    metrics::counter!("postway_state_transitions_total", "state" => state.as_str()).increment(1);
    if change.to == MessageState::InDoubt {
        metrics::counter!("postway_in_doubt_total").increment(1);
    }
    if state.is_final() {
        metrics::counter!("postway_final_states_total", "state" => state.as_str()).increment(1);
    }
}

#[cfg(test)]
mod tests;
