//! Housekeeping: what nobody else does.
//!
//! Takes back work whose worker is gone, ends what has expired, and measures the queue. Each duty is a read, a decision
//! by the domain's table, and one fenced write; a crash in between leaves the work for the next round. Duties run beside each
//! other: takeover never waits for a sweep.

mod lanes;
mod space;
mod steps;
mod verdict;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use postway_dispatch::InHand;
use postway_domain::{
    Clock, Incarnation, MessageUid, State, Status, Time, retry::RetryPolicy, secret::SecretKey,
};
use postway_intake::{FETCH_DELAY_MAX, Preparing};
use postway_store::{
    Store, StoreError,
    blob::Depot,
    record::{AccountKey, Change, Changed, DirectoryChange, Stalled},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    space::SpaceWatch,
    steps::Steps,
    verdict::{expired, lost},
};
use crate::{config, membership::Membership, retention::Retention, sweep};

/// How often a duty is done that says nothing else.
const EVERY: Duration = Duration::from_secs(1);
/// Messages in one round; a full round is followed by another at once.
const ROUND_MESSAGES: u32 = 500;
/// How long one round of retention may take.
const RETAIN_MAX: Duration = Duration::from_millis(200);
/// How often a node looks for leases of its own that it knows nothing of.
const STRAYS_EVERY: Duration = Duration::from_secs(10);
/// How often the database is asked whether it makes commits durable.
const DURABILITY_EVERY: Duration = Duration::from_secs(60);
/// How long a lease of a living node must have been met past its backstop, by this node's own clock. That is as long as a
/// lease lasts: whatever the time of day was set to meanwhile, it is over then.
const OUTSTAYED_FOR: Duration = Duration::from_secs(10 * 60);
/// Measuring costs by the lanes in which mail waits: it takes one part in so many of the time, and is done after this long whatever it took.
const MEASURE_SHARE: u32 = 20;
const MEASURE_AFTER: Duration = Duration::from_secs(30);
/// After the clock was set back: how many accounts one transaction searches for mail that is due too late.
const PULLED_ACCOUNTS: usize = 100;
/// After the clock was set back: how many slices of ready mail one round makes due.
const SLICES_MAX: u32 = 20;

/// Does its rounds until told to stop.
pub struct Housekeeping {
    /// Where everything is.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where large bodies are.
    pub depot: Arc<Depot>,
    /// Derives the key by which recipients of removed messages are still known.
    pub secret_key: Arc<SecretKey>,
    /// How long what belongs to no tenant is kept.
    pub kept: config::Retention,
    /// This process among the others.
    pub membership: Arc<Membership>,
}

/// The duty of taking back and expiring: one node at a time does it for all.
const DUTY: &str = "housekeeping";

impl Housekeeping {
    /// Runs until cancelled, beside rooms that tell what they have in hand. Each duty has its own pace, and none waits for
    /// another: one that fails, or takes long, is tried again and stops nothing else.
    pub async fn run(self, in_hand: InHand, preparing: Preparing, stop: CancellationToken) {
        let pace = &DutyPace { stop, has_duty: AtomicBool::new(false) };
        tokio::join!(
            self.keep_taking_over(pace),
            self.keep_looking_for_strays(pace, Strays { in_hand, preparing, met: HashMap::new() }),
            self.keep_following_the_clock(pace),
            self.keep_measuring(pace),
            self.keep_expiring(pace),
            self.keep_taking_back_inbound(pace),
            self.keep_timing_out_receipts(pace),
            self.keep_sweeping(pace),
            self.keep_retention(pace),
            self.keep_mail_in_its_lanes(pace),
            self.keep_retiring_lanes(pace),
            self.keep_space(pace),
            self.keep_reviewing_durability(pace),
        );
    }

    async fn keep_taking_over(&self, pace: &DutyPace) {
        let mut outstayed = Outstayed::new();
        while pace.goes_on() {
            let done = self.take_over(pace, &mut outstayed).await;
            pace.rest("takeover", done.map(|()| EVERY)).await;
        }
    }

    async fn keep_looking_for_strays(&self, pace: &DutyPace, mut strays: Strays) {
        while pace.goes_on() {
            let done = self.reclaim_strays(&mut strays).await;
            pace.rest("strays", done.map(|()| STRAYS_EVERY)).await;
        }
    }

