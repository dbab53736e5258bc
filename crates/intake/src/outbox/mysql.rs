//! A source on MySQL or MariaDB. It is polled, because these send no notifications. Rows are locked while
//! they are accepted, each row alone (READ COMMITTED), so inserts do not wait.

use std::sync::LazyLock;

use async_trait::async_trait;
use futures::TryStreamExt;
use postway_domain::{MessageUid, Time};
use postway_store::record::FeedPosition;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, mysql::MySqlConnectOptions};

use super::{
    database::{
        RowBuffer, RowUpdate, RowVerdict, STEP_S_MAX, SourceDatabase, TakenRows, list, position, read_row,
        uid, within,
    },
    error::OutboxError,
    row::{COLUMNS, ColumnKind},
};

const SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION innodb_lock_wait_timeout = 10; SET SESSION time_zone = '+00:00'";
const INSTALLED: &str = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() \
     AND table_name IN ('postway_outbox', 'postway_progress')";
const PROGRESS: &str = "SELECT page, entry FROM postway_progress WHERE source = ?";
const SET_PROGRESS: &str = "INSERT INTO postway_progress (source, page, entry, updated_at) \
     VALUES (?, ?, ?, FROM_UNIXTIME(? / 1000)) \
     ON DUPLICATE KEY UPDATE page = VALUES(page), entry = VALUES(entry), updated_at = VALUES(updated_at)";
const MOVE_PROGRESS: &str = "UPDATE postway_progress SET page = ?, entry = ?, updated_at = FROM_UNIXTIME(? / 1000) \
     WHERE source = ? AND page = ? AND entry = ?";
const LOCK_PROGRESS: &str = "SELECT page, entry FROM postway_progress WHERE source = ? FOR UPDATE";
const WAITING: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM postway_outbox WHERE status = 'pending' LIMIT ?) AS counted";
const LAG: &str = "SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, created_at, UTC_TIMESTAMP(3))) FROM postway_outbox \
     WHERE status = 'pending' ORDER BY seq LIMIT 1";
const SETTLE: &str = "UPDATE postway_outbox AS o JOIN JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$.seq', \
     status VARCHAR(16) PATH '$.status', uid CHAR(36) PATH '$.uid', error TEXT PATH '$.error')) AS v ON v.seq = o.seq \
     SET o.status = v.status, o.message_uid = v.uid, o.error = v.error, o.updated_at = FROM_UNIXTIME(? / 1000), \
     o.accepted_at = IF(v.uid IS NULL, NULL, FROM_UNIXTIME(? / 1000)) \
     WHERE o.status = 'pending' AND (v.status <> 'pending' OR NOT (o.error <=> v.error))";
const WRITE: &str = "UPDATE postway_outbox AS o JOIN JSON_TABLE(?, '$[*]' COLUMNS (\
     uid CHAR(36) CHARACTER SET ascii PATH '$.uid', status VARCHAR(16) PATH '$.status', error TEXT PATH '$.error', \
     outcome VARCHAR(32) PATH '$.outcome', sent_ms BIGINT PATH '$.sent_ms')) AS v ON o.message_uid = v.uid \
     SET o.error = IF(v.status IS NULL, o.error, v.error), o.status = COALESCE(v.status, o.status), \
     o.outcome = COALESCE(v.outcome, o.outcome), \
     o.sent_at = COALESCE(FROM_UNIXTIME(v.sent_ms / 1000), o.sent_at), o.updated_at = FROM_UNIXTIME(? / 1000)";
const SILENT: &str = "SELECT message_uid FROM postway_outbox WHERE status IN ('accepted', 'scheduled', 'in_doubt') \
     AND updated_at < FROM_UNIXTIME(? / 1000) AND message_uid IS NOT NULL ORDER BY updated_at LIMIT ?";

/// Locks and returns the first pending rows.
static TAKE: LazyLock<String> = LazyLock::new(|| {
    let columns = COLUMNS.map(|(name, form)| match form {
        ColumnKind::Text | ColumnKind::List => format!("`{name}`"),
        ColumnKind::Json | ColumnKind::Flag => format!("CAST(`{name}` AS CHAR)"),
        ColumnKind::Time => format!("CAST(FLOOR(UNIX_TIMESTAMP(`{name}`)) AS CHAR)"),
    });
    format!(
        "SELECT seq, id, {} FROM postway_outbox WHERE status = 'pending' AND seq > ? ORDER BY seq LIMIT ? \
         FOR UPDATE SKIP LOCKED",
        columns.join(", ")
    )
});

/// A connection to a MySQL source.
pub(super) struct MysqlSource(MySqlConnection);

impl MysqlSource {
    pub(super) async fn connect(options: MySqlConnectOptions) -> Result<Self, OutboxError> {
        let mut conn = MySqlConnection::connect_with(&options).await?;
        sqlx::raw_sql(SESSION).execute(&mut conn).await?;
        let (tables,): (i64,) = sqlx::query_as(INSTALLED).fetch_one(&mut conn).await?;
        match tables {
            2 => Ok(Self(conn)),
            _ => Err(OutboxError::NotInstalled { what: "postway_outbox".to_owned(), how: "" }),
        }
    }
}

#[async_trait]
impl SourceDatabase for MysqlSource {
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
        let oldest: Option<(i64,)> = sqlx::query_as(LAG).fetch_optional(&mut self.0).await?;
        Ok(oldest.map_or(0.0, |(micros,)| micros as f64 / 1e6))
    }

    async fn take(&mut self, after: i64, most: u32) -> Result<TakenRows, OutboxError> {
        let taken = async {
            sqlx::raw_sql("START TRANSACTION").execute(&mut self.0).await?;
            let mut buffer = RowBuffer::default();
            let take = sqlx::query(AssertSqlSafe(TAKE.as_str())).bind(after).bind(most);
            let mut rows = take.fetch(&mut self.0);
            while let Some(row) = rows.try_next().await? {
                buffer.add(read_row(&row)?);
            }
            drop(rows);
            let taken = buffer.close(most);
            if taken.rows.is_empty() {
                sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await?;
            }
            Ok(taken)
        };
        within(STEP_S_MAX, taken).await
    }

    async fn settle(&mut self, verdicts: &[RowVerdict], now: Time) -> Result<(), OutboxError> {
        let verdicts = list(verdicts)?;
        let settled = async {
            let settle = sqlx::query(SETTLE).bind(verdicts).bind(now.as_millis()).bind(now.as_millis());
            settle.execute(&mut self.0).await?;
            sqlx::raw_sql("COMMIT").execute(&mut self.0).await?;
            Ok(())
        };
        within(STEP_S_MAX, settled).await
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
            let mut txn = self.0.begin().await?;
            // The number of changed rows is not enough: the position may be unchanged while only the time
            // differs.
            let current: Option<(i64, i64)> =
                sqlx::query_as(LOCK_PROGRESS).bind(source).fetch_optional(&mut *txn).await?;
            if current.map(|(page, entry)| position(page, entry)) != Some(seen) {
                return Ok(false);
            }
            let moved = sqlx::query(MOVE_PROGRESS).bind(next.page).bind(i64::from(next.entry));
            let moved = moved.bind(now.as_millis()).bind(source).bind(seen.page).bind(i64::from(seen.entry));
            moved.execute(&mut *txn).await?;
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
        within(STEP_S_MAX, async { Ok(self.0.ping().await?) }).await
    }
}
