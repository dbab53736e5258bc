//! A store to measure: filled, claimed from, and given back to.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use postway_domain::{
    Account, AccountSettings, EventKind, Incarnation, Lane, LeaseToken, MessagePriority, MessageState,
    MessageStatus, MessageUid, RecipientKind, Tenant, Time, id::BatchCode, message::OnDoubt,
};
use postway_store::{
    Store,
    mysql::MysqlStore,
    postgres::PostgresStore,
    record::{
        AccountKey, AccountWant, ClaimRequest, ClaimedMessage, DirectoryChange, LeaseGrant, MessageChange,
        MessageContent, NewEvent, NewMessage, NewRecipient, WriteFence,
    },
    sqlite::SqliteStore,
};
use tempfile::TempDir;

/// Messages in one claim.
pub const CLAIMED: u32 = 100;
/// When claims are made: all that was put into the queue is due.
pub fn now() -> Time {
    Time::from_millis(START_MS + 100_000_000)
}

const START_MS: i64 = 1_700_000_000_000;
const ROUNDS: usize = 60;
/// Rounds that prepare statements and warm caches.
const WARM_UP: usize = 10;
const FILL_BATCH: usize = 1_000;

/// A store with nothing in it.
pub struct Bench {
    pub store: Arc<dyn Store>,
    /// The folder of its file, if it is one; removed with it.
    _folder: TempDir,
}

/// Opens a fresh file, or the database that the environment names.
pub async fn open() -> anyhow::Result<Bench> {
    let folder = tempfile::tempdir()?;
    let store: Arc<dyn Store> = match std::env::var("POSTWAY_BENCH_DATABASE") {
        Ok(url) if url.starts_with("mysql:") => Arc::new(MysqlStore::open(&url).await?),
        Ok(url) => Arc::new(PostgresStore::open(&url).await?),
        Err(_) => Arc::new(SqliteStore::open(&folder.path().join("postway.db")).await?),
    };
    Ok(Bench { store, _folder: folder })
}

impl Bench {
    /// Makes a tenant with one account.
    pub async fn tenant(&self, id: &str) -> anyhow::Result<AccountKey> {
        let key = AccountKey { tenant: id.parse()?, account: "relay".parse()? };
        let at = Time::from_millis(START_MS);
        let account = Account {
            tenant: key.tenant.clone(),
            id: key.account.clone(),
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: at,
            updated_at: at,
        };
        let tenant = Tenant::new(key.tenant.clone(), id, at);
        self.store.change(DirectoryChange::CreateTenant(tenant, vec![account]), None).await?;
        Ok(key)
    }

    /// Puts messages into the queue; `place` chooses the lane of each.
    pub async fn fill<'a>(
        &self,
        size: usize,
        place: impl Fn(usize) -> (&'a AccountKey, Option<&'a BatchCode>),
    ) -> anyhow::Result<()> {
        self.fill_with(size, MessageState::Ready, place).await
    }

    /// Stores messages that have ended already.
    pub async fn fill_ended<'a>(
        &self,
        size: usize,
        place: impl Fn(usize) -> (&'a AccountKey, Option<&'a BatchCode>),
    ) -> anyhow::Result<()> {
        self.fill_with(size, MessageState::Suppressed, place).await
    }

    async fn fill_with<'a>(
        &self,
        size: usize,
        state: MessageState,
        place: impl Fn(usize) -> (&'a AccountKey, Option<&'a BatchCode>),
    ) -> anyhow::Result<()> {
        for start in (0..size).step_by(FILL_BATCH) {
            let numbers = start..(start + FILL_BATCH).min(size);
            let messages = numbers.map(|index| {
                let (key, batch) = place(index);
                message(lane(key, batch), state, index)
            });
            self.store.accept(messages.collect::<anyhow::Result<_>>()?).await?;
        }
        Ok(())
    }

    /// Claims a hundred messages for what `wants` says, and gives them back, many times.
    pub async fn claim(
        &self,
        mut wants: impl FnMut(usize) -> Vec<(AccountKey, u32)>,
    ) -> anyhow::Result<Times> {
        let incarnation = Incarnation::new(now(), &mut rand::rng());
        let mut times = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            let lease = LeaseGrant {
                incarnation,
                token: LeaseToken::new(&mut rand::rng()),
                until: now().plus(Duration::from_secs(600)),
            };
            let wants = wants(round)
                .into_iter()
                .map(|(key, room)| AccountWant::unlimited(key, room, false))
                .collect();
            let request = ClaimRequest { lease, now: now(), wants, inline_bytes_max: 65_536 };
            let started = Instant::now();
            let claimed = self.store.claim(request).await?;
            times.push(started.elapsed());
            anyhow::ensure!(claimed.len() == CLAIMED as usize, "claimed {}", claimed.len());
            let held = self.store.apply(claimed.iter().map(give_back).collect()).await?;
            anyhow::ensure!(held.iter().all(|held| *held), "a message could not be given back");
        }
        times.drain(..WARM_UP);
        Ok(Times::of(times))
    }
}

