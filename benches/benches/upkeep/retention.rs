//! Removing messages: each tenant in a turn of its own, and all tenants in each slice; and what accepting
//! loses beside it.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use postway_domain::Time;
use postway_store::record::{AccountKey, ExpungeRequest};

use super::{ACCEPTED, accept, filled, work};

/// Messages of one slice: as it was with a turn for each tenant, and as it is.
const IN_TURNS: u32 = 200;
const SHARED: u32 = 512;
/// How long accepting is measured alone, and beside the removal.
const MEASURED: Duration = Duration::from_secs(5);

fn requests(keys: &[AccountKey], limit: u32) -> Vec<ExpungeRequest> {
    let now = Time::from_millis(work::now().as_millis() + 1_000_000_000);
    let request = |key: &AccountKey| ExpungeRequest {
        tenant: key.tenant.clone(),
        reported_before: now,
        unreported_before: now,
        now,
        recipient_key: [7; 32],
        limit,
    };
    keys.iter().map(request).collect()
}

async fn tell_all(bench: &work::Bench) -> anyhow::Result<()> {
    while bench.store.sequence(2_048).await? + bench.store.fan_out(work::now(), 2_048).await? > 0 {}
    Ok(())
}

/// One slice for those of the tenants that have more; how many messages it removed.
async fn slice(bench: &work::Bench, left: &mut Vec<ExpungeRequest>) -> anyhow::Result<u32> {
    let done = bench.store.expunge_some(left.clone(), SHARED).await?;
    left.retain(|request| done.unseen.contains(&request.tenant) || done.unfinished.contains(&request.tenant));
    Ok(done.removed)
}

pub async fn print(tenants: &[usize], messages: usize) -> anyhow::Result<()> {
    println!("removing {messages} messages");
    println!(
        "{:>8} {:>16} {:>16} {:>28}",
        "tenants", "in turns/s", "in shared/s", "accepting beside it, ratio"
    );
    for tenants in tenants {
        let (bench, keys) = filled(*tenants, messages, "turns").await?;
        tell_all(&bench).await?;
        let began = Instant::now();
        for request in requests(&keys, IN_TURNS) {
            while bench.store.expunge(request.clone()).await? == IN_TURNS {}
        }
        let in_turns = messages as f64 / began.elapsed().as_secs_f64();
        drop(bench);

        let (bench, keys) = filled(*tenants, messages, "shared").await?;
        tell_all(&bench).await?;
        let (began, mut left, mut removed) = (Instant::now(), requests(&keys, SHARED), 0);
        while !left.is_empty() {
            removed += slice(&bench, &mut left).await?;
        }
        let shared = f64::from(removed) / began.elapsed().as_secs_f64();
        let beside = beside(*tenants, messages).await?;
        println!("{tenants:>8} {in_turns:>16.0} {shared:>16.0} {beside:>28.2}");
    }
    Ok(())
}

/// How much is accepted beside the removal, which rests as housekeeping does, against accepting alone.
async fn beside(tenants: usize, messages: usize) -> anyhow::Result<f64> {
    let (bench, keys) = filled(tenants, messages, "beside").await?;
    tell_all(&bench).await?;
    let (accepted, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let accepting = async {
        while !stop.load(Ordering::Relaxed) {
            let from = accepted.load(Ordering::Relaxed);
            // Later than what is removed.
            accept(&bench, &keys, 50_000_000 + from..50_000_000 + from + ACCEPTED).await?;
            accepted.fetch_add(ACCEPTED, Ordering::Relaxed);
        }
        anyhow::Ok(())
    };
    let measuring = async {
        tokio::time::sleep(MEASURED).await;
        let alone = accepted.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64();
        let (began, before, mut left) =
            (Instant::now(), accepted.load(Ordering::Relaxed), requests(&keys, SHARED));
        for request in &mut left {
            request.reported_before = work::now();
        }
        while !left.is_empty() && began.elapsed() < MEASURED {
            let slice_began = Instant::now();
            slice(&bench, &mut left).await?;
            tokio::time::sleep(slice_began.elapsed()).await;
        }
        let beside = (accepted.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        anyhow::Ok(beside / alone)
    };
    let (accepted, ratio) = tokio::join!(accepting, measuring);
    accepted?;
    ratio
}
