//! A copy beside a server that writes: one moment's, sound, and without a log that grows as long as it takes.

use std::time::Duration;

use super::{
    space::{large, stranger},
    *,
};
use crate::{
    blob::BlobStorage,
    conformance::sample::tenant,
    driver::sqlite::{
        backup::{self, BlobsBackup},
        space::log_bytes,
    },
    port::{OperationStore as _, Read as _},
    record::{MessageKey, StoredBody},
};

/// Small pieces make many moments.
const PIECE_PAGES: u64 = 64;
/// Pieces beside which something is written, and how much.
const PIECES: u32 = 20;
const PER_PIECE: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_of_one_moment_and_has_all_that_was_acknowledged_before_it_began() {
    const BEFORE: u32 = 200;
    let (store, folder) = sqlite().await;
    stage::open(&store).await;
    for n in 1..=BEFORE {
        store.accept(vec![large(n).build()]).await.unwrap();
    }
    // So that the log grows by nothing but what is written meanwhile.
    let mut other = stranger(&folder).await;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut other).await.unwrap();
    let path = folder.path().join("postway.db");
    // While each of the first pieces is there and the next is not, some more is written.
    let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel::<u32>();
    let (tell, receiver) = std::sync::mpsc::channel();
    let receiver = std::sync::Mutex::new(receiver);
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            while let Some(first) = asked.recv().await {
                for n in first..first + PER_PIECE {
                    store.accept(vec![large(n).build()]).await.unwrap();
                }
                tell.send(()).unwrap();
            }
        }
    });
    let (mut log_max, mut written, copy) = (0, BEFORE, folder.path().join("copy.db"));
    let mut pieces = 0;
    let mut between = |_| {
        if pieces < PIECES {
            ask.send(written + 1).unwrap();
            receiver.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            written += PER_PIECE;
        }
        pieces += 1;
        log_max = log_bytes(&path).max(log_max);
    };
    backup::copy_in_pieces(&path, &copy, PIECE_PAGES, &mut between).await.unwrap();
    drop(ask);
    writer.await.unwrap();
    assert!(pieces > PIECES, "{pieces}");
    let bytes = u64::from(written - BEFORE) * 64 * 1024;
    assert!(log_max < bytes / 2, "the log was begun anew: {log_max} of {bytes}");

    let copied = SqliteStore::open(&copy).await.unwrap();
    let (mut found, mut ended) = (0, false);
    for n in 1..=written {
        let key = MessageKey::Uid(large(n).build().uid);
        let tenant = tenant();
        match copied.message(&tenant, &key).await.unwrap() {
            Some(_) => {
                assert!(!ended, "{n} is there and one before it is not: that is no moment");
                found += 1;
            }
            None => ended = true,
        }
    }
    assert!(
        found >= BEFORE + (PIECES - 1) * PER_PIECE,
        "what was written before the last piece is there: {found}"
    );
    copied.close().await;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&copy)).await.unwrap();
    let sound: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&pool).await.unwrap();
    let (messages, contents, tally): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM content), (SELECT sum(count) FROM tally)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!((sound.as_str(), messages, contents), ("ok", tally, tally));
}

#[tokio::test]
async fn a_copy_refuses_a_file_that_is_there() {
    let (_store, folder) = sqlite().await;
    let copy = folder.path().join("copy.db");
    std::fs::write(&copy, "mine").unwrap();
    assert!(backup::copy(&folder.path().join("postway.db"), &copy, &mut |_| {}).await.is_err());
    assert_eq!(std::fs::read(&copy).unwrap(), b"mine");
}

#[tokio::test]
async fn copied_blobs_are_those_that_the_copy_names() {
    let (store, folder) = sqlite().await;
    stage::open(&store).await;
    let place = folder.path().join("blobs");
    let depot = BlobStorage::open(&format!("file://{}", place.display())).unwrap();
    let tenant = tenant();
    let mut put = Vec::new();
    for content in [b"one", b"two"] {
        put.push(depot.put(&*store, &tenant, Bytes::from_static(content), at(1)).await.unwrap());
    }
    let [kept, unnamed] = &put[..] else { unreachable!() };
    let message = Sample::new(1).content(|content| content.raw = StoredBody::Blob(kept.clone())).build();
    store.accept(vec![message]).await.unwrap();
    let target = folder.path().join("copied");
    let blobs = BlobsBackup::new(&place, &target);
    blobs.copy().unwrap();
    // It is deleted before the database is copied, and never missed.
    store.condemn_blobs(at(9_000_000), 10).await.unwrap();
    store.forget_blobs(std::slice::from_ref(&unnamed.name)).await.unwrap();
    depot.delete(&unnamed.name).await.unwrap();
    let copy = folder.path().join("copy.db");
    backup::copy(&folder.path().join("postway.db"), &copy, &mut |_| {}).await.unwrap();
    // And this one after it: the copy still names it.
    depot.delete(&kept.name).await.unwrap();
    blobs.copy().unwrap();
    let copied = blobs.check(&copy).await.unwrap();
    assert_eq!((copied.files, copied.bytes), (1, 3));
    let there = BlobStorage::open(&format!("file://{}", target.display())).unwrap();
    assert_eq!(there.get(&tenant, kept).await.unwrap(), "one");
    assert!(there.get(&tenant, unnamed).await.is_err(), "nobody would ever remove it");
    there.delete(&kept.name).await.unwrap();
    let missing = blobs.check(&copy).await.unwrap_err().to_string();
    assert!(missing.contains("is missing or damaged"), "{missing}");
}
