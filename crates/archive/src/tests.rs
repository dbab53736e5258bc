//! From a sent message to its copies, on the store in memory and a folder.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{
    Account, AccountSettings, Clock, Incarnation, MessageUid, Subscriber, Tenant, TenantId, TenantSettings,
    Time, message::AttemptOutcome, sealed_copy::open_copy, secret::SecretKey,
    tenant::archive::ArchiveSettings,
};
use postway_intake::{Door, DoorParts, FetchConfig, IntakeLimits, RequestContext};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    ArchiveStore, DirectoryStore, Read, ReportStore, StoreError,
    blob::BlobStorage,
    conformance::{Shared, stage},
    memory::MemoryStore,
    record::{AccountKey, ArchiveFilter, ChangeResult, DirectoryChange, MessageFilter, NotificationState},
};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{ArchiveNode, Archiver, ArchiverParts};

struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::Relaxed))
    }
}

struct Alone;

#[async_trait]
impl ArchiveNode for Alone {
    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

/// A tenant that sends, and its archive.
struct TestArchive {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    depot: Arc<BlobStorage>,
    folder: TempDir,
    key: Arc<SecretKey>,
}

fn tenant() -> TenantId {
    "default".parse().unwrap()
}

fn stored() -> ArchiveSettings {
    ArchiveSettings { storage: true, ..ArchiveSettings::default() }
}

impl TestArchive {
    async fn new(archive: ArchiveSettings) -> Self {
        let folder = TempDir::new().unwrap();
        let url = url::Url::from_directory_path(folder.path()).unwrap();
        // 2024-01-01T00:00:00Z.
        let clock = Arc::new(TestClock(AtomicI64::new(1_704_067_200_000)));
        let store = Arc::new(MemoryStore::new());
        let account = Account {
            tenant: tenant(),
            id: "relay".parse().unwrap(),
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: clock.now(),
            updated_at: clock.now(),
        };
        let settings = TenantSettings {
            test: true,
            archive: Some(archive),
            default_from: Some("Archive <archive@example.com>".to_owned()),
            ..TenantSettings::default()
        };
        let born = Tenant {
            default_account: Some("relay".parse().unwrap()),
            settings,
            ..Tenant::new(tenant(), "Default", clock.now())
        };
        let create = DirectoryChange::CreateTenant(born, vec![account]);
        assert_eq!(store.change(create, None).await.unwrap(), ChangeResult::Done);
        let depot = Arc::new(BlobStorage::open(url.as_str()).unwrap());
        let key = Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap());
        Self { store, clock, depot, folder, key }
    }

    fn door(&self) -> Arc<Door> {
        Arc::new(Door::new(DoorParts {
            store: self.store.clone(),
            depot: self.depot.clone(),
            clock: self.clock.clone(),
            secret_key: self.key.clone(),
            http: HttpClient::new(Arc::new(AddressGuard::with_loopback()), HttpSettings::default()),
            fetch: FetchConfig::default(),
            limits: IntakeLimits::default(),
            mail_domain: "postway.example".to_owned(),
            public_url: None,
        }))
    }

