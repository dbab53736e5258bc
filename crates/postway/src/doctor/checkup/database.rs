//! The database, queried as the server would but never changed: whether it is reachable and fast, its schema,
//! version, size and clock, and whether a SQLite file is sound.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use postway_domain::Clock as _;
use postway_store::durability::{DurabilityRisk, LossMoment};
use postway_store::schema::MigrationState;
use postway_store::{StoreError, mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};
use tokio::time::{Instant, timeout};

use super::server::ServerTimeSample;
use super::{CHECK_MAX, CheckupFinding, CheckupState, disk};
use crate::cluster::clock::NodeClock;
use crate::config::DatabaseConfig;

/// Answers that take longer make every accepted message wait.
const SLOW: Duration = Duration::from_millis(500);
/// How far a database's clock may be from ours.
const CLOCK_APART_MS: i64 = 2_000;
/// A write-ahead log larger than this is kept by a long reader.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The largest SQLite file that is checked completely.
const SOUNDNESS_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Where a SQLite file says how it is written and read: 2 and 2 for WAL.
const WAL_AT: usize = 18;

/// Everything about the database.
pub async fn check(database: &DatabaseConfig) -> Vec<CheckupFinding> {
    let mut findings = Vec::new();
    if let DatabaseConfig::Sqlite { path } = database {
        if !path.exists() {
            let found = format!("{} is not there yet; the first start makes it", path.display());
            return vec![CheckupFinding::new("sqlite", CheckupState::Skipped).found(found)];
        }
        findings.push(place(path));
        findings.push(journal(path));
        findings.push(log(path));
    }
    let schema = schema(database).await;
    let is_reached = schema.state != CheckupState::Problem;
    findings.push(schema);
    if is_reached {
        findings.extend(itself(database).await);
    }
    findings
}

/// The facts that the database reports about itself.
async fn itself(database: &DatabaseConfig) -> Vec<CheckupFinding> {
    let clock = NodeClock::default();
    let asked_at = clock.now();
    let asked = async {
        match database {
            DatabaseConfig::Sqlite { path } => SqliteStore::facts(path).await,
            DatabaseConfig::Postgres { url } => PostgresStore::facts(url.expose()).await,
            DatabaseConfig::Mysql { url } => MysqlStore::facts(url.expose()).await,
        }
    };
    let facts = match timeout(CHECK_MAX, Box::pin(asked)).await {
        Ok(Ok(facts)) => facts,
        Ok(Err(error)) => {
            return vec![CheckupFinding::new("version", CheckupState::Skipped).found(error.to_string())];
        }
        Err(_) => return vec![CheckupFinding::new("version", CheckupState::Skipped).found(late())],
    };
    let found = format!("{} {}, {}", kind(database), facts.version, size(facts.bytes));
    let mut findings = vec![CheckupFinding::new("version", CheckupState::Ok).found(found)];
    // Connecting is part of the time in between, and only widens what agrees.
    findings
        .extend(facts.at.map(|at| judge_clock(ServerTimeSample { asked_at, at, answered_at: clock.now() })));
    match database {
        DatabaseConfig::Sqlite { path } => findings.push(soundness(path, facts.bytes).await),
        DatabaseConfig::Postgres { .. } | DatabaseConfig::Mysql { .. } => {
            findings.extend(judge_durability(&facts.risks))
        }
    }
    findings
}

/// What is acknowledged must outlive a crash of the database's machine, and it is the database that sees to
/// it.
fn judge_durability(risks: &[DurabilityRisk]) -> Vec<CheckupFinding> {
    let check = "database's durability";
    if risks.is_empty() {
        return vec![CheckupFinding::new(check, CheckupState::Ok).found("commits are synced")];
    }
    let judge = |risk: &DurabilityRisk| {
        let standing = match risk.loses_at {
            LossMoment::Crash => CheckupState::Problem,
            LossMoment::Failover => CheckupState::Warning,
        };
        CheckupFinding::new(check, standing)
            .found(format!("{} = {}", risk.setting, risk.value))
            .advice(risk.advice())
    };
    risks.iter().map(judge).collect()
}

/// Messages carry the times of the nodes, so nothing breaks; but one of the clocks is wrong.
fn judge_clock(glance: ServerTimeSample) -> CheckupFinding {
    let (apart_ms, found) = glance.apart("this machine's");
    match apart_ms >= CLOCK_APART_MS {
        true => CheckupFinding::new("database's clock", CheckupState::Warning).found(found).advice(
            "have both machines follow NTP: logs and backups of the two are hard to compare otherwise",
        ),
        false => CheckupFinding::new("database's clock", CheckupState::Ok).found(found),
    }
}

