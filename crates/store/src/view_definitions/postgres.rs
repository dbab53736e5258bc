//! Views on PostgreSQL, in a separate schema, all or nothing.
//!
//! A table cannot lose or change a column that a view shows. So a migration first replaces our views by empty
//! ones with the same columns, which keeps grants, and at its end restores them.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::{
    ViewsError, connected, error_text,
    template::{INDEX, MARK, VIEWS, ViewsDialect, ViewsLocation},
};

const SETTINGS: &str = "SET lock_timeout = '10s'; SET client_min_messages = warning";
/// Two concurrent installations would conflict.
const LOCK: &str = "SELECT pg_advisory_xact_lock(8095987614732939523)";
/// Finds our views by their comment.
const OURS: &str = "SELECT DISTINCT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'v' AND obj_description(c.oid, 'pg_class') = $1 ORDER BY 1";
/// The views in a schema that have names of ours, and whether they are ours.
const NAMED: &str = "SELECT c.relname, obj_description(c.oid, 'pg_class') IS NOT DISTINCT FROM $1 FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v' AND n.nspname = $2 AND c.relname = ANY($3)";
/// The grants on our views in a schema, to be granted again.
const GRANTED: &str = "SELECT format('GRANT %s ON %I.%I TO %s%s', a.privilege_type, n.nspname, c.relname, \
     CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, \
     CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL aclexplode(c.relacl) a \
     WHERE c.relkind = 'v' AND obj_description(c.oid, 'pg_class') = $1 AND n.nspname = $2 AND a.grantee <> c.relowner";
/// Replaces our views by empty ones.
const STAND_ASIDE: &str = "DO $$ DECLARE ours RECORD; BEGIN FOR ours IN \
     SELECT format('CREATE OR REPLACE VIEW %I.%I AS SELECT %s WHERE false', n.nspname, c.relname, \
     string_agg(format('NULL::%s%s AS %I', format_type(a.atttypid, a.atttypmod), \
     CASE WHEN a.attcollation <> t.typcollation THEN format(' COLLATE %s', a.attcollation::regcollation) END, a.attname), \
     ', ' ORDER BY a.attnum)) AS statement FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid \
     WHERE c.relkind = 'v' AND obj_description(c.oid, 'pg_class') = 'made by postway views install' \
     GROUP BY n.nspname, c.relname LOOP EXECUTE ours.statement; END LOOP; END $$";

pub(crate) async fn connect(url: &str) -> Result<PgConnection, ViewsError> {
    let mut conn = connected(PgConnection::connect(url)).await?;
    sqlx::raw_sql(SETTINGS).execute(&mut conn).await?;
    Ok(conn)
}

/// Creates the schema, the index if wanted, and the views.
pub(crate) async fn install(url: &str, place: &ViewsLocation, wants_index: bool) -> Result<(), ViewsError> {
    let mut conn = connect(url).await?;
    if wants_index {
        make_index(&mut conn, place).await?;
    }
    let mut txn = conn.begin().await?;
    sqlx::query(LOCK).execute(&mut *txn).await?;
    // A user who may not create schemas may still use an existing one.
    if !has_schema(&mut txn, &place.schema).await? {
        run(&mut txn, place, place.make_schema().unwrap_or_default()).await?;
    }
    make(&mut txn, place).await?;
    Ok(txn.commit().await?)
}

/// Replaces the views in place if their columns are the same, else recreates them with their grants. Called
/// in a transaction.
async fn make(conn: &mut PgConnection, place: &ViewsLocation) -> Result<(), ViewsError> {
    let (ours, others) = named(conn, place).await?;
    if let Some(view) = others.into_iter().next() {
        return Err(ViewsError::Taken { schema: place.schema.clone(), view });
    }
    sqlx::raw_sql("SAVEPOINT in_place").execute(&mut *conn).await?;
    match sqlx::raw_sql(AssertSqlSafe(place.make_views())).execute(&mut *conn).await {
        Ok(_) => return Ok(()),
        // A view cannot change its columns, their order or their types.
        Err(error) if is_coded(&error, &["42P16"]) => {}
        Err(error) => return Err(refused(place, error)),
    }
    sqlx::raw_sql("ROLLBACK TO SAVEPOINT in_place").execute(&mut *conn).await?;
    let granted = sqlx::query_scalar(GRANTED).bind(MARK).bind(&place.schema);
    let granted: Vec<String> = granted.fetch_all(&mut *conn).await?;
    let drops: String = ours.iter().map(|view| place.drop_view(view)).collect();
    run(conn, place, format!("{drops}{}{}", place.make_views(), granted.join(";\n"))).await
}

