//! The configured database, opened.

use std::{sync::Arc, time::Duration};

use postway_store::{Store, StoreError, mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};
use tokio::time::{Instant, sleep};

use crate::config::Database;

/// How long a database server may take to notice that the process before this one is gone.
const LOCK_MAX: Duration = Duration::from_secs(15);
/// The first wait for a database that does not answer; doubles up to the last.
const WAIT_FIRST: Duration = Duration::from_millis(250);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Opens the store. A file must open at once; a server that is away is waited for.
pub async fn open(database: &Database) -> Result<Arc<dyn Store>, StoreError> {
    let started = Instant::now();
    let mut wait = WAIT_FIRST;
    loop {
        let error = match try_open(database).await {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        let waits = match (&error, database) {
            (_, Database::Sqlite { .. }) => false,
            (StoreError::Unavailable(_), _) => true,
            (StoreError::Locked(_), _) => started.elapsed() < LOCK_MAX,
            (_, Database::Postgres { .. } | Database::Mysql { .. }) => false,
        };
        if !waits {
            return Err(error);
        }
        tracing::warn!(%error, wait_ms = wait.as_millis() as u64, "the database cannot be opened yet");
        sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Does a first step in a store that was opened, again and again where its server went away in between or takes no
/// writes.
pub async fn while_away<T>(
    store: &dyn Store,
    step: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut wait = WAIT_FIRST;
    loop {
        let error = match step().await {
            Err(error) if store.is_shared() && is_away(&error) => error,
            done => return done,
        };
        tracing::warn!(
            error = format!("{error:#}"),
            wait_ms = wait.as_millis() as u64,
            "the database cannot be used yet"
        );
        sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

fn is_away(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Unavailable(_)))
}

async fn try_open(database: &Database) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match database {
        Database::Sqlite { path } => Arc::new(SqliteStore::open(path).await?),
        Database::Postgres { url } => Arc::new(PostgresStore::open(url.expose()).await?),
        Database::Mysql { url } => Arc::new(MysqlStore::open(url.expose()).await?),
    })
}
