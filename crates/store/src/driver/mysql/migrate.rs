//! Migrations: numbered, forward only. DDL commits by itself here, so each step can be run again: its record
//! is written last, and the migrating process has the database's lock.

use sqlx::MySqlConnection;

use super::failed;
use crate::{
    error::StoreError,
    sql::schema::{self, Migration, MissingSteps, SchemaRecord, StepPatience},
    view_definitions,
};

/// Every migration this program knows, in order; numbers and names are those of the other databases.
pub(super) const MIGRATIONS: &[Migration] = schema::migrations!("mysql");

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY, \
     name VARCHAR(64) NOT NULL) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin";

pub(super) const WRITABLE: &str =
    "SELECT MAX(version), MAX(COALESCE(writable_from, version)) FROM schema_migration";

/// How long a statement waits for tables that transactions have in use, and others behind it.
const BRIEF_LOCKS: &str = "SET SESSION lock_wait_timeout = 2";
/// How often a step is tried that others' locks hold up: an hour's worth, for dumps.
const TRIES_MAX: u32 = 1_000;

impl SchemaRecord for MySqlConnection {
    const KNOWN: &'static [Migration] = MIGRATIONS;

    async fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = ?)",
        );
        query.bind(name).fetch_one(self).await.map_err(failed)
    }

    async fn newest(&mut self) -> Result<i64, StoreError> {
        let newest = sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM schema_migration");
        newest.fetch_one(self).await.map_err(failed)
    }

    async fn writable(&mut self) -> Result<(i64, i64), StoreError> {
        sqlx::query_as(WRITABLE).fetch_one(self).await.map_err(failed)
    }
}

/// Applies what is missing and returns it.
pub(super) async fn up(conn: &mut MySqlConnection) -> Result<Vec<Migration>, StoreError> {
    let MissingSteps { steps: missing, .. } = schema::lacks(conn).await?;
    sqlx::raw_sql(BRIEF_LOCKS).execute(&mut *conn).await.map_err(failed)?;
    for migration in &missing {
        let mut patience = StepPatience::new(TRIES_MAX);
        while let Err(error) = step(conn, migration).await.map_err(failed) {
            let is_locked = matches!(error, StoreError::Conflict(_));
            if !is_locked || !patience.is_left(migration, &error).await {
                return Err(error);
            }
        }
    }
    if !missing.is_empty() {
        view_definitions::mysql::recreate_views(conn).await;
    }
    Ok(missing)
}

/// Does a step, which can be done again.
async fn step(conn: &mut MySqlConnection, migration: &Migration) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(CREATE_RECORD).execute(&mut *conn).await?;
    sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
    crate::failpoint::crash_point("store_migration");
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
