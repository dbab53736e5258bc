//! Migrations: numbered as SQLite's, forward only, each in one transaction with its own record.

use sqlx::PgConnection;

use super::failed;
use crate::error::StoreError;

pub use crate::sqlite::{Migration, MigrationState};

/// Every migration this program knows, in order.
pub const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "ground",
    sql: include_str!("../../migrations/postgres/0001_ground.sql"),
}];

const CREATE_RECORD: &str =
    "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)";

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
    let found = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM schema_migration")
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    Ok(found)
}

/// Which migrations the database has.
pub(super) async fn status(conn: &mut PgConnection) -> Result<Vec<MigrationState>, StoreError> {
    let at = version(conn).await?;
    Ok(MIGRATIONS
        .iter()
        .map(|&migration| MigrationState { migration, applied: migration.version <= at })
        .collect())
}

/// Applies what is missing and returns it. A crash leaves each step wholly done or not at all.
pub(super) async fn up(conn: &mut PgConnection) -> Result<Vec<Migration>, StoreError> {
    let at = version(conn).await?;
    let missing: Vec<Migration> =
        MIGRATIONS.iter().copied().filter(|migration| migration.version > at).collect();
    for migration in &missing {
        sqlx::query("BEGIN").execute(&mut *conn).await.map_err(failed)?;
        let step = async {
            sqlx::query(CREATE_RECORD).execute(&mut *conn).await?;
            sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
            crate::crash::crash_point("store_migration");
            sqlx::query("INSERT INTO schema_migration (version, name) VALUES ($1, $2)")
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
