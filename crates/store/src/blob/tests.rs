//! A folder, and object storage as moto plays it.

use std::{fs, path::PathBuf, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt;
use postway_testkit::moto::Moto;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{BlobError, BlobStorage, location};
use crate::{
    BlobNameStore,
    conformance::sample::{at, other_tenant, tenant},
    driver::memory::MemoryStore,
    record::{BlobName, BlobRef, StoredBody},
};

fn folder() -> (BlobStorage, TempDir) {
    let folder = TempDir::new().unwrap();
    let depot = BlobStorage::open(url::Url::from_directory_path(folder.path()).unwrap().as_str()).unwrap();
    (depot, folder)
}

/// Object storage with an empty bucket of its own.
async fn s3() -> BlobStorage {
    let moto = tokio::task::spawn_blocking(Moto::shared).await.unwrap();
    let bucket = format!("blobs-{:016x}", rand::random::<u64>());
    let options = [
        ("AWS_ENDPOINT_URL", moto.url()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "AKID".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("UNRELATED", "value".to_owned()),
    ];
    let options = options.into_iter().map(|(name, value)| (name.to_owned(), value));
    create_bucket(&moto.url(), &bucket).await;
    location::open(&format!("s3://{bucket}/mail/blobs"), options).unwrap()
}

/// moto finds the service in the scope of a signature, and does not check it.
async fn create_bucket(endpoint: &str, bucket: &str) {
    let host = endpoint.strip_prefix("http://").unwrap();
    let scope = "AKID/20260101/us-east-1/s3/aws4_request";
    let request = format!(
        "PUT /{bucket} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0\r\n\r\n"
    );
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "moto made no bucket: {answer}");
}

fn file_of(folder: &TempDir, name: &BlobName) -> PathBuf {
    location::parts(name).iter().fold(folder.path().to_owned(), |path, part| path.join(part))
}

async fn put(depot: &BlobStorage, store: &MemoryStore, bytes: &Bytes, ms: i64) -> BlobRef {
    depot.put(store, &tenant(), bytes.clone(), at(ms)).await.unwrap()
}

/// What holds wherever blobs are.
async fn keeps_reads_and_sweeps(depot: BlobStorage) {
    let (store, bytes) = (MemoryStore::new(), Bytes::from(vec![7; 300_000]));
    let blob = put(&depot, &store, &bytes, 0).await;
    assert_eq!(blob.size, 300_000);
    assert_eq!(depot.get(&tenant(), &blob).await.unwrap(), bytes);
    assert_eq!(put(&depot, &store, &bytes, 1).await, blob, "kept once");
    let theirs = depot.put(&store, &other_tenant(), bytes.clone(), at(1)).await.unwrap();
    assert_ne!(theirs.name.digest, blob.name.digest, "what one tenant has tells another nothing");
    let pieces: Vec<Bytes> = depot.get_stream(&tenant(), &blob).await.unwrap().try_collect().await.unwrap();
    assert_eq!(pieces.concat(), bytes);

    assert_eq!(depot.sweep(&store, at(1), 99).await.unwrap(), 0);
    assert_eq!(depot.sweep(&store, at(2), 99).await.unwrap(), 2);
    assert!(matches!(depot.get(&tenant(), &blob).await, Err(BlobError::Missing(_))));
    assert_eq!(depot.sweep(&store, at(2), 99).await.unwrap(), 0);
    let again = put(&depot, &store, &bytes, 3).await;
    assert_ne!(again.name, blob.name);
    assert_eq!(depot.get(&tenant(), &again).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_folder_keeps_reads_and_sweeps() {
    let (depot, _folder) = folder();
    keeps_reads_and_sweeps(depot).await;
}

#[tokio::test]
async fn object_storage_keeps_reads_and_sweeps() {
    keeps_reads_and_sweeps(s3().await).await;
}

#[tokio::test]
async fn memory_keeps_reads_and_sweeps() {
    keeps_reads_and_sweeps(BlobStorage::memory()).await;
}

#[tokio::test]
async fn small_bodies_stay_in_their_row() {
    let (depot, store) = (BlobStorage::memory(), MemoryStore::new());
    let tenant = tenant();
    let keep = |bytes: usize| depot.keep(&store, &tenant, Bytes::from(vec![1; bytes]), 100, at(0));
    assert_eq!(keep(100).await.unwrap(), StoredBody::Inline(Bytes::from(vec![1; 100])));
    let body = keep(101).await.unwrap();
    assert!(body.blob().is_some_and(|blob| blob.size == 101));
    assert_eq!(depot.resolve(&tenant, body).await.unwrap().len(), 101);
}

#[tokio::test]
async fn a_damaged_blob_is_an_error() {
    let ((depot, folder), store) = (folder(), MemoryStore::new());
    let blob = put(&depot, &store, &Bytes::from(vec![7; 1_000]), 0).await;
    let file = file_of(&folder, &blob.name);
    for damaged in [vec![8; 1_000], vec![7; 999], Vec::new()] {
        fs::write(&file, &damaged).unwrap();
        assert!(matches!(depot.get(&tenant(), &blob).await, Err(BlobError::Damaged(_))));
        let streamed = match depot.get_stream(&tenant(), &blob).await {
            Ok(pieces) => pieces.try_collect::<Vec<Bytes>>().await.map(drop),
            Err(error) => Err(error),
        };
        assert!(matches!(streamed, Err(BlobError::Damaged(_))));
    }
    assert!(matches!(depot.get(&other_tenant(), &blob).await, Err(BlobError::Damaged(_))), "another's");
    // One of another size is what a crash of the disk left: it is written anew.
    put(&depot, &store, &Bytes::from(vec![7; 1_000]), 1).await;
    assert!(depot.get(&tenant(), &blob).await.is_ok());
}

#[tokio::test]
async fn what_a_crash_left_unfinished_is_cleared() {
    let ((depot, folder), store) = (folder(), MemoryStore::new());
    let unfinished = folder.path().join("unfinished");
    fs::write(unfinished.join("left"), b"half").unwrap();
    fs::write(unfinished.join("being-written"), b"half").unwrap();
    let age = |file: &str, ms: u64| {
        let modified = std::time::UNIX_EPOCH + Duration::from_millis(at(0).as_millis() as u64 + ms);
        fs::File::options().write(true).open(unfinished.join(file)).unwrap().set_modified(modified).unwrap();
    };
    age("left", 0);
    age("being-written", 1_000);
    let blob = put(&depot, &store, &Bytes::from_static(b"whole"), 500).await;
    depot.sweep(&store, at(500), 9).await.unwrap();
    let left: Vec<_> = fs::read_dir(&unfinished).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["being-written"]);
    assert!(depot.get(&tenant(), &blob).await.is_ok());
}

#[tokio::test]
async fn a_deletion_that_failed_is_tried_again() {
    let ((depot, folder), store) = (folder(), MemoryStore::new());
    let blob = put(&depot, &store, &Bytes::from_static(b"x"), 0).await;
    // A folder in the place of the file cannot be deleted as a file.
    let file = file_of(&folder, &blob.name);
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("in-the-way")).unwrap();
    assert_eq!(depot.sweep(&store, at(1), 9).await.unwrap(), 0);
    fs::remove_dir_all(&file).unwrap();
    assert_eq!(depot.sweep(&store, at(1), 9).await.unwrap(), 1, "and what is gone already is gone");
}

#[tokio::test]
async fn a_blob_that_comes_back_while_it_is_deleted_stays() {
    let (depot, store) = (BlobStorage::memory(), MemoryStore::new());
    let bytes = Bytes::from_static(b"again");
    let old = put(&depot, &store, &bytes, 0).await;
    let condemned = store.condemn_blobs(at(1), 9).await.unwrap();
    let new = put(&depot, &store, &bytes, 2).await;
    for name in &condemned {
        depot.delete(name).await.unwrap();
    }
    store.forget_blobs(&condemned).await.unwrap();
    assert_eq!(condemned, [old.name]);
    assert_eq!(depot.get(&tenant(), &new).await.unwrap(), bytes);
    assert_eq!(put(&depot, &store, &bytes, 3).await, new);
}

#[tokio::test]
async fn object_storage_signs_downloads_that_carry_their_name() {
    let (depot, store) = (s3().await, MemoryStore::new());
    let blob = put(&depot, &store, &Bytes::from_static(b"%PDF"), 0).await;
    let month = Duration::from_secs(30 * 24 * 3_600);
    let url = depot.signed_url(&blob.name, "größe.pdf", "application/pdf", month).await.unwrap().unwrap();
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let value = |name: &str| query.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
    assert_eq!(value("response-content-type"), Some("application/pdf"));
    assert!(value("response-content-disposition").is_some_and(|it| it.ends_with("gr%C3%B6%C3%9Fe.pdf")));
    assert_eq!(value("X-Amz-Expires"), Some("604800"));
    assert!(url.path().ends_with(&format!("/mail/blobs/{}", location::parts(&blob.name).join("/"))));
    let (folder, _guard) = folder();
    assert_eq!(folder.signed_url(&blob.name, "a", "b", month).await.unwrap(), None);
}

#[test]
fn a_place_that_is_none_is_refused_with_a_reason() {
    for url in ["", "blobs", "ftp://host/x", "file:relative", "s3://", "file:///proc/no/such"] {
        let refused = BlobStorage::open(url).unwrap_err();
        assert!(matches!(&refused, BlobError::NoPlace(reason) if !reason.is_empty()), "{url}: {refused}");
        assert!(!refused.is_transient());
    }
}

/// Whole, again under the same name, and gone; in a folder and in object storage.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_written_replaced_read_and_deleted() {
    let (in_folder, folder) = folder();
    let place = "archive/acme/2026/11/19/mail.eml";
    for depot in [&in_folder, &s3().await] {
        assert!(matches!(depot.get_object(place).await, Err(BlobError::ObjectMissing(_))));
        for bytes in ["first", "second, and longer", "3"] {
            depot.put_object(place, Bytes::from_static(bytes.as_bytes())).await.unwrap();
            assert_eq!(depot.get_object(place).await.unwrap(), bytes);
        }
        depot.delete_object(place).await.unwrap();
        depot.delete_object(place).await.unwrap();
        assert!(depot.get_object(place).await.is_err());
    }
    in_folder.put_object(place, Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(fs::read(folder.path().join(place)).unwrap(), b"x");
    assert_eq!(fs::read_dir(folder.path().join("unfinished")).unwrap().count(), 0);
}
