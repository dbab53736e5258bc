//! The conformance suite on a real PostgreSQL, and what concerns this database alone.

mod cut;
mod migration;
mod statements;

use std::{sync::Arc, time::Duration};

use postway_domain::message::AttemptOutcome;
use postway_testkit::{postgres::PostgresDatabase, tcp_proxy::TcpProxy};
use sqlx::{Executor, PgPool};

use super::{PostgresStore, migrate};
use crate::{
    conformance::{
        sample::{self, Sample, at},
        stage,
    },
    driver::silent_server,
    error::StoreError,
    port::Store,
    record::{Acceptance, FeedPosition, MessageFilter},
    sql::durability::DurabilityRisk,
};

/// Ends every connection of the store, and waits until they are gone.
const END_ALL: &str = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
     WHERE datname = current_database() AND application_name = 'postway'";

async fn postgres() -> (Arc<dyn Store>, PostgresDatabase) {
    let database = PostgresDatabase::create();
    let store = PostgresStore::open(&database.url()).await.unwrap();
    (Arc::new(store), database)
}

async fn postgres_again(database: &PostgresDatabase) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open(&database.url()).await.unwrap())
}

mod conformance {
    use super::{postgres, postgres_again};

    crate::conformance_tests!(postgres);
    crate::conformance_again_tests!(postgres, postgres_again, together);
}

/// The wake-up comes by NOTIFY, long before anyone would poll.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_the_queue_and_wake_each_other() {
    let (first, database) = postgres().await;
    stage::open(&first).await;
    let second: Arc<dyn Store> = Arc::new(PostgresStore::open(&database.url()).await.unwrap());
    let mut n = 0;
    // Listening takes a moment to begin; a hint before that is lost, as hints may be.
    loop {
        stage::accept(&first, Sample::new(n)).await;
        n += 1;
        let woken = tokio::time::timeout(Duration::from_millis(500), second.woken()).await;
        if woken.is_ok_and(|keys| keys.contains(&sample::relay())) {
            break;
        }
        assert!(n < 40, "never woken");
    }
    assert_eq!(stage::claim(&second, 1, at(1), 99).await.len(), n as usize);
    assert!(stage::claim(&first, 2, at(1), 99).await.is_empty());
}

#[tokio::test]
async fn a_node_stops_writing_once_the_schema_has_left_it_behind() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let beat = stage::beat_of(1);
    store.beat(&beat).await.unwrap();
    database.run("INSERT INTO schema_migration (version, name, writable_from) VALUES (99, 'expanded', 1)");
    store.beat(&beat).await.unwrap();
    stage::accept(&store, Sample::new(1)).await;
    assert!(PostgresStore::open(&database.url()).await.is_ok(), "an expanded schema is no obstacle");
    database.run("INSERT INTO schema_migration (version, name) VALUES (100, 'contracted')");
    assert!(matches!(store.beat(&beat).await, Err(StoreError::SchemaTooNew { found: 100, .. })));
    let refused = store.accept(vec![Sample::new(2).build()]).await;
    assert!(matches!(refused, Err(StoreError::SchemaTooNew { .. })));
    assert!(matches!(store.ping().await, Err(StoreError::SchemaTooNew { .. })));
    database.run("DELETE FROM schema_migration WHERE version = 100");
    store.beat(&beat).await.unwrap();
    stage::accept(&store, Sample::new(2)).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (store, database) = postgres().await;
    store.close().await;
    database.run("INSERT INTO schema_migration (version, name) VALUES (99, 'from the future')");
    let opened = PostgresStore::open(&database.url()).await;
    assert!(matches!(opened, Err(StoreError::SchemaTooNew { found: 99, .. })));
    let states = PostgresStore::migration_status(&database.url()).await;
    assert!(matches!(states, Err(StoreError::SchemaTooNew { .. })));
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let database = PostgresDatabase::create();
    let url = database.url();
    assert!(PostgresStore::migration_status(&url).await.unwrap().iter().all(|state| !state.applied));
    assert_eq!(PostgresStore::migrate(&url).await.unwrap().len(), migrate::MIGRATIONS.len());
    assert!(PostgresStore::migrate(&url).await.unwrap().is_empty());
    assert!(PostgresStore::migration_status(&url).await.unwrap().iter().all(|state| state.applied));
}

