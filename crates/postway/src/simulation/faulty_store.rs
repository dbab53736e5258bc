//! The store as one life of a node reaches it: the real store in memory, behind injected faults of the
//! connection.
//!
//! A call may be slow, fail before anything was done, be done and have its answer lost, or be done twice.
//! When another server takes over, whatever is on its way is lost, there or back. On a connection that fell
//! silent a call waits as long as a client does. A life that is frozen gets no answer until it thaws, a dead
//! one none at all, and what it had not sent is never done.

mod ports;

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Incarnation, MessageUid, TenantId, Time};
use postway_store::{
    IntakeStore, StoreError, WorkStore,
    memory::MemoryStore,
    record::{
        Acceptance, AccountKey, ClaimRequest, ClaimedMessage, DedupKind, MessageChange, NewMessage,
        QueueState, StalledMessage, StoredBody, WireCommit,
    },
};

use super::{
    ledger::LedgerMove,
    life::{LifePulse, NodeLife},
    world::{PlantedFlaw, SimulatedWorld},
};

/// The store as one life of a node has it.
pub(super) struct FaultyStore {
    world: Arc<SimulatedWorld>,
    life: Arc<NodeLife>,
    store: MemoryStore,
}

impl FaultyStore {
    pub fn new(world: Arc<SimulatedWorld>, life: Arc<NodeLife>) -> Self {
        let store = world.store.beside();
        Self { world, life, store }
    }

    /// Makes one call with its injected faults. `note` is called with the result in the moment the work is
    /// done.
    async fn call<T>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, StoreError>> + Send,
        note: impl FnOnce(&T) + Send,
    ) -> Result<T, StoreError> {
        let CallFaults { before, after, fails, forgets } = self.world.weather();
        if !self.travels(before).await {
            self.world.trace.note(format_args!("{} {name} is lost on its way to the server", self.life.name));
            return Err(StoreError::Unavailable("simulated, in a failover".to_owned()));
        }
        if fails {
            self.world.trace.note(format_args!("{} {name} fails", self.life.name));
            return Err(StoreError::Unavailable("simulated".to_owned()));
        }
        let is_hushed = self.life.is_hushed() && !self.world.is_healed();
        if is_hushed && self.world.chance.hits(500) {
            return self.hear_nothing(name).await;
        }
        let answer = work.await;
        if let Ok(answer) = &answer {
            note(answer);
        }
        if ACTS.contains(&name) {
            self.world.strike_in_the_act(&self.life);
        }
        if is_hushed {
            return self.hear_nothing(name).await;
        }
        if !self.travels(after).await || forgets {
            self.world.trace.note(format_args!("{} {name} is done and fails", self.life.name));
            return Err(StoreError::Unavailable("simulated, after it was done".to_owned()));
        }
        answer
    }

    /// Waits for the request or the answer to travel; false if another server took over meanwhile.
    async fn travels(&self, ms: u64) -> bool {
        tokio::select! {
            biased;
            () = self.pause(ms) => true,
            () = self.world.failed_over() => {
                self.life.acts().await;
                false
            }
        }
    }

    /// A call on a connection that fell silent ends when its client has waited long enough.
    async fn hear_nothing<T>(&self, name: &str) -> Result<T, StoreError> {
        self.world.trace.note(format_args!("{} {name} hears nothing", self.life.name));
        if self.world.has(PlantedFlaw::WaitsForSilence) {
            std::future::pending::<()>().await;
        }
        let is_of_register = REGISTER.contains(&name);
        let lasts = if is_of_register { REGISTER_LASTS_MAX } else { CALL_LASTS_MAX };
        tokio::time::sleep(lasts).await;
        self.life.acts().await;
        Err(StoreError::Unavailable("simulated, in silence".to_owned()))
    }

    /// Does a write, and sometimes a second time, as a store does that runs a group again. The first answer
    /// counts.
    async fn maybe_twice<T, F: Future<Output = Result<T, StoreError>> + Send>(
        &self,
        name: &str,
        write: impl Fn() -> F + Send + Sync,
    ) -> Result<T, StoreError> {
        let answer = write().await?;
        if self.world.repeats() {
            self.world.trace.note(format_args!("{} {name} is done again", self.life.name));
            write().await?;
        }
        Ok(answer)
    }

    async fn pause(&self, ms: u64) {
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        self.life.acts().await;
    }

    /// Something that is waited for rather than asked; taken only by a life that can take it.
    async fn hint<T, F: Future<Output = T> + Send>(&self, wait: impl Fn() -> F + Send + Sync) -> T {
        loop {
            self.life.acts().await;
            tokio::select! {
                biased;
                () = self.life.until(|pulse| pulse != LifePulse::Beating) => {}
                heard = wait() => return heard,
            }
        }
    }
}