    async fn keep_following_the_clock(&self, pace: &DutyPace) {
        let mut steps = Steps::new(self.clock.now(), Instant::now());
        // The clock may have been set back while nobody looked.
        let mut pulls = Pulls { ready: false, beyond: true };
        while pace.goes_on() {
            pace.rest("clock", self.follow_clock(&mut steps, &mut pulls).await).await;
        }
    }

    async fn keep_measuring(&self, pace: &DutyPace) {
        while pace.goes_on() {
            pace.rest("measuring", self.measure().await).await;
        }
    }

    async fn keep_expiring(&self, pace: &DutyPace) {
        while pace.comes_on_duty().await {
            pace.rest("expiry", self.expire().await).await;
        }
    }

    async fn keep_taking_back_inbound(&self, pace: &DutyPace) {
        while pace.comes_on_duty().await {
            pace.rest("inbound leases", self.reclaim_inbound().await).await;
        }
    }

    async fn keep_timing_out_receipts(&self, pace: &DutyPace) {
        while pace.comes_on_duty().await {
            pace.rest("receipts", self.time_out_receipts().await).await;
        }
    }

    async fn keep_sweeping(&self, pace: &DutyPace) {
        while pace.comes_on_duty().await {
            let swept = sweep::sweep(&*self.store, &self.depot, self.clock.now()).await;
            pace.rest("sweeping", swept.map(|()| sweep::EVERY)).await;
        }
    }

    async fn keep_retention(&self, pace: &DutyPace) {
        let mut retention = Retention::new(self.secret_key.clone(), self.kept.clone());
        while pace.comes_on_duty().await {
            pace.rest("retention", self.retain(&mut retention).await).await;
        }
    }

    async fn keep_mail_in_its_lanes(&self, pace: &DutyPace) {
        while pace.comes_on_duty().await {
            pace.rest("moving mail to its lanes", self.move_misplaced().await).await;
        }
    }

    async fn keep_retiring_lanes(&self, pace: &DutyPace) {
        while pace.comes_on_duty().await {
            pace.rest("retiring lanes", self.retire_lanes().await).await;
        }
    }

    async fn keep_space(&self, pace: &DutyPace) {
        let mut watch = SpaceWatch::default();
        while pace.goes_on() {
            pace.rest("space", watch.look(&*self.store).await).await;
        }
    }

    /// Another server may have taken over since, with settings of its own, and those of this one may have been changed.
    async fn keep_reviewing_durability(&self, pace: &DutyPace) {
        while pace.goes_on() {
            let reviewed = self.store.review_durability().await;
            pace.rest("durability", reviewed.map(|()| DURABILITY_EVERY)).await;
        }
    }

    /// Takes over what the dead had, and what was kept for too long, where this node does it for all.
    async fn take_over(&self, pace: &DutyPace, outstayed: &mut Outstayed) -> Result<(), StoreError> {
        let on_duty = self.membership.roster().is_calm() && self.membership.holds(DUTY).await?;
        pace.has_duty.store(on_duty, Ordering::Relaxed);
        if !on_duty {
            return Ok(());
        }
        self.reclaim().await?;
        self.membership.strike_dead().await?;
        self.reclaim_outstayed(outstayed).await
    }

    /// Removes what ended and was told, some of it at a time.
    async fn retain(&self, retention: &mut Retention) -> Result<Duration, StoreError> {
        let round = retention.round(&*self.store, self.clock.now(), RETAIN_MAX).await?;
        if round.removed > 0 {
            tracing::info!(messages = round.removed, "removed what was kept long enough");
        }
        Ok(if round.more { EVERY } else { sweep::EVERY })
    }

    /// Makes mail due that would wait for the time that the clock had before it was set back.
    async fn follow_clock(&self, steps: &mut Steps, pulls: &mut Pulls) -> Result<Duration, StoreError> {
        self.membership.follow_machine().await?;
        if steps.went_back(self.clock.now(), Instant::now()) {
            tracing::warn!("the clock was set back: mail that was ready before is due now");
            *pulls = Pulls { ready: true, beyond: true };
        }
        if pulls.ready {
            pulls.ready = self.pull_ready().await?;
        }
        if pulls.beyond {
            pulls.beyond = self.pull_preparation().await? | self.pull_beyond().await?;
        }
        Ok(EVERY)
    }