/// The views here that have names of ours: ours, and foreign ones.
async fn named(
    conn: &mut PgConnection,
    place: &ViewsLocation,
) -> Result<(Vec<String>, Vec<String>), sqlx::Error> {
    let names = VIEWS.map(|(view, _)| view);
    let found = sqlx::query_as(NAMED).bind(MARK).bind(&place.schema).bind(&names[..]);
    let found: Vec<(String, bool)> = found.fetch_all(conn).await?;
    let (ours, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, is_ours)| *is_ours);
    let names = |found: Vec<(String, bool)>| found.into_iter().map(|(name, _)| name).collect();
    Ok((names(ours), names(others)))
}

async fn run(conn: &mut PgConnection, place: &ViewsLocation, script: String) -> Result<(), ViewsError> {
    let done = sqlx::raw_sql(AssertSqlSafe(script)).execute(conn).await;
    done.map(drop).map_err(|error| refused(place, error))
}

/// Built concurrently with writes; an unfinished index is built again.
async fn make_index(conn: &mut PgConnection, place: &ViewsLocation) -> Result<(), ViewsError> {
    let query = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)",
    );
    let is_unfinished: bool = query.bind(INDEX).fetch_one(&mut *conn).await?;
    let mut steps = vec![place.make_index()];
    if is_unfinished {
        steps.insert(0, place.drop_index());
    }
    for step in steps {
        run(conn, place, step).await?;
    }
    Ok(())
}

/// Removes the views, and what else was created for them.
pub(crate) async fn remove(url: &str, place: &ViewsLocation, drops_schema: bool) -> Result<(), ViewsError> {
    let mut conn = connect(url).await?;
    if has_schema(&mut conn, &place.schema).await? {
        let mut txn = conn.begin().await?;
        let (ours, others) = named(&mut txn, place).await?;
        let mut script: String = ours.iter().map(|view| place.drop_view(view)).collect();
        // Foreign views stay, and so do the functions that they might call.
        if others.is_empty() {
            script.push_str(&place.drop_functions());
        }
        run(&mut txn, place, script).await?;
        txn.commit().await?;
        if drops_schema {
            let drop = format!("DROP SCHEMA IF EXISTS \"{}\"", place.schema);
            match sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await {
                Err(error) if !is_coded(&error, &["2BP01", "42501"]) => return Err(error.into()),
                // The schema contains foreign objects, or belongs to another user.
                Ok(_) | Err(_) => {}
            }
        }
    }
    sqlx::raw_sql(AssertSqlSafe(place.drop_index())).execute(&mut conn).await?;
    Ok(())
}

/// Lets a migration change the tables under the views. Called in its transaction.
pub(crate) async fn put_views_aside(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    // Views of another user stay; the migration succeeds unless it must change what they show.
    sqlx::raw_sql("SAVEPOINT views").execute(&mut *conn).await?;
    if let Err(error) = sqlx::raw_sql(STAND_ASIDE).execute(&mut *conn).await {
        tracing::warn!(%error, "views stay as they are; if the migration fails, run `postway views remove` first");
        sqlx::raw_sql("ROLLBACK TO SAVEPOINT views").execute(&mut *conn).await?;
    }
    Ok(())
}

/// Recreates the views over the current tables. Called in the transaction of the last migration, which it
/// never fails.
pub(crate) async fn recreate_views(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    for row in sqlx::query(OURS).bind(MARK).fetch_all(&mut *conn).await? {
        let schema: String = row.try_get(0)?;
        let place = ViewsLocation {
            dialect: ViewsDialect::Postgres,
            schema,
            database: String::new(),
            has_column: false,
        };
        sqlx::raw_sql("SAVEPOINT views").execute(&mut *conn).await?;
        if let Err(error) = make(&mut *conn, &place).await {
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

fn refused(place: &ViewsLocation, error: sqlx::Error) -> ViewsError {
    let (schema, error_text) = (place.schema.clone(), error_text(&error));
    match error {
        error if is_coded(&error, &["42501"]) => ViewsError::Denied { schema, error: error_text },
        error if is_coded(&error, &["2BP01"]) => ViewsError::InUse { schema, error: error_text },
        error => error.into(),
    }
}
