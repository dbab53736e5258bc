//! The conformance suite on SQLite, and what concerns this database alone.

mod backup;
mod space;

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use postway_domain::MessageState;
use sqlx::{Executor, SqlSafeStr, SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use super::{SqliteStore, accept, change, claim, dedup, read, summaries};
use crate::{
    admin,
    conformance::{
        journal as journal_rules,
        sample::{Sample, at, noise, tenant},
        stage,
    },
    error::StoreError,
    journal,
    port::Store,
    queue::{lane_upkeep, preparation, queue_state},
    reporting,
    sql::{multi_row::MultiRow, waiting_lanes},
};

async fn sqlite() -> (Arc<dyn Store>, TempDir) {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("postway.db")).await.unwrap();
    (Arc::new(store), folder)
}

async fn sqlite_again(folder: &TempDir) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(&folder.path().join("postway.db")).await.unwrap())
}

mod conformance {
    use super::{sqlite, sqlite_again};

    crate::conformance_tests!(sqlite);
    crate::conformance_again_tests!(sqlite, sqlite_again);
}

#[tokio::test]
async fn a_second_process_is_refused_with_what_to_do() {
    let (_store, folder) = sqlite().await;
    let second = SqliteStore::open(&folder.path().join("postway.db")).await;
    assert!(matches!(second, Err(StoreError::Locked(text)) if text.contains("stop it first")));
}

/// What an erased address was in must not be read from the file's rows, searched or not.
#[tokio::test]
async fn a_text_block_is_emptied_with_the_mail_that_it_had() {
    let (store, folder) = sqlite().await;
    stage::open(&store).await;
    let first =
        stage::accept(&store, Sample::new(0).to("ann@example.org").state(MessageState::Sent, None)).await;
    for some in (1..1_100).collect::<Vec<_>>().chunks(100) {
        store.accept(some.iter().map(|n| Sample::new(*n).build()).collect()).await.unwrap();
    }
    let pool = SqlitePool::connect_with(
        SqliteConnectOptions::new().filename(folder.path().join("postway.db")).read_only(true),
    );
    let pool = pool.await.unwrap();
    let blocks = async || -> Vec<(i64, i64, bool)> {
        let sql = "SELECT messages, LENGTH(words), marked_at IS NOT NULL FROM text_block ORDER BY first_uid";
        sqlx::query_as(sql).fetch_all(&pool).await.unwrap()
    };
    store.tend_text_blocks(at(61_000)).await.unwrap();
    assert_eq!(blocks().await, [(0, 0, true)]);
    store.tend_text_blocks(at(90_000)).await.unwrap();
    assert_eq!(blocks().await, [(0, 0, true)], "a plan waits for the transactions before it");
    store.tend_text_blocks(at(122_000)).await.unwrap();
    let filled = blocks().await;
    assert!(matches!(filled[..], [(1_024, 1_000.., false)]), "{filled:?}");
    journal_rules::tell(&store, at(190_000)).await;
    let erased = store.erase(&tenant(), "ann@example.org", at(200_000), 9).await.unwrap();
    assert_eq!(erased.removed, 1);
    assert_eq!(blocks().await, [(0, 0, true)]);
    store.tend_text_blocks(at(300_000)).await.unwrap();
    assert!(matches!(blocks().await[..], [(1_023, _, false)]), "{:?}", first);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (store, folder) = sqlite().await;
    store.close().await;
    drop(store);
    let path = folder.path().join("postway.db");
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    sqlx::query("INSERT INTO schema_migration (version, name) VALUES (99, 'from the future')")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    assert!(matches!(SqliteStore::open(&path).await, Err(StoreError::SchemaTooNew { found: 99, .. })));
    let states = SqliteStore::migration_status(&path).await;
    assert!(matches!(states, Err(StoreError::SchemaTooNew { .. })));
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let path: &Path = &folder.path().join("postway.db");
    assert_eq!(SqliteStore::migrate(path).await.unwrap().len(), super::migrate::MIGRATIONS.len());
    assert!(SqliteStore::migrate(path).await.unwrap().is_empty());
    assert!(SqliteStore::migration_status(path).await.unwrap().iter().all(|state| state.applied));
}

/// Rows that walks have left in the table that pings use.
async fn walks(path: &Path) -> i64 {
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(path)).await.unwrap();
    sqlx::query_scalar("SELECT count(*) FROM progress").fetch_one(&pool).await.unwrap()
}

#[tokio::test]
async fn a_ping_writes_once_for_all_who_ask_and_leaves_nothing() {
    let (store, folder) = sqlite().await;
    let (before, path) = (store.commits(), folder.path().join("postway.db"));
    for pinged in futures::future::join_all((0..20).map(|_| store.ping())).await {
        pinged.unwrap();
    }
    assert_eq!((store.commits(), walks(&path).await), (before + 1, 2));
}

