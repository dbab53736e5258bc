//! Housekeeping: what nobody else does.
//!
//! Takes back work whose worker is gone, ends what has expired, and measures the queue. Each duty is a read, a decision
//! by the domain's table, and one fenced write; a crash in between leaves the work for the next round.

use std::{collections::HashMap, sync::Arc, time::Duration};

use postway_dispatch::InHand;
use postway_domain::{
    Clock, Incarnation, MessageUid, RecipientStatus, State, Status, Time,
    message::{Input, LeaseEffect, Outcome, transition},
    retry::RetryPolicy,
    secret::SecretKey,
};
use postway_intake::Preparing;
use postway_store::{
    Store, StoreError,
    blob::Depot,
    record::{AccountKey, Change, Fence, NewEvent, Stalled},
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{membership::Membership, retention::Retention, sweep};

/// How often each duty is done.
const EVERY: Duration = Duration::from_secs(1);
/// Messages in one round; a full round is followed by another at once.
const ROUND_MESSAGES: u32 = 500;
/// Leases lost in a row after which a message is set aside: it may be what kills its workers.
const LOST_LEASES_MAX: i64 = 5;

/// How long one round of retention may take.
const RETAIN_MAX: Duration = Duration::from_millis(200);
/// How often a node looks for leases of its own that it knows nothing of.
const STRAYS_EVERY: Duration = Duration::from_secs(10);

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
    /// This process among the others.
    pub membership: Arc<Membership>,
}

/// The duty of taking back and expiring: one node at a time does it for all.
const DUTY: &str = "housekeeping";

