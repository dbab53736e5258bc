//! What mail that came in may change, by how well it is proven.

use postway_domain::{EventKind, InboundState, Subscriber, SubscriberKind, Time};

use super::{
    Shared,
    findings::{arrive, certified, finding, kinds_of, outcomes, receipt, say},
    inbound::{mail, page, register, routed, settle, take},
    journal::{send, tell},
    mailboxes::watch,
    retention::DAY_MS,
    sample::{Sample, TENANT, at, tenant},
    stage::{assert_gapless, record},
    subscribers::{subscribe, webhook},
    suppress::suppression,
};
use crate::record::{
    DirectoryChange, InboundMailResult, MessageFinding, NewReceipt, SuppressionReason, SuppressionRecord,
};

/// It is in the history, and webhooks are notified. No outcome, no count, no wait, and no older form of
/// subscriber changes.
pub async fn an_unproven_report_is_told_and_changes_nothing(store: &Shared) {
    for one in [
        webhook(TENANT, "hook"),
        Subscriber { kind: SubscriberKind::Callback, ..webhook(TENANT, "callback") },
        Subscriber { kind: SubscriberKind::Sync, ..webhook(TENANT, "sync") },
    ] {
        subscribe(store, one).await;
    }
    let uid = certified(store, 1, 30).await;
    let unsigned = NewReceipt { signature: "unverified", ..receipt(1, "avvenuta-consegna") };
    let said = MessageFinding { receipt: Some(unsigned), ..finding(uid, EventKind::UnprovenReport) };
    say(store, 1, vec![said, finding(uid, EventKind::UnprovenReport)], 10).await;
    let found = record(store, uid).await;
    assert_gapless(&found);
    assert_eq!(kinds_of(&found)[found.events.len() - 2..], [EventKind::UnprovenReport; 2]);
    assert_eq!((outcomes(store, uid).await, &found.recipients[0].bounce), (vec![None], &None));
    let kept = store.receipts(&tenant(), uid).await.unwrap();
    assert_eq!(kept.iter().map(|one| one.signature.as_str()).collect::<Vec<_>>(), ["unverified"]);
    tell(store, at(11)).await;
    let notifications = store.notifications(&tenant(), uid).await.unwrap();
    let mut told: Vec<_> = notifications
        .iter()
        .filter(|one| one.kind == EventKind::UnprovenReport)
        .map(|one| one.key.subscriber.as_str())
        .collect();
    told.sort_unstable();
    assert_eq!(told, ["hook", "hook", "sync", "sync"], "a callback has no word for it");
    let hours = store.statistics(&tenant(), at(-DAY_MS), at(DAY_MS)).await.unwrap();
    assert!(hours.iter().all(|row| row.counts.bounced + row.counts.complained == 0), "{hours:?}");
    // The wait goes on, and its end is reported.
    assert_eq!(store.time_out_receipts(at(30), 9).await.unwrap(), 1);
    assert_eq!(outcomes(store, uid).await, [Some(EventKind::PecTimeout)]);
}

fn reported(address: &str, created_ms: i64, expires_at: Option<Time>) -> SuppressionRecord {
    SuppressionRecord {
        reason: SuppressionReason::HardBounce,
        note: Some(format!("reported at {created_ms}")),
        created_at: at(created_ms),
        expires_at,
        ..suppression(TENANT, address)
    }
}

/// A better proof makes it permanent; a lesser one neither ends it earlier nor takes over what it says.
pub async fn a_lesser_proof_never_shortens_a_suppression(store: &Shared) {
    let uid = send(store, Sample::new(1), 5).await;
    let address = "a@example.org";
    let mut expected: Option<SuppressionRecord> = None;
    let steps = [
        (reported(address, 1, Some(at(1_000))), true),
        (reported(address, 2, Some(at(900))), false),
        (reported(address, 3, Some(at(1_000))), true),
        (reported(address, 4, Some(at(2_000))), true),
        (reported(address, 5, None), true),
        (reported(address, 6, Some(at(9_000))), false),
        (reported(address, 7, None), true),
    ];
    for (n, (suppress, takes)) in (1..).zip(steps) {
        let said = MessageFinding { suppress: Some(suppress.clone()), ..finding(uid, EventKind::Bounced) };
        say(store, n, vec![said], 10 + i64::from(n)).await;
        expected = if takes { Some(suppress) } else { expected };
        assert_eq!(store.suppression(&tenant(), address).await.unwrap(), expected, "after {n}");
    }
    // What a person asked for stays too, and a person may shorten it.
    let manual = suppression(TENANT, address);
    let change = DirectoryChange::Suppress(vec![manual.clone()]);
    super::stage::direct(store, change).await;
    let lesser = reported(address, 20, Some(at(9_000)));
    let said = MessageFinding { suppress: Some(lesser.clone()), ..finding(uid, EventKind::Bounced) };
    say(store, 20, vec![said], 40).await;
    assert_eq!(store.suppression(&tenant(), address).await.unwrap(), Some(manual));
    super::stage::direct(store, DirectoryChange::Suppress(vec![lesser.clone()])).await;
    assert_eq!(store.suppression(&tenant(), address).await.unwrap(), Some(lesser));
}

