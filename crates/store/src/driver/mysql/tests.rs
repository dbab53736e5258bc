//! The conformance suite on MariaDB or MySQL, and what concerns this database alone.

use std::sync::Arc;

use bytes::Bytes;
use postway_domain::{MessageStatus, message::AttemptOutcome};
use postway_testkit::{mariadb::MariaDb, tcp_proxy::TcpProxy};
use sqlx::{Executor, MySqlConnection, MySqlPool, Row, SqlSafeStr};

use super::{
    MysqlStore, accept, accept_fence, change, claim, dedup, due_work, engine, migrate, read,
    recipients_and_attempts,
};
use crate::{
    admin,
    conformance::{
        sample::{self, Sample, at},
        stage,
    },
    driver::silent_server,
    error::StoreError,
    journal,
    port::{OperationStore, Store},
    queue::{lane_upkeep, preparation, queue_state},
    reading::queue_stats,
    record::{Acceptance, FeedPosition},
    reporting,
    sql::{durability::LossMoment, multi_row::MultiRow, waiting_lanes},
};

/// A fresh database; it goes with the server at the end of the tests.
fn database() -> String {
    MariaDb::shared().create_database()
}

async fn mariadb() -> (Arc<dyn Store>, String) {
    let url = database();
    let store = MysqlStore::open(&url).await.unwrap();
    (Arc::new(store), url)
}

async fn mariadb_again(url: &str) -> Arc<dyn Store> {
    Arc::new(MysqlStore::open(url).await.unwrap())
}

mod galera;

mod conformance {
    use super::{mariadb, mariadb_again};

    crate::conformance_tests!(mariadb);
    crate::conformance_again_tests!(mariadb, mariadb_again, together);
}

#[tokio::test]
async fn two_nodes_share_the_queue() {
    let (first, url) = mariadb().await;
    stage::open(&first).await;
    let second: Arc<dyn Store> = Arc::new(MysqlStore::open(&url).await.unwrap());
    stage::accept(&first, Sample::new(1)).await;
    assert_eq!(stage::claim(&second, 1, at(1), 9).await.len(), 1);
    assert!(stage::claim(&first, 2, at(1), 9).await.is_empty());
}

#[tokio::test]
async fn a_node_stops_writing_once_the_schema_has_left_it_behind() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    let beat = stage::beat_of(1);
    store.beat(&beat).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    let run = |sql: &'static str| sqlx::raw_sql(sql).execute(&pool);
    run("INSERT INTO schema_migration (version, name, writable_from) VALUES (99, 'expanded', 1)")
        .await
        .unwrap();
    store.beat(&beat).await.unwrap();
    stage::accept(&store, Sample::new(1)).await;
    run("INSERT INTO schema_migration (version, name) VALUES (100, 'contracted')").await.unwrap();
    assert!(matches!(store.beat(&beat).await, Err(StoreError::SchemaTooNew { found: 100, .. })));
    let refused = store.accept(vec![Sample::new(2).build()]).await;
    assert!(matches!(refused, Err(StoreError::SchemaTooNew { .. })));
    run("DELETE FROM schema_migration WHERE version = 100").await.unwrap();
    store.beat(&beat).await.unwrap();
    stage::accept(&store, Sample::new(2)).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (store, url) = mariadb().await;
    store.close().await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    sqlx::query("INSERT INTO schema_migration (version, name) VALUES (99, 'from the future')")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    assert!(matches!(MysqlStore::open(&url).await, Err(StoreError::SchemaTooNew { found: 99, .. })));
    let states = MysqlStore::migration_status(&url).await;
    assert!(matches!(states, Err(StoreError::SchemaTooNew { .. })));
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let url = database();
    assert!(MysqlStore::migration_status(&url).await.unwrap().iter().all(|state| !state.applied));
    assert_eq!(MysqlStore::migrate(&url).await.unwrap().len(), super::migrate::MIGRATIONS.len());
    assert!(MysqlStore::migrate(&url).await.unwrap().is_empty());
    assert!(MysqlStore::migration_status(&url).await.unwrap().iter().all(|state| state.applied));
}