#[tokio::test]
async fn a_wrong_address_says_what_to_check() {
    let database = PostgresDatabase::create();
    let missing = format!("{}_missing", database.url());
    for (url, transient, reported) in [
        ("mysql://somewhere/db", false, "postgres://"),
        (missing.as_str(), false, "check the database URL"),
        ("postgres://someone:hidden@127.0.0.1:1/db", true, "127.0.0.1:1"),
    ] {
        let Err(error) = PostgresStore::open(url).await else { panic!("{url} was opened") };
        assert_eq!(error.is_transient(), transient, "{error}");
        assert!(error.to_string().contains(reported), "{error}");
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
}

#[tokio::test]
async fn lost_connections_are_replaced() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    for round in 0..3 {
        let message = Sample::new(round).build();
        let uid = message.uid;
        store.accept(vec![message]).await.unwrap();
        assert_ne!(database.run(END_ALL), "0");
        // One for each writer.
        store.apply(Vec::new()).await.unwrap();
        store.apply(Vec::new()).await.unwrap();
        assert!(store.body(uid).await.unwrap().is_some(), "round {round}");
    }
}

/// All connections for reading wait at a locked table, and more readers wait for one of them.
#[tokio::test]
async fn a_heartbeat_waits_for_nobody_who_reads() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let uid = stage::accept(&store, Sample::new(1)).await;
    let mut locker = PgPool::connect(&database.url()).await.unwrap().acquire().await.unwrap();
    locker.execute("BEGIN; LOCK TABLE content IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let readers: Vec<_> = (0..32)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.body(uid).await })
        })
        .collect();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    stage::until("every connection for reading waits", async || database.run(waiting) == "8").await;
    for _ in 0..5 {
        store.beat(&stage::beat_of(1)).await.unwrap();
    }
    assert_eq!(database.run(waiting), "8");
    readers.iter().for_each(|reader| reader.abort());
}

/// A server whose machine lost its power says nothing, and ends no connection.
#[tokio::test]
async fn a_server_that_fell_silent_keeps_nobody_for_ever() {
    let database = PostgresDatabase::create();
    let cable = TcpProxy::to(&database.url()).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(cable.url()).await.unwrap());
    stage::open(&store).await;
    let uid = stage::accept(&store, Sample::new(1)).await;
    assert!(store.body(uid).await.unwrap().is_some());
    cable.silence();
    silent_server::everything_ends(&store, uid).await;
}

/// A relay may answer anything, and its answer must be kept all the same.
#[tokio::test]
async fn text_with_nul_is_stored_and_asked_for() {
    let (store, _database) = postgres().await;
    stage::open(&store).await;
    let mut claimed = stage::accept_and_claim(&store, Sample::new(1), 1).await;
    assert!(stage::commit_wire(&store, &mut claimed, at(1)).await);
    let mut change = stage::outcome(&claimed, true, AttemptOutcome::Sent, at(2));
    if let Some(attempt) = &mut change.attempt {
        attempt.reply = Some(sample::reply(250, "2.0.0 ok \0 queued"));
    }
    assert_eq!(store.apply(vec![change]).await.unwrap(), [true]);
    let record = stage::record(&store, claimed.uid).await;
    let reply = record.attempts[0].reply.as_ref().unwrap();
    assert!(reply.text.ends_with("ok \u{fffd} queued"), "{reply:?}");
    let filter = MessageFilter { tag: Some("\0".into()), ..MessageFilter::default() };
    assert!(store.messages(&sample::tenant(), &filter, None, 10).await.unwrap().is_empty());
}

