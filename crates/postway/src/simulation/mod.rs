//! The deterministic simulation: nodes, store, network, clock and crashes from one number.
//!
//! A run is one to three nodes in one thread, on tokio's paused clock. Each node has the real subsystems,
//! wired as `server` wires them: the dispatcher with its couriers, gate and SMTP client, membership, and
//! housekeeping. They share the real store in memory, each over a [`faulty_store`] that may be slow, fail, or
//! lose the answer to what it did; and they speak SMTP over pipes to a [`relay`] that takes, defers, refuses,
//! hangs up, or says nothing, before the dot and after it. Meanwhile [`actors`] send, cancel, replay,
//! resolve, suspend; nodes crash between any two of their effects, freeze for longer than they are thought
//! alive, stop in good order and start again; the store goes away, another server takes over from it, or it
//! falls silent to one node; the clock is set. Then the faults stop, and every message must end.
//!
//! What is checked, while it runs and at the end ([`ledger`], [`check`], [`history`]):
//!
//! - what was acknowledged is there, once, and ends; nothing stays leased;
//! - the dot is written only with a permission that is durable, and only by who holds the message;
//! - a recipient gets a mail twice only if the history said before the second time that it is in doubt;
//! - `sent` means that the relay took it, and what it took is not called otherwise unless it was in doubt;
//! - nothing is in doubt where no life ends and no answer is lost, however often the store fails;
//! - every history is a path through the state machine's table, event by event;
//! - no account has more connections, or begins more in a minute, than it may, as the relay saw it;
//! - among several nodes none begins or ends a mail whose heartbeats others have not seen for a while;
//! - an outcome is written only by the life that holds the message: what a zombie writes is refused.
//!
//! The same seed gives the same run, line by line. Everything that could differ is excluded: subsystems
//! choose in order (`select!` is `biased`), collections are ordered, accounts have no jitter, and ids that
//! the subsystems draw themselves (leases, incarnations) are only compared. A failure prints its seed, the
//! command that repeats it, and the complete trace. `POSTWAY_SIMULATION_SEED=n` runs one seed,
//! `POSTWAY_SIMULATION_SEEDS=n` that many.
//!
//! Runs with a planted fault show that the checks find faults: see [`PlantedFlaw`].
//!
//! Not simulated: SQL, TLS, SES, and the subsystems that do not send. Those have real servers in `e2e`.

mod actors;
mod chance;
mod check;
mod faulty_store;
mod history;
mod ledger;
mod life;
mod node;
mod relay;
mod trace;
mod world;

use std::{
    collections::BTreeSet,
    panic::catch_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use self::{
    trace::RunRecord,
    world::{PlantedFlaw, SimulatedWorld},
};

/// The first seed of every run of the tests.
const FIRST_SEED: u64 = 1;
/// How many seeds are run.
const SEEDS: u64 = 2_000;
/// A planted flaw must be found within this many seeds.
const FLAWED: u64 = 300;
/// How many seeds are run twice.
const TWICE: u64 = 25;
/// Texts that the traces of the runs must contain: a simulation that never reaches these situations proves
/// nothing.
const MEETS: [&str; 15] = [
    "is handed",
    "is done and fails",
    "is done again",
    "is lost on its way to the server",
    "hears nothing",
    "may not end",
    "was refused",
    "-> InDoubt",
    "-> Scheduled(Retry)",
    "-> Cancelled",
    "-> Expired",
    "asks Resolve",
    "crashes",
    "thaws",
    "once more",
];

/// One run, with a planted flaw if `flaw` says so.
fn run(seed: u64, flaw: Option<PlantedFlaw>) -> RunRecord {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without a driver for sockets");
    runtime.block_on(async {
        let world = Arc::new(SimulatedWorld::new(seed, flaw));
        world.create_tenant().await;
        for node in &world.nodes {
            node.start(&world);
            tokio::time::sleep(world.chance.millis(1, 500)).await;
        }
        let sending = tokio::spawn(actors::send_all(world.clone()));
        let operating = tokio::spawn(actors::operate(world.clone()));
        actors::strike(&world).await;
        // What was begun ends before all is made well: nodes come back, those frozen thaw.
        tokio::time::sleep(Duration::from_millis(actors::FATE_LASTS_MAX_MS)).await;
        world.heal();
        sending.await.expect("clients do not break");
        operating.await.expect("operators do not break");
        check::see_to_the_end(&world).await;
        check::judge(&world).await;
        world.trace.story()
    })
}

/// The seeds to run: one that is asked for, or a fixed number from the first on.
fn seeds() -> std::ops::Range<u64> {
    let asked = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    match asked("POSTWAY_SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => FIRST_SEED..FIRST_SEED + asked("POSTWAY_SIMULATION_SEEDS").unwrap_or(SEEDS),
    }
}

fn report(seed: u64, story: &RunRecord) -> String {
    format!(
        "seed {seed} breaks a promise:\n  {}\nits story:\n{}\nrepeat it with\n  POSTWAY_SIMULATION_SEED={seed} cargo test -p postway --bin postway simulation\n",
        story.violations.join("\n  "),
        story.lines.join("\n"),
    )
}

#[test]
fn whatever_goes_wrong_the_promises_are_kept() {
    let seeds = seeds();
    let (next, alone) = (AtomicU64::new(seeds.start), seeds.end - seeds.start == 1);
    let met: Mutex<BTreeSet<&str>> = Mutex::default();
    let failed = std::thread::scope(|scope| {
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return None;
                }
                let story = catch_unwind(|| run(seed, None)).unwrap_or_else(|_| RunRecord::broken());
                let is_new = |what: &&&str| story.lines.iter().any(|line| line.contains(**what));
                met.lock().expect("nobody panics with it").extend(MEETS.iter().filter(is_new));
                if alone {
                    println!("{}", story.lines.join("\n"));
                }
                if !story.violations.is_empty() {
                    next.store(seeds.end, Ordering::Relaxed);
                    return Some(report(seed, &story));
                }
            }
        };
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().find_map(|worker| worker.join().expect("its panics are caught"))
    });
    assert!(failed.is_none(), "{}", failed.unwrap_or_default());
    let met = met.into_inner().expect("nobody panics with it");
    let unmet: Vec<&str> = MEETS.into_iter().filter(|what| !met.contains(what)).collect();
    assert!(unmet.is_empty() || seeds.end - seeds.start < SEEDS, "no run met {unmet:?}");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in seeds().take(TWICE as usize) {
        let (first, second) = (run(seed, None), run(seed, None));
        let parts = first.lines.iter().zip(&second.lines).position(|(one, other)| one != other);
        if let Some(at) = parts {
            panic!("seed {seed} differs from line {at} on:\n{}\n{}", first.lines[at], second.lines[at]);
        }
        assert_eq!(first.digest(), second.digest(), "seed {seed}");
    }
}

#[test]
fn a_program_that_is_wrong_on_purpose_is_found_out() {
    for flaw in PlantedFlaw::ALL {
        let is_found = |seed| {
            let story = catch_unwind(|| run(seed, Some(flaw))).unwrap_or_else(|_| RunRecord::broken());
            !story.violations.is_empty()
        };
        assert!((FIRST_SEED..FIRST_SEED + FLAWED).any(is_found), "{flaw:?} was not found out");
    }
}