impl Housekeeping {
    /// Runs until cancelled, beside rooms that tell what they have in hand. A round that fails is tried again.
    pub async fn run(self, in_hand: InHand, preparing: Preparing, stop: CancellationToken) {
        let strays = Strays { in_hand, preparing, met: HashMap::new(), look_at: Instant::now() };
        let retention = Retention::new(self.secret_key.clone());
        let mut rounds = Rounds { strays, retention, retain_at: Instant::now(), sweep_at: Instant::now() };
        loop {
            if let Err(error) = self.round(&mut rounds).await {
                tracing::warn!(%error, "a housekeeping round failed");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    async fn round(&self, rounds: &mut Rounds) -> Result<(), StoreError> {
        if self.membership.roster().is_calm() && self.membership.holds(DUTY).await? {
            self.reclaim().await?;
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
        self.measure().await
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
        let mut stalled = self.store.stalled(&others, now, ROUND_MESSAGES).await?;
        stalled.retain(|one| one.holder == Some(roster.me()));
        self.take_back(strays.met_again(stalled), now).await.map(drop)
    }

    /// Takes back everything leased to the dead, or past its backstop.
    pub async fn reclaim(&self) -> Result<u64, StoreError> {
        let mut reclaimed = 0;
        let roster = self.membership.roster();
        loop {
            let now = self.clock.now();
            let alive = roster.alive();
            let mut stalled = self.store.stalled(&alive, now, ROUND_MESSAGES).await?;
            // What the living hold is here because it is past the backstop.
            stalled.retain(|one| {
                one.holder.is_none_or(|holder| alive.contains(&holder) || roster.is_dead(holder))
            });
            if stalled.is_empty() {
                return Ok(reclaimed);
            }
            let taken = self.take_back(stalled, now).await?;
            if taken == 0 {
                return Ok(reclaimed);
            }
            reclaimed += taken;
        }
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
            if change.to == State::InDoubt {
                metrics::counter!("postway_in_doubt_total").increment(1);
            }
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
            changes.iter().zip(held).filter_map(|(change, held)| held.then_some(change)).for_each(count);
        }
    }

    async fn measure(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let stats = self.store.stats(None, now).await?;
        for &status in Status::ALL.iter().filter(|status| !status.is_final()) {
            let depth = stats.by_status.get(&status).copied().unwrap_or(0);
            metrics::gauge!("postway_queue_depth", "state" => status.as_str()).set(depth as f64);
        }
        let oldest = stats.oldest_due_at.map_or(Duration::ZERO, |due| now.since(due));
        metrics::gauge!("postway_oldest_due_seconds").set(oldest.as_secs_f64());
        Ok(())
    }
}

/// What a round remembers for the next.
struct Rounds {
    strays: Strays,
    retention: Retention,
    retain_at: Instant,
    sweep_at: Instant,
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
    if state.is_final() {
        metrics::counter!("postway_final_states_total", "state" => state.as_str()).increment(1);
    }
}

/// The message's worker is gone: before the dot it goes back to the queue, after it is in doubt.
fn lost(one: &Stalled, policy: Option<&RetryPolicy>, now: Time) -> Option<Change> {
    let lost_leases = one.lost_leases + 1;
    let on_the_wire = one.state == State::Sending { wire_committed: true };
    let suspect = lost_leases >= LOST_LEASES_MAX && !on_the_wire && one.state.status() == Status::Sending;
    let input = if suspect { Input::Settle(Outcome::Quarantined) } else { Input::LoseLease };
    let mut change = moved(one, input, now)?;
    let mut data = json!({"attempt": one.attempt, "reason": "lease lost"});
    match change.to {
        State::Failed => {
            let message = format!("quarantined: its workers died {lost_leases} times in a row");
            change.error =
                Some(json!({"code": "quarantined", "category": "poison", "message": message}).to_string());
            data["reason"] = json!("quarantined");
        }
        State::InDoubt => {
            let doubts = one.doubts + 1;
            let overdue = one.expires_at.is_some_and(|at| at <= now);
            if one.on_doubt.resends(doubts, overdue) {
                let fallback = RetryPolicy::smtp();
                let nth = u32::try_from(doubts - 1).unwrap_or(0);
                let delay = policy.unwrap_or(&fallback).delay(nth, &mut rand::rng());
                change.due_at = Some(now.plus(delay.unwrap_or(Duration::from_secs(60))));
            }
            change.doubts = Some(doubts);
            change.error = Some(
                json!({"code": "in_doubt", "category": "unknown", "phase": "dot",
                       "message": "the worker was lost after it may have written the final dot"})
                .to_string(),
            );
            // Recipients marked one by one at the wire commit say themselves who was accepted.
            change.ends_open_recipients = (!one.has_doubtful).then_some(RecipientStatus::InDoubt);
        }
        State::Ready => change.due_at = Some(now),
        _ => {}
    }
    change.lost_leases = Some(lost_leases);
    for event in &mut change.events {
        event.data = Some(data.to_string());
    }
    Some(change)
}

fn expired(one: &Stalled, now: Time) -> Option<Change> {
    let mut change = moved(one, Input::Expire, now)?;
    change.error = Some(
        json!({"code": "expired", "category": "unknown", "message": "expires_at passed before it was sent"})
            .to_string(),
    );
    Some(change)
}

fn moved(one: &Stalled, input: Input, now: Time) -> Option<Change> {
    let (to, effects) = match transition(one.state, input) {
        Ok(next) => next,
        Err(error) => {
            tracing::error!(uid = %one.uid, %error, "housekeeping met a state it does not know");
            return None;
        }
    };
    Some(Change {
        uid: one.uid,
        fence: Fence { status: one.state.status(), token: None, version: Some(one.version) },
        to,
        at: now,
        due_at: None,
        keep_token: effects.lease == LeaseEffect::Keep,
        retries: None,
        doubts: None,
        lost_leases: None,
        exhausted: false,
        error: None,
        events: effects.event.map(|kind| NewEvent { kind, data: None }).into_iter().collect(),
        recipients: Vec::new(),
        ends_open_recipients: effects.ends_open_recipients,
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: false,
        awaits_receipt: None,
    })
}
