//! Verifies what the reader of a mail presents: the token of its link, and the code if one was asked for.
//!
//! Everything is compared in constant time. Wrong codes are counted, and the fifth ends the token, because
//! there are only a hundred thousand codes.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row as _};

use super::{
    OutboxAccounts,
    error::OutboxError,
    token::{SignedLink, TokenAction, TokenKeys, sha256},
};

/// The number of wrong codes that ends a token.
const ATTEMPTS_MAX: i32 = 5;

/// What a reader presents.
#[derive(Clone, Debug)]
pub struct PresentedToken {
    /// The token of the link.
    pub token: String,
    /// The path of the link.
    pub path: String,
    /// The code, if one was asked for.
    pub code: Option<String>,
    /// Whether a valid token is consumed.
    pub consume: bool,
}

/// The result of verifying a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenCheck {
    /// The token is valid.
    Valid {
        /// `activation` or `password_recovery`.
        action: &'static str,
        /// The account's id.
        account: i64,
        /// The account's login.
        login: String,
        /// Whether the token was consumed now.
        consumed: bool,
    },
    /// The token is not valid: `malformed`, `unknown`, `path`, `code`, `attempts`, `expired`, `consumed` or
    /// `revoked`.
    Invalid(&'static str),
}

/// Verifies the tokens of one source.
pub(super) struct TokenVerifier {
    find: String,
    miss: String,
    consume: String,
    accounts: OutboxAccounts,
    /// The keys of every generation of the secret key, the newest first.
    keys: Vec<TokenKeys>,
}

/// A token in the database.
struct StoredToken {
    id: i64,
    nonce: String,
    action: TokenAction,
    state: String,
    is_over: bool,
    link_hash: Vec<u8>,
    code_hash: Vec<u8>,
    attempts: i32,
    account: i64,
    login: String,
}

impl TokenVerifier {
    pub(super) fn new(accounts: &OutboxAccounts, keys: Vec<TokenKeys>) -> Self {
        let sql = |text: &str| text.replace("{tables}", &format!("\"{}\"", accounts.schema));
        Self {
            find: sql(
                "SELECT t.id, t.nonce::text, t.action::text, t.state, t.expires_at <= extract(epoch FROM now()), \
                 t.link_hash, t.code_hash, t.attempts, t.account, a.login FROM {tables}.tokens t \
                 JOIN {tables}.accounts a ON a.id = t.account WHERE t.secret_hash = $1 AND t.link_hash IS NOT NULL \
                 AND t.code_hash IS NOT NULL FOR UPDATE OF t",
            ),
            miss: sql("UPDATE {tables}.tokens SET attempts = attempts + 1, \
                 state = CASE WHEN attempts + 1 >= $2 THEN 'revoked' ELSE state END, \
                 revoked_at = CASE WHEN attempts + 1 >= $2 THEN floor(extract(epoch FROM now())) ELSE revoked_at END \
                 WHERE id = $1"),
            consume: sql(
                "UPDATE {tables}.tokens SET consumed_at = floor(extract(epoch FROM now())) WHERE id = $1",
            ),
            accounts: accounts.clone(),
            keys,
        }
    }

    /// Verifies a token; `None` if this source does not know it.
    pub(super) async fn verify(
        &self,
        conn: &mut PgConnection,
        presented: &PresentedToken,
        link: &SignedLink,
    ) -> Result<Option<TokenCheck>, OutboxError> {
        let mut txn = conn.begin().await?;
        let Some(stored) = self.find(&mut txn, link).await? else { return Ok(None) };
        let finding = match self.judge(&stored, presented, link) {
            TokenCheck::Invalid("code") => {
                let miss = sqlx::query(AssertSqlSafe(self.miss.as_str())).bind(stored.id).bind(ATTEMPTS_MAX);
                miss.execute(&mut *txn).await?;
                TokenCheck::Invalid(if stored.attempts + 1 >= ATTEMPTS_MAX { "attempts" } else { "code" })
            }
            TokenCheck::Valid { action, account, login, .. } if presented.consume => {
                let consume = sqlx::query(AssertSqlSafe(self.consume.as_str())).bind(stored.id);
                match consume.execute(&mut *txn).await?.rows_affected() {
                    1 => TokenCheck::Valid { action, account, login, consumed: true },
                    // The token expired between the two statements.
                    _ => TokenCheck::Invalid("expired"),
                }
            }
            finding => finding,
        };
        txn.commit().await?;
        Ok(Some(finding))
    }

    async fn find(
        &self,
        conn: &mut PgConnection,
        link: &SignedLink,
    ) -> Result<Option<StoredToken>, OutboxError> {
        let find = sqlx::query(AssertSqlSafe(self.find.as_str())).bind(sha256(&link.secret).to_vec());
        let Some(row) = find.fetch_optional(conn).await? else { return Ok(None) };
        let Some(action) = TokenAction::parse(row.try_get(2)?) else { return Ok(None) };
        Ok(Some(StoredToken {
            id: row.try_get(0)?,
            nonce: row.try_get(1)?,
            action,
            state: row.try_get(3)?,
            is_over: row.try_get(4)?,
            link_hash: row.try_get(5)?,
            code_hash: row.try_get(6)?,
            attempts: row.try_get(7)?,
            account: row.try_get(8)?,
            login: row.try_get(9)?,
        }))
    }

    fn judge(&self, stored: &StoredToken, presented: &PresentedToken, link: &SignedLink) -> TokenCheck {
        // Without the original link, a caller learns nothing about the token.
        if verify_slices_are_equal(&sha256(link.tag.as_bytes()), &stored.link_hash).is_err() {
            return TokenCheck::Invalid("unknown");
        }
        if presented.path != self.accounts.link(stored.action).0 {
            return TokenCheck::Invalid("path");
        }
        match stored.state.as_str() {
            _ if stored.attempts >= ATTEMPTS_MAX => return TokenCheck::Invalid("attempts"),
            "consumed" => return TokenCheck::Invalid("consumed"),
            "revoked" => return TokenCheck::Invalid("revoked"),
            "expired" => return TokenCheck::Invalid("expired"),
            _ if stored.is_over => return TokenCheck::Invalid("expired"),
            _ => {}
        }
        if let Some(code) = &presented.code {
            let made =
                |keys: &TokenKeys| keys.made(&stored.nonce, code, &stored.code_hash, &presented.path, link);
            if !self.keys.iter().any(made) {
                return TokenCheck::Invalid("code");
            }
        }
        TokenCheck::Valid {
            action: stored.action.as_str(),
            account: stored.account,
            login: stored.login.clone(),
            consumed: false,
        }
    }
}
