//! The spool folder: each file is one message, or is set aside with the reason.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use postway_domain::{DkimAlgorithm, Time, secret::SecretKey};
use postway_intake::{SpoolFolder, signing};
use postway_store::{
    Read,
    record::{DirectoryChange, MessageFilter},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{NOW_MS, TestGateway, tenant};

fn spool(gateway: &TestGateway, folder: &Path) -> SpoolFolder {
    SpoolFolder::open(Arc::clone(&gateway.door), folder.to_owned(), tenant()).unwrap()
}

async fn take(spool: &SpoolFolder) {
    spool.take_waiting(&CancellationToken::new()).await.unwrap();
}

/// A file in the shape of other systems.
fn mail(subject: &str) -> Value {
    json!({"from": "shop@example.com", "reply_to": "help@example.com", "to": ["a@example.net"], "subject": subject,
           "body_html": "<p>x</p>", "body_text": "x", "attachments": ["base64:aGVsbG8="],
           "custom_headers": {"X-Order": "1"}})
}

/// Writes a file with this age.
fn put(folder: &Path, name: &str, text: &str, age: Duration) {
    fs::write(folder.join(name), text).unwrap();
    let written = UNIX_EPOCH + Duration::from_millis(NOW_MS as u64) - age;
    fs::File::options().write(true).open(folder.join(name)).unwrap().set_modified(written).unwrap();
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn subjects(gateway: &TestGateway) -> Vec<String> {
    let messages = gateway.store.messages(&tenant(), &MessageFilter::default(), None, 1_000).await.unwrap();
    let mut subjects: Vec<_> = messages.into_iter().map(|message| message.subject).collect();
    subjects.sort();
    subjects
}

#[tokio::test]
async fn a_file_becomes_a_message_and_goes_away() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let spool = spool(&gateway, folder.path());
    put(folder.path(), "a.json", &mail("a").to_string(), Duration::ZERO);
    take(&spool).await;
    assert_eq!(names(folder.path()), ["failed", "taken"]);
    assert!(
        names(&folder.path().join("taken")).is_empty() && names(&folder.path().join("failed")).is_empty()
    );
    let stored =
        gateway.store.messages(&tenant(), &MessageFilter::default(), None, 10).await.unwrap().remove(0);
    assert!(stored.request_id.unwrap().starts_with("spool-"));
    let raw = gateway.raw(stored.uid).await;
    for said in ["Reply-To: <help@example.com>", "X-Order: 1", "Subject: a", "<p>x</p>"] {
        assert!(raw.contains(said), "{said} in {raw}");
    }
    assert_eq!(crate::prepare::attachment(&raw), b"hello");
    // The same name with the same content is another file.
    put(folder.path(), "a.json", &mail("a").to_string(), Duration::ZERO);
    take(&spool).await;
    assert_eq!(subjects(&gateway).await, ["a", "a"]);
}

#[tokio::test]
async fn a_file_left_by_a_crash_is_the_same_message() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let crashed = spool(&gateway, folder.path());
    let taken = folder.path().join("taken");
    // As after a crash: moved, accepted, and not yet removed.
    let left = "0000000000010000aaaaaaaaaaaaaaaa~a.json";
    for _ in 0..2 {
        put(&taken, left, &mail("a").to_string(), Duration::ZERO);
        take(&crashed).await;
        assert!(names(&taken).is_empty());
    }
    take(&spool(&gateway, folder.path())).await;
    assert_eq!(subjects(&gateway).await, ["a"]);
}

#[tokio::test]
async fn a_bad_file_is_set_aside_with_the_reason() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let (spool, failed) = (spool(&gateway, folder.path()), folder.path().join("failed"));
    let minute = Duration::from_secs(60);
    put(
        folder.path(),
        "fields.json",
        &json!({"from": "x", "to": "a@example.net", "body_text": "t"}).to_string(),
        minute,
    );
    put(folder.path(), "json.json", "{\"from\": ", minute);
    put(folder.path(), "list.json", "[]", minute);
    put(folder.path(), "empty.json", "", minute);
    put(folder.path(), "good.json", &mail("good").to_string(), minute);
    take(&spool).await;
    assert_eq!(subjects(&gateway).await, ["good"]);
    let set_aside: Vec<String> = ["empty", "fields", "json", "list"]
        .iter()
        .flat_map(|name| [format!("{name}.json"), format!("{name}.json.error")])
        .collect();
    assert_eq!(names(&failed), set_aside);
    let why: Value =
        serde_json::from_str(&fs::read_to_string(failed.join("fields.json.error")).unwrap()).unwrap();
    assert_eq!(
        (&why["details"][0]["field"], &why["details"][0]["code"]),
        (&json!("from"), &json!("INVALID_EMAIL"))
    );
    assert!(fs::read_to_string(failed.join("json.json.error")).unwrap().contains("no JSON object"));
    assert!(names(&folder.path().join("taken")).is_empty());
}

