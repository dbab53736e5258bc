//! How statements find what they return: neither a flooded mailbox nor what was settled long ago costs a
//! claim anything.

use postway_testkit::{
    mariadb::{MariaDb, NUMBERS},
    postgres::PostgresDatabase,
};
use sqlx::{MySqlPool, PgPool, Row, SqlitePool, sqlite::SqliteConnectOptions};

use super::{claim, mails, receipts, register, removal};
use crate::{
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    retention::inbound_mail,
    sql::{SqlText, numbered},
};

/// Each statement, and the index by which it must find.
fn by_index() -> Vec<(SqlText, &'static str)> {
    vec![
        (claim::DUE, "inbound_mailbox_due"),
        (claim::COUNT, "inbound_due"),
        (claim::NEXT, "inbound_due"),
        (claim::LOST, "inbound_lease"),
        (mails::LIST, "inbound_tenant"),
        (mails::LIST_OF_MAILBOX, "inbound_mailbox"),
        (mails::LIST_OF_STATE, "inbound_state"),
        (removal::OF_MAILBOX, "inbound_mailbox"),
        (inbound_mail::OLD, "inbound_tenant"),
        (receipts::DUE, "pec_wait_due"),
        (register::AT_PLACE.sample().into(), "inbound_place"),
    ]
}

#[tokio::test]
async fn sqlite_finds_by_index() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let heads = (claim::HEADS, "inbound_mailbox_due");
    for (sql, index) in by_index().into_iter().chain([heads]) {
        let explain = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.sqlite)));
        let rows = explain.fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(3)).collect();
        assert!(plan.iter().any(|line| line.contains(index)), "{}\n{plan:#?}", sql.sqlite);
        // The mailboxes themselves are few, and all of them are asked for.
        let scans = |line: &&String| {
            line.contains("SCAN") && !line.contains("SCAN s") && !line.contains("SCAN waiting")
        };
        assert_eq!(plan.iter().find(scans), None, "{}", sql.sqlite);
        assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{}\n{plan:#?}", sql.sqlite);
    }
}

/// Of two tenants one has nearly everything, and little of it waits.
const FILL_POSTGRES: &str = "INSERT INTO inbound (uid, tenant, mailbox, folder, uid_validity, imap_uid, digest, size, state, \
     due_at, tries, lease_node, lease_until, reminders, event_seq, created_at, updated_at) \
     SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), CASE WHEN n % 50 = 0 THEN 'acme' ELSE 'globex' END, 'box-' || n % 7, \
     'INBOX', 5, n, CASE WHEN n % 100 = 0 THEN NULL ELSE '\\x00'::bytea END, 7, CASE WHEN n % 20 = 0 THEN 6 ELSE 2 END, \
     CASE WHEN n % 90 = 0 THEN n END, 0, CASE WHEN n % 95 = 0 THEN '\\x01'::bytea END, n, 0, 0, n, n \
     FROM generate_series(1, 20000) n; \
     INSERT INTO pec_wait (uid, due_at) SELECT uid, created_at FROM inbound; ANALYZE inbound, pec_wait";

#[tokio::test]
async fn postgres_finds_by_index() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database.run(FILL_POSTGRES);
    let pool = PgPool::connect(&database.url()).await.unwrap();
    for (sql, index) in by_index() {
        let parameters = vec!["NULL"; sql.postgres.matches('?').count()].join(",");
        let explain = format!(
            "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
             DEALLOCATE ALL; PREPARE asked AS {}; EXPLAIN EXECUTE asked({parameters})",
            numbered(sql.postgres),
        );
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index), "{}\n{plan}", sql.postgres);
    }
}

#[tokio::test]
async fn mariadb_finds_by_index() {
    let url = MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    for fill in [
        NUMBERS,
        "INSERT INTO inbound (uid, tenant, mailbox, folder, uid_validity, imap_uid, digest, size, state, due_at, tries, \
         lease_node, lease_until, reminders, event_seq, created_at, updated_at) \
         SELECT LPAD(seq, 16, '0'), IF(seq % 50 = 0, 'acme', 'globex'), CONCAT('box-', seq % 7), 'INBOX', 5, seq, \
         IF(seq % 100 = 0, NULL, LPAD(seq, 32, '0')), 7, seq % 7, IF(seq % 90 = 0, seq, NULL), 0, \
         IF(seq % 95 = 0, LPAD(1, 16, '0'), NULL), seq, 0, 0, seq, seq FROM numbers",
        "INSERT INTO pec_wait (uid, due_at) SELECT uid, created_at FROM inbound",
        "ANALYZE TABLE inbound, pec_wait",
    ] {
        sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    }
    for (sql, index) in by_index() {
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
        let plan: Vec<_> =
            rows.iter().map(|row| (column(row, "table"), column(row, "type"), column(row, "key"))).collect();
        let is_full = |(table, kind, _): &(String, String, String)| {
            kind == "ALL" && (table == "i" || table == "inbound")
        };
        assert!(!plan.iter().any(is_full), "{} by {index}\n{plan:?}", sql.mysql);
    }
}

