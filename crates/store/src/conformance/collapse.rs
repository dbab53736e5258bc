//! A newer message takes the place of an older one that has not left yet.

use postway_domain::{
    EventKind, MessageState, MessageStatus, MessageUid, RecipientStatus,
    message::{AttemptOutcome, OnDoubt, TransitionInput},
};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{
        accept, accept_and_claim, all_at_once, apply, assert_gapless, claim, commit_wire, doubt, late, offer,
        outcome, record, request, step, uids,
    },
};
use crate::record::{Acceptance, MessageChange, MessageFilter, RecipientChange};

/// Asserts that a message was superseded by another, and that its history says so.
async fn assert_superseded(store: &Shared, old: MessageUid, by: MessageUid) {
    let found = record(store, old).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Cancelled, None));
    assert!(found.recipients.iter().all(|one| one.status == RecipientStatus::Cancelled));
    let event = found.events.last().unwrap();
    assert_eq!(event.kind, EventKind::Cancelled);
    let data: serde_json::Value = serde_json::from_str(event.data.as_deref().unwrap()).unwrap();
    assert_eq!(data, serde_json::json!({"reason": "superseded", "by": by.to_string()}));
    let error: serde_json::Value = serde_json::from_str(found.summary.error.as_deref().unwrap()).unwrap();
    assert_eq!(error["code"], "superseded");
    assert_gapless(&found);
}

/// Ready or scheduled, whichever account was to send it.
pub async fn a_newer_message_supersedes_the_one_that_waits(store: &Shared) {
    let first = accept(store, Sample::new(1).collapse("code").to("a@example.org").to("b@example.org")).await;
    let second = accept(store, Sample::new(2).collapse("code").created(10).send_at(5_000)).await;
    assert_superseded(store, first, second).await;
    assert_eq!(record(store, first).await.summary.updated_at, at(10));
    let third = accept(store, Sample::new(3).collapse("code").from(TENANT, OTHER_ACCOUNT).created(20)).await;
    assert_superseded(store, second, third).await;
    assert!(claim(store, 1, at(9_000), 9).await.is_empty());
    assert_eq!(record(store, third).await.summary.state, MessageState::Ready);
    let stats = store.stats(Some(&tenant()), at(9_000)).await.unwrap();
    let count = |status| stats.by_status.get(&status).copied().unwrap_or_default();
    assert_eq!(
        (count(MessageStatus::Cancelled), count(MessageStatus::Ready), count(MessageStatus::Scheduled)),
        (2, 1, 0)
    );
}

/// A key names what came with it, in its tenant.
pub async fn other_keys_and_tenants_do_not_meet(store: &Shared) {
    let plain = accept(store, Sample::new(1)).await;
    let mine = accept(store, Sample::new(2).collapse("code")).await;
    accept(store, Sample::new(3).collapse("code").from(OTHER_TENANT, ACCOUNT)).await;
    let upper = accept(store, Sample::new(4).collapse("CODE")).await;
    let space = accept(store, Sample::new(5).collapse("code ")).await;
    accept(store, Sample::new(6)).await;
    for uid in [plain, mine, upper, space] {
        assert_eq!(record(store, uid).await.summary.state, MessageState::Ready);
    }
    let theirs = store.messages(&other_tenant(), &MessageFilter::default(), None, 9).await.unwrap();
    assert_eq!(theirs[0].state, MessageState::Ready);
}

/// It may have left already, and what ended has ended.
pub async fn what_is_sent_or_being_sent_is_left(store: &Shared) {
    let sending = accept_and_claim(store, Sample::new(1).collapse("code"), 1).await;
    let next = accept(store, Sample::new(2).collapse("code")).await;
    assert_eq!(record(store, sending.uid).await.summary.version, sending.version);
    assert_eq!(record(store, next).await.summary.state, MessageState::Ready);
    let failed = claim(store, 2, at(0), 1).await.remove(0);
    assert!(apply(store, outcome(&failed, false, AttemptOutcome::Failed, at(1))).await);
    accept(store, Sample::new(3).collapse("code")).await;
    assert_eq!(record(store, next).await.summary.state, MessageState::Failed);
}

