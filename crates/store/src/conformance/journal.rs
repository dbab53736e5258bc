//! The journal and the feed: every event appears once, in order, and none is skipped.

use std::collections::BTreeSet;

use postway_domain::{
    EventKind, MessageState, MessageUid, TenantId, Time,
    message::{AttemptOutcome, DoubtResolution, OtherRecipients, TransitionInput},
};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{
        accept, accept_and_claim, all_at_once, apply, claim, commit_wire, doubt, offer, outcome, record,
        step, within,
    },
    subscribers::{subscribe, webhook},
};
use crate::record::{
    Acceptance, DueSubscriber, FeedEvent, FeedPosition, HourlyCounts, MessageChange, ReportRequest,
    SendingRate, WriteFence,
};

/// Gives every page its place.
pub(crate) async fn sequence(store: &Shared) -> u32 {
    let mut given = 0;
    loop {
        match store.sequence(100).await.unwrap() {
            0 => return given,
            more => given += more,
        }
    }
}

/// Makes notifications of all that happened; of how many pages.
pub(crate) async fn tell(store: &Shared, now: Time) -> u32 {
    sequence(store).await;
    let mut pages = 0;
    loop {
        match store.fan_out(now, 100).await.unwrap() {
            0 => return pages,
            more => pages += more,
        }
    }
}

/// Accepts a message and sends it, which is over at this time.
pub(crate) async fn send(store: &Shared, sample: Sample, end_ms: i64) -> MessageUid {
    let mut claimed = accept_and_claim(store, sample, 1).await;
    assert!(commit_wire(store, &mut claimed, at(end_ms)).await);
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(end_ms))).await);
    claimed.uid
}

/// All that a tenant's feed has after a place.
async fn feed_after(store: &Shared, of: &TenantId, after: FeedPosition) -> Vec<FeedEvent> {
    store.feed(of, after, 1_000).await.unwrap()
}

async fn feed(store: &Shared) -> Vec<FeedEvent> {
    feed_after(store, &tenant(), FeedPosition::default()).await
}

fn kinds(feed: &[FeedEvent]) -> Vec<(MessageUid, EventKind)> {
    feed.iter().map(|one| (one.uid, one.kind)).collect()
}

/// With its particulars, and without what happens inside.
pub async fn what_happens_is_in_the_feed_in_order(store: &Shared) {
    let mut first = accept_and_claim(store, Sample::new(1), 1).await;
    let data = Some(r#"{"will_retry":true}"#.to_owned());
    let mut retry =
        MessageChange { due_at: Some(at(50)), ..outcome(&first, false, AttemptOutcome::Retry, at(10)) };
    retry.events[0].data.clone_from(&data);
    assert!(apply(store, retry).await);
    let later = accept(store, Sample::new(2).send_at(9_000)).await;
    first = claim(store, 2, at(50), 1).await.remove(0);
    assert!(commit_wire(store, &mut first, at(51)).await);
    assert!(apply(store, outcome(&first, true, AttemptOutcome::Sent, at(52))).await);
    assert!(feed(store).await.is_empty(), "nothing has its place yet");
    assert_eq!(sequence(store).await, 4);

    let told = feed(store).await;
    let expected = [
        (first.uid, EventKind::Accepted),
        (first.uid, EventKind::Scheduled),
        (later, EventKind::Accepted),
        (first.uid, EventKind::Sent),
    ];
    assert_eq!(kinds(&told), expected);
    assert_eq!(told.iter().map(|one| one.deferred).collect::<Vec<_>>(), [false, true, false, false]);
    for one in &told {
        let history = record(store, one.uid).await.events;
        let event = one.event.as_ref().unwrap();
        assert_eq!(history.iter().find(|known| known.seq == event.seq), Some(event));
        assert_eq!(event.kind, one.kind);
    }
    assert_eq!(told[1].event.as_ref().unwrap().data, data);
    assert!(told.is_sorted_by_key(|one| one.position));
}

/// However many messages it is about; other tenants see nothing of it.
pub async fn a_transaction_leaves_a_page_for_each_tenant(store: &Shared) {
    let samples = [Sample::new(1), Sample::new(2).from(OTHER_TENANT, ACCOUNT), Sample::new(3)];
    store.accept(samples.into_iter().map(Sample::build).collect()).await.unwrap();
    assert_eq!(sequence(store).await, 2);
    let (ours, theirs) =
        (feed(store).await, feed_after(store, &other_tenant(), FeedPosition::default()).await);
    assert_eq!((ours.len(), theirs.len()), (2, 1));
    assert_eq!(ours[0].position.page, ours[1].position.page);
    assert_eq!((ours[0].position.entry, ours[1].position.entry), (0, 1));
    assert_ne!(theirs[0].position.page, ours[0].position.page);
}

/// A repeat, a change that comes late, and a look at work that waits.
pub async fn what_did_not_happen_is_not_told(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1).key("k"), 1).await;
    offer(store, Sample::new(2).key("k")).await;
    let late = MessageChange {
        fence: WriteFence { token: Some(sample::lease(9, at(0)).token), ..super::stage::fence(&claimed) },
        ..outcome(&claimed, false, AttemptOutcome::Failed, at(1))
    };
    assert!(!apply(store, late).await);
    assert!(claim(store, 2, at(1), 9).await.is_empty());
    assert_eq!(sequence(store).await, 1);
    assert_eq!(kinds(&feed(store).await), [(claimed.uid, EventKind::Accepted)]);
}

