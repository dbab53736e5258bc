//! What outlives messages: keys, traces, the journal, and what was counted.

use postway_domain::Time;

use super::{
    Shared,
    retention::{DAY_MS, HOUR_MS, expunge, fan_out, sent},
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, tenant},
    stage::{accept, offer},
};
use crate::record::{Acceptance, FeedPosition, MessageKey, StatisticsRow};

/// Within a day the same id or key is answered as before, then it is free.
pub async fn keys_outlive_their_message_by_a_day(store: &Shared) {
    let uid = sent(store, Sample::new(1).key("k").client_id("c").body(1)).await;
    fan_out(store, at(3)).await;
    assert_eq!(expunge(store, DAY_MS).await, 1);
    let by_id = MessageKey::Client("c".parse().unwrap());
    assert_eq!(store.message(&tenant(), &by_id).await.unwrap(), None);

    let before = 11 * DAY_MS - 1;
    let repeat = |number| Sample::new(number).key("k").client_id("c").body(1);
    assert_eq!(offer(store, repeat(2).created(before)).await, Acceptance::Repeat { uid });
    let other = offer(store, Sample::new(3).client_id("c").body(2).created(before)).await;
    assert!(matches!(other, Acceptance::Conflict { .. }));
    assert_eq!(store.forget_traces(at(before), 9).await.unwrap(), 0);

    let again = repeat(4).created(11 * DAY_MS).build();
    let new = again.uid;
    assert!(store.accept(vec![again]).await.unwrap()[0].is_accepted());
    assert_eq!(offer(store, repeat(5).created(11 * DAY_MS)).await, Acceptance::Repeat { uid: new });
    assert_eq!(store.forget_traces(at(12 * DAY_MS), 9).await.unwrap(), 0, "taken over, not ended");
}

/// Each slice takes a bounded number of each; what has not expired stays.
pub async fn traces_are_forgotten_when_they_end(store: &Shared) {
    let mut uids = Vec::new();
    for number in 1..=3 {
        uids.push(sent(store, Sample::new(number).client_id(&format!("c{number}"))).await);
    }
    fan_out(store, at(3)).await;
    assert_eq!(expunge(store, DAY_MS).await, 3);
    let forget = |ms| async move { store.forget_traces(at(ms), 2).await.unwrap() };
    assert_eq!(forget(11 * DAY_MS - 1).await, 0);
    assert_eq!((forget(11 * DAY_MS).await, forget(11 * DAY_MS).await), (2, 1));
    assert!(store.tombstone(uids[0]).await.unwrap().is_some());
    assert_eq!((forget(40 * DAY_MS).await, forget(40 * DAY_MS).await), (2, 1));
    for uid in uids {
        assert_eq!(store.tombstone(uid).await.unwrap(), None);
    }
}

/// Pages that were fanned out and are old enough, the first ones first.
pub async fn the_journal_is_trimmed_behind_what_is_told(store: &Shared) {
    for (number, ms) in [(1, 0), (2, 1_000), (3, 2_000)] {
        accept(store, Sample::new(number).created(ms)).await;
    }
    assert_eq!(store.trim_journal(at(DAY_MS), 9).await.unwrap(), 0, "nobody was told");
    fan_out(store, at(3_000)).await;
    accept(store, Sample::new(4).created(3_000)).await;
    let feed = |after| async move { store.feed(&tenant(), after, 99).await.unwrap() };
    assert_eq!(feed(FeedPosition::default()).await.len(), 3);
    assert_eq!(store.trim_journal(at(0), 9).await.unwrap(), 0, "none is older");
    assert_eq!(store.trim_journal(at(2_000), 1).await.unwrap(), 1);
    assert_eq!(store.trim_journal(at(2_000), 9).await.unwrap(), 1);
    assert_eq!(store.trim_journal(at(2_000), 9).await.unwrap(), 0);
    let left = feed(FeedPosition::default()).await;
    assert_eq!(left.iter().map(|one| one.uid).collect::<Vec<_>>(), [sample::uid(at(2_000), 3)]);
    assert_eq!(store.trim_journal(at(DAY_MS), 9).await.unwrap(), 1);
    fan_out(store, at(4_000)).await;
    let left = feed(FeedPosition::default()).await;
    assert_eq!(left.iter().map(|one| one.uid).collect::<Vec<_>>(), [sample::uid(at(3_000), 4)]);
}

/// By hour and account; they stay when the messages go.
pub async fn statistics_outlive_messages(store: &Shared) {
    let hour = |n: i64| at(0).as_millis().div_euclid(HOUR_MS) * HOUR_MS + n * HOUR_MS;
    sent(store, Sample::new(1)).await;
    accept(store, Sample::new(2).from(TENANT, OTHER_ACCOUNT)).await;
    accept(store, Sample::new(3).from(OTHER_TENANT, ACCOUNT)).await;
    fan_out(store, at(3)).await;
    accept(store, Sample::new(4).created(HOUR_MS)).await;
    fan_out(store, at(HOUR_MS + 1)).await;
    assert_eq!(expunge(store, DAY_MS).await, 1);

    let rows = |from: i64, to: i64| async move {
        let (since, until) = (Time::from_millis(hour(from)), Time::from_millis(hour(to)));
        let rows = store.statistics(&tenant(), since, until).await.unwrap();
        let told = |row: StatisticsRow| {
            assert_eq!(row.tenant, tenant());
            let place = (row.hour.as_millis() - hour(0)) / HOUR_MS;
            (place, row.account.to_string(), row.counts.accepted, row.counts.sent)
        };
        rows.into_iter().map(told).collect::<Vec<_>>()
    };
    let (first, second) =
        ([(0, OTHER_ACCOUNT.to_owned(), 1, 0), (0, ACCOUNT.to_owned(), 1, 1)], (1, ACCOUNT.to_owned(), 1, 0));
    assert_eq!(rows(0, 1).await, first);
    assert_eq!(rows(0, 2).await, [&first[..], std::slice::from_ref(&second)].concat());
    assert_eq!(rows(1, 2).await, [second]);
    assert!(rows(2, 9).await.is_empty());
}