/// A try that failed for now has not left: it waits like any other.
pub async fn what_waits_for_its_retry_is_superseded(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1).collapse("code"), 1).await;
    let retry =
        MessageChange { due_at: Some(at(5_000)), ..outcome(&claimed, false, AttemptOutcome::Retry, at(1)) };
    assert!(apply(store, retry).await);
    let newer = accept(store, Sample::new(2).collapse("code")).await;
    assert_superseded(store, claimed.uid, newer).await;
}

/// Those still open are not sent to. What was sent, or may have been, is not called withdrawn.
pub async fn what_was_sent_or_is_in_doubt_stays_so_when_the_rest_is_superseded(store: &Shared) {
    let cases = [
        (RecipientStatus::InDoubt, MessageState::InDoubt, EventKind::InDoubt),
        (RecipientStatus::Sent, MessageState::Sent, EventKind::Sent),
    ];
    for (n, (first, becomes, event)) in (1..).zip(cases) {
        let (key, n) = (format!("code {n}"), n * 10);
        let sample = Sample::new(n).collapse(&key).to("a@example.org").to("b@example.org");
        let claimed = accept_and_claim(store, sample, i64::from(n)).await;
        let one = RecipientChange { position: 0, status: first, reply: None };
        let retry = MessageChange {
            due_at: Some(at(5_000)),
            recipients: vec![one],
            ..outcome(&claimed, false, AttemptOutcome::Retry, at(1))
        };
        assert!(apply(store, retry).await);
        let newer = Sample::new(n + 1).collapse(&key).send_at(9_000);
        accept(store, newer).await;
        let found = record(store, claimed.uid).await;
        assert_eq!((found.summary.state, found.summary.due_at), (becomes, None));
        let stand: Vec<_> = found.recipients.iter().map(|one| one.status).collect();
        assert_eq!(stand, [first, RecipientStatus::Cancelled]);
        let told: Vec<_> = found.events.iter().rev().take(2).map(|event| event.kind).collect();
        assert_eq!(told, [event, EventKind::Cancelled]);
        assert!(found.events.last().unwrap().data.as_deref().unwrap().contains("superseded"));
        assert_gapless(&found);
    }
}

