//! Migrating to another database: copies everything that one database has into another, of the same kind or
//! not.
//!
//! Tables are copied in the order of [`tables`], a page at a time in the order of the primary key. Each page
//! is one transaction of the target together with its progress, so a transfer that dies continues where it
//! was. At the end the counters are rebuilt and both sides are counted; only then the progress is removed,
//! and the transfer is done.
//!
//! Both databases are first migrated to the schema of this program. The target must be empty except for what
//! a first start writes. Neither may be in use: a file is locked, and a server's database is refused while a
//! node sends heartbeats there. A source that changed between two runs of one transfer is refused. Leases are
//! copied unchanged; the first start on the target finds their holders dead and reclaims the work. Secrets
//! stay encrypted, so the key must move as well.

mod address;
mod columns;
mod in_use;
mod mysql;
mod page;
mod postgres;
mod progress;
mod sqlite;
mod statement;
mod table_description;
mod tables;
#[cfg(test)]
mod tests;
mod value;

use std::time::Duration;

use async_trait::async_trait;

pub use self::address::DatabaseAddress;
use self::{
    progress::TableProgress,
    statement::CopyDialect,
    table_description::{ColumnKind, CopiedTable},
    tables::TABLES,
    value::{Row, Value},
};
use crate::error::StoreError;

/// The longest that closing a connection may take.
const CLOSE_LASTS_MAX: Duration = Duration::from_secs(5);

/// The role of a database in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRole {
    /// The database to copy from.
    Source,
    /// The database to copy to.
    Target,
}

impl TransferRole {
    fn failed(self, reason: impl std::fmt::Display) -> TransferError {
        TransferError::Failed { role: self, reason: reason.to_string() }
    }
}

impl std::fmt::Display for TransferRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TransferRole::Source => "source",
            TransferRole::Target => "target",
        })
    }
}

/// Why a transfer could not begin or finish.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The database URL cannot be parsed.
    #[error(
        "the address of the {0} names no database: write sqlite:// and a path, postgres://user:password@host/database \
         or mysql://user:password@host/database"
    )]
    Address(TransferRole),
    /// Source and target are the same.
    #[error("the source and the target are the same database")]
    Same,
    /// There is no Postway database at the source.
    #[error("there is no database of postway at the source, {0}: check the address")]
    NoSource(String),
    /// A database could not be opened.
    #[error("the {role}: {error}")]
    Open {
        /// The database.
        role: TransferRole,
        /// The reason.
        error: StoreError,
    },
    /// A node uses the database.
    #[error("the {role} is in use by the node {node}: stop every postway on it first")]
    InUse {
        /// The database.
        role: TransferRole,
        /// The name of the node.
        node: String,
    },
    /// A statement failed.
    #[error("the {role} failed: {reason}; when that is mended, run the same command again, and it goes on")]
    Failed {
        /// The database.
        role: TransferRole,
        /// The text of the database.
        reason: String,
    },
    /// The target has data that no transfer wrote.
    #[error("the target already has rows in table {0}: give the copy an empty database")]
    Filled(&'static str),
    /// The target has an unfinished transfer from another source.
    #[error(
        "the target is half-way through a copy from {0}: go on from there, or give this copy an empty database"
    )]
    OtherSource(String),
    /// The source was used after the transfer began.
    #[error(
        "the source's table {0} has changed since the copy began: stop what uses the source, empty the target and copy \
         again"
    )]
    Changed(&'static str),
    /// Another transfer writes to the target.
    #[error("another copy writes to the target: let one of them finish")]
    Overtaken,
}

/// The progress of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct TransferProgress {
    /// The table that is being copied.
    pub table: &'static str,
    /// Rows in the target, of all tables.
    pub rows_done: u64,
    /// Rows in the source, of all tables.
    pub rows_total: u64,
}

/// The result of a transfer, with the counts of both sides.
#[derive(Clone, Debug)]
pub struct TransferReport {
    /// The number of rows that this run copied.
    pub rows_copied: u64,
    /// The number of rows that earlier runs had copied.
    pub rows_found: u64,
    /// Every table, in the order they were copied.
    pub tables: Vec<TableReport>,
}

/// One table on both sides.
#[derive(Clone, Copy, Debug)]
pub struct TableReport {
    /// Its name.
    pub name: &'static str,
    /// The counts of the source.
    pub source: TableCount,
    /// The counts of the target.
    pub target: TableCount,
}

/// The counts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableCount {
    /// Its rows.
    pub rows: i64,
    /// The sum of the numbers that every change of a row raises, if the table has any.
    pub sum: i64,
}

