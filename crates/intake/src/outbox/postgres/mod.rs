//! A source on PostgreSQL, which notifies about new rows.
//!
//! Rows are locked while they are accepted, in a transaction that lasts as long as that takes: an application
//! that changes or deletes a row meanwhile waits, and then sees that it was too late. Rows that another
//! transaction has locked are skipped, and taken next time.

mod listen;
mod tokens;

use async_trait::async_trait;
use futures::TryStreamExt;
use postway_domain::{MessageUid, Time};
use postway_store::record::FeedPosition;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row as _, postgres::PgConnectOptions};

pub(super) use self::tokens::{TokenRow, TokenTable, TokenVerdict};
use self::{listen::NotificationListener, tokens::TokenSql};
use super::{
    OutboxSource,
    database::{
        RowBuffer, RowUpdate, RowVerdict, STEP_S_MAX, SourceDatabase, TakenRows, list, position, read_row,
        uid, within,
    },
    error::OutboxError,
    row::{COLUMNS, ColumnKind},
};

/// With these settings a dead peer is noticed within a minute, and our locks do not outlive us for long.
/// Every statement has an index.
pub(super) const SETTINGS: &str = "SET statement_timeout = '50s'; SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = '120s'; SET tcp_keepalives_idle = 30; \
     SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; SET jit = off; SET enable_seqscan = off; \
     SET enable_hashjoin = off; SET enable_mergejoin = off";

/// A token without an update for this many seconds, by the database's clock, is refreshed. A token lasts
/// fifteen minutes.
const TOKEN_SILENT_FOR_S: i64 = 600;

/// The statements, for one schema.
struct OutboxSql {
    progress: String,
    set_progress: String,
    move_progress: String,
    waiting: String,
    lag: String,
    take: String,
    settle: String,
    write: String,
    silent: String,
}

impl OutboxSql {
    fn new(schema: &str) -> Self {
        let columns = COLUMNS.map(|(name, form)| match form {
            ColumnKind::Text | ColumnKind::List => format!("\"{name}\""),
            ColumnKind::Json | ColumnKind::Flag => format!("\"{name}\"::text"),
            ColumnKind::Time => format!("floor(extract(epoch FROM \"{name}\"))::bigint::text"),
        });
        let sql = |text: &str| text.replace("{schema}", schema).replace("{columns}", &columns.join(", "));
        Self {
            progress: sql("SELECT page, entry FROM {schema}.progress WHERE source = $1"),
            set_progress: sql("INSERT INTO {schema}.progress (source, page, entry, updated_at) \
                 VALUES ($1, $2, $3, to_timestamp($4 / 1000.0)) ON CONFLICT (source) DO UPDATE \
                 SET page = excluded.page, entry = excluded.entry, updated_at = excluded.updated_at"),
            move_progress: sql(
                "UPDATE {schema}.progress SET page = $2, entry = $3, updated_at = to_timestamp($4 / 1000.0) \
                 WHERE source = $1 AND page = $5 AND entry = $6",
            ),
            waiting: sql(
                "SELECT count(*) FROM (SELECT 1 FROM {schema}.outbox WHERE status = 'pending' LIMIT $1) counted",
            ),
            lag: sql(
                "SELECT greatest(0, extract(epoch FROM clock_timestamp() - created_at))::float8 FROM {schema}.outbox \
                 WHERE status = 'pending' ORDER BY seq LIMIT 1",
            ),
            take: sql(
                "SELECT seq, id, {columns} FROM {schema}.outbox WHERE status = 'pending' AND seq > $2 \
                 ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED",
            ),
            // Rows are named twice: a planner that takes a new table for empty would otherwise compare every
            // pending row with every verdict.
            settle: sql(
                "UPDATE {schema}.outbox o SET status = v.status, message_uid = v.uid, error = v.error, \
                 updated_at = to_timestamp($2 / 1000.0), \
                 accepted_at = CASE WHEN v.uid IS NOT NULL THEN to_timestamp($2 / 1000.0) END \
                 FROM jsonb_to_recordset($1::jsonb) AS v(seq bigint, status text, uid uuid, error text) \
                 WHERE o.seq = ANY (ARRAY(SELECT (j ->> 'seq')::bigint FROM jsonb_array_elements($1::jsonb) AS j)) \
                 AND o.seq = v.seq AND o.status = 'pending' \
                 AND (v.status <> 'pending' OR o.error IS DISTINCT FROM v.error)",
            ),
            write: sql("UPDATE {schema}.outbox o SET status = coalesce(v.status, o.status), \
                 error = CASE WHEN v.status IS NULL THEN o.error ELSE v.error END, \
                 outcome = coalesce(v.outcome, o.outcome), \
                 sent_at = coalesce(to_timestamp(v.sent_ms / 1000.0), o.sent_at), updated_at = to_timestamp($2 / 1000.0) \
                 FROM jsonb_to_recordset($1::jsonb) AS v(uid uuid, status text, error text, outcome text, sent_ms bigint) \
                 WHERE o.message_uid = ANY (ARRAY(SELECT (j ->> 'uid')::uuid FROM jsonb_array_elements($1::jsonb) AS j)) \
                 AND o.message_uid = v.uid"),
            silent: sql("SELECT message_uid::text FROM {schema}.outbox \
                 WHERE status IN ('accepted', 'scheduled', 'in_doubt') AND updated_at < to_timestamp($1 / 1000.0) \
                 AND message_uid IS NOT NULL ORDER BY updated_at LIMIT $2"),
        }
    }
}