/// A permission to send once more what is in doubt, a superseded message, and what an operator made of a
/// doubt.
pub async fn every_way_to_happen_is_told(store: &Shared) {
    let old = accept(store, Sample::new(1).collapse("code")).await;
    let new = accept(store, Sample::new(2).collapse("code").created(1)).await;
    let mut claimed = claim(store, 1, at(1), 1).await.remove(0);
    doubt(store, &mut claimed, Some(at(20)), at(10)).await;
    let mut again = claim(store, 2, at(20), 1).await.remove(0);
    let version = doubt(store, &mut again, None, at(30)).await;
    let fence =
        WriteFence { status: postway_domain::MessageStatus::InDoubt, token: None, version: Some(version) };
    let resolved = step(
        new,
        fence,
        MessageState::InDoubt,
        TransitionInput::Resolve(DoubtResolution::Failed, OtherRecipients::Nothing),
        at(40),
    );
    assert!(apply(store, resolved).await);
    sequence(store).await;
    let mut told = kinds(&feed(store).await);
    // The withdrawal is of the same transaction as the newer message.
    told[1..3].sort_by_key(|(uid, _)| *uid);
    let expected = [
        (old, EventKind::Accepted),
        (old, EventKind::Cancelled),
        (new, EventKind::Accepted),
        (new, EventKind::InDoubt),
        (new, EventKind::Resent),
        (new, EventKind::InDoubt),
        (new, EventKind::Resolved),
    ];
    assert_eq!(told, expected);
}

/// At most as many as asked for, and each once.
pub async fn places_are_given_out_a_few_at_a_time(store: &Shared) {
    for n in 1..=5 {
        accept(store, Sample::new(n)).await;
    }
    for (given, seen) in [(2, 2), (2, 4), (1, 5), (0, 5)] {
        assert_eq!(store.sequence(2).await.unwrap(), given);
        assert_eq!(feed(store).await.len(), seen);
    }
    let pages: Vec<i64> = feed(store).await.iter().map(|one| one.position.page).collect();
    assert_eq!(pages, [1, 2, 3, 4, 5]);
}

/// Behind any entry, also in the middle of a page; and behind all that has a place.
pub async fn the_feed_goes_on_from_any_place(store: &Shared) {
    store.accept((1..=150).map(|n| Sample::new(n).build()).collect()).await.unwrap();
    for n in 200..280 {
        accept(store, Sample::new(n)).await;
    }
    sequence(store).await;
    let all = feed(store).await;
    assert_eq!(all.len(), 230);
    for limit in [1, 7, 100, 230, 999] {
        let (mut after, mut read) = (FeedPosition::default(), Vec::new());
        loop {
            let part = store.feed(&tenant(), after, limit).await.unwrap();
            assert!(part.len() <= limit as usize);
            let Some(last) = part.last() else { break };
            after = last.position;
            read.extend(part);
        }
        assert_eq!(read, all, "{limit} at a time");
        if limit == 1 {
            // Reading one by one once is enough.
            assert_eq!(after, all[229].position);
        }
    }
    let end = store.feed_end(&tenant()).await.unwrap();
    assert!(end > all[229].position);
    assert!(feed_after(store, &tenant(), end).await.is_empty());
    let next = accept(store, Sample::new(999)).await;
    sequence(store).await;
    assert_eq!(kinds(&feed_after(store, &tenant(), end).await), [(next, EventKind::Accepted)]);
}

