//! The connection that writes, used from one thread that nothing else runs on.
//!
//! A statement of `sqlx` crosses to the driver's thread and back, and its continuation queues behind whatever
//! else the runtime does. A group of mails is some twenty statements, so the writer spent more time on the
//! way than in SQLite. Here a statement is a function call.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use rusqlite::{
    CachedStatement, Connection, ErrorCode, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use super::open;
use crate::{
    error::StoreError,
    sql::{Row, SqlSession, SqlText, Value},
};

/// The writer's own connection.
pub(super) struct WriterConnection(Connection);

/// How long the log is, and how much of it is in the file already, in pages.
#[derive(Clone, Copy, Default)]
pub(super) struct LogState {
    pub pages: i64,
    pub folded: i64,
}

/// A prepared statement and the values bound to it so far, in their order.
pub(super) struct Query<'c> {
    statement: CachedStatement<'c>,
    text: &'static str,
    bound: usize,
    fault: Option<rusqlite::Error>,
}

impl WriterConnection {
    /// Opens the file in `path`, which has its schema already.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let conn = Connection::open(path).map_err(failed)?;
        conn.set_prepared_statement_cache_capacity(open::STATEMENTS);
        conn.busy_timeout(open::BUSY_MAX).map_err(failed)?;
        for (name, value) in open::WRITER_PRAGMAS {
            conn.pragma_update(None, name, value).map_err(failed)?;
        }
        Ok(Self(conn))
    }

    pub fn query(&self, sql: &'static str) -> Result<Query<'_>, StoreError> {
        let statement = self.0.prepare_cached(sql).map_err(failed)?;
        Ok(Query { statement, text: sql, bound: 0, fault: None })
    }

    /// Begins a transaction that writes.
    pub fn begin(&self) -> Result<(), rusqlite::Error> {
        self.0.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)
    }

    pub fn commit(&self) -> Result<(), StoreError> {
        self.query("COMMIT")?.execute().map(drop)
    }

    pub fn roll_back(&self) -> Result<(), StoreError> {
        self.query("ROLLBACK")?.execute().map(drop)
    }

    /// How long the log is.
    pub fn log_state(&self) -> Result<LogState, StoreError> {
        let rows = self.query("PRAGMA wal_checkpoint(NOOP)")?.rows()?;
        let row = rows.first().ok_or_else(|| StoreError::Unexpected("the log has no state".into()))?;
        Ok(LogState { pages: row.int(1)?, folded: row.int(2)? })
    }

    pub fn page_bytes(&self) -> Result<i64, StoreError> {
        let rows = self.query("PRAGMA page_size")?.rows()?;
        rows.first()
            .map_or_else(|| Err(StoreError::Unexpected("a file without pages".into())), |row| row.int(0))
    }

    /// Checkpoints what no reader needs from the log any more. Blocks nothing.
    pub fn fold_log(&self) -> Result<(), StoreError> {
        self.query("PRAGMA wal_checkpoint(PASSIVE)")?.rows().map(drop)
    }

    /// How long to wait for a file that another process holds.
    pub fn set_busy_timeout(&self, wait: Duration) -> Result<(), StoreError> {
        self.0.busy_timeout(wait).map_err(failed)
    }

    pub fn close(self) -> Result<(), StoreError> {
        self.0.close().map_err(|(_, error)| failed(error))
    }
}

