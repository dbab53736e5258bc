//! What is done for many tenants in the background: making notifications and counts of what happened, and
//! removing what was kept long enough. Each with few tenants and with many.
//!
//! Each measurement fills a store of its own (SQLite) with messages that have ended, and prints how many a
//! second were done. `POSTWAY_BENCH_TENANTS=1,1000` chooses other numbers of tenants,
//! `POSTWAY_BENCH_MESSAGES` another number of messages. `POSTWAY_BENCH_DATABASE=postgres://…` (or
//! `mysql://…`) names an empty database to use instead; the measurements then follow one another in it.

mod fan_out;
mod retention;
#[path = "../claim/work.rs"]
#[allow(dead_code, reason = "the bench of claims uses the rest")]
mod work;

use anyhow::Context;
use postway_store::record::AccountKey;

const TENANTS: &str = "1,30,1000";
const MESSAGES: usize = 20_000;
/// Messages accepted in one transaction: about as many as under load.
const ACCEPTED: usize = 64;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` runs this too; only `cargo bench` asks for figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let tenants = std::env::var("POSTWAY_BENCH_TENANTS").unwrap_or_else(|_| TENANTS.to_owned());
    let tenants: Vec<usize> = tenants
        .split(',')
        .map(|number| number.trim().parse().context("POSTWAY_BENCH_TENANTS holds numbers"))
        .collect::<anyhow::Result<_>>()?;
    let messages = match std::env::var("POSTWAY_BENCH_MESSAGES") {
        Ok(number) => number.parse().context("POSTWAY_BENCH_MESSAGES is a number")?,
        Err(_) => MESSAGES,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        fan_out::print(&tenants, messages).await?;
        retention::print(&tenants, messages).await
    })
}

/// A store with messages that have ended, of tenants in turns.
async fn filled(
    tenants: usize,
    messages: usize,
    round: &str,
) -> anyhow::Result<(work::Bench, Vec<AccountKey>)> {
    let bench = work::open().await?;
    let mut keys = Vec::with_capacity(tenants);
    for number in 0..tenants {
        keys.push(bench.tenant(&format!("{round}-{tenants}-{number}")).await?);
    }
    for start in (0..messages).step_by(ACCEPTED) {
        accept(&bench, &keys, start..(start + ACCEPTED).min(messages)).await?;
    }
    Ok((bench, keys))
}

/// Accepts messages that have ended, in one call.
async fn accept(
    bench: &work::Bench,
    keys: &[AccountKey],
    numbers: std::ops::Range<usize>,
) -> anyhow::Result<()> {
    let state = postway_domain::MessageState::Suppressed;
    let message = |number: usize| work::message(work::lane(&keys[number % keys.len()], None), state, number);
    bench.store.accept(numbers.map(message).collect::<anyhow::Result<_>>()?).await?;
    Ok(())
}
