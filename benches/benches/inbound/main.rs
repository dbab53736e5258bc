//! What inbound mail costs: classifying it, and registering it from a real Dovecot in SQLite.
//!
//! `POSTWAY_BENCH_MAILS` names a folder of mails to judge, as of the bounces that a parser is tuned on;
//! without it only a few short ones of its own are judged.

mod judge;
mod register;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` runs this too; only `cargo bench` asks for figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    judge::print()?;
    tokio::runtime::Runtime::new()?.block_on(register::print())
}

/// CPU time of this process so far, in seconds.
fn cpu_seconds() -> anyhow::Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // utime and stime, the 14th and 15th of all; the name and what stands before it are cut off.
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
}
