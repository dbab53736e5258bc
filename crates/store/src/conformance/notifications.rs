//! Notifications: leased, fenced, in order for each message, and no receiver waits for another.

use std::collections::BTreeMap;

use postway_domain::{EventKind, MessageState, MessageUid, Time, message::AttemptOutcome};

use super::{
    Shared,
    journal::{send, sequence, tell},
    sample::{
        self, ACCOUNT, LEASE_LASTS, OTHER_TENANT, Sample, TENANT, at, incarnation, other_tenant, tenant,
    },
    stage::{accept, accept_and_claim, all_at_once, apply, assert_gapless, direct, outcome, record},
    subscribers::{subscribe, webhook},
};
use crate::record::{
    BegunCall, ChangeResult, DirectoryChange, DueSubscriber, MessageChange, NotificationCall,
    NotificationKey, NotificationResult, NotificationState, NotificationView, ReportRequest, ReportState,
    ToNotify,
};

pub(super) fn hook(id: &str) -> DueSubscriber {
    DueSubscriber { tenant: tenant(), subscriber: id.parse().unwrap() }
}

async fn claim_of(store: &Shared, who: &DueSubscriber, token: i64, now: Time, room: u32) -> Vec<ToNotify> {
    let request = ReportRequest { lease: sample::lease(token, now), now, wants: vec![(who.clone(), room)] };
    store.claim_notifications(request).await.unwrap()
}

pub(super) async fn claim(store: &Shared, id: &str, token: i64, now: Time, room: u32) -> Vec<ToNotify> {
    claim_of(store, &hook(id), token, now, room).await
}

pub(super) fn seqs(claimed: &[ToNotify]) -> Vec<i64> {
    claimed.iter().map(|one| one.key.seq).collect()
}

fn call(now: Time, status: u16) -> NotificationCall {
    NotificationCall {
        at: now,
        latency_ms: 12,
        status: Some(status),
        request: "{\"größe\":1}".to_owned(),
        answer: "ok".to_owned(),
    }
}

/// What came of a call by this claim.
pub(super) fn called(one: &ToNotify, token: i64, state: NotificationState, now: Time) -> NotificationResult {
    NotificationResult {
        key: one.key.clone(),
        token: sample::lease(token, now).token,
        at: now,
        state,
        due_at: None,
        call: Some(call(now, if state == NotificationState::Acknowledged { 200 } else { 503 })),
        tells_history: false,
    }
}

pub(super) async fn settle(store: &Shared, notified: NotificationResult) -> bool {
    let held = store.settle_notifications(vec![notified]).await.unwrap();
    assert_eq!(held.len(), 1);
    held[0]
}

pub(super) async fn state(store: &Shared, now: Time) -> (Vec<String>, Option<Time>) {
    let ReportState { due, next_due_at } = store.report_state(now).await.unwrap();
    (due.iter().map(|one| format!("{}/{}", one.tenant, one.subscriber)).collect(), next_due_at)
}

pub(super) async fn view(store: &Shared, key: &NotificationKey) -> NotificationView {
    let all = store.notifications(&key.tenant, key.uid).await.unwrap();
    all.into_iter().find(|view| view.key == *key).expect("the notification is there")
}

/// Accepts and sends a message; one webhook, `one`, is notified of `accepted` (1) and `sent` (4).
pub(super) async fn sent_and_told(store: &Shared) -> MessageUid {
    subscribe(store, webhook(TENANT, "one")).await;
    let uid = send(store, Sample::new(1), 5).await;
    assert_eq!(tell(store, at(10)).await, 2);
    uid
}

/// The next one waits until the one before it is settled, also for another claimer.
pub async fn only_the_lowest_of_a_message_is_given_out(store: &Shared) {
    let uid = sent_and_told(store).await;
    let first = claim(store, "one", 1, at(11), 9).await;
    assert_eq!(seqs(&first), [1]);
    let ToNotify { key, event, deferred, tries, created_at } = &first[0];
    assert_eq!((key.uid, &key.tenant, *deferred, *tries), (uid, &tenant(), false, 0));
    assert_eq!(*created_at, at(10));
    assert_eq!(event.as_ref(), record(store, uid).await.events.first());
    assert!(claim(store, "one", 2, at(11), 9).await.is_empty());
    assert_eq!(state(store, at(11)).await, (Vec::new(), None), "nothing can be called");
    let held = view(store, key).await;
    assert_eq!((held.state, held.due_at), (NotificationState::Calling, None));

    assert!(settle(store, called(&first[0], 1, NotificationState::Acknowledged, at(12))).await);
    assert_eq!(state(store, at(12)).await.0, ["acme/one"]);
    let second = claim(store, "one", 3, at(12), 9).await;
    assert_eq!(seqs(&second), [4]);
    assert_eq!(second[0].event.as_ref().unwrap().kind, EventKind::Sent);
    assert!(settle(store, called(&second[0], 3, NotificationState::Acknowledged, at(13))).await);
    assert_eq!(state(store, at(9_000)).await, (Vec::new(), None));
}

