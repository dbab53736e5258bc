//! The outbox, with real databases as sources and the in-memory store behind the door.

#![allow(missing_docs, clippy::unwrap_used)]

mod accounts;
mod adopt;
mod model;
mod mysql;
mod postgres;
mod sqlite;
mod verify;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountSettings, Clock, EventKind, MailRoute, MessageState, Tenant, TenantId,
    TenantSettings, Time,
    message::{OtherRecipients, TransitionInput},
    route::{RouteContent, RouteTarget},
    secret::SecretKey,
};
use postway_intake::{
    Door, DoorParts, FetchConfig, IntakeLimits,
    outbox::{OutboxAccounts, OutboxNode, OutboxRunner, OutboxSource, OutboxStatusApi, SourceUrl, install},
};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    DirectoryStore, Read, ReportStore, StoreError, WorkStore,
    blob::BlobStorage,
    memory::MemoryStore,
    record::{
        ChangeResult, DirectoryChange, MessageChange, MessageFilter, MessageKey, MessageRecord, NewEvent,
        WriteFence,
    },
};
use postway_testkit::postgres::PostgresDatabase;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// The longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running clock that starts at a given time.
struct TestClock {
    base_ms: AtomicI64,
    since: Instant,
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        let elapsed = self.since.elapsed().as_millis() as i64;
        Time::from_millis(self.base_ms.load(Ordering::Relaxed) + elapsed)
    }
}

/// A node that has every duty, until the test takes it away.
struct TestNode(AtomicBool);

#[async_trait]
impl OutboxNode for TestNode {
    async fn is_on_duty(&self, _: &str) -> Result<bool, StoreError> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

/// A gateway: a store, its door and its clock.
struct TestGateway {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    door: Arc<Door>,
}

impl TestGateway {
    /// A gateway whose clock is ahead of the real one by this much.
    async fn with_skew(real_now_s: i64, skew_s: i64) -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock {
            base_ms: AtomicI64::new((real_now_s + skew_s) * 1_000),
            since: Instant::now(),
        });
        // A test tenant, so that the sandbox counts as an account that sends.
        let default = Tenant {
            settings: TenantSettings { test: true, ..TenantSettings::default() },
            default_account: Some("relay".parse().unwrap()),
            ..Tenant::new(tenant(), "Default", clock.now())
        };
        assert!(store.create_tenant(default).await.unwrap());
        let account = Account {
            tenant: tenant(),
            id: "relay".parse().unwrap(),
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: clock.now(),
            updated_at: clock.now(),
        };
        assert!(store.create_account(account).await.unwrap());
        let door = Arc::new(Door::new(DoorParts {
            store: store.clone(),
            depot: Arc::new(BlobStorage::memory()),
            clock: clock.clone(),
            secret_key: Arc::new(secret_key()),
            http: HttpClient::new(Arc::new(AddressGuard::new(Vec::new())), HttpSettings::default()),
            fetch: FetchConfig::default(),
            limits: IntakeLimits::default(),
            mail_domain: "postway.example".to_owned(),
            public_url: None,
        }));
        Self { store, clock, door }
    }

    async fn beside(database: &PostgresDatabase) -> Self {
        Self::with_skew(now_of(database), 0).await
    }

    /// Serves a source until the guard is stopped.
    fn serve(&self, source: OutboxSource) -> ServedSource {
        self.serve_under(source, &secret_key())
    }

    /// Serves a source with another secret key.
    fn serve_under(&self, source: OutboxSource, secret_key: &SecretKey) -> ServedSource {
        let node = Arc::new(TestNode(AtomicBool::new(true)));
        let outbox = OutboxRunner::new(source, self.door.clone(), node.clone(), secret_key).unwrap();
        let (outbox, stop) = (Arc::new(outbox), CancellationToken::new());
        let task = tokio::spawn(outbox.clone().run(stop.clone()));
        ServedSource { outbox, node, stop, task }
    }

    async fn count(&self) -> usize {
        self.store.messages(&tenant(), &MessageFilter::default(), None, 100_000).await.unwrap().len()
    }

    async fn message(&self, client_id: &str) -> Option<MessageRecord> {
        let key = MessageKey::Client(client_id.parse().unwrap());
        self.store.message(&tenant(), &key).await.unwrap()
    }

    /// The text of the mail, as it would be sent.
    async fn mail(&self, client_id: &str) -> String {
        let uid = self.message(client_id).await.expect("it was accepted").summary.uid;
        let raw = self.store.raw(&tenant(), uid).await.unwrap().expect("it has bytes");
        let raw = self.door.resolve(&tenant(), raw).await.unwrap();
        let parsed = mail_parser::MessageParser::default().parse(&raw[..]).unwrap();
        format!("{}\n{}", parsed.subject().unwrap_or_default(), parsed.body_text(0).unwrap_or_default())
    }

    /// Ends a message, and waits until the feed has the event.
    async fn cancel(&self, client_id: &str) {
        let summary = self.message(client_id).await.unwrap().summary;
        let fence =
            WriteFence { status: summary.state.status(), token: None, version: Some(summary.version) };
        let cancel = TransitionInput::Cancel(OtherRecipients::Nothing);
        let change =
            MessageChange::step(summary.uid, fence, summary.state, cancel, self.clock.now()).unwrap();
        assert_eq!(self.store.apply(vec![change]).await.unwrap(), [true]);
        self.tell().await;
    }

    /// Makes the tenant a test tenant or not.
    async fn set_test(&self, test: bool) {
        let changed = self.store.tenant(&tenant()).await.unwrap().unwrap();
        let settings = TenantSettings { test, ..changed.settings.clone() };
        let version = changed.version;
        let change =
            DirectoryChange::UpdateTenant(Tenant { settings, version: version + 1, ..changed }, version);
        assert_eq!(self.store.change(change, None).await.unwrap(), ChangeResult::Done);
    }

    /// Makes it a tenant whose default is the sandbox, with a route to another account for mail to this
    /// domain.
    async fn route_only(&self, domain: &str) {
        self.set_test(false).await;
        let relay = self.store.account(&tenant(), &"relay".parse().unwrap()).await.unwrap().unwrap();
        let second: AccountId = "second".parse().unwrap();
        assert!(self.store.create_account(Account { id: second.clone(), ..relay }).await.unwrap());
        let conditions = serde_json::json!({"recipient_domains": [domain]});
        let route = MailRoute {
            tenant: tenant(),
            id: "one".parse().unwrap(),
            position: 1,
            active: true,
            content: RouteContent {
                description: None,
                conditions: serde_json::from_value(conditions).unwrap(),
                accounts: vec![RouteTarget { account: second, weight: 1 }],
            },
            version: 1,
            created_at: self.clock.now(),
            updated_at: self.clock.now(),
        };
        let made = self.store.change(DirectoryChange::CreateRoute(route), None).await.unwrap();
        assert_eq!(made, ChangeResult::Done);
    }

    /// Ends a message as the sandbox does, and waits until the feed has the event.
    async fn capture(&self, client_id: &str) {
        let summary = self.message(client_id).await.unwrap().summary;
        let fence =
            WriteFence { status: summary.state.status(), token: None, version: Some(summary.version) };
        let (at, uid) = (self.clock.now(), summary.uid);
        let cancel = TransitionInput::Cancel(OtherRecipients::Nothing);
        let mut change = MessageChange::step(uid, fence, summary.state, cancel, at).unwrap();
        change.to = MessageState::Captured;
        change.error = None;
        change.events = vec![NewEvent { kind: EventKind::Captured, data: None }];
        assert_eq!(self.store.apply(vec![change]).await.unwrap(), [true]);
        self.tell().await;
    }

    async fn tell(&self) {
        while self.store.sequence(1_000).await.unwrap() > 0 {}
    }

    fn clock_now(&self) -> Time {
        self.clock.now()
    }

    fn desk(&self, served: &ServedSource) -> OutboxStatusApi {
        OutboxStatusApi::new(vec![served.outbox.clone()], &secret_key()).unwrap()
    }
}

