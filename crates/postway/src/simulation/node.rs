//! A node: its lives, one after the other, each with the real subsystems.
//!
//! A life is wired as `server` wires a process, as far as sending is concerned: it joins the others, reclaims
//! its earlier life's work, and then runs dispatch, heartbeat and housekeeping.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_dispatch::{DispatchConfig, Dispatcher, transport::SmtpDeadlines};
use postway_domain::{Clock, Time, liveness::BEAT_EVERY, secret::SecretKey};
use postway_intake::MessagesInPreparation;
use postway_net::AddressGuard;
use postway_store::{LivenessRoster, Store, blob::BlobStorage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    chance::SeededChance,
    faulty_store::FaultyStore,
    life::{LifePulse, NodeLife},
    relay::SimulatedNetwork,
    world::{PlantedFlaw, SimulatedWorld},
};
use crate::{
    cluster::{clock::NodeClock, membership::ClusterMembership},
    config,
    housekeeping::HousekeepingDuties,
};

/// How long a phase of a conversation may take: shorter than in life, so that runs are, too.
const DEADLINE: Duration = Duration::from_secs(8);
/// A machine's clock that is off by more was set.
const CLOCK_STEP_MIN_MS: u64 = 3_000;
/// A move of a clock that is worth a line, and how often it is looked for.
const CLOCK_NOTED_MS: u64 = 400;
const CLOCK_WATCHED_EVERY: Duration = Duration::from_millis(100);
/// How long the start waits before it tries once more.
const START_AGAIN: Duration = Duration::from_millis(500);

/// A simulated node.
pub(super) struct SimulatedNode {
    number: usize,
    /// How far its machine's clock is off.
    skew_ms: i64,
    present: Mutex<NodePresence>,
}

/// The present life of a node.
#[derive(Default)]
struct NodePresence {
    lives: u32,
    life: Option<Arc<NodeLife>>,
    running: Option<RunningNode>,
    /// The clock of the life that takes work, or last did.
    clock: Option<Arc<NodeClock>>,
}

/// A life that has started and takes work.
struct RunningNode {
    link: Arc<dyn Store>,
    dispatcher: Dispatcher,
    stop: CancellationToken,
}

/// The clock of one machine.
struct SkewedClock {
    world: Arc<SimulatedWorld>,
    skew_ms: i64,
}

impl Clock for SkewedClock {
    fn now(&self) -> Time {
        Time::from_millis(self.world.now().as_millis() + self.skew_ms)
    }
}

impl SimulatedNode {
    pub fn new(number: usize, chance: &SeededChance) -> Self {
        let skew_ms = chance.between(0, 600) as i64 - 300;
        Self { number, skew_ms, present: Mutex::default() }
    }

    fn present(&self) -> MutexGuard<'_, NodePresence> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its store, if it takes work.
    pub fn link(&self) -> Option<Arc<dyn Store>> {
        self.present().running.as_ref().map(|running| running.link.clone())
    }

    /// The life that is lived here, if one is.
    pub fn life(&self) -> Option<Arc<NodeLife>> {
        self.present().life.clone()
    }

    /// Whether it takes work.
    pub fn is_running(&self) -> bool {
        self.present().running.is_some()
    }

    /// Whether its machine was set and it has not followed yet.
    fn is_behind_its_machine(&self) -> bool {
        let clock = self.present().clock.clone();
        clock.is_some_and(|clock| clock.machine_ahead_ms().unsigned_abs() > CLOCK_STEP_MIN_MS)
    }

    /// Its life ends: what time it went by is known to nobody if it was the last.
    fn note_end(&self, world: &SimulatedWorld) {
        if self.is_running() && self.is_behind_its_machine() {
            let others = world.nodes.iter().filter(|other| other.number != self.number);
            if !others.clone().any(Self::is_running) {
                world.lose_time();
            }
        }
    }

    /// Ends its life at once.
    pub fn crash(&self, world: &SimulatedWorld) {
        self.note_end(world);
        let mut present = self.present();
        present.running = None;
        if let Some(life) = present.life.take() {
            world.trace.note(format_args!("{} crashes", life.name));
            life.set(LifePulse::Dead);
        }
    }

