//! The door from outside, on the in-memory store: what it accepts and what it refuses.

#![allow(missing_docs, clippy::unwrap_used)]

mod accept;
mod allowed;
mod bad_input;
mod batch;
mod bodies;
mod bounded_work;
mod content;
mod directory;
mod envelope;
mod forward;
mod large_files;
mod locale;
mod prepare;
mod random;
mod raw;
mod repeat;
mod rounds;
mod routes;
mod signing;
mod spool;
mod template;

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use postway_domain::{
    Account, AccountSettings, Clock, EventKind, Incarnation, LeaseToken, MessageUid, Tenant, TenantId,
    TenantSettings, Time, secret::SecretKey, tenant::TenantSecrets,
};
use postway_intake::{AcceptReceipt, Door, DoorParts, FetchConfig, IntakeLimits, Refusal, RequestContext};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    DirectoryStore, Read, WorkStore,
    blob::BlobStorage,
    memory::MemoryStore,
    record::{
        AccountKey, AccountWant, ChangeResult, ClaimRequest, ClaimedMessage, DirectoryChange, LeaseGrant,
        MessageFilter, MessageKey, MessageRecord,
    },
};
use serde_json::{Value, json};

/// 2024-01-01T00:00:00Z.
const NOW_MS: i64 = 1_704_067_200_000;

struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// The settings of a test installation; limits are small if the real ones would make tests slow.
struct GatewayPlan {
    limits: IntakeLimits,
    settings: TenantSettings,
    secrets: TenantSecrets,
    fetch: FetchConfig,
    public_url: Option<String>,
    depot: BlobStorage,
}

impl Default for GatewayPlan {
    fn default() -> Self {
        Self {
            limits: IntakeLimits { message_bytes_max: 64 * 1024, ..IntakeLimits::default() },
            settings: TenantSettings::default(),
            secrets: TenantSecrets::default(),
            fetch: FetchConfig::default(),
            public_url: None,
            depot: BlobStorage::memory(),
        }
    }
}

impl GatewayPlan {
    /// An installation whose tenant has these settings.
    async fn with(settings: TenantSettings) -> TestGateway {
        Self { settings, ..Self::default() }.build().await
    }

    /// A tenant `default` with the accounts `relay` (the default) and `second`, and a door for it.
    async fn build(self) -> TestGateway {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock(AtomicI64::new(NOW_MS)));
        let secrets = serde_json::to_string(&self.secrets).unwrap();
        assert_eq!(self.settings.check(), []);
        let tenant = Tenant {
            default_account: Some("relay".parse().unwrap()),
            // A test tenant, so that the sandbox counts as an account that sends.
            settings: TenantSettings { test: true, ..self.settings },
            secret: Some(secret_key().seal(&Tenant::sealing_context(&tenant()), &secrets).unwrap()),
            ..Tenant::new(tenant(), "Default", clock.now())
        };
        assert!(store.create_tenant(tenant).await.unwrap());
        for id in ["relay", "second"] {
            assert!(store.create_account(account(id, None)).await.unwrap());
        }
        let depot = Arc::new(self.depot);
        let door = Arc::new(Door::new(DoorParts {
            store: store.clone(),
            depot: depot.clone(),
            clock: clock.clone(),
            secret_key: Arc::new(secret_key()),
            http: http(),
            fetch: self.fetch,
            limits: self.limits,
            mail_domain: "postway.example".to_owned(),
            public_url: self.public_url,
        }));
        TestGateway { store, clock, depot, door }
    }
}

struct TestGateway {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    depot: Arc<BlobStorage>,
    door: Arc<Door>,
}

impl TestGateway {
    async fn new() -> Self {
        GatewayPlan::default().build().await
    }

    async fn with_limits(limits: IntakeLimits) -> Self {
        GatewayPlan { limits, ..GatewayPlan::default() }.build().await
    }

    /// Another door to the same store, as after a restart.
    fn door_anew(&self) -> Arc<Door> {
        Arc::new(Door::new(DoorParts {
            store: self.store.clone(),
            depot: self.depot.clone(),
            clock: self.clock.clone(),
            secret_key: Arc::new(secret_key()),
            http: http(),
            fetch: FetchConfig::default(),
            limits: self.door.limits().clone(),
            mail_domain: "postway.example".to_owned(),
            public_url: None,
        }))
    }

    /// Changes settings as an operator would.
    async fn change(&self, change: DirectoryChange) {
        assert_eq!(self.store.change(change, None).await.unwrap(), ChangeResult::Done);
    }

    /// A dry run.
    async fn try_out(&self, message: &Value) -> Result<AcceptReceipt, Refusal> {
        let dry = RequestContext { dry_run: true, ..ctx() };
        self.door.accept_json(&dry, body_of(message.to_string().as_bytes())).await
    }

