//! The submission listener over real sockets, on the in-memory store: TLS, limits, keys, stopping.

#![allow(missing_docs, clippy::unwrap_used)]

mod limits;
mod mails;
mod networks;
mod stopping;
mod tls;

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{
    Account, AccountSettings, Clock, Incarnation, KeyDigest, LeaseToken, MessageUid, Tenant, TenantId,
    TenantSettings, Time,
    key::KeyRestrictions,
    scram::{ITERATIONS, SALT_BYTES, ScramVerifier, client_proof},
    secret::SecretKey,
};
use postway_intake::{
    Door, DoorParts, FetchConfig, IntakeLimits,
    smtp::{
        AdmittedSender, KeylessClient, ProvenKey, ScramCandidate, ScramOffer, SmtpAuthenticator, SmtpConfig,
        SmtpDenial, SmtpListener, SmtpService,
    },
};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_store::{
    DirectoryStore, Read, StoreError, WorkStore,
    blob::BlobStorage,
    memory::MemoryStore,
    record::{
        AccountKey, AccountWant, ClaimRequest, ClaimedMessage, LeaseGrant, MessageFilter, MessageKey,
        MessageRecord,
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// 2024-01-01T00:00:00Z.
const NOW_MS: i64 = 1_704_067_200_000;
const PATIENCE: Duration = Duration::from_secs(60);
const MAIL: &str = "From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nSubject: Hello\r\n\r\nHi.\r\n";

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Time {
        Time::from_millis(NOW_MS)
    }
}

/// Admits clients with a key that was not revoked, while it is available.
#[derive(Default)]
struct TestKeys {
    revoked: Mutex<HashSet<String>>,
    away: AtomicBool,
}

#[async_trait::async_trait]
impl SmtpAuthenticator for TestKeys {
    async fn admit(&self, username: &str, key: &[u8], _peer: IpAddr) -> Result<AdmittedSender, SmtpDenial> {
        if self.away.load(Ordering::Relaxed) {
            return Err(SmtpDenial::Unavailable(StoreError::Unavailable("away".to_owned())));
        }
        let key = String::from_utf8_lossy(key).into_owned();
        match key.starts_with("good") && !self.revoked.lock().unwrap().contains(&key) {
            true if key == "good-bound" => {
                let recipients = vec!["test.example".parse().unwrap()];
                let restrictions = KeyRestrictions { senders: Vec::new(), recipients };
                Ok(AdmittedSender {
                    tenant: username.parse().unwrap(),
                    restrictions: Some(Arc::new(restrictions)),
                })
            }
            true => Ok(AdmittedSender::unbound(username.parse().unwrap())),
            false if key == "later" => Err(SmtpDenial::Later("too many wrong keys: wait".to_owned())),
            false => Err(SmtpDenial::Refused("this key does not open".to_owned())),
        }
    }

    async fn scram_offer(&self, username: &str, _peer: IpAddr) -> Result<ScramOffer, SmtpDenial> {
        let salt = [5; SALT_BYTES];
        let candidate = |key: &str| ScramCandidate {
            verifier: ScramVerifier::of(key, salt),
            key: ProvenKey::Tenant(KeyDigest::of(key.as_bytes())),
        };
        let candidates = if username == "default" { vec![candidate("good")] } else { Vec::new() };
        Ok(ScramOffer { salt: salt.to_vec(), iterations: ITERATIONS, candidates })
    }

    async fn admit_proven(&self, key: &ProvenKey, peer: IpAddr) -> Result<AdmittedSender, SmtpDenial> {
        assert_eq!(*key, ProvenKey::Tenant(KeyDigest::of(b"good")));
        self.admit("default", b"good", peer).await
    }

    async fn refuse_proof(&self, _peer: IpAddr) -> SmtpDenial {
        SmtpDenial::Refused("this key does not open by SCRAM".to_owned())
    }

    async fn admit_keyless(&self, open: &KeylessClient) -> Result<AdmittedSender, SmtpDenial> {
        match self.away.load(Ordering::Relaxed) {
            true => Err(SmtpDenial::Unavailable(StoreError::Unavailable("away".to_owned()))),
            false => Ok(AdmittedSender::unbound(open.tenant.clone())),
        }
    }
}

/// A listener with its store and keys.
struct TestGateway {
    store: Arc<MemoryStore>,
    door: Arc<Door>,
    keys: Arc<TestKeys>,
    address: Option<SocketAddr>,
    tls_address: Option<SocketAddr>,
    service: watch::Sender<Option<SmtpService>>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl TestGateway {
    async fn new() -> Self {
        Self::with(config(), TenantSettings::default()).await
    }

    async fn with(config: SmtpConfig, settings: TenantSettings) -> Self {
        let gateway = Self::unopened(config, settings).await;
        let service = SmtpService { door: gateway.door.clone(), gatekeeper: gateway.keys.clone() };
        gateway.service.send_replace(Some(service));
        gateway
    }

    /// A listener without a store yet.
    async fn unopened(config: SmtpConfig, settings: TenantSettings) -> Self {
        let (store, now) = (Arc::new(MemoryStore::new()), FixedClock.now());
        let account: postway_domain::AccountId = "relay".parse().unwrap();
        let default_account = Some(account.clone());
        // Mail that the sandbox captures counts as sent.
        let settings = TenantSettings { test: true, ..settings };
        let made = Tenant { default_account, settings, ..Tenant::new(tenant(), "Default", now) };
        assert!(store.create_tenant(made).await.unwrap());
        let account = Account {
            tenant: tenant(),
            id: account,
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        assert!(store.create_account(account).await.unwrap());
        let door = Arc::new(Door::new(DoorParts {
            store: store.clone(),
            depot: Arc::new(BlobStorage::memory()),
            clock: Arc::new(FixedClock),
            secret_key: Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap()),
            http: HttpClient::new(Arc::new(AddressGuard::new(Vec::new())), HttpSettings::default()),
            fetch: FetchConfig::default(),
            limits: IntakeLimits { message_bytes_max: 64 * 1024, ..IntakeLimits::default() },
            mail_domain: "postway.example".to_owned(),
            public_url: None,
        }));
        let listener = SmtpListener::bind(config).await.unwrap();
        let (address, tls_address) = (listener.address(), listener.tls_address());
        let (service, served) = watch::channel(None);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.run(served, stop.clone()));
        Self { store, door, keys: Arc::default(), address, tls_address, service, stop, serving }
    }

    /// A client after the greeting.
    async fn client(&self) -> SmtpClient<TcpStream> {
        let mut client = self.connect().await;
        assert!(client.reply().await.starts_with("220 "));
        client
    }

    async fn connect(&self) -> SmtpClient<TcpStream> {
        SmtpClient::new(TcpStream::connect(self.address.unwrap()).await.unwrap())
    }

    /// A client after login.
    async fn sender(&self) -> SmtpClient<TcpStream> {
        let mut client = self.client().await;
        client.log_in("good").await;
        client
    }

    async fn count(&self) -> usize {
        self.store.messages(&tenant(), &MessageFilter::default(), None, 10_000).await.unwrap().len()
    }

    async fn stored(&self, uid: MessageUid) -> MessageRecord {
        self.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().expect("the message is stored")
    }

    /// The envelope sender of a claimed message.
    async fn sender_of(&self, uid: MessageUid) -> String {
        self.claimed().await.into_iter().find(|claimed| claimed.uid == uid).expect("it is due").sender
    }

    /// Claims a message as a worker would.
    async fn claimed(&self) -> Vec<ClaimedMessage> {
        let (now, mut random) = (FixedClock.now(), rand::rng());
        let account = AccountKey { tenant: tenant(), account: "relay".parse().unwrap() };
        let request = ClaimRequest {
            wants: vec![AccountWant::unlimited(account, 1_000, false)],
            lease: LeaseGrant {
                incarnation: Incarnation::new(now, &mut random),
                token: LeaseToken::new(&mut random),
                until: now.plus(Duration::from_secs(60)),
            },
            now,
            inline_bytes_max: 0,
        };
        self.store.claim(request).await.unwrap()
    }

    async fn raw(&self, uid: MessageUid) -> String {
        let raw = self.store.raw(&tenant(), uid).await.unwrap().expect("the message is stored");
        String::from_utf8(self.door.resolve(&tenant(), raw).await.unwrap().to_vec()).unwrap()
    }
}

/// A configuration with a free port and short timeouts.
fn config() -> SmtpConfig {
    let mut config = SmtpConfig { listen: Some(loopback()), ..SmtpConfig::new("mx.example") };
    config.timeouts.wrong_key = Duration::from_millis(1);
    config
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn tenant() -> TenantId {
    "default".parse().unwrap()
}

/// The message uid in the reply to an accepted mail.
fn uid_of(reply: &str) -> MessageUid {
    let uid = reply.trim_end().strip_prefix("250 2.0.0 Ok: queued as ");
    uid.unwrap_or_else(|| panic!("not taken: {reply}")).parse().unwrap()
}

/// The client side of a session.
struct SmtpClient<S> {
    stream: S,
    unread: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> SmtpClient<S> {
    fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    async fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// The next reply with all its lines; empty when the connection has ended.
    async fn reply(&mut self) -> String {
        loop {
            if let Some(end) = end_of_reply(&self.unread) {
                return String::from_utf8(self.unread.drain(..end).collect()).unwrap();
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.unread)).await.expect("an answer");
            // A disconnected client may see a reset instead of an end.
            if read.unwrap_or(0) == 0 {
                return String::new();
            }
        }
    }

    /// Sends one line and returns the reply.
    async fn ask(&mut self, line: &str) -> String {
        self.say(&format!("{line}\r\n")).await;
        self.reply().await
    }

    async fn expect(&mut self, line: &str, code: &str) -> String {
        let reply = self.ask(line).await;
        assert!(reply.starts_with(code), "{line}: {reply:?}");
        reply
    }

    async fn log_in(&mut self, key: &str) {
        self.expect("EHLO me.example", "250").await;
        self.expect(&auth(key), "235").await;
    }

    /// Sends a mail and returns the reply.
    async fn send(&mut self, mail: &str) -> String {
        self.send_from("<shop@example.com>", mail).await
    }

    /// Sends a mail from another sender.
    async fn send_from(&mut self, sender: &str, mail: &str) -> String {
        self.expect(&format!("MAIL FROM:{sender}"), "250").await;
        self.expect("RCPT TO:<ada@example.net>", "250").await;
        self.expect("DATA", "354").await;
        self.ask(&format!("{mail}.")).await
    }

    /// Reads bytes until the connection ends.
    async fn end(&mut self) {
        let ended = timeout(PATIENCE, self.stream.read_to_end(&mut self.unread)).await.expect("an end");
        drop(ended);
    }

    /// Whether the server has ended the connection.
    async fn is_over(&mut self) -> bool {
        self.reply().await.is_empty()
    }
}

fn auth(key: &str) -> String {
    format!("AUTH PLAIN {}", BASE64_STANDARD.encode(format!("\0default\0{key}")))
}

fn end_of_reply(bytes: &[u8]) -> Option<usize> {
    let mut end = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        match line {
            [_, _, _, b' ', .., b'\n'] => return Some(end),
            [.., b'\n'] => {}
            _ => return None,
        }
    }
    None
}
