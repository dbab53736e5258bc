//! What a claim costs: with little and with much in the queue, with few and with many tenants waiting, with a
//! suspended batch at the head, and with many lanes whose mail has ended.
//!
//! Each measurement fills a fresh SQLite store, claims a hundred messages and gives them back many times, and
//! prints the median and its ratio to the first of its table. `POSTWAY_BENCH_SIZES=1000,100000` chooses other
//! sizes of the queue, `POSTWAY_BENCH_TENANTS=10,1000` other numbers of tenants,
//! `POSTWAY_BENCH_SUSPENDED=0,1000000` other batches, `POSTWAY_BENCH_LANES=0,1000000` other numbers of lanes;
//! an empty one leaves its table out. `POSTWAY_BENCH_DATABASE=postgres://…` (or `mysql://…`) names an empty
//! database to use instead; its tables then follow one another in it.

mod lanes;
mod queue;
mod suspended;
mod tenants;
mod work;

use anyhow::Context;

const SIZES: &str = "1000,100000,1000000";
const TENANTS: &str = "10,10000";
const SUSPENDED: &str = "0,200000";
const LANES: &str = "0,200000";

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` runs this too; only `cargo bench` asks for figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        queue::print(&numbers("POSTWAY_BENCH_SIZES", SIZES)?).await?;
        tenants::print(&numbers("POSTWAY_BENCH_TENANTS", TENANTS)?).await?;
        suspended::print(&numbers("POSTWAY_BENCH_SUSPENDED", SUSPENDED)?).await?;
        lanes::print(&numbers("POSTWAY_BENCH_LANES", LANES)?).await
    })
}

fn numbers(variable: &str, default: &str) -> anyhow::Result<Vec<usize>> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().with_context(|| format!("{variable} holds numbers"))).collect()
}
