//! Migrations: numbered, forward only. DDL commits by itself here, so each step can be run again: its record is written
//! last, and whoever migrates holds the database's lock.

use sqlx::MySqlConnection;

use super::failed;
use crate::{
    error::StoreError,
    sqlite::{Migration, MigrationState},
};

/// Every migration this program knows, in order; numbers and names are those of the other databases.
pub(super) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "ground", sql: include_str!("../../migrations/mysql/0001_ground.sql") }];

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY, \
     name VARCHAR(64) NOT NULL) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin";

/// The schema's version; 0 for an empty database.
async fn version(conn: &mut MySqlConnection) -> Result<i64, StoreError> {
    let exists: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = 'schema_migration')",
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(failed)?;
    if !exists {
        return Ok(0);
    }
    let found: i64 = sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM schema_migration")
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
pub(super) async fn status(conn: &mut MySqlConnection) -> Result<Vec<MigrationState>, StoreError> {
    let at = version(conn).await?;
    Ok(MIGRATIONS
        .iter()
        .map(|&migration| MigrationState { migration, applied: migration.version <= at })
        .collect())
}

/// Applies what is missing and returns it.
pub(super) async fn up(conn: &mut MySqlConnection) -> Result<Vec<Migration>, StoreError> {
    let at = version(conn).await?;
    let missing: Vec<Migration> =
        MIGRATIONS.iter().copied().filter(|migration| migration.version > at).collect();
    for migration in &missing {
        sqlx::raw_sql(CREATE_RECORD).execute(&mut *conn).await.map_err(failed)?;
        sqlx::raw_sql(migration.sql).execute(&mut *conn).await.map_err(failed)?;
        crate::crash::crash_point("store_migration");
        sqlx::query("INSERT INTO schema_migration (version, name) VALUES (?, ?)")
            .bind(migration.version)
            .bind(migration.name)
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
    }
    Ok(missing)
}
