//! A complete API in one process, and helpers to call it.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use postway_api::{
    AccountProbe, AdminKey, ApiState, CompatConfig, DnsFinding, DomainChecker, DomainProbe, DomainUse,
    InboundProbe, MailboxStep, MetricsAccess, MetricsKey, ProbeStep, ProviderSignIn, RequestLimits,
    RuleTrial, WebhookTest,
};
use postway_domain::{
    Account, AccountLimits, AccountSettings, Clock, EventKind, Incarnation, Lane, LeaseToken,
    MessagePriority, MessageState, MessageUid, RecipientKind, RecipientStatus, Subscriber, Tenant, TenantId,
    TenantSettings, Time, WatchedMailbox,
    message::{OnDoubt, ScheduleReason},
    rule::{RuleCondition, RuleContent, TextMatch},
    secret::SecretKey,
};
use postway_intake::{Door, DoorParts, FetchConfig, IntakeLimits};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    DirectoryStore, IntakeStore, LivenessRoster, ReportStore, Store, StoreError, WorkStore,
    blob::BlobStorage,
    memory::MemoryStore,
    record::{
        Acceptance, AccountKey, AccountWant, ClaimRequest, LeaseGrant, MessageChange, MessageContent,
        NewEvent, NewMessage, NewRecipient, NotificationCall, NotificationResult, NotificationState,
        PreparationResult, RecipientChange, ReportRequest, WriteFence,
    },
};
use serde_json::Value;
use tower::ServiceExt;

use crate::conformance;

