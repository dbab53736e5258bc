//! Views on SQLite, in the file itself, because a view cannot show tables of another file; their names have a
//! common prefix.
//!
//! All or nothing, also while a server has the file open: it waits for the moment that this takes. An index
//! takes longer, and is created only while no server has the file open; the caller locks it.

use std::path::Path;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    ViewsError, WAIT_MAX,
    template::{MARK, VIEWS, ViewsDialect, ViewsLocation},
};

/// Finds our views by the comment in their text.
const OURS: &str = "SELECT name FROM sqlite_schema WHERE type = 'view' AND instr(sql, ?) > 0 ORDER BY name";

pub(crate) async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new().filename(path).busy_timeout(WAIT_MAX).connect().await
}

/// Creates the views, and the index if wanted.
pub(crate) async fn install(path: &Path, place: &ViewsLocation, wants_index: bool) -> Result<(), ViewsError> {
    let index = if wants_index { place.make_index() } else { String::new() };
    Ok(run(path, place.make_views() + &index).await?)
}

/// Removes the views and the index.
pub(crate) async fn remove(path: &Path, place: &ViewsLocation) -> Result<(), ViewsError> {
    Ok(run(path, place.drop_views() + &place.drop_index()).await?)
}

async fn run(path: &Path, script: String) -> Result<(), sqlx::Error> {
    let mut conn = connect(path).await?;
    let mut txn = conn.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *txn).await?;
    txn.commit().await?;
    conn.close().await
}

/// Lets a migration change the tables under the views: every change of a table checks all of them. Called in
/// its transaction.
pub(crate) async fn put_views_aside(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    for name in ours(conn).await? {
        let script =
            format!("DROP VIEW \"{name}\"; CREATE VIEW \"{name}\" AS /* {MARK} */ SELECT 1 WHERE false");
        sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Recreates the views over the current tables. Called in the transaction of the last migration.
pub(crate) async fn recreate_views(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let (last, _) = VIEWS[VIEWS.len() - 1];
    for name in ours(conn).await? {
        let Some(schema) = name.strip_suffix(last).and_then(|start| start.strip_suffix('_')) else {
            continue;
        };
        let (dialect, schema) = (ViewsDialect::Sqlite, schema.to_owned());
        let place = ViewsLocation { dialect, schema, database: String::new(), has_column: false };
        sqlx::raw_sql(AssertSqlSafe(place.make_views())).execute(&mut *conn).await?;
    }
    Ok(())
}

async fn ours(conn: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
    let rows = sqlx::query(OURS).bind(format!("/* {MARK} */")).fetch_all(conn).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}