#[tokio::test]
async fn an_id_used_for_another_message_is_set_aside_and_repeated_it_is_one() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let spool = spool(&gateway, folder.path());
    for (name, subject) in [("1.json", "one"), ("2.json", "one"), ("3.json", "other")] {
        let mut mail = mail(subject);
        mail["id"] = json!("order-1");
        put(folder.path(), name, &mail.to_string(), Duration::ZERO);
        take(&spool).await;
    }
    assert_eq!(subjects(&gateway).await, ["one"]);
    assert_eq!(names(&folder.path().join("failed")), ["3.json", "3.json.error"]);
}

#[tokio::test]
async fn a_file_that_is_still_being_written_is_left_alone() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let spool = spool(&gateway, folder.path());
    let whole = mail("slow").to_string();
    let (half, rest) = whole.split_at(whole.len() / 2);
    put(folder.path(), "a.json", half, Duration::from_secs(1));
    put(folder.path(), "b.json.tmp", &mail("unfinished").to_string(), Duration::from_secs(60));
    take(&spool).await;
    assert_eq!(names(folder.path()), ["a.json", "b.json.tmp", "failed", "taken"]);
    put(folder.path(), "a.json", &format!("{half}{rest}"), Duration::ZERO);
    take(&spool).await;
    assert_eq!(subjects(&gateway).await, ["slow"]);
    // A file that is incomplete by chance stays where it is, and is waited for.
    put(folder.path(), "c.json", "{\"from\": {}", Duration::from_secs(1));
    take(&spool).await;
    assert_eq!(names(&folder.path().join("taken")).len(), 1);
    gateway.advance(Duration::from_secs(5));
    take(&spool).await;
    assert_eq!(names(&folder.path().join("failed")), ["c.json", "c.json.error"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_spools_on_one_folder_make_one_message_of_each_file() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let spools = [spool(&gateway, folder.path()), spool(&gateway, folder.path())];
    let expected: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    for subject in &expected {
        put(folder.path(), &format!("{subject}.json"), &mail(subject).to_string(), Duration::ZERO);
    }
    let takes = spools.map(|spool| {
        let taken = folder.path().join("taken");
        tokio::spawn(async move {
            while {
                take(&spool).await;
                !names(&taken).is_empty()
            } {}
        })
    });
    for task in takes {
        task.await.unwrap();
    }
    assert_eq!(subjects(&gateway).await, expected);
    assert_eq!(names(folder.path()), ["failed", "taken"]);
    assert!(names(&folder.path().join("failed")).is_empty());
}

#[tokio::test]
async fn while_the_store_cannot_take_it_a_file_stays() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let spool = spool(&gateway, folder.path());
    let (other, now) = (SecretKey::from_bytes(&[8; 32]).unwrap(), Time::from_millis(NOW_MS));
    // A key that cannot be opened: mail of its domain waits for an operator.
    let key = signing::new_key(&tenant(), "example.com", "s", DkimAlgorithm::Ed25519, &other, now).unwrap();
    gateway.change(DirectoryChange::CreateDkimKey(key)).await;
    put(folder.path(), "a.json", &mail("a").to_string(), Duration::ZERO);
    take(&spool).await;
    assert_eq!((gateway.count().await, names(&folder.path().join("taken")).len()), (0, 1));
    gateway.change(DirectoryChange::DeleteDkimKey(tenant(), "example.com".to_owned(), "s".to_owned())).await;
    take(&spool).await;
    assert_eq!(subjects(&gateway).await, ["a"]);
    assert!(names(&folder.path().join("taken")).is_empty());
}

#[tokio::test]
async fn a_spool_runs_until_it_is_stopped() {
    let (gateway, folder) = (TestGateway::new().await, tempfile::tempdir().unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(spool(&gateway, folder.path()).run(stop.clone()));
    put(folder.path(), ".a", &mail("a").to_string(), Duration::ZERO);
    fs::rename(folder.path().join(".a"), folder.path().join("a.json")).unwrap();
    crate::prepare::until(async || (gateway.count().await == 1).then_some(())).await;
    stop.cancel();
    running.await.unwrap();
}
