//! Where others ask about sources: how they stand, and whether a token is good.

use std::{sync::Arc, time::Duration};

use postway_domain::{TenantId, secret::SecretKey};
use postway_store::Store;
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::{
    address::Way,
    database::{connect, within},
    error::OutboxError,
    postgres::SETTINGS,
    runner::Outbox,
    status::{SourceStatus, Standing},
    token::{Link, TokenKeys},
    verify::{Finding, Presented, Verifier},
};

/// Connections for those who verify, to each source.
const CONNECTIONS: u32 = 4;
/// How long whoever verifies waits.
const VERIFY_S_MAX: u64 = 10;
/// How long whoever asks how a source stands waits for it.
const LOOK_S_MAX: u64 = 5;
/// Rows that wait are counted up to here.
const COUNTED_MAX: u32 = 10_000;

/// All sources of this process.
#[derive(Default)]
pub struct Desk {
    places: Vec<Place>,
}

struct Place {
    outbox: Arc<Outbox>,
    tokens: Option<(PgPool, Verifier)>,
}

impl Desk {
    /// For these sources. Nothing is connected to before somebody asks.
    pub fn new(outboxes: Vec<Arc<Outbox>>, secret_key: &SecretKey) -> Result<Self, OutboxError> {
        let place = |outbox: Arc<Outbox>| {
            let tokens = match (&outbox.source.accounts, outbox.source.url.way()?) {
                (Some(accounts), Way::Postgres(options)) => {
                    let pool = PgPoolOptions::new()
                        .max_connections(CONNECTIONS)
                        .acquire_timeout(Duration::from_secs(VERIFY_S_MAX))
                        .idle_timeout(Duration::from_secs(60))
                        .after_connect(|conn, _| {
                            Box::pin(async move { sqlx::raw_sql(SETTINGS).execute(conn).await.map(drop) })
                        })
                        .connect_lazy_with(*options);
                    let keys = TokenKeys::generations(&outbox.source, accounts, secret_key);
                    Some((pool, Verifier::new(accounts, keys)))
                }
                _ => None,
            };
            Ok(Place { outbox, tokens })
        };
        Ok(Self { places: outboxes.into_iter().map(place).collect::<Result<_, OutboxError>>()? })
    }

    /// Whether a tenant has tokens to verify.
    pub fn has_tokens(&self, tenant: &TenantId) -> bool {
        self.places.iter().any(|place| place.tokens.is_some() && place.outbox.tenant() == tenant)
    }

    /// Whether what a reader presents is good, for one tenant.
    pub async fn verify(&self, tenant: &TenantId, presented: &Presented) -> Result<Finding, OutboxError> {
        let Some(link) = Link::read(&presented.token) else { return Ok(Finding::Invalid("malformed")) };
        for place in self.places.iter().filter(|place| place.outbox.tenant() == tenant) {
            let Some((pool, verifier)) = &place.tokens else { continue };
            let asked = async {
                let mut conn = pool.acquire().await?;
                verifier.verify(&mut conn, presented, &link).await
            };
            if let Some(finding) = within(VERIFY_S_MAX, asked).await? {
                return Ok(finding);
            }
        }
        Ok(Finding::Invalid("unknown"))
    }

    /// How sources stand: of one tenant, or of all.
    pub async fn status(&self, store: &dyn Store, tenant: Option<&TenantId>) -> Vec<SourceStatus> {
        let wanted =
            self.places.iter().filter(|place| tenant.is_none_or(|tenant| place.outbox.tenant() == tenant));
        futures::future::join_all(wanted.map(|place| place.status(store))).await
    }
}

impl Place {
    async fn status(&self, store: &dyn Store) -> SourceStatus {
        let source = &self.outbox.source;
        let mut live = self.outbox.board.read();
        if live.standing == Standing::Elsewhere {
            let look = async {
                let mut db = connect(source).await?;
                Ok((db.waiting(COUNTED_MAX).await?, db.lag_seconds().await?))
            };
            match within(LOOK_S_MAX, look).await {
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