    /// Accepts a message.
    async fn accept(&self, more: serde_json::Value) -> MessageUid {
        let mut body = json!({
            "from": "shop@example.com", "to": ["ada@example.net"], "bcc": ["eve@example.net"], "subject": "Your order",
            "text": "t", "account": "relay"
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let ctx = RequestContext {
            tenant: tenant(),
            request_id: "r".to_owned(),
            idempotency_key: None,
            dry_run: false,
            refuses_capture: false,
            any_subject: false,
            spoken_times: false,
            on_doubt: None,
            restrictions: None,
            trace: postway_intake::RequestTrace::default(),
        };
        self.door().accept_json(&ctx, Bytes::from(body.to_string())).await.unwrap().uid
    }

    /// Ends everything that waits, and makes notifications of it.
    async fn end_all(&self, end: AttemptOutcome) {
        let (store, now): (Shared, _) = (self.store.clone(), self.clock.now());
        let key = AccountKey { tenant: tenant(), account: "relay".parse().unwrap() };
        for mut claimed in store.claim(stage::request(&key, 1, now, 99, false)).await.unwrap() {
            assert!(stage::commit_wire(&store, &mut claimed, now).await);
            assert!(stage::apply(&store, stage::outcome(&claimed, true, end, now)).await);
        }
        while store.sequence(99).await.unwrap() > 0 {}
        while store.fan_out(now, 99).await.unwrap() > 0 {}
    }

    async fn sent(&self, more: serde_json::Value) -> MessageUid {
        let uid = self.accept(more).await;
        self.end_all(AttemptOutcome::Sent).await;
        uid
    }

    /// Runs the archiver until this many copies wait.
    async fn run_until(&self, waiting: i64) {
        self.run(async || self.waiting().await == waiting && !self.has_leases().await).await;
    }

    /// Runs the archiver until this is so.
    async fn run(&self, so: impl AsyncFn() -> bool) {
        let stop = CancellationToken::new();
        let archiver = Archiver::new(ArchiverParts {
            store: self.store.clone(),
            depot: self.depot.clone(),
            door: self.door(),
            clock: self.clock.clone(),
            secret_key: self.key.clone(),
            node: Arc::new(Alone),
            incarnation: Incarnation::new(self.clock.now(), &mut rand::rng()),
            poll: Duration::from_millis(10),
        });
        let running = tokio::spawn(archiver.run(stop.clone()));
        let settled = async {
            while !so().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), settled).await.unwrap();
        stop.cancel();
        running.await.unwrap();
    }

    async fn waiting(&self) -> i64 {
        self.store.archive_backlog(None).await.unwrap()[0].waiting
    }

    async fn has_leases(&self) -> bool {
        let mut states = Vec::new();
        for uid in self.uids().await {
            states.extend(self.states(uid).await);
        }
        states.contains(&NotificationState::Calling)
    }

    async fn uids(&self) -> Vec<MessageUid> {
        let found = self.store.messages(&tenant(), &MessageFilter::default(), None, 99).await.unwrap();
        found.iter().map(|message| message.uid).collect()
    }

    async fn states(&self, uid: MessageUid) -> Vec<NotificationState> {
        let all = self.store.notifications(&tenant(), uid).await.unwrap();
        let own = all.into_iter().filter(|one| one.key.subscriber.as_str() == Subscriber::ARCHIVE);
        own.map(|one| one.state).collect()
    }

    async fn paths(&self) -> Vec<String> {
        let all = self.store.archive(&tenant(), &ArchiveFilter::default(), None, 99).await.unwrap();
        all.into_iter().map(|mail| mail.path).collect()
    }

    async fn set(&self, archive: ArchiveSettings) {
        let found = self.store.tenant(&tenant()).await.unwrap().unwrap();
        let version = found.version;
        let mut changed = Tenant { version: version + 1, ..found };
        changed.settings.archive = Some(archive);
        let update = DirectoryChange::UpdateTenant(changed, version);
        assert_eq!(self.store.change(update, None).await.unwrap(), ChangeResult::Done);
    }

    fn advance(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1_000, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_was_sent_is_stored_by_its_day_with_its_envelope_above_it() {
    let archive = TestArchive::new(stored()).await;
    let uid = archive.sent(json!({})).await;
    archive.run_until(0).await;
    let path = format!("archive/default/2024/01/01/{uid}.eml");
    assert_eq!(archive.paths().await, [path.as_str()]);
    let copy = archive.depot.get_object(&path).await.unwrap();
    let raw = archive.store.raw(&tenant(), uid).await.unwrap().unwrap();
    let raw = archive.depot.resolve(&tenant(), raw).await.unwrap();
    let above = String::from_utf8(copy[..copy.len() - raw.len()].to_vec()).unwrap();
    assert!(copy.ends_with(&raw), "the mail as it was sent");
    assert!(
        above.starts_with(&format!("X-Postway-Id: {uid}\r\nX-Postway-Sent-At: 2024-01-01T00:00:00.000Z\r\n"))
    );
    assert!(
        above.contains("X-Envelope-To: <ada@example.net>\r\nX-Envelope-To: <eve@example.net>\r\n"),
        "{above}"
    );
    assert_eq!(archive.states(uid).await, [NotificationState::Acknowledged]);
}

#[tokio::test]
async fn captured_and_sensitive_mail_is_not_archived() {
    let archive = TestArchive::new(stored()).await;
    archive.accept(json!({})).await;
    archive.end_all(AttemptOutcome::Captured).await;
    archive.sent(json!({"sensitive": true})).await;
    archive.run_until(0).await;
    assert_eq!(archive.paths().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_sealed_copy_opens_with_the_key_and_with_no_other() {
    let archive = TestArchive::new(ArchiveSettings { encrypt: true, days: Some(2), ..stored() }).await;
    let uid = archive.sent(json!({})).await;
    archive.run_until(0).await;
    let paths = archive.paths().await;
    assert_eq!(paths, [format!("archive/default/2024/01/01/{uid}.eml.sealed")]);
    let file = archive.depot.get_object(&paths[0]).await.unwrap();
    assert!(!file.windows(10).any(|at| at == b"Your order"));
    let opened = open_copy(&archive.key, &file).unwrap();
    assert!(opened.windows(10).any(|at| at == b"Your order"));
    let other = SecretKey::from_bytes(&[8; 32]).unwrap();
    assert!(open_copy(&other, &file).is_err());
    // Its time is over two days after it was sent.
    archive.advance(2 * 86_400);
    archive.sent(json!({})).await;
    archive.run_until(0).await;
    assert!(!archive.paths().await.contains(&paths[0]));
    assert!(archive.depot.get_object(&paths[0]).await.is_err());
}

/// The second copy is the same object, or the same message.
#[tokio::test]
async fn a_copy_that_was_made_and_not_settled_is_made_again_under_the_same_name() {
    let to = ArchiveSettings { to: Some("box@archive.example".to_owned()), ..stored() };
    let archive = TestArchive::new(to).await;
    let uid = archive.sent(json!({})).await;
    archive.run_until(0).await;
    let (paths, uids) = (archive.paths().await, archive.uids().await);
    assert_eq!(uids.len(), 2);
    let all = archive.store.notifications(&tenant(), uid).await.unwrap();
    let own = all.into_iter().find(|one| one.key.subscriber.as_str() == Subscriber::ARCHIVE).unwrap();
    assert!(archive.store.notify_again(&own.key, archive.clock.now()).await.unwrap());
    archive.run_until(0).await;
    assert_eq!(archive.paths().await, paths);
    assert_eq!(archive.uids().await, uids);
}

#[tokio::test]
async fn a_copy_to_an_address_is_a_message_of_its_own_and_ends_there() {
    let to = ArchiveSettings { to: Some("box@archive.example".to_owned()), ..ArchiveSettings::default() };
    let archive = TestArchive::new(to).await;
    let uid = archive.sent(json!({})).await;
    archive.run_until(0).await;
    let copy = archive.uids().await.into_iter().find(|one| *one != uid).unwrap();
    let raw = archive.store.raw(&tenant(), copy).await.unwrap().unwrap();
    let raw = archive.depot.resolve(&tenant(), raw).await.unwrap();
    let text = String::from_utf8_lossy(&raw).into_owned();
    assert!(text.contains("To: <box@archive.example>") && text.contains("message/rfc822"), "{text}");
    assert!(text.contains("Subject: Archive: Your order") && text.contains("X-Postway-Archived: "));
    let original =
        archive.store.message(&tenant(), &postway_store::record::MessageKey::Uid(uid)).await.unwrap();
    assert_eq!(original.unwrap().recipients.len(), 2, "the original is as it was");
    archive.end_all(AttemptOutcome::Sent).await;
    assert_eq!(archive.waiting().await, 1);
    archive.run_until(0).await;
    assert_eq!(archive.uids().await.len(), 2, "a copy has no copy");
    // A mail with somebody else's mark is archived like any other.
    let mark = text.lines().find_map(|line| line.strip_prefix("X-Postway-Archived: ")).unwrap();
    let eml = format!(
        "X-Postway-Archived: {mark}\r\nFrom: shop@example.com\r\nTo: ada@example.net\r\nSubject: x\r\n\r\nt"
    );
    assert!(!crate::letter::is_copy(&archive.key, uid, eml.as_bytes()));
    assert!(crate::letter::is_copy(&archive.key, copy, eml.as_bytes()));
}

#[tokio::test]
async fn an_archive_that_is_away_waits_and_loses_nothing() {
    let archive = TestArchive::new(stored()).await;
    // A file stands where the folder of copies must be.
    let place = archive.folder.path().join("archive");
    std::fs::write(&place, b"in the way").unwrap();
    let uids = [archive.sent(json!({})).await, archive.sent(json!({})).await];
    archive.run(async || archive.states(uids[0]).await == [NotificationState::Waiting]).await;
    assert_eq!(archive.waiting().await, 2);
    assert_eq!(archive.paths().await, Vec::<String>::new());
    std::fs::remove_file(&place).unwrap();
    archive.advance(3_600);
    archive.run_until(0).await;
    assert_eq!(archive.paths().await.len(), uids.len());
}

/// The older name is deleted, or nobody would ever delete it.
#[tokio::test]
async fn a_copy_whose_settings_changed_leaves_nothing_behind() {
    let archive = TestArchive::new(stored()).await;
    let uid = archive.sent(json!({})).await;
    archive.run_until(0).await;
    let before = archive.paths().await;
    archive.set(ArchiveSettings { encrypt: true, ..stored() }).await;
    let all = archive.store.notifications(&tenant(), uid).await.unwrap();
    let own = all.into_iter().find(|one| one.key.subscriber.as_str() == Subscriber::ARCHIVE).unwrap();
    assert!(archive.store.notify_again(&own.key, archive.clock.now()).await.unwrap());
    archive.run_until(0).await;
    assert!(archive.paths().await[0].ends_with(".eml.sealed"));
    assert!(archive.depot.get_object(&before[0]).await.is_err());
}
