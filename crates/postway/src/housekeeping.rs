//! Housekeeping: what nobody else does.
//!
//! Takes back work whose worker is gone, ends what has expired, and measures the queue. Each duty is a read, a decision
//! by the domain's table, and one fenced write; a crash in between leaves the work for the next round.

mod steps;
mod verdict;

use std::{collections::HashMap, sync::Arc, time::Duration};

use postway_dispatch::InHand;
use postway_domain::{
    Clock, Incarnation, MessageUid, State, Status, Time, retry::RetryPolicy, secret::SecretKey,
};
use postway_intake::Preparing;
use postway_store::{
    Store, StoreError,
    blob::Depot,
    record::{AccountKey, Change, Changed, DirectoryChange, Stalled},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    steps::Steps,
    verdict::{expired, lost},
};
use crate::{config, membership::Membership, retention::Retention, sweep};

/// How often each duty is done.
const EVERY: Duration = Duration::from_secs(1);
/// Messages in one round; a full round is followed by another at once.
const ROUND_MESSAGES: u32 = 500;
/// How long one round of retention may take.
const RETAIN_MAX: Duration = Duration::from_millis(200);
/// How often a node looks for leases of its own that it knows nothing of.
const STRAYS_EVERY: Duration = Duration::from_secs(10);
/// How long a lease of a living node must have been met past its backstop, by this node's own clock. That is as long as a
/// lease lasts: whatever the time of day was set to meanwhile, it is over then.
const OUTSTAYED_FOR: Duration = Duration::from_secs(10 * 60);
/// Measuring costs by the lanes there are: it takes one part in so many of the time, and is done after this long whatever it took.
const MEASURE_SHARE: u32 = 20;
const MEASURE_AFTER: Duration = Duration::from_secs(30);
/// Slices of ready mail that are made due in one round, after the clock was set back.
const PULLS_MAX: u32 = 20;

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
    /// Runs until cancelled, beside rooms that tell what they have in hand. A round that fails is tried again.
    pub async fn run(self, in_hand: InHand, preparing: Preparing, stop: CancellationToken) {
        let strays = Strays { in_hand, preparing, met: HashMap::new(), look_at: Instant::now() };
        let retention = Retention::new(self.secret_key.clone(), self.kept.clone());
        let mut rounds = Rounds {
            strays,
            outstayed: HashMap::new(),
            retention,
            retain_at: Instant::now(),
            sweep_at: Instant::now(),
            measure_at: Instant::now(),
            steps: Steps::new(self.clock.now(), Instant::now()),
            pulls: false,
        };
        loop {
            if let Err(error) = self.round(&mut rounds).await {
                tracing::warn!(%error, "a housekeeping round failed");
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    async fn round(&self, rounds: &mut Rounds) -> Result<(), StoreError> {
        if rounds.steps.went_back(self.clock.now(), Instant::now()) {
            tracing::warn!("the clock was set back: mail that was ready before is due now");
            rounds.pulls = true;
        }
        if rounds.pulls {
            self.pull_ready(rounds).await?;
        }
        if self.membership.roster().is_calm() && self.membership.holds(DUTY).await? {
            self.reclaim().await?;
            self.reclaim_outstayed(&mut rounds.outstayed).await?;
            self.membership.strike_dead().await?;
            self.expire().await?;
            self.reclaim_inbound().await?;
            self.time_out_receipts().await?;
            if rounds.sweep_at <= Instant::now() {
                sweep::sweep(&*self.store, &self.depot, self.clock.now()).await?;
                rounds.sweep_at = Instant::now() + sweep::EVERY;
            }
            if rounds.retain_at <= Instant::now() {
                self.retain(rounds).await?;
            }
        }
        let strays = &mut rounds.strays;
        if strays.look_at <= Instant::now() {
            self.reclaim_strays(strays).await?;
            strays.look_at = Instant::now() + STRAYS_EVERY;
        }
        if rounds.measure_at <= Instant::now() {
            let began = Instant::now();
            self.measure().await?;
            rounds.measure_at = Instant::now() + (began.elapsed() * MEASURE_SHARE).min(MEASURE_AFTER);
        }
        Ok(())
    }

    /// Removes what ended and was told, some of it at a time.
    async fn retain(&self, rounds: &mut Rounds) -> Result<(), StoreError> {
        let round = rounds.retention.round(&*self.store, self.clock.now(), RETAIN_MAX).await?;
        if round.removed > 0 {
            tracing::info!(messages = round.removed, "removed what was kept long enough");
        }
        rounds.retain_at = Instant::now() + if round.more { EVERY } else { sweep::EVERY };
        Ok(())
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

    /// Makes ready mail due that would wait for the time that the clock had, some of it at a time.
    async fn pull_ready(&self, rounds: &mut Rounds) -> Result<(), StoreError> {
        for _ in 0..PULLS_MAX {
            let pull = DirectoryChange::PullReady(self.clock.now(), ROUND_MESSAGES);
            if self.store.change(pull, None).await? != Changed::Done {
                rounds.pulls = false;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Gives back mail that the dead, and those past their backstop, were dealing with.
    async fn reclaim_inbound(&self) -> Result<(), StoreError> {
        loop {
            let alive = self.membership.roster().alive();
            let taken = self.store.reclaim_inbound(&alive, self.clock.now(), ROUND_MESSAGES).await?;
            if taken > 0 {
                tracing::info!(mails = taken, "took back mail whose workers are gone");
            }
            if taken < ROUND_MESSAGES {
                return Ok(());
            }
        }
    }

    /// Tells of certified mail whose receipt has not come in time.
    async fn time_out_receipts(&self) -> Result<(), StoreError> {
        while self.store.time_out_receipts(self.clock.now(), ROUND_MESSAGES).await? >= ROUND_MESSAGES {}
        Ok(())
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

    async fn expire(&self) -> Result<(), StoreError> {
        loop {
            let now = self.clock.now();
            let overdue = self.store.overdue(now, ROUND_MESSAGES).await?;
            if overdue.is_empty() {
                return Ok(());
            }
            let changes: Vec<Change> = overdue.iter().filter_map(|one| expired(one, now)).collect();
            let held = self.store.apply(changes.clone()).await?;
            let written = changes.iter().zip(held).filter_map(|(change, held)| held.then_some(change));
            // Where somebody else moved them all, or the table knows none, the next round looks again.
            if written.inspect(|change| count(change)).count() == 0 {
                return Ok(());
            }
        }
    }

    async fn measure(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
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
        Ok(())
    }
}

/// What a round remembers for the next.
struct Rounds {
    strays: Strays,
    outstayed: Outstayed,
    retention: Retention,
    retain_at: Instant,
    sweep_at: Instant,
    measure_at: Instant,
    steps: Steps,
    /// Whether there may be ready mail that waits for the time that the clock had.
    pulls: bool,
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
    look_at: Instant,
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
mod tests {
    use super::*;

    #[test]
    fn a_lease_of_a_living_node_is_over_when_this_nodes_own_clock_says_so() {
        let mut met = Outstayed::new();
        let (one, other, start) = (verdict::sample(1), verdict::sample(2), Instant::now());
        let moved = Stalled { version: 9, ..other.clone() };
        let mut over = |stalled: &[&Stalled], after: Duration| -> Vec<MessageUid> {
            let stalled = stalled.iter().map(|one| (*one).clone()).collect();
            outstayed(&mut met, stalled, start + after).iter().map(|one| one.uid).collect()
        };
        assert!(over(&[&one, &other], Duration::ZERO).is_empty(), "the time of day says so already");
        assert!(over(&[&one, &moved], OUTSTAYED_FOR - EVERY).is_empty());
        assert_eq!(over(&[&one, &moved], OUTSTAYED_FOR), [one.uid], "the other is another lease by now");
        assert!(over(&[], OUTSTAYED_FOR).is_empty());
        assert!(over(&[&one], OUTSTAYED_FOR).is_empty(), "it was let go meanwhile");
    }
}
