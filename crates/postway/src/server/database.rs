//! Opens the configured database, and waits for one that is away.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use postway_store::{Store, StoreError, mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};
use tokio::time::sleep;

use crate::config::DatabaseConfig;

/// The first wait for a database that does not answer; doubles up to the last.
const WAIT_FIRST: Duration = Duration::from_millis(250);
/// The longest wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The bytes that fit on a disk that is not full: enough for a first transaction.
const ROOM_BYTES: usize = 256 * 1024;

/// Opens the store. A file must open at once, unless its disk is full; a server that is away, or is being
/// migrated by another process, is waited for.
pub async fn open(database: &DatabaseConfig) -> Result<Arc<dyn Store>, StoreError> {
    let mut wait = WAIT_FIRST;
    loop {
        let error = match try_open(database).await {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        let waits = match (&error, database) {
            (StoreError::Unavailable(_), DatabaseConfig::Sqlite { path }) => is_full(path),
            (_, DatabaseConfig::Sqlite { .. }) => false,
            (error, DatabaseConfig::Postgres { .. } | DatabaseConfig::Mysql { .. }) => {
                matches!(error, StoreError::Unavailable(_) | StoreError::Locked(_))
            }
        };
        if !waits {
            return Err(error);
        }
        tracing::warn!(%error, wait_ms = wait.as_millis() as u64, "the database cannot be opened yet");
        sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Runs a first step on an opened store, and repeats it while its server is away or takes no writes, or its
/// disk is full.
pub async fn while_away<T>(
    database: &DatabaseConfig,
    step: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut wait = WAIT_FIRST;
    loop {
        let error = match step().await {
            Err(error) if is_away(&error) && may_come_back(database) => error,
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

fn may_come_back(database: &DatabaseConfig) -> bool {
    match database {
        DatabaseConfig::Sqlite { path } => is_full(path),
        DatabaseConfig::Postgres { .. } | DatabaseConfig::Mysql { .. } => true,
    }
}

/// Whether the disk of a file is full. SQLite has several error codes for that, some of which mean other
/// things as well.
fn is_full(path: &Path) -> bool {
    let mut trial = path.as_os_str().to_owned();
    trial.push(".room");
    let trial = Path::new(&trial);
    let written = fs::File::create(trial).and_then(|mut file| {
        file.write_all(&vec![0; ROOM_BYTES])?;
        file.sync_all()
    });
    if let Err(error) = fs::remove_file(trial)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "a trial of the disk stays");
    }
    let kind = written.err().map(|error| error.kind());
    matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

async fn try_open(database: &DatabaseConfig) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match database {
        DatabaseConfig::Sqlite { path } => Arc::new(SqliteStore::open(path).await?),
        DatabaseConfig::Postgres { url } => Arc::new(PostgresStore::open(url.expose()).await?),
        DatabaseConfig::Mysql { url } => Arc::new(MysqlStore::open(url.expose()).await?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_room_is_not_full_and_nothing_stays_on_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_full(&folder.path().join("postway.db")));
        assert!(!is_full(&folder.path().join("no such folder/postway.db")), "that is another fault");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
