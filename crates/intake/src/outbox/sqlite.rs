//! A source on SQLite. It is polled, because SQLite sends no notifications.
//!
//! SQLite has one writer, and the application must be able to write while rows are accepted. So one statement
//! marks rows `taken`, and another settles them. A crash leaves them `taken`, which counts as `pending` for
//! the next runner, and shows the application that it is too late to change them.

use std::sync::LazyLock;

use async_trait::async_trait;
use postway_domain::{MessageUid, Time};
use postway_store::record::FeedPosition;
use sqlx::{AssertSqlSafe, Connection, Row as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    database::{
        RowBuffer, RowUpdate, RowVerdict, STEP_S_MAX, SourceDatabase, TakenRows, list, position, read_row,
        uid, within,
    },
    error::OutboxError,
    row::{COLUMNS, ColumnKind},
};

const INSTALLED: &str =
    "SELECT count(*) FROM sqlite_master WHERE name IN ('postway_outbox', 'postway_progress')";
const PROGRESS: &str = "SELECT page, entry FROM postway_progress WHERE source = ?";
const SET_PROGRESS: &str = "INSERT INTO postway_progress (source, page, entry, updated_at) VALUES (?1, ?2, ?3, \
     strftime('%Y-%m-%dT%H:%M:%fZ', ?4 / 1000.0, 'unixepoch')) \
     ON CONFLICT (source) DO UPDATE SET page = excluded.page, entry = excluded.entry, updated_at = excluded.updated_at";
const MOVE_PROGRESS: &str = "UPDATE postway_progress SET page = ?2, entry = ?3, \
     updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', ?4 / 1000.0, 'unixepoch') \
     WHERE source = ?1 AND page = ?5 AND entry = ?6";
const WAITING: &str =
    "SELECT count(*) FROM (SELECT 1 FROM postway_outbox WHERE status IN ('pending', 'taken') LIMIT ?)";
const LAG: &str = "SELECT coalesce(max(0.0, (julianday('now') - julianday(created_at)) * 86400.0), 0.0) \
     FROM postway_outbox WHERE status IN ('pending', 'taken') ORDER BY seq LIMIT 1";
const SETTLE: &str = "UPDATE postway_outbox SET status = v.value ->> 'status', message_uid = v.value ->> 'uid', \
     error = v.value ->> 'error', updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch'), \
     accepted_at = CASE v.value ->> 'status' WHEN 'accepted' THEN strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch') END \
     FROM json_each(?1) AS v WHERE postway_outbox.seq = v.value ->> 'seq' AND postway_outbox.status = 'taken'";
const WRITE: &str = "UPDATE postway_outbox SET status = coalesce(v.value ->> 'status', status), \
     error = CASE WHEN v.value ->> 'status' IS NULL THEN error ELSE v.value ->> 'error' END, \
     outcome = coalesce(v.value ->> 'outcome', outcome), \
     sent_at = coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', (v.value ->> 'sent_ms') / 1000.0, 'unixepoch'), sent_at), \
     updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch') \
     FROM json_each(?1) AS v WHERE message_uid = v.value ->> 'uid'";
const SILENT: &str = "SELECT message_uid FROM postway_outbox WHERE status IN ('accepted', 'scheduled', 'in_doubt') \
     AND updated_at < strftime('%Y-%m-%dT%H:%M:%fZ', ?1 / 1000.0, 'unixepoch') AND message_uid IS NOT NULL \
     ORDER BY updated_at LIMIT ?2";

/// Marks and returns the first pending rows after a `seq`.
static TAKE: LazyLock<String> = LazyLock::new(|| {
    let columns = COLUMNS.map(|(name, form)| match form {
        ColumnKind::Text | ColumnKind::List | ColumnKind::Json | ColumnKind::Flag => {
            format!("CAST(\"{name}\" AS TEXT)")
        }
        // A text that is not a time is passed on, to be refused.
        ColumnKind::Time => format!(
            "CASE typeof(\"{name}\") WHEN 'text' THEN coalesce(strftime('%s', \"{name}\"), \"{name}\") \
             ELSE CAST(CAST(\"{name}\" AS INTEGER) AS TEXT) END"
        ),
    });
    format!(
        "UPDATE postway_outbox SET status = 'taken' WHERE seq IN (SELECT seq FROM postway_outbox \
         WHERE status IN ('pending', 'taken') AND seq > ? ORDER BY seq LIMIT ?) RETURNING seq, id, {}",
        columns.join(", ")
    )
});

