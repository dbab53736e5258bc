//! Views on PostgreSQL: in a schema of their own, all or nothing.
//!
//! A table cannot lose or change a column that a view shows. So a migration first puts empty views in the place of ours, with
//! the same columns, and so with the same grants; and in the end our own again.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::{
    ViewsError, connected,
    template::{Dialect, INDEX, MARK, Place},
};

const SETTINGS: &str = "SET lock_timeout = '10s'; SET client_min_messages = warning";
/// Two that install at once would trip over each other.
const LOCK: &str = "SELECT pg_advisory_xact_lock(8095987614732939523)";
/// Ours, by their comment.
const OURS: &str = "SELECT DISTINCT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'v' AND obj_description(c.oid, 'pg_class') = $1 ORDER BY 1";
/// Empty views in the place of ours.
const STAND_ASIDE: &str = "DO $$ DECLARE ours RECORD; BEGIN FOR ours IN \
     SELECT format('CREATE OR REPLACE VIEW %I.%I AS SELECT %s WHERE false', n.nspname, c.relname, \
     string_agg(format('NULL::%s%s AS %I', format_type(a.atttypid, a.atttypmod), \
     CASE WHEN a.attcollation <> t.typcollation THEN format(' COLLATE %s', a.attcollation::regcollation) END, a.attname), \
     ', ' ORDER BY a.attnum)) AS statement FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid \
     WHERE c.relkind = 'v' AND obj_description(c.oid, 'pg_class') = 'made by postway views install' \
     GROUP BY n.nspname, c.relname LOOP EXECUTE ours.statement; END LOOP; END $$";

async fn connect(url: &str) -> Result<PgConnection, ViewsError> {
    let mut conn = connected(PgConnection::connect(url)).await?;
    sqlx::raw_sql(SETTINGS).execute(&mut conn).await?;
    Ok(conn)
}

/// Makes the schema, the index if wanted, and the views.
pub(super) async fn install(url: &str, place: &Place, wants_index: bool) -> Result<(), ViewsError> {
    let mut conn = connect(url).await?;
    if wants_index {
        make_index(&mut conn, place).await?;
    }
    let installing = async {
        let mut txn = conn.begin().await?;
        sqlx::query(LOCK).execute(&mut *txn).await?;
        // Whoever may not make schemas may still use one that is there.
        if !has_schema(&mut txn, &place.schema).await? {
            let script = place.make_schema().unwrap_or_default();
            sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *txn).await?;
        }
        sqlx::raw_sql(AssertSqlSafe(place.make_views())).execute(&mut *txn).await?;
        txn.commit().await
    };
    installing.await.map_err(|error: sqlx::Error| refused(place, error))
}

/// Beside those who write; one that was not finished is made anew.
async fn make_index(conn: &mut PgConnection, place: &Place) -> Result<(), ViewsError> {
    let query = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)",
    );
    let is_unfinished: bool = query.bind(INDEX).fetch_one(&mut *conn).await?;
    let mut steps = vec![place.make_index()];
    if is_unfinished {
        steps.insert(0, place.drop_index());
    }
    for step in steps {
        let made = sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *conn).await;
        made.map_err(|error| refused(place, error))?;
    }
    Ok(())
}

/// Takes the views away, and what else was made for them.
pub(super) async fn remove(url: &str, place: &Place, drops_schema: bool) -> Result<(), ViewsError> {
    let mut conn = connect(url).await?;
    if has_schema(&mut conn, &place.schema).await? {
        let mut txn = conn.begin().await?;
        let removed = sqlx::raw_sql(AssertSqlSafe(place.drop_views())).execute(&mut *txn).await;
        removed.map_err(|error| refused(place, error))?;
        txn.commit().await?;
        if drops_schema {
            let drop = format!("DROP SCHEMA IF EXISTS \"{}\"", place.schema);
            match sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await {
                Err(error) if !is_coded(&error, &["2BP01", "42501"]) => return Err(error.into()),
                // Somebody else's things are in it, or it is somebody else's.
                Ok(_) | Err(_) => {}
            }
        }
    }
    sqlx::raw_sql(AssertSqlSafe(place.drop_index())).execute(&mut conn).await?;
    Ok(())
}

/// Lets a migration change the tables under the views. Called in its transaction.
pub(crate) async fn stand_aside(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    // Where views are another user's they stay; the migration goes through unless it must change what they show.
    sqlx::raw_sql("SAVEPOINT views").execute(&mut *conn).await?;
    if let Err(error) = sqlx::raw_sql(STAND_ASIDE).execute(&mut *conn).await {
        tracing::warn!(%error, "views stay as they are; if the migration fails, run `postway views remove` first");
        sqlx::raw_sql("ROLLBACK TO SAVEPOINT views").execute(&mut *conn).await?;
    }
    Ok(())
}

/// Makes the views again over what the tables are now. Called in the transaction of the last migration, which it never fails.
pub(crate) async fn come_back(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    for row in sqlx::query(OURS).bind(MARK).fetch_all(&mut *conn).await? {
        let schema: String = row.try_get(0)?;
        let place = Place { dialect: Dialect::Postgres, schema, database: String::new(), has_column: false };
        sqlx::raw_sql("SAVEPOINT views").execute(&mut *conn).await?;
        if let Err(error) = sqlx::raw_sql(AssertSqlSafe(place.make_views())).execute(&mut *conn).await {
            tracing::warn!(%error, schema = place.schema, "views cannot be brought up to date: remove and install them");
            sqlx::raw_sql("ROLLBACK TO SAVEPOINT views").execute(&mut *conn).await?;
        }
    }
    Ok(())
}

async fn has_schema(conn: &mut PgConnection, schema: &str) -> Result<bool, sqlx::Error> {
    let query = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)");
    query.bind(schema).fetch_one(conn).await
}

fn is_coded(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| codes.contains(&&*code))
}

fn refused(place: &Place, error: sqlx::Error) -> ViewsError {
    if is_coded(&error, &["42501"]) {
        return ViewsError::Denied { schema: place.schema.clone(), error: error.to_string() };
    }
    error.into()
}