    /// Ends its life in good order; whether all was finished.
    pub async fn stop(&self, world: &SimulatedWorld) -> bool {
        self.note_end(world);
        let (life, running) = {
            let mut present = self.present();
            (present.life.clone(), present.running.take())
        };
        let (Some(life), Some(RunningNode { dispatcher, stop, .. })) = (life, running) else { return true };
        world.trace.note(format_args!("{} stops", life.name));
        let finished = dispatcher.drain().await;
        stop.cancel();
        // Its subsystems end: it leaves the register.
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.trace.note(format_args!("{} has stopped, finished: {finished}", life.name));
        life.set(LifePulse::Dead);
        let mut present = self.present();
        if present.life.as_ref().is_some_and(|now| Arc::ptr_eq(now, &life)) {
            present.life = None;
        }
        finished
    }

    /// Begins a life, unless one is lived here.
    pub fn start(&self, world: &Arc<SimulatedWorld>) {
        let mut present = self.present();
        if present.life.is_some() {
            return;
        }
        present.lives += 1;
        let name = format!("n{}.{}", self.number, present.lives);
        world.trace.note(format_args!("{name} starts"));
        let life = Arc::new(NodeLife::new(self.number, name, world.chance.hits(500)));
        present.life = Some(life.clone());
        drop(present);
        tokio::spawn(live(world.clone(), life));
    }
}

/// Makes a life believe that its heartbeats were written, even if they were not.
async fn believe_beating(roster: Arc<LivenessRoster>) {
    loop {
        roster.note_beat(Instant::now());
        tokio::time::sleep(BEAT_EVERY).await;
    }
}

/// Notes when a life's clock was moved.
async fn watch_clock(world: Arc<SimulatedWorld>, life: Arc<NodeLife>, clock: Arc<NodeClock>) {
    let off = || clock.now().as_millis() - world.now().as_millis();
    let mut noted = off();
    while life.pulse() != LifePulse::Dead && !world.is_healed() {
        if (off() - noted).unsigned_abs() > CLOCK_NOTED_MS {
            noted = off();
            world.trace.note(format_args!("the clock of {} is off by {noted} ms", life.name));
        }
        tokio::time::sleep(CLOCK_WATCHED_EVERY).await;
    }
}

/// A life up to the point where it takes work.
async fn live(world: Arc<SimulatedWorld>, life: Arc<NodeLife>) {
    let node = &world.nodes[life.node];
    let link: Arc<dyn Store> = Arc::new(FaultyStore::new(world.clone(), life.clone()));
    let machine = SkewedClock { world: world.clone(), skew_ms: node.skew_ms };
    let clock = Arc::new(NodeClock::from_machine(Arc::new(machine)));
    tokio::spawn(watch_clock(world.clone(), life.clone(), clock.clone()));
    let (depot, identity) = (Arc::new(BlobStorage::memory()), [life.node as u8 + 1; 16]);
    let secret_key = Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).expect("a key of this length"));
    let address = ([127, 0, 0, 1], 8_025).into();
    let membership = loop {
        match ClusterMembership::join_as(identity, link.clone(), clock.clone(), address, &depot).await {
            Ok(membership) => break Arc::new(membership),
            Err(_) => tokio::time::sleep(START_AGAIN).await,
        }
    };
    let housekeeping = HousekeepingDuties {
        store: link.clone(),
        clock: clock.clone(),
        depot: depot.clone(),
        secret_key: secret_key.clone(),
        retention: config::RetentionSection { audit: None, reported: Duration::from_secs(7 * 86_400) },
        membership: membership.clone(),
    };
    while housekeeping.reclaim().await.is_err() {
        tokio::time::sleep(START_AGAIN).await;
    }
    life.acts().await;
    if world.has(PlantedFlaw::IgnoresIsolation) {
        tokio::spawn(believe_beating(membership.roster()));
    }
    let config = DispatchConfig {
        roster: membership.roster(),
        ehlo_name: "node.example".to_owned(),
        in_flight_max: 8,
        deadlines: SmtpDeadlines::uniform(DEADLINE),
        drain: Duration::from_secs(30),
        guard: Arc::new(AddressGuard::default()),
        dial: Arc::new(SimulatedNetwork { world: world.clone(), life: life.clone() }),
    };
    let dispatcher = Dispatcher::start(config, link.clone(), depot, clock.clone(), secret_key);
    let stop = CancellationToken::new();
    tokio::spawn(housekeeping.run(dispatcher.in_hand(), MessagesInPreparation::default(), stop.clone()));
    tokio::spawn(membership.run(stop.clone()));
    world.trace.note(format_args!("{} takes work", life.name));
    let mut present = node.present();
    if present.life.as_ref().is_some_and(|now| Arc::ptr_eq(now, &life)) {
        present.running = Some(RunningNode { link, dispatcher, stop });
        present.clock = Some(clock);
    }
}