/// A connection to a SQLite source.
pub(super) struct SqliteSource(SqliteConnection);

impl SqliteSource {
    pub(super) async fn connect(options: SqliteConnectOptions) -> Result<Self, OutboxError> {
        let mut conn = SqliteConnection::connect_with(&options).await?;
        let (tables,): (i64,) = sqlx::query_as(INSTALLED).fetch_one(&mut conn).await?;
        match tables {
            2 => Ok(Self(conn)),
            _ => Err(OutboxError::NotInstalled { what: "postway_outbox".to_owned(), how: "" }),
        }
    }
}

#[async_trait]
impl SourceDatabase for SqliteSource {
    async fn progress(&mut self, source: &str) -> Result<Option<FeedPosition>, OutboxError> {
        let found: Option<(i64, i64)> =
            sqlx::query_as(PROGRESS).bind(source).fetch_optional(&mut self.0).await?;
        Ok(found.map(|(page, entry)| position(page, entry)))
    }

    async fn set_progress(&mut self, source: &str, at: FeedPosition, now: Time) -> Result<(), OutboxError> {
        let set = sqlx::query(SET_PROGRESS).bind(source).bind(at.page).bind(i64::from(at.entry));
        set.bind(now.as_millis()).execute(&mut self.0).await?;
        Ok(())
    }

    async fn waiting(&mut self, most: u32) -> Result<u32, OutboxError> {
        let (count,): (i64,) = sqlx::query_as(WAITING).bind(most).fetch_one(&mut self.0).await?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    async fn lag_seconds(&mut self) -> Result<f64, OutboxError> {
        let oldest: Option<(f64,)> = sqlx::query_as(LAG).fetch_optional(&mut self.0).await?;
        Ok(oldest.map_or(0.0, |(seconds,)| seconds))
    }

    async fn take(&mut self, after: i64, most: u32) -> Result<TakenRows, OutboxError> {
        // Without a write there is no wait for the lock.
        if self.waiting(1).await? == 0 {
            return Ok(TakenRows::default());
        }
        // Rows are returned in the order in which they were changed.
        let take = sqlx::query(AssertSqlSafe(TAKE.as_str())).bind(after).bind(most);
        let mut found = take.fetch_all(&mut self.0).await?;
        found.sort_by_key(|row| row.get::<i64, _>(0));
        let mut buffer = RowBuffer::default();
        for row in found {
            buffer.add(read_row(&row)?);
        }
        Ok(buffer.close(most))
    }

    async fn settle(&mut self, verdicts: &[RowVerdict], now: Time) -> Result<(), OutboxError> {
        let settle = sqlx::query(SETTLE).bind(list(verdicts)?).bind(now.as_millis());
        settle.execute(&mut self.0).await?;
        Ok(())
    }

    async fn write_back(
        &mut self,
        source: &str,
        seen: FeedPosition,
        next: FeedPosition,
        updates: &[RowUpdate],
        now: Time,
    ) -> Result<bool, OutboxError> {
        let updates = list(updates)?;
        let written = async {
            let mut txn = self.0.begin_with("BEGIN IMMEDIATE").await?;
            let moved = sqlx::query(MOVE_PROGRESS).bind(source).bind(next.page).bind(i64::from(next.entry));
            let moved = moved.bind(now.as_millis()).bind(seen.page).bind(i64::from(seen.entry));
            if moved.execute(&mut *txn).await?.rows_affected() == 0 {
                return Ok(false);
            }
            sqlx::query(WRITE).bind(updates).bind(now.as_millis()).execute(&mut *txn).await?;
            txn.commit().await?;
            Ok(true)
        };
        within(STEP_S_MAX, written).await
    }

    async fn silent(&mut self, before: Time, most: u32) -> Result<Vec<MessageUid>, OutboxError> {
        let silent = sqlx::query_as(SILENT).bind(before.as_millis()).bind(most);
        let found: Vec<(String,)> = silent.fetch_all(&mut self.0).await?;
        found.iter().map(|(text,)| uid(text)).collect()
    }

    async fn correct(&mut self, updates: &[RowUpdate], now: Time) -> Result<(), OutboxError> {
        sqlx::query(WRITE).bind(list(updates)?).bind(now.as_millis()).execute(&mut self.0).await?;
        Ok(())
    }

    async fn check(&mut self) -> Result<(), OutboxError> {
        sqlx::query("SELECT 1").execute(&mut self.0).await?;
        Ok(())
    }
}
