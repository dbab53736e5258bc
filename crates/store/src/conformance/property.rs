//! Any sequence of calls keeps the books.
//!
//! Random calls by workers that follow the state machine, with stale writes among them. After each call: what
//! changed has a higher version, and the counts are those of the list. At the end: no history has a gap, and
//! attempts are counted as they happened.

use std::{collections::BTreeMap, future::Future};

use futures::FutureExt;
use postway_domain::{
    EventKind, MessagePriority, MessageState, MessageStatus, MessageUid,
    message::{AttemptOutcome, OtherRecipients, TransitionInput, transition},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{
    Shared,
    sample::{self, Sample, at},
    stage::{assert_gapless, commit_wire, late, open, outcome, record, request, step},
};
use crate::record::{Acceptance, ClaimedMessage, MessageChange, MessageFilter, MessageSummary, WriteFence};

const CASES: u32 = 16;
const CALLS_MAX: usize = 40;
const MESSAGES_MAX: u32 = 1_000;

#[derive(Clone, Debug)]
enum NotificationCall {
    Accept { key: Option<u8>, body: u8, priority: usize, wait_ms: i64, lasts_ms: Option<i64> },
    Claim { room: u32, park: bool },
    Commit { pick: usize },
    Settle { pick: usize, outcome: usize, stale: bool },
    LateAnswer { pick: usize },
    Operate { pick: usize, input: usize },
    Reclaim,
    Pass { ms: i64 },
}

fn call() -> impl Strategy<Value = NotificationCall> {
    let accept = (prop::option::of(0..4u8), 0..2u8, 0..4usize, 0..50i64, prop::option::of(1..200i64))
        .prop_map(|(key, body, priority, wait_ms, lasts_ms)| NotificationCall::Accept {
            key,
            body,
            priority,
            wait_ms,
            lasts_ms,
        });
    prop_oneof![
        6 => accept,
        4 => (0..4u32, any::<bool>()).prop_map(|(room, park)| NotificationCall::Claim { room, park }),
        4 => any::<usize>().prop_map(|pick| NotificationCall::Commit { pick }),
        5 => (any::<usize>(), any::<usize>(), prop::bool::weighted(0.2))
            .prop_map(|(pick, outcome, stale)| NotificationCall::Settle { pick, outcome, stale }),
        2 => any::<usize>().prop_map(|pick| NotificationCall::LateAnswer { pick }),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(pick, input)| NotificationCall::Operate { pick, input }),
        1 => Just(NotificationCall::Reclaim),
        3 => (1..100i64).prop_map(|ms| NotificationCall::Pass { ms }),
    ]
}

