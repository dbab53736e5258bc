//! What the API asks about sources: their status, and whether a token is valid.

use std::{sync::Arc, time::Duration};

use postway_domain::{TenantId, secret::SecretKey};
use postway_store::Store;
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::{
    address::SourceOptions,
    database::{connect, within},
    error::OutboxError,
    postgres::SETTINGS,
    runner::OutboxRunner,
    status::{SourceState, SourceStatus},
    token::{SignedLink, TokenKeys},
    verify::{PresentedToken, TokenCheck, TokenVerifier},
};

/// The most connections to each source for verifying tokens.
const CONNECTIONS: u32 = 4;
/// The longest time for verifying a token.
const VERIFY_S_MAX: u64 = 10;
/// The longest time for reading the status of a source.
const STATUS_S_MAX: u64 = 5;
/// Pending rows are counted up to this number.
const COUNTED_MAX: u32 = 10_000;

/// The sources of this process.
#[derive(Default)]
pub struct OutboxStatusApi {
    sources: Vec<SourceEntry>,
}

struct SourceEntry {
    outbox: Arc<OutboxRunner>,
    tokens: Option<(PgPool, TokenVerifier)>,
}

impl OutboxStatusApi {
    /// An API for these sources. It connects when it is first asked.
    pub fn new(outboxes: Vec<Arc<OutboxRunner>>, secret_key: &SecretKey) -> Result<Self, OutboxError> {
        let entry = |outbox: Arc<OutboxRunner>| {
            let tokens = match (&outbox.source.accounts, outbox.source.url.options()?) {
                (Some(accounts), SourceOptions::Postgres(options)) => {
                    let pool = PgPoolOptions::new()
                        .max_connections(CONNECTIONS)
                        .acquire_timeout(Duration::from_secs(VERIFY_S_MAX))
                        .idle_timeout(Duration::from_secs(60))
                        .after_connect(|conn, _| {
                            Box::pin(async move { sqlx::raw_sql(SETTINGS).execute(conn).await.map(drop) })
                        })
                        .connect_lazy_with(*options);
                    let keys = TokenKeys::generations(&outbox.source, accounts, secret_key);
                    Some((pool, TokenVerifier::new(accounts, keys)))
                }
                _ => None,
            };
            Ok(SourceEntry { outbox, tokens })
        };
        Ok(Self { sources: outboxes.into_iter().map(entry).collect::<Result<_, OutboxError>>()? })
    }

    /// Whether a tenant has tokens to verify.
    pub fn has_tokens(&self, tenant: &TenantId) -> bool {
        self.sources.iter().any(|entry| entry.tokens.is_some() && entry.outbox.tenant() == tenant)
    }

    /// Verifies the token that a reader presents, for one tenant.
    pub async fn verify(
        &self,
        tenant: &TenantId,
        presented: &PresentedToken,
    ) -> Result<TokenCheck, OutboxError> {
        let Some(link) = SignedLink::read(&presented.token) else {
            return Ok(TokenCheck::Invalid("malformed"));
        };
        for entry in self.sources.iter().filter(|entry| entry.outbox.tenant() == tenant) {
            let Some((pool, verifier)) = &entry.tokens else { continue };
            let asked = async {
                let mut conn = pool.acquire().await?;
                verifier.verify(&mut conn, presented, &link).await
            };
            if let Some(finding) = within(VERIFY_S_MAX, asked).await? {
                return Ok(finding);
            }
        }
        Ok(TokenCheck::Invalid("unknown"))
    }

    /// The status of the sources of one tenant, or of all.
    pub async fn status(&self, store: &dyn Store, tenant: Option<&TenantId>) -> Vec<SourceStatus> {
        let wanted =
            self.sources.iter().filter(|entry| tenant.is_none_or(|tenant| entry.outbox.tenant() == tenant));
        futures::future::join_all(wanted.map(|entry| entry.status(store))).await
    }
}

impl SourceEntry {
    async fn status(&self, store: &dyn Store) -> SourceStatus {
        let source = &self.outbox.source;
        let mut live = self.outbox.board.read();
        if live.standing == SourceState::Elsewhere {
            let look = async {
                let mut db = connect(source).await?;
                Ok((db.waiting(COUNTED_MAX).await?, db.lag_seconds().await?))
            };
            match within(STATUS_S_MAX, look).await {
                Ok((waiting, lag)) => (live.waiting, live.lag_seconds) = (Some(waiting), Some(lag)),
                Err(error) => live.error = Some(error.to_string()),
            }
        }
        let holder = store.duty(&source.duty()).await.ok().flatten().map(|duty| duty.holder);
        SourceStatus {
            name: source.name.clone(),
            tenant: source.tenant.clone(),
            kind: if source.accounts.is_some() { "accounts" } else { "generic" },
            database: source.url.to_string(),
            standing: live.standing,
            holder,
            waiting: live.waiting,
            lag_seconds: live.lag_seconds,
            accepted: live.accepted,
            invalid: live.invalid,
            last_taken_at: live.last_taken_at,
            error: live.error,
        }
    }
}