/// In whatever order they come, of many addresses, in one call: the longest stays.
pub async fn suppressions_of_many_reports_are_merged(store: &Shared) {
    let uid = send(store, Sample::new(1), 5).await;
    let first = arrive(store, 99, at(5)).await;
    let of = |address: &str, until: Option<i64>| MessageFinding {
        suppress: Some(reported(address, 1, until.map(at))),
        ..finding(uid, EventKind::Bounced)
    };
    let said = InboundMailResult {
        findings: vec![of("kept@example.org", None)],
        ..routed(&first, 99, InboundState::Routed, at(6))
    };
    assert!(settle(store, said).await);
    let key = watch(store, "reports").await;
    register(store, page(&key, None, (5, 99), (1..=40).map(mail).collect())).await;
    let claimed = take(store, 1, at(7), 99).await;
    let settled: Vec<InboundMailResult> = (0..)
        .zip(&claimed)
        .map(|(n, one)| InboundMailResult {
            findings: vec![
                of(&format!("a{n}@example.org"), Some(1_000 + n)),
                of("both@example.org", (n == 20).then_some(5_000).or((n != 10).then_some(1_000 + n))),
                of("timed@example.org", Some(if n == 7 { 9_000 } else { 100 + n })),
                of("kept@example.org", Some(9_000)),
            ],
            ..routed(one, 1, InboundState::Routed, at(8))
        })
        .collect();
    assert_eq!(store.settle_inbound(settled).await.unwrap(), [true; 40]);
    let until =
        async |address: &str| store.suppression(&tenant(), address).await.unwrap().unwrap().expires_at;
    assert_eq!(until("a0@example.org").await, Some(at(1_000)));
    assert_eq!(until("a39@example.org").await, Some(at(1_039)));
    assert_eq!(until("both@example.org").await, None);
    assert_eq!(until("timed@example.org").await, Some(at(9_000)));
    assert_eq!(until("kept@example.org").await, None);
}

/// The mail is replayed once the authority is trusted: what it says counts then, and the receipt is kept
/// once.
pub async fn a_receipt_that_is_verified_later_counts_from_then_on(store: &Shared) {
    let uid = certified(store, 1, 30).await;
    let judged = |signature, kind| MessageFinding {
        receipt: Some(NewReceipt { signature, ..receipt(1, "avvenuta-consegna") }),
        ..finding(uid, kind)
    };
    let unverified = || judged("unverified", EventKind::UnprovenReport);
    let verified = || judged("verified", EventKind::PecDelivered);
    let mut told = record(store, uid).await.events.len();
    for (n, said, is_new, outcome) in [
        (1, unverified(), true, None),
        (2, unverified(), false, None),
        (3, verified(), true, Some(EventKind::PecDelivered)),
        (4, verified(), false, Some(EventKind::PecDelivered)),
        (5, unverified(), false, Some(EventKind::PecDelivered)),
    ] {
        say(store, n, vec![said], 10 + i64::from(n)).await;
        told += usize::from(is_new);
        assert_eq!(record(store, uid).await.events.len(), told, "after {n}");
        assert_eq!(outcomes(store, uid).await, [outcome], "after {n}");
        let kept = store.receipts(&tenant(), uid).await.unwrap();
        let signature = if n < 3 { "unverified" } else { "verified" };
        assert_eq!((kept.len(), kept[0].signature.as_str()), (1, signature), "after {n}");
        assert_eq!(kept[0].inbound, mail(1).uid);
    }
    assert_eq!(store.time_out_receipts(at(40), 9).await.unwrap(), 0);
}
