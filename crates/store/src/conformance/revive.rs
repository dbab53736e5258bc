//! Notifications that are made due before their time, or once more: all of a subscriber's, page by page, and
//! no other's.

use postway_domain::Time;

use super::{
    Shared,
    journal::tell,
    notifications::{called, claim, hook, sent_and_told, seqs, settle, state, view},
    sample::{OTHER_TENANT, Sample, TENANT, at, other_tenant},
    stage::accept,
    subscribers::{subscribe, webhook},
};
use crate::record::{
    DueSubscriber, NotificationKey, NotificationResult, NotificationState, ResendPage, ResendRequest,
    ToNotify,
};

async fn hasten(store: &Shared, who: &DueSubscriber, now: Time, limit: u32) -> u32 {
    store.hasten_notifications(who, now, limit).await.unwrap()
}

/// Fails what was claimed until a time.
async fn fail(store: &Shared, claimed: &[ToNotify], token: i64, now: Time, until: Time) {
    for one in claimed {
        let waits =
            NotificationResult { due_at: Some(until), ..called(one, token, NotificationState::Waiting, now) };
        assert!(settle(store, waits).await);
    }
}

/// What follows in a message too, in its order; what another subscriber waits for, or what failed since, goes
/// on waiting.
pub async fn what_waits_for_one_that_is_back_is_due_at_once(store: &Shared) {
    subscribe(store, webhook(TENANT, "two")).await;
    sent_and_told(store).await;
    for number in 2..=4 {
        accept(store, Sample::new(number)).await;
    }
    tell(store, at(13)).await;
    for (token, id) in [(1, "one"), (2, "two")] {
        let claimed = claim(store, id, token, at(20), 99).await;
        assert_eq!(claimed.len(), 4);
        fail(store, &claimed, token, at(20), at(9_000)).await;
    }
    assert_eq!(state(store, at(30)).await, (Vec::new(), Some(at(9_000))));
    let one = hook("one");
    assert_eq!(hasten(store, &hook("nobody"), at(30), 9).await, 0);
    let counts = [hasten(store, &one, at(30), 2).await, hasten(store, &one, at(30), 99).await];
    assert_eq!((counts, hasten(store, &one, at(30), 99).await), ([2, 3], 0));
    assert_eq!(state(store, at(30)).await, (vec!["acme/one".to_owned()], Some(at(9_000))));
    let first = claim(store, "one", 3, at(30), 99).await;
    assert_eq!(seqs(&first), [1, 1, 1, 1]);
    assert!(first.is_sorted_by_key(|one| one.key.uid), "the oldest message first");
    assert!(first.iter().all(|one| one.tries == 1));
    for told in &first[..3] {
        assert!(settle(store, called(told, 3, NotificationState::Acknowledged, at(31))).await);
    }
    fail(store, &first[3..], 3, at(40), at(9_000)).await;
    assert_eq!(hasten(store, &one, at(35), 99).await, 0, "it was called since");
    assert_eq!(hasten(store, &one, at(40), 99).await, 1);
    let rest = claim(store, "one", 4, at(40), 99).await;
    let mut last = seqs(&rest);
    last.sort();
    assert_eq!(last, [1, 4], "the last of the first message, and what failed once more");
}

fn resend(since: i64, until: i64, only_dead: bool, limit: u32) -> ResendRequest {
    let now = at(5_000);
    ResendRequest { who: hook("one"), since: at(since), until: at(until), only_dead, after: None, now, limit }
}

/// Page by page until there are no more; how many, and in how many pages that had some.
async fn resend_all(store: &Shared, mut request: ResendRequest) -> (u32, u32) {
    let (mut resent, mut pages) = (0, 0);
    loop {
        let page = store.resend_notifications(request.clone()).await.unwrap();
        assert!(page.resent <= request.limit);
        (resent, pages) = (resent + page.resent, pages + u32::from(page.resent > 0));
        match page.next {
            Some(_) => request.after = page.next,
            None => return (resent, pages),
        }
    }
}

/// Those of the time that was asked for, with all their calls before them; asking twice changes nothing.
pub async fn what_died_is_sent_again_page_by_page_and_once(store: &Shared) {
    subscribe(store, webhook(TENANT, "one")).await;
    subscribe(store, webhook(OTHER_TENANT, "one")).await;
    for number in 1..=2 {
        accept(store, Sample::new(number)).await;
    }
    tell(store, at(10)).await;
    for number in 3..=7 {
        accept(store, Sample::new(number)).await;
    }
    tell(store, at(1_000)).await;
    let claimed = claim(store, "one", 1, at(1_001), 99).await;
    assert_eq!(claimed.len(), 7);
    let key = |index: usize| claimed[index].key.clone();
    assert_eq!(resend_all(store, resend(0, 2_000, false, 9)).await, (0, 0), "they are being called");
    for (index, one) in claimed.iter().enumerate() {
        let state = if index % 4 == 0 { NotificationState::Acknowledged } else { NotificationState::Dead };
        assert!(settle(store, called(one, 1, state, at(1_002))).await);
    }

    // Of the later five the third (index 4) was acknowledged, and four are dead.
    assert_eq!(resend_all(store, resend(11, 1_000, true, 9)).await, (0, 0), "none is of that time");
    let theirs = ResendRequest {
        who: DueSubscriber { tenant: other_tenant(), ..hook("one") },
        ..resend(0, 9_000, false, 9)
    };
    assert_eq!(resend_all(store, theirs).await, (0, 0));
    assert_eq!(resend_all(store, resend(11, 1_001, true, 3)).await, (4, 2));
    assert_eq!(resend_all(store, resend(11, 1_001, true, 3)).await, (0, 0), "they are due");
    let found = view(store, &key(2)).await;
    assert_eq!((found.state, found.tries, found.settled_at), (NotificationState::Pending, 0, None));
    assert_eq!((found.due_at, found.created_at), (Some(at(5_000)), at(1_000)));
    assert_eq!(view(store, &key(1)).await.state, NotificationState::Dead, "it is of before");
    assert_eq!(view(store, &key(4)).await.state, NotificationState::Acknowledged);
    let again = claim(store, "one", 2, at(5_000), 99).await;
    let keys: Vec<NotificationKey> = again.iter().map(|one| one.key.clone()).collect();
    assert_eq!(keys, [2, 3, 5, 6].map(key), "in the order of their messages");
    for one in &again {
        assert!(settle(store, called(one, 2, NotificationState::Acknowledged, at(5_001))).await);
    }

    assert_eq!(resend_all(store, resend(0, 1_001, false, 99)).await, (7, 1), "all of it, if that is wanted");
    assert_eq!(resend_all(store, resend(0, 1_001, false, 99)).await, (0, 0));
    let whole = store.resend_notifications(resend(0, 1_001, true, 99)).await.unwrap();
    assert_eq!(whole, ResendPage::default());
}
