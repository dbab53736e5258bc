//! Migrations beside nodes that go on writing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use postway_testkit::postgres::PostgresDatabase;
use sqlx::{Connection, PgConnection};

use crate::driver::postgres::{PostgresStore, connect, migrate};

/// The schema that nodes of the last program know.
const OLDER: i64 = 6;
/// What lies in the tables.
const FILL: &str = "INSERT INTO message (uid, tenant, lane, status, attempt, retries, doubts, lost_leases, on_doubt, \
     wire_committed, version, event_seq, created_at, updated_at, exhausted) \
     SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), 'acme', '\\x00', n % 8, 0, 0, 0, 0, 0, false, 1, 1, n, n, false \
     FROM generate_series(1, 100000) n; \
     INSERT INTO recipient (uid, position, kind, address, status) \
     SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), 0, 0, 'ada' || n || '@example.net', 0 FROM generate_series(1, 100000) n";
/// What an accept writes, about; it waits for a lock less long than a node's would.
const WRITE: &str = "INSERT INTO message (uid, tenant, lane, status, attempt, retries, doubts, lost_leases, on_doubt, \
     wire_committed, version, event_seq, created_at, updated_at, exhausted) \
     VALUES (decode(lpad(to_hex($1::bigint + 1000000), 32, '0'), 'hex'), 'acme', '\\x00', 2, 0, 0, 0, 0, 0, false, 1, 1, 1, 1, false)";
const PATIENCE: &str = "SET lock_timeout = '3s'";
const MIGRATOR: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' \
     AND query LIKE 'CREATE INDEX CONCURRENTLY%'";
const INVALID: &str = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";

async fn client(database: &PostgresDatabase) -> PgConnection {
    let mut conn = PgConnection::connect(&database.url()).await.unwrap();
    sqlx::raw_sql(PATIENCE).execute(&mut conn).await.unwrap();
    conn
}

async fn older_database() -> PostgresDatabase {
    let database = PostgresDatabase::create();
    let options = connect::options(&database.url()).unwrap();
    let mut conn = connect::migrator(&options).await.unwrap();
    migrate::up_to(&mut conn, OLDER).await.unwrap();
    sqlx::raw_sql(FILL).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    database
}

/// The backend that makes an index and waits for a transaction that is under way.
async fn waiting_migrator(conn: &mut PgConnection) -> i32 {
    for _ in 0..600 {
        if let Some(pid) = sqlx::query_scalar(MIGRATOR).fetch_optional(&mut *conn).await.unwrap() {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no index is made beside whoever writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_write_on_while_a_large_table_is_migrated_and_a_try_that_died_is_taken_up() {
    let database = older_database().await;
    let (mut slow, mut quick) = (client(&database).await, client(&database).await);
    // A long transaction: the migration waits for it, and no transaction waits for the migration.
    sqlx::raw_sql("BEGIN").execute(&mut slow).await.unwrap();
    sqlx::query(WRITE).bind(1_i64).execute(&mut slow).await.unwrap();
    let url = database.url();
    let first = tokio::spawn(async move { PostgresStore::migrate(&url).await });
    let migrator = waiting_migrator(&mut quick).await;
    for n in 2..200_i64 {
        sqlx::query(WRITE).bind(n).execute(&mut quick).await.expect("nobody waits for the migration");
    }
    // It dies in the middle.
    let end = sqlx::query("SELECT pg_terminate_backend($1, 10000)").bind(migrator);
    end.execute(&mut quick).await.unwrap();
    assert!(first.await.unwrap().is_err());
    let invalid: i64 = sqlx::query_scalar(INVALID).fetch_one(&mut quick).await.unwrap();
    assert_eq!(invalid, 1, "an index was left unfinished");
    sqlx::raw_sql("COMMIT").execute(&mut slow).await.unwrap();

    let (written, stops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = tokio::spawn({
        let (written, stops) = (written.clone(), stops.clone());
        async move {
            for n in 200_i64.. {
                if stops.load(Ordering::Relaxed) {
                    return;
                }
                sqlx::query(WRITE).bind(n).execute(&mut quick).await.expect("nobody waits for the migration");
                written.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let applied = PostgresStore::migrate(&database.url()).await.unwrap();
    stops.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    assert!(written.load(Ordering::Relaxed) > 0);
    assert_eq!(applied.len(), migrate::MIGRATIONS.len() - OLDER as usize);
    let invalid: i64 = sqlx::query_scalar(INVALID).fetch_one(&mut slow).await.unwrap();
    assert_eq!(invalid, 0);
}

/// However a database came to its schema, it is the same.
#[tokio::test]
async fn a_database_that_was_migrated_has_the_indexes_of_a_new_one() {
    const INDEXES: &str = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1";
    let (older, new) = (older_database().await, PostgresDatabase::create());
    let mut found: Vec<Vec<String>> = Vec::new();
    for database in [&older, &new] {
        PostgresStore::migrate(&database.url()).await.unwrap();
        let mut conn = client(database).await;
        found.push(sqlx::query_scalar(INDEXES).fetch_all(&mut conn).await.unwrap());
    }
    assert_eq!(found[0], found[1]);
    assert!(
        found[0]
            .iter()
            .any(|index| index.contains("message_status") && index.contains("(status, tenant, uid)"))
    );
}

/// A dump has the tables open for as long as it takes. The migration waits for its end, and in between others
/// have their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_waits_for_a_dump_and_does_not_fail() {
    let database = older_database().await;
    let mut conn = client(&database).await;
    let options = connect::options(&database.url()).unwrap();
    let mut migrator = connect::migrator(&options).await.unwrap();
    migrate::up_to(&mut migrator, 7).await.unwrap();
    migrator.close().await.unwrap();
    let mut dump = client(&database).await;
    sqlx::raw_sql("BEGIN; LOCK TABLE inbound IN ACCESS SHARE MODE").execute(&mut dump).await.unwrap();
    let url = database.url();
    let migrated = tokio::spawn(async move { PostgresStore::migrate(&url).await });
    // Until it has tried and given way.
    const WAITS: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'inbound'::regclass";
    for _ in 0..2 {
        while sqlx::query_scalar::<_, i64>(WAITS).fetch_one(&mut conn).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while sqlx::query_scalar::<_, i64>(WAITS).fetch_one(&mut conn).await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    sqlx::raw_sql("SELECT count(*) FROM inbound").execute(&mut conn).await.unwrap();
    sqlx::raw_sql("COMMIT").execute(&mut dump).await.unwrap();
    migrated.await.unwrap().unwrap();
}