/// With what was sent and what was answered.
pub async fn a_settled_one_reads_back_whole(store: &Shared) {
    sent_and_told(store).await;
    let one = claim(store, "one", 1, at(11), 1).await.remove(0);
    let waits =
        NotificationResult { due_at: Some(at(50)), ..called(&one, 1, NotificationState::Waiting, at(12)) };
    assert!(settle(store, waits).await);
    let found = view(store, &one.key).await;
    assert_eq!((found.state, found.tries, found.due_at), (NotificationState::Waiting, 1, Some(at(50))));
    assert_eq!((found.settled_at, found.last_call), (None, Some(call(at(12), 503))));
    let one = claim(store, "one", 2, at(50), 1).await.remove(0);
    assert_eq!(one.tries, 1);
    // No answer came this time.
    let silent = NotificationCall { status: None, answer: "timed out".to_owned(), ..call(at(60), 0) };
    let dead =
        NotificationResult { call: Some(silent.clone()), ..called(&one, 2, NotificationState::Dead, at(61)) };
    assert!(settle(store, dead).await);
    let found = view(store, &one.key).await;
    assert_eq!((found.state, found.tries, found.due_at), (NotificationState::Dead, 2, None));
    assert_eq!((found.settled_at, found.last_call), (Some(at(61)), Some(silent)));
}

/// Nothing later of the same message is due before it; other messages are not held.
pub async fn what_follows_one_that_waits_waits_as_long(store: &Shared) {
    let uid = sent_and_told(store).await;
    accept(store, Sample::new(2)).await;
    let claimed = claim(store, "one", 1, at(11), 1).await;
    assert_eq!(claimed[0].key.uid, uid);
    let waits = NotificationResult {
        due_at: Some(at(500)),
        ..called(&claimed[0], 1, NotificationState::Waiting, at(12))
    };
    assert!(settle(store, waits).await);
    tell(store, at(13)).await;
    assert_eq!(state(store, at(13)).await, (vec!["acme/one".to_owned()], Some(at(500))));
    assert_eq!(claim(store, "one", 2, at(13), 9).await.len(), 1, "the other message");
    assert_eq!(state(store, at(499)).await, (Vec::new(), Some(at(500))));
    // What happens meanwhile waits as well.
    let bounced = MessageChange {
        events: vec![sample::event(EventKind::Bounced)],
        ..super::stage::change(uid, sent_fence(), MessageState::Sent, at(20))
    };
    assert!(apply(store, bounced).await);
    tell(store, at(21)).await;
    assert_eq!(state(store, at(499)).await, (Vec::new(), Some(at(500))));
    for (token, seq) in [(3, 1), (4, 4), (5, 5)] {
        let next = claim(store, "one", token, at(500), 9).await;
        assert_eq!(seqs(&next), [seq]);
        assert!(settle(store, called(&next[0], token, NotificationState::Acknowledged, at(500))).await);
    }
}

fn sent_fence() -> crate::record::WriteFence {
    crate::record::WriteFence { status: postway_domain::MessageStatus::Sent, token: None, version: None }
}

/// The message goes on with what follows.
pub async fn a_dead_one_leaves_a_gap(store: &Shared) {
    sent_and_told(store).await;
    let one = claim(store, "one", 1, at(11), 1).await.remove(0);
    assert!(settle(store, called(&one, 1, NotificationState::Dead, at(12))).await);
    assert_eq!(seqs(&claim(store, "one", 2, at(12), 9).await), [4]);
}

