//! What a source's database must do. Three do it: PostgreSQL, MySQL and SQLite.
//!
//! Whoever calls has one connection to himself. After an error he drops it: what was begun is undone with it.

use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, future::BoxFuture};
use postway_domain::{MessageUid, Time};
use postway_store::record::FeedPosition;
use serde::Serialize;
use tokio::time::timeout;

use super::{
    Source,
    address::Way,
    error::OutboxError,
    mysql::MysqlSource,
    postgres::{PostgresSource, TokenTable},
    row::Row,
    sqlite::SqliteSource,
};

/// The longest wait for a step.
pub(super) const STEP_S_MAX: u64 = 60;
/// The longest wait for a connection.
pub(super) const CONNECT_S_MAX: u64 = 15;
/// How much of the rows that wait is held in memory.
pub(super) const TAKEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Rows that were taken, to be settled before anything else.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub rows: Vec<Row>,
    /// Whether there may be more.
    pub has_more: bool,
}

/// What a row becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub seq: i64,
    pub status: &'static str,
    pub uid: Option<String>,
    pub error: Option<String>,
}

/// What became of a message; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct News {
    pub uid: String,
    pub status: Option<&'static str>,
    pub error: Option<String>,
    pub outcome: Option<&'static str>,
    pub sent_ms: Option<i64>,
}

/// See the module.
#[async_trait]
pub(super) trait SourceDb: Send {
    /// How far was told what became of the rows; nothing before the first time.
    async fn progress(&mut self, source: &str) -> Result<Option<FeedPosition>, OutboxError>;

    /// Says how far, whatever was said before.
    async fn set_progress(&mut self, source: &str, at: FeedPosition, now: Time) -> Result<(), OutboxError>;

    /// How many rows wait, as far as `most`.
    async fn waiting(&mut self, most: u32) -> Result<u32, OutboxError>;

    /// How long the oldest row waits, by the source's own clock.
    async fn lag_seconds(&mut self) -> Result<f64, OutboxError>;

    /// Takes rows that wait, in the order of their places. They are nobody else's until they are settled.
    async fn take(&mut self, most: u32) -> Result<Taken, OutboxError>;

    /// Writes what taken rows become; those it does not name go on waiting.
    async fn settle(&mut self, verdicts: &[Verdict], now: Time) -> Result<(), OutboxError>;

    /// Writes what became of messages, and how far that is told. `false`, and nothing written, where somebody else has
    /// gone on from `seen`.
    async fn write_back(
        &mut self,
        source: &str,
        seen: FeedPosition,
        next: FeedPosition,
        news: &[News],
        now: Time,
    ) -> Result<bool, OutboxError>;

    /// Messages of which nothing was heard since `before`, though they have not ended.
    async fn silent(&mut self, before: Time, most: u32) -> Result<Vec<MessageUid>, OutboxError>;

    /// Writes what became of messages, without regard to how far is told.
    async fn correct(&mut self, news: &[News], now: Time) -> Result<(), OutboxError>;

    /// Whether it answers.
    async fn check(&mut self) -> Result<(), OutboxError>;

    /// Pends until there may be rows. For ever where the database tells nobody.
    async fn hint(&mut self) -> Result<(), OutboxError> {
        std::future::pending().await
    }

    /// The tokens in it, if there are any.
    fn tokens(&mut self) -> Option<TokenTable<'_>> {
        None
    }
}

/// Connects to a source that is installed.
pub(super) async fn connect(source: &Source) -> Result<Box<dyn SourceDb>, OutboxError> {
    let connected = async {
        Ok::<Box<dyn SourceDb>, OutboxError>(match source.url.way()? {
            Way::Postgres(options) => Box::new(PostgresSource::connect(*options, source).await?),
            Way::Mysql(options) => Box::new(MysqlSource::connect(*options).await?),
            Way::Sqlite(options) => Box::new(SqliteSource::connect(*options).await?),
        })
    };
    within(CONNECT_S_MAX, connected).await
}

/// Bounds a step. What drivers need for it is large, so it is kept apart.
pub(super) fn within<'a, T>(
    seconds: u64,
    step: impl Future<Output = Result<T, OutboxError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, OutboxError>> {
    let bounded = timeout(Duration::from_secs(seconds), step);
    bounded.map(move |ended| ended.unwrap_or(Err(OutboxError::Late(seconds)))).boxed()
}

/// A list as the one parameter that statements take it by.
pub(super) fn list(items: &[impl Serialize]) -> Result<String, OutboxError> {
    serde_json::to_string(items).map_err(|error| OutboxError::Unexpected(error.to_string()))
}

/// A place in the feed, as it is kept.
pub(super) fn position(page: i64, entry: i64) -> FeedPosition {
    FeedPosition { page, entry: u32::try_from(entry).unwrap_or(u32::MAX) }
}

/// The uid in a column.
pub(super) fn uid(text: &str) -> Result<MessageUid, OutboxError> {
    text.parse().map_err(|_| OutboxError::Unexpected("a message_uid that is none".to_owned()))
}

/// Keeps rows as long as there is room for them; those beyond go on waiting.
#[derive(Debug, Default)]
pub(super) struct Room {
    taken: Taken,
    bytes: usize,
    is_full: bool,
    seen: u32,
}

impl Room {
    /// One more row.
    pub(super) fn add(&mut self, row: Row) {
        self.seen += 1;
        self.bytes += row.bytes();
        self.is_full |= self.bytes > TAKEN_BYTES_MAX && !self.taken.rows.is_empty();
        if !self.is_full {
            self.taken.rows.push(row);
        }
    }

    /// What was kept of at most `most`.
    pub(super) fn close(mut self, most: u32) -> Taken {
        self.taken.has_more = self.is_full || self.seen >= most;
        self.taken
    }
}
