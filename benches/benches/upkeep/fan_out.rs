//! Positions and fan-out of what happened, by the number of tenants to whom it happened. Nobody subscribes:
//! what is measured is the walk along the journal and the counts.

use std::time::Instant;

use super::{filled, work};

/// Pages of one call: as it was, and as it is.
const PAGES: [u32; 2] = [64, 2_048];
const SEQUENCED: u32 = 2_048;

pub async fn print(tenants: &[usize], messages: usize) -> anyhow::Result<()> {
    println!("fan-out of {messages} accepted messages");
    println!(
        "{:>8} {:>14} {:>10} {:>12} {:>12}",
        "tenants", "pages a call", "pages", "messages/s", "pages/s"
    );
    for tenants in tenants {
        for pages_max in PAGES {
            let (bench, _) = filled(*tenants, messages, &format!("f{pages_max}")).await?;
            let (began, mut pages) = (Instant::now(), 0);
            loop {
                let placed = bench.store.sequence(SEQUENCED).await?;
                let done = bench.store.fan_out(work::now(), pages_max).await?;
                pages += done;
                if placed == 0 && done == 0 {
                    break;
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            let rate = |count: f64| count / seconds;
            println!(
                "{tenants:>8} {pages_max:>14} {pages:>10} {:>12.0} {:>12.0}",
                rate(messages as f64),
                rate(f64::from(pages))
            );
        }
    }
    Ok(())
}