/// Returns to the schema before mailboxes were distinguished by port, with one at an unusual port. For SQLite
/// and PostgreSQL.
const BEFORE_PORTS: &str = "DROP TABLE text_block; DROP TABLE domain_report; DROP TABLE domain_report_line; DROP TABLE archived_mail; DROP TABLE quota_use; DROP TABLE gateway_user; DROP TABLE user_session; DROP TABLE audit_head; DROP INDEX audit_position; \
     ALTER TABLE audit DROP COLUMN position; ALTER TABLE audit DROP COLUMN previous; ALTER TABLE audit DROP COLUMN digest; \
     ALTER TABLE audit DROP COLUMN salt; ALTER TABLE audit DROP COLUMN target_digest; ALTER TABLE api_key DROP COLUMN created_by; DROP TABLE bulk_action; DROP TABLE domain_check; DROP TABLE stream_statistic; DROP TABLE suppression_change; ALTER TABLE template DROP COLUMN layout; ALTER TABLE template DROP COLUMN inline_css; ALTER TABLE known_recipient DROP COLUMN locale; DROP TABLE provider_event; DROP TABLE provider_hook; DROP TABLE route; DROP TABLE dialogue; ALTER TABLE lane DROP COLUMN destination; ALTER TABLE lane DROP COLUMN idle_since; ALTER TABLE api_key DROP COLUMN restrictions; DROP TABLE scoped_suppression; DROP TABLE stream; DROP INDEX recipient_outcome; ALTER TABLE event DROP COLUMN more; DROP INDEX spent_bucket; DROP TABLE oauth_state; ALTER TABLE content DROP COLUMN trace; ALTER TABLE content DROP COLUMN packing; DROP INDEX mailbox_place; ALTER TABLE mailbox DROP COLUMN port; \
     CREATE UNIQUE INDEX mailbox_place ON mailbox (tenant, place); DELETE FROM schema_migration WHERE version >= 11; \
     INSERT INTO mailbox (tenant, id, place, settings, version, created_at, updated_at) \
     VALUES ('default', 'tunnel', 'place', '{\"host\":\"localhost\",\"port\":10993}', 1, 1, 1)";
const PORT: &str = "SELECT port FROM mailbox";

#[tokio::test]
async fn a_mailbox_from_before_ports_were_told_apart_keeps_its_own_in_sqlite() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    sqlx::raw_sql(BEFORE_PORTS).execute(&pool).await.unwrap();
    assert_eq!(SqliteStore::migrate(&path).await.unwrap()[0].version, 11);
    assert_eq!(sqlx::query_scalar::<_, i64>(PORT).fetch_one(&pool).await.unwrap(), 10_993);
}

#[tokio::test]
async fn a_mailbox_from_before_ports_were_told_apart_keeps_its_own_in_postgres() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database.run(BEFORE_PORTS);
    assert_eq!(PostgresStore::migrate(&database.url()).await.unwrap()[0].version, 11);
    let pool = PgPool::connect(&database.url()).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(PORT).fetch_one(&pool).await.unwrap(), 10_993);
}

#[tokio::test]
async fn a_mailbox_from_before_ports_were_told_apart_keeps_its_own_in_mariadb() {
    let url = MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    for step in [
        "ALTER TABLE mailbox DROP INDEX mailbox_place, DROP COLUMN port, ADD UNIQUE KEY mailbox_place (tenant, place)",
        "ALTER TABLE content DROP COLUMN packing",
        "ALTER TABLE lane DROP COLUMN destination, DROP COLUMN idle_since",
        "DELETE FROM schema_migration WHERE version >= 11",
        "INSERT INTO mailbox (tenant, id, place, settings, version, created_at, updated_at) \
         VALUES ('default', 'tunnel', LPAD('', 32, 'p'), '{\"host\":\"localhost\",\"port\":10993}', 1, 1, 1)",
    ] {
        sqlx::raw_sql(step).execute(&pool).await.unwrap();
    }
    assert_eq!(MysqlStore::migrate(&url).await.unwrap()[0].version, 11);
    assert_eq!(sqlx::query_scalar::<_, i64>(PORT).fetch_one(&pool).await.unwrap(), 10_993);
}
