//! Migrations: numbered, forward only. DDL commits by itself here, so each step can be run again: its record is written
//! last, and whoever migrates holds the database's lock.

use std::time::Duration;

use sqlx::{MySqlConnection, Row};
use tokio::time::sleep;

use super::failed;
use crate::{
    error::StoreError,
    schema::{self, Migration, MigrationState},
    views,
};

/// Every migration this program knows, in order; numbers and names are those of the other databases.
pub(super) const MIGRATIONS: &[Migration] = schema::migrations!("mysql");

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY, \
     name VARCHAR(64) NOT NULL) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin";

pub(super) const WRITABLE: &str =
    "SELECT MAX(version), MAX(COALESCE(writable_from, version)) FROM schema_migration";

/// How long a statement waits for tables that transactions have in use, and others behind it.
const BRIEF_LOCKS: &str = "SET SESSION lock_wait_timeout = 2";
/// The pause before the next try, in which others have their turn, and how many there are: an hour's worth, for dumps.
const PAUSE: Duration = Duration::from_secs(2);
const TRIES_MAX: u32 = 1_000;

/// The schema's version; 0 for an empty database.
async fn version(conn: &mut MySqlConnection) -> Result<i64, StoreError> {
    let exists = has_table(conn, "schema_migration").await?;
    if !exists {
        return Ok(0);
    }
    let newest = sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM schema_migration");
    let found: i64 = newest.fetch_one(&mut *conn).await.map_err(failed)?;
    if found > schema::newest(MIGRATIONS) {
        check_writable(conn).await?;
    }
    Ok(found)
}

/// Refuses a schema that has gone on without this program.
pub(super) async fn check_writable(conn: &mut MySqlConnection) -> Result<(), StoreError> {
    let row = sqlx::query(WRITABLE).fetch_one(conn).await.map_err(failed)?;
    schema::check(MIGRATIONS, row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?)
}

/// Refuses a database into which a copy is under way.
pub(super) async fn check_whole(conn: &mut MySqlConnection) -> Result<(), StoreError> {
    if has_table(conn, "copy_progress").await? { Err(StoreError::HalfCopied) } else { Ok(()) }
}

async fn has_table(conn: &mut MySqlConnection, name: &str) -> Result<bool, StoreError> {
    let query = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = ?)",
    );
    query.bind(name).fetch_one(conn).await.map_err(failed)
}

/// Whether the database lacks anything.
pub(super) async fn is_current(conn: &mut MySqlConnection) -> Result<bool, StoreError> {
    Ok(version(conn).await? >= schema::newest(MIGRATIONS))
}

/// Which migrations the database has.
pub(super) async fn status(conn: &mut MySqlConnection) -> Result<Vec<MigrationState>, StoreError> {
    Ok(schema::states(MIGRATIONS, version(conn).await?))
}

/// Applies what is missing and returns it.
pub(super) async fn up(conn: &mut MySqlConnection) -> Result<Vec<Migration>, StoreError> {
    let missing = schema::missing(MIGRATIONS, version(conn).await?);
    sqlx::raw_sql(BRIEF_LOCKS).execute(&mut *conn).await.map_err(failed)?;
    for migration in &missing {
        let mut tries = 1;
        loop {
            match step(conn, migration).await.map_err(failed) {
                Ok(()) => break,
                Err(StoreError::Conflict(reason)) if tries < TRIES_MAX => {
                    if tries % 10 == 1 {
                        tracing::warn!(
                            migration = migration.name,
                            reason,
                            "a migration waits for somebody who uses the tables for long, such as a dump; it is tried again"
                        );
                    }
                    tries += 1;
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
    if !missing.is_empty() {
        views::mysql::come_back(conn).await;
    }
    Ok(missing)
}

/// Does a step, which can be done again.
async fn step(conn: &mut MySqlConnection, migration: &Migration) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(CREATE_RECORD).execute(&mut *conn).await?;
    sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
    crate::crash::crash_point("store_migration");
    // On a cluster another node may have been as quick: each step can be run twice, and so can its record.
    sqlx::query("INSERT IGNORE INTO schema_migration (version, name) VALUES (?, ?)")
        .bind(migration.version)
        .bind(migration.name)
        .execute(&mut *conn)
        .await?;
    if migration.is_compatible() {
        sqlx::query("UPDATE schema_migration SET writable_from = ? WHERE version = ?")
            .bind(migration.writable_from)
            .bind(migration.version)
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}
