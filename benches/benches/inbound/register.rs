//! Registering mails: from a real Dovecot into SQLite, until the mailbox is caught up with.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use postway_domain::{
    Clock, Tenant, Time, WatchedMailbox,
    mailbox::{MailboxAuth, MailboxRole, MailboxSettings, MailboxTls, WatchStart},
    secret::SecretKey,
};
use postway_inbound::{ImapSource, Monitor, MonitorNode, MonitorParts};
use postway_net::AddressGuard;
use postway_store::{
    DirectoryStore, InboundStore, Store, StoreError,
    blob::BlobStorage,
    record::{DirectoryChange, MailboxKey},
    sqlite::SqliteStore,
};
use postway_testkit::dovecot::{Dovecot, PASSWORD};
use tokio_util::sync::CancellationToken;

use crate::cpu_seconds;

const MAILS: usize = 10_000;
const USER: &str = "bench";

struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Time {
        #[expect(clippy::disallowed_methods, reason = "a bench runs in real time")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(now.as_millis()).unwrap_or(0))
    }
}

struct OnDuty;

#[async_trait]
impl MonitorNode for OnDuty {
    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

fn mail(n: usize) -> Vec<u8> {
    let mut mail = format!(
        "From: customer-{n}@example.org\r\nTo: desk@example.com\r\nSubject: Order {n}\r\nMessage-ID: <{n}@example.org>\r\n\r\n"
    );
    while mail.len() < 2_048 {
        mail.push_str("Some words of which a mail is made, and then some more of them.\r\n");
    }
    mail.into_bytes()
}

pub async fn print() -> anyhow::Result<()> {
    let dovecot = Dovecot::start();
    let mails: Vec<Vec<u8>> = (0..MAILS).map(mail).collect();
    for some in mails.chunks(1_000) {
        dovecot.append_all(USER, "INBOX", some);
    }
    let folder = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(&folder.path().join("postway.db")).await?);
    let secret_key = Arc::new(SecretKey::from_bytes(&[7; 32])?);
    let key = MailboxKey { tenant: "default".parse()?, mailbox: "desk".parse()? };
    let now = RealClock.now();
    store.create_tenant(Tenant::new(key.tenant.clone(), "default", now)).await?;
    let secret = serde_json::json!({"password": PASSWORD}).to_string();
    let settings = MailboxSettings {
        host: "127.0.0.1".to_owned(),
        port: dovecot.port(),
        tls: MailboxTls::None,
        ca_pem: None,
        username: USER.to_owned(),
        auth: MailboxAuth::Password,
        oauth: None,
        folder: "INBOX".to_owned(),
        roles: vec![MailboxRole::Forward],
        active: true,
        description: None,
        poll_seconds: 5,
        start: WatchStart::Beginning,
        proxy: None,
        all_tenants: false,
        attempts_max: 3,
        addresses: Vec::new(),
        authserv_id: None,
        on_doubt: None,
        mail_bytes_max: None,
    };
    let mailbox = WatchedMailbox {
        secret: Some(secret_key.seal(&WatchedMailbox::sealing_context(&key.tenant, &key.mailbox), &secret)?),
        tenant: key.tenant.clone(),
        id: key.mailbox.clone(),
        settings,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    store.change(DirectoryChange::CreateMailbox(mailbox), None).await?;
    let monitor = Monitor::new(MonitorParts {
        store: store.clone() as Arc<dyn Store>,
        depot: Arc::new(BlobStorage::memory()),
        clock: Arc::new(RealClock),
        source: Arc::new(ImapSource::new(secret_key, Arc::new(AddressGuard::with_loopback()))),
        node: Arc::new(OnDuty),
        poll: MonitorParts::POLL,
    });
    let stop = CancellationToken::new();
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let watching = tokio::spawn(monitor.run(stop.clone()));
    let took = loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let state = store.mailbox(&key).await?.map(|(_, state)| state);
        if state.is_some_and(|state| state.scanned_at.is_some() && state.lag() == Some(0)) {
            break began.elapsed();
        }
        anyhow::ensure!(
            began.elapsed() < Duration::from_secs(300),
            "the mailbox was not read in five minutes"
        );
    };
    let per_second = MAILS as f64 / took.as_secs_f64();
    let cpu = (cpu_seconds()? - cpu) * 1_000.0 / MAILS as f64;
    println!(
        "registered: {per_second:.0} mails/s from Dovecot into SQLite ({MAILS} mails of 2 KB, {cpu:.3} CPU-s per 1,000)"
    );
    stop.cancel();
    watching.await?;
    Ok(())
}
