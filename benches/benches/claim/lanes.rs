//! Lanes whose mail has all ended, and one lane with mail that waits.
//!
//! An application that puts its order number into `batch` makes a lane for each mail. A claim and a poll must
//! cost by the lanes with mail that waits, and not by the lanes that were ever made.

use std::time::Instant;

use postway_domain::id::BatchCode;

use crate::work::{self, Base, CLAIMED, Times, now};

/// Messages that wait, in one lane.
const WAITING: usize = 1_000;
const POLLS: usize = 20;

pub async fn print(numbers: &[usize]) -> anyhow::Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    println!(
        "\n{:>11}  {:>12}  {:>12}  {:>6}  {:>12}  {:>12}",
        "ended lanes", "claim p50", "claim p99", "ratio", "poll p50", "stats p50"
    );
    let mut base = Base::default();
    for number in numbers {
        let bench = work::open().await?;
        let key = bench.tenant(&format!("lanes-{number}")).await?;
        let batches: Vec<BatchCode> =
            (0..*number).map(|index| format!("order-{index}").parse()).collect::<Result<_, _>>()?;
        bench.fill_ended(*number, |index| (&key, Some(&batches[index]))).await?;
        bench.fill(WAITING, |_| (&key, None)).await?;
        let times = bench.claim(|_| vec![(key.clone(), CLAIMED)]).await?;
        let (mut polls, mut measures) = (Vec::with_capacity(POLLS), Vec::with_capacity(POLLS));
        for _ in 0..POLLS {
            let started = Instant::now();
            let queue = bench.store.queue_state(now()).await?;
            polls.push(started.elapsed());
            anyhow::ensure!(!queue.due.is_empty(), "no account is due");
            let started = Instant::now();
            bench.store.stats(None, now()).await?;
            measures.push(started.elapsed());
        }
        bench.store.close().await;
        println!(
            "{number:>11}  {:>12.2?}  {:>12.2?}  {:>6.2}  {:>12.2?}  {:>12.2?}",
            times.p50(),
            times.p99(),
            base.ratio(times.p50()),
            Times::of(polls).p50(),
            Times::of(measures).p50()
        );
    }
    Ok(())
}
