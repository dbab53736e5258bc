//! Jobs that run concurrently, and leases that outlast their time.

use bytes::Bytes;
use metrics_exporter_prometheus::PrometheusBuilder;
use postway_domain::{LeaseToken, TenantId};
use postway_store::{
    BlobNameStore as _, DirectoryStore as _, WorkStore as _,
    blob::RESERVED_FOR,
    memory::MemoryStore,
    record::{AccountWant, ClaimRequest, LeaseGrant},
};

use super::*;
use crate::{
    cluster::clock::NodeClock,
    housekeeping::retention::tests::{count, messages, start, tenant},
};

/// A clock that goes with tokio's.
struct PausedMachineClock(Instant);

impl Clock for PausedMachineClock {
    fn now(&self) -> Time {
        start().plus(RESERVED_FOR * 2 + self.0.elapsed())
    }
}

/// Longer than anything here takes, on a clock that goes only where somebody waits.
const PATIENCE: Duration = Duration::from_secs(600);

async fn wait_for(what: &str, is_so: impl AsyncFn() -> bool) {
    let reached = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, reached).await.is_ok(), "{what}");
}

#[tokio::test(start_paused = true)]
async fn work_of_the_dead_is_taken_over_and_counted_while_another_duty_hangs() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let store = Arc::new(MemoryStore::shared());
    let depot = Arc::new(BlobStorage::slow_memory(Duration::from_secs(365 * 86_400)));
    for id in ["gone", "stays"] {
        tenant(&store, id, Default::default()).await;
    }
    let (gone, stays): (TenantId, TenantId) = ("gone".parse().unwrap(), "stays".parse().unwrap());
    store.change(DirectoryChange::DeleteTenant(gone.clone(), start()), None).await.unwrap();
    depot.put(&*store, &stays, Bytes::from_static(b"left behind"), start()).await.unwrap();

    let clock = Arc::new(NodeClock::from_machine(Arc::new(PausedMachineClock(Instant::now()))));
    let (address, shared): (_, Arc<dyn Store>) = (([127, 0, 0, 1], 1).into(), store.clone());
    let mark = BlobStorage::memory();
    let joined = ClusterMembership::join_as([1; 16], shared.clone(), clock.clone(), address, &mark);
    let membership = Arc::new(joined.await.unwrap());
    let housekeeping = HousekeepingDuties {
        store: shared,
        clock: clock.clone(),
        depot: depot.clone(),
        secret_key: Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).unwrap()),
        retention: config::RetentionSection { audit: None, reported: Duration::from_secs(7 * 86_400) },
        membership: membership.clone(),
    };
    let stop = CancellationToken::new();
    tokio::spawn(membership.run(stop.clone()));
    tokio::spawn(housekeeping.run(InFlightMessages::default(), MessagesInPreparation::default(), stop));
    // The sweep has come past what is left of a tenant, so it is at the blob, which takes a year.
    wait_for("the sweep to reach the blobs", async || {
        store.tenant(&gone).await.unwrap().is_some_and(|tenant| tenant.name.is_empty())
    })
    .await;

    messages(&store, "stays", MessageState::Ready, 1).await;
    let now = clock.now();
    let lease = LeaseGrant {
        incarnation: Incarnation::new(now, &mut rand::rng()),
        token: LeaseToken::new(&mut rand::rng()),
        until: now.plus(OUTSTAYED_FOR),
    };
    let key = AccountKey { tenant: stays.clone(), account: "relay".parse().unwrap() };
    let wants = vec![AccountWant::unlimited(key, 1, false)];
    let claimed = store.claim(ClaimRequest { lease, now, wants, inline_bytes_max: 9 }).await.unwrap();
    assert_eq!((claimed.len(), count(&store, "stays", MessageStatus::Sending).await), (1, 1));
    wait_for("the lease of a node that is not there to be taken back", async || {
        count(&store, "stays", MessageStatus::Ready).await == 1
    })
    .await;
    let counted = "postway_state_transitions_total{state=\"ready\"} 1";
    wait_for("what was given back to be counted", async || {
        metrics.render().lines().any(|line| line == counted)
    })
    .await;
    let left = store.condemn_blobs(clock.now(), 9).await.unwrap();
    assert_eq!(left.len(), 1, "the sweep still waits for its blob");
}

#[test]
fn a_lease_of_a_living_node_is_over_when_this_nodes_own_clock_says_so() {
    let mut met = OverdueLeases::new();
    let (one, other, start) = (verdict::sample(1), verdict::sample(2), Instant::now());
    let moved = StalledMessage { version: 9, ..other.clone() };
    let mut over = |stalled: &[&StalledMessage], after: Duration| -> Vec<MessageUid> {
        let stalled = stalled.iter().map(|one| (*one).clone()).collect();
        long_overdue(&mut met, stalled, start + after).iter().map(|one| one.uid).collect()
    };
    assert!(over(&[&one, &other], Duration::ZERO).is_empty(), "the time of day says so already");
    assert!(over(&[&one, &moved], OUTSTAYED_FOR - EVERY).is_empty());
    assert_eq!(over(&[&one, &moved], OUTSTAYED_FOR), [one.uid], "the other is another lease by now");
    assert!(over(&[], OUTSTAYED_FOR).is_empty());
    assert!(over(&[&one], OUTSTAYED_FOR).is_empty(), "it was let go meanwhile");
}