/// Runs random sequences of calls, each on a store of its own.
pub fn any_sequence_of_calls_keeps_the_books<F, G>(make_store: impl Fn() -> F)
where
    F: Future<Output = (Shared, G)>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // A failing case is printed with its calls; a file of seeds would only name this one machine's.
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let cases = prop::collection::vec(call(), 1..CALLS_MAX);
    let outcome = TestRunner::new(config).run(&cases, |calls| {
        runtime.block_on(async {
            let (store, _guard) = make_store().await;
            open(&store).await;
            let mut world = World {
                store: store.clone(),
                now_ms: 0,
                token: 0,
                claims: Vec::new(),
                seen: BTreeMap::new(),
            };
            for call in calls {
                world.make(call).await;
                world.check_versions_and_counts().await;
            }
            world.check_histories().await;
            store.close().await;
            drop((world, store));
        });
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// What the test knows of the store.
struct World {
    store: Shared,
    now_ms: i64,
    token: i64,
    /// Every claim ever made, and whether it got its permission: old ones are tried again, and must be
    /// refused.
    claims: Vec<(ClaimedMessage, bool)>,
    seen: BTreeMap<MessageUid, MessageSummary>,
}

impl World {
    async fn make(&mut self, call: NotificationCall) {
        let now = at(self.now_ms);
        match call {
            NotificationCall::Accept { key, body, priority, wait_ms, lasts_ms } => {
                let mut sample = Sample::new(self.seen.len() as u32).body(body).created(self.now_ms);
                sample = sample.priority(MessagePriority::ALL[priority]);
                if wait_ms > 25 {
                    sample = sample.send_at(self.now_ms + wait_ms);
                }
                if let Some(key) = key {
                    sample = sample.key(&format!("k{key}")).client_id(&format!("c{}", key / 2));
                }
                if let Some(lasts_ms) = lasts_ms {
                    sample = sample.expires(self.now_ms + lasts_ms);
                }
                let answer = super::stage::offer(&self.store, sample).await;
                if let Acceptance::Repeat { uid } = answer {
                    assert!(self.seen.contains_key(&uid), "a repeat of a message that is stored");
                }
                if let Some(handed_over) = self.store.handed_over().now_or_never() {
                    self.claims.extend(handed_over.into_iter().map(|claimed| (claimed, false)));
                }
            }
            NotificationCall::Claim { room, park } => {
                self.token += 1;
                let request = request(&sample::relay(), self.token, now, room, park);
                let claimed = self.store.claim(request).await.unwrap();
                assert!(claimed.len() <= room as usize);
                self.claims.extend(claimed.into_iter().map(|claimed| (claimed, false)));
            }
            NotificationCall::Commit { pick } => {
                if let Some((claimed, committed)) = picked(&mut self.claims, pick) {
                    *committed |= commit_wire(&self.store, claimed, now).await;
                }
            }
            NotificationCall::Settle { pick, outcome, stale } => self.settle(pick, outcome, stale).await,
            NotificationCall::LateAnswer { pick } => {
                if let Some((claimed, _)) = picked(&mut self.claims, pick) {
                    let answer = TransitionInput::Settle(AttemptOutcome::Sent);
                    let change = step(claimed.uid, late(claimed.token), MessageState::InDoubt, answer, now);
                    self.store.apply(vec![change]).await.unwrap();
                }
            }
            NotificationCall::Operate { pick, input } => self.operate(pick, input).await,
            NotificationCall::Reclaim => {
                let stalled = self.store.stalled(&[], now, 3).await.unwrap();
                let changes = stalled.iter().map(|one| {
                    let fence =
                        WriteFence { status: one.state.status(), token: None, version: Some(one.version) };
                    MessageChange {
                        due_at: Some(now),
                        ..step(one.uid, fence, one.state, TransitionInput::LoseLease, now)
                    }
                });
                let held = self.store.apply(changes.collect()).await.unwrap();
                assert!(held.into_iter().all(|held| held), "nobody else writes");
            }
            NotificationCall::Pass { ms } => self.now_ms += ms,
        }
    }

    async fn settle(&mut self, pick: usize, how: usize, stale: bool) {
        let now = at(self.now_ms);
        let Some((claimed, committed)) = picked(&mut self.claims, pick) else {
            return;
        };
        let outcomes = [
            AttemptOutcome::Sent,
            AttemptOutcome::Retry,
            AttemptOutcome::Failed,
            AttemptOutcome::Returned,
            AttemptOutcome::InDoubt,
        ];
        let how = outcomes[how % outcomes.len()];
        let state = MessageState::Sending { wire_committed: *committed };
        if transition(state, TransitionInput::Settle(how)).is_err() {
            return;
        }
        let mut change = outcome(claimed, *committed, how, now);
        if !matches!(how, AttemptOutcome::Sent | AttemptOutcome::Failed) {
            change.due_at = Some(at(self.now_ms + 10));
        }
        if stale {
            change.fence.version = change.fence.version.map(|version| version - 1);
        }
        let held = self.store.apply(vec![change]).await.unwrap();
        assert!(!stale || held == [false], "an older version never writes");
    }

    /// An operator's move of any message, where the state machine allows it.
    async fn operate(&mut self, pick: usize, input: usize) {
        let now = at(self.now_ms);
        let Some(summary) = self.seen.values().nth(pick % self.seen.len().max(1)) else {
            return;
        };
        let stand = record(&self.store, summary.uid).await.recipients;
        let rest = OtherRecipients::beside_open(stand.iter().map(|one| one.status));
        let inputs = [
            TransitionInput::Cancel(rest),
            TransitionInput::Expire(rest),
            TransitionInput::Replay,
            TransitionInput::Suppress,
        ];
        let input = inputs[input % inputs.len()];
        if transition(summary.state, input).is_err() {
            return;
        }
        let fence =
            WriteFence { status: summary.state.status(), token: None, version: Some(summary.version) };
        let mut change = step(summary.uid, fence, summary.state, input, now);
        change.due_at = (change.to == MessageState::Ready).then_some(now);
        assert_eq!(self.store.apply(vec![change]).await.unwrap(), [true], "nobody else writes");
    }

    async fn check_versions_and_counts(&mut self) {
        let listed = self
            .store
            .messages(&sample::tenant(), &MessageFilter::default(), None, MESSAGES_MAX)
            .await
            .unwrap();
        assert!(listed.is_sorted_by(|newer, older| newer.uid > older.uid));
        let mut counts: BTreeMap<MessageStatus, i64> = BTreeMap::new();
        let mut oldest_due_at = None;
        for summary in listed {
            let status = summary.state.status();
            *counts.entry(status).or_default() += 1;
            let due_at = summary.due_at.filter(|due_at| *due_at <= at(self.now_ms));
            oldest_due_at = [oldest_due_at, due_at].into_iter().flatten().min();
            assert!(summary.due_at.is_none() || !(status.is_final() || status == MessageStatus::Sending));
            if let Some(before) = self.seen.insert(summary.uid, summary.clone()) {
                let rose = summary.version > before.version;
                assert!(
                    rose || summary == before,
                    "changed without a new version: {before:?} to {summary:?}"
                );
            }
        }
        assert_eq!(counts.values().sum::<i64>(), self.seen.len() as i64, "nothing is lost");
        let mut stats = self.store.stats(Some(&sample::tenant()), at(self.now_ms)).await.unwrap();
        stats.by_status.retain(|_, count| *count != 0);
        assert_eq!((stats.by_status, stats.oldest_due_at), (counts, oldest_due_at));
    }

    async fn check_histories(&self) {
        for (uid, summary) in &self.seen {
            let found = record(&self.store, *uid).await;
            assert_eq!(found.summary, *summary);
            assert_gapless(&found);
            let told = |kind| found.events.iter().filter(|one| one.kind == kind).count() as i64;
            assert_eq!(told(EventKind::Sending), summary.attempt, "one event per attempt");
            assert!(told(EventKind::Resent) < summary.attempt.max(1), "the first is no resend");
            assert!(found.attempts.is_sorted_by(|earlier, later| earlier.number < later.number));
        }
    }
}

fn picked(claims: &mut [(ClaimedMessage, bool)], pick: usize) -> Option<&mut (ClaimedMessage, bool)> {
    let count = claims.len();
    claims.get_mut(pick % count.max(1))
}
