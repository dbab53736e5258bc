//! Seeded chance: what a run consists of, and every random choice in it.
//!
//! A plan switches entire kinds of faults off for a run, so that the seeds differ in kind and not only in
//! detail: some faults are found only where others do not cover them up.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::{MessageUid, Time};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// The one source of chance in a run.
pub(super) struct SeededChance(Mutex<StdRng>);

impl SeededChance {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    fn rng(&self) -> MutexGuard<'_, StdRng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        self.rng().random_range(low..=high)
    }

    /// True `per_mille` times in a thousand, on average.
    pub fn hits(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.between(1, 1_000) <= per_mille
    }

    /// One of these.
    pub fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[self.between(0, of.len() as u64 - 1) as usize]
    }

    /// Milliseconds from `low` to `high`.
    pub fn millis(&self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// An id for a message.
    pub fn uid(&self, now: Time) -> MessageUid {
        MessageUid::new(now, &mut *self.rng())
    }
}

/// The plan of a run. Rates are per mille.
#[derive(Clone, Debug)]
pub(super) struct RunPlan {
    /// Whether no life ends, no answer of a relay is lost, and the store may only fail: then nothing is in
    /// doubt.
    pub calm: bool,
    /// Nodes that share the store.
    pub nodes: usize,
    /// Messages that come in.
    pub messages: usize,
    /// For how long things go wrong.
    pub troubled: Duration,
    pub relay: RelayFaults,
    pub store: StoreFaults,
    pub fates: FaultWeights,
    /// Whether somebody cancels, replays, resolves and suspends meanwhile.
    pub operator: bool,
    pub accounts: [AccountPlan; 2],
}

/// The faults of a relay, at each of its turns.
#[derive(Clone, Debug)]
pub(super) struct RelayFaults {
    pub pipelining: bool,
    pub slow: u64,
    pub cut: u64,
    pub silent: u64,
    pub transient: u64,
    pub permanent: u64,
    pub closing: u64,
    pub unreachable: u64,
}

/// The faults of the store, at each call.
#[derive(Clone, Debug)]
pub(super) struct StoreFaults {
    pub slow: u64,
    pub fails: u64,
    /// It was done, and the answer says that it was not.
    pub forgets: u64,
    /// What writes is done, and done once more.
    pub repeats: u64,
}

/// The faults of nodes. Each is a weight among the others.
#[derive(Clone, Debug)]
pub(super) struct FaultWeights {
    pub crash: u64,
    pub freeze: u64,
    pub stop: u64,
    pub leap: u64,
    pub outage: u64,
    /// Another server takes over: what is on its way is lost, there or back, and for a while nobody answers.
    pub failover: u64,
    /// A life's connections to the store fall silent: each call waits as long as a client does, and fails.
    pub silence: u64,
    /// That a life is struck in the act, at each of its own: a rate.
    pub in_the_act: u64,
}

/// An account's settings, as far as runs differ in them.
#[derive(Clone, Debug)]
pub(super) struct AccountPlan {
    pub connections: u32,
    pub per_minute: u32,
    /// What the receiving domain may be sent in a second; 0 for no limit.
    pub to_domain: u32,
    pub falls_back: bool,
}

impl RunPlan {
    pub fn draw(chance: &SeededChance) -> Self {
        let calm = chance.hits(100);
        let rate = |most| if chance.hits(600) { chance.between(1, most) } else { 0 };
        let wild = |most| if calm { 0 } else { rate(most) };
        let account = |falls_back| AccountPlan {
            connections: chance.between(1, 3) as u32,
            per_minute: if chance.hits(400) { chance.between(3, 20) as u32 } else { 0 },
            to_domain: if chance.hits(300) { chance.between(2, 6) as u32 } else { 0 },
            falls_back,
        };
        Self {
            calm,
            nodes: chance.between(1, 3) as usize,
            messages: chance.between(4, 20) as usize,
            troubled: chance.millis(10_000, 45_000),
            relay: RelayFaults {
                pipelining: chance.hits(700),
                slow: wild(300),
                cut: wild(150),
                silent: wild(60),
                transient: rate(200),
                permanent: rate(80),
                closing: wild(80),
                unreachable: rate(200),
            },
            store: StoreFaults { slow: wild(300), fails: rate(80), forgets: rate(80), repeats: rate(100) },
            fates: FaultWeights {
                crash: wild(10),
                freeze: wild(10),
                stop: wild(4),
                leap: rate(2),
                outage: rate(4),
                failover: rate(4),
                silence: wild(6),
                in_the_act: wild(25),
            },
            operator: chance.hits(600),
            accounts: [account(chance.hits(250)), account(false)],
        }
    }
}
