//! Making notifications of what happened: for whom, once, and in parts.

use std::collections::BTreeMap;

use postway_domain::{
    EventKind, Subscriber, SubscriberKind, message::AttemptOutcome, subscriber::EventFilter,
};

use super::{
    Shared,
    journal::{sequence, tell},
    notifications::{sent_and_told, state},
    sample::{ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, accept_and_claim, all_at_once, apply, direct, outcome},
    subscribers::{subscribe, webhook},
};
use crate::record::{ChangeResult, DirectoryChange, MessageChange, NotificationState};

/// By its filter, its form, its tenant and its age.
pub async fn each_subscriber_is_told_what_it_asked_for(store: &Shared) {
    let filtered = EventFilter(vec!["email.sent".to_owned(), "email.deferred".to_owned()]);
    for one in [
        webhook(TENANT, "all"),
        Subscriber { events: filtered, ..webhook(TENANT, "some") },
        Subscriber { kind: SubscriberKind::Callback, ..webhook(TENANT, "callback") },
        Subscriber { kind: SubscriberKind::Sync, ..webhook(TENANT, "sync") },
        Subscriber { active: false, ..webhook(TENANT, "off") },
        Subscriber { created_at: at(20), ..webhook(TENANT, "late") },
        webhook(OTHER_TENANT, "other"),
    ] {
        subscribe(store, one).await;
    }
    let first = accept_and_claim(store, Sample::new(1), 1).await;
    let retry =
        MessageChange { due_at: Some(at(20)), ..outcome(&first, false, AttemptOutcome::Retry, at(10)) };
    assert!(apply(store, retry).await);
    let again = super::stage::claim(store, 2, at(20), 1).await.remove(0);
    assert!(apply(store, outcome(&again, false, AttemptOutcome::Failed, at(20))).await);
    assert_eq!(tell(store, at(30)).await, 3);

    let mut told: BTreeMap<String, Vec<(i64, EventKind, bool)>> = BTreeMap::new();
    for view in store.notifications(&tenant(), first.uid).await.unwrap() {
        assert_eq!((view.state, view.tries, view.due_at), (NotificationState::Pending, 0, Some(at(30))));
        assert_eq!((view.created_at, view.settled_at, view.last_call), (at(30), None, None));
        let of = told.entry(view.key.subscriber.to_string()).or_default();
        of.push((view.key.seq, view.kind, view.deferred));
    }
    let accepted = (1, EventKind::Accepted, false);
    let deferred = (4, EventKind::Scheduled, true);
    let failed = (6, EventKind::Failed, false);
    let expected = [
        ("all", vec![accepted, deferred, failed]),
        ("callback", vec![failed]),
        ("late", vec![failed]),
        ("some", vec![deferred]),
        ("sync", vec![deferred, failed]),
    ];
    assert_eq!(told, expected.map(|(id, list)| (id.to_owned(), list)).into());
    let due = ["acme/all", "acme/callback", "acme/late", "acme/some", "acme/sync"].map(str::to_owned);
    assert_eq!(state(store, at(30)).await, (due.to_vec(), None));
    assert!(store.notifications(&other_tenant(), first.uid).await.unwrap().is_empty());
}

/// Of concurrent callers, one does each page.
pub async fn each_page_is_told_once_whoever_calls(store: &Shared) {
    told_once(std::slice::from_ref(store)).await;
}

/// The same for the openings of one database.
pub(crate) async fn told_once(stores: &[Shared]) {
    subscribe(&stores[0], webhook(TENANT, "one")).await;
    subscribe(&stores[0], webhook(TENANT, "two")).await;
    for n in 0..40 {
        accept(&stores[n as usize % stores.len()], Sample::new(n)).await;
    }
    let calls = (0..8usize).map(|n| {
        let store = stores[n % stores.len()].clone();
        async move {
            let mut pages = 0;
            for _ in 0..20 {
                store.sequence(3).await.unwrap();
                pages += store.fan_out(at(5), 2).await.unwrap();
            }
            pages
        }
    });
    let mut pages: u32 = all_at_once(calls).await.into_iter().sum();
    pages += tell(&stores[0], at(5)).await;
    assert_eq!(pages, 40);
    for id in ["one", "two"] {
        let made = stores[0].deliveries(&tenant(), &id.parse().unwrap(), None, None, 99).await.unwrap().told;
        assert_eq!(made.len(), 40);
    }
}

/// A slice at a time, so that no caller waits long for the writer.
pub async fn many_subscribers_of_many_events_are_told_in_parts(store: &Shared) {
    for n in 0..12 {
        subscribe(store, webhook(TENANT, &format!("hook-{n}"))).await;
    }
    store.accept((0..600).map(|n| Sample::new(n).build()).collect()).await.unwrap();
    assert_eq!(sequence(store).await, 2, "a large transaction leaves more than one page");
    let mut calls = 0;
    while store.fan_out(at(1), 100).await.unwrap() > 0 {
        calls += 1;
    }
    assert!(calls <= 2);
    for n in [0, 11] {
        let id = format!("hook-{n}").parse().unwrap();
        assert_eq!(store.deliveries(&tenant(), &id, None, None, 999).await.unwrap().told.len(), 600);
    }
    assert_eq!(store.report_state(at(1)).await.unwrap().due.len(), 12);
}

/// Subscribers, notifications and pages go; another tenant's stay.
pub async fn a_purge_takes_reports_along(store: &Shared) {
    let uid = sent_and_told(store).await;
    subscribe(store, webhook(OTHER_TENANT, "one")).await;
    accept(store, Sample::new(9).from(OTHER_TENANT, ACCOUNT)).await;
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(50))).await, ChangeResult::Done);
    assert_eq!(state(store, at(60)).await, (Vec::new(), None), "nobody tells a deleted tenant");
    let mut calls = 0;
    while direct(store, DirectoryChange::PurgeTenant(tenant(), 1)).await == ChangeResult::Done {
        calls += 1;
        assert!(calls < 30, "it does not come to an end");
    }
    assert!(store.subscribers(Some(&tenant())).await.unwrap().is_empty());
    assert!(store.notifications(&tenant(), uid).await.unwrap().is_empty());
    assert!(store.feed(&tenant(), Default::default(), 9).await.unwrap().is_empty());
    tell(store, at(61)).await;
    assert_eq!(state(store, at(61)).await.0, ["globex/one"]);
    assert_eq!(store.feed(&other_tenant(), Default::default(), 9).await.unwrap().len(), 1);
}