    /// The events of a message, with their data.
    async fn events(&self, uid: MessageUid) -> Vec<(EventKind, Value)> {
        let read =
            |data: Option<String>| data.map_or(Value::Null, |data| serde_json::from_str(&data).unwrap());
        let events = self.stored(uid).await.events;
        events.into_iter().map(|event| (event.kind, read(event.data))).collect()
    }

    async fn send(&self, message: &Value) -> Result<AcceptReceipt, Refusal> {
        self.door.accept_json(&ctx(), body_of(message.to_string().as_bytes())).await
    }

    async fn stored(&self, uid: MessageUid) -> MessageRecord {
        self.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().expect("the message is stored")
    }

    async fn raw(&self, uid: MessageUid) -> String {
        let raw = self.store.raw(&tenant(), uid).await.unwrap().expect("the message is stored");
        let raw = self.door.resolve(&tenant(), raw).await.unwrap();
        String::from_utf8(raw.to_vec()).unwrap()
    }

    async fn count(&self) -> usize {
        self.store.messages(&tenant(), &MessageFilter::default(), None, 10_000).await.unwrap().len()
    }

    fn advance(&self, by: Duration) {
        self.clock.0.fetch_add(by.as_millis() as i64, Ordering::Relaxed);
    }
}

fn body_of(body: &(impl AsRef<[u8]> + ?Sized)) -> Bytes {
    Bytes::copy_from_slice(body.as_ref())
}

fn tenant() -> TenantId {
    "default".parse().unwrap()
}

fn account(id: &str, return_path: Option<&str>) -> Account {
    Account {
        tenant: tenant(),
        id: id.parse().unwrap(),
        settings: AccountSettings {
            return_path: return_path.map(str::to_owned),
            ..AccountSettings::sandbox()
        },
        secret: None,
        version: 1,
        created_at: Time::from_millis(NOW_MS),
        updated_at: Time::from_millis(NOW_MS),
    }
}

fn ctx() -> RequestContext {
    RequestContext {
        tenant: tenant(),
        request_id: "req-1".to_owned(),
        idempotency_key: None,
        dry_run: false,
        refuses_capture: false,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
        restrictions: None,
        trace: postway_intake::RequestTrace::default(),
    }
}

fn keyed(key: &str) -> RequestContext {
    RequestContext { idempotency_key: Some(key.to_owned()), ..ctx() }
}

/// A valid message with some fields changed; a field set to null counts as absent.
fn message(changes: Value) -> Value {
    let mut message =
        json!({"from": "Shop <shop@example.com>", "to": ["a@example.net"], "subject": "s", "text": "t"});
    for (name, value) in changes.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

/// An HTTP client that may reach 127.0.0.1, and no other private address.
fn http() -> HttpClient {
    let guard = AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)]);
    HttpClient::new(Arc::new(guard), HttpSettings::default())
}

fn secret_key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32]).unwrap()
}

/// The fields that a refusal names and the codes of their faults, in order.
fn faults<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Vec<(String, &'static str)> {
    match result {
        Err(Refusal::Invalid { details }) => {
            details.into_iter().map(|detail| (detail.field, detail.code.as_str())).collect()
        }
        other => panic!("expected an invalid message, got {other:?}"),
    }
}

/// The text of the first fault of a refusal.
fn complaint<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    match result {
        Err(Refusal::Invalid { details }) => details[0].message.clone(),
        other => panic!("expected an invalid message, got {other:?}"),
    }
}

/// The fields that a refusal names, in order.
fn fields<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Vec<String> {
    match result {
        Err(Refusal::Invalid { details }) => {
            assert!(details.iter().all(|detail| !detail.message.is_empty()));
            details.into_iter().map(|detail| detail.field).collect()
        }
        other => panic!("expected an invalid message, got {other:?}"),
    }
}

/// Claims a message as a worker would.
async fn claim(gateway: &TestGateway, uid: MessageUid) -> ClaimedMessage {
    let lane = gateway.stored(uid).await.summary.lane;
    let mut random = rand::rng();
    let request = ClaimRequest {
        wants: vec![AccountWant::unlimited(
            AccountKey { tenant: lane.tenant, account: lane.account },
            1_000,
            false,
        )],
        lease: LeaseGrant {
            incarnation: Incarnation::new(gateway.clock.now(), &mut random),
            token: LeaseToken::new(&mut random),
            until: gateway.clock.now().plus(Duration::from_secs(60)),
        },
        now: gateway.clock.now(),
        inline_bytes_max: 0,
    };
    let claimed = gateway.store.claim(request).await.unwrap();
    claimed.into_iter().find(|claimed| claimed.uid == uid).expect("it is due")
}
