//! The table of tokens: those to mail, those that have ended, and the mails to withdraw.
//!
//! Times in this table are compared with the database's own clock.

use postway_domain::Time;
use serde::Serialize;
use sqlx::{PgConnection, Row as _};

use super::{
    super::database::{STEP_S_MAX, list, within},
    super::error::OutboxError,
    query,
};

/// The tokens that may be mailed now: of an account that waits for activation, or of an active account that
/// recovers its password.
const ELIGIBLE: &str = "t.state = 'issued' AND t.consumed_at IS NULL AND t.mail_status IS DISTINCT FROM 'invalid' \
     AND t.expires_at > extract(epoch FROM now()) \
     AND ((t.action = 'activation' AND a.status = 'provisioned') OR (t.action = 'password_recovery' AND a.status = 'active'))";

/// The statements, for the schemas of outbox and tokens.
pub(in super::super) struct TokenSql {
    take: String,
    settle: String,
    expire: String,
    withdrawals: String,
    forget: String,
    pub(super) waiting: String,
    pub(super) lag: String,
    pub(super) write: String,
    pub(super) silent: String,
}

impl TokenSql {
    pub(super) fn new(schema: &str, tables: &str) -> Self {
        let sql = |text: &str| {
            let text = text.replace("{schema}", schema).replace("{tables}", tables);
            text.replace("{eligible}", ELIGIBLE)
        };
        Self {
            take: sql(
                "SELECT t.id, t.nonce::text, t.action::text, t.secret, t.code, a.email, a.login, t.expires_at, \
                 floor(extract(epoch FROM now()))::bigint FROM {tables}.tokens t JOIN {tables}.accounts a ON a.id = t.account \
                 WHERE {eligible} AND t.id > $2 ORDER BY t.id LIMIT $1 FOR UPDATE OF t SKIP LOCKED FOR SHARE OF a SKIP LOCKED",
            ),
            settle: sql("UPDATE {tables}.tokens t SET \
                 state = CASE WHEN v.uid IS NULL THEN t.state ELSE 'mailed' END, \
                 mail_status = CASE WHEN v.uid IS NULL THEN 'invalid' ELSE 'accepted' END, mail_error = v.error, \
                 mailed_at = CASE WHEN v.uid IS NOT NULL THEN floor(extract(epoch FROM now())) END, message_uid = v.uid, \
                 secret_hash = decode(v.secret_hash, 'hex'), link_hash = decode(v.link_hash, 'hex'), \
                 code_hash = decode(v.code_hash, 'hex'), \
                 secret = CASE WHEN v.uid IS NULL THEN t.secret END, code = CASE WHEN v.uid IS NULL THEN t.code END \
                 FROM jsonb_to_recordset($1::jsonb) AS v(id bigint, uid uuid, secret_hash text, link_hash text, \
                 code_hash text, error text) WHERE t.id = v.id AND t.state = 'issued'"),
            expire: sql(
                "UPDATE {tables}.tokens SET state = 'expired', secret = NULL, code = NULL WHERE id IN (\
                 SELECT id FROM {tables}.tokens WHERE state IN ('issued', 'mailed') \
                 AND expires_at <= extract(epoch FROM now()) ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)",
            ),
            withdrawals: sql("SELECT seq, nonce::text FROM {schema}.withdrawal ORDER BY seq LIMIT $1"),
            forget: sql("DELETE FROM {schema}.withdrawal WHERE seq = ANY($1)"),
            waiting: sql(
                "SELECT count(*) FROM (SELECT 1 FROM {tables}.tokens t JOIN {tables}.accounts a ON a.id = t.account \
                 WHERE {eligible} LIMIT $1) counted",
            ),
            lag: sql("SELECT greatest(0, extract(epoch FROM clock_timestamp()) - t.created_at)::float8 \
                 FROM {tables}.tokens t JOIN {tables}.accounts a ON a.id = t.account WHERE {eligible} ORDER BY t.id LIMIT 1"),
            write: sql("UPDATE {tables}.tokens t SET mail_status = coalesce(v.status, t.mail_status), \
                 mail_error = CASE WHEN v.status IS NULL THEN t.mail_error ELSE v.error END, \
                 sent_at = coalesce(v.sent_ms / 1000, t.sent_at) \
                 FROM jsonb_to_recordset($1::jsonb) AS v(uid uuid, status text, error text, sent_ms bigint) \
                 WHERE t.message_uid = v.uid"),
            // Tokens that expire soon come first: no one asks about expired ones.
            silent: sql("SELECT message_uid::text FROM {tables}.tokens WHERE state IN ('issued', 'mailed') \
                 AND mail_status IN ('accepted', 'scheduled', 'in_doubt') AND message_uid IS NOT NULL \
                 AND mailed_at < extract(epoch FROM now()) - $1 ORDER BY expires_at LIMIT $2"),
        }
    }
}

