//! Events of changed suppression lists, which belong to no message, and the counters of streams.

use postway_domain::{EventKind, Time};
use serde_json::{Value, json};

use super::{
    Shared,
    journal::{send, tell},
    sample::{self, Sample, TENANT, at, other_tenant, tenant},
    stage::direct,
    streams::{scoped, stream},
    subscribers::{subscribe, webhook},
};
use crate::record::{
    ChangeResult, DirectoryChange, DueSubscriber, FeedEvent, FeedPosition, ReaderDecision, ReportRequest,
    StreamCounts, SuppressionReason, SuppressionRecord,
};

const DAY_MS: i64 = 24 * 3_600_000;

fn suppression(address: &str, ms: i64, expires_ms: Option<i64>) -> SuppressionRecord {
    SuppressionRecord {
        tenant: tenant(),
        address: address.to_owned(),
        reason: SuppressionReason::Manual,
        note: Some("by phone".to_owned()),
        created_at: at(ms),
        expires_at: expires_ms.map(at),
    }
}

async fn suppress(store: &Shared, one: SuppressionRecord) {
    assert_eq!(direct(store, DirectoryChange::Suppress(vec![one])).await, ChangeResult::Done);
}

/// The changes in the feed: kind, address, origin, stream and reason.
async fn changes(store: &Shared) -> Vec<(EventKind, String)> {
    tell(store, at(0)).await;
    let feed = store.feed(&tenant(), FeedPosition::default(), 99).await.unwrap();
    let shown = |one: FeedEvent| {
        let data = one.event.and_then(|event| event.data).unwrap_or_else(|| "{}".to_owned());
        let data: Value = serde_json::from_str(&data).unwrap();
        let word = |name: &str| data[name].as_str().unwrap_or("-").to_owned();
        (one.kind, ["pattern", "origin", "stream", "reason"].map(word).join(" "))
    };
    feed.into_iter().filter(|one| !one.kind.is_of_message()).map(shown).collect()
}

/// By whoever changes it, once, and not when what holds is renewed.
pub async fn changes_of_suppressions_are_in_the_feed(store: &Shared) {
    use EventKind::{SuppressionCreated as Begun, SuppressionDeleted as Ended};
    suppress(store, suppression("ada@example.org", 1, None)).await;
    suppress(store, suppression("ada@example.org", 2, None)).await;
    let remove = |ms| DirectoryChange::Unsuppress(tenant(), vec!["ada@example.org".to_owned()], at(ms));
    assert_eq!(direct(store, remove(3)).await, ChangeResult::Done);
    assert_eq!(direct(store, remove(4)).await, ChangeResult::Missing);
    suppress(store, suppression("bob@example.org", 5, Some(10))).await;
    let of_stream = scoped(Some(TENANT), "*@example.org", Some("news"));
    let everywhere = scoped(None, "*@example.com", None);
    let both = DirectoryChange::SuppressScoped(vec![of_stream.clone(), everywhere]);
    assert_eq!(direct(store, both).await, ChangeResult::Done);
    let lift = DirectoryChange::UnsuppressScoped(vec![of_stream.scope], at(6));
    assert_eq!(direct(store, lift).await, ChangeResult::Done);
    assert_eq!(direct(store, DirectoryChange::Forget(at(20))).await, ChangeResult::Done);
    assert_eq!(direct(store, DirectoryChange::Forget(at(21))).await, ChangeResult::Done);
    let expected = [
        (Begun, "ada@example.org operator - manual"),
        (Ended, "ada@example.org operator - manual"),
        (Begun, "bob@example.org operator - manual"),
        (Begun, "*@example.org operator news manual"),
        (Ended, "*@example.org operator news manual"),
        (Ended, "bob@example.org expiry - manual"),
    ];
    let found = changes(store).await;
    assert_eq!(found, expected.map(|(kind, words)| (kind, words.to_owned())));
    let theirs = store.feed(&other_tenant(), FeedPosition::default(), 99).await.unwrap();
    assert!(theirs.is_empty(), "{theirs:?}");
}

/// A reader's decision is both: an event of the message, and a change of the list.
pub async fn a_readers_decision_changes_a_list(store: &Shared) {
    let uid = send(store, Sample::new(1).to("ada@example.org").batch("news:1"), 5).await;
    for (leaves, ms) in [(true, 50), (true, 55), (false, 60)] {
        let decision = ReaderDecision {
            tenant: tenant(),
            message: uid,
            stream: "news".parse().unwrap(),
            address: "ada@example.org".to_owned(),
            leaves,
            via: "page",
            at: at(ms),
        };
        store.decide(decision).await.unwrap();
    }
    let expected = "ada@example.org reader news unsubscribe".to_owned();
    let both = [EventKind::SuppressionCreated, EventKind::SuppressionDeleted];
    assert_eq!(changes(store).await, both.map(|kind| (kind, expected.clone())));
}

