//! The database, asked as the server would, but never changed: reachable, how fast, with which schema.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use postway_store::schema::MigrationState;
use postway_store::{StoreError, mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};
use tokio::time::{Instant, timeout};

use super::{CHECK_MAX, Finding, Standing, disk};
use crate::config::Database;

/// Answers that take longer make every accepted message wait.
const SLOW: Duration = Duration::from_millis(500);
/// Where a SQLite file says how it is written and read: 2 and 2 for WAL.
const WAL_AT: usize = 18;

/// Everything about the database.
pub async fn check(database: &Database) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Database::Sqlite { path } = database {
        if !path.exists() {
            let found = format!("{} is not there yet; the first start makes it", path.display());
            return vec![Finding::new("sqlite", Standing::Skipped).found(found)];
        }
        findings.push(place(path));
        findings.push(journal(path));
    }
    findings.push(schema(database).await);
    findings
}

/// SQLite's locks and its WAL work on disks of this machine only.
fn place(path: &Path) -> Finding {
    let place = std::path::absolute(path).ok().and_then(|path| disk::filesystem(&path));
    let check = "sqlite's disk";
    match place {
        Some(kind) if disk::is_remote(&kind) => {
            let advice =
                "locks over a network lose data: move data_dir to a disk of this machine, or use PostgreSQL";
            Finding::new(check, Standing::Problem)
                .found(format!("{} is on {kind}", path.display()))
                .advice(advice)
        }
        Some(kind) => Finding::new(check, Standing::Ok).found(format!("{} on {kind}", path.display())),
        None => Finding::new(check, Standing::Skipped).found("this system does not tell what a disk is"),
    }
}

/// Reads the file's own header: a connection would set what it asks for.
fn journal(path: &Path) -> Finding {
    let mut header = [0; WAL_AT + 2];
    let check = "sqlite's journal";
    match File::open(path).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) if header[WAL_AT..] == [2, 2] => Finding::new(check, Standing::Ok).found("wal"),
        Ok(()) => {
            let advice =
                "the server sets it at its start; a file that was changed by another program may differ";
            Finding::new(check, Standing::Warning).found("not wal").advice(advice)
        }
        Err(error) => {
            let advice = "run this as the user that the server runs as";
            Finding::new(check, Standing::Skipped).found(error.to_string()).advice(advice)
        }
    }
}

async fn schema(database: &Database) -> Finding {
    let started = Instant::now();
    let asked = async {
        match database {
            Database::Sqlite { path } => SqliteStore::migration_status(path).await,
            Database::Postgres { url } => PostgresStore::migration_status(url.expose()).await,
            Database::Mysql { url } => MysqlStore::migration_status(url.expose()).await,
        }
    };
    let kind = match database {
        Database::Sqlite { .. } => "sqlite",
        Database::Postgres { .. } => "postgresql",
        Database::Mysql { .. } => "mysql",
    };
    match timeout(CHECK_MAX, Box::pin(asked)).await {
        Ok(answer) => judge(kind, answer, started.elapsed()),
        Err(_) => {
            let found = format!("no answer within {} seconds", CHECK_MAX.as_secs());
            let advice = "see whether the database runs, and whether this machine may connect to it";
            Finding::new(kind, Standing::Problem).found(found).advice(advice)
        }
    }
}

fn judge(kind: &str, answer: Result<Vec<MigrationState>, StoreError>, took: Duration) -> Finding {
    let states = match answer {
        Ok(states) => states,
        Err(error) => {
            let advice = match error.is_transient() {
                true => "see whether the database runs, and whether this machine may connect to it",
                false => "check database.url (POSTWAY_DATABASE_URL)",
            };
            return Finding::new(kind, Standing::Problem).found(error.to_string()).advice(advice);
        }
    };
    let missing = states.iter().filter(|state| !state.applied).count();
    let newest = states.iter().filter(|state| state.applied).map(|state| state.migration.version).max();
    let took_ms = took.as_millis();
    let found = format!("schema {}, connected and asked in {took_ms} ms", newest.unwrap_or(0));
    if missing > 0 {
        let advice = "the server applies them at its start; `postway migrate up` does it apart";
        let found = format!("{found}; {missing} migrations are missing");
        return Finding::new(kind, Standing::Warning).found(found).advice(advice);
    }
    if took > SLOW {
        let advice = "every message waits for the database: bring it nearer, or see what else keeps it busy";
        return Finding::new(kind, Standing::Warning).found(found).advice(advice);
    }
    Finding::new(kind, Standing::Ok).found(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postway.db");
        let findings = check(&Database::Sqlite { path: path.clone() }).await;
        assert_eq!((findings.len(), findings[0].state), (1, Standing::Skipped));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_store_that_was_made_is_sound_and_an_older_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postway.db");
        SqliteStore::migrate(&path).await.unwrap();
        let findings = check(&Database::Sqlite { path: path.clone() }).await;
        assert!(findings.iter().all(|finding| finding.state != Standing::Problem), "{findings:?}");
        assert_eq!(findings[1].found.as_deref(), Some("wal"));
        let mut states = SqliteStore::migration_status(&path).await.unwrap();
        states.last_mut().unwrap().applied = false;
        let older = judge("sqlite", Ok(states), Duration::ZERO);
        assert_eq!(older.state, Standing::Warning);
        assert!(older.advice.unwrap().contains("migrate up"));
    }

    #[test]
    fn an_absent_database_is_a_problem() {
        let finding = judge("postgresql", Err(StoreError::Unavailable("refused".to_owned())), Duration::ZERO);
        assert_eq!(finding.state, Standing::Problem);
        assert!(finding.advice.unwrap().contains("runs"));
    }
}
