//! Views on MySQL and MariaDB, in a separate database.
//!
//! DDL commits by itself here, so each statement can be run again. Views do not block changes of tables; a
//! migration recreates them at its end, and grants stay, because they belong to names.

use sqlx::{AssertSqlSafe, Connection, MySqlConnection, Row, mysql::MySqlDatabaseError};

use super::{
    ViewsError, connected, error_text,
    template::{INDEX_COLUMN, ViewsDialect, ViewsLocation},
};

/// The time that a statement waits for tables in use. The character set is that of the texts.
const SETTINGS: &str = "SET NAMES utf8mb4; SET SESSION lock_wait_timeout = 10";
/// Finds our views by the tables they show: database names differ in case, and in characters that a pattern
/// would treat as wildcards.
const OURS: &str = "SELECT DISTINCT CAST(table_schema AS CHAR), CAST(DATABASE() AS CHAR) FROM information_schema.views \
     WHERE table_name = 'monitored_emails_tasks' \
     AND LOCATE(CAST(CONCAT('`', DATABASE(), '`.`inbound_message`') AS BINARY), CAST(view_definition AS BINARY)) > 0";

pub(crate) async fn connect(url: &str) -> Result<MySqlConnection, ViewsError> {
    let mut conn = connected(MySqlConnection::connect(url)).await?;
    sqlx::raw_sql(SETTINGS).execute(&mut conn).await?;
    Ok(conn)
}

/// Creates the database, the index if wanted, and the views.
pub(crate) async fn install(
    url: &str,
    mut place: ViewsLocation,
    wants_index: bool,
) -> Result<(), ViewsError> {
    let mut conn = connect(url).await?;
    let refused = |error| refused(&place, error);
    // A user who may not create databases may still use an existing one.
    let mut steps = Vec::new();
    if !has_database(&mut conn, &place.schema).await? {
        steps.extend(place.make_schema());
    }
    let has_column = has_column(&mut conn).await?;
    if wants_index && !has_column {
        steps.push(place.make_index());
    }
    for step in steps {
        sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut conn).await.map_err(refused)?;
    }
    place.has_column = wants_index || has_column;
    let made = sqlx::raw_sql(AssertSqlSafe(place.make_views())).execute(&mut conn).await;
    made.map(drop).map_err(|error| self::refused(&place, error))
}

/// Removes the views, and what else was created for them.
pub(crate) async fn remove(url: &str, place: &ViewsLocation, drops_schema: bool) -> Result<(), ViewsError> {
    let mut conn = connect(url).await?;
    let mut steps = Vec::new();
    if has_database(&mut conn, &place.schema).await? {
        steps.push(place.drop_views());
    }
    if has_column(&mut conn).await? {
        steps.push(place.drop_index());
    }
    for step in steps {
        let done = sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut conn).await;
        done.map_err(|error| refused(place, error))?;
    }
    let others = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?";
    let others: i64 = sqlx::query_scalar(others).bind(&place.schema).fetch_one(&mut conn).await?;
    if drops_schema && others == 0 {
        let drop = format!("DROP DATABASE IF EXISTS `{}`", place.schema);
        let done = sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await;
        done.map_err(|error| refused(place, error))?;
    }
    Ok(())
}

/// Recreates the views over the current tables. Never fails a migration.
pub(crate) async fn recreate_views(conn: &mut MySqlConnection) {
    if let Err(error) = make_again(conn).await {
        tracing::warn!(%error, "views cannot be brought up to date: run `postway views install`");
    }
}

async fn make_again(conn: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let has_column = has_column(&mut *conn).await?;
    for row in sqlx::query(OURS).fetch_all(&mut *conn).await? {
        let (schema, database) = (row.try_get(0)?, row.try_get(1)?);
        let place = ViewsLocation { dialect: ViewsDialect::Mysql, schema, database, has_column };
        sqlx::raw_sql(AssertSqlSafe(place.make_views())).execute(&mut *conn).await?;
    }
    Ok(())
}

async fn has_database(conn: &mut MySqlConnection, name: &str) -> Result<bool, sqlx::Error> {
    let found = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?";
    let found: i64 = sqlx::query_scalar(found).bind(name).fetch_one(conn).await?;
    Ok(found > 0)
}

async fn has_column(conn: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    let found = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() \
         AND table_name = 'content' AND column_name = ?";
    let found: i64 = sqlx::query_scalar(found).bind(INDEX_COLUMN).fetch_one(conn).await?;
    Ok(found > 0)
}

fn refused(place: &ViewsLocation, error: sqlx::Error) -> ViewsError {
    let database = error.as_database_error();
    let number = database.and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    // The error codes for denied access to a database, a table, a column, or an administrative action.
    if matches!(number.map(MySqlDatabaseError::number), Some(1044 | 1142 | 1143 | 1227)) {
        return ViewsError::Denied { schema: place.schema.clone(), error: error_text(&error) };
    }
    error.into()
}
