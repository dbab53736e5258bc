//! How what lists say is found: each message by its id, each lane by its first.

use postway_testkit::{
    mariadb::{MariaDb, NUMBERS},
    postgres::PostgresDatabase,
};
use sqlx::{MySqlPool, PgPool, Row, SqlitePool, sqlite::SqliteConnectOptions};

use super::outcomes::{BOUNCES, NEWS, OUTCOMES, TOLD};
use crate::{
    admin::WAITING_IN_LANES,
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    reading::{
        queue_stats::{DOUBTS, DUE},
        search::query_plans::generic_plan,
    },
    sql::SqlText,
};

/// Each statement, with the indexes that it must use: of SQLite and PostgreSQL.
fn by_index() -> [(SqlText, [&'static str; 2]); 7] {
    [
        (OUTCOMES.sample(), ["SEARCH r USING PRIMARY KEY (uid=?)", "recipient_pkey"]),
        (
            BOUNCES.sample().into(),
            ["SEARCH recipient USING PRIMARY KEY (uid=? AND position=?)", "recipient_pkey"],
        ),
        (TOLD.sample(), ["notification_message (uid=?)", "notification_message"]),
        (NEWS.sample(), ["SEARCH e USING PRIMARY KEY (uid=?)", "event_pkey"]),
        (WAITING_IN_LANES.sample(), ["SEARCH m USING COVERING INDEX message_due (lane=?", "message_due"]),
        (DUE.sample(), ["SEARCH m USING COVERING INDEX message_due (lane=?", "message_due"]),
        (DOUBTS, ["SEARCH message USING INDEX message_status (status=? AND tenant=?)", "message_status"]),
    ]
}

#[tokio::test]
async fn sqlite_looks_up_what_lists_say() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    for (sql, [index, _]) in by_index() {
        let explain = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.sqlite)));
        let rows = explain.fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(3)).collect();
        assert!(plan.iter().any(|step| step.contains(index)), "{}\n{plan:#?}", sql.sqlite);
        // What was found before, in the same statement, is gone through row by row; nothing else is.
        let found = ["found", "w", "due", "o", "doubts"].map(|name| format!("SCAN {name}"));
        let scans = |step: &String| step.starts_with("SCAN") && !found.contains(step);
        assert!(!plan.iter().any(scans), "{}\n{plan:#?}", sql.sqlite);
    }
}

/// Planned without values and without rows, as for a server that was new when its statements were prepared.
#[tokio::test]
async fn postgres_looks_up_what_lists_say() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    let pool = PgPool::connect(&database.url()).await.unwrap();
    for (sql, [_, index]) in by_index() {
        let plan = generic_plan(&pool, sql).await;
        assert!(plan.contains(index), "{}\n{plan}", sql.postgres);
        assert!(!plan.contains("Seq Scan") && !plan.contains("Hash Join"), "{}\n{plan}", sql.postgres);
    }
}

#[tokio::test]
async fn mariadb_looks_up_what_lists_say() {
    let url = MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    for fill in [
        NUMBERS,
        "INSERT INTO message (uid, tenant, lane, status, attempt, retries, doubts, lost_leases, on_doubt, wire_committed, \
         version, event_seq, created_at, updated_at, exhausted) \
         SELECT LPAD(seq, 16, '0'), 'acme', LPAD(1, 16, '0'), 6, 1, 0, 0, 0, 0, 1, 1, 3, seq, seq, 0 FROM numbers",
        "INSERT INTO recipient (uid, position, kind, address, status, outcome) \
         SELECT LPAD(seq, 16, '0'), 0, 0, CONCAT(seq % 9, '@example.org'), 1, 19 FROM numbers",
        "INSERT INTO event (uid, seq, at, kind) SELECT LPAD(seq, 16, '0'), 1, 0, 1 FROM numbers",
        "INSERT INTO notification (tenant, subscriber, uid, seq, kind, deferred, state, tries, created_at) \
         SELECT 'acme', 'one', LPAD(seq, 16, '0'), 1, 1, 0, 3, 1, 0 FROM numbers",
        "ANALYZE TABLE message, recipient, event, notification",
    ] {
        sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    }
    for (sql, table, index) in [
        (OUTCOMES.sample(), "r", "PRIMARY"),
        (BOUNCES.sample().into(), "recipient", "PRIMARY"),
        (TOLD.sample(), "n", "notification_message"),
        (NEWS.sample(), "m", "PRIMARY"),
        (NEWS.sample(), "e", "PRIMARY"),
    ] {
        let mut text = format!("EXPLAIN FORMAT=TRADITIONAL {}", sql.mysql);
        for (what, value) in [
            ("= ? AND r.uid", "= 'acme' AND r.uid"),
            ("n.tenant = ?", "n.tenant = 'acme'"),
            ("m.tenant = ?", "m.tenant = 'acme'"),
            ("position = ?", "position = 0"),
            ("uid = ?", "uid = '0000000000000007'"),
            ("(?,?)", "('0000000000000007','0000000000000008')"),
        ] {
            text = text.replace(what, value);
        }
        let rows = sqlx::query(sqlx::AssertSqlSafe(text)).fetch_all(&pool).await.unwrap();
        let column = |row: &sqlx::mysql::MySqlRow, name: &str| {
            row.try_get::<Option<String>, _>(name).unwrap().unwrap_or_default()
        };
        let of_table: Vec<_> = rows.iter().filter(|row| column(row, "table") == table).collect();
        assert!(!of_table.is_empty(), "{}", sql.mysql);
        for row in of_table {
            assert_eq!(column(row, "key"), index, "{}", sql.mysql);
            assert!(!["ALL", "index"].contains(&column(row, "type").as_str()), "{}", sql.mysql);
        }
    }
}
