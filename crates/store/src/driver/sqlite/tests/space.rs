//! The log stays short, free space is returned to the disk, and a file that another process has locked is
//! reported soon.

use std::time::{Duration, Instant};

use sqlx::{Connection, SqliteConnection};

use super::*;
use crate::{driver::sqlite::space::SpaceBounds, record::StoreSpace, sql_store::SqlStore as _};

const BOUNDS: SpaceBounds = SpaceBounds {
    log_bytes_large: 512 * 1024,
    free_pages_kept: 16,
    free_part_kept: 1_000_000,
    slice_pages: 32,
    read_lasts_max: Duration::from_secs(30),
};
/// Bodies in a batch.
const BATCH: u32 = 20;
const BODY_BYTES: u64 = 64 * 1024;

async fn open(folder: &TempDir) -> SqliteStore {
    open_with(folder, BOUNDS).await
}

async fn open_with(folder: &TempDir, bounds: SpaceBounds) -> SqliteStore {
    let path = folder.path().join("postway.db");
    let lock = crate::driver::sqlite::take_lock(&path).unwrap();
    let writer = crate::driver::sqlite::open::connect(&path).await.unwrap();
    SqliteStore::open_locked(&path, lock, writer, bounds).await.unwrap()
}

/// Another program that has the file open.
pub(super) async fn stranger(folder: &TempDir) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.path().join("postway.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn write(store: &Arc<dyn Store>, batches: u32) {
    let first = store.commits() as u32 * 1_000;
    for batch in 0..batches {
        let mails = (1..=BATCH).map(|n| large(first + batch * BATCH + n).build()).collect();
        store.accept(mails).await.unwrap();
    }
}

pub(super) fn large(n: u32) -> Sample {
    Sample::new(n).content(|content| content.raw = noise(BODY_BYTES as usize).into())
}

async fn tend(store: &Arc<dyn Store>) -> StoreSpace {
    store.tend_space().await.unwrap().expect("a file is tended")
}

/// A turn is short, whatever the machine does besides.
async fn tend_to_the_end(store: &Arc<dyn Store>) -> StoreSpace {
    loop {
        let space = tend(store).await;
        if !space.more {
            return space;
        }
    }
}

#[tokio::test]
async fn a_log_that_grew_beside_a_long_read_is_cut_off_after_it() {
    let folder = TempDir::new().unwrap();
    let store: Arc<dyn Store> = Arc::new(open(&folder).await);
    stage::open(&store).await;
    let mut reader = stranger(&folder).await;
    sqlx::raw_sql("BEGIN; SELECT count(*) FROM message").execute(&mut reader).await.unwrap();
    write(&store, 10).await;
    let held = tend(&store).await;
    assert!(held.log_bytes > 10 * u64::from(BATCH) * BODY_BYTES, "{held:?}");
    assert!(held.log_held_for.is_some(), "a reader is in the way, and it is reported: {held:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut reader).await.unwrap();
    // At the next try, which comes a second after the last at the earliest.
    let cut_off = async {
        loop {
            let space = tend(&store).await;
            if space.log_bytes == 0 {
                return space;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let free = tokio::time::timeout(Duration::from_secs(60), cut_off).await.expect("it is cut off");
    assert_eq!(free.log_held_for, None);
    // It goes on as before.
    write(&store, 1).await;
}

#[tokio::test]
async fn what_was_removed_is_given_back_to_the_disk_but_for_a_reserve() {
    let folder = TempDir::new().unwrap();
    let store: Arc<dyn Store> = Arc::new(open(&folder).await);
    stage::open(&store).await;
    write(&store, 10).await;
    let full = tend(&store).await;
    assert!(full.file_bytes > 10 * u64::from(BATCH) * BODY_BYTES);
    let mut remover = stranger(&folder).await;
    sqlx::raw_sql("DELETE FROM content").execute(&mut remover).await.unwrap();
    remover.close().await.unwrap();
    let space = tend_to_the_end(&store).await;
    assert!(space.file_bytes < full.file_bytes / 4, "{full:?}, then {space:?}");
    assert!(space.free_bytes > 0, "some stays for what comes next: {space:?}");
    store.close().await;
    let on_disk = std::fs::metadata(folder.path().join("postway.db")).unwrap().len();
    assert_eq!(on_disk, space.file_bytes);
    assert!(SqliteStore::faults(&folder.path().join("postway.db")).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_older_file_gives_back_once_it_was_compacted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    let older = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut older = SqliteConnection::connect_with(&older).await.unwrap();
    sqlx::raw_sql("CREATE TABLE earlier (x)").execute(&mut older).await.unwrap();
    older.close().await.unwrap();
    let store: Arc<dyn Store> = Arc::new(open(&folder).await);
    stage::open(&store).await;
    write(&store, 2).await;
    let mut remover = stranger(&folder).await;
    sqlx::raw_sql("DELETE FROM content").execute(&mut remover).await.unwrap();
    remover.close().await.unwrap();
    let stays = tend(&store).await;
    assert!(!stays.more && stays.free_bytes > u64::from(BATCH) * BODY_BYTES, "{stays:?}");
    store.close().await;
    drop(store);
    SqliteStore::compact(&path).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(open(&folder).await);
    let small = tend(&store).await;
    assert!(small.file_bytes < stays.file_bytes - stays.free_bytes / 2, "{stays:?}, then {small:?}");
    write(&store, 2).await;
    let mut remover = stranger(&folder).await;
    sqlx::raw_sql("DELETE FROM content").execute(&mut remover).await.unwrap();
    let by_itself = tend_to_the_end(&store).await;
    assert!(by_itself.free_bytes < u64::from(BATCH) * BODY_BYTES, "{by_itself:?}");
}

/// A call that waits for a file that another process has locked fails within a bound, and so do those that
/// came in the meantime.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_process_holds_is_told_of_within_seconds() {
    const TOLD_WITHIN: Duration = Duration::from_secs(8);
    let (store, folder) = sqlite().await;
    stage::open(&store).await;
    let mut holder = stranger(&folder).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await.unwrap();
    let began = Instant::now();
    let waiting = (1..=20_u32).map(|n| {
        let store = store.clone();
        async move {
            // Some arrive when the others have waited for a while.
            tokio::time::sleep(Duration::from_millis(150 * u64::from(n))).await;
            store.accept(vec![Sample::new(n).build()]).await
        }
    });
    for answer in futures::future::join_all(waiting).await {
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
    assert!(began.elapsed() < TOLD_WITHIN, "{:?}", began.elapsed());
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    store.accept(vec![Sample::new(1).build()]).await.unwrap();
}

/// It would keep the log, and its connection, for ever.
#[tokio::test]
async fn a_read_that_does_not_end_is_ended() {
    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    let folder = TempDir::new().unwrap();
    let bounds = SpaceBounds { read_lasts_max: Duration::from_millis(300), ..BOUNDS };
    let store = open_with(&folder, bounds).await;
    // More often than there are connections: each serves again afterwards.
    for _ in 0..6 {
        let (began, mut reader) = (Instant::now(), store.reader().await.unwrap());
        let ended = reader.rows(ENDLESS.into(), Vec::new()).await;
        assert!(matches!(ended, Err(StoreError::TooSlow(_))), "{:?}", ended.map(|rows| rows.len()));
        assert!(began.elapsed() >= Duration::from_millis(300));
    }
    let store: Arc<dyn Store> = Arc::new(store);
    store.stats(None, at(0)).await.unwrap();
    store.close().await;
}
