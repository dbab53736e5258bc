//! A house full of everything, moved from database to database.

mod inbound_data;
mod query_plans;
mod reporting_data;
mod sample_data;
mod schema;

use std::sync::Arc;

use postway_domain::Tenant;
use postway_testkit::{mariadb::MariaDb, postgres::PostgresDatabase};
use tempfile::TempDir;
use tokio::sync::oneshot;

use self::sample_data::{furnish, picture};
use super::{DatabaseAddress, TABLES, TransferError, TransferReport, TransferRole, copy};
use crate::{
    conformance::{
        Shared, journal,
        sample::{self, Sample, at},
        stage,
    },
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    error::StoreError,
    port::{NodeStore, OperationStore},
    record::NodeBeat,
};

/// A database of each kind, and a file besides.
struct Street {
    folder: TempDir,
    postgres: PostgresDatabase,
    mysql_url: String,
}

impl Street {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self { folder, postgres: PostgresDatabase::create(), mysql_url: MariaDb::shared().create_database() }
    }

    fn file(&self, name: &str) -> DatabaseAddress {
        DatabaseAddress::sqlite(self.folder.path().join(name))
    }

    fn postgres(&self) -> DatabaseAddress {
        address(&self.postgres.url())
    }

    fn mysql(&self) -> DatabaseAddress {
        address(&self.mysql_url)
    }

    /// A furnished file, and what is in it.
    async fn furnished(&self) -> (DatabaseAddress, Vec<String>) {
        let store = self.open_file("old.db").await;
        furnish(&store).await;
        let picture = picture(&store).await;
        store.close().await;
        (self.file("old.db"), picture)
    }

    async fn open_file(&self, name: &str) -> Shared {
        Arc::new(SqliteStore::open(&self.folder.path().join(name)).await.unwrap())
    }

    async fn open_postgres(&self) -> Shared {
        Arc::new(PostgresStore::open(&self.postgres.url()).await.unwrap())
    }

    async fn open_mysql(&self) -> Shared {
        Arc::new(MysqlStore::open(&self.mysql_url).await.unwrap())
    }
}

fn address(url: &str) -> DatabaseAddress {
    DatabaseAddress::parse(url, TransferRole::Target).unwrap()
}

async fn moved(from: &DatabaseAddress, to: &DatabaseAddress) -> TransferReport {
    let mut last = (0, 0);
    let report = copy(from, to, &mut |progress| {
        assert!(progress.rows_done >= last.0, "{progress:?} after {last:?}");
        last = (progress.rows_done, progress.rows_total);
    })
    .await
    .unwrap();
    assert_eq!(report.differing().count(), 0, "{report:?}");
    assert_eq!((report.tables.len(), last.0), (TABLES.len(), last.1));
    report
}

/// Copies until this many pages are written, and then is gone, wherever that is.
async fn cut_short(from: &DatabaseAddress, to: &DatabaseAddress, pages: usize) -> Option<TransferReport> {
    let (cut, is_cut) = oneshot::channel();
    let (mut cut, mut before, mut written) = (Some(cut), None, 0);
    let mut on_progress = |progress: super::TransferProgress| {
        written +=
            usize::from(before.replace(progress.rows_done).is_some_and(|rows| rows < progress.rows_done));
        if written == pages
            && let Some(cut) = cut.take()
        {
            cut.send(()).unwrap();
        }
    };
    tokio::select! {
        biased;
        _ = is_cut => None,
        report = copy(from, to, &mut on_progress) => Some(report.unwrap()),
    }
}

async fn assert_furnished(store: Shared, expected: &[String]) {
    let found = picture(&store).await;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    // The counters go on from where they are, and so does the journal.
    let end = store.feed_end(&sample::tenant()).await.unwrap();
    let new = stage::accept(&store, Sample::new(900_000)).await;
    journal::tell(&store, at(0)).await;
    let next = store.feed(&sample::tenant(), end, 999).await.unwrap();
    assert_eq!(next.last().map(|one| one.uid), Some(new));
    let stats = store.stats(None, at(0)).await.unwrap();
    let messages = expected.iter().filter(|line| line.starts_with("MessageRecord")).count();
    assert_eq!(stats.by_status.values().sum::<i64>() as usize, messages + 1);
    store.close().await;
}

#[tokio::test]
async fn everything_arrives_whichever_the_databases() {
    let street = Street::new();
    let (old, picture) = street.furnished().await;
    let report = moved(&old, &street.postgres()).await;
    assert_eq!(report.rows_found, 0);
    // A gateway on the copy would change it: the next move comes first.
    moved(&street.postgres(), &street.mysql()).await;
    moved(&street.mysql(), &street.file("new.db")).await;
    assert_furnished(street.open_postgres().await, &picture).await;
    assert_furnished(street.open_mysql().await, &picture).await;
    assert_furnished(street.open_file("new.db").await, &picture).await;
}

#[tokio::test]
async fn a_file_moves_to_mariadb() {
    let street = Street::new();
    let (old, picture) = street.furnished().await;
    moved(&old, &street.mysql()).await;
    assert_furnished(street.open_mysql().await, &picture).await;
}