/// DDL commits by itself, so a crash leaves tables without their record.
#[tokio::test]
async fn a_migration_cut_short_is_run_again() {
    let url = database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    sqlx::raw_sql("DELETE FROM schema_migration; DROP TABLE tally").execute(&pool).await.unwrap();
    assert_eq!(MysqlStore::migrate(&url).await.unwrap().len(), super::migrate::MIGRATIONS.len());
    sqlx::query("SELECT shard FROM tally").fetch_all(&pool).await.unwrap();
}

#[tokio::test]
async fn migrations_have_the_numbers_and_names_of_the_other_databases() {
    let folder = tempfile::TempDir::new().unwrap();
    let sqlite =
        crate::driver::sqlite::SqliteStore::migration_status(&folder.path().join("a.db")).await.unwrap();
    let names = |migration: &super::Migration| (migration.version, migration.name);
    let theirs: Vec<_> = sqlite.iter().map(|state| names(&state.migration)).collect();
    assert_eq!(super::migrate::MIGRATIONS.iter().map(names).collect::<Vec<_>>(), theirs);
}

#[tokio::test]
async fn a_server_that_is_away_is_said_to_be() {
    let away = MysqlStore::open("mysql://root@127.0.0.1:1/mail").await;
    assert!(matches!(away, Err(StoreError::Unavailable(text)) if text.contains("mail on 127.0.0.1:1")));
}

/// Existing connections are cut off; the next call makes a new one.
#[tokio::test]
async fn a_lost_connection_is_replaced() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    stage::accept(&store, Sample::new(1)).await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    let writers = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist \
         WHERE db = DATABASE() AND id <> CONNECTION_ID()";
    for row in sqlx::query(writers).fetch_all(&pool).await.unwrap() {
        let id: i64 = row.try_get(0).unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("KILL {id}"))).execute(&pool).await.unwrap();
    }
    for n in 2..6 {
        stage::accept(&store, Sample::new(n)).await;
    }
    store.ping().await.unwrap();
    store.close().await;
}

/// All connections for reading wait at a locked table, and more readers wait for one of them.
#[tokio::test]
async fn a_heartbeat_waits_for_nobody_who_reads() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    let uid = stage::accept(&store, Sample::new(1)).await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    let mut locker = pool.acquire().await.unwrap();
    locker.execute("LOCK TABLES content WRITE").await.unwrap();
    let readers: Vec<_> = (0..32)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.body(uid).await })
        })
        .collect();
    let waiting = async || {
        let waiting = "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock'";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap()
    };
    stage::until("every connection for reading waits", async || waiting().await == 8).await;
    for _ in 0..5 {
        store.beat(&stage::beat_of(1)).await.unwrap();
    }
    assert_eq!(waiting().await, 8);
    readers.iter().for_each(|reader| reader.abort());
    locker.execute("UNLOCK TABLES").await.unwrap();
}

/// A server whose machine lost its power says nothing, and ends no connection.
#[tokio::test]
async fn a_server_that_fell_silent_keeps_nobody_for_ever() {
    let cable = TcpProxy::to(&database()).await;
    let store: Arc<dyn Store> = Arc::new(MysqlStore::open(cable.url()).await.unwrap());
    stage::open(&store).await;
    let uid = stage::accept(&store, Sample::new(1)).await;
    assert!(store.body(uid).await.unwrap().is_some());
    cable.silence();
    silent_server::everything_ends(&store, uid).await;
}

#[tokio::test]
async fn a_message_larger_than_a_packet_is_refused_with_what_to_do() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    let packet: u64 = sqlx::query_scalar("SELECT @@max_allowed_packet").fetch_one(&pool).await.unwrap();
    let sized = |n: u32, bytes: usize| {
        Sample::new(n).content(|content| content.raw = Bytes::from(vec![b'x'; bytes]).into())
    };
    let large = store.accept(vec![sized(1, packet as usize).build()]).await;
    assert!(matches!(large, Err(StoreError::Unexpected(text)) if text.contains("max_allowed_packet")));
    // Together they are larger than a packet, one by one they are not.
    let many: Vec<_> = (2..8).map(|n| sized(n, 3 * 1024 * 1024).build()).collect();
    let accepted = store.accept(many).await.unwrap();
    assert_eq!(accepted, vec![Acceptance::Accepted { handed_over: false }; 6]);
    store.close().await;
}

