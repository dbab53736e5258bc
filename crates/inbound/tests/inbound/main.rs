//! The subsystem from outside: mailboxes are read and mail is processed, on the in-memory store.

#![allow(missing_docs, clippy::unwrap_used)]

mod domain_reports;
mod dovecot;
mod forward;
mod interleaving;
mod monitor;
mod oauth;
mod pec;
mod readers;
mod received;
mod reception;
mod reports;
mod script;
mod share;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{
    Account, AccountSettings, Clock, InboundRule, InboundState, Incarnation, LeaseToken, MessageUid, Tenant,
    TenantId, TenantSettings, Time, WatchedMailbox,
    mailbox::{MailboxAuth, MailboxRole, MailboxSettings, MailboxTls, WatchStart},
    message::AttemptOutcome,
    secret::SecretKey,
};
use postway_inbound::{
    FolderSource, MailProcessor, MailProcessorParts, Monitor, MonitorNode, MonitorParts, TrustStore,
};
use postway_intake::{Door, DoorParts, FetchConfig, IntakeLimits, RequestContext};

use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    DirectoryStore, InboundStore, Read, StoreError,
    blob::BlobStorage,
    conformance::{Shared, stage},
    memory::MemoryStore,
    record::{
        AccountKey, ChangeResult, DirectoryChange, InboundFilter, InboundView, LeaseGrant, MailToProcess,
        MailboxKey, MessageChange, MessageFilter, MessageKey, MessageRecord, ProcessRequest,
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use script::ScriptedServer;

/// 2024-01-01T00:00:00Z.
const NOW_MS: i64 = 1_704_067_200_000;
/// The bytes of secret keys, unless a test sets others.
const SECRET: u8 = 7;
/// The longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A clock that stands still, or advances by a step whenever it is read.
pub struct TestClock {
    ms: AtomicI64,
    step_ms: AtomicI64,
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(self.ms.fetch_add(self.step_ms.load(Ordering::Relaxed), Ordering::Relaxed))
    }
}

/// The only node; counts how often it was asked for its duty.
#[derive(Default)]
pub struct Alone(AtomicI64);

#[async_trait]
impl MonitorNode for Alone {
    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

/// A tenant `default` that sends through `relay`, and its mailbox `inbox`, on a scripted server.
pub struct TestGateway {
    pub store: Arc<MemoryStore>,
    pub clock: Arc<TestClock>,
    pub depot: Arc<BlobStorage>,
    pub mail_server: ScriptedServer,
    pub node: Arc<Alone>,
    /// The certificates that signatures of certified mail must lead to.
    pub trust: TrustStore,
    /// The bytes of its secret key.
    pub secret: u8,
}

impl TestGateway {
    pub async fn new(start: WatchStart, roles: &[MailboxRole]) -> Self {
        Self::with(TenantSettings::default(), start, roles).await
    }

