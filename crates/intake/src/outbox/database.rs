//! The operations on a source's database, implemented for PostgreSQL, MySQL and SQLite.
//!
//! The caller owns one connection. After an error it must drop the connection, which rolls back the open
//! transaction.

use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, future::BoxFuture};
use postway_domain::{MessageUid, Time};
use postway_store::record::FeedPosition;
use serde::Serialize;
use tokio::time::timeout;

use super::{
    OutboxSource,
    address::SourceOptions,
    error::OutboxError,
    mysql::MysqlSource,
    postgres::{PostgresSource, TokenTable},
    row::{COLUMNS, OutboxRow},
    sqlite::SqliteSource,
};

/// The longest wait for a step.
pub(super) const STEP_S_MAX: u64 = 60;
/// The longest wait for a connection.
pub(super) const CONNECT_S_MAX: u64 = 15;
/// The most bytes of pending rows in memory.
pub(super) const TAKEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Rows that were taken, and must be settled before anything else.
#[derive(Debug, Default)]
pub(super) struct TakenRows {
    pub rows: Vec<OutboxRow>,
    /// Whether there may be more rows.
    pub has_more: bool,
}

/// The new status of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RowVerdict {
    pub seq: i64,
    pub status: &'static str,
    pub uid: Option<String>,
    pub error: Option<String>,
}

impl RowVerdict {
    /// A row that stays pending, and why.
    pub(super) fn waiting(seq: i64, why: String) -> Self {
        Self { seq, status: "pending", uid: None, error: Some(why) }
    }

    /// Whether the row stays pending.
    pub(super) fn waits(&self) -> bool {
        self.status == "pending"
    }
}

/// Changes of a message for its row; `None` leaves a column unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct RowUpdate {
    pub uid: String,
    pub status: Option<&'static str>,
    pub error: Option<String>,
    pub outcome: Option<&'static str>,
    pub sent_ms: Option<i64>,
}

/// A connection to a source's database; see the module.
#[async_trait]
pub(super) trait SourceDatabase: Send {
    /// The feed position up to which rows are updated; `None` before the first time.
    async fn progress(&mut self, source: &str) -> Result<Option<FeedPosition>, OutboxError>;

    /// Sets the feed position, whatever it was before.
    async fn set_progress(&mut self, source: &str, at: FeedPosition, now: Time) -> Result<(), OutboxError>;

    /// The number of pending rows, counted up to `most`.
    async fn waiting(&mut self, most: u32) -> Result<u32, OutboxError>;

    /// The age of the oldest pending row, by the source's own clock.
    async fn lag_seconds(&mut self) -> Result<f64, OutboxError>;

    /// Takes pending rows with a `seq` above `after`, in its order. No one else gets them until they are
    /// settled.
    async fn take(&mut self, after: i64, most: u32) -> Result<TakenRows, OutboxError>;

    /// Writes the verdicts of taken rows; rows without one stay pending.
    async fn settle(&mut self, verdicts: &[RowVerdict], now: Time) -> Result<(), OutboxError>;

    /// Writes updates and the new feed position. If the position is no longer `seen`, another node was
    /// faster: writes nothing and returns `false`.
    async fn write_back(
        &mut self,
        source: &str,
        seen: FeedPosition,
        next: FeedPosition,
        updates: &[RowUpdate],
        now: Time,
    ) -> Result<bool, OutboxError>;

    /// Messages that have not ended and whose rows were not updated since `before`.
    async fn silent(&mut self, before: Time, most: u32) -> Result<Vec<MessageUid>, OutboxError>;

    /// Writes updates without a feed position.
    async fn correct(&mut self, updates: &[RowUpdate], now: Time) -> Result<(), OutboxError>;

    /// Checks that the database answers.
    async fn check(&mut self) -> Result<(), OutboxError>;

    /// Waits until there may be rows; forever if the database sends no notifications.
    async fn hint(&mut self) -> Result<(), OutboxError> {
        std::future::pending().await
    }

    /// The table of tokens, if there is one.
    fn tokens(&mut self) -> Option<TokenTable<'_>> {
        None
    }
}

/// Connects to a source on which the outbox is installed.
pub(super) async fn connect(source: &OutboxSource) -> Result<Box<dyn SourceDatabase>, OutboxError> {
    let connected = async {
        Ok::<Box<dyn SourceDatabase>, OutboxError>(match source.url.options()? {
            SourceOptions::Postgres(options) => Box::new(PostgresSource::connect(*options, source).await?),
            SourceOptions::Mysql(options) => Box::new(MysqlSource::connect(*options).await?),
            SourceOptions::Sqlite(options) => Box::new(SqliteSource::connect(*options).await?),
        })
    };
    within(CONNECT_S_MAX, connected).await
}

/// Bounds a step in time. Futures of drivers are large, so the step is boxed.
pub(super) fn within<'a, T>(
    seconds: u64,
    step: impl Future<Output = Result<T, OutboxError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, OutboxError>> {
    let bounded = timeout(Duration::from_secs(seconds), step);
    bounded.map(move |ended| ended.unwrap_or(Err(OutboxError::Late(seconds)))).boxed()
}

/// A list as a JSON parameter of a statement.
pub(super) fn list(items: &[impl Serialize]) -> Result<String, OutboxError> {
    serde_json::to_string(items).map_err(|error| OutboxError::Unexpected(error.to_string()))
}

/// A row from a query for `seq`, `id` and [`COLUMNS`](super::row::COLUMNS), in this order.
pub(super) fn read_row<'r, R>(row: &'r R) -> Result<OutboxRow, sqlx::Error>
where
    R: sqlx::Row,
    usize: sqlx::ColumnIndex<R>,
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    String: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    Option<String>: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    let columns: Result<Vec<Option<String>>, sqlx::Error> =
        (0..COLUMNS.len()).map(|index| row.try_get(index + 2)).collect();
    Ok(OutboxRow { seq: row.try_get(0)?, id: row.try_get(1)?, columns: columns? })
}

/// A feed position from its columns.
pub(super) fn position(page: i64, entry: i64) -> FeedPosition {
    FeedPosition { page, entry: u32::try_from(entry).unwrap_or(u32::MAX) }
}

/// A message uid from its column.
pub(super) fn uid(text: &str) -> Result<MessageUid, OutboxError> {
    text.parse().map_err(|_| OutboxError::Unexpected("a malformed message_uid".to_owned()))
}

/// Collects rows up to a number of bytes; rows beyond it stay pending.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    taken: TakenRows,
    bytes: usize,
    is_full: bool,
    seen: u32,
}

impl RowBuffer {
    /// Adds a row.
    pub(super) fn add(&mut self, row: OutboxRow) {
        self.seen += 1;
        self.bytes += row.bytes();
        self.is_full |= self.bytes > TAKEN_BYTES_MAX && !self.taken.rows.is_empty();
        if !self.is_full {
            self.taken.rows.push(row);
        }
    }

    /// The collected rows of a query for at most `most`.
    pub(super) fn close(mut self, most: u32) -> TakenRows {
        self.taken.has_more = self.is_full || self.seen >= most;
        self.taken
    }
}
