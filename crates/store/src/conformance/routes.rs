//! Routes, and the dialogues of failed attempts.

use postway_domain::{
    MailRoute, MessagePriority,
    message::AttemptOutcome,
    route::{RouteConditions, RouteContent, RouteTarget},
};

use super::{
    Shared,
    retention::{END_MS, fan_out},
    sample::{Sample, at, other_tenant, tenant},
    stage::{accept_and_claim, all_at_once, apply, direct, outcome},
};
use crate::record::{AttemptDialogue, ChangeResult, DirectoryChange, MessageChange};

/// A route with all that it can have.
pub fn route(id: &str, position: i64) -> MailRoute {
    let target = |account: &str, weight| RouteTarget { account: account.parse().unwrap(), weight };
    MailRoute {
        tenant: tenant(),
        id: id.parse().unwrap(),
        position,
        active: true,
        content: RouteContent {
            description: Some("größere Mengen — 📬".to_owned()),
            conditions: RouteConditions {
                sender_domains: vec!["*.münchen.example".parse().unwrap()],
                tags: vec!["größe".to_owned()],
                batches: vec!["spring".to_owned()],
                streams: vec!["news".to_owned()],
                priorities: vec![MessagePriority::Low.code()],
                recipient_domains: vec!["example.org".parse().unwrap()],
            },
            accounts: vec![target("relay", 3), target("gone", 1)],
        },
        version: 1,
        created_at: at(1),
        updated_at: at(1),
    }
}

async fn ids(store: &Shared) -> Vec<String> {
    store.routes(&tenant()).await.unwrap().into_iter().map(|route| route.id.to_string()).collect()
}

fn order(ids: &[&str], ms: i64) -> DirectoryChange {
    DirectoryChange::OrderRoutes(tenant(), ids.iter().map(|id| id.parse().unwrap()).collect(), at(ms))
}

/// Whole, by id, by the version that was read, and in their order.
pub async fn routes_are_made_changed_ordered_and_deleted(store: &Shared) {
    let (last, first, second) = (route("a", 9), route("z", 1), route("B", 1));
    for one in [&last, &first, &second] {
        assert_eq!(direct(store, DirectoryChange::CreateRoute(one.clone())).await, ChangeResult::Done);
    }
    assert_eq!(direct(store, DirectoryChange::CreateRoute(last.clone())).await, ChangeResult::Exists);
    let theirs = MailRoute { tenant: other_tenant(), ..last.clone() };
    assert_eq!(direct(store, DirectoryChange::CreateRoute(theirs.clone())).await, ChangeResult::Done);
    let all = store.routes(&tenant()).await.unwrap();
    assert_eq!(all, [second.clone(), first.clone(), last.clone()], "by position, then by id");
    assert_eq!(store.route(&tenant(), &last.id).await.unwrap(), Some(last.clone()));

    let changed = MailRoute {
        active: false,
        position: -4,
        content: RouteContent::default(),
        version: 2,
        updated_at: at(5),
        ..last.clone()
    };
    let update = |expected| DirectoryChange::UpdateRoute(changed.clone(), expected);
    assert_eq!(direct(store, update(1)).await, ChangeResult::Done);
    assert_eq!(direct(store, update(1)).await, ChangeResult::Stale);
    assert_eq!(store.route(&tenant(), &last.id).await.unwrap(), Some(changed));

    assert_eq!(direct(store, order(&["z", "a", "B"], 7)).await, ChangeResult::Done);
    assert_eq!(ids(store).await, ["z", "a", "B"]);
    let places: Vec<_> = store.routes(&tenant()).await.unwrap().iter().map(|one| one.version).collect();
    assert_eq!(places, [1, 3, 2], "a route that moved has another version, and one that stayed has not");
    assert_eq!(direct(store, order(&["z", "a", "B"], 8)).await, ChangeResult::Already);
    assert_eq!(store.route(&other_tenant(), &theirs.id).await.unwrap(), Some(theirs), "not theirs");

    let delete = || DirectoryChange::DeleteRoute(tenant(), "a".parse().unwrap());
    assert_eq!(direct(store, delete()).await, ChangeResult::Done);
    assert_eq!(direct(store, delete()).await, ChangeResult::Missing);
    assert_eq!(ids(store).await, ["z", "B"]);
}

