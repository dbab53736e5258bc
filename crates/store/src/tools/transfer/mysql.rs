//! A MySQL or MariaDB database as source or target.

use std::convert::identity;

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, Row as _,
    mysql::{MySqlArguments, MySqlConnectOptions, MySqlRow},
    query::Query,
};

use super::{
    ColumnKind, CopiedTable, CopyConnection, CopyDialect, Row, TransferError, TransferRole, Value, ended,
};
use crate::sql::bound;

/// Strict mode, so that a value that does not fit is an error and not truncated.
const SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', wait_timeout = 31536000";
/// The part of a packet that is reserved for the text of a statement.
const PACKET_SPARE_BYTES: usize = 64 * 1024;

/// A connection to the server.
pub(super) struct MysqlSide {
    role: TransferRole,
    conn: MySqlConnection,
    /// The most bytes of the values of one statement.
    values_bytes_max: usize,
}

impl MysqlSide {
    pub async fn connect(url: &str, role: TransferRole) -> Result<Self, TransferError> {
        let failed = |error: sqlx::Error| role.failed(error);
        let options: MySqlConnectOptions = url.parse().map_err(failed)?;
        let options = options.charset("utf8mb4").pipes_as_concat(false).disable_statement_logging();
        let mut conn = MySqlConnection::connect_with(&options).await.map_err(failed)?;
        sqlx::raw_sql(SESSION).execute(&mut conn).await.map_err(failed)?;
        let packet: u64 =
            sqlx::query_scalar("SELECT @@max_allowed_packet").fetch_one(&mut conn).await.map_err(failed)?;
        let values_bytes_max = (packet as usize).saturating_sub(PACKET_SPARE_BYTES);
        Ok(Self { role, conn, values_bytes_max })
    }
}

#[async_trait]
impl CopyConnection for MysqlSide {
    fn role(&self) -> TransferRole {
        self.role
    }

    fn dialect(&self) -> CopyDialect {
        CopyDialect::Mysql
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
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        for row in rows {
            let bytes: usize = row.iter().map(Value::size).sum();
            if bytes > self.values_bytes_max {
                return Err(self.role.failed(format!(
                    "a row of {} with {bytes} bytes does not fit into its max_allowed_packet: raise that",
                    table.name
                )));
            }
            if batch_bytes + bytes > self.values_bytes_max {
                self.insert_batch(table, std::mem::take(&mut batch)).await?;
                batch_bytes = 0;
            }
            batch_bytes += bytes;
            batch.push(row);
        }
        self.insert_batch(table, batch).await
    }

    async fn close(self: Box<Self>) {
        ended(self.conn.close()).await;
    }
}

impl MysqlSide {
    async fn insert_batch(&mut self, table: &CopiedTable, rows: Vec<Row>) -> Result<(), TransferError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = CopyDialect::Mysql.insert(table, rows.len());
        self.execute(sql, rows.into_iter().flatten().collect()).await.map(drop)
    }
}

fn query(sql: String, values: Vec<Value>) -> Query<'static, MySql, MySqlArguments> {
    // Pages have all sizes, so a statement is rarely used again.
    let query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
    bound!(query, values, identity)
}

fn decode(row: &MySqlRow, kinds: &[ColumnKind]) -> Result<Row, sqlx::Error> {
    let value = |(place, kind): (usize, &ColumnKind)| {
        Ok(match kind {
            ColumnKind::Int => Value::Int(row.try_get(place)?),
            ColumnKind::Bool => Value::Bool(row.try_get(place)?),
            ColumnKind::Bytes => Value::Bytes(row.try_get(place)?),
            // Some texts are stored as bytes, to be compared as such.
            ColumnKind::Text => {
                let bytes: Option<Vec<u8>> = row.try_get(place)?;
                let text = bytes.map(String::from_utf8).transpose();
                Value::Text(text.map_err(|error| sqlx::Error::Decode(error.into()))?)
            }
        })
    };
    kinds.iter().enumerate().map(value).collect()
}