    pub async fn with(settings: TenantSettings, start: WatchStart, roles: &[MailboxRole]) -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock { ms: AtomicI64::new(NOW_MS), step_ms: AtomicI64::new(0) });
        let tenant = Tenant {
            default_account: Some("relay".parse().unwrap()),
            // A test tenant, so that its sandbox counts as an account that sends.
            settings: TenantSettings { test: true, ..settings },
            ..Tenant::new(tenant(), "Default", clock.now())
        };
        assert!(store.create_tenant(tenant).await.unwrap());
        assert!(store.create_account(account()).await.unwrap());
        let gateway = Self {
            store,
            clock,
            depot: Arc::new(BlobStorage::memory()),
            mail_server: ScriptedServer::default(),
            node: Arc::default(),
            trust: TrustStore::default(),
            secret: SECRET,
        };
        gateway.change(DirectoryChange::CreateMailbox(mailbox(start, roles))).await;
        gateway
    }

    pub async fn change(&self, change: DirectoryChange) {
        assert_eq!(self.store.change(change, None).await.unwrap(), ChangeResult::Done);
    }

    /// Makes the tenant one whose mail must leave, or a test tenant again.
    pub async fn set_test(&self, test: bool) {
        let found = self.store.tenant(&tenant()).await.unwrap().unwrap();
        let (version, settings) = (found.version, TenantSettings { test, ..found.settings.clone() });
        let changed = Tenant { settings, version: version + 1, ..found };
        self.change(DirectoryChange::UpdateTenant(changed, version)).await;
    }

    pub async fn rule(&self, id: &str, position: i64, content: Value) {
        self.rule_at(&key(), id, position, content).await;
    }

    /// A rule of any mailbox; its id is the mailbox's with this suffix.
    pub async fn rule_of(&self, key: &MailboxKey, id: &str, content: Value) {
        self.rule_at(key, &format!("{}-{id}", key.mailbox), 1, content).await;
    }

    async fn rule_at(&self, key: &MailboxKey, id: &str, position: i64, content: Value) {
        let content = serde_json::from_value(content).unwrap();
        assert_eq!(postway_inbound::check_rule(&content), []);
        let at = self.clock.now();
        self.change(DirectoryChange::CreateRule(InboundRule {
            tenant: key.tenant.clone(),
            id: id.parse().unwrap(),
            mailbox: key.mailbox.clone(),
            position,
            active: true,
            content,
            version: 1,
            created_at: at,
            updated_at: at,
        }))
        .await;
    }

    fn secret_key(&self) -> SecretKey {
        SecretKey::from_bytes(&[self.secret; 32]).unwrap()
    }

    pub fn door(&self) -> Arc<Door> {
        let guard = Arc::new(AddressGuard::with_loopback());
        Arc::new(Door::new(DoorParts {
            store: self.store.clone(),
            depot: self.depot.clone(),
            clock: self.clock.clone(),
            secret_key: Arc::new(self.secret_key()),
            http: HttpClient::new(guard, HttpSettings::default()),
            fetch: FetchConfig::default(),
            limits: IntakeLimits::default(),
            mail_domain: "postway.example".to_owned(),
            public_url: None,
        }))
    }

    pub fn monitor(&self, source: Arc<dyn FolderSource>) -> Monitor {
        Monitor::new(MonitorParts {
            store: self.store.clone(),
            depot: self.depot.clone(),
            clock: self.clock.clone(),
            source,
            node: self.node.clone(),
            poll: Duration::from_millis(20),
        })
    }

    pub fn router(&self, source: Arc<dyn FolderSource>, incarnation: Incarnation) -> MailProcessor {
        MailProcessor::new(MailProcessorParts {
            store: self.store.clone(),
            depot: self.depot.clone(),
            door: self.door(),
            clock: self.clock.clone(),
            secret_key: Arc::new(self.secret_key()),
            source,
            trust: self.trust.clone(),
            incarnation,
            poll: Duration::from_millis(20),
        })
    }

    /// Runs both loops until a condition holds.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, so: impl Fn() -> F) {
        let stop = CancellationToken::new();
        let source: Arc<dyn FolderSource> = Arc::new(self.mail_server.clone());
        let incarnation = Incarnation::new(self.clock.now(), &mut rand::rng());
        let monitor = tokio::spawn(self.monitor(source.clone()).run(stop.clone()));
        let router = tokio::spawn(self.router(source, incarnation).run(stop.clone()));
        wait_until(what, so).await;
        stop.cancel();
        monitor.await.unwrap();
        router.await.unwrap();
    }

    /// Runs both loops until this many mails are settled.
    pub async fn settled(&self, count: usize) -> Vec<InboundView> {
        self.until("mail is settled", || async {
            let mails = self.mails().await;
            mails.len() >= count
                && mails.iter().all(|mail| {
                    mail.state.is_settled() && mail.due_at.is_none_or(|due| due > self.clock.now())
                })
        })
        .await;
        let mails = self.mails().await;
        assert_eq!(mails.len(), count, "{mails:#?}");
        mails
    }

    /// All inbound mail, the oldest first.
    pub async fn mails(&self) -> Vec<InboundView> {
        let mut mails = self.store.inbound(&tenant(), &InboundFilter::default(), None, 10_000).await.unwrap();
        mails.sort_by_key(|mail| (mail.imap_uid, mail.uid));
        mails
    }

    /// All messages, the oldest first.
    pub async fn messages(&self) -> Vec<MessageRecord> {
        let mut found =
            self.store.messages(&tenant(), &MessageFilter::default(), None, 10_000).await.unwrap();
        found.reverse();
        let mut records = Vec::new();
        for one in found {
            records.push(self.store.message(&tenant(), &MessageKey::Uid(one.uid)).await.unwrap().unwrap());
        }
        records
    }

    pub async fn raw(&self, uid: MessageUid) -> String {
        let raw = self.store.raw(&tenant(), uid).await.unwrap().unwrap();
        let raw = self.depot.resolve(&tenant(), raw).await.unwrap();
        String::from_utf8_lossy(&raw).into_owned()
    }

    /// Accepts a message, as an application sends it.
    pub async fn send(&self, to: &[&str]) -> MessageUid {
        let body = json!({"from": "Shop <shop@example.com>", "to": to, "subject": "Your order", "text": "t"});
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

    /// Accepts a message and marks it as sent, waiting for a receipt if a time is given.
    pub async fn sent(&self, to: &[&str], awaits_receipt: Option<Time>) -> MessageUid {
        let uid = self.send(to).await;
        let (store, now): (Shared, _) = (self.store.clone(), self.clock.now());
        let key = AccountKey { tenant: tenant(), account: "relay".parse().unwrap() };
        let mut claimed = store.claim(stage::request(&key, 1, now, 1, false)).await.unwrap().remove(0);
        assert_eq!(claimed.uid, uid);
        assert!(stage::commit_wire(&store, &mut claimed, now).await);
        let sent =
            MessageChange { awaits_receipt, ..stage::outcome(&claimed, true, AttemptOutcome::Sent, now) };
        assert!(stage::apply(&store, sent).await);
        uid
    }

    pub fn advance(&self, by: Duration) {
        self.clock.ms.fetch_add(by.as_millis() as i64, Ordering::Relaxed);
    }

    /// From now on no two things happen in the same millisecond.
    pub fn tick(&self) {
        self.clock.step_ms.store(1, Ordering::Relaxed);
    }

    /// How often the monitor has polled.
    pub fn looks(&self) -> i64 {
        self.node.0.load(Ordering::Relaxed)
    }

    /// A process that claims and then does nothing.
    pub fn claimer() -> Incarnation {
        use rand::SeedableRng;
        Incarnation::new(Time::from_millis(NOW_MS), &mut rand::rngs::StdRng::seed_from_u64(7))
    }

    /// Claims mail for [`TestGateway::claimer`].
    pub async fn claim(&self, limit: u32) -> Vec<MailToProcess> {
        let now = self.clock.now();
        let lease = LeaseGrant {
            incarnation: Self::claimer(),
            token: LeaseToken::new(&mut rand::rng()),
            until: now.plus(Duration::from_secs(60)),
        };
        self.store.claim_inbound(ProcessRequest::new(lease, now, limit)).await.unwrap()
    }

    /// Reclaims leases of other incarnations and expired ones; returns their number.
    pub async fn reclaim(&self, alive: Incarnation) -> u32 {
        self.store.reclaim_inbound(&[alive], self.clock.now(), 1_000).await.unwrap()
    }

    /// The claiming process dies, and its mail is reclaimed and due again.
    pub async fn die(&self) {
        let survivor = Incarnation::new(self.clock.now(), &mut rand::rng());
        assert!(self.reclaim(survivor).await > 0);
        self.advance(Duration::from_secs(10));
    }

    pub async fn state(&self) -> postway_store::record::MailboxState {
        self.store.mailbox(&key()).await.unwrap().unwrap().1
    }
}