/// The check reads the complete file, so a large one is skipped.
async fn soundness(path: &Path, bytes: u64) -> CheckupFinding {
    let check = "sqlite's pages";
    let alone = format!("run `sqlite3 {} 'PRAGMA quick_check'` when there is time for it", path.display());
    if bytes > SOUNDNESS_BYTES_MAX {
        let found = format!("{} are too many to read now", size(bytes));
        return CheckupFinding::new(check, CheckupState::Skipped).found(found).advice(alone);
    }
    match timeout(CHECK_MAX, SqliteStore::faults(path)).await {
        Ok(Ok(faults)) if faults.is_empty() => CheckupFinding::new(check, CheckupState::Ok).found("sound"),
        Ok(Ok(faults)) => {
            let advice =
                "stop the server and go back to a backup (docs/guide/operations.md); look at the disk, too";
            CheckupFinding::new(check, CheckupState::Problem).found(faults.join("; ")).advice(advice)
        }
        Ok(Err(error)) => CheckupFinding::new(check, CheckupState::Skipped).found(error.to_string()),
        Err(_) => CheckupFinding::new(check, CheckupState::Skipped).found(late()).advice(alone),
    }
}

fn late() -> String {
    format!("no answer within {} seconds", CHECK_MAX.as_secs())
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        (amount, unit) = (amount / 1024.0, unit + 1);
    }
    format!("{amount:.1} {}", UNITS[unit])
}

fn kind(database: &DatabaseConfig) -> &'static str {
    match database {
        DatabaseConfig::Sqlite { .. } => "sqlite",
        DatabaseConfig::Postgres { .. } => "postgresql",
        DatabaseConfig::Mysql { .. } => "mysql",
    }
}

/// SQLite's locks and its WAL work on disks of this machine only.
fn place(path: &Path) -> CheckupFinding {
    let place = std::path::absolute(path).ok().and_then(|path| disk::filesystem(&path));
    let check = "sqlite's disk";
    match place {
        Some(kind) if disk::is_remote(&kind) => {
            let advice =
                "locks over a network lose data: move data_dir to a disk of this machine, or use PostgreSQL";
            CheckupFinding::new(check, CheckupState::Problem)
                .found(format!("{} is on {kind}", path.display()))
                .advice(advice)
        }
        Some(kind) => {
            CheckupFinding::new(check, CheckupState::Ok).found(format!("{} on {kind}", path.display()))
        }
        None => CheckupFinding::new(check, CheckupState::Skipped)
            .found("this system does not tell what a disk is"),
    }
}

/// Reads the file's own header: a connection would set what it asks for.
fn journal(path: &Path) -> CheckupFinding {
    let mut header = [0; WAL_AT + 2];
    let check = "sqlite's journal";
    match File::open(path).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) if header[WAL_AT..] == [2, 2] => CheckupFinding::new(check, CheckupState::Ok).found("wal"),
        Ok(()) => {
            let advice =
                "the server sets it at its start; a file that was changed by another program may differ";
            CheckupFinding::new(check, CheckupState::Warning).found("not wal").advice(advice)
        }
        Err(error) => {
            let advice = "run this as the user that the server runs as";
            CheckupFinding::new(check, CheckupState::Skipped).found(error.to_string()).advice(advice)
        }
    }
}

/// The server keeps the log short, unless another process reads for long.
fn log(path: &Path) -> CheckupFinding {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    judge_log(std::fs::metadata(log).map_or(0, |found| found.len()))
}

fn judge_log(bytes: u64) -> CheckupFinding {
    let (check, found) = ("sqlite's log", size(bytes));
    match bytes > LOG_BYTES_MAX {
        false => CheckupFinding::new(check, CheckupState::Ok).found(found),
        true => CheckupFinding::new(check, CheckupState::Warning).found(found).advice(
            "something reads the database for long, or no server runs that would fold the log back: end the reader \
             (`fuser` names who has the file open), and take backups with `postway backup`",
        ),
    }
}

async fn schema(database: &DatabaseConfig) -> CheckupFinding {
    let started = Instant::now();
    let asked = async {
        match database {
            DatabaseConfig::Sqlite { path } => SqliteStore::migration_status(path).await,
            DatabaseConfig::Postgres { url } => PostgresStore::migration_status(url.expose()).await,
            DatabaseConfig::Mysql { url } => MysqlStore::migration_status(url.expose()).await,
        }
    };
    let kind = kind(database);
    match timeout(CHECK_MAX, Box::pin(asked)).await {
        Ok(answer) => judge(kind, answer, started.elapsed()),
        Err(_) => {
            let advice = "see whether the database runs, and whether this machine may connect to it";
            CheckupFinding::new(kind, CheckupState::Problem).found(late()).advice(advice)
        }
    }
}