/// It may have arrived, so it is not withdrawn; sent again it would come after the newer one.
pub async fn what_waits_to_be_sent_again_is_held_when_superseded(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1).collapse("code"), 1).await;
    doubt(store, &mut claimed, Some(at(5_000)), at(10)).await;
    let newer = accept(store, Sample::new(2).collapse("code").created(20)).await;
    let found = record(store, claimed.uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::InDoubt, None));
    assert_eq!((found.summary.on_doubt, found.summary.doubts), (OnDoubt::Hold, 1));
    assert_eq!(found.recipients[0].status, RecipientStatus::InDoubt);
    assert!(found.summary.error.as_deref().unwrap().contains(r#""code":"superseded""#));
    let event = found.events.last().unwrap();
    let told: serde_json::Value = serde_json::from_str(event.data.as_deref().unwrap()).unwrap();
    let by = serde_json::json!({"reason": "superseded", "by": newer.to_string()});
    assert_eq!((event.kind, told), (EventKind::InDoubt, by));
    assert_gapless(&found);
    assert_eq!(uids(&claim(store, 2, at(9_000), 9).await), [newer]);
    let answer = TransitionInput::Settle(AttemptOutcome::Sent);
    let late = step(claimed.uid, late(claimed.token), MessageState::InDoubt, answer, at(9_001));
    assert!(apply(store, late).await, "its own late answer still settles it");

    let mut held = accept_and_claim(store, Sample::new(3).collapse("held"), 3).await;
    let version = doubt(store, &mut held, None, at(10)).await;
    accept(store, Sample::new(4).collapse("held")).await;
    assert_eq!(record(store, held.uid).await.summary.version, version, "there is nothing to hold");
}

/// Its attempt cannot know, so the store decides, and the history announces no other attempt.
pub async fn what_is_superseded_while_it_is_sent_is_held_if_in_doubt(store: &Shared) {
    let mut doubtful = accept_and_claim(store, Sample::new(1).collapse("a"), 1).await;
    let refused = accept_and_claim(store, Sample::new(2).collapse("b"), 2).await;
    for (n, key) in [(3, "a"), (4, "b")] {
        accept(store, Sample::new(n).collapse(key).send_at(99_000)).await;
    }
    let next = r#"{"attempt":1,"will_retry":true,"next_attempt":2,"backoff_ms":4990,"due_at":"soon"}"#;
    let telling = |change: MessageChange| change.telling(&serde_json::from_str(next).unwrap());
    assert!(commit_wire(store, &mut doubtful, at(9)).await);
    let lost = MessageChange {
        due_at: Some(at(5_000)),
        ..telling(outcome(&doubtful, true, AttemptOutcome::InDoubt, at(10)))
    };
    assert!(apply(store, lost).await);
    let found = record(store, doubtful.uid).await;
    let summary = &found.summary;
    assert_eq!(
        (summary.state, summary.due_at, summary.on_doubt),
        (MessageState::InDoubt, None, OnDoubt::Hold)
    );
    let held = r#"{"attempt":1,"will_retry":false,"next_attempt":null,"backoff_ms":null}"#;
    assert_eq!(found.events.last().unwrap().data.as_deref(), Some(held));
    let retry = MessageChange {
        due_at: Some(at(6_000)),
        ..telling(outcome(&refused, false, AttemptOutcome::Retry, at(10)))
    };
    assert!(apply(store, retry).await);
    assert_eq!(record(store, refused.uid).await.events.last().unwrap().data.as_deref(), Some(next));
    assert_eq!(uids(&claim(store, 3, at(9_000), 9).await), [refused.uid], "a retry is its own matter");
}

/// In the order of the call.
pub async fn in_one_call_the_last_wins(store: &Shared) {
    let waits = accept(store, Sample::new(0).collapse("a")).await;
    let call = [(1, "a"), (2, "b"), (3, "a"), (4, "a"), (5, "b")];
    let messages: Vec<_> = call.map(|(n, key)| Sample::new(n).collapse(key).build()).into();
    let uid: Vec<MessageUid> = messages.iter().map(|message| message.uid).collect();
    store.accept(messages).await.unwrap();
    for (old, by) in [(waits, uid[0]), (uid[0], uid[2]), (uid[1], uid[4]), (uid[2], uid[3])] {
        assert_superseded(store, old, by).await;
    }
    assert_eq!(uids(&claim(store, 1, at(0), 9).await), [uid[3], uid[4]]);
}

/// A repeat supersedes nothing.
pub async fn a_repeat_supersedes_nothing(store: &Shared) {
    let first = accept(store, Sample::new(1).key("k").collapse("code")).await;
    let again = offer(store, Sample::new(2).key("k").collapse("code")).await;
    assert_eq!(again, Acceptance::Repeat { uid: first });
    assert_eq!(record(store, first).await.summary.state, MessageState::Ready);
    let newer = accept(store, Sample::new(3).collapse("code")).await;
    assert_superseded(store, first, newer).await;
}

/// However many come together.
pub async fn of_twenty_concurrent_messages_with_one_key_one_waits(store: &Shared) {
    let calls = (0..20).map(|n| {
        let store = store.clone();
        async move { accept(&store, Sample::new(n).collapse("code")).await }
    });
    let all = all_at_once(calls).await;
    let claimed = uids(&store.claim(request(&sample::relay(), 1, at(0), 99, false)).await.unwrap());
    assert_eq!(claimed.len(), 1);
    for uid in all.into_iter().filter(|uid| *uid != claimed[0]) {
        let found = record(store, uid).await;
        assert_eq!(found.summary.state, MessageState::Cancelled);
        assert_eq!(found.events.iter().filter(|event| event.kind == EventKind::Cancelled).count(), 1);
        assert_gapless(&found);
    }
}