/// Neither another's token, nor the same twice, nor what was never claimed.
pub async fn a_late_call_settles_nothing(store: &Shared) {
    let uid = sent_and_told(store).await;
    let one = claim(store, "one", 1, at(11), 1).await.remove(0);
    assert!(!settle(store, called(&one, 2, NotificationState::Acknowledged, at(12))).await);
    let unclaimed = ToNotify { key: NotificationKey { seq: 4, ..one.key.clone() }, ..one.clone() };
    assert!(!settle(store, called(&unclaimed, 1, NotificationState::Dead, at(12))).await);
    let unknown = ToNotify { key: NotificationKey { seq: 77, ..one.key.clone() }, ..one.clone() };
    assert!(!settle(store, called(&unknown, 1, NotificationState::Dead, at(12))).await);
    let done = called(&one, 1, NotificationState::Acknowledged, at(12));
    let held = store.settle_notifications(vec![done.clone(), done.clone()]).await.unwrap();
    assert_eq!(held, [true, false]);
    assert!(!settle(store, done).await);
    assert_eq!(store.notifications(&tenant(), uid).await.unwrap().len(), 2);
    assert_eq!(view(store, &one.key).await.tries, 1);
}

/// It is due again, has used no call, and keeps what an earlier call left.
pub async fn one_given_back_without_a_call_costs_nothing(store: &Shared) {
    sent_and_told(store).await;
    let one = claim(store, "one", 1, at(11), 1).await.remove(0);
    assert!(settle(store, called(&one, 1, NotificationState::Waiting, at(12))).await);
    let one = claim(store, "one", 2, at(12), 1).await.remove(0);
    let back = NotificationResult {
        call: None,
        due_at: Some(at(40)),
        ..called(&one, 2, NotificationState::Pending, at(13))
    };
    assert!(settle(store, back).await);
    let found = view(store, &one.key).await;
    assert_eq!((found.state, found.tries, found.due_at), (NotificationState::Pending, 1, Some(at(40))));
    assert_eq!(found.last_call, Some(call(at(12), 503)));
}

/// It is not called, others are, and the state says when it may be called again.
pub async fn who_asked_to_be_left_alone_is(store: &Shared) {
    sent_and_told(store).await;
    subscribe(store, webhook(TENANT, "two")).await;
    send(store, Sample::new(2), 15).await;
    tell(store, at(20)).await;
    let quiet = DirectoryChange::QuietSubscriber(tenant(), "one".parse().unwrap(), at(100));
    assert_eq!(direct(store, quiet).await, ChangeResult::Done);
    assert_eq!(state(store, at(20)).await, (vec!["acme/two".to_owned()], Some(at(100))));
    assert!(claim(store, "one", 1, at(99), 9).await.is_empty());
    assert_eq!(claim(store, "two", 2, at(99), 9).await.len(), 1);
    assert_eq!(state(store, at(100)).await.0, ["acme/one"]);
    assert_eq!(claim(store, "one", 3, at(100), 9).await.len(), 2);

    let mut off = store.subscriber(&tenant(), &"two".parse().unwrap()).await.unwrap().unwrap();
    (off.active, off.version) = (false, 2);
    assert_eq!(direct(store, DirectoryChange::UpdateSubscriber(off.clone(), 1)).await, ChangeResult::Done);
    let waiting =
        store.deliveries(&tenant(), &off.id, Some(NotificationState::Pending), None, 9).await.unwrap().told;
    assert_eq!(waiting.len(), 1);
    assert!(claim(store, "two", 4, at(200), 9).await.is_empty());
    assert_eq!(state(store, at(200)).await, (Vec::new(), None));
    (off.active, off.version) = (true, 3);
    assert_eq!(direct(store, DirectoryChange::UpdateSubscriber(off, 2)).await, ChangeResult::Done);
    assert_eq!(state(store, at(200)).await, (Vec::new(), None), "its first is still being called");
    assert_eq!(store.reclaim_notifications(&[], at(201), 9).await.unwrap(), 3);
    assert_eq!(claim(store, "two", 5, at(201), 9).await.len(), 1);
}