fn judge(kind: &str, answer: Result<Vec<MigrationState>, StoreError>, took: Duration) -> CheckupFinding {
    let states = match answer {
        Ok(states) => states,
        Err(error) => {
            let advice = match error.is_transient() {
                true => "see whether the database runs, and whether this machine may connect to it",
                false => "check database.url (POSTWAY_DATABASE_URL)",
            };
            return CheckupFinding::new(kind, CheckupState::Problem).found(error.to_string()).advice(advice);
        }
    };
    let missing = states.iter().filter(|state| !state.applied).count();
    let newest = states.iter().filter(|state| state.applied).map(|state| state.migration.version).max();
    let took_ms = took.as_millis();
    let found = format!("schema {}, connected and asked in {took_ms} ms", newest.unwrap_or(0));
    if missing > 0 {
        let advice = "the server applies them at its start; `postway migrate up` does it apart";
        let found = format!("{found}; {missing} migrations are missing");
        return CheckupFinding::new(kind, CheckupState::Warning).found(found).advice(advice);
    }
    if took > SLOW {
        let advice = "every message waits for the database: bring it nearer, or see what else keeps it busy";
        return CheckupFinding::new(kind, CheckupState::Warning).found(found).advice(advice);
    }
    CheckupFinding::new(kind, CheckupState::Ok).found(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postway.db");
        let findings = check(&DatabaseConfig::Sqlite { path: path.clone() }).await;
        assert_eq!((findings.len(), findings[0].state), (1, CheckupState::Skipped));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_store_that_was_made_is_sound_and_an_older_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postway.db");
        SqliteStore::migrate(&path).await.unwrap();
        let findings = check(&DatabaseConfig::Sqlite { path: path.clone() }).await;
        assert!(findings.iter().all(|finding| finding.state != CheckupState::Problem), "{findings:?}");
        assert_eq!(findings[1].found.as_deref(), Some("wal"));
        let mut states = SqliteStore::migration_status(&path).await.unwrap();
        states.last_mut().unwrap().applied = false;
        let older = judge("sqlite", Ok(states), Duration::ZERO);
        assert_eq!(older.state, CheckupState::Warning);
        assert!(older.advice.unwrap().contains("migrate up"));
    }

    #[tokio::test]
    async fn a_file_tells_its_version_and_whether_it_is_sound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postway.db");
        SqliteStore::migrate(&path).await.unwrap();
        let findings = check(&DatabaseConfig::Sqlite { path: path.clone() }).await;
        let found = |check: &str| {
            let finding = findings.iter().find(|finding| finding.check == check).unwrap();
            (finding.state, finding.found.clone().unwrap_or_default())
        };
        let (state, version) = found("version");
        assert!(state == CheckupState::Ok && version.starts_with("sqlite 3."), "{version}");
        assert_eq!(found("sqlite's pages"), (CheckupState::Ok, "sound".to_owned()));
        let large = soundness(&path, SOUNDNESS_BYTES_MAX + 1).await;
        assert_eq!(large.state, CheckupState::Skipped);
        assert!(large.advice.unwrap().contains("quick_check"));
    }

    #[test]
    fn a_database_whose_clock_is_off_is_reported() {
        let at = postway_domain::Time::from_millis;
        let glance = |ms| ServerTimeSample { asked_at: at(100_000), at: at(ms), answered_at: at(100_500) };
        assert_eq!(judge_clock(glance(100_200)).state, CheckupState::Ok);
        assert_eq!(judge_clock(glance(101_500)).state, CheckupState::Ok);
        let off = judge_clock(glance(97_000));
        assert_eq!(off.state, CheckupState::Warning);
        assert!(off.found.unwrap().contains("behind"));
    }

    #[test]
    fn a_database_that_loses_commits_is_a_problem_and_one_whose_replicas_may_is_warned_of() {
        let risk =
            |setting, loses_at| DurabilityRisk { setting, value: "0".to_owned(), wanted: "1", loses_at };
        let found = judge_durability(&[
            risk("innodb_flush_log_at_trx_commit", LossMoment::Crash),
            risk("sync_binlog", LossMoment::Failover),
        ]);
        let standings: Vec<CheckupState> = found.iter().map(|finding| finding.state).collect();
        assert_eq!(standings, [CheckupState::Problem, CheckupState::Warning]);
        assert_eq!(found[0].found.as_deref(), Some("innodb_flush_log_at_trx_commit = 0"));
        assert!(found[0].advice.as_deref().unwrap().contains("innodb_flush_log_at_trx_commit = 1"));
        assert_eq!(judge_durability(&[])[0].state, CheckupState::Ok);
    }

    #[test]
    fn a_log_that_a_reader_keeps_is_reported() {
        assert_eq!(judge_log(LOG_BYTES_MAX).state, CheckupState::Ok);
        let large = judge_log(LOG_BYTES_MAX + 1);
        assert_eq!(large.state, CheckupState::Warning);
        assert!(large.advice.unwrap().contains("reads the database for long"));
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, shown) in [(0, "0.0 KiB"), (512, "0.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5.0 TiB")] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn an_absent_database_is_a_problem() {
        let finding = judge("postgresql", Err(StoreError::Unavailable("refused".to_owned())), Duration::ZERO);
        assert_eq!(finding.state, CheckupState::Problem);
        assert!(finding.advice.unwrap().contains("runs"));
    }
}
