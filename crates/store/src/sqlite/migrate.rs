//! Migrations: numbered, forward only, each in one transaction with its own record.

use sqlx::{Row, SqliteConnection};

use super::failed;
use crate::error::StoreError;

/// One step of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1 without gaps.
    pub version: i64,
    /// What it does, in a word or two.
    pub name: &'static str,
    pub(crate) sql: &'static str,
}

/// Every migration this program knows, in order.
pub const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "ground", sql: include_str!("../../migrations/sqlite/0001_ground.sql") }];

/// A migration and whether the database has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationState {
    /// The migration.
    pub migration: Migration,
    /// Whether it has been applied.
    pub applied: bool,
}

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migration (\
     version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID";

/// The schema's version; 0 for an empty database.
async fn version(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema_migration')")
            .fetch_one(&mut *conn)
            .await
            .map_err(failed)?;
    if !exists {
        return Ok(0);
    }
    let row = sqlx::query("SELECT coalesce(max(version), 0) FROM schema_migration")
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    let found = row.try_get(0).map_err(failed)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    Ok(found)
}

/// Which migrations the database has.
pub(super) async fn status(conn: &mut SqliteConnection) -> Result<Vec<MigrationState>, StoreError> {
    let at = version(conn).await?;
    Ok(MIGRATIONS
        .iter()
        .map(|&migration| MigrationState { migration, applied: migration.version <= at })
        .collect())
}

/// Applies what is missing and returns it. A crash leaves each step wholly done or not at all.
pub(super) async fn up(conn: &mut SqliteConnection) -> Result<Vec<Migration>, StoreError> {
    let at = version(conn).await?;
    let missing: Vec<Migration> =
        MIGRATIONS.iter().copied().filter(|migration| migration.version > at).collect();
    for migration in &missing {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(failed)?;
        let step = async {
            sqlx::query(CREATE_RECORD).execute(&mut *conn).await?;
            sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
            crate::crash::crash_point("store_migration");
            sqlx::query("INSERT INTO schema_migration (version, name) VALUES (?, ?)")
                .bind(migration.version)
                .bind(migration.name)
                .execute(&mut *conn)
                .await?;
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