/// As the server of the tests is: it spares them the disk.
#[tokio::test]
async fn a_server_that_does_not_sync_its_commits_is_told() {
    let (store, database) = postgres().await;
    let reported = |risks: &[DurabilityRisk]| -> Vec<(&str, String)> {
        risks.iter().map(|risk| (risk.setting, risk.value.clone())).collect()
    };
    let expected = [("fsync", "off".to_owned())];
    assert_eq!(reported(&store.durability_risks()), expected);
    assert_eq!(reported(&PostgresStore::facts(&database.url()).await.unwrap().risks), expected);
}

/// Two writers, one server: what they undo of each other is done again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_tried_again() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let mut first = stage::accept_and_claim(&store, Sample::new(1), 1).await;
    let mut second = stage::accept_and_claim(&store, Sample::new(2), 2).await;
    for claimed in [&mut first, &mut second] {
        assert!(stage::commit_wire(&store, claimed, at(1)).await);
    }
    let (low, high) = if first.uid < second.uid { (first, second) } else { (second, first) };
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut other = pool.begin().await.unwrap();
    let lock = "SELECT uid FROM message WHERE uid = $1 FOR UPDATE";
    sqlx::query("SET LOCAL deadlock_timeout = '60s'").execute(&mut *other).await.unwrap();
    sqlx::query(lock).bind(high.uid.as_bytes().as_slice()).execute(&mut *other).await.unwrap();
    let changes = [&low, &high].map(|claimed| stage::outcome(claimed, true, AttemptOutcome::Sent, at(5)));
    let applied = tokio::spawn({
        let store = store.clone();
        async move { store.apply(changes.into()).await }
    });
    // The writer holds the lower one and waits for the higher; now the other wants the lower. The writer
    // looks for deadlocks after a second, the other after a minute: so the writer is the one to be undone.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&pool).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    sqlx::query(lock).bind(low.uid.as_bytes().as_slice()).execute(&mut *other).await.unwrap();
    other.rollback().await.unwrap();
    assert_eq!(applied.await.unwrap().unwrap(), [true, true]);
}

/// An account that is being deleted is waited for, and then it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_for_an_account_that_is_being_deleted_is_not_acknowledged() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut deleting = pool.begin().await.unwrap();
    let delete = "DELETE FROM account WHERE tenant = 'acme' AND id = 'relay'";
    sqlx::query(delete).execute(&mut *deleting).await.unwrap();
    let accepted = tokio::spawn({
        let store = store.clone();
        async move { store.accept(vec![Sample::new(1).build()]).await }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&pool).await.unwrap() == 0 {
        assert!(!accepted.is_finished(), "it was not waited for");
        tokio::task::yield_now().await;
    }
    deleting.commit().await.unwrap();
    assert_eq!(accepted.await.unwrap().unwrap(), [Acceptance::AccountGone]);
}

/// An id is taken before the commit, a place after it: what commits late comes later, and is not skipped.
#[tokio::test]
async fn a_page_that_commits_late_is_told() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let early = stage::accept(&store, Sample::new(1)).await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut slow = pool.begin().await.unwrap();
    let page = "INSERT INTO journal (tenant, at, entries) SELECT tenant, at, entries FROM journal";
    sqlx::query(page).execute(&mut *slow).await.unwrap();
    let late = stage::accept(&store, Sample::new(2)).await;
    let reported = async || {
        while store.sequence(9).await.unwrap() > 0 {}
        while store.fan_out(at(5), 9).await.unwrap() > 0 {}
        let feed = store.feed(&sample::tenant(), FeedPosition::default(), 9).await.unwrap();
        feed.iter().map(|one| one.uid).collect::<Vec<_>>()
    };
    assert_eq!(reported().await, [early, late]);
    slow.commit().await.unwrap();
    assert_eq!(reported().await, [early, late, early]);
    let done = database.run("SELECT position FROM progress ORDER BY name");
    assert_eq!(done.split_whitespace().collect::<Vec<_>>(), ["3", "3"]);
}
