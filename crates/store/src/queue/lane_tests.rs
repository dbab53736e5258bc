//! Mail that waits under the ids of earlier programs, and what lanes cost, on each SQL database.

use std::sync::Arc;

use postway_domain::MessageState;
use postway_testkit::{mariadb::MariaDb, postgres::PostgresDatabase};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, Row, SqlitePool, sqlite::SqliteConnectOptions};

use crate::{
    conformance::{
        Shared,
        sample::{self, Sample, at},
        stage::{self, accept, claim, record, uids},
    },
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    record::ChangeResult,
};

/// The statements by which mail of these samples waits as an earlier program would have left it, with the row
/// of its lane as well.
fn as_before(samples: &[Sample], hex: fn(&str) -> String) -> String {
    let mut sql = String::new();
    for sample in samples {
        let message = sample.clone().build();
        let words = |bytes: &[u8]| hex(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let (now, before) = (message.lane.id(), message.lane.earlier_id());
        let (now, before, uid) =
            (words(now.as_bytes()), words(before.as_bytes()), words(message.uid.as_bytes()));
        sql += &format!(
            "INSERT INTO lane (id, tenant, account, priority, batch) SELECT {before}, tenant, account, priority, batch \
             FROM lane WHERE id = {now} AND NOT EXISTS (SELECT 1 FROM lane AS l WHERE l.id = {before}); \
             UPDATE message SET lane = {before} WHERE uid = {uid}; "
        );
    }
    sql
}

/// Ready, scheduled, and part of a batch whose mail is in order.
fn samples() -> [Sample; 4] {
    [
        Sample::new(1),
        Sample::new(2).batch("news").send_at(500),
        Sample::new(3).batch("mailbox:in"),
        Sample::new(4).batch("mailbox:in").created(1),
    ]
}

async fn is_moved(store: &Shared, misplace: impl AsyncFn(String), hex: fn(&str) -> String) {
    stage::open(store).await;
    let mut expected = Vec::new();
    for sample in samples() {
        expected.push(accept(store, sample).await);
    }
    misplace(as_before(&samples(), hex)).await;
    assert!(claim(store, 1, at(1_000), 9).await.is_empty(), "nothing is where claims look");
    let relay = sample::relay();
    let deleted = store.delete_account(&relay.tenant, &relay.account).await.unwrap();
    assert_eq!(deleted, ChangeResult::InUse, "what waits elsewhere is still the account's");
    let moved = store.move_misplaced().await.unwrap();
    assert_eq!((moved.done, moved.is_last), (4, true));
    assert_eq!(stage::woken(store, 1).await, [relay]);
    let mut claimed = uids(&claim(store, 2, at(1_000), 9).await);
    claimed.sort();
    assert_eq!(
        claimed,
        [expected[0], expected[1], expected[2]],
        "the last one is behind another in its lane"
    );
    for uid in expected {
        assert_eq!(record(store, uid).await.summary.lane.account, sample::relay().account);
    }
    assert_eq!(store.move_misplaced().await.unwrap().done, 0);
    store.close().await;
}

#[tokio::test]
async fn mail_of_earlier_programs_is_moved_on_sqlite() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    let store: Shared = Arc::new(SqliteStore::open(&path).await.unwrap());
    let misplace = async |sql: String| {
        let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    };
    is_moved(&store, misplace, |hex| format!("X'{hex}'")).await;
}

#[tokio::test]
async fn mail_of_earlier_programs_is_moved_on_postgres() {
    let database = PostgresDatabase::create();
    let store: Shared = Arc::new(PostgresStore::open(&database.url()).await.unwrap());
    let misplace = async |sql: String| {
        let pool = PgPool::connect(&database.url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    };
    is_moved(&store, misplace, |hex| format!("'\\x{hex}'::bytea")).await;
}

#[tokio::test]
async fn mail_of_earlier_programs_is_moved_on_mariadb() {
    let url = MariaDb::shared().create_database();
    let store: Shared = Arc::new(MysqlStore::open(&url).await.unwrap());
    let misplace = async |sql: String| {
        let pool = MySqlPool::connect(&url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    };
    is_moved(&store, misplace, |hex| format!("X'{hex}'")).await;
}

/// Lanes whose mail has ended.
const ENDED: u32 = 2_000;

/// MariaDB counts the rows that it reads of each table.
async fn rows_read(pool: &MySqlPool) -> i64 {
    let sql = "SELECT CAST(COALESCE(SUM(ROWS_READ), 0) AS SIGNED) FROM information_schema.TABLE_STATISTICS \
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('lane', 'message')";
    sqlx::query(sql).fetch_one(pool).await.unwrap().get(0)
}

#[tokio::test]
async fn lanes_whose_mail_has_ended_cost_a_claim_and_a_poll_nothing() {
    let url = MariaDb::shared().create_database();
    let store: Shared = Arc::new(MysqlStore::open(&url).await.unwrap());
    let pool = MySqlPool::connect(&url).await.unwrap();
    if sqlx::raw_sql("SET GLOBAL userstat = 1").execute(&pool).await.is_err() {
        // MySQL does not count them.
        return;
    }
    stage::open(&store).await;
    let ended = |number: u32| {
        Sample::new(number).batch(&format!("order-{number}")).state(MessageState::Suppressed, None).build()
    };
    for start in (0..ENDED).step_by(500) {
        store.accept((start..start + 500).map(ended).collect()).await.unwrap();
    }
    let waits = accept(&store, Sample::new(ENDED)).await;
    let before = rows_read(&pool).await;
    for _ in 0..10 {
        store.queue_state(at(1_000)).await.unwrap();
        store.stats(None, at(1_000)).await.unwrap();
        store.held(&sample::tenant(), at(1_000)).await.unwrap();
    }
    assert_eq!(uids(&claim(&store, 1, at(1_000), 9).await), [waits]);
    let read = rows_read(&pool).await - before;
    assert!((1..i64::from(ENDED) / 4).contains(&read), "{read} rows were read");
    store.close().await;
}
