//! Migrations: numbered, forward only, each in one transaction with its own record.

use sqlx::SqliteConnection;

use super::failed;
use crate::{
    error::StoreError,
    sql::schema::{self, Migration, MissingSteps, SchemaRecord},
    view_definitions::sqlite as views,
};

/// Every migration this program knows, in order.
pub const MIGRATIONS: &[Migration] = schema::migrations!("sqlite");

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migration (\
     version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID";

impl SchemaRecord for SqliteConnection {
    const KNOWN: &'static [Migration] = MIGRATIONS;

    async fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)");
        query.bind(name).fetch_one(self).await.map_err(failed)
    }

    async fn newest(&mut self) -> Result<i64, StoreError> {
        let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM schema_migration");
        newest.fetch_one(self).await.map_err(failed)
    }

    async fn writable(&mut self) -> Result<(i64, i64), StoreError> {
        let writable = "SELECT max(version), max(coalesce(writable_from, version)) FROM schema_migration";
        sqlx::query_as(writable).fetch_one(self).await.map_err(failed)
    }
}

/// Applies what is missing and returns it. A crash leaves each step wholly done or not at all.
pub(super) async fn up(conn: &mut SqliteConnection) -> Result<Vec<Migration>, StoreError> {
    let MissingSteps { steps: missing, .. } = schema::lacks(conn).await?;
    for (index, migration) in missing.iter().enumerate() {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(failed)?;
        let step = async {
            if index == 0 {
                views::put_views_aside(&mut *conn).await?;
            }
            sqlx::query(CREATE_RECORD).execute(&mut *conn).await?;
            sqlx::raw_sql(migration.sql).execute(&mut *conn).await?;
            crate::failpoint::crash_point("store_migration");
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
                views::recreate_views(&mut *conn).await?;
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