/// A reader that follows the feed while eight callers write and two sequence sees every event once, in order
/// for each message.
pub async fn a_reader_beside_writers_misses_nothing(store: &Shared) {
    const EACH: u32 = 12;
    let writers = (0..8u32).map(|writer| {
        let store = store.clone();
        async move {
            for n in 0..EACH {
                accept(&store, Sample::new(writer * 100 + n)).await;
                for claimed in claim(&store, i64::from(writer * 100 + n), at(1), 1).await {
                    assert!(apply(&store, outcome(&claimed, false, AttemptOutcome::Failed, at(2))).await);
                }
            }
        }
    });
    let writing = tokio::spawn(all_at_once(writers.collect::<Vec<_>>()));
    let sequencers = (0..2).map(|_| {
        let store = store.clone();
        async move {
            for _ in 0..200 {
                store.sequence(3).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let sequencing = tokio::spawn(all_at_once(sequencers.collect::<Vec<_>>()));
    let (mut after, mut read) = (FeedPosition::default(), Vec::new());
    let mut is_over = false;
    loop {
        let part = store.feed(&tenant(), after, 5).await.unwrap();
        let Some(last) = part.last() else {
            if is_over {
                break;
            }
            is_over = writing.is_finished() && sequencing.is_finished() && sequence(store).await == 0;
            tokio::task::yield_now().await;
            continue;
        };
        after = last.position;
        read.extend(part);
    }
    within(writing).await.unwrap();
    within(sequencing).await.unwrap();
    // What a claimer had locked, another passed over.
    for claimed in claim(store, 9_999, at(1), 99).await {
        assert!(apply(store, outcome(&claimed, false, AttemptOutcome::Failed, at(2))).await);
    }
    sequence(store).await;
    read.extend(feed_after(store, &tenant(), after).await);
    assert_eq!(read.len(), 2 * 8 * EACH as usize);
    read.sort_by_key(|one| (one.uid, one.position));
    for pair in read.chunks(2) {
        assert_eq!(pair[0].uid, pair[1].uid);
        assert_eq!((pair[0].kind, pair[1].kind), (EventKind::Accepted, EventKind::Failed));
    }
}

/// By account, with the time from acceptance to the end, whichever node fans out, and however often.
pub async fn hours_are_counted_once(store: &Shared) {
    const HOUR_MS: i64 = 3_600_000;
    // The start of every test is in the middle of an hour.
    let hour = |n: i64| Time::from_millis((at(0).as_millis() / HOUR_MS + n) * HOUR_MS);
    send(store, Sample::new(1), 250).await;
    let first = accept_and_claim(store, Sample::new(2), 1).await;
    let retry =
        MessageChange { due_at: Some(at(HOUR_MS)), ..outcome(&first, false, AttemptOutcome::Retry, at(10)) };
    assert!(apply(store, retry).await);
    let again = claim(store, 2, at(HOUR_MS), 1).await.remove(0);
    assert!(apply(store, outcome(&again, false, AttemptOutcome::Failed, at(HOUR_MS))).await);
    accept(store, Sample::new(3).from(sample::TENANT, sample::OTHER_ACCOUNT)).await;
    accept(store, Sample::new(4).from(OTHER_TENANT, ACCOUNT)).await;
    for _ in 0..2 {
        tell(store, at(HOUR_MS)).await;
        let rows = store.statistics(&tenant(), hour(0), hour(2)).await.unwrap();
        let mut rows: Vec<_> =
            rows.into_iter().map(|row| (row.hour, row.account.to_string(), row.counts)).collect();
        rows.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let counts =
            HourlyCounts { accepted: 2, sent: 1, deferred: 1, queue_ms: 250, ..HourlyCounts::default() };
        let expected = [
            (
                hour(0),
                sample::OTHER_ACCOUNT.to_owned(),
                HourlyCounts { accepted: 1, ..HourlyCounts::default() },
            ),
            (hour(0), ACCOUNT.to_owned(), counts),
            (hour(1), ACCOUNT.to_owned(), HourlyCounts { failed: 1, ..HourlyCounts::default() }),
        ];
        assert_eq!(rows, expected);
    }
    assert_eq!(store.statistics(&other_tenant(), hour(0), hour(2)).await.unwrap().len(), 1);
}

/// What rates and charts are made of: visible once it is fanned out, and for the last hour only.
pub async fn what_happened_lately_is_counted_in_tens_of_seconds(store: &Shared) {
    const HOUR_MS: i64 = 60 * 60 * 1_000;
    let begin = |ms: i64| SendingRate::begin_of(at(ms));
    accept(store, Sample::new(1)).await;
    accept(store, Sample::new(2)).await;
    accept(store, Sample::new(3).from(OTHER_TENANT, ACCOUNT)).await;
    assert!(store.pace(&tenant(), at(-HOUR_MS)).await.unwrap().is_empty(), "not fanned out");
    let mut claimed = claim(store, 1, at(5), 2).await;
    let (mut sent, failed) = (claimed.remove(0), claimed.remove(0));
    assert!(commit_wire(store, &mut sent, at(6)).await);
    assert!(apply(store, outcome(&sent, true, AttemptOutcome::Sent, at(40_000))).await);
    assert!(apply(store, outcome(&failed, false, AttemptOutcome::Failed, at(40_000))).await);
    for _ in 0..2 {
        tell(store, at(41_000)).await;
        let pace = store.pace(&tenant(), begin(0)).await.unwrap();
        let expected = [
            SendingRate { accepted: 2, ..SendingRate::empty(begin(0)) },
            SendingRate { sent: 1, failed: 1, ..SendingRate::empty(begin(40_000)) },
        ];
        assert_eq!(pace, expected);
    }
    assert_eq!(store.pace(&tenant(), begin(10_000)).await.unwrap().len(), 1);
    assert_eq!(store.pace(&other_tenant(), begin(0)).await.unwrap()[0].accepted, 1);
    assert!(store.pace(&"nobody".parse().unwrap(), begin(0)).await.unwrap().is_empty());
    // An hour and more later the same slots are used again, and have forgotten.
    for ms in [400 * SendingRate::LASTS_MS, 400 * SendingRate::LASTS_MS + 1] {
        accept(store, Sample::new(ms as u32).created(ms)).await;
        tell(store, at(ms)).await;
    }
    let later = begin(400 * SendingRate::LASTS_MS);
    assert_eq!(
        store.pace(&tenant(), later).await.unwrap(),
        [SendingRate { accepted: 2, ..SendingRate::empty(later) }]
    );
}

/// A page with more notifications than one transaction makes: each subscriber is notified of each event once,
/// and hours count it once.
pub async fn a_page_that_many_hear_of_is_told_whole(store: &Shared) {
    let ids: Vec<String> = (0..12).map(|n| format!("hook-{n}")).collect();
    for id in &ids {
        subscribe(store, webhook(TENANT, id)).await;
    }
    let offers = (0..500).map(|n| Sample::new(n).created(1_000).build()).collect();
    assert!(store.accept(offers).await.unwrap().iter().all(Acceptance::is_accepted));
    tell(store, at(2_000)).await;
    let events = feed(store).await.len();
    assert!(events >= 500, "{events}");
    for id in &ids {
        let who = DueSubscriber { tenant: tenant(), subscriber: id.parse().unwrap() };
        let lease = sample::lease(1, at(3_000));
        let request = ReportRequest { lease, now: at(3_000), wants: vec![(who, 1_000)] };
        let claimed = store.claim_notifications(request).await.unwrap();
        let uids: BTreeSet<MessageUid> = claimed.iter().map(|one| one.key.uid).collect();
        assert_eq!((claimed.len(), uids.len()), (500, 500), "{id}");
    }
    const DAY_MS: i64 = 24 * 3_600_000;
    let hours = store.statistics(&tenant(), at(-DAY_MS), at(DAY_MS)).await.unwrap();
    assert_eq!(hours.iter().map(|hour| hour.counts.accepted).sum::<i64>(), 500);
}

/// By what is written, by what gets its place, and by what is due.
pub async fn reporters_are_woken(store: &Shared) {
    accept(store, Sample::new(1)).await;
    within(store.report_woken()).await;
    sequence(store).await;
    within(store.report_woken()).await;
    store.fan_out(at(1), 9).await.unwrap();
    within(store.report_woken()).await;
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.report_woken().await })
    };
    // Whichever comes first: who waits is woken, and who is about to wait as well.
    accept(store, Sample::new(2)).await;
    within(waiting).await.unwrap();
}
