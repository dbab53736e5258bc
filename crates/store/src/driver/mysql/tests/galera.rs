//! What is different on a cluster, where rows are locked on one node only.

use std::{sync::Arc, time::Duration};

use postway_domain::MessageStatus;
use postway_testkit::galera::GaleraCluster;
use tokio::task::spawn_blocking;

use crate::{
    conformance::{
        sample::{self, Sample, TENANT},
        stage,
    },
    driver::mysql::MysqlStore,
    port::Store,
    record::{Acceptance, ChangeResult, DirectoryChange},
};

/// How often the two meet, each time with another distance.
const MEETINGS: u32 = 150;

async fn until_seen(store: &Arc<dyn Store>, account: &str) {
    let (tenant, id) = (TENANT.parse().unwrap(), account.parse().unwrap());
    while store.account(&tenant, &id).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// An account is deleted by one node while mail for it comes to another: one of the two is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_and_the_end_of_its_account_do_not_miss_each_other() {
    let cluster = Arc::new(spawn_blocking(GaleraCluster::start).await.unwrap());
    let urls = cluster.create_database();
    let first: Arc<dyn Store> = Arc::new(MysqlStore::open(&urls[0]).await.unwrap());
    stage::open(&first).await;
    let second: Arc<dyn Store> = Arc::new(MysqlStore::open(&urls[1]).await.unwrap());
    first.beat(&stage::beat_of(1)).await.unwrap();
    second.beat(&stage::beat_of(2)).await.unwrap();
    until_seen(&second, sample::ACCOUNT).await;
    let before = first.stats(None, sample::at(0)).await.unwrap().by_status;

    let (mut stored, mut deleted, mut missed) = (0, 0, 0);
    for n in 0..MEETINGS {
        let name = format!("account-{n}");
        assert!(first.create_account(sample::account(TENANT, &name)).await.unwrap());
        until_seen(&second, &name).await;
        let distance = Duration::from_micros(u64::from(n % 30) * 200);
        let accept = async {
            tokio::time::sleep(distance).await;
            second.accept(vec![Sample::new(n).from(TENANT, &name).build()]).await.unwrap()
        };
        let delete = async {
            tokio::time::sleep(Duration::from_millis(3)).await;
            first.change(DirectoryChange::DeleteAccount(sample::key(TENANT, &name)), None).await.unwrap()
        };
        let (answers, change) = tokio::join!(accept, delete);
        let is_stored = matches!(answers[..], [Acceptance::Accepted { .. }]);
        stored += u32::from(is_stored);
        deleted += u32::from(change == ChangeResult::Done);
        missed += u32::from(is_stored && change == ChangeResult::Done);
    }
    assert_eq!(missed, 0, "{stored} were stored, {deleted} accounts were deleted");
    assert!(stored > 0 && deleted > 0, "{stored} were stored, {deleted} accounts were deleted");
    // And the counters that both wrote are right.
    let after = first.stats(None, sample::at(0)).await.unwrap().by_status;
    let waiting = |counts: &std::collections::BTreeMap<MessageStatus, i64>| {
        counts.get(&MessageStatus::Ready).copied().unwrap_or(0)
    };
    assert_eq!(waiting(&after) - waiting(&before), i64::from(stored), "{before:?} {after:?}");
    first.close().await;
    second.close().await;
}