/// Each has its own room; who has much takes nothing from who has little.
pub async fn each_subscriber_is_served_by_its_own_room(store: &Shared) {
    for (of, id) in [(TENANT, "one"), (TENANT, "two"), (OTHER_TENANT, "one")] {
        subscribe(store, webhook(of, id)).await;
    }
    for n in 1..=6 {
        accept(store, Sample::new(n)).await;
    }
    accept(store, Sample::new(9).from(OTHER_TENANT, ACCOUNT)).await;
    tell(store, at(10)).await;
    let theirs = DueSubscriber { tenant: other_tenant(), subscriber: "one".parse().unwrap() };
    let wants = vec![(hook("one"), 4), (theirs, 9), (hook("two"), 1), (hook("nobody"), 9)];
    let request = ReportRequest { lease: sample::lease(1, at(10)), now: at(10), wants };
    let claimed = store.claim_notifications(request).await.unwrap();
    let counts = claimed.iter().fold(BTreeMap::new(), |mut counts: BTreeMap<String, u32>, one| {
        *counts.entry(format!("{}/{}", one.key.tenant, one.key.subscriber)).or_default() += 1;
        counts
    });
    let expected = [("acme/one", 4), ("acme/two", 1), ("globex/one", 1)];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());
    assert!(claimed.iter().all(|one| one.event.is_some()));
    assert!(claimed[..4].is_sorted_by_key(|one| one.key.uid), "the longest due first");
}

/// The calls of a dead process, and of one that hangs, are given to another; the late answer is not taken.
pub async fn what_a_dead_process_was_calling_is_given_back(store: &Shared) {
    sent_and_told(store).await;
    let lost = claim(store, "one", 1, at(11), 1).await.remove(0);
    assert_eq!(store.reclaim_notifications(&[incarnation(1)], at(12), 9).await.unwrap(), 0);
    assert_eq!(store.reclaim_notifications(&[incarnation(2)], at(12), 0).await.unwrap(), 0);
    assert_eq!(store.reclaim_notifications(&[incarnation(2)], at(12), 9).await.unwrap(), 1);
    assert_eq!(store.reclaim_notifications(&[incarnation(2)], at(12), 9).await.unwrap(), 0);
    assert!(!settle(store, called(&lost, 1, NotificationState::Acknowledged, at(13))).await);
    let heir = claim(store, "one", 2, at(13), 1).await.remove(0);
    assert_eq!((&heir.key, heir.tries), (&lost.key, 0));
    let backstop = at(13).plus(LEASE_LASTS);
    assert_eq!(store.reclaim_notifications(&[incarnation(1)], backstop, 9).await.unwrap(), 1);
    let again = view(store, &heir.key).await;
    assert_eq!((again.state, again.due_at), (NotificationState::Pending, Some(backstop)));
}

/// With all its calls before it, and only where it is settled.
pub async fn a_settled_one_is_sent_again_on_request(store: &Shared) {
    sent_and_told(store).await;
    let one = claim(store, "one", 1, at(11), 1).await.remove(0);
    assert!(!store.notify_again(&one.key, at(12)).await.unwrap(), "it is being called");
    assert!(settle(store, called(&one, 1, NotificationState::Dead, at(12))).await);
    assert!(store.notify_again(&one.key, at(13)).await.unwrap());
    assert!(!store.notify_again(&one.key, at(13)).await.unwrap());
    let theirs = NotificationKey { tenant: other_tenant(), ..one.key.clone() };
    assert!(!store.notify_again(&theirs, at(13)).await.unwrap());
    let found = view(store, &one.key).await;
    assert_eq!((found.state, found.tries, found.settled_at), (NotificationState::Pending, 0, None));
    assert_eq!(seqs(&claim(store, "one", 2, at(13), 9).await), [1], "and what follows waits");
}

