//! Different numbers of tenants with waiting mail: ten thousand messages, or ten for each tenant if that is
//! more.
//!
//! As the dispatcher does, a claim names the accounts of at most 32 tenants, taken in their turns, and the
//! next claim those that follow. The time of the turns themselves, and of the poll that finds who has work,
//! is printed beside it.

use std::time::Instant;

use postway_domain::{TenantSettings, fairness::TenantTurns};
use postway_store::record::AccountKey;

use crate::work::{self, Base, CLAIMED, Times, now};

/// As in the dispatcher.
const ACCOUNTS_MAX: usize = 16;
const MESSAGES: usize = 100_000;
const POLLS: usize = 20;

pub async fn print(numbers: &[usize]) -> anyhow::Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    println!(
        "\n{:>10}  {:>12}  {:>12}  {:>6}  {:>12}  {:>12}",
        "tenants", "claim p50", "claim p99", "ratio", "turns p50", "poll p50"
    );
    let mut base = Base::default();
    for number in numbers {
        let bench = work::open().await?;
        let mut keys = Vec::with_capacity(*number);
        for tenant in 0..*number {
            keys.push(bench.tenant(&format!("t{number}-{tenant}")).await?);
        }
        bench.fill(MESSAGES.max(number * 10), |index| (&keys[index % number], None)).await?;
        let mut ring = Ring::of(&keys);
        let times = bench.claim(|_| ring.next()).await?;
        let mut polls = Vec::with_capacity(POLLS);
        for _ in 0..POLLS {
            let started = Instant::now();
            let queue = bench.store.queue_state(now()).await?;
            polls.push(started.elapsed());
            anyhow::ensure!(queue.due.len() >= *number, "{} accounts are due", queue.due.len());
        }
        bench.store.close().await;
        println!(
            "{number:>10}  {:>12.2?}  {:>12.2?}  {:>6.2}  {:>12.2?}  {:>12.2?}",
            times.p50(),
            times.p99(),
            base.ratio(times.p50()),
            Times::of(ring.times).p50(),
            Times::of(polls).p50()
        );
    }
    Ok(())
}

/// Tenants that all have mail, and the time that choosing among them took.
struct Ring {
    turns: TenantTurns,
    account: AccountKey,
    times: Vec<std::time::Duration>,
}

impl Ring {
    fn of(keys: &[AccountKey]) -> Self {
        let mut turns = TenantTurns::default();
        keys.iter().for_each(|key| turns.join(&key.tenant, TenantSettings::WEIGHT_DEFAULT));
        Self { turns, account: keys[0].clone(), times: Vec::new() }
    }

    /// The accounts of the next claim. A served tenant leaves the ring and joins it again, because it has
    /// more mail.
    fn next(&mut self) -> Vec<(AccountKey, u32)> {
        let started = Instant::now();
        let mut tenants = Vec::with_capacity(ACCOUNTS_MAX);
        for _ in 0..self.turns.len().min(ACCOUNTS_MAX) {
            if let Some((tenant, _)) = self.turns.take() {
                self.turns.leave(&tenant);
                tenants.push(tenant);
            }
        }
        for tenant in &tenants {
            self.turns.join(tenant, TenantSettings::WEIGHT_DEFAULT);
        }
        self.times.push(started.elapsed());
        let count = tenants.len() as u32;
        let room = |index: u32| CLAIMED / count + u32::from(index < CLAIMED % count);
        let account = &self.account.account;
        let key = |tenant| AccountKey { tenant, account: account.clone() };
        tenants.into_iter().zip(0..).map(|(tenant, index)| (key(tenant), room(index))).collect()
    }
}
