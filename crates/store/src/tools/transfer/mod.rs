//! Moving house: carries everything that one database keeps into another, of the same kind or not.
//!
//! Tables go in the order of [`tables`], a page at a time along the primary key. Each page is one transaction of the
//! target together with the record of how far the copy is, so a copy that dies goes on where it was. At the end the
//! counters are made anew and both sides are counted; only then the record goes, and the copy is done.
//!
//! Both databases are first brought to the schema of this program. The target must be empty but for what a first start
//! lays down. Neither may be in use: a file is locked meanwhile, and a server's database is refused while a node beats
//! there. A source that changed between two runs of one copy is refused. Leases travel as they are; the first start
//! on the target finds their holders dead and takes the work back. Secrets stay sealed, so the key must move as well.

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

pub use self::address::Address;
use self::{
    progress::Entry,
    statement::Dialect,
    table_description::{Kind, Table},
    tables::TABLES,
    value::{Row, Value},
};
use crate::error::StoreError;

/// How long taking leave may take.
const CLOSE_LASTS_MAX: Duration = Duration::from_secs(5);

/// One of the two databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Where everything is.
    Source,
    /// Where everything goes.
    Target,
}

impl Role {
    fn failed(self, reason: impl std::fmt::Display) -> CopyError {
        CopyError::Failed { role: self, reason: reason.to_string() }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Role::Source => "source",
            Role::Target => "target",
        })
    }
}

/// Why a copy could not begin, or did not end.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// An address that is none.
    #[error(
        "the address of the {0} names no database: write sqlite:// and a path, postgres://user:password@host/database \
         or mysql://user:password@host/database"
    )]
    Address(Role),
    /// Nothing to move.
    #[error("the source and the target are the same database")]
    Same,
    /// No database of ours at the source.
    #[error("there is no database of postway at the source, {0}: check the address")]
    NoSource(String),
    /// A database could not be opened.
    #[error("the {role}: {error}")]
    Open {
        /// Which of the two.
        role: Role,
        /// Why.
        error: StoreError,
    },
    /// Somebody works there.
    #[error("the {role} is in use by the node {node}: stop every postway on it first")]
    InUse {
        /// Which of the two.
        role: Role,
        /// Who.
        node: String,
    },
    /// A statement failed.
    #[error("the {role} failed: {reason}; when that is mended, run the same command again, and it goes on")]
    Failed {
        /// Which of the two.
        role: Role,
        /// What the database said.
        reason: String,
    },
    /// The target has data that no copy brought.
    #[error("the target already has rows in table {0}: give the copy an empty database")]
    Filled(&'static str),
    /// The target is half-way through a copy from elsewhere.
    #[error(
        "the target is half-way through a copy from {0}: go on from there, or give this copy an empty database"
    )]
    OtherSource(String),
    /// The source was used after the copy began.
    #[error(
        "the source's table {0} has changed since the copy began: stop what uses the source, empty the target and copy \
         again"
    )]
    Changed(&'static str),
    /// Two copies at once.
    #[error("another copy writes to the target: let one of them finish")]
    Overtaken,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being copied.
    pub table: &'static str,
    /// Rows in the target, of all tables.
    pub rows_done: u64,
    /// Rows in the source, of all tables.
    pub rows_total: u64,
}

/// What a copy did, and how the two sides compare.
#[derive(Clone, Debug)]
pub struct Report {
    /// Rows that this run copied.
    pub rows_copied: u64,
    /// Rows that an earlier run had copied.
    pub rows_found: u64,
    /// Every table, in the order they were copied.
    pub tables: Vec<TableReport>,
}

/// One table on both sides.
#[derive(Clone, Copy, Debug)]
pub struct TableReport {
    /// Its name.
    pub name: &'static str,
    /// What the source has.
    pub source: Count,
    /// What the target has.
    pub target: Count,
}

/// What is counted of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Its rows.
    pub rows: i64,
    /// The sum of the numbers that every change of a row raises, where the table has such.
    pub sum: i64,
}

impl Report {
    /// The tables that differ; none after a copy that is done.
    pub fn differing(&self) -> impl Iterator<Item = &TableReport> {
        self.tables.iter().filter(|table| table.source != table.target)
    }
}

/// A connection that the copy reads or writes by.
#[async_trait]
trait Database: Send {
    fn role(&self) -> Role;

    fn dialect(&self) -> Dialect;

    /// Runs a statement without values.
    async fn run(&mut self, sql: &str) -> Result<(), CopyError>;

    /// Runs a statement, and says how many rows it changed.
    async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, CopyError>;

    /// Reads rows with columns of these kinds.
    async fn rows(&mut self, sql: String, values: Vec<Value>, kinds: &[Kind]) -> Result<Vec<Row>, CopyError>;

    /// Writes rows; those that are there become as given.
    async fn insert(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), CopyError>;

    /// Ends the connection.
    async fn close(self: Box<Self>);
}

/// Takes leave: all is written by then. Over TLS the server may be gone before the last word, or a lost one be waited for.
async fn ended(closing: impl Future<Output = Result<(), sqlx::Error>> + Send) {
    if !matches!(tokio::time::timeout(CLOSE_LASTS_MAX, closing).await, Ok(Ok(()))) {
        tracing::debug!("a connection was gone already");
    }
}

/// Copies everything `from` one database `to` another, or goes on with a copy that was cut short. Tells how far it is
/// after every page. A report whose sides differ means that the copy is not done.
pub async fn copy(
    from: &Address,
    to: &Address,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report, CopyError> {
    if from.identity() == to.identity() {
        return Err(CopyError::Same);
    }
    let mut source = from.open(Role::Source).await?;
    let mut target = to.open(Role::Target).await?;
    tokio::try_join!(in_use::check(source.as_mut()), in_use::check(target.as_mut()))?;
    let entries = progress::begin(source.as_mut(), target.as_mut(), &from.identity()).await?;
    let rows_total = entries.iter().map(|entry| entry.total.rows as u64).sum();
    let rows_found = entries.iter().map(|entry| entry.rows_done as u64).sum();
    let mut rows_done: u64 = rows_found;
    for mut entry in entries {
        let (table, done_before) = (entry.table.name, rows_done - entry.rows_done as u64);
        on_progress(Progress { table, rows_done, rows_total });
        copy_table(source.as_mut(), target.as_mut(), &mut entry, &mut |of_table| {
            rows_done = done_before + of_table as u64;
            on_progress(Progress { table, rows_done, rows_total });
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
    let report = Report { rows_copied: rows_done - rows_found, rows_found, tables };
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
    source: &mut dyn Database,
    target: &mut dyn Database,
    entry: &mut Entry,
    on_page: &mut (dyn FnMut(i64) + Send),
) -> Result<(), CopyError> {
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

/// Makes the counters from what was copied: they have other columns on each database, and may be split among writers.
async fn count_anew(target: &mut dyn Database) -> Result<(), CopyError> {
    target.run("BEGIN").await?;
    for sql in target.dialect().count_anew() {
        target.run(sql).await?;
    }
    target.run("COMMIT").await
}
