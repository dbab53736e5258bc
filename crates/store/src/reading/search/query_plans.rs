//! How leads find messages: through their index, in its order.

use postway_testkit::{
    mariadb::{MariaDb, NUMBERS},
    postgres::PostgresDatabase,
};
use sqlx::{MySqlPool, PgPool, Row, SqlitePool, sqlite::SqliteConnectOptions};

use super::{check, index_choice::by_index};
use crate::{
    admin::BATCH_STATES,
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    sql::{SqlText, numbered},
};

/// PostgreSQL's generic plan of a statement, which it uses after planning the statement several times.
pub(crate) async fn generic_plan(pool: &PgPool, sql: SqlText) -> String {
    let parameters = vec!["NULL"; sql.postgres.matches('?').count()].join(",");
    let explain = format!(
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; DEALLOCATE ALL; \
         PREPARE asked AS {}; EXPLAIN EXECUTE asked({parameters})",
        numbered(sql.postgres),
    );
    let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(pool).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn sqlite_goes_along_the_index() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    for (sql, index) in by_index() {
        let explain = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.sqlite)));
        let rows = explain.fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(3)).collect();
        assert!(plan.len() == 1 && plan[0].contains(index), "{}\n{plan:#?}", sql.sqlite);
        assert!(plan[0].starts_with("SEARCH") && plan[0].contains("uid>? AND uid<?"), "{plan:#?}");
    }
}

/// The generic plan, which a server uses after planning the statement several times.
#[tokio::test]
async fn postgres_goes_along_the_index() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database.run(
        "INSERT INTO message (uid, tenant, lane, status, attempt, retries, doubts, lost_leases, on_doubt, wire_committed, \
         version, event_seq, created_at, updated_at, exhausted) \
         SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), CASE WHEN n < 5 THEN 'acme' ELSE 'globex' END, '\\x00', 5, 1, 0, 0, \
         0, 0, true, 1, 3, n, n, n % 100 = 0 FROM generate_series(1, 5000) n; \
         INSERT INTO recipient (uid, position, kind, address, status) \
         SELECT uid, 0, 0, created_at || '@example.org', 1 FROM message; \
         INSERT INTO tag (tenant, tag, uid) SELECT tenant, 'one', uid FROM message; ANALYZE message, recipient, tag",
    );
    let pool = PgPool::connect(&database.url()).await.unwrap();
    for (sql, index) in by_index() {
        let plan = generic_plan(&pool, sql).await;
        assert!(plan.contains(&format!("Backward using {index}")), "{}\n{plan}", sql.postgres);
        assert!(!plan.contains("Sort"), "{}\n{plan}", sql.postgres);
    }
    let plan = generic_plan(&pool, BATCH_STATES).await;
    assert!(plan.contains("Index Scan using message_lane"), "{plan}");
    assert!(!plan.contains("Bitmap") && !plan.contains("Sort"), "{plan}");
    for sql in check::statements() {
        let plan = generic_plan(&pool, sql).await;
        assert!(plan.contains("message_pkey"), "{}\n{plan}", sql.postgres);
        assert!(!plan.contains("Join") && !plan.contains("hashed"), "{}\n{plan}", sql.postgres);
    }
}

#[tokio::test]
async fn mariadb_goes_along_the_index() {
    let url = MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    for fill in [
        NUMBERS,
        "INSERT INTO message (uid, tenant, lane, status, attempt, retries, doubts, lost_leases, on_doubt, wire_committed, \
         version, event_seq, created_at, updated_at, exhausted) \
         SELECT LPAD(seq, 16, '0'), 'acme', LPAD(1, 16, '0'), 6, 1, 0, 0, 0, 0, 1, 1, 3, seq, seq, 0 FROM numbers",
        "INSERT INTO recipient (uid, position, kind, address, status) \
         SELECT LPAD(seq, 16, '0'), 0, 0, CONCAT(seq % 9, '@example.org'), 1 FROM numbers",
        "INSERT INTO tag (tenant, tag, uid) SELECT 'acme', 'one', LPAD(seq, 16, '0') FROM numbers",
        "ANALYZE TABLE message, recipient, tag",
    ] {
        sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    }
    for (sql, index) in by_index() {
        let index = match index {
            "tag" => "PRIMARY",
            "message_exhausted" => "message_status",
            index => index,
        };
        let mut text = format!("EXPLAIN FORMAT=TRADITIONAL {}", sql.mysql.replace("LIMIT ?", "LIMIT 10"));
        for (what, value) in [
            ("tenant = ?", "tenant = 'acme'"),
            ("tag = ?", "tag = 'one'"),
            ("address = ?", "address = '1@example.org'"),
            ("LOWER(?)", "LOWER('1@example.org')"),
            ("status = ?", "status = 6"),
            ("outcome = ?", "outcome = 19"),
            ("uid >= ?", "uid >= '0000000000000000'"),
            ("uid < ?", "uid < '9999999999999999'"),
        ] {
            text = text.replace(what, value);
        }
        let row = sqlx::query(sqlx::AssertSqlSafe(text)).fetch_one(&pool).await.unwrap();
        let column = |name: &str| row.try_get::<Option<String>, _>(name).unwrap().unwrap_or_default();
        assert_eq!(column("key"), index, "{}", sql.mysql);
        assert!(!column("Extra").contains("filesort"), "{}: {}", sql.mysql, column("Extra"));
    }
}
