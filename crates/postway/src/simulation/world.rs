//! The world of a run: chance, clock, store, relays, and nodes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use postway_domain::{
    Account, AccountId, AccountKind, AccountLimits, AccountSettings, Clock, EventKind, MessageUid,
    RelayTlsMode, Tenant, TenantId, Time, destination::DestinationLimit, retry::RetryPolicy,
};
use postway_store::{
    DirectoryStore as _, Read as _,
    memory::MemoryStore,
    record::{DirectoryChange, MessageKey, MessageRecord},
};
use tokio::{sync::Notify, time::Instant};

use super::{
    actors::{self, PlannedFault},
    chance::{AccountPlan, RunPlan, SeededChance},
    faulty_store::CallFaults,
    ledger::MessageLedger,
    life::{LifePulse, NodeLife},
    node::SimulatedNode,
    relay::{FIRST_PORT, RelayRecord},
    trace::RunTrace,
};

/// When every run begins.
const EPOCH_MS: i64 = 1_800_000_000_000;
/// How far back the clock may be in all.
const LEAPT_BACK_MAX_MS: i64 = 3_600_000;
/// The domain of all recipients.
pub(super) const RECEIVING_DOMAIN: &str = "to.example";

/// Everything in a run.
pub(super) struct SimulatedWorld {
    pub plan: RunPlan,
    pub chance: SeededChance,
    pub trace: RunTrace,
    /// The store itself, without injected faults.
    pub store: MemoryStore,
    pub clock: Arc<WorldClock>,
    pub nodes: Vec<SimulatedNode>,
    ledger: Mutex<MessageLedger>,
    seen: Mutex<RelayRecord>,
    healed: AtomicBool,
    /// Whether limits may be exceeded, because no node was there when the clock was set.
    is_time_lost: AtomicBool,
    /// Until when no call to the store is answered well.
    outage: Mutex<Option<Instant>>,
    /// Counts the database servers that took over, and wakes those who wait for it in their order.
    failovers: AtomicU64,
    on_failover: Notify,
    /// The flaw that is planted in this run.
    pub flaw: Option<PlantedFlaw>,
}

/// A flaw that runs must detect, which shows that the checks work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlantedFlaw {
    /// A write that was lost in a failover is taken for done.
    TrustsFailover,
    /// A call on a silent connection never times out.
    WaitsForSilence,
    /// The refusal of a fenced write is ignored.
    IgnoresFence,
    /// A wire commit that failed is taken for granted.
    AssumesPermission,
    /// A node goes on sending while its heartbeats do not land.
    IgnoresIsolation,
    /// The use of limits does not go with a clock that is set.
    LeavesUseBehind,
}

impl PlantedFlaw {
    pub const ALL: [PlantedFlaw; 6] = [
        PlantedFlaw::TrustsFailover,
        PlantedFlaw::WaitsForSilence,
        PlantedFlaw::IgnoresFence,
        PlantedFlaw::AssumesPermission,
        PlantedFlaw::IgnoresIsolation,
        PlantedFlaw::LeavesUseBehind,
    ];
}

/// The time of day, which can be set.
pub(super) struct WorldClock {
    started: Instant,
    leapt_ms: AtomicI64,
}

impl Clock for WorldClock {
    fn now(&self) -> Time {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Time::from_millis(EPOCH_MS + elapsed + self.leapt_ms.load(Ordering::Relaxed))
    }
}

impl SimulatedWorld {
    pub fn new(seed: u64, flaw: Option<PlantedFlaw>) -> Self {
        let chance = SeededChance::new(seed);
        let plan = RunPlan::draw(&chance);
        let trace = RunTrace::new();
        trace.note(format_args!("seed {seed}: {plan:?}"));
        Self {
            nodes: (0..plan.nodes).map(|number| SimulatedNode::new(number, &chance)).collect(),
            store: if plan.nodes > 1 { MemoryStore::shared() } else { MemoryStore::new() },
            clock: Arc::new(WorldClock { started: Instant::now(), leapt_ms: AtomicI64::new(0) }),
            plan,
            chance,
            trace,
            ledger: Mutex::default(),
            seen: Mutex::default(),
            healed: AtomicBool::new(false),
            is_time_lost: AtomicBool::new(false),
            outage: Mutex::default(),
            failovers: AtomicU64::new(0),
            on_failover: Notify::new(),
            flaw,
        }
    }

