//! Events against the store in memory: which message they find, what they change, and that they change it
//! once.

use std::sync::Arc;

use postway_domain::{
    EventKind, HookProvider, KeyDigest, MessageUid, ProviderHook, hook::HookSettings, message::AttemptOutcome,
};
use postway_store::{
    conformance::{
        Shared,
        sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, key, lease, tenant},
        stage::{accept_and_claim, apply, attempt, commit_wire, direct, open, outcome, record},
        streams,
    },
    memory::MemoryStore,
    record::{
        AccountKey, AttemptEnd, ClaimedMessage, DirectoryChange, MessageChange, NewProviderEvent,
        ProviderEventBatch, ProviderEventFilter, ScopeFilter, SuppressionReason,
    },
};
use serde_json::{Value, json};

use super::*;

/// A store with a hook of each account.
async fn stage() -> Shared {
    let store: Shared = Arc::new(MemoryStore::new());
    open(&store).await;
    for (n, (tenant, account)) in
        (1..).zip([(TENANT, ACCOUNT), (TENANT, OTHER_ACCOUNT), (OTHER_TENANT, ACCOUNT)])
    {
        let hook = ProviderHook {
            tenant: tenant.parse().unwrap(),
            account: account.parse().unwrap(),
            provider: HookProvider::Http,
            token: KeyDigest([n; 32]),
            settings: HookSettings::default(),
            secret: None,
            version: 1,
            created_at: at(0),
            updated_at: at(0),
        };
        direct(&store, DirectoryChange::PutProviderHook(hook, None)).await;
    }
    store
}

/// Accepts a message and begins to send it.
async fn begin(store: &Shared, sample: Sample) -> ClaimedMessage {
    let mut claimed = accept_and_claim(store, sample, 1).await;
    assert!(commit_wire(store, &mut claimed, at(10)).await);
    claimed
}

/// The provider answered with this id.
async fn answered(store: &Shared, claimed: &ClaimedMessage, id: &str) {
    let ended = AttemptEnd { provider_message_id: Some(id.to_owned()), ..attempt(claimed, at(30)) };
    let change = outcome(claimed, true, AttemptOutcome::Sent, at(30));
    assert!(apply(store, MessageChange { attempt: Some(ended), ..change }).await);
}

async fn send(store: &Shared, sample: Sample, id: &str) -> MessageUid {
    let claimed = begin(store, sample).await;
    answered(store, &claimed, id).await;
    claimed.uid
}

/// Reports events to an account's hook.
async fn report(store: &Shared, key: &AccountKey, events: &[Value]) {
    let events = events.iter().map(|event| {
        let raw = event.to_string();
        let digest = KeyDigest::of(format!("{key:?}{raw}").as_bytes()).0;
        NewProviderEvent {
            uid: MessageUid::new(at(40), &mut rand::rng()),
            digest,
            once: None,
            raw: raw.into(),
        }
    });
    let batch = ProviderEventBatch {
        key: key.clone(),
        provider: HookProvider::Http,
        at: at(40),
        events: events.collect(),
    };
    store.add_provider_events(batch).await.unwrap();
}

/// Processes what is due.
async fn work(store: &Shared, token: i64, ms: i64) -> Vec<ProviderEventState> {
    let claim =
        ProviderEventClaim { lease: lease(token, at(ms)), now: at(ms), limit: 99, bytes_max: u32::MAX };
    let events = store.claim_provider_events(claim).await.unwrap();
    let done = process(&**store, &events, LeaseToken::from_i64(token), at(ms)).await.unwrap();
    let states = done.iter().map(|one| one.to).collect();
    let held = store.settle_provider_events(done).await.unwrap();
    assert!(held.iter().all(|held| *held));
    states
}

async fn kinds(store: &Shared, uid: MessageUid) -> Vec<EventKind> {
    let after_sent = |kind: &EventKind| {
        !matches!(kind, EventKind::Accepted | EventKind::Ready | EventKind::Sending | EventKind::Sent)
    };
    record(store, uid).await.events.iter().map(|event| event.kind).filter(after_sent).collect()
}