/// SQLite takes a bound on its pages for a full disk.
#[tokio::test]
async fn a_full_disk_fails_a_ping_as_it_fails_an_accept() {
    let (store, folder) = sqlite().await;
    stage::open(&store).await;
    store.close().await;
    drop(store);
    let path = folder.path().join("postway.db");
    let lock = super::take_lock(&path).unwrap();
    let writer = super::connection::WriterConnection::open(&path).unwrap();
    writer.query("PRAGMA max_page_count = 1").unwrap().rows().unwrap();
    let bounds = super::space::SpaceBounds::default();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::start(&path, lock, writer, bounds).await.unwrap());
    let large = Sample::new(1).content(|content| content.raw = noise(64 * 1024).into());
    assert!(matches!(store.accept(vec![large.build()]).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.ping().await, Err(StoreError::Unavailable(_))));
    assert!(store.nodes().await.is_ok() && store.stats(None, at(1)).await.is_ok(), "it can still be read");
}

#[tokio::test]
async fn every_statement_prepares() {
    let (_store, folder) = sqlite().await;
    let options = SqliteConnectOptions::new().filename(folder.path().join("postway.db"));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let multi: [&'static MultiRow; 1] = [&dedup::DROP_DEDUP];
    let single = [
        dedup::TAKE_KEY,
        dedup::KEY_OWNER,
        accept::INSERT_LANE,
        accept::INSERT_MESSAGE,
        accept::INSERT_CONTENT,
        accept::INSERT_RECIPIENT,
        accept::INSERT_EVENT,
        accept::INSERT_TAG,
        claim::LEASE,
        claim::OPEN_RECIPIENTS,
        change::COMMIT_WIRE,
        change::LAST_EVENT,
        change::FENCED,
        change::APPLY,
        change::CHANGE_RECIPIENT,
        change::INSERT_ATTEMPT,
        change::END_RECIPIENTS,
        change::LANE,
        claim::DUE_LANES,
        claim::DUE_MESSAGES,
        claim::SENDING_IN_LANE,
        read::FIND_CLIENT,
        read::RECIPIENTS,
        summaries::RECIPIENTS,
        read::ATTEMPTS,
        read::EVENTS,
        read::RAW,
        read::PAYLOAD,
        read::KEPT,
        read::STALLED,
        read::OVERDUE,
    ];
    for sql in multi.iter().map(|multi| multi.sample()).chain(single) {
        pool.prepare(sql.into_sql_str()).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
    }
    for sql in crate::sql_store::statements() {
        let text = sql.sqlite.to_owned();
        let prepared = pool.prepare(sqlx::AssertSqlSafe(text.clone()).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    pool.prepare(read::summary_sql().into_sql_str()).await.unwrap();
}

/// The claim and the lists must not scan what they do not return.
#[tokio::test]
async fn hot_statements_use_their_indexes() {
    let (_store, folder) = sqlite().await;
    let options = SqliteConnectOptions::new().filename(folder.path().join("postway.db"));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    for (sql, index) in [
        (claim::DUE_MESSAGES, "message_due"),
        (claim::DUE_LANES, "message_due"),
        (claim::SENDING_IN_LANE, "message_status"),
        (preparation::DUE.sqlite, "preparation_due"),
        (preparation::HEADS.sqlite, "preparation_due"),
        (reporting::DUE.sqlite, "notification_due"),
        (reporting::HEADS.sqlite, "notification_due"),
        (journal::UNPLACED.sqlite, "journal_position"),
        (read::STALLED, "message_status"),
        (read::OVERDUE, "message_expiry"),
        (admin::HAS_MISPLACED.sqlite, "message_due"),
        (waiting_lanes::WALK.sqlite, "message_due"),
        (queue_state::HEADS.sample().sqlite, "message_due"),
        (queue_state::LATER.sample().sqlite, "message_due"),
        (lane_upkeep::MOVE.sqlite, "message_due"),
        (lane_upkeep::PAGE.sqlite, "message_lane"),
        (admin::AMONG_UNFINISHED.sqlite, "message_status"),
    ] {
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
                .fetch_all(&pool)
                .await
                .unwrap();
        let plan: Vec<String> = plan.into_iter().map(|(.., step)| step).collect();
        assert!(plan.iter().any(|step| step.contains(index)), "{sql}\n{plan:#?}");
        let scans = |step: &String| {
            ["SCAN m", "SCAN n ", "SCAN l ", "SCAN journal"].iter().any(|scan| step.contains(scan))
        };
        assert!(!plan.iter().any(scans), "{sql}\n{plan:#?}");
    }
}
