//! Migrations: numbered, forward only, each in one transaction with its own record.

use sqlx::{Row, SqliteConnection};

use super::failed;
use crate::{
    error::StoreError,
    schema::{self, Migration, MigrationState},
    views::sqlite as views,
};

/// Every migration this program knows, in order.
pub const MIGRATIONS: &[Migration] = schema::migrations!("sqlite");

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migration (\
     version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID";

/// Refuses a database into which a copy is under way.
pub(super) async fn check_whole(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    if has_table(conn, "copy_progress").await? { Err(StoreError::HalfCopied) } else { Ok(()) }
}

async fn has_table(conn: &mut SqliteConnection, name: &str) -> Result<bool, StoreError> {
    let query = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)");
    query.bind(name).fetch_one(conn).await.map_err(failed)
}

/// The schema's version; 0 for an empty database.
async fn version(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    let exists = has_table(conn, "schema_migration").await?;
    if !exists {
        return Ok(0);
    }
    let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM schema_migration");
    let found: i64 = newest.fetch_one(&mut *conn).await.map_err(failed)?;
    if found > schema::newest(MIGRATIONS) {
        let row = sqlx::query("SELECT max(coalesce(writable_from, version)) FROM schema_migration")
            .fetch_one(&mut *conn)
            .await
            .map_err(failed)?;
        schema::check(MIGRATIONS, found, row.try_get(0).map_err(failed)?)?;
    }
    Ok(found)
}

/// Which migrations the database has.
pub(super) async fn status(conn: &mut SqliteConnection) -> Result<Vec<MigrationState>, StoreError> {
    Ok(schema::states(MIGRATIONS, version(conn).await?))
}

/// Applies what is missing and returns it. A crash leaves each step wholly done or not at all.
pub(super) async fn up(conn: &mut SqliteConnection) -> Result<Vec<Migration>, StoreError> {
    let missing = schema::missing(MIGRATIONS, version(conn).await?);
    for (index, migration) in missing.iter().enumerate() {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(failed)?;
        let step = async {
            if index == 0 {
                views::stand_aside(&mut *conn).await?;
            }
            sqlx::query(CREATE_RECORD).execute(&mut *conn).await?;
            sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
            crate::crash::crash_point("store_migration");
            sqlx::query("INSERT INTO schema_migration (version, name) VALUES (?, ?)")
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
