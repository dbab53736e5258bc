//! No window of sends exceeds its limit, whatever the calls.
//!
//! Random claims, hand-overs and refunds at random times, each permit used at any moment it may be. In the
//! end no window of a limited length holds more sends than its limit.

use std::future::Future;

use futures::FutureExt;
use postway_domain::{AccountLimits, LimitSpan};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{
    Shared,
    limits::limited,
    sample::{Sample, TENANT, at, key},
    stage::{open, outcome},
};
use crate::record::{ClaimedMessage, MessageChange};

const CASES: u32 = 24;
const STEPS_MAX: usize = 50;

/// What happens after a pause.
#[derive(Clone, Debug)]
enum Step {
    /// So much mail comes.
    Accept(u32),
    /// So much is claimed, and the rest of the room perhaps parked.
    Claim { room: u32, park: bool },
    /// The latest permit that is still unused is given back.
    Refund,
}

fn step() -> impl Strategy<Value = (i64, Step, f64)> {
    let step = prop_oneof![
        3 => (1..4u32).prop_map(Step::Accept),
        4 => (1..6u32, any::<bool>()).prop_map(|(room, park)| Step::Claim { room, park }),
        1 => Just(Step::Refund),
    ];
    // Pauses of seconds, and now and then of minutes.
    let pause = prop_oneof![9 => 0..6_000i64, 1 => 0..400_000i64];
    (pause, step, 0.0..1.0f64)
}

/// Runs random sequences, each for an account of its own.
pub fn no_window_of_sends_exceeds_its_limit<F, G>(make_store: impl Fn() -> F)
where
    F: Future<Output = (Shared, G)>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (store, _guard) = runtime.block_on(make_store());
    runtime.block_on(open(&store));
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let case = (prop::collection::vec(step(), 1..STEPS_MAX), 1..8u32, 1..20u32);
    let count = std::cell::Cell::new(0);
    let outcome = TestRunner::new(config).run(&case, |(steps, per_minute, per_hour)| {
        count.set(count.get() + 1);
        let limits = AccountLimits { per_minute, per_hour, ..AccountLimits::default() };
        let account = format!("case-{}", count.get());
        let sends = runtime.block_on(run(&store, &account, limits, steps));
        for (span, limit, window_ms) in
            [(LimitSpan::Minute, per_minute, 60_000), (LimitSpan::Hour, per_hour, 3_600_000)]
        {
            for (first, from) in sends.iter().enumerate() {
                let within = sends[first..].iter().take_while(|sent| **sent < from + window_ms).count();
                prop_assert!(within <= limit as usize, "{within} sends in a {}", span.as_str());
            }
        }
        Ok(())
    });
    runtime.block_on(store.close());
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// A permit, and when it is used.
struct Leased {
    claimed: ClaimedMessage,
    sent_ms: i64,
}

/// Plays the steps, and gives the times at which mail was sent, in order.
async fn run(store: &Shared, account: &str, limits: AccountLimits, steps: Vec<(i64, Step, f64)>) -> Vec<i64> {
    let number = account.trim_start_matches("case-").parse::<u32>().unwrap() * 1_000;
    let (mut now_ms, mut accepted, mut token) = (0, 0, 0);
    let mut leased: Vec<Leased> = Vec::new();
    for (pause, step, late) in steps {
        now_ms += pause;
        let mut taken = Vec::new();
        match step {
            Step::Accept(messages) => {
                let numbers = number + accepted..number + accepted + messages;
                accepted += messages;
                let call = numbers.map(|n| Sample::new(n).from(TENANT, account).created(now_ms).build());
                store.accept(call.collect()).await.unwrap();
                taken.extend(store.handed_over().now_or_never().into_iter().flatten());
            }
            Step::Claim { room, park } => {
                token += 1;
                let mut request = limited(key(TENANT, account), limits, token, at(now_ms), room);
                request.wants[0].park = park;
                taken.extend(store.claim(request).await.unwrap());
            }
            Step::Refund => {
                // What was sent is sent.
                if let Some(last) = leased.pop_if(|last| last.sent_ms > now_ms) {
                    let held = postway_domain::message::AttemptOutcome::Returned;
                    let change = outcome(&last.claimed, false, held, at(now_ms));
                    let refund = last.claimed.permit.clone();
                    let back = MessageChange { due_at: Some(at(now_ms)), refund, ..change };
                    assert_eq!(store.apply(vec![back]).await.unwrap(), [true]);
                }
            }
        }
        for claimed in taken {
            let permit = claimed.permit.as_ref().expect("all this account sends is limited");
            let left_ms = permit.use_by.since(at(now_ms)).as_millis() as i64 - 1;
            let sent_ms = now_ms + (left_ms as f64 * late) as i64;
            leased.push(Leased { claimed, sent_ms });
        }
    }
    let mut sends: Vec<i64> = leased.into_iter().map(|one| one.sent_ms).collect();
    sends.sort_unstable();
    sends
}