/// A token to mail.
#[derive(Clone, Debug)]
pub(in super::super) struct TokenRow {
    pub id: i64,
    pub nonce: String,
    pub action: String,
    /// The application's own secret, if it gave one.
    pub secret: Option<Vec<u8>>,
    pub code: Option<String>,
    pub email: String,
    pub login: String,
    /// By the source's clock, like `now_s`.
    pub expires_at_s: i64,
    pub now_s: i64,
}

/// The new state of a token: mailed if there is a uid.
#[derive(Clone, Debug, Default, Serialize)]
pub(in super::super) struct TokenVerdict {
    pub id: i64,
    pub uid: Option<String>,
    pub secret_hash: Option<String>,
    pub link_hash: Option<String>,
    pub code_hash: Option<String>,
    pub error: Option<String>,
}

/// Access to the table of tokens.
pub(in super::super) struct TokenTable<'a> {
    pub(super) conn: &'a mut PgConnection,
    pub(super) sql: &'a TokenSql,
}

impl TokenTable<'_> {
    /// Takes tokens to mail with an id above `after`. They and their accounts are locked until the tokens are
    /// settled.
    pub(in super::super) async fn take(
        &mut self,
        after: i64,
        most: u32,
    ) -> Result<Vec<TokenRow>, OutboxError> {
        let taken = async {
            sqlx::raw_sql("BEGIN").execute(&mut *self.conn).await?;
            let take = query(&self.sql.take).bind(i64::from(most)).bind(after);
            let rows = take.fetch_all(&mut *self.conn).await?;
            if rows.is_empty() {
                sqlx::raw_sql("ROLLBACK").execute(&mut *self.conn).await?;
            }
            let token = |row: sqlx::postgres::PgRow| {
                Ok(TokenRow {
                    id: row.try_get(0)?,
                    nonce: row.try_get(1)?,
                    action: row.try_get(2)?,
                    secret: row.try_get(3)?,
                    code: row.try_get(4)?,
                    email: row.try_get(5)?,
                    login: row.try_get(6)?,
                    expires_at_s: row.try_get(7)?,
                    now_s: row.try_get(8)?,
                })
            };
            rows.into_iter().map(token).collect()
        };
        within(STEP_S_MAX, taken).await
    }

    /// Whether a token waits to be mailed.
    pub(in super::super) async fn has_waiting(&mut self) -> Result<bool, OutboxError> {
        let waiting = query(&self.sql.waiting).bind(1_i64).fetch_one(&mut *self.conn).await?;
        Ok(waiting.try_get::<i64, _>(0)? > 0)
    }

    /// Writes the verdicts.
    pub(in super::super) async fn settle(&mut self, verdicts: &[TokenVerdict]) -> Result<(), OutboxError> {
        let verdicts = list(verdicts)?;
        let settled = async {
            query(&self.sql.settle).bind(&verdicts).execute(&mut *self.conn).await?;
            sqlx::raw_sql("COMMIT").execute(&mut *self.conn).await?;
            Ok(())
        };
        within(STEP_S_MAX, settled).await
    }

    /// Expires tokens; returns their number.
    pub(in super::super) async fn expire(&mut self, most: u32) -> Result<u64, OutboxError> {
        let expired = query(&self.sql.expire).bind(i64::from(most)).execute(&mut *self.conn).await?;
        Ok(expired.rows_affected())
    }

    /// The mails to withdraw: their `seq`, and the nonces of their tokens.
    pub(in super::super) async fn withdrawals(
        &mut self,
        most: u32,
    ) -> Result<Vec<(i64, String)>, OutboxError> {
        let rows = query(&self.sql.withdrawals).bind(i64::from(most)).fetch_all(&mut *self.conn).await?;
        rows.into_iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Removes withdrawals that are done.
    pub(in super::super) async fn forget(&mut self, seqs: &[i64]) -> Result<(), OutboxError> {
        query(&self.sql.forget).bind(seqs).execute(&mut *self.conn).await?;
        Ok(())
    }
}

impl TokenRow {
    /// When the token expires, by our own clock. The clocks may differ by much; a difference of less than a
    /// minute is ignored, so that a retried token makes the same mail.
    pub(in super::super) fn expires_at(&self, now: Time) -> i64 {
        let ahead_s = now.as_seconds() - self.now_s;
        let ahead_s = if ahead_s.abs() < 60 { 0 } else { ahead_s };
        self.expires_at_s + ahead_s
    }
}
