//! The notifier at work: a store in memory, a clock that tests move, and a real HTTP receiver.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

mod callback;
mod fault;
mod inbound;
mod pace;
mod sync;
mod webhook;

use std::{
    future::Future,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use postway_domain::{
    Clock, EventKind, Incarnation, MessageState, MessageUid, Subscriber, SubscriberKind, Tenant, TenantId,
    Time,
    secret::SecretKey,
    subscriber::EventFilter,
    tenant::{CallbackForm, RemoteAuth, RemoteService, TenantSecrets, TenantSettings},
};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_notify::{Notifier, NotifierNode, NotifierParts, ReceivedMailReader};
use postway_store::{
    DirectoryStore, IntakeStore, ReportStore, Store, StoreError,
    blob::BlobStorage,
    conformance::sample::{self, Sample, event},
    memory::MemoryStore,
    record::{ChangeResult, DirectoryChange, NewEvent, NotificationState, NotificationView},
};
use postway_testkit::{HttpSource, SourceReply, http_source::ReceivedRequest};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// 2024-01-01T00:00:00Z.
const NOW_MS: i64 = 1_704_067_200_000;
/// Longer than anything that a test waits for.
const SOON: Duration = Duration::from_secs(60);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// The only process.
struct Alone(Incarnation);

#[async_trait]
impl NotifierNode for Alone {
    fn alive(&self) -> Option<Vec<Incarnation>> {
        Some(vec![self.0])
    }

    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

struct TestGateway {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    receiver: HttpSource,
    stop: CancellationToken,
    patience: Duration,
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

fn secret_key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32]).unwrap()
}

fn http() -> HttpClient {
    let guard = AddressGuard::new(vec![(Ipv4Addr::LOCALHOST.into(), 8)]);
    HttpClient::new(Arc::new(guard), HttpSettings::default())
}

fn json(request: &ReceivedRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// The subscribers: none yet, or the tenant's own client at `/sync`.
struct Client {
    form: CallbackForm,
    auth: RemoteAuth,
}

impl TestGateway {
    async fn new() -> Self {
        Self::with(None).await
    }

    async fn with(client: Option<Client>) -> Self {
        postway_net::install_crypto_provider();
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock(AtomicI64::new(NOW_MS)));
        let receiver = HttpSource::start().await;
        let mut tenant = Tenant::new(tenant(), "Acme", clock.now());
        if let Some(Client { form, auth }) = client {
            tenant.settings = TenantSettings {
                callback_form: form,
                client_sync: Some(RemoteService {
                    url: receiver.url(""),
                    path: Some("/sync".to_owned()),
                    auth,
                    username: Some("postway".to_owned()),
                }),
                ..TenantSettings::default()
            };
            let secrets =
                TenantSecrets { client_sync: Some("s3cret".to_owned()), ..TenantSecrets::default() };
            let secrets = serde_json::to_string(&secrets).unwrap();
            tenant.secret = Some(secret_key().seal(&Tenant::sealing_context(&tenant.id), &secrets).unwrap());
        }
        assert!(store.create_tenant(tenant).await.unwrap());
        assert!(store.create_account(sample::account(sample::TENANT, sample::ACCOUNT)).await.unwrap());
        let patience = NotifierParts::PATIENCE;
        Self { store, clock, receiver, stop: CancellationToken::new(), patience }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Creates a webhook to a path of the receiver.
    async fn webhook(&self, id: &str) -> Subscriber {
        self.webhook_to(id, self.receiver.url(&format!("/{id}"))).await
    }

    async fn webhook_to(&self, id: &str, url: String) -> Subscriber {
        self.webhook_of(&tenant(), id, url).await
    }

    async fn webhook_of(&self, of: &TenantId, id: &str, url: String) -> Subscriber {
        self.webhook_of_kind(of, id, url, SubscriberKind::Webhook).await
    }

    async fn webhook_of_kind(
        &self,
        of: &TenantId,
        id: &str,
        url: String,
        kind: SubscriberKind,
    ) -> Subscriber {
        let id = id.parse().unwrap();
        let secrets = format!("[{SECRET:?}]");
        let webhook = Subscriber {
            secrets: Some(secret_key().seal(&Subscriber::sealing_context(of, &id), &secrets).unwrap()),
            tenant: of.clone(),
            id,
            kind,
            url,
            events: EventFilter::default(),
            active: true,
            disabled_reason: None,
            description: None,
            quiet_until: None,
            version: 1,
            created_at: self.now(),
            updated_at: self.now(),
        };
        let change = DirectoryChange::CreateSubscriber(webhook.clone());
        assert_eq!(self.store.change(change, None).await.unwrap(), ChangeResult::Done);
        webhook
    }

    /// Accepts a message with these events.
    async fn message(&self, number: u32, events: &[EventKind]) -> MessageUid {
        self.message_of(number, events.iter().copied().map(event).collect(), |sample| sample).await
    }

    async fn message_of(
        &self,
        number: u32,
        events: Vec<NewEvent>,
        edit: impl FnOnce(Sample) -> Sample,
    ) -> MessageUid {
        let sample =
            Sample::new(number).client_id(&format!("order-{number}")).state(MessageState::Sent, None);
        let mut message = edit(sample).build();
        message.created_at = self.now();
        message.events = events;
        let uid = message.uid;
        assert!(self.store.accept(vec![message]).await.unwrap()[0].is_accepted());
        uid
    }

    /// Starts a notifier, as this incarnation of a process.
    fn open(&self, life: u8) -> JoinHandle<()> {
        let incarnation = Incarnation::from_bytes([life; 16]);
        let parts = NotifierParts {
            store: self.store.clone() as Arc<dyn Store>,
            depot: Arc::new(BlobStorage::memory()),
            http: http(),
            clock: self.clock.clone(),
            secret_key: Arc::new(secret_key()),
            node: Arc::new(Alone(incarnation)),
            incarnation,
            poll: Duration::from_millis(10),
            patience: self.patience,
            received: ReceivedMailReader(Arc::new(inbound::read_mail)),
            public_url: Some("https://mail.example.com/".to_owned()),
        };
        tokio::spawn(Notifier::new(parts).run(self.stop.clone()))
    }

    /// Stops the notifier, which must end by itself.
    async fn close(&self, room: JoinHandle<()>) {
        self.stop.cancel();
        tokio::time::timeout(SOON, room).await.expect("the room stops").unwrap();
    }

    async fn notifications(&self, uid: MessageUid) -> Vec<NotificationView> {
        self.store.notifications(&tenant(), uid).await.unwrap()
    }

    /// The first notification of a message, once it has this state.
    async fn once(&self, uid: MessageUid, is_so: impl Fn(&NotificationView) -> bool) -> NotificationView {
        until(async || self.notifications(uid).await.into_iter().next().filter(|one| is_so(one))).await
    }

    /// Waits until all events of these messages are acknowledged.
    async fn all_told(&self, uids: &[MessageUid]) {
        until(async || {
            for uid in uids {
                let all = self.notifications(*uid).await;
                if all.is_empty() || all.iter().any(|one| one.state != NotificationState::Acknowledged) {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// The calls to this path.
    fn received(&self, path: &str) -> Vec<ReceivedRequest> {
        self.receiver.requests().into_iter().filter(|one| one.path == path).collect()
    }
}

/// Polls until there is a result. The store has no signal for what tests wait for.
async fn until<T, F: Future<Output = Option<T>>>(look: impl Fn() -> F) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(SOON, looking).await.expect("it comes soon")
}

/// The 2xx of most receivers.
fn taken() -> SourceReply {
    SourceReply::ok("")
}