    /// Takes back what is leased to this very node and not in its hands.
    async fn reclaim_strays(&self, strays: &mut Strays) -> Result<(), StoreError> {
        let now = self.clock.now();
        let roster = self.membership.roster();
        let others: Vec<Incarnation> = roster.alive().into_iter().filter(|one| *one != roster.me()).collect();
        let mut stalled = self.store.stalled(&others, before_all(), ROUND_MESSAGES).await?;
        stalled.retain(|one| one.holder == Some(roster.me()));
        self.take_back(strays.met_again(stalled), now).await.map(drop)
    }

    /// Takes back everything leased to the dead. Who is dead is a matter of heartbeats, and of no time of day.
    pub async fn reclaim(&self) -> Result<u64, StoreError> {
        let mut reclaimed = 0;
        let roster = self.membership.roster();
        loop {
            let mut stalled = self.store.stalled(&roster.alive(), before_all(), ROUND_MESSAGES).await?;
            stalled.retain(|one| one.holder.is_none_or(|holder| roster.is_dead(holder)));
            if stalled.is_empty() {
                return Ok(reclaimed);
            }
            let taken = self.take_back(stalled, self.clock.now()).await?;
            if taken == 0 {
                return Ok(reclaimed);
            }
            reclaimed += taken;
        }
    }

    /// Takes back what other living nodes have leased for longer than a lease lasts. This node knows what it has in hand;
    /// what it does not, it finds itself.
    async fn reclaim_outstayed(&self, met: &mut Outstayed) -> Result<(), StoreError> {
        let now = self.clock.now();
        let roster = self.membership.roster();
        let alive = roster.alive();
        let is_of_another = |holder: Incarnation| holder != roster.me() && alive.contains(&holder);
        let mut stalled = self.store.stalled(&alive, now, ROUND_MESSAGES).await?;
        stalled.retain(|one| one.holder.is_some_and(is_of_another));
        let over = outstayed(met, stalled, Instant::now());
        self.take_back(over, now).await.map(drop)
    }

    /// Makes ready mail due that would wait for the time that the clock had, some of it at a time. Tells whether there may be more.
    async fn pull_ready(&self) -> Result<bool, StoreError> {
        for _ in 0..SLICES_MAX {
            let pull = DirectoryChange::PullReady(self.clock.now(), ROUND_MESSAGES);
            if self.store.change(pull, None).await? != Changed::Done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes mail due whose next attempt is later than any can be, and has limits count what was used in times to come as used
    /// now. Tells whether there may be more.
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
            if self.store.change(pull, None).await? == Changed::Done {
                tracing::warn!(
                    "mail that waited for a time beyond every delay is due now: the clock was ahead"
                );
                more = true;
            }
        }
        Ok(more)
    }