/// An order that was made without knowing a new route, or names one that is gone, is not carried out in part.
pub async fn an_order_that_is_not_of_all_routes_changes_nothing(store: &Shared) {
    for (place, id) in ["one", "two", "three"].into_iter().enumerate() {
        direct(store, DirectoryChange::CreateRoute(route(id, place as i64))).await;
    }
    for wrong in [
        &["three", "two"][..],
        &["three", "two", "one", "four"],
        &["one", "one", "two", "three"],
        &["one"; 3],
    ] {
        assert_eq!(direct(store, order(wrong, 5)).await, ChangeResult::Stale, "{wrong:?}");
    }
    assert_eq!(ids(store).await, ["one", "two", "three"]);
}

/// Two operators who order at once: the result is the order of one of them.
pub async fn of_concurrent_orders_one_stays(store: &Shared) {
    for id in ["one", "two", "three"] {
        direct(store, DirectoryChange::CreateRoute(route(id, 0))).await;
    }
    let orders = [["one", "two", "three"], ["three", "two", "one"], ["two", "one", "three"]];
    let calls = (0..12).map(|number| {
        let (store, order) = (store.clone(), order(&orders[number % 3], number as i64));
        async move { store.change(order, None).await.unwrap() }
    });
    all_at_once(calls).await;
    let found = ids(store).await;
    assert!(orders.iter().any(|order| found == *order), "{found:?}");
}

fn dialogue(attempt: i64, content: &str) -> Option<AttemptDialogue> {
    Some(AttemptDialogue { attempt, content: content.to_owned() })
}

/// It is written with the end of its attempt or not at all, and a success leaves the one before as it is.
pub async fn the_dialogue_of_the_last_failed_attempt_is_kept(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert_eq!(store.dialogue(&tenant(), claimed.uid).await.unwrap(), None);
    let retry = outcome(&claimed, false, AttemptOutcome::Retry, at(30));
    let mut failed = MessageChange { due_at: Some(at(9_000)), ..retry };
    failed.attempt.as_mut().unwrap().dialogue = Some("C: MAIL\r\nS: 451 größer".to_owned());
    let again = failed.clone();
    assert!(apply(store, failed).await);
    let first = dialogue(1, "C: MAIL\r\nS: 451 größer");
    assert_eq!(store.dialogue(&tenant(), claimed.uid).await.unwrap(), first);
    assert_eq!(store.dialogue(&other_tenant(), claimed.uid).await.unwrap(), None, "not theirs");

    let mut late = again;
    late.attempt.as_mut().unwrap().dialogue = Some("of a worker that lost its lease".to_owned());
    assert!(!apply(store, late).await);
    assert_eq!(store.dialogue(&tenant(), claimed.uid).await.unwrap(), first);
}

/// Removed with the message, and free of an address that is erased.
pub async fn a_dialogue_goes_with_its_message(store: &Shared) {
    let to_both = Sample::new(1).to("bob@example.org").to("ann@example.org");
    let claimed = accept_and_claim(store, to_both, 1).await;
    let alone = accept_and_claim(store, Sample::new(2).to("ann@example.org"), 1).await;
    for one in [&claimed, &alone] {
        let mut failed = outcome(one, false, AttemptOutcome::Failed, at(END_MS));
        failed.attempt.as_mut().unwrap().dialogue = Some("C: RCPT TO:<Ann@example.org>".to_owned());
        assert!(apply(store, failed).await);
    }
    fan_out(store, at(END_MS)).await;
    store.erase(&tenant(), "ann@example.org", at(END_MS + 1), 9).await.unwrap();
    assert_eq!(store.dialogue(&tenant(), alone.uid).await.unwrap(), None);
    let left = store.dialogue(&tenant(), claimed.uid).await.unwrap().unwrap();
    assert_eq!(left.content, "C: RCPT TO:<erased@erased.invalid>");
}