    /// Whether the program is wrong in this way.
    pub fn has(&self, flaw: PlantedFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub fn ledger(&self) -> MutexGuard<'_, MessageLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn seen(&self) -> MutexGuard<'_, RelayRecord> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Whether all goes well from now on.
    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.trace.note(format_args!("all is well from now on"));
        self.healed.store(true, Ordering::Relaxed);
        for life in self.nodes.iter().filter_map(SimulatedNode::life) {
            life.set(LifePulse::Beating);
        }
    }

    /// A rate of the plan, as long as things go wrong.
    pub fn rate(&self, per_mille: u64) -> u64 {
        if self.is_healed() { 0 } else { per_mille }
    }

    /// Sets the clock, forth or back; never so far back that times which clients asked for do not come.
    pub fn leap(&self, by_ms: i64) {
        if self.clock.leapt_ms.load(Ordering::Relaxed) + by_ms < -LEAPT_BACK_MAX_MS {
            return;
        }
        self.trace.note(format_args!("the clock is set by {by_ms} ms"));
        self.clock.leapt_ms.fetch_add(by_ms, Ordering::Relaxed);
        if !self.nodes.iter().any(SimulatedNode::is_running) {
            self.lose_time();
        }
    }

    /// The clock was set while no node runs that could tell by how much: what was used of limits is dated by
    /// a time that nobody knows any more.
    pub fn lose_time(&self) {
        self.trace.note(format_args!("nobody knows the time before"));
        self.is_time_lost.store(true, Ordering::Relaxed);
    }

    pub fn is_time_lost(&self) -> bool {
        self.is_time_lost.load(Ordering::Relaxed)
    }