/// As any other event, with its data and without a message.
pub async fn subscribers_are_notified_of_changed_suppressions(store: &Shared) {
    subscribe(store, webhook(TENANT, "hook")).await;
    suppress(store, suppression("ada@example.org", 1_000, None)).await;
    tell(store, at(2_000)).await;
    let who = DueSubscriber { tenant: tenant(), subscriber: "hook".parse().unwrap() };
    let lease = sample::lease(1, at(3_000));
    let request = ReportRequest { lease, now: at(3_000), wants: vec![(who, 9)] };
    let claimed = store.claim_notifications(request).await.unwrap();
    let event = claimed[0].event.as_ref().unwrap();
    assert_eq!((claimed.len(), event.kind), (1, EventKind::SuppressionCreated));
    let data: Value = serde_json::from_str(event.data.as_deref().unwrap()).unwrap();
    assert_eq!((&data["address"], &data["origin"]), (&json!("ada@example.org"), &json!("operator")));
}

/// An erased address is in no event; old events go, and their notifications with them.
pub async fn events_of_suppressions_are_erased_and_end(store: &Shared) {
    let is_known = async |address: &str| {
        let found = changes(store).await;
        found.iter().any(|(_, words)| words.starts_with(address))
    };
    suppress(store, suppression("ada@example.org", 1, None)).await;
    suppress(store, suppression("bob@example.org", 1, None)).await;
    store.erase(&tenant(), "Ada@Example.org", at(5), 99).await.unwrap();
    assert!(!is_known("ada@example.org").await && is_known("bob@example.org").await);
    assert!(store.suppression(&tenant(), "ada@example.org").await.unwrap().is_some(), "the list stays");
    assert_eq!(direct(store, DirectoryChange::Forget(at(29 * DAY_MS))).await, ChangeResult::Done);
    assert!(is_known("bob@example.org").await);
    assert_eq!(direct(store, DirectoryChange::Forget(at(31 * DAY_MS))).await, ChangeResult::Done);
    assert!(!is_known("bob@example.org").await);
}

/// Of streams that exist, by hour, with the readers who leave.
pub async fn hours_of_streams_are_counted_once(store: &Shared) {
    assert_eq!(direct(store, DirectoryChange::CreateStream(stream("news"))).await, ChangeResult::Done);
    let uid = send(store, Sample::new(1).to("ada@example.org").batch("news:1"), 5).await;
    send(store, Sample::new(2).batch("news"), 5).await;
    send(store, Sample::new(3).batch("other:1"), 5).await;
    send(store, Sample::new(4), 5).await;
    let decision = ReaderDecision {
        tenant: tenant(),
        message: uid,
        stream: "news".parse().unwrap(),
        address: "ada@example.org".to_owned(),
        leaves: true,
        via: "one_click",
        at: at(50),
    };
    store.decide(decision).await.unwrap();
    let list = async |id: &str, since: Time, until: Time| {
        store.stream_statistics(&tenant(), &id.parse().unwrap(), since, until).await.unwrap()
    };
    for _ in 0..2 {
        tell(store, at(100)).await;
        let rows = list("news", at(-DAY_MS), at(DAY_MS)).await;
        let counts = StreamCounts { accepted: 2, sent: 2, unsubscribed: 1, ..StreamCounts::default() };
        assert_eq!(rows.iter().map(|row| row.counts).collect::<Vec<_>>(), [counts]);
        assert!(list("other", at(-DAY_MS), at(DAY_MS)).await.is_empty(), "there is no such stream");
        assert!(list("news", at(DAY_MS), at(2 * DAY_MS)).await.is_empty());
    }
    let busiest = store.busiest_streams(at(-DAY_MS), 9).await.unwrap();
    let shown: Vec<_> = busiest.iter().map(|row| (row.stream.as_str(), row.counts.sent)).collect();
    assert_eq!(shown, [("news", 2)]);
    assert!(store.busiest_streams(at(DAY_MS), 9).await.unwrap().is_empty());
    let (other, news) = (other_tenant(), "news".parse().unwrap());
    let theirs = store.stream_statistics(&other, &news, at(-DAY_MS), at(DAY_MS)).await.unwrap();
    assert!(theirs.is_empty());
}