    /// Makes mail due to be prepared whose time a clock that was ahead has set. Tells whether there may be more.
    async fn pull_preparation(&self) -> Result<bool, StoreError> {
        for _ in 0..SLICES_MAX {
            let now = self.clock.now();
            let latest = now.plus(FETCH_DELAY_MAX);
            let pull = DirectoryChange::PullPreparation { now, latest, limit: ROUND_MESSAGES };
            if self.store.change(pull, None).await? != Changed::Done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives back mail that the dead, and those past their backstop, were dealing with.
    async fn reclaim_inbound(&self) -> Result<Duration, StoreError> {
        let alive = self.membership.roster().alive();
        let taken = self.store.reclaim_inbound(&alive, self.clock.now(), ROUND_MESSAGES).await?;
        if taken > 0 {
            tracing::info!(mails = taken, "took back mail whose workers are gone");
        }
        Ok(if taken < ROUND_MESSAGES { EVERY } else { Duration::ZERO })
    }

    /// Tells of certified mail whose receipt has not come in time.
    async fn time_out_receipts(&self) -> Result<Duration, StoreError> {
        let told = self.store.time_out_receipts(self.clock.now(), ROUND_MESSAGES).await?;
        Ok(if told < ROUND_MESSAGES { EVERY } else { Duration::ZERO })
    }

    /// Ends these leases, and returns how many that were.
    async fn take_back(&self, stalled: Vec<Stalled>, now: Time) -> Result<u64, StoreError> {
        if stalled.is_empty() {
            return Ok(0);
        }
        let policies = self.retry_policies().await?;
        let changes: Vec<Change> =
            stalled.iter().filter_map(|one| lost(one, policies.get(&one.key), now)).collect();
        let held = self.store.apply(changes.clone()).await?;
        let mut taken = 0;
        // Only what was written is told: a late worker may have been faster.
        for change in changes.iter().zip(held).filter_map(|(change, held)| held.then_some(change)) {
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

    /// Ends what has expired, some of it at a time.
    async fn expire(&self) -> Result<Duration, StoreError> {
        let now = self.clock.now();
        let overdue = self.store.overdue(now, ROUND_MESSAGES).await?;
        let changes: Vec<Change> = overdue.iter().filter_map(|one| expired(one, now)).collect();
        if changes.is_empty() {
            return Ok(EVERY);
        }
        let held = self.store.apply(changes.clone()).await?;
        let written = changes.iter().zip(held).filter_map(|(change, held)| held.then_some(change));
        // Where somebody else moved them all, the next round looks again.
        Ok(if written.inspect(|change| count(change)).count() == 0 { EVERY } else { Duration::ZERO })
    }

    /// Sets the gauges. That costs by the lanes there are, so it takes its share of the time.
    async fn measure(&self) -> Result<Duration, StoreError> {
        let (began, now) = (Instant::now(), self.clock.now());
        let stats = self.store.stats(None, now).await?;
        for &status in Status::ALL.iter().filter(|status| !status.is_final()) {
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

/// What is still to be made due after the clock was set back.
struct Pulls {
    /// Ready mail, whatever its time.
    ready: bool,
    /// Mail whose next attempt is later than any can be.
    beyond: bool,
}

/// When duties are done.
struct DutyPace {
    stop: CancellationToken,
    /// Whether this node does what one node at a time does for all.
    has_duty: AtomicBool,
}

impl DutyPace {
    fn goes_on(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Waits for the time after which a duty wants to be done again. One that failed is tried again soon.
    async fn rest(&self, duty: &'static str, done: Result<Duration, StoreError>) {
        let wait = done.unwrap_or_else(|error| {
            tracing::warn!(duty, %error, "a duty of housekeeping failed");
            EVERY
        });
        self.wait(wait).await;
    }

    /// Waits until this node does it for all; false if it is told to stop before.
    async fn comes_on_duty(&self) -> bool {
        while self.goes_on() && !self.has_duty.load(Ordering::Relaxed) {
            self.wait(EVERY).await;
        }
        self.goes_on()
    }

    async fn wait(&self, time: Duration) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(time) => {}
        }
    }
}

/// A time before every lease: by it nothing is past its backstop.
fn before_all() -> Time {
    Time::from_millis(0)
}

/// Leases of other living nodes that are past their backstop, with their versions and since when they are met so.
type Outstayed = HashMap<MessageUid, (i64, Instant)>;

/// Those of the leases that were met for long enough.
fn outstayed(met: &mut Outstayed, mut stalled: Vec<Stalled>, now: Instant) -> Vec<Stalled> {
    let before = std::mem::take(met);
    for one in &stalled {
        let since = before.get(&one.uid).filter(|(version, _)| *version == one.version);
        met.insert(one.uid, (one.version, since.map_or(now, |(_, since)| *since)));
    }
    stalled.retain(|one| met.get(&one.uid).is_some_and(|(_, since)| now - *since >= OUTSTAYED_FOR));
    stalled
}

/// Leases of this node that its rooms do not know: the database went away while they were committed, and the
/// answer never came. Without this they would lie until the backstop.
struct Strays {
    in_hand: InHand,
    preparing: Preparing,
    /// Those met at the last look, with their versions. A lease on its way from the store to the dispatcher looks the
    /// same, but not twice.
    met: HashMap<MessageUid, i64>,
}

impl Strays {
    /// Those of this node's leases that are in nobody's hands, now as at the last look.
    fn met_again(&mut self, mut own: Vec<Stalled>) -> Vec<Stalled> {
        own.retain(|one| !self.in_hand.contains(one.uid) && !self.preparing.holds(one.uid));
        let met = own.iter().map(|one| (one.uid, one.version)).collect();
        let before = std::mem::replace(&mut self.met, met);
        own.retain(|one| before.get(&one.uid) == Some(&one.version));
        own
    }
}

fn count(change: &Change) {
    let state = change.to.status();
    metrics::counter!("postway_state_transitions_total", "state" => state.as_str()).increment(1);
    if change.to == State::InDoubt {
        metrics::counter!("postway_in_doubt_total").increment(1);
    }
    if state.is_final() {
        metrics::counter!("postway_final_states_total", "state" => state.as_str()).increment(1);
    }
}

#[cfg(test)]
mod tests;