impl Query<'_> {
    /// Binds the next value. A value that cannot be bound is an error when the statement runs.
    pub fn bind(mut self, value: impl ToSql) -> Self {
        self.bound += 1;
        if self.fault.is_none() {
            self.fault = self.statement.raw_bind_parameter(self.bound, value).err();
        }
        self
    }

    fn bind_all(self, values: &[Value]) -> Self {
        values.iter().fold(self, Query::bind)
    }

    /// Runs it with the values of one row; the next row's may be bound then. On the writer's thread that
    /// costs less than one statement for many rows, for which SQLite makes a table of its own each time.
    pub fn execute_row(&mut self) -> Result<usize, StoreError> {
        self.bound = 0;
        self.check().and_then(|()| self.statement.raw_execute()).map_err(failed)
    }

    /// Runs it with the values of one row, as [`Query::execute_row`] does, and returns what it found.
    pub fn find_row(&mut self) -> Result<Option<Row>, StoreError> {
        self.bound = 0;
        self.check().map_err(failed)?;
        let (columns, text) = (self.statement.column_count(), self.text);
        let mut cursor = self.statement.raw_query();
        cursor.next().map_err(failed)?.map(|row| read_row(row, columns, text)).transpose()
    }

    fn check(&mut self) -> Result<(), rusqlite::Error> {
        self.fault.take().map_or(Ok(()), Err)
    }

    fn run(mut self) -> Result<usize, rusqlite::Error> {
        self.check()?;
        self.statement.raw_execute()
    }

    /// Runs it. Returns the number of affected rows.
    pub fn execute(self) -> Result<usize, StoreError> {
        self.run().map_err(failed)
    }

    /// Runs it and returns all of its rows.
    pub fn rows(mut self) -> Result<Vec<Row>, StoreError> {
        self.find_rows()
    }

    /// Runs it with the values of one row, as [`Query::execute_row`] does, and returns all that it found.
    pub fn find_rows(&mut self) -> Result<Vec<Row>, StoreError> {
        self.bound = 0;
        self.check().map_err(failed)?;
        let (columns, text) = (self.statement.column_count(), self.text);
        let mut cursor = self.statement.raw_query();
        let mut rows = Vec::new();
        while let Some(row) = cursor.next().map_err(failed)? {
            rows.push(read_row(row, columns, text)?);
        }
        Ok(rows)
    }
}

fn read_row(row: &rusqlite::Row<'_>, columns: usize, statement: &'static str) -> Result<Row, StoreError> {
    let value = |index| row.get_ref(index).map_err(failed).and_then(read_value);
    Ok(Row { values: (0..columns).map(value).collect::<Result<_, _>>()?, statement })
}

fn read_value(value: ValueRef<'_>) -> Result<Value, StoreError> {
    Ok(match value {
        ValueRef::Null => Value::Bytes(None),
        ValueRef::Integer(number) => Value::Int(Some(number)),
        ValueRef::Blob(bytes) => Value::Bytes(Some(bytes.to_vec())),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(Some(text.to_owned())),
            Err(_) => return Err(StoreError::Unexpected("a stored text that is not UTF-8".into())),
        },
        ValueRef::Real(_) => return Err(StoreError::Unexpected("a stored number with a fraction".into())),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Value::Int(number) => number.to_sql(),
            Value::Bool(flag) => flag.to_sql(),
            Value::Text(text) => text.to_sql(),
            Value::Bytes(bytes) => bytes.to_sql(),
        }
    }
}

/// SQL that is written once for every database. Nothing here waits for anything but the disk, and the thread
/// is the writer's own.
#[async_trait]
impl SqlSession for &mut WriterConnection {
    async fn execute(&mut self, sql: SqlText, values: Vec<Value>) -> Result<u64, StoreError> {
        Ok(self.query(sql.sqlite)?.bind_all(&values).execute()? as u64)
    }

    async fn insert(&mut self, sql: SqlText, values: Vec<Value>) -> Result<bool, StoreError> {
        match self.query(sql.sqlite)?.bind_all(&values).run() {
            Ok(rows) => Ok(rows == 1),
            Err(error) if is_taken(&error) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    async fn rows(&mut self, sql: SqlText, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        self.query(sql.sqlite)?.bind_all(&values).rows()
    }
}

/// Whether a key is there already.
fn is_taken(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_UNIQUE))
}

/// Whether another connection holds the file.
pub(super) fn is_locked(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// An error of the writer's driver in the port's words.
pub(super) fn failed(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error().map(|error| error.extended_code) {
        Some(code) => super::failed_with(code.unsigned_abs(), error.to_string()),
        None => StoreError::Unexpected(error.to_string()),
    }
}
