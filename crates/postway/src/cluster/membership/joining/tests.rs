//! Nodes that come and go, on a clock that is not real.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use postway_domain::{Clock, Time};
use postway_store::{NodeStore as _, blob::BlobStorage, memory::MemoryStore, record::NodeBeat};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cluster::membership::ClusterMembership;

/// Nodes' times differ from the true one, and from each other's, by less.
const BOUND_MS: i64 = 1_500;

/// A machine whose clock goes with tokio's, and can be set.
struct SettableMachine {
    started: Instant,
    set_by_ms: AtomicI64,
}

impl SettableMachine {
    fn new() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), set_by_ms: AtomicI64::new(0) })
    }

    fn set_by(&self, ms: i64) {
        self.set_by_ms.store(ms, Ordering::Relaxed);
    }
}

impl Clock for SettableMachine {
    fn now(&self) -> Time {
        let now = Time::from_millis(1_000_000_000).plus(self.started.elapsed());
        Time::from_millis(now.as_millis() + self.set_by_ms.load(Ordering::Relaxed))
    }
}

/// A node that runs.
struct JoinedNode {
    clock: Arc<NodeClock>,
    machine: Arc<SettableMachine>,
    membership: Arc<ClusterMembership>,
    stop: CancellationToken,
}

impl JoinedNode {
    /// Joins, and beats only after a while: so long it is held up.
    async fn start(
        store: &Arc<MemoryStore>,
        number: u8,
        started: Instant,
        set_by: i64,
        held_up: Duration,
    ) -> Self {
        let machine = Arc::new(SettableMachine { started, set_by_ms: AtomicI64::new(set_by) });
        let clock = Arc::new(NodeClock::from_machine(machine.clone()));
        let store: Arc<dyn Store> = store.clone();
        let (address, depot) = (([127, 0, 0, 1], 1).into(), BlobStorage::memory());
        let joined = ClusterMembership::join_as([number; 16], store, clock.clone(), address, &depot);
        let membership = Arc::new(joined.await.unwrap());
        tokio::time::sleep(held_up).await;
        let stop = CancellationToken::new();
        tokio::spawn(membership.clone().run(stop.clone()));
        Self { clock, machine, membership, stop }
    }

    /// How far its time is from the true one.
    fn error_ms(&self, started: Instant) -> i64 {
        let truth = SettableMachine { started, set_by_ms: AtomicI64::new(0) }.now();
        self.clock.now().as_millis() - truth.as_millis()
    }
}

#[tokio::test(start_paused = true)]
async fn time_does_not_walk_away_over_rolling_restarts_with_pauses() {
    let (store, started) = (Arc::new(MemoryStore::shared()), Instant::now());
    let mut nodes = vec![
        JoinedNode::start(&store, 1, started, 0, Duration::ZERO).await,
        JoinedNode::start(&store, 2, started, 0, Duration::from_millis(700)).await,
    ];
    for round in 0..10u8 {
        tokio::time::sleep(Duration::from_secs(25)).await;
        nodes.remove(0).stop.cancel();
        let held_up = Duration::from_millis(1_700 + u64::from(round) * 50);
        nodes.push(JoinedNode::start(&store, round + 3, started, 0, held_up).await);
        tokio::time::sleep(Duration::from_secs(25)).await;
        for node in &nodes {
            assert!(
                node.error_ms(started).abs() < BOUND_MS,
                "{} ms in round {round}",
                node.error_ms(started)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_follows_a_machine_whose_clock_is_wrong_or_is_set() {
    let (store, started) = (Arc::new(MemoryStore::shared()), Instant::now());
    let hour = 3_600_000;
    let mut nodes = vec![JoinedNode::start(&store, 1, started, 0, Duration::ZERO).await];
    nodes.push(JoinedNode::start(&store, 2, started, hour, Duration::from_millis(300)).await);
    nodes.push(JoinedNode::start(&store, 3, started, 0, Duration::from_millis(300)).await);
    let check = |nodes: &[JoinedNode], when: &str| {
        for (n, node) in nodes.iter().enumerate() {
            assert!(node.error_ms(started).abs() < BOUND_MS, "{} ms of {n} {when}", node.error_ms(started));
        }
    };
    tokio::time::sleep(Duration::from_secs(30)).await;
    check(&nodes, "with one that came with a wrong clock");
    nodes[0].machine.set_by(2 * hour);
    nodes[2].machine.set_by(-hour);
    for _ in 0..30 {
        for node in &nodes {
            node.membership.follow_machine().await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    check(&nodes, "after clocks were set");
    nodes.remove(0).stop.cancel();
    tokio::time::sleep(Duration::from_secs(30)).await;
    check(&nodes, "after the oldest has left");
}

#[tokio::test(start_paused = true)]
async fn a_node_alone_follows_its_machine_when_that_is_set() {
    let (store, started) = (Arc::new(MemoryStore::new()), Instant::now());
    let node = JoinedNode::start(&store, 1, started, 0, Duration::ZERO).await;
    for set_by in [3_600_000, -3_600_000] {
        node.machine.set_by(set_by);
        assert!((node.error_ms(started) - set_by).abs() >= 3_600_000, "not by itself");
        node.membership.follow_machine().await.unwrap();
        assert_eq!(node.error_ms(started), set_by);
    }
}

fn beat_of(number: u8, now: Time) -> NodeBeat {
    NodeBeat {
        incarnation: Incarnation::from_bytes([number; 16]),
        identity: [number; 16],
        name: "other".to_owned(),
        address: "127.0.0.1:2".to_owned(),
        version: String::new(),
        started_at: now,
        at: now,
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_while_it_joined_takes_over_no_old_time() {
    let store = MemoryStore::shared();
    let machine = SettableMachine::new();
    let clock = NodeClock::from_machine(machine.clone());
    let beat = async || drop(store.beat(&beat_of(2, machine.now())).await.unwrap());
    beat().await;
    let stands_still = async {
        tokio::time::sleep(POLL_EVERY / 2).await;
        beat().await;
        tokio::time::advance(Duration::from_secs(36)).await;
    };
    let (agreed, ()) = tokio::join!(agree(&store, &clock, &[1; 16]), stands_still);
    assert!(agreed.unwrap().is_none());
    assert_eq!(clock.now(), machine.now(), "the beat was 36 seconds old when it was heard");
}

#[tokio::test(start_paused = true)]
async fn a_node_does_not_start_while_another_beats_under_its_identity() {
    let store = MemoryStore::shared();
    let machine = SettableMachine::new();
    let clock = NodeClock::from_machine(machine.clone());
    store.beat(&beat_of(2, machine.now())).await.unwrap();
    assert!(agree(&store, &clock, &[2; 16]).await.unwrap().is_none(), "an earlier life does not move");
    let beating = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        store.beat(&beat_of(2, machine.now())).await.unwrap();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        found = agree(&store, &clock, &[2; 16]) => assert_eq!(found.unwrap().map(|node| node.address), Some("127.0.0.1:2".to_owned())),
        () = beating => {}
    }
}