#[tokio::test]
async fn a_copy_cut_short_again_and_again_goes_on_each_time() {
    let street = Street::new();
    let (old, picture) = street.furnished().await;
    assert!(cut_short(&old, &street.postgres(), 2).await.is_none());
    let opened = PostgresStore::open(&street.postgres.url()).await;
    assert!(matches!(opened, Err(StoreError::HalfCopied)), "nobody moves into a half-copied house");
    for (target, pages) in [(street.postgres(), 1), (street.mysql(), 3)] {
        let mut runs = 0;
        let report = loop {
            runs += 1;
            assert!(runs < 100, "it does not get on");
            if let Some(report) = cut_short(&old, &target, pages).await {
                break report;
            }
        };
        assert!(runs > 3, "it was over after {runs} runs");
        assert!(report.rows_found > report.rows_copied, "{report:?}");
        assert_eq!(report.differing().count(), 0, "{report:?}");
    }
    assert_furnished(street.open_postgres().await, &picture).await;
    assert_furnished(street.open_mysql().await, &picture).await;
}

#[tokio::test]
async fn a_filled_target_is_refused_and_left_as_it_is() {
    let street = Street::new();
    let (old, picture) = street.furnished().await;
    for target in [street.postgres(), street.mysql(), street.file("new.db")] {
        moved(&old, &target).await;
        let again = copy(&old, &target, &mut |_| {}).await;
        assert!(matches!(again, Err(TransferError::Filled("message"))), "{again:?}");
    }
    assert_eq!(street.postgres.run("SELECT to_regclass('copy_progress') IS NULL"), "t");
    assert_furnished(street.open_postgres().await, &picture).await;
}

/// A first start on the target may have come before the copy.
#[tokio::test]
async fn what_a_first_start_lays_down_is_replaced() {
    let street = Street::new();
    let (old, picture) = street.furnished().await;
    let store = street.open_postgres().await;
    let (id, sandbox) = ("default".parse().unwrap(), "sandbox".parse().unwrap());
    let tenant = Tenant { default_account: Some(sandbox), ..Tenant::new(id, "default", at(0)) };
    assert!(store.create_tenant(tenant).await.unwrap());
    assert!(store.create_account(sample::account("default", "sandbox")).await.unwrap());
    store.close().await;
    moved(&old, &street.postgres()).await;
    assert_furnished(street.open_postgres().await, &picture).await;

    let store = street.open_mysql().await;
    stage::open(&store).await;
    store.close().await;
    let refused = copy(&old, &street.mysql(), &mut |_| {}).await;
    assert!(matches!(refused, Err(TransferError::Filled("account"))), "{refused:?}");
}

#[tokio::test]
async fn a_copy_is_not_mixed_with_another() {
    let street = Street::new();
    let (old, _) = street.furnished().await;
    assert!(cut_short(&old, &street.postgres(), 2).await.is_none());
    let other = street.open_file("other.db").await;
    other.close().await;
    drop(other);
    let mixed = copy(&street.file("other.db"), &street.postgres(), &mut |_| {}).await;
    let Err(TransferError::OtherSource(source)) = mixed else { panic!("{mixed:?}") };
    assert!(source.ends_with("old.db"), "{source}");

    // The source was started once more in between.
    let store = street.open_file("old.db").await;
    assert_eq!(stage::claim(&store, 77, at(1_000_000), 1).await.len(), 1);
    store.close().await;
    drop(store);
    let stale = copy(&old, &street.postgres(), &mut |_| {}).await;
    assert!(matches!(stale, Err(TransferError::Changed("event"))), "{stale:?}");
}

#[tokio::test]
async fn a_database_in_use_is_refused() {
    let street = Street::new();
    let in_use = street.open_file("old.db").await;
    let locked = copy(&street.file("old.db"), &street.postgres(), &mut |_| {}).await;
    assert!(matches!(&locked, Err(TransferError::Open { role: TransferRole::Source, .. })), "{locked:?}");
    in_use.close().await;
    drop(in_use);

    let store = PostgresStore::open(&street.postgres.url()).await.unwrap();
    let node = NodeBeat {
        incarnation: sample::incarnation(1),
        identity: [1; 16],
        name: "host-1".into(),
        address: String::new(),
        version: String::new(),
        started_at: at(0),
        at: at(0),
    };
    store.beat(&node).await.unwrap();
    let (old, target) = (street.file("old.db"), street.postgres());
    let mut nothing = |_| {};
    let copying = copy(&old, &target, &mut nothing);
    let beating = async {
        loop {
            store.beat(&node).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let copied = tokio::select! {
        copied = copying => copied,
        () = beating => unreachable!("it beats for ever"),
    };
    let Err(TransferError::InUse { role: TransferRole::Target, node: name }) = copied else {
        panic!("{copied:?}")
    };
    assert_eq!(name, "host-1");
    store.strike(&[node.incarnation]).await.unwrap();
    store.close().await;
    moved(&old, &target).await;
}

#[tokio::test]
async fn a_source_that_is_none_is_not_made_into_one() {
    let street = Street::new();
    for nowhere in [street.file("missing.db"), street.postgres()] {
        let copied = copy(&nowhere, &street.mysql(), &mut |_| {}).await;
        assert!(matches!(copied, Err(TransferError::NoSource(_))), "{copied:?}");
    }
    assert!(!street.folder.path().join("missing.db").exists());
    let same = copy(&street.mysql(), &street.mysql(), &mut |_| {}).await;
    assert!(matches!(same, Err(TransferError::Same)), "{same:?}");
}