fn bounce(id: &str) -> Value {
    json!({"type": "bounced", "message_id": id, "recipient": "ann@example.org", "bounce": "hard",
           "status": "5.1.1", "message": "550 5.1.1 user unknown"})
}

#[tokio::test]
async fn an_event_is_told_once_however_often_and_in_whatever_order() {
    let store = stage().await;
    let uid = send(&store, Sample::new(1).to("ann@example.org"), "p-1").await;
    let delivered = json!({"type": "delivered", "message_id": "p-1", "recipient": "ann@example.org"});
    for events in
        [vec![bounce("p-1")], vec![delivered.clone(), bounce("p-1")], vec![delivered, bounce("p-1")]]
    {
        report(&store, &sample::relay(), &events).await;
        work(&store, 1, 50).await;
    }
    assert_eq!(kinds(&store, uid).await, [EventKind::Bounced, EventKind::Delivered]);
    let found = record(&store, uid).await;
    assert_eq!(found.recipients[0].outcome, Some(EventKind::Bounced), "the worst is shown");
    let bounced = found.events.iter().find(|event| event.kind == EventKind::Bounced).unwrap();
    let data: Value = serde_json::from_str(bounced.data.as_deref().unwrap()).unwrap();
    assert_eq!([&data["proof"], &data["type"], &data["reason"]], ["provider", "hard", "user_unknown"]);
    assert!(data["provider_event"].is_string());
    let suppressed = store.suppression(&tenant(), "ann@example.org").await.unwrap().unwrap();
    assert_eq!((suppressed.reason, suppressed.expires_at), (SuppressionReason::HardBounce, None));
}

/// The keys of one account must not speak for another, of whatever tenant.
#[tokio::test]
async fn an_account_speaks_only_of_mail_that_it_sent() {
    let store = stage().await;
    let uid = send(&store, Sample::new(1).to("ann@example.org"), "p-1").await;
    let by_uid =
        json!({"type": "bounced", "postway_id": uid, "recipient": "ann@example.org", "bounce": "hard"});
    for (n, stranger) in (1..).zip([key(TENANT, OTHER_ACCOUNT), key(OTHER_TENANT, ACCOUNT)]) {
        report(&store, &stranger, &[bounce("p-1"), by_uid.clone()]).await;
        assert_eq!(work(&store, n, 50 + n).await, [ProviderEventState::Waiting; 2]);
    }
    assert!(kinds(&store, uid).await.is_empty());
    assert_eq!(store.suppression(&tenant(), "ann@example.org").await.unwrap(), None);
    report(&store, &sample::relay(), &[by_uid]).await;
    assert_eq!(work(&store, 9, 60).await, [ProviderEventState::Applied]);
    assert_eq!(kinds(&store, uid).await, [EventKind::Bounced]);
}

/// It may come before the answer to the call that sent its message.
#[tokio::test]
async fn an_event_before_the_answer_waits_for_it() {
    let store = stage().await;
    let claimed = begin(&store, Sample::new(1).to("ann@example.org")).await;
    let opened = json!({"type": "opened", "postway_id": claimed.uid, "recipient": "ann@example.org"});
    report(&store, &sample::relay(), &[bounce("p-1"), opened]).await;
    assert_eq!(work(&store, 1, 50).await, [ProviderEventState::Waiting; 2]);
    assert!(work(&store, 2, 60).await.is_empty(), "not before its time");
    answered(&store, &claimed, "p-1").await;
    assert_eq!(work(&store, 3, 3_000).await, [ProviderEventState::Applied; 2]);
    let mut told = kinds(&store, claimed.uid).await;
    told.sort_by_key(|kind| kind.code());
    assert_eq!(told, [EventKind::Bounced, EventKind::Opened]);
}

#[tokio::test]
async fn an_event_without_a_message_is_searched_for_an_hour() {
    let store = stage().await;
    report(&store, &sample::relay(), &[bounce("p-9")]).await;
    let (mut ms, mut tries) = (50, 0);
    let last = loop {
        match work(&store, tries, ms).await.as_slice() {
            [ProviderEventState::Waiting] => tries += 1,
            [other] => break *other,
            none => assert!(none.is_empty()),
        }
        ms += 1_000;
        assert!(ms < 3 * 3_600_000, "it is searched for without end");
    };
    assert_eq!(last, ProviderEventState::Unmatched);
    assert!((3_600_000..4_300_000).contains(&ms) && (10..20).contains(&tries), "{ms} {tries}");
    let filter = ProviderEventFilter { key: sample::relay(), state: Some(ProviderEventState::Unmatched) };
    let found = store.provider_events(&filter, None, 9).await.unwrap();
    assert!(found[0].error.as_deref().unwrap().contains("no message of this account"));
}