pub async fn wait_until<F: Future<Output = bool>>(what: &str, so: impl Fn() -> F) {
    let waiting = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "waited in vain: {what}");
}

pub fn tenant() -> TenantId {
    "default".parse().unwrap()
}

pub fn key() -> MailboxKey {
    MailboxKey { tenant: tenant(), mailbox: "inbox".parse().unwrap() }
}

pub fn secret_key() -> SecretKey {
    SecretKey::from_bytes(&[SECRET; 32]).unwrap()
}

fn account() -> Account {
    Account {
        tenant: tenant(),
        id: "relay".parse().unwrap(),
        settings: AccountSettings::sandbox(),
        secret: None,
        version: 1,
        created_at: Time::from_millis(NOW_MS),
        updated_at: Time::from_millis(NOW_MS),
    }
}

pub fn mailbox(start: WatchStart, roles: &[MailboxRole]) -> WatchedMailbox {
    WatchedMailbox {
        tenant: tenant(),
        id: "inbox".parse().unwrap(),
        settings: MailboxSettings {
            host: "imap.example.net".to_owned(),
            port: 993,
            tls: MailboxTls::Implicit,
            ca_pem: None,
            username: "support@example.net".to_owned(),
            auth: MailboxAuth::Password,
            oauth: None,
            folder: "INBOX".to_owned(),
            roles: roles.to_vec(),
            active: true,
            description: None,
            poll_seconds: 5,
            start,
            proxy: None,
            all_tenants: false,
            attempts_max: 3,
            on_doubt: None,
            mail_bytes_max: None,
            authserv_id: None,
            addresses: Vec::new(),
        },
        secret: None,
        version: 1,
        created_at: Time::from_millis(NOW_MS),
        updated_at: Time::from_millis(NOW_MS),
    }
}

/// A mail of a person, different from all others.
pub fn mail(number: usize) -> Vec<u8> {
    format!(
        "Return-Path: <ada@example.org>\r\nFrom: Ada <ada@example.org>\r\nTo: support@example.net\r\nSubject: Question {number}\r\n\
         Message-ID: <q{number}@example.org>\r\nDate: Mon, 1 Jan 2024 00:00:00 +0000\r\n\r\nHello {number}\r\n"
    )
    .into_bytes()
}

pub fn states(mails: &[InboundView]) -> Vec<InboundState> {
    mails.iter().map(|mail| mail.state).collect()
}
