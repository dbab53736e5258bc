//! A suspended batch at the head of the queue, of different sizes, with other messages behind it.

use postway_domain::id::BatchCode;
use postway_store::record::{DirectoryChange, SuspensionRecord, SuspensionScope};

use crate::work::{self, Base, CLAIMED, now};

/// Behind the batch.
const OTHERS: usize = 1_000;

pub async fn print(sizes: &[usize]) -> anyhow::Result<()> {
    if sizes.is_empty() {
        return Ok(());
    }
    println!("\n{:>10}  {:>12}  {:>12}  {:>6}", "suspended", "claim p50", "claim p99", "ratio");
    let mut base = Base::default();
    let batch: BatchCode = "campaign".parse()?;
    for size in sizes {
        let bench = work::open().await?;
        let key = bench.tenant(&format!("suspended-{size}")).await?;
        let pause = SuspensionRecord {
            tenant: key.tenant.clone(),
            scope: SuspensionScope::Batch(batch.clone()),
            since: now(),
        };
        bench.store.change(DirectoryChange::Suspend(pause), None).await?;
        bench.fill(size + OTHERS, |index| (&key, (index < *size).then_some(&batch))).await?;
        let times = bench.claim(|_| vec![(key.clone(), CLAIMED)]).await?;
        bench.store.close().await;
        let ratio = base.ratio(times.p50());
        println!("{size:>10}  {:>12.2?}  {:>12.2?}  {ratio:>6.2}", times.p50(), times.p99());
    }
    Ok(())
}
