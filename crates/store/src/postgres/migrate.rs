//! Migrations: numbered as SQLite's, forward only, each in one transaction with its own record.

use sqlx::{PgConnection, Row};

use super::failed;
use crate::{
    error::StoreError,
    schema::{self, Migration, MigrationState},
    views::postgres as views,
};

/// Every migration this program knows, in order.
pub const MIGRATIONS: &[Migration] = schema::migrations!("postgres");

const CREATE_RECORD: &str =
    "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)";

pub(super) const WRITABLE: &str =
    "SELECT max(version), max(coalesce(writable_from, version)) FROM schema_migration";

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

/// The schema's version; 0 for an empty database.
async fn version(conn: &mut PgConnection) -> Result<i64, StoreError> {
    let exists: bool = sqlx::query_scalar("SELECT to_regclass('schema_migration') IS NOT NULL")
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    if !exists {
        return Ok(0);
    }
    let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM schema_migration");
    let found: i64 = newest.fetch_one(&mut *conn).await.map_err(failed)?;
    if found > schema::newest(MIGRATIONS) {
        check_writable(conn).await?;
    }
    Ok(found)
}

/// Refuses a schema that has gone on without this program.
pub(super) async fn check_writable(conn: &mut PgConnection) -> Result<(), StoreError> {
    let row = sqlx::query(WRITABLE).fetch_one(conn).await.map_err(failed)?;
    schema::check(MIGRATIONS, row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?)
}

/// Refuses a database into which a copy is under way.
pub(super) async fn check_whole(conn: &mut PgConnection) -> Result<(), StoreError> {
    let copying: bool = sqlx::query_scalar("SELECT to_regclass('copy_progress') IS NOT NULL")
        .fetch_one(conn)
        .await
        .map_err(failed)?;
    if copying { Err(StoreError::HalfCopied) } else { Ok(()) }
}

/// Whether the database lacks anything.
pub(super) async fn is_current(conn: &mut PgConnection) -> Result<bool, StoreError> {
    Ok(version(conn).await? >= schema::newest(MIGRATIONS))
}

/// Which migrations the database has.
pub(super) async fn status(conn: &mut PgConnection) -> Result<Vec<MigrationState>, StoreError> {
    Ok(schema::states(MIGRATIONS, version(conn).await?))
}

/// Applies what is missing and returns it. A crash leaves each step wholly done or not at all.
pub(super) async fn up(conn: &mut PgConnection) -> Result<Vec<Migration>, StoreError> {
    let missing = schema::missing(MIGRATIONS, version(conn).await?);
    for (index, migration) in missing.iter().enumerate() {
        sqlx::query("BEGIN").execute(&mut *conn).await.map_err(failed)?;
        let step = async {
            if index == 0 {
                views::stand_aside(&mut *conn).await?;
            }
            sqlx::query(CREATE_RECORD).execute(&mut *conn).await?;
            sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
            crate::crash::crash_point("store_migration");
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
            if index + 1 == missing.len() {
                views::come_back(&mut *conn).await?;
            }
            sqlx::query("COMMIT").execute(&mut *conn).await
        };
        if let Err(error) = step.await {
            if let Err(rollback) = sqlx::query("ROLLBACK").execute(&mut *conn).await {
                tracing::debug!(error = %rollback, "nothing to roll back");
            }
            return Err(failed(error));
        }
    }
    Ok(missing)
}
