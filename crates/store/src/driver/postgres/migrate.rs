//! Migrations: numbered as SQLite's, forward only, each in one transaction with its own record.
//!
//! Nodes of an older program continue in the meantime. Work whose time depends on the number of rows
//! (indexes) is done before the transaction, concurrently with writes; the transaction itself waits only
//! briefly for its locks, because others queue behind it, and is tried again.

use sqlx::{AssertSqlSafe, PgConnection};

use super::{code_of, failed};
use crate::{
    error::StoreError,
    sql::schema::{self, Migration, MissingSteps, SchemaRecord, StepPatience},
    view_definitions::postgres as views,
};

/// Every migration this program knows, in order.
pub const MIGRATIONS: &[Migration] = schema::migrations!("postgres");

const CREATE_RECORD: &str =
    "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)";

pub(super) const WRITABLE: &str =
    "SELECT max(version), max(coalesce(writable_from, version)) FROM schema_migration";

/// How long a transaction waits for a lock, and others behind it.
const BRIEF_LOCKS: &str = "SET lock_timeout = '1s'";
/// Concurrent statements wait for transactions under way, and no transaction waits for them.
const LONG_LOCKS: &str = "SET lock_timeout = 0";
/// How often a step is tried that others' locks hold up: an hour's worth, for dumps.
const TRIES_MAX: u32 = 1_200;
/// The beginning of a statement that creates an index concurrently with writes.
const CREATE_INDEX: &str = "CREATE INDEX CONCURRENTLY IF NOT EXISTS ";
/// An index that a try which died has left unfinished.
const IS_INVALID: &str = "SELECT EXISTS (SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
     WHERE c.relname = $1 AND pg_table_is_visible(c.oid) AND NOT i.indisvalid)";

/// Mail is in every script; a database that keeps one alphabet only would refuse it message by message.
pub(super) async fn check_encoding(conn: &mut PgConnection) -> Result<(), StoreError> {
    let encoding: String =
        sqlx::query_scalar("SHOW server_encoding").fetch_one(conn).await.map_err(failed)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(StoreError::Unexpected(format!(
        "its encoding is {encoding}: create the database with ENCODING 'UTF8' TEMPLATE template0"
    )))
}

impl SchemaRecord for PgConnection {
    const KNOWN: &'static [Migration] = MIGRATIONS;

    async fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL");
        query.bind(name).fetch_one(self).await.map_err(failed)
    }

    async fn newest(&mut self) -> Result<i64, StoreError> {
        let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM schema_migration");
        newest.fetch_one(self).await.map_err(failed)
    }

    async fn writable(&mut self) -> Result<(i64, i64), StoreError> {
        sqlx::query_as(WRITABLE).fetch_one(self).await.map_err(failed)
    }
}

/// Applies what is missing and returns it. A crash leaves each step wholly done, or to be done again.
pub(super) async fn up(conn: &mut PgConnection) -> Result<Vec<Migration>, StoreError> {
    up_to(conn, i64::MAX).await
}

/// The same up to this version.
pub(super) async fn up_to(conn: &mut PgConnection, newest: i64) -> Result<Vec<Migration>, StoreError> {
    let MissingSteps { steps: mut missing, is_new } = schema::lacks(conn).await?;
    missing.retain(|migration| migration.version <= newest);
    for (index, migration) in missing.iter().enumerate() {
        let place = StepPlace { is_first: index == 0, is_last: index + 1 == missing.len(), is_new };
        if !place.is_new {
            for statement in migration.online() {
                run_online(conn, migration, statement).await?;
            }
        }
        sqlx::raw_sql(BRIEF_LOCKS).execute(&mut *conn).await.map_err(failed)?;
        let mut patience = StepPatience::new(TRIES_MAX);
        while let Err(error) = step(conn, migration, &place).await {
            if let Err(rollback) = sqlx::query("ROLLBACK").execute(&mut *conn).await {
                tracing::debug!(error = %rollback, "nothing to roll back");
            }
            let is_locked = code_of(&error).as_deref() == Some("55P03");
            if !is_locked || !patience.is_left(migration, &error).await {
                return Err(failed(error));
            }
        }
    }
    Ok(missing)
}

/// Where a step stands among those that are missing.
struct StepPlace {
    is_first: bool,
    is_last: bool,
    /// Whether the database was empty: no other process uses it, so everything can be done at once.
    is_new: bool,
}

/// Runs a statement concurrently with writes. It can be run again.
async fn run_online(
    conn: &mut PgConnection,
    migration: &Migration,
    statement: &'static str,
) -> Result<(), StoreError> {
    sqlx::raw_sql(LONG_LOCKS).execute(&mut *conn).await.map_err(failed)?;
    let index = statement.strip_prefix(CREATE_INDEX).and_then(|rest| rest.split_whitespace().next());
    if let Some(index) = index {
        tracing::info!(migration = migration.name, index, "an index is made beside whoever writes");
        let is_invalid: bool =
            sqlx::query_scalar(IS_INVALID).bind(index).fetch_one(&mut *conn).await.map_err(failed)?;
        if is_invalid {
            let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {index}");
            sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *conn).await.map_err(failed)?;
        }
    }
    sqlx::raw_sql(statement).execute(&mut *conn).await.map_err(failed)?;
    crate::failpoint::crash_point("store_migration_online");
    Ok(())
}

/// Does a step in its transaction.
async fn step(conn: &mut PgConnection, migration: &Migration, place: &StepPlace) -> Result<(), sqlx::Error> {
    sqlx::query("BEGIN").execute(&mut *conn).await?;
    if place.is_first {
        views::put_views_aside(&mut *conn).await?;
    }
    sqlx::query(CREATE_RECORD).execute(&mut *conn).await?;
    if place.is_new {
        for statement in migration.online() {
            let plain = statement.replace(" CONCURRENTLY", "");
            sqlx::raw_sql(AssertSqlSafe(plain)).execute(&mut *conn).await?;
        }
    }
    sqlx::raw_sql(migration.at_once()).execute(&mut *conn).await?;
    crate::failpoint::crash_point("store_migration");
    sqlx::query("INSERT INTO schema_migration (version, name) VALUES ($1, $2)")
        .bind(migration.version)
        .bind(migration.name)
        .execute(&mut *conn)
        .await?;
    if migration.is_compatible() {
        sqlx::query("UPDATE schema_migration SET writable_from = $1 WHERE version = $2")
            .bind(migration.writable_from)
            .bind(migration.version)
            .execute(&mut *conn)
            .await?;
    }
    if place.is_last {
        views::recreate_views(&mut *conn).await?;
    }
    sqlx::query("COMMIT").execute(&mut *conn).await.map(drop)
}
