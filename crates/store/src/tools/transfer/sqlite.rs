//! A SQLite file as source or target.

use std::{convert::identity, path::Path, time::Duration};

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow},
};

use super::{
    ColumnKind, CopiedTable, CopyConnection, CopyDialect, Row, TransferError, TransferRole, Value, ended,
};
use crate::{driver::sqlite::SqliteStore, port::OperationStore, sql::bound};

/// The rows that the driver reads ahead; each may contain a complete mail.
const READ_AHEAD: usize = 4;

/// A connection to the file.
pub(super) struct SqliteSide {
    role: TransferRole,
    conn: SqliteConnection,
    /// Holds the file's lock.
    store: SqliteStore,
}

impl SqliteSide {
    pub async fn connect(path: &Path, store: SqliteStore, role: TransferRole) -> Result<Self, TransferError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(role == TransferRole::Source)
            .busy_timeout(Duration::from_secs(10))
            .row_buffer_size(READ_AHEAD)
            .disable_statement_logging();
        let conn = SqliteConnection::connect_with(&options).await.map_err(|error| role.failed(error))?;
        Ok(Self { role, conn, store })
    }
}

#[async_trait]
impl CopyConnection for SqliteSide {
    fn role(&self) -> TransferRole {
        self.role
    }

    fn dialect(&self) -> CopyDialect {
        CopyDialect::Sqlite
    }

    async fn run(&mut self, sql: &str) -> Result<(), TransferError> {
        let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.conn).await;
        done.map(drop).map_err(|error| self.role.failed(error))
    }

    async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, TransferError> {
        let done = query(sql, values).execute(&mut self.conn).await;
        done.map(|done| done.rows_affected()).map_err(|error| self.role.failed(error))
    }

    async fn rows(
        &mut self,
        sql: String,
        values: Vec<Value>,
        kinds: &[ColumnKind],
    ) -> Result<Vec<Row>, TransferError> {
        let rows = query(sql, values).fetch_all(&mut self.conn).await;
        let rows = rows.and_then(|rows| rows.iter().map(|row| decode(row, kinds)).collect());
        rows.map_err(|error| self.role.failed(error))
    }

    async fn insert(&mut self, table: &CopiedTable, rows: Vec<Row>) -> Result<(), TransferError> {
        let sql = CopyDialect::Sqlite.insert(table, rows.len());
        self.execute(sql, rows.into_iter().flatten().collect()).await.map(drop)
    }

    async fn close(self: Box<Self>) {
        ended(self.conn.close()).await;
        self.store.close().await;
    }
}

fn query(sql: String, values: Vec<Value>) -> Query<'static, Sqlite, SqliteArguments> {
    // Pages have all sizes, so a statement is rarely used again.
    let query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
    bound!(query, values, identity)
}

fn decode(row: &SqliteRow, kinds: &[ColumnKind]) -> Result<Row, sqlx::Error> {
    let value = |(place, kind): (usize, &ColumnKind)| {
        Ok(match kind {
            ColumnKind::Int => Value::Int(row.try_get(place)?),
            ColumnKind::Bool => Value::Bool(row.try_get(place)?),
            ColumnKind::Text => Value::Text(row.try_get(place)?),
            ColumnKind::Bytes => Value::Bytes(row.try_get(place)?),
        })
    };
    kinds.iter().enumerate().map(value).collect()
}