/// A source that is served.
struct ServedSource {
    outbox: Arc<OutboxRunner>,
    node: Arc<TestNode>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl ServedSource {
    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Stops it as a power cut would.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

fn tenant() -> TenantId {
    "default".parse().unwrap()
}

fn secret_key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32]).unwrap()
}

/// A secret key that was replaced twice, with its predecessors.
fn rotated_key() -> SecretKey {
    let key = |byte: u8| SecretKey::from_bytes(&[byte; 32]).unwrap();
    key(9).with_previous(key(8).with_previous(secret_key()))
}

/// A source that imports rows at once.
fn source(url: &str) -> OutboxSource {
    OutboxSource {
        name: "app".to_owned(),
        url: SourceUrl::parse(url).unwrap(),
        schema: "postway".to_owned(),
        tenant: tenant(),
        from: Some("Shop <shop@example.com>".to_owned()),
        account: None,
        batch_limit: 10,
        batch_timeout: Duration::ZERO,
        poll: Duration::from_secs(1),
        accounts: None,
    }
}

fn with_accounts(url: &str) -> OutboxSource {
    let accounts = OutboxAccounts {
        schema: "public".to_owned(),
        link_base_url: "https://app.example.com".to_owned(),
        activation_path: "/activate".to_owned(),
        recovery_path: "/recover".to_owned(),
        link_key: None,
    };
    OutboxSource { accounts: Some(accounts), ..source(url) }
}

async fn installed(accounts: bool) -> PostgresDatabase {
    let database = tokio::task::spawn_blocking(PostgresDatabase::create).await.unwrap();
    install_into(&database.url(), accounts).await;
    database
}

async fn install_into(url: &str, accounts: bool) {
    let plan = install::InstallPlan {
        schema: "postway".to_owned(),
        accounts_schema: accounts.then(|| "public".to_owned()),
        keep_secrets: false,
    };
    install::install(&SourceUrl::parse(url).unwrap(), &plan).await.unwrap();
}

fn now_of(database: &PostgresDatabase) -> i64 {
    database.run("SELECT floor(extract(epoch FROM now()))::bigint").parse().unwrap()
}

/// Polls until a statement returns the expected value.
async fn until(database: &PostgresDatabase, sql: &str, expected: &str) {
    eventually(&format!("{sql} to give {expected}"), async || {
        let found = database.run(sql);
        (found == expected).then_some(()).ok_or(found)
    })
    .await;
}

/// Polls until a condition holds.
async fn eventually<T, E: std::fmt::Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(found) => assert!(began.elapsed() < PATIENCE, "waited in vain for {what}; found {found:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_cancelled(record: &MessageRecord) -> bool {
    record.summary.state == MessageState::Cancelled
}
