//! A PostgreSQL database as source or target.

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, Row as _,
    postgres::{PgArguments, PgConnectOptions, PgRow},
    query::Query,
};

use super::{
    ColumnKind, CopiedTable, CopyConnection, CopyDialect, Row, TransferError, TransferRole, Value, ended,
};
use crate::sql::{bound, without_nul};

/// A count may take long. Pages are read in the order of the primary key, whatever the statistics say.
const SESSION: &str = "SET statement_timeout = 0; SET idle_session_timeout = 0; SET lock_timeout = '10s'; \
     SET enable_sort = off; SET enable_bitmapscan = off";

/// A connection to the server.
pub(super) struct PostgresSide {
    role: TransferRole,
    conn: PgConnection,
}

impl PostgresSide {
    pub async fn connect(url: &str, role: TransferRole) -> Result<Self, TransferError> {
        let failed = |error: sqlx::Error| role.failed(error);
        let options: PgConnectOptions = url.parse().map_err(failed)?;
        let options = options.application_name("postway").disable_statement_logging();
        let mut conn = PgConnection::connect_with(&options).await.map_err(failed)?;
        sqlx::raw_sql(SESSION).execute(&mut conn).await.map_err(failed)?;
        Ok(Self { role, conn })
    }
}

#[async_trait]
impl CopyConnection for PostgresSide {
    fn role(&self) -> TransferRole {
        self.role
    }

    fn dialect(&self) -> CopyDialect {
        CopyDialect::Postgres
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
        let mut query = sqlx::query(AssertSqlSafe(CopyDialect::Postgres.insert(table, rows.len())));
        for array in arrays(table, rows) {
            query = match array {
                ColumnArray::Int(values) => query.bind(values),
                ColumnArray::Bool(values) => query.bind(values),
                ColumnArray::Text(values) => query.bind(values),
                ColumnArray::Bytes(values) => query.bind(values),
            };
        }
        query.execute(&mut self.conn).await.map(drop).map_err(|error| self.role.failed(error))
    }

    async fn close(self: Box<Self>) {
        ended(self.conn.close()).await;
    }
}

/// The values of one column.
enum ColumnArray {
    Int(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// One array for each column, in which a statement takes any number of rows.
fn arrays(table: &CopiedTable, rows: Vec<Row>) -> Vec<ColumnArray> {
    let empty = |kind: ColumnKind| match kind {
        ColumnKind::Int => ColumnArray::Int(Vec::with_capacity(rows.len())),
        ColumnKind::Bool => ColumnArray::Bool(Vec::with_capacity(rows.len())),
        ColumnKind::Text => ColumnArray::Text(Vec::with_capacity(rows.len())),
        ColumnKind::Bytes => ColumnArray::Bytes(Vec::with_capacity(rows.len())),
    };
    let mut arrays: Vec<ColumnArray> = table.columns.iter().map(|column| empty(column.kind)).collect();
    for (array, value) in rows.into_iter().flat_map(|row| (0..).zip(row)) {
        match (&mut arrays[array], value) {
            (ColumnArray::Int(values), Value::Int(value)) => values.push(value),
            (ColumnArray::Bool(values), Value::Bool(value)) => values.push(value),
            (ColumnArray::Text(values), Value::Text(value)) => values.push(value.map(without_nul)),
            (ColumnArray::Bytes(values), Value::Bytes(value)) => values.push(value),
            _ => unreachable!("values are read by the kinds of these columns"),
        }
    }
    arrays
}

fn query(sql: String, values: Vec<Value>) -> Query<'static, Postgres, PgArguments> {
    let query = sqlx::query(AssertSqlSafe(sql));
    bound!(query, values, without_nul)
}

fn decode(row: &PgRow, kinds: &[ColumnKind]) -> Result<Row, sqlx::Error> {
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