    /// Takes the store away.
    pub fn lose_store(&self, for_: Duration) {
        self.trace.note(format_args!("the store is away for {for_:?}"));
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + for_);
    }

    /// Another server takes over; for a while none answers.
    pub fn fail_over(&self, silent_for: Duration) {
        self.trace.note(format_args!("another server takes over, in {silent_for:?}"));
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + silent_for);
        self.failovers.fetch_add(1, Ordering::Relaxed);
        self.on_failover.notify_waiters();
    }

    /// How many servers have taken over.
    pub fn failovers(&self) -> u64 {
        self.failovers.load(Ordering::Relaxed)
    }

    /// Waits until another server takes over.
    pub async fn failed_over(&self) {
        self.on_failover.notified().await;
    }

    /// Draws the faults of the next call to the store.
    pub fn weather(&self) -> CallFaults {
        if self.is_healed() {
            return CallFaults { before: 0, after: 0, fails: false, forgets: false };
        }
        let outage = *self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_away = outage.is_some_and(|until| Instant::now() < until);
        let ills = &self.plan.store;
        let wait = || if self.chance.hits(ills.slow) { self.latency().as_millis() as u64 } else { 0 };
        let (before, after) = (wait(), wait());
        let fails = is_away || self.chance.hits(ills.fails);
        CallFaults { before, after, fails, forgets: self.chance.hits(ills.forgets) }
    }

    /// Whether what writes is done a second time.
    pub fn repeats(&self) -> bool {
        self.chance.hits(self.rate(self.plan.store.repeats))
    }

    /// Called when a life does something that others see: it may crash or freeze at this point.
    pub fn strike_in_the_act(self: &Arc<Self>, life: &NodeLife) {
        let strikes =
            life.pulse() == LifePulse::Beating && self.chance.hits(self.rate(self.plan.fates.in_the_act));
        let is_here = || self.nodes[life.node].life().is_some_and(|now| now.name == life.name);
        if strikes && is_here() {
            let fate = *self.chance.pick(&[PlannedFault::Crash, PlannedFault::Crash, PlannedFault::Freeze]);
            actors::befall(self, fate, life.node);
        }
    }

    /// A time on the way: mostly milliseconds, seldom seconds.
    pub fn latency(&self) -> Duration {
        match self.is_healed() || !self.chance.hits(50) {
            true => self.chance.millis(1, 40),
            false => self.chance.millis(40, 8_000),
        }
    }

    pub fn tenant() -> TenantId {
        "t".parse().expect("a tenant's name")
    }

    pub fn account_id(number: usize) -> AccountId {
        format!("a{number}").parse().expect("an account's name")
    }

    /// The limits of receiving domains that an account has.
    pub fn destinations(&self, account: usize) -> BTreeMap<String, DestinationLimit> {
        let limit = DestinationLimit { connections: 0, per_second: self.plan.accounts[account].to_domain };
        [(RECEIVING_DOMAIN.to_owned(), limit)].into()
    }

    /// The plan of the account whose relay has this port.
    pub fn account(&self, port: u16) -> &AccountPlan {
        &self.plan.accounts[usize::from(port - FIRST_PORT)]
    }

    /// Creates the tenant and its accounts.
    pub async fn create_tenant(&self) {
        let now = self.now();
        let account = |(number, plan): (usize, &AccountPlan)| Account {
            tenant: Self::tenant(),
            id: Self::account_id(number),
            settings: AccountSettings {
                kind: AccountKind::Smtp,
                host: Some("relay.example".to_owned()),
                port: Some(FIRST_PORT + number as u16),
                tls: RelayTlsMode::None,
                max_connections: plan.connections,
                destinations: self.destinations(number),
                limits: AccountLimits { per_minute: plan.per_minute, ..AccountLimits::default() },
                fallback: plan.falls_back.then(|| Self::account_id(number + 1)),
                // Chance is the run's alone, and a jitter would have its own.
                retry: RetryPolicy { delays_s: vec![1, 4, 15, 30], jitter: 0.0 },
                ..AccountSettings::sandbox()
            },
            secret: None,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let accounts = self.plan.accounts.iter().enumerate().map(account).collect();
        let tenant = Tenant::new(Self::tenant(), "Simulated", now);
        let made = self.store.change(DirectoryChange::CreateTenant(tenant, accounts), None).await;
        made.expect("the store itself has no faults");
    }

    /// Every message in the store.
    pub async fn records(&self) -> Vec<MessageRecord> {
        let uids: Vec<MessageUid> = self.ledger().iter().map(|(uid, _)| uid).collect();
        let mut records = Vec::with_capacity(uids.len());
        for uid in uids {
            records.extend(self.record(uid).await);
        }
        records
    }

    pub async fn record(&self, uid: MessageUid) -> Option<MessageRecord> {
        let found = self.store.message(&Self::tenant(), &MessageKey::Uid(uid)).await;
        found.expect("the store itself has no faults")
    }

    /// The stored message with this number.
    pub fn uid_of(&self, label: usize) -> Option<MessageUid> {
        self.ledger().iter().find(|(_, fate)| fate.label == label).map(|(uid, _)| uid)
    }

    /// A relay took a mail. A second time is a promise broken, unless the history had said by then that it
    /// may be.
    pub async fn taken(&self, life: &NodeLife, uid: MessageUid, label: usize, recipients: &[String]) {
        self.trace.note(format_args!("a relay takes m{label} of {} for {}", life.name, recipients.join(" ")));
        let record = self.record(uid).await;
        let doubted =
            record.is_some_and(|record| record.events.iter().any(|event| event.kind == EventKind::InDoubt));
        let mut again = BTreeMap::new();
        for recipient in recipients {
            let mut seen = self.seen();
            let times = seen.taken.entry((uid, recipient.clone())).or_default();
            times.push(self.now());
            if times.len() > 1 {
                again.insert(recipient.clone(), times.len());
            }
        }
        for (recipient, times) in again {
            self.trace.note(format_args!("{recipient} has m{label} once more"));
            if doubted {
                continue;
            }
            self.trace
                .violation(format_args!("m{label} reached {recipient} {times} times, and nobody doubted it"));
        }
    }
}