/// A connection to a PostgreSQL source, and its listener.
pub(super) struct PostgresSource {
    conn: PgConnection,
    sql: OutboxSql,
    tokens: Option<TokenSql>,
    listener: NotificationListener,
}

/// Opens a connection with our settings.
pub(super) async fn open(options: &PgConnectOptions) -> Result<PgConnection, OutboxError> {
    let mut conn = PgConnection::connect_with(options).await?;
    sqlx::raw_sql(SETTINGS).execute(&mut conn).await?;
    Ok(conn)
}

/// A query with a statement built here.
pub(super) fn query(sql: &str) -> sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments> {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
}

impl PostgresSource {
    pub(super) async fn connect(
        options: PgConnectOptions,
        source: &OutboxSource,
    ) -> Result<Self, OutboxError> {
        let mut conn = open(&options).await?;
        // Listens before the first poll, so that no notification is missed in between.
        let listener = NotificationListener::open(options, source.accounts.is_some()).await?;
        let schema = &format!("\"{}\"", source.schema);
        installed(&mut conn, &format!("{schema}.outbox"), "").await?;
        let tokens = match &source.accounts {
            Some(accounts) => {
                installed(&mut conn, &format!("{schema}.withdrawal"), " --preset accounts").await?;
                let tables = &format!("\"{}\"", accounts.schema);
                installed(&mut conn, &format!("{tables}.tokens"), " --preset accounts").await?;
                Some(TokenSql::new(schema, tables))
            }
            None => None,
        };
        Ok(Self { conn, sql: OutboxSql::new(schema), tokens, listener })
    }

    async fn write(&mut self, updates: &[RowUpdate], now: Time) -> Result<(), OutboxError> {
        let updates = list(updates)?;
        query(&self.sql.write).bind(&updates).bind(now.as_millis()).execute(&mut self.conn).await?;
        if let Some(tokens) = &self.tokens {
            query(&tokens.write).bind(&updates).execute(&mut self.conn).await?;
        }
        Ok(())
    }
}

async fn installed(conn: &mut PgConnection, table: &str, how: &'static str) -> Result<(), OutboxError> {
    let (found,): (bool,) =
        sqlx::query_as("SELECT to_regclass($1) IS NOT NULL").bind(table).fetch_one(conn).await?;
    match found {
        true => Ok(()),
        false => Err(OutboxError::NotInstalled { what: table.replace('"', ""), how }),
    }
}

#[async_trait]
impl SourceDatabase for PostgresSource {
    async fn progress(&mut self, source: &str) -> Result<Option<FeedPosition>, OutboxError> {
        let found = query(&self.sql.progress).bind(source).fetch_optional(&mut self.conn).await?;
        found.map(|row| Ok(position(row.try_get(0)?, row.try_get(1)?))).transpose()
    }

    async fn set_progress(&mut self, source: &str, at: FeedPosition, now: Time) -> Result<(), OutboxError> {
        let set = query(&self.sql.set_progress).bind(source).bind(at.page).bind(i64::from(at.entry));
        set.bind(now.as_millis()).execute(&mut self.conn).await?;
        Ok(())
    }