/// Calls at which a crash matters most: no other node can see what happens between the others.
const ACTS: [&str; 4] = ["accept", "claim", "wire_commit", "apply"];

/// Calls of the register, which have a connection of their own and little time.
const REGISTER: [&str; 5] = ["beat", "nodes", "strike", "duty", "take_duty"];
const REGISTER_LASTS_MAX: Duration = Duration::from_secs(3);
/// How long any other call may take: shorter than in life, so that runs are, too, and longer than a node is
/// thought alive.
const CALL_LASTS_MAX: Duration = Duration::from_secs(15);

/// The number that a message's client gave it.
fn label_of(message: &NewMessage) -> usize {
    let client = message.client_id.as_ref().and_then(|id| id.as_str().strip_prefix('m')?.parse().ok());
    client.expect("every message of a run has a number")
}

/// The injected faults of one call.
pub(super) struct CallFaults {
    pub before: u64,
    pub after: u64,
    pub fails: bool,
    pub forgets: bool,
}

#[async_trait]
impl IntakeStore for FaultyStore {
    async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError> {
        let named: Vec<(MessageUid, usize)> =
            messages.iter().map(|message| (message.uid, label_of(message))).collect();
        let note = |answers: &Vec<Acceptance>| {
            for ((uid, label), answer) in named.iter().zip(answers) {
                self.world.trace.note(format_args!("{} accepts m{label}: {answer:?}", self.life.name));
                if answer.is_accepted() {
                    self.world.ledger().add(*uid, *label);
                }
            }
        };
        let lost: Vec<Acceptance> =
            named.iter().map(|_| Acceptance::Accepted { handed_over: false }).collect();
        let failovers = self.world.failovers();
        let work = self.maybe_twice("accept", || self.store.accept(messages.clone()));
        let answer = self.call("accept", work, note).await;
        let took_over = self.world.failovers() > failovers;
        if answer.is_err() && took_over && self.world.has(PlantedFlaw::TrustsFailover) {
            return Ok(lost);
        }
        answer
    }

    async fn seen_before(
        &self,
        tenant: &TenantId,
        keys: &[(DedupKind, String)],
        fingerprint: &[u8; 32],
        now: Time,
    ) -> Result<Option<Acceptance>, StoreError> {
        self.call("seen_before", self.store.seen_before(tenant, keys, fingerprint, now), |_| {}).await
    }
}

#[async_trait]
impl WorkStore for FaultyStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedMessage>, StoreError> {
        let note = |claimed: &Vec<ClaimedMessage>| {
            self.world.ledger().claimed(&self.life, claimed, "claims", &self.world.trace);
        };
        self.call("claim", self.store.claim(request), note).await
    }

    async fn handed_over(&self) -> Vec<ClaimedMessage> {
        let claimed = self.hint(|| self.store.handed_over()).await;
        self.world.ledger().claimed(&self.life, &claimed, "is handed", &self.world.trace);
        claimed
    }

    fn unpark(&self) {
        self.store.unpark();
    }

    async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError> {
        let uids: Vec<MessageUid> = commits.iter().map(|commit| commit.uid).collect();
        let note = |held: &Vec<bool>| {
            self.world.ledger().permitted(&self.life, &uids, held, &self.world.trace);
        };
        let work = self.maybe_twice("wire_commit", || self.store.wire_commit(commits.clone()));
        let answer = self.call("wire_commit", work, note).await;
        let is_granted = match &answer {
            Ok(_) => self.world.has(PlantedFlaw::IgnoresFence),
            Err(_) => self.world.has(PlantedFlaw::AssumesPermission),
        };
        if is_granted { Ok(vec![true; uids.len()]) } else { answer }
    }

    async fn apply(&self, changes: Vec<MessageChange>) -> Result<Vec<bool>, StoreError> {
        let moves: Vec<LedgerMove> = changes.iter().map(LedgerMove::from_change).collect();
        let note = |held: &Vec<bool>| {
            self.world.ledger().changed(&self.life, &moves, held, &self.world.trace);
        };
        let work = self.maybe_twice("apply", || self.store.apply(changes.clone()));
        self.call("apply", work, note).await
    }

    async fn woken(&self) -> Vec<AccountKey> {
        self.hint(|| self.store.woken()).await
    }

    async fn body(&self, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        self.call("body", self.store.body(uid), |_| {}).await
    }

    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<StalledMessage>, StoreError> {
        self.call("stalled", self.store.stalled(alive, now, limit), |_| {}).await
    }

    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError> {
        self.call("overdue", self.store.overdue(now, limit), |_| {}).await
    }

    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError> {
        self.call("queue_state", self.store.queue_state(now), |_| {}).await
    }
}
