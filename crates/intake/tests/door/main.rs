//! The door, from outside: what is taken and what is refused, on the in-memory store.

#![allow(missing_docs, clippy::unwrap_used)]

mod accept;
mod bad_input;
mod batch;
mod random;
mod raw;
mod repeat;

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use postway_domain::{
    Account, AccountSettings, Clock, Incarnation, LeaseToken, MessageUid, Tenant, TenantId, Time,
    secret::SecretKey,
};
use postway_intake::{Door, DoorParts, FetchConfig, Limits, Receipt, Refusal, RequestContext};
use postway_net::{
    Guard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    Directory, Read, Work,
    blob::Depot,
    memory::MemoryStore,
    record::{AccountKey, AccountWant, ClaimRequest, Claimed, Filter, Lease, MessageKey, MessageRecord},
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

struct House {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    door: Door,
}

impl House {
    /// A door with small limits where the real ones would make tests slow, and the accounts `relay` (the default) and
    /// `second`.
    async fn new() -> Self {
        Self::with_limits(Limits { message_bytes_max: 64 * 1024, ..Limits::default() }).await
    }

    async fn with_limits(limits: Limits) -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock(AtomicI64::new(NOW_MS)));
        let tenant = Tenant {
            default_account: Some("relay".parse().unwrap()),
            ..Tenant::new(tenant(), "Default", clock.now())
        };
        assert!(store.create_tenant(tenant).await.unwrap());
        for id in ["relay", "second"] {
            assert!(store.create_account(account(id, None)).await.unwrap());
        }
        let door = Door::new(DoorParts {
            store: store.clone(),
            depot: Arc::new(Depot::memory()),
            clock: clock.clone(),
            secret_key: Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap()),
            http: HttpClient::new(Arc::new(Guard::default()), HttpSettings::default()),
            fetch: FetchConfig::default(),
            limits,
            mail_domain: "postway.example".to_owned(),
            public_url: None,
        });
        Self { store, clock, door }
    }

    async fn send(&self, message: &Value) -> Result<Receipt, Refusal> {
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
        self.store.messages(&tenant(), &Filter::default(), None, 10_000).await.unwrap().len()
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
    RequestContext { tenant: tenant(), request_id: "req-1".to_owned(), idempotency_key: None, dry_run: false }
}

fn keyed(key: &str) -> RequestContext {
    RequestContext { idempotency_key: Some(key.to_owned()), ..ctx() }
}

/// A good message with some fields changed; a field set to null is as good as absent.
fn message(changes: Value) -> Value {
    let mut message =
        json!({"from": "Shop <shop@example.com>", "to": ["a@example.net"], "subject": "s", "text": "t"});
    for (name, value) in changes.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
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

/// Takes a message as a worker would, to see what a worker sees.
async fn claim(house: &House, uid: MessageUid) -> Claimed {
    let lane = house.stored(uid).await.summary.lane;
    let mut random = rand::rng();
    let request = ClaimRequest {
        wants: vec![AccountWant::unlimited(
            AccountKey { tenant: lane.tenant, account: lane.account },
            1_000,
            false,
        )],
        lease: Lease {
            incarnation: Incarnation::new(house.clock.now(), &mut random),
            token: LeaseToken::new(&mut random),
            until: house.clock.now().plus(Duration::from_secs(60)),
        },
        now: house.clock.now(),
        inline_bytes_max: 0,
    };
    let claimed = house.store.claim(request).await.unwrap();
    claimed.into_iter().find(|claimed| claimed.uid == uid).expect("it is due")
}