/// Times in their order.
pub struct Times(Vec<Duration>);

impl Times {
    /// Sorts them.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    pub fn p50(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    pub fn p99(&self) -> Duration {
        self.0[self.0.len() * 99 / 100]
    }
}

/// The first figure, which the others are compared with.
#[derive(Default)]
pub struct Base(Option<Duration>);

impl Base {
    pub fn ratio(&mut self, time: Duration) -> f64 {
        time.as_secs_f64() / self.0.get_or_insert(time).as_secs_f64()
    }
}

pub fn lane(key: &AccountKey, batch: Option<&BatchCode>) -> Lane {
    Lane {
        tenant: key.tenant.clone(),
        account: key.account.clone(),
        priority: MessagePriority::Normal,
        batch: batch.cloned(),
        destination: None,
    }
}

pub fn message(lane: Lane, state: MessageState, index: usize) -> anyhow::Result<NewMessage> {
    let at = Time::from_millis(START_MS + index as i64);
    let uid = MessageUid::new(at, &mut rand::rng());
    Ok(NewMessage {
        uid,
        lane,
        client_id: None,
        idempotency: None,
        fingerprint: [0; 32],
        state,
        due_at: (state == MessageState::Ready).then_some(at),
        created_at: at,
        expires_at: None,
        on_doubt: OnDoubt::Resend,
        error: None,
        recipients: vec![NewRecipient {
            address: format!("user{}@example.net", index % 5_000).parse()?,
            kind: RecipientKind::To,
        }],
        content: MessageContent {
            sender: "shop@example.com".to_owned(),
            message_id: format!("{uid}@example.com"),
            subject: "Hello".to_owned(),
            request_id: None,
            external_id: None,
            tags: Vec::new(),
            metadata: None,
            eight_bit: false,
            smtputf8: false,
            raw: Bytes::from(vec![b'x'; 512]).into(),
            payload: None,
            sensitive: false,
            dsn: None,
        },
        batch_key: None,
        collapse_key: None,
        recipient: None,
        settled: None,
        trace: None,
        events: vec![
            NewEvent { kind: EventKind::Accepted, data: None },
            NewEvent { kind: EventKind::Ready, data: None },
        ],
    })
}

fn give_back(job: &ClaimedMessage) -> MessageChange {
    MessageChange {
        uid: job.uid,
        fence: WriteFence {
            status: MessageStatus::Sending,
            token: Some(job.token),
            version: Some(job.version),
        },
        to: MessageState::Ready,
        at: now(),
        due_at: Some(job.created_at),
        keep_token: false,
        retries: None,
        doubts: None,
        lost_leases: None,
        exhausted: false,
        error: None,
        events: vec![NewEvent { kind: EventKind::Ready, data: None }],
        recipients: Vec::new(),
        ends_open_recipients: None,
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: false,
        awaits_receipt: None,
    }
}