/// `notifying` before each call, and `notified` after it; concurrent work on the message is not disturbed.
pub async fn the_history_tells_of_calls(store: &Shared) {
    let uid = sent_and_told(store).await;
    let before = record(store, uid).await;
    let one = claim(store, "one", 1, at(11), 1).await.remove(0);
    let begun = |one: &ToNotify, token, now| BegunCall {
        key: one.key.clone(),
        token: sample::lease(token, now).token,
        at: now,
    };
    let tells =
        |token, state, now| NotificationResult { tells_history: true, ..called(&one, token, state, now) };
    let kinds = async || {
        let after = record(store, uid).await;
        assert_gapless(&after);
        let added = after.events[before.events.len()..].iter();
        added.map(|event| (event.kind, event.at)).collect::<Vec<_>>()
    };
    let (began, taken) = (EventKind::Notifying, EventKind::Notified);
    let unknown = ToNotify { key: NotificationKey { seq: 77, ..one.key.clone() }, ..one.clone() };
    let asked = vec![begun(&unknown, 1, at(11)), begun(&one, 1, at(11)), begun(&one, 2, at(11))];
    assert_eq!(store.begin_calls(asked).await.unwrap(), [false, true, false], "by whom it was claimed");
    assert_eq!(kinds().await, [(began, at(11))], "before the call");
    // Who called is gone, and so is what came of it; the call is not forgotten.
    assert_eq!(store.reclaim_notifications(&[], at(12), 9).await.unwrap(), 1);
    assert_eq!(store.begin_calls(vec![begun(&one, 1, at(12))]).await.unwrap(), [false], "too late");
    claim(store, "one", 2, at(12), 1).await;
    assert_eq!(store.begin_calls(vec![begun(&one, 2, at(13))]).await.unwrap(), [true]);
    assert!(settle(store, tells(2, NotificationState::Waiting, at(13))).await);
    claim(store, "one", 3, at(13), 1).await;
    assert_eq!(store.begin_calls(vec![begun(&one, 3, at(14))]).await.unwrap(), [true]);
    assert!(settle(store, tells(3, NotificationState::Acknowledged, at(14))).await);
    let called = [(began, at(11)), (began, at(13)), (began, at(14)), (taken, at(14))];
    assert_eq!(kinds().await, called, "both that failed, and the one that was taken");
    assert_eq!(store.begin_calls(Vec::new()).await.unwrap(), [false; 0]);
    let after = record(store, uid).await;
    assert_eq!((after.summary.version, after.summary.state), (before.summary.version, MessageState::Sent));
    let data = after.events.last().unwrap().data.as_deref().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data, serde_json::json!({"subscriber": "one", "status": 200}));
    assert_eq!(sequence(store).await, 0, "this is not told itself");
}

/// Page by page, in one state or in any.
pub async fn deliveries_go_back_from_the_newest(store: &Shared) {
    sent_and_told(store).await;
    for n in 2..=5 {
        accept(store, Sample::new(n)).await;
    }
    tell(store, at(20)).await;
    let one = claim(store, "one", 1, at(20), 1).await.remove(0);
    assert!(settle(store, called(&one, 1, NotificationState::Dead, at(21))).await);
    let id = hook("one").subscriber;
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let page = store.deliveries(&tenant(), &id, None, before, 2).await.unwrap();
        assert!(page.told.len() <= 2);
        read.extend(page.told.into_iter().map(|view| (view.key.uid, view.key.seq)));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(read.len(), 6);
    assert!(read.is_sorted_by(|newer, older| newer > older));
    let dead = store.deliveries(&tenant(), &id, Some(NotificationState::Dead), None, 9).await.unwrap();
    assert_eq!(dead.told.iter().map(|view| &view.key).collect::<Vec<_>>(), [&one.key]);
    assert_eq!(dead.next, None);
    assert!(store.deliveries(&other_tenant(), &id, None, None, 9).await.unwrap().told.is_empty());
}

/// However many claimers come together, and each message in order.
pub async fn no_notification_is_claimed_twice_by_eight_claimers(store: &Shared) {
    subscribe(store, webhook(TENANT, "one")).await;
    for n in 0..30 {
        let claimed = accept_and_claim(store, Sample::new(n), 1).await;
        assert!(apply(store, outcome(&claimed, false, AttemptOutcome::Failed, at(1))).await);
    }
    tell(store, at(2)).await;
    let calls = (0..8i64).map(|n| {
        let store = store.clone();
        async move {
            let mut all = Vec::new();
            for round in 0..12 {
                let token = n * 100 + round;
                let claimed = claim(&store, "one", token, at(3), 3).await;
                for one in &claimed {
                    let lower = view(&store, &NotificationKey { seq: 1, ..one.key.clone() }).await;
                    assert!(one.key.seq == 1 || lower.state == NotificationState::Acknowledged);
                }
                let done =
                    claimed.iter().map(|one| called(one, token, NotificationState::Acknowledged, at(3)));
                let held = store.settle_notifications(done.collect()).await.unwrap();
                assert!(held.iter().all(|held| *held));
                all.extend(claimed.into_iter().map(|one| one.key));
            }
            all
        }
    });
    let mut claimed: Vec<_> = all_at_once(calls).await.into_iter().flatten().collect();
    // What one had locked, another passed over.
    for round in 0..60 {
        let rest = claim(store, "one", 9_000 + round, at(3), 3).await;
        let done = rest.iter().map(|one| called(one, 9_000 + round, NotificationState::Acknowledged, at(3)));
        store.settle_notifications(done.collect()).await.unwrap();
        claimed.extend(rest.into_iter().map(|one| one.key));
    }
    assert_eq!(claimed.len(), 60);
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), 60);
}