impl TransferReport {
    /// The tables that differ; empty after a finished transfer.
    pub fn differing(&self) -> impl Iterator<Item = &TableReport> {
        self.tables.iter().filter(|table| table.source != table.target)
    }
}

/// A connection that the transfer reads or writes with.
#[async_trait]
trait CopyConnection: Send {
    fn role(&self) -> TransferRole;

    fn dialect(&self) -> CopyDialect;

    /// Runs a statement without values.
    async fn run(&mut self, sql: &str) -> Result<(), TransferError>;

    /// Runs a statement. Returns the number of changed rows.
    async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, TransferError>;

    /// Reads rows with columns of these kinds.
    async fn rows(
        &mut self,
        sql: String,
        values: Vec<Value>,
        kinds: &[ColumnKind],
    ) -> Result<Vec<Row>, TransferError>;

    /// Writes rows; existing ones are replaced.
    async fn insert(&mut self, table: &CopiedTable, rows: Vec<Row>) -> Result<(), TransferError>;

    /// Ends the connection.
    async fn close(self: Box<Self>);
}

/// Closes a connection; everything is written by then. Over TLS the server may be gone before the last
/// message, or a lost one be waited for.
async fn ended(closing: impl Future<Output = Result<(), sqlx::Error>> + Send) {
    if !matches!(tokio::time::timeout(CLOSE_LASTS_MAX, closing).await, Ok(Ok(()))) {
        tracing::debug!("a connection was gone already");
    }
}

/// Copies everything `from` one database `to` another, or continues an interrupted transfer. Reports its
/// progress after every page. A report whose sides differ means that the transfer is not done.
pub async fn copy(
    from: &DatabaseAddress,
    to: &DatabaseAddress,
    on_progress: &mut (dyn FnMut(TransferProgress) + Send),
) -> Result<TransferReport, TransferError> {
    if from.identity() == to.identity() {
        return Err(TransferError::Same);
    }
    let mut source = from.open(TransferRole::Source).await?;
    let mut target = to.open(TransferRole::Target).await?;
    tokio::try_join!(in_use::check(source.as_mut()), in_use::check(target.as_mut()))?;
    let entries = progress::begin(source.as_mut(), target.as_mut(), &from.identity()).await?;
    let rows_total = entries.iter().map(|entry| entry.total.rows as u64).sum();
    let rows_found = entries.iter().map(|entry| entry.rows_done as u64).sum();
    let mut rows_done: u64 = rows_found;
    for mut entry in entries {
        let (table, done_before) = (entry.table.name, rows_done - entry.rows_done as u64);
        on_progress(TransferProgress { table, rows_done, rows_total });
        copy_table(source.as_mut(), target.as_mut(), &mut entry, &mut |of_table| {
            rows_done = done_before + of_table as u64;
            on_progress(TransferProgress { table, rows_done, rows_total });
        })
        .await?;
    }
    count_anew(target.as_mut()).await?;
    let mut tables = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let (source, target) =
            tokio::try_join!(page::count(source.as_mut(), table), page::count(target.as_mut(), table))?;
        tables.push(TableReport { name: table.name, source, target });
    }
    let report = TransferReport { rows_copied: rows_done - rows_found, rows_found, tables };
    if report.differing().next().is_none() {
        crate::failpoint::crash_point("copy_counted");
        progress::end(target.as_mut()).await?;
    }
    source.close().await;
    target.close().await;
    Ok(report)
}

/// One page is read while the one before it is written.
async fn copy_table(
    source: &mut dyn CopyConnection,
    target: &mut dyn CopyConnection,
    entry: &mut TableProgress,
    on_page: &mut (dyn FnMut(i64) + Send),
) -> Result<(), TransferError> {
    let table = entry.table;
    let mut rows = page::read(source, table, entry.last_key.as_deref()).await?;
    while let Some(last) = rows.last() {
        let last = last[..table.key].to_vec();
        let written = progress::write(target, entry, rows, last.clone());
        (rows, ()) = tokio::try_join!(page::read(source, table, Some(&last)), written)?;
        on_page(entry.rows_done);
    }
    Ok(())
}

/// Rebuilds the counters from the copied messages: they have other columns on each database, and may be split
/// among writers.
async fn count_anew(target: &mut dyn CopyConnection) -> Result<(), TransferError> {
    target.run("BEGIN").await?;
    for sql in target.dialect().count_anew() {
        target.run(sql).await?;
    }
    target.run("COMMIT").await
}
