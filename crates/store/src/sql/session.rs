//! [`SqlSession`] for the three drivers.

use std::{
    collections::HashMap,
    convert::identity,
    ops::DerefMut,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{
    MySqlConnection, PgConnection, Row as _, SqliteConnection, TypeInfo, ValueRef, mysql::MySqlRow,
    postgres::PgRow, sqlite::SqliteRow,
};

use super::{Row, SqlSession, SqlText, Value, numbered};
use crate::error::StoreError;

/// Converts a driver's error.
type Failed = fn(sqlx::Error) -> StoreError;

/// A query with its values, texts adapted to the driver. The drivers' types differ, so this cannot be a
/// function.
macro_rules! bound {
    ($query:expr, $values:expr, $fit:path) => {
        $values.into_iter().fold($query, |query, value| match value {
            $crate::sql::Value::Int(number) => query.bind(number),
            $crate::sql::Value::Bool(flag) => query.bind(flag),
            $crate::sql::Value::Text(text) => query.bind(text.map($fit)),
            $crate::sql::Value::Bytes(bytes) => query.bind(bytes),
        })
    };
}
pub(crate) use bound;

macro_rules! session {
    ($name:ident, $connection:ty, $row:ty, $text:path, $fit:path, $decode:ident) => {
        /// A connection of this driver, borrowed or owned, and how its errors are converted.
        pub(crate) struct $name<C> {
            pub conn: C,
            pub failed: Failed,
        }

        #[async_trait]
        impl<C: DerefMut<Target = $connection> + Send> SqlSession for $name<C> {
            async fn execute(&mut self, sql: SqlText, values: Vec<Value>) -> Result<u64, StoreError> {
                let done =
                    in_time(bound!(sqlx::query($text(&sql)), values, $fit).execute(&mut *self.conn)).await?;
                done.map(|done| done.rows_affected()).map_err(self.failed)
            }

            async fn insert(&mut self, sql: SqlText, values: Vec<Value>) -> Result<bool, StoreError> {
                match in_time(bound!(sqlx::query($text(&sql)), values, $fit).execute(&mut *self.conn)).await?
                {
                    Ok(done) => Ok(done.rows_affected() == 1),
                    Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
                    Err(error) => Err((self.failed)(error)),
                }
            }

            async fn rows(&mut self, sql: SqlText, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
                let rows = in_time(bound!(sqlx::query($text(&sql)), values, $fit).fetch_all(&mut *self.conn))
                    .await?;
                let rows = rows.map_err(self.failed)?;
                let statement = $text(&sql);
                rows.iter().map(|row| $decode(row, statement).map_err(self.failed)).collect()
            }
        }

        fn $decode(row: &$row, statement: &'static str) -> Result<Row, sqlx::Error> {
            let value = |index: usize| {
                let raw = row.try_get_raw(index)?;
                if raw.is_null() {
                    return Ok(Value::Bytes(None));
                }
                let kind = kind_of(raw.type_info().name());
                Ok(match kind {
                    SqlColumnKind::Int => Value::Int(Some(row.try_get(index)?)),
                    SqlColumnKind::Bool => Value::Bool(Some(row.try_get(index)?)),
                    SqlColumnKind::Text => Value::Text(Some(row.try_get(index)?)),
                    SqlColumnKind::Bytes => Value::Bytes(Some(row.try_get(index)?)),
                })
            };
            let values = (0..row.len()).map(value).collect::<Result<Vec<Value>, sqlx::Error>>()?;
            Ok(Row { values, statement })
        }
    };
}

session!(SqliteSession, SqliteConnection, SqliteRow, SqlText::sqlite_text, identity, decode_sqlite);
session!(PostgresSession, PgConnection, PgRow, postgres_text, without_nul, decode_postgres);
session!(MysqlSession, MySqlConnection, MySqlRow, SqlText::mysql_text, identity, decode_mysql);

/// The longest wait for a statement: more than any server here allows, for servers that are gone.
const STATEMENT_LASTS_MAX: Duration = Duration::from_secs(60);

/// Bounds the wait for a statement.
pub(crate) async fn in_time<T>(statement: impl Future<Output = T>) -> Result<T, StoreError> {
    let late = |_| StoreError::Unavailable("the database did not answer in time".into());
    tokio::time::timeout(STATEMENT_LASTS_MAX, statement).await.map_err(late)
}

/// PostgreSQL's text cannot contain NUL. Texts from outside (a relay's reply, a note) may.
pub(crate) fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

enum SqlColumnKind {
    Int,
    Bool,
    Text,
    Bytes,
}

/// The type of a column, from the name that the driver gives it.
fn kind_of(name: &str) -> SqlColumnKind {
    match name {
        "INTEGER" | "INT8" | "BIGINT" | "INT" => SqlColumnKind::Int,
        "BOOL" | "BOOLEAN" => SqlColumnKind::Bool,
        "TEXT" | "VARCHAR" | "CHAR" | "LONGTEXT" | "MEDIUMTEXT" | "TINYTEXT" => SqlColumnKind::Text,
        _ => SqlColumnKind::Bytes,
    }
}

/// PostgreSQL's form of a text. The number of texts is limited, so each form is made once and cached.
fn postgres_text(sql: &SqlText) -> &'static str {
    let text = sql.postgres;
    static FORMS: LazyLock<Mutex<HashMap<&'static str, &'static str>>> = LazyLock::new(Mutex::default);
    let mut forms = FORMS.lock().unwrap_or_else(PoisonError::into_inner);
    forms.entry(text).or_insert_with(|| numbered(text).leak())
}
