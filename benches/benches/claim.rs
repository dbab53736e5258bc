//! What a claim costs with little and with much in the queue.
//!
//! Fills a fresh SQLite store to each size, then claims and gives back a hundred messages many times, and prints the
//! median and the ratio to the smallest queue. `POSTWAY_BENCH_SIZES=1000,100000` chooses other sizes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use bytes::Bytes;
use postway_domain::{
    EventKind, Incarnation, Lane, LeaseToken, MessageUid, Priority, RecipientKind, State, Status, Time,
    message::OnDoubt,
};
use postway_store::{
    Store,
    record::{
        AccountKey, AccountWant, Change, ClaimRequest, Claimed, Content, Fence, Lease, NewEvent, NewMessage,
        NewRecipient,
    },
    sqlite::SqliteStore,
};

const SIZES: &str = "1000,100000,1000000";
const CLAIMED: u32 = 100;
const ROUNDS: usize = 60;
const FILL_BATCH: usize = 1_000;
const START_MS: i64 = 1_700_000_000_000;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` runs this too; only `cargo bench` asks for figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let sizes = std::env::var("POSTWAY_BENCH_SIZES").unwrap_or_else(|_| SIZES.to_owned());
    let runtime = tokio::runtime::Runtime::new()?;
    let mut base = None;
    println!("{:>10}  {:>14}  {:>14}  {:>6}", "queued", "claim p50", "claim p99", "ratio");
    for size in sizes.split(',') {
        let size: usize = size.trim().parse().context("POSTWAY_BENCH_SIZES holds numbers")?;
        let mut times = runtime.block_on(measure(size))?;
        times.sort();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        let base = *base.get_or_insert(p50);
        let ratio = p50.as_secs_f64() / base.as_secs_f64();
        println!("{size:>10}  {p50:>14.2?}  {p99:>14.2?}  {ratio:>6.2}");
    }
    Ok(())
}

async fn measure(size: usize) -> anyhow::Result<Vec<Duration>> {
    let folder = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.path().join("postway.db")).await?);
    let lane = Lane {
        tenant: "default".parse()?,
        account: "relay".parse()?,
        priority: Priority::Normal,
        batch: None,
    };
    let key = AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() };
    let mut stored = 0;
    while stored < size {
        let count = FILL_BATCH.min(size - stored);
        let batch =
            (stored..stored + count).map(|index| message(&lane, index)).collect::<anyhow::Result<_>>()?;
        store.accept(batch).await?;
        stored += count;
    }
    let now = Time::from_millis(START_MS + 100_000_000);
    let incarnation = Incarnation::new(now, &mut rand::rng());
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let lease = Lease {
            incarnation,
            token: LeaseToken::new(&mut rand::rng()),
            until: now.plus(Duration::from_secs(600)),
        };
        let wants = vec![AccountWant::unlimited(key.clone(), CLAIMED, false)];
        let request = ClaimRequest { lease, now, wants, inline_bytes_max: 65_536 };
        let started = Instant::now();
        let claimed = store.claim(request).await?;
        times.push(started.elapsed());
        anyhow::ensure!(claimed.len() == CLAIMED as usize, "claimed {}", claimed.len());
        let held = store.apply(claimed.iter().map(|job| give_back(job, now)).collect()).await?;
        anyhow::ensure!(held.iter().all(|held| *held), "a message could not be given back");
    }
    store.close().await;
    // The first rounds prepare statements and warm caches.
    times.drain(..10);
    Ok(times)
}

fn message(lane: &Lane, index: usize) -> anyhow::Result<NewMessage> {
    let at = Time::from_millis(START_MS + index as i64);
    let uid = MessageUid::new(at, &mut rand::rng());
    Ok(NewMessage {
        uid,
        lane: lane.clone(),
        client_id: None,
        idempotency: None,
        fingerprint: [0; 32],
        state: State::Ready,
        due_at: Some(at),
        created_at: at,
        expires_at: None,
        on_doubt: OnDoubt::Resend,
        recipients: vec![NewRecipient {
            address: format!("user{}@example.net", index % 5_000).parse()?,
            kind: RecipientKind::To,
        }],
        content: Content {
            sender: "shop@example.com".to_owned(),
            message_id: format!("{uid}@example.com"),
            subject: "Hello".to_owned(),
            request_id: None,
            external_id: None,
            tags: Vec::new(),
            metadata: None,
            eight_bit: false,
            smtputf8: false,
            raw: Bytes::from(vec![b'x'; 512]),
        },
        collapse_key: None,
        events: vec![
            NewEvent { kind: EventKind::Accepted, data: None },
            NewEvent { kind: EventKind::Ready, data: None },
        ],
    })
}

fn give_back(job: &Claimed, now: Time) -> Change {
    Change {
        uid: job.uid,
        fence: Fence { status: Status::Sending, token: Some(job.token), version: Some(job.version) },
        to: State::Ready,
        at: now,
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
    }
}
