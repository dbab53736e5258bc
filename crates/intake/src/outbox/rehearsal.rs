//! A test application for benchmarks: inserts rows, and reads from them how soon they were accepted.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{
    address::{SourceOptions, SourceUrl},
    database::{CONNECT_S_MAX, within},
    error::OutboxError,
};

/// Inserts a number of rows in one transaction.
const INSERT: &str = "INSERT INTO \"{schema}\".outbox (\"to\", subject, text, batch) \
     SELECT 'r' || n || '@example.net', 'Rehearsal', $2, $3 FROM generate_series(1, $1) n";
/// The number of accepted rows, the total time, the median and the 99th percentile.
const FOUND: &str = "SELECT count(*) FILTER (WHERE message_uid IS NOT NULL), \
     coalesce(extract(epoch FROM max(accepted_at) - min(created_at)), 0)::float8, \
     coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM accepted_at - created_at)), 0)::float8, \
     coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM accepted_at - created_at)), 0)::float8, \
     count(DISTINCT message_uid) FROM \"{schema}\".outbox WHERE batch = $1";
const CLEAR: &str = "DELETE FROM \"{schema}\".outbox WHERE batch = $1";

/// A connection of the application.
pub struct OutboxBenchClient {
    conn: PgConnection,
    schema: String,
}

/// Acceptance times by the rows' own columns: from the start of their transaction to their acceptance.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptanceTimes {
    /// Rows that were accepted.
    pub accepted: i64,
    /// From the first insert to the last acceptance.
    pub lasted_s: f64,
    /// The median time.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The number of different messages.
    pub messages: i64,
}

impl OutboxBenchClient {
    /// Connects to a PostgreSQL database on which the outbox is installed.
    pub async fn connect(url: &SourceUrl, schema: &str) -> Result<Self, OutboxError> {
        let SourceOptions::Postgres(options) = url.options()? else {
            return Err(OutboxError::Unsuited("rehearsals are for PostgreSQL".to_owned()));
        };
        let conn = within(CONNECT_S_MAX, async { Ok(PgConnection::connect_with(&options).await?) }).await?;
        Ok(Self { conn, schema: schema.to_owned() })
    }

    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(text.replace("{schema}", &self.schema))
    }

    /// Inserts rows in one transaction, under the name of a run.
    pub async fn insert(&mut self, run: &str, rows: u32, text: &str) -> Result<(), OutboxError> {
        let insert = sqlx::query(self.sql(INSERT)).bind(i64::from(rows)).bind(text).bind(run);
        insert.execute(&mut self.conn).await?;
        Ok(())
    }

    /// The acceptance times of a run so far.
    pub async fn fared(&mut self, run: &str) -> Result<AcceptanceTimes, OutboxError> {
        let found: (i64, f64, f64, f64, i64) =
            sqlx::query_as(self.sql(FOUND)).bind(run).fetch_one(&mut self.conn).await?;
        let (accepted, lasted_s, p50_s, p99_s, messages) = found;
        Ok(AcceptanceTimes { accepted, lasted_s, p50_s, p99_s, messages })
    }

    /// Removes the rows of a run.
    pub async fn clear(&mut self, run: &str) -> Result<(), OutboxError> {
        sqlx::query(self.sql(CLEAR)).bind(run).execute(&mut self.conn).await?;
        Ok(())
    }
}