    async fn waiting(&mut self, most: u32) -> Result<u32, OutboxError> {
        let waiting = query(&self.sql.waiting).bind(i64::from(most));
        let mut count: i64 = waiting.fetch_one(&mut self.conn).await?.try_get(0)?;
        if let Some(tokens) = &self.tokens {
            let waiting = query(&tokens.waiting).bind(i64::from(most));
            count += waiting.fetch_one(&mut self.conn).await?.try_get::<i64, _>(0)?;
        }
        Ok(u32::try_from(count).unwrap_or(u32::MAX).min(most))
    }

    async fn lag_seconds(&mut self) -> Result<f64, OutboxError> {
        let mut lag = 0.0_f64;
        for sql in [Some(&self.sql.lag), self.tokens.as_ref().map(|tokens| &tokens.lag)].into_iter().flatten()
        {
            if let Some(row) = query(sql).fetch_optional(&mut self.conn).await? {
                lag = lag.max(row.try_get(0)?);
            }
        }
        Ok(lag)
    }

    async fn take(&mut self, after: i64, most: u32) -> Result<TakenRows, OutboxError> {
        let taken = async {
            sqlx::raw_sql("BEGIN").execute(&mut self.conn).await?;
            let mut buffer = RowBuffer::default();
            let mut rows = query(&self.sql.take).bind(i64::from(most)).bind(after).fetch(&mut self.conn);
            while let Some(row) = rows.try_next().await? {
                buffer.add(read_row(&row)?);
            }
            drop(rows);
            let taken = buffer.close(most);
            if taken.rows.is_empty() {
                sqlx::raw_sql("ROLLBACK").execute(&mut self.conn).await?;
            }
            Ok(taken)
        };
        within(STEP_S_MAX, taken).await
    }

    async fn settle(&mut self, verdicts: &[RowVerdict], now: Time) -> Result<(), OutboxError> {
        let verdicts = list(verdicts)?;
        let settled = async {
            let settle = query(&self.sql.settle).bind(&verdicts).bind(now.as_millis());
            settle.execute(&mut self.conn).await?;
            sqlx::raw_sql("COMMIT").execute(&mut self.conn).await?;
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
        let written = async {
            sqlx::raw_sql("BEGIN").execute(&mut self.conn).await?;
            let moved =
                query(&self.sql.move_progress).bind(source).bind(next.page).bind(i64::from(next.entry));
            let moved = moved.bind(now.as_millis()).bind(seen.page).bind(i64::from(seen.entry));
            if moved.execute(&mut self.conn).await?.rows_affected() == 0 {
                sqlx::raw_sql("ROLLBACK").execute(&mut self.conn).await?;
                return Ok(false);
            }
            self.write(updates, now).await?;
            sqlx::raw_sql("COMMIT").execute(&mut self.conn).await?;
            Ok(true)
        };
        within(STEP_S_MAX, written).await
    }

    async fn silent(&mut self, before: Time, most: u32) -> Result<Vec<MessageUid>, OutboxError> {
        let silent = query(&self.sql.silent).bind(before.as_millis()).bind(i64::from(most));
        let mut found = silent.fetch_all(&mut self.conn).await?;
        if let Some(tokens) = &self.tokens {
            let silent = query(&tokens.silent).bind(TOKEN_SILENT_FOR_S).bind(i64::from(most));
            found.extend(silent.fetch_all(&mut self.conn).await?);
        }
        found.iter().map(|row| uid(row.try_get(0)?)).collect()
    }

    async fn correct(&mut self, updates: &[RowUpdate], now: Time) -> Result<(), OutboxError> {
        within(STEP_S_MAX, self.write(updates, now)).await
    }

    async fn check(&mut self) -> Result<(), OutboxError> {
        within(STEP_S_MAX, async { Ok(self.conn.ping().await?) }).await
    }

    async fn hint(&mut self) -> Result<(), OutboxError> {
        self.listener.wait_for_hint().await
    }

    fn tokens(&mut self) -> Option<TokenTable<'_>> {
        Some(TokenTable { conn: &mut self.conn, sql: self.tokens.as_ref()? })
    }
}