#[tokio::test]
async fn what_cannot_be_read_or_says_nothing_is_settled_at_once() {
    let store = stage().await;
    let strange = [json!({"type": "exploded"}), json!({"kind": 1}), json!({"type": "delivered"})];
    report(&store, &sample::relay(), &strange).await;
    use ProviderEventState::{Dead, Waiting};
    let settled = work(&store, 1, 50).await;
    let count = |state| settled.iter().filter(|one| **one == state).count();
    assert_eq!((count(Dead), count(Waiting), settled.len()), (2, 1, 3), "{settled:?}");
}

/// Without a stream the address gets no more mail of the tenant; with one, no more of the stream, and the
/// event is written once even if the process dies between the two writes.
#[tokio::test]
async fn a_reader_who_unsubscribes_at_the_provider_leaves_what_the_message_was() {
    let store = stage().await;
    let uid = send(&store, Sample::new(1).to("ann@example.org"), "p-1").await;
    let left = |id: &str, who: &str| json!({"type": "unsubscribed", "message_id": id, "recipient": who});
    report(&store, &sample::relay(), &[left("p-1", "Ann@example.org")]).await;
    work(&store, 1, 50).await;
    let suppressed = store.suppression(&tenant(), "ann@example.org").await.unwrap().unwrap();
    assert_eq!(suppressed.reason, SuppressionReason::Unsubscribe);
    assert_eq!(kinds(&store, uid).await, [EventKind::Unsubscribed]);

    direct(&store, DirectoryChange::CreateStream(streams::stream("news"))).await;
    let uid = send(&store, Sample::new(2).to("bob@example.org").batch("news"), "p-2").await;
    report(&store, &sample::relay(), &[left("p-2", "bob@example.org")]).await;
    let claim = ProviderEventClaim { lease: lease(2, at(50)), now: at(50), limit: 9, bytes_max: u32::MAX };
    let events = store.claim_provider_events(claim).await.unwrap();
    // The process dies after the decision and before the outcome of the event.
    process(&*store, &events, LeaseToken::from_i64(2), at(50)).await.unwrap();
    store.reclaim_provider_events(&[], at(51), 9).await.unwrap();
    assert_eq!(work(&store, 3, 60_000).await, [ProviderEventState::Applied]);
    assert_eq!(kinds(&store, uid).await, [EventKind::Unsubscribed]);
    assert_eq!(store.suppression(&tenant(), "bob@example.org").await.unwrap(), None);
    let filter = ScopeFilter { tenant: Some(tenant()), stream: None };
    let scoped = store.scoped_suppressions(&filter, None, 9).await.unwrap();
    assert_eq!(scoped.iter().map(|one| one.scope.pattern.as_str()).collect::<Vec<_>>(), ["bob@example.org"]);
}

/// An event that kills its process is set aside, and the others go on.
#[tokio::test]
async fn an_event_that_kills_its_process_is_set_aside() {
    let store = stage().await;
    let uid = send(&store, Sample::new(1).to("ann@example.org"), "p-1").await;
    report(&store, &sample::relay(), &[bounce("p-1")]).await;
    let mut ms = 50;
    for token in 1..=LOST_LEASES_MAX + 1 {
        let claim =
            ProviderEventClaim { lease: lease(token, at(ms)), now: at(ms), limit: 9, bytes_max: u32::MAX };
        assert_eq!(store.claim_provider_events(claim).await.unwrap().len(), 1);
        assert_eq!(store.reclaim_provider_events(&[], at(ms), 9).await.unwrap(), 1);
        ms += 60_000;
    }
    assert_eq!(work(&store, 9, ms).await, [ProviderEventState::Dead]);
    assert!(kinds(&store, uid).await.is_empty());
}