pub const KEY: &str = "test-key-of-thirty-two-characters";
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// A clock that stands still until it is moved.
pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn forward_ms(&self, by: i64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Finds that every account can be connected to, and none with a username can be signed in to.
struct Probe;

#[async_trait::async_trait]
impl AccountProbe for Probe {
    async fn probe(&self, account: &Account) -> Vec<ProbeStep> {
        let step = |step, ok| ProbeStep { step, ok, detail: "said so".to_owned(), duration_ms: 1 };
        let auth = account.settings.username.as_ref().map(|_| step("auth", false));
        [step("connect", true)].into_iter().chain(auth).collect()
    }

    fn refusal(&self, host: &str) -> Option<String> {
        matches!(host, "127.0.0.1" | "::1" | "localhost").then(|| "POSTWAY_ALLOW_PRIVATE_TARGETS".to_owned())
    }

    async fn test_webhook(&self, webhook: &Subscriber) -> WebhookTest {
        let ok = !webhook.url.contains("down");
        WebhookTest { ok, status: ok.then_some(200), latency_ms: 1, answer: "said so".to_owned() }
    }
}

/// Finds that SPF is right unless the domain says otherwise, and each key published.
pub struct Dns;

#[async_trait::async_trait]
impl DomainProbe for Dns {
    async fn check(&self, domain: &str, used: &DomainUse) -> Vec<DnsFinding> {
        if domain.contains("silent") {
            return std::future::pending().await;
        }
        let finding = |check: String, state: &str| DnsFinding {
            check,
            state: state.to_owned(),
            found: None,
            advice: None,
            record: None,
        };
        let state = ["wrong", "missing", "unknown"].into_iter().find(|state| domain.contains(state));
        let spf = used.is_sender.then(|| finding("spf".to_owned(), state.unwrap_or("ok")));
        let keys = used.keys.iter().map(|(selector, _)| finding(format!("dkim {selector}"), "ok"));
        spf.into_iter().chain(keys).chain([finding("mx".to_owned(), "ok")]).collect()
    }
}

/// Finds that every mailbox but `down` can be read, and that of all patterns only `(` is wrong.
struct Trials;

#[async_trait::async_trait]
impl InboundProbe for Trials {
    async fn probe_mailbox(&self, mailbox: &WatchedMailbox) -> Vec<MailboxStep> {
        let ok = mailbox.id.as_str() != "down";
        vec![MailboxStep { step: "connect", ok, detail: "said so".to_owned() }]
    }

    fn check_rule(&self, rule: &RuleContent) -> Vec<(String, String)> {
        let is_wrong = |condition: &RuleCondition| {
            let text = match condition {
                RuleCondition::From(text)
                | RuleCondition::To(text)
                | RuleCondition::Cc(text)
                | RuleCondition::Subject(text) => text,
                _ => return false,
            };
            *text == TextMatch::Regex("(".to_owned())
        };
        let places = rule.conditions.iter().enumerate().filter(|(_, condition)| is_wrong(condition));
        places.map(|(place, _)| (format!("match[{place}].regex"), "is no pattern".to_owned())).collect()
    }

    async fn try_rule(&self, _: &TenantId, _: &RuleContent, mail: Bytes) -> Result<RuleTrial, StoreError> {
        Ok(RuleTrial {
            matched: true,
            conditions: Vec::new(),
            captures: [("size".to_owned(), mail.len().to_string())].into(),
            actions: vec![serde_json::json!({"do": "stop"})],
            reason: None,
        })
    }
}

pub struct Api {
    pub router: Router,
    pub store: Arc<MemoryStore>,
    pub clock: Arc<TestClock>,
    pub depot: Arc<BlobStorage>,
    pub recorder: PrometheusRecorder,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    /// The error's code, after checking that it has the one shape of all errors.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        assert_eq!((self.status.as_u16(), json["error"]["code"].as_str()), (status, Some(code)), "{json}");
        assert_eq!(self.headers["content-type"], "application/json");
        assert_eq!(json["error"]["request_id"], self.headers["x-request-id"].to_str().unwrap());
        assert!(json["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
        assert!(json["error"]["details"].is_array());
        json["error"].clone()
    }

    /// The fields that failed their checks.
    #[track_caller]
    pub fn wrong_fields(&self) -> Vec<String> {
        let error = self.refused(422, "validation_error");
        let details = error["details"].as_array().unwrap().iter();
        details.map(|detail| detail["field"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    pub fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.body);
        self.json()
    }
}

impl Api {
    pub async fn start() -> Self {
        Self::with_secret_key(SecretKey::from_bytes(&[7; 32]).unwrap()).await
    }

    /// With a secret key of its own.
    pub async fn with_secret_key(secret_key: SecretKey) -> Self {
        Self::with(secret_key, CompatConfig::default()).await
    }

    /// With its own secret key and compatibility APIs.
    pub async fn with(secret_key: SecretKey, compat: CompatConfig) -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
        for tenant in ["default", "other"] {
            let id = tenant.parse().unwrap();
            // Mail captured by its sandbox counts as sent, and compatibility APIs accept mail for it.
            let settings = TenantSettings { test: true, ..TenantSettings::default() };
            let made = Tenant { settings, ..Tenant::new(id, tenant, clock.now()) };
            assert!(store.create_tenant(made).await.unwrap());
            assert!(store.create_account(sandbox(tenant, clock.now())).await.unwrap());
            store.set_default_account(&tenant.parse().unwrap(), &"sandbox".parse().unwrap()).await.unwrap();
        }
        Self::on(store, clock, secret_key, compat, None, None, RequestLimits::default())
    }

    /// Another door to the same store, with limits.
    pub fn limited(&self, limits: RequestLimits) -> Self {
        let secret_key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Self::on(store, clock, secret_key, CompatConfig::default(), None, None, limits)
    }

    /// Another node with the same database, at which people sign in by this provider.
    pub fn with_provider(&self, provider: ProviderSignIn) -> Self {
        let secret_key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let (compat, provider) = (CompatConfig::default(), Some(Arc::new(provider)));
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Self::on(store, clock, secret_key, compat, None, provider, RequestLimits::default())
    }

    /// Another node with the same database, and a key for metrics where one is given.
    pub fn beside(&self, metrics_key: Option<&str>) -> Self {
        let secret_key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let metrics_key = metrics_key.map(MetricsKey::new);
        let (store, clock, compat) = (self.store.clone(), self.clock.clone(), CompatConfig::default());
        Self::on(store, clock, secret_key, compat, metrics_key, None, RequestLimits::default())
    }

    fn on(
        store: Arc<MemoryStore>,
        clock: Arc<TestClock>,
        secret_key: SecretKey,
        compat: CompatConfig,
        metrics_key: Option<MetricsKey>,
        provider: Option<Arc<ProviderSignIn>>,
        request_limits: RequestLimits,
    ) -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let secret_key = Arc::new(secret_key);
        let limits = IntakeLimits { request_bytes_max: REQUEST_BYTES_MAX, ..IntakeLimits::default() };
        let depot = Arc::new(BlobStorage::memory());
        let state = ApiState {
            store: store.clone(),
            door: Arc::new(Door::new(DoorParts {
                store: store.clone() as Arc<dyn Store>,
                depot: depot.clone(),
                clock: clock.clone(),
                secret_key: secret_key.clone(),
                http: HttpClient::new(Arc::new(AddressGuard::new(Vec::new())), HttpSettings::default()),
                fetch: FetchConfig::default(),
                limits,
                mail_domain: "mail.example".to_owned(),
                public_url: Some("https://mail.example".to_owned()),
            })),
            clock: clock.clone(),
            admin_key: AdminKey::new(KEY),
            secret_key,
            unopened_secrets: Arc::default(),
            metrics: MetricsAccess {
                recorders: vec![recorder.handle()],
                process: String::new,
                key: metrics_key,
            },
            roster: Arc::new(LivenessRoster::new(Incarnation::from_bytes([1; 16]), false)),
            probe: Arc::new(Probe),
            domains: DomainChecker::new(store.clone(), clock.clone(), Arc::new(Dns)),
            outbox: Arc::default(),
            inbound: Arc::new(Trials),
            compat,
            provider,
            report_retention: std::time::Duration::from_secs(604_800),
            opens_to_this_machine: false,
            limits: request_limits,
        };
        Self { router: postway_api::router(state), store, clock, depot, recorder }
    }

    /// Asks as it is, without a key.
    pub async fn ask(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        assert!(parts.headers.contains_key("x-request-id"), "every answer names its request");
        assert_eq!(parts.headers["x-content-type-options"], "nosniff");
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        conformance::check(&method, &path, &answer);
        answer
    }

    pub async fn call(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {KEY}"));
        self.ask(request.body(body.into()).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, body.to_string()).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.call("PATCH", path, body.to_string()).await
    }

    /// Deletes; the status of the answer.
    pub async fn delete(&self, path: &str) -> u16 {
        self.call("DELETE", path, Body::empty()).await.status.as_u16()
    }

    /// Asks with the admin key for another tenant.
    pub async fn in_tenant(&self, tenant: &str, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request =
            Request::builder().method(method).uri(path).header("x-api-key", KEY).header("x-tenant", tenant);
        self.ask(request.body(body.into()).unwrap()).await
    }

    /// Makes a key of a tenant and gives it.
    pub async fn key(&self, tenant: &str, wanted: Value) -> String {
        let made = self.post(&format!("/v1/tenants/{tenant}/keys"), wanted).await.ok(201);
        made["key"].as_str().unwrap().to_owned()
    }

    /// Asks with a tenant's key.
    pub async fn as_key(&self, key: &str, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
        self.ask(request.body(body.into()).unwrap()).await
    }

    /// Leases one due message of the sandbox, as dispatch would; how many it got.
    pub async fn claim_one(&self, limits: AccountLimits) -> usize {
        let key = AccountKey { tenant: "default".parse().unwrap(), account: "sandbox".parse().unwrap() };
        let now = self.clock.now();
        let request = ClaimRequest {
            lease: LeaseGrant {
                incarnation: Incarnation::from_bytes([1; 16]),
                token: LeaseToken::from_i64(7),
                until: Time::from_millis(now.as_millis() + 600_000),
            },
            now,
            wants: vec![AccountWant { limits, ..AccountWant::unlimited(key, 1, false) }],
            inline_bytes_max: 1 << 16,
        };
        self.store.claim(request).await.unwrap().len()
    }

    /// Makes notifications of what happened so far, as the sequencer would.
    pub async fn fan_out(&self) {
        while self.store.sequence(100).await.unwrap() > 0 {}
        while self.store.fan_out(self.clock.now(), 100).await.unwrap() > 0 {}
    }

    /// Calls every subscriber with all that is due, as notify would, and settles the calls so; how many there
    /// were.
    pub async fn notify(&self, state: NotificationState, status: u16) -> usize {
        self.fan_out().await;
        let (now, token) = (self.clock.now(), LeaseToken::from_i64(9));
        let mut settled = 0;
        loop {
            let due = self.store.report_state(now).await.unwrap().due;
            let lease = LeaseGrant {
                incarnation: Incarnation::from_bytes([1; 16]),
                token,
                until: Time::from_millis(now.as_millis() + 120_000),
            };
            let wants = due.into_iter().map(|subscriber| (subscriber, 100)).collect();
            let claimed = self.store.claim_notifications(ReportRequest { lease, now, wants }).await.unwrap();
            if claimed.is_empty() {
                return settled;
            }
            settled += claimed.len();
            let notified = claimed.into_iter().map(|told| NotificationResult {
                key: told.key,
                token,
                at: now,
                state,
                due_at: (!state.is_settled()).then(|| Time::from_millis(now.as_millis() + 5_000)),
                call: Some(NotificationCall {
                    at: now,
                    latency_ms: 12,
                    status: Some(status),
                    request: "{}".to_owned(),
                    answer: "said so".to_owned(),
                }),
                tells_history: false,
            });
            self.store.settle_notifications(notified.collect()).await.unwrap();
        }
    }

    /// A message in the store, as intake would leave it, moved on to `state`.
    pub async fn stored(
        &self,
        id: &str,
        state: MessageState,
        recipients: &[(&str, RecipientStatus)],
    ) -> MessageUid {
        self.stored_with(id, state, recipients, |_| {}).await
    }

    /// The same, with what `edit` makes of it.
    pub async fn stored_with(
        &self,
        id: &str,
        state: MessageState,
        recipients: &[(&str, RecipientStatus)],
        edit: impl FnOnce(&mut NewMessage),
    ) -> MessageUid {
        let uid = MessageUid::new(self.clock.now(), &mut rand::rng());
        let recipient = |(address, _): &(&str, RecipientStatus)| NewRecipient {
            address: address.parse().unwrap(),
            kind: RecipientKind::To,
        };
        let mut message = NewMessage {
            uid,
            lane: Lane {
                tenant: "default".parse().unwrap(),
                account: "sandbox".parse().unwrap(),
                priority: MessagePriority::Normal,
                batch: Some("b-1".parse().unwrap()),
                destination: None,
            },
            client_id: Some(id.parse().unwrap()),
            idempotency: None,
            fingerprint: [0; 32],
            state: MessageState::Ready,
            due_at: Some(self.clock.now()),
            created_at: self.clock.now(),
            expires_at: None,
            on_doubt: OnDoubt::Hold,
            recipients: recipients.iter().map(recipient).collect(),
            content: content(uid),
            batch_key: None,
            error: None,
            collapse_key: None,
            events: vec![NewEvent { kind: EventKind::Accepted, data: None }],
            recipient: None,
            settled: None,
            trace: None,
        };
        edit(&mut message);
        let starts = message.state;
        let accepted = self.store.accept(vec![message]).await.unwrap();
        assert!(matches!(accepted[..], [Acceptance::Accepted { .. }]));
        if state != starts {
            let recipients =
                recipients.iter().zip(0..).filter(|((_, status), _)| *status != RecipientStatus::Pending);
            self.moved(
                uid,
                starts,
                state,
                recipients.map(|((_, status), position)| (position, *status)).collect(),
            )
            .await;
        }
        uid
    }

    async fn moved(
        &self,
        uid: MessageUid,
        from: MessageState,
        to: MessageState,
        recipients: Vec<(u32, RecipientStatus)>,
    ) {
        let waits = matches!(to, MessageState::Scheduled(_))
            .then(|| Time::from_millis(self.clock.now().as_millis() + 60_000));
        let error = r#"{"code":"smtp_450","category":"greylisted","phase":"rcpt","smtp_code":450,"enhanced_code":"4.2.0","message":"come back"}"#;
        let change = MessageChange {
            uid,
            fence: WriteFence { status: from.status(), token: None, version: None },
            to,
            at: self.clock.now(),
            due_at: waits,
            keep_token: false,
            retries: Some(3),
            doubts: None,
            lost_leases: Some(2),
            exhausted: to == MessageState::Failed,
            error: Some(error.to_owned()),
            events: told(to).map(|kind| NewEvent { kind, data: None }).into_iter().collect(),
            recipients: recipients
                .into_iter()
                .map(|(position, status)| RecipientChange { position, status, reply: None })
                .collect(),
            ends_open_recipients: None,
            attempt: None,
            refund: None,
            preparation: waits
                .filter(|_| to == MessageState::Scheduled(ScheduleReason::Fetch))
                .map(PreparationResult::Later),
            erases_bodies: false,
            awaits_receipt: None,
        };
        assert_eq!(self.store.apply(vec![change]).await.unwrap(), [true]);
    }
}

/// The event that a message leaves by going there.
fn told(to: MessageState) -> Option<EventKind> {
    match to {
        MessageState::Sent => Some(EventKind::Sent),
        MessageState::Failed => Some(EventKind::Failed),
        _ => None,
    }
}

fn sandbox(tenant: &str, now: Time) -> Account {
    Account {
        tenant: tenant.parse().unwrap(),
        id: "sandbox".parse().unwrap(),
        settings: AccountSettings::sandbox(),
        secret: None,
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

fn content(uid: MessageUid) -> MessageContent {
    MessageContent {
        sender: "shop@example.com".to_owned(),
        message_id: format!("{uid}@example.com"),
        subject: "Your order".to_owned(),
        request_id: Some("req-7".to_owned()),
        external_id: None,
        tags: vec!["receipt".to_owned()],
        metadata: Some(r#"{"order":17}"#.to_owned()),
        eight_bit: false,
        smtputf8: false,
        raw: Bytes::from_static(b"Subject: Your order\r\n\r\nThank you.\r\n").into(),
        payload: Some(Bytes::from_static(br#"{"subject":"Your order"}"#).into()),
        sensitive: false,
        dsn: None,
    }
}