/// Character comparison would ignore the space.
#[tokio::test]
async fn keys_that_differ_in_a_trailing_space_are_two() {
    let (store, _url) = mariadb().await;
    stage::open(&store).await;
    stage::accept(&store, Sample::new(1).key("k")).await;
    stage::accept(&store, Sample::new(2).key("k ").body(2)).await;
    store.close().await;
}

/// The key of a deleted message is free once its time is over.
#[tokio::test]
async fn a_tombstone_whose_time_is_over_is_taken_over() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    let first = stage::accept(&store, Sample::new(1).key("k")).await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    sqlx::query("UPDATE dedup SET expires_at = ?").bind(at(100).as_millis()).execute(&pool).await.unwrap();
    let repeat = stage::offer(&store, Sample::new(2).key("k").created(99)).await;
    assert_eq!(repeat, Acceptance::Repeat { uid: first });
    let third = stage::accept(&store, Sample::new(3).key("k").created(100)).await;
    let repeat = stage::offer(&store, Sample::new(4).key("k").created(5_000)).await;
    assert_eq!(repeat, Acceptance::Repeat { uid: third });
    store.close().await;
}

/// Clients repeat their keys in any order while workers claim and settle: writers that meet wait or try
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_meet_lose_nothing_and_send_nothing_twice() {
    const CLIENTS: u32 = 8;
    const KEYS: u32 = 64;
    let (store, _url) = mariadb().await;
    stage::open(&store).await;
    let clients = (0..CLIENTS).map(|client| {
        let store = store.clone();
        async move {
            let mut accepted = 0;
            for part in 0..KEYS / 8 {
                // An odd factor: each client has another order of the same keys.
                let keys = (0..8).map(|n| ((part * 8 + n) * (2 * client + 1)) % KEYS);
                let offered = keys.map(|key| Sample::new(client * KEYS + key).key(&key.to_string()).build());
                let answers = store.accept(offered.collect()).await.unwrap();
                accepted += answers.iter().filter(|one| matches!(one, Acceptance::Accepted { .. })).count();
            }
            accepted
        }
    });
    let workers = (1..=4i64).map(|worker| {
        let store = store.clone();
        async move {
            let mut sent = 0;
            while store.stats(None, at(1)).await.unwrap().by_status.get(&MessageStatus::Sent)
                != Some(&KEYS.into())
            {
                let mut claimed = stage::claim(&store, worker, at(1), 7).await;
                let permissions = claimed.iter().map(|one| stage::permission(one, at(2))).collect();
                assert!(store.wire_commit(permissions).await.unwrap().into_iter().all(|held| held));
                claimed.iter_mut().for_each(|one| one.version += 1);
                let ended = claimed.iter().map(|one| stage::outcome(one, true, AttemptOutcome::Sent, at(3)));
                let held = store.apply(ended.collect()).await.unwrap();
                assert!(held.iter().all(|held| *held));
                sent += held.len();
            }
            sent
        }
    });
    let clients = tokio::spawn(stage::all_at_once(clients.collect::<Vec<_>>()));
    let sent: usize = stage::all_at_once(workers).await.into_iter().sum();
    let accepted: usize = clients.await.unwrap().into_iter().sum();
    assert_eq!((accepted, sent), (KEYS as usize, KEYS as usize));
    store.close().await;
}

/// An id is taken before the commit, a place after it: what commits late comes later, and is not skipped.
#[tokio::test]
async fn a_page_that_commits_late_is_told() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    let early = stage::accept(&store, Sample::new(1)).await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    let page = sqlx::query_scalar("SELECT entries FROM journal").fetch_one(&pool).await;
    let page: Vec<u8> = page.unwrap();
    let mut slow = pool.begin().await.unwrap();
    let insert = sqlx::query("INSERT INTO journal (tenant, at, entries) VALUES (?, ?, ?)");
    let insert = insert.bind(sample::TENANT).bind(at(0).as_millis()).bind(page);
    insert.execute(&mut *slow).await.unwrap();
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
    let done: Vec<i64> = sqlx::query_scalar("SELECT position FROM progress").fetch_all(&pool).await.unwrap();
    assert_eq!(done, [3, 3]);
    store.close().await;
}

