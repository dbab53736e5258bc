//! One lane, with queues of different lengths.

use crate::work::{self, Base, CLAIMED};

pub async fn print(sizes: &[usize]) -> anyhow::Result<()> {
    if sizes.is_empty() {
        return Ok(());
    }
    println!("{:>10}  {:>12}  {:>12}  {:>6}", "queued", "claim p50", "claim p99", "ratio");
    let mut base = Base::default();
    for size in sizes {
        let bench = work::open().await?;
        let key = bench.tenant(&format!("queue-{size}")).await?;
        bench.fill(*size, |_| (&key, None)).await?;
        let times = bench.claim(|_| vec![(key.clone(), CLAIMED)]).await?;
        bench.store.close().await;
        let ratio = base.ratio(times.p50());
        println!("{size:>10}  {:>12.2?}  {:>12.2?}  {ratio:>6.2}", times.p50(), times.p99());
    }
    Ok(())
}
