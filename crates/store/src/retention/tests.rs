//! How statements find what they return.

use postway_testkit::{
    mariadb::{MariaDb, NUMBERS},
    postgres::PostgresDatabase,
};
use sqlx::{MySqlPool, PgPool, Row, SqlitePool, sqlite::SqliteConnectOptions};

use super::{delivery_state, erase, expunge, scan, statistics, traces};
use crate::{
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    sql::{SqlText, numbered},
};

/// Each statement, and the index by which it must find: a tenant's slice must not cost what others keep, nor
/// what the tenant has kept since.
fn by_index() -> Vec<(SqlText, &'static str)> {
    vec![
        (scan::PAGE, "message_tenant"),
        (delivery_state::of_messages_sample(), "notification_message"),
        (delivery_state::NOT_FANNED_OUT, "journal_tenant"),
        (traces::OLDEST_PAGES, "journal_position"),
        (traces::FORGET_KEYS, "dedup_expiry"),
        (traces::FORGET_TOMBSTONES, "tombstone_expiry"),
        (erase::ENDED, "recipient_address"),
        (erase::WAITING, "recipient_address"),
        (expunge::end_collapse_sample(), "collapse_uid"),
    ]
}

#[tokio::test]
async fn sqlite_finds_by_index() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let others = [
        (delivery_state::NOT_SEQUENCED, "journal_tenant"),
        (statistics::LIST, "PRIMARY KEY (tenant=? AND hour>?"),
    ];
    for (sql, index) in by_index().into_iter().chain(others) {
        let explain = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.sqlite)));
        let rows = explain.fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(3)).collect();
        assert!(plan.iter().any(|line| line.contains(index)), "{}\n{plan:#?}", sql.sqlite);
        assert_eq!(plan.iter().find(|line| line.contains("SCAN")), None, "{}", sql.sqlite);
    }
}

/// With two tenants, of which one has nearly everything.
#[tokio::test]
async fn postgres_finds_by_index() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database.run(
        "INSERT INTO message (uid, tenant, lane, status, attempt, retries, doubts, lost_leases, on_doubt, wire_committed, \
         version, event_seq, created_at, updated_at, exhausted) \
         SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), CASE WHEN n < 5 THEN 'acme' ELSE 'globex' END, '\\x00', 5, 1, 0, 0, \
         0, 0, true, 1, 3, n, n, false FROM generate_series(1, 5000) n; \
         INSERT INTO recipient (uid, position, kind, address, status) \
         SELECT uid, 0, 0, created_at || '@example.org', 1 FROM message; \
         INSERT INTO journal (tenant, at, position, entries) SELECT 'acme', n, n, '' FROM generate_series(1, 5000) n; \
         INSERT INTO dedup (tenant, kind, key, fingerprint, uid) \
         SELECT 'acme', 1, n, '', '' FROM generate_series(1, 5000) n; \
         INSERT INTO tombstone (uid, tenant, status, recipients, expires_at) \
         SELECT uid, tenant, 5, '', created_at FROM message; \
         ANALYZE message, recipient, journal, dedup, tombstone",
    );
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let others = [(delivery_state::NOT_SEQUENCED, "journal_"), (statistics::LIST, "statistic_pkey")];
    for (sql, index) in by_index().into_iter().chain(others) {
        let parameters = vec!["NULL"; sql.postgres.matches('?').count()].join(",");
        let execute = if parameters.is_empty() { String::new() } else { format!("({parameters})") };
        let explain = format!(
            "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
             DEALLOCATE ALL; PREPARE asked AS {}; EXPLAIN EXECUTE asked{execute}",
            numbered(sql.postgres),
        );
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{}\n{plan}", sql.postgres);
    }
}

#[tokio::test]
async fn mariadb_finds_by_index() {
    let url = MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    for fill in [
        NUMBERS,
        "INSERT INTO journal (tenant, at, position, entries) SELECT 'acme', seq, seq, '' FROM numbers",
        "INSERT INTO dedup (tenant, kind, `key`, fingerprint, uid) \
         SELECT 'acme', 1, seq, '', '' FROM numbers",
        "INSERT INTO tombstone (uid, tenant, status, recipients, expires_at) \
         SELECT LPAD(seq, 16, '0'), 'acme', 5, '', seq FROM numbers",
        "INSERT INTO collapse (tenant, name, uid) SELECT 'acme', seq, LPAD(seq, 16, '0') FROM numbers",
        "INSERT INTO recipient (uid, position, kind, address, status) \
         SELECT LPAD(seq, 16, '0'), 0, 0, CONCAT(seq, '@example.org'), 1 FROM numbers",
        "INSERT INTO notification (tenant, subscriber, uid, seq, kind, deferred, state, tries, created_at) \
         SELECT 'acme', 'hook', LPAD(seq, 16, '0'), 1, 1, 0, 3, 1, 1 FROM numbers",
        "ANALYZE TABLE journal, dedup, tombstone, collapse, recipient, notification",
    ] {
        sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    }
    let others = [(delivery_state::NOT_SEQUENCED, "journal_tenant"), (statistics::LIST, "PRIMARY")];
    for (sql, index) in by_index().into_iter().chain(others) {
        let text = format!("EXPLAIN FORMAT=TRADITIONAL {}", sql.mysql.replace("LIMIT ?", "LIMIT 10"));
        let parameters = text.matches('?').count();
        let mut explain = sqlx::query(sqlx::AssertSqlSafe(text));
        for n in 0..parameters {
            // Good as an id and as a number. Tenants stand at even places, and must agree.
            let number = if n % 2 == 0 { 9_000 } else { n };
            explain = explain.bind(format!("{number:016}").into_bytes());
        }
        let rows = explain.fetch_all(&pool).await.unwrap();
        let column = |row: &sqlx::mysql::MySqlRow, name: &str| {
            row.try_get::<Option<String>, _>(name).unwrap().unwrap_or_default()
        };
        let plan: Vec<_> = rows.iter().map(|row| (column(row, "type"), column(row, "key"))).collect();
        assert!(plan.iter().any(|(_, key)| key == index), "{}\n{plan:?}", sql.mysql);
        assert!(!plan.iter().any(|(kind, _)| kind == "ALL"), "{}\n{plan:?}", sql.mysql);
    }
}