fn multi_row() -> Vec<&'static MultiRow> {
    vec![
        &dedup::INSERT_DEDUP,
        &dedup::FIND_DEDUP,
        &dedup::DROP_DEDUP,
        &accept::INSERT_LANE,
        &accept::INSERT_MESSAGE,
        &accept::INSERT_CONTENT,
        &accept::INSERT_RECIPIENT,
        &accept::INSERT_EVENT,
        &accept::INSERT_TAG,
        &claim::DUE_LANES,
        &claim::LEASE,
        &claim::CONTENTS,
        &claim::OPEN_RECIPIENTS,
        &change::LOCK,
        &change::COMMIT_WIRE,
        &change::APPLY,
        &recipients_and_attempts::CHANGE_RECIPIENT,
        &recipients_and_attempts::END_RECIPIENTS,
        &recipients_and_attempts::INSERT_ATTEMPT,
        &change::LANES,
        &engine::COUNT,
    ]
}

#[tokio::test]
async fn every_statement_prepares() {
    let (store, url) = mariadb().await;
    let pool = MySqlPool::connect(&url).await.unwrap();
    let single = [
        claim::DUE_MESSAGES,
        read::FIND_CLIENT,
        read::RECIPIENTS,
        read::ATTEMPTS,
        read::EVENTS,
        read::RAW,
        read::PAYLOAD,
        read::KEPT,
        due_work::OVERDUE,
        engine::MARK,
        engine::MARKED,
        accept_fence::HOLD,
        accept_fence::PLACES,
        accept_fence::RAISE,
        accept_fence::LOWER,
        migrate::WRITABLE,
    ];
    for sql in multi_row().iter().map(|multi| multi.sample()).chain(single) {
        pool.prepare(sql.into_sql_str()).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
    }
    for sql in [crate::sql_store::statements(), crate::nodes::registry::STATEMENTS.to_vec()].concat() {
        let text = sql.mysql.to_owned();
        let prepared = pool.prepare(sqlx::AssertSqlSafe(text.clone()).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    pool.prepare(read::summary_sql().into_sql_str()).await.unwrap();
    let stalled = sqlx::AssertSqlSafe(format!("{}FALSE) ORDER BY m.updated_at LIMIT ?", due_work::STALLED));
    pool.prepare(stalled.into_sql_str()).await.unwrap();
    store.close().await;
}

/// A step of a plan: which table, how it is read, by which index, and what else is done.
#[derive(Debug)]
struct Step {
    table: String,
    kind: String,
    key: String,
    extra: String,
}

async fn plan(conn: &mut MySqlConnection, sql: &str) -> Vec<Step> {
    let text = format!("EXPLAIN FORMAT=TRADITIONAL {}", sql.replace("LIMIT ?", "LIMIT 10"));
    let parameters = text.matches('?').count();
    let mut explain = sqlx::query(sqlx::AssertSqlSafe(text));
    for n in 0..parameters {
        // Good as an id and as a number.
        explain = explain.bind(format!("{:016}", 1_700_000_000_000 + n).into_bytes());
    }
    let rows = explain.fetch_all(conn).await.unwrap();
    let step = |row: &sqlx::mysql::MySqlRow| {
        let column = |name| row.try_get::<Option<String>, _>(name).unwrap().unwrap_or_default();
        Step { table: column("table"), kind: column("type"), key: column("key"), extra: column("Extra") }
    };
    rows.iter().map(step).collect()
}

/// The only test that touches these settings of the server that all tests share.
#[tokio::test]
async fn a_server_that_does_not_sync_its_commits_is_told() {
    let url = database();
    let pool = MySqlPool::connect(&url).await.unwrap();
    let set = async |value: &str| {
        let set = format!("SET GLOBAL innodb_flush_log_at_trx_commit = {value}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&pool).await.unwrap();
    };
    let was: i64 = sqlx::query_scalar("SELECT CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS SIGNED)")
        .fetch_one(&pool)
        .await
        .unwrap();
    for value in ["0", "2", "1"] {
        set(value).await;
        let store = MysqlStore::open(&url).await.unwrap();
        let risks = store.durability_risks();
        store.close().await;
        assert_eq!(MysqlStore::facts(&url).await.unwrap().risks, risks);
        let reported = risks.iter().find(|risk| risk.setting == "innodb_flush_log_at_trx_commit");
        let at_crash = reported.filter(|risk| risk.loses_at == LossMoment::Crash);
        assert_eq!(at_crash.map(|risk| risk.value.as_str()), (value != "1").then_some(value));
    }
    // A server that takes over is found out while the store is open.
    let store = MysqlStore::open(&url).await.unwrap();
    let is_risky = || store.durability_risks().iter().any(|risk| risk.value == "0");
    assert!(!is_risky());
    set("0").await;
    store.review_durability().await.unwrap();
    assert!(is_risky());
    set("1").await;
    store.review_durability().await.unwrap();
    assert!(!is_risky());
    store.close().await;
    set(&was.to_string()).await;
}

/// The claim and the fenced writes must not scan, sort or lock what they do not return.
#[tokio::test]
async fn hot_statements_use_their_indexes() {
    let (store, url) = mariadb().await;
    stage::open(&store).await;
    store
        .accept((0..500).map(|n| Sample::new(n).expires(5).key(&n.to_string()).build()).collect())
        .await
        .unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    sqlx::raw_sql("ANALYZE TABLE message, lane, recipient, dedup").execute(&pool).await.unwrap();
    let mut conn = pool.acquire().await.unwrap();
    // Whether the subscriber is active is checked while planning, and there is no subscriber.
    let report_due = reporting::DUE.mysql.replace(") = 1 ORDER", ") IS NULL ORDER");
    for (sql, table, index) in [
        (claim::DUE_MESSAGES, "m", "message_due"),
        (claim::DUE_LANES.sample(), "m", "message_due"),
        (preparation::DUE.mysql, "m", "PRIMARY"),
        (preparation::HEADS.mysql, "m", "PRIMARY"),
        (&report_due, "n", "notification_due"),
        (&report_due, "l", "PRIMARY"),
        (reporting::HEADS.mysql, "n", "notification_due"),
        (reporting::LEASE.sample().mysql, "notification", "PRIMARY"),
        (reporting::LEASED.sample().mysql, "notification", "PRIMARY"),
        (journal::UNPLACED.mysql, "journal", "journal_position"),
        (journal::PLACE.sample().mysql, "j", "PRIMARY"),
        (waiting_lanes::WALK.mysql, "m", "message_due"),
        (queue_state::HEADS.sample().mysql, "m", "message_due"),
        (queue_state::LATER.sample().mysql, "m", "message_due"),
        (queue_stats::DUE.sample().mysql, "m", "message_due"),
        (lane_upkeep::PAGE.mysql, "m", "message_lane"),
        (due_work::OVERDUE, "m", "message_expiry"),
        (admin::HAS_MISPLACED.mysql, "m", "message_due"),
        (admin::AMONG_UNFINISHED.mysql, "message", "message_status"),
        (change::LOCK.sample(), "message", "PRIMARY"),
        (change::COMMIT_WIRE.sample(), "m", "PRIMARY"),
        (change::APPLY.sample(), "m", "PRIMARY"),
        (recipients_and_attempts::CHANGE_RECIPIENT.sample(), "r", "PRIMARY"),
        (recipients_and_attempts::END_RECIPIENTS.sample(), "recipient", "PRIMARY"),
        (claim::LEASE.sample(), "message", "PRIMARY"),
        (dedup::FIND_DEDUP.sample(), "dedup", "PRIMARY"),
    ] {
        let plan = plan(&mut conn, sql).await;
        let of_table: Vec<_> = plan.iter().filter(|step| step.table == table).collect();
        assert!(!of_table.is_empty(), "{sql}\n{plan:#?}");
        for step in of_table {
            let is_looked_up = step.key == index && step.kind != "index" && step.kind != "ALL";
            // MariaDB sorts what a unique index has without a value: here the few pages that have no place
            // yet.
            let is_sorted = step.extra.contains("filesort") && index != "journal_position";
            assert!(is_looked_up && !is_sorted, "{sql}\n{plan:#?}");
        }
    }
    drop(conn);
    store.close().await;
}
