//! Forgetting: what goes, what stays, and what is left of it.

use postway_domain::{
    MessageState, MessageStatus, MessageUid, Subscriber, SubscriberKind, TenantId, Time,
    message::{AttemptOutcome, TransitionInput},
    subscriber::EventFilter,
};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{
        accept, accept_and_claim, all_at_once, apply, change, claim, commit_wire, direct, doubt, outcome,
        request, step,
    },
};
use crate::record::{
    ChangeResult, DirectoryChange, DueSubscriber, ErasureCounts, ExpungeRequest, MessageFilter, MessageKey,
    MessageTombstone, NotificationCall, NotificationResult, NotificationState, ReportRequest, WriteFence,
};

pub(super) const HOUR_MS: i64 = 3_600_000;
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;
const KEY: [u8; 32] = [7; 32];
/// Messages of these rules end at this time.
pub(super) const END_MS: i64 = 2;

/// A request for messages of a tenant that were reported before one time, or not reported before the other.
fn bounds(of: &str, reported_before: i64, unreported_before: i64, limit: u32) -> ExpungeRequest {
    ExpungeRequest {
        tenant: of.parse().unwrap(),
        reported_before: at(reported_before),
        unreported_before: at(unreported_before),
        now: at(10 * DAY_MS),
        recipient_key: KEY,
        limit,
    }
}

pub(super) async fn expunge(store: &Shared, reported_before: i64) -> u32 {
    store.expunge(bounds(TENANT, reported_before, reported_before, 99)).await.unwrap()
}

/// Accepts a message, and sends it.
pub(super) async fn sent(store: &Shared, sample: Sample) -> MessageUid {
    let message = sample.build();
    let (uid, lane) = (message.uid, message.lane.clone());
    assert!(store.accept(vec![message]).await.unwrap()[0].is_accepted());
    let key = sample::key(lane.tenant.as_str(), lane.account.as_str());
    let mut claimed = store.claim(request(&key, 1, at(1), 1, false)).await.unwrap().remove(0);
    assert_eq!(claimed.uid, uid);
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(END_MS))).await);
    uid
}

/// Makes notifications of all that happened.
pub(super) async fn fan_out(store: &Shared, now: Time) {
    while store.sequence(99).await.unwrap() > 0 {}
    while store.fan_out(now, 99).await.unwrap() > 0 {}
}

pub(super) async fn subscribe(store: &Shared, id: &str) -> DueSubscriber {
    let subscriber = Subscriber {
        tenant: tenant(),
        id: id.parse().unwrap(),
        kind: SubscriberKind::Webhook,
        url: "https://app.example.com/hook".to_owned(),
        events: EventFilter(["email.sent", "email.failed"].map(str::to_owned).to_vec()),
        secrets: None,
        active: true,
        disabled_reason: None,
        description: None,
        quiet_until: None,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    let due = DueSubscriber { tenant: tenant(), subscriber: subscriber.id.clone() };
    assert_eq!(direct(store, DirectoryChange::CreateSubscriber(subscriber)).await, ChangeResult::Done);
    due
}

/// Claims one notification, and writes what came of it, unless nothing did yet.
async fn notify(store: &Shared, due: &DueSubscriber, state: Option<NotificationState>, now: Time) {
    notify_as(store, due, |_| state, None, now).await;
}

/// The same, by the message it is about, with the call that was made.
pub(super) async fn notify_as(
    store: &Shared,
    due: &DueSubscriber,
    becomes: impl FnOnce(MessageUid) -> Option<NotificationState>,
    call: Option<NotificationCall>,
    now: Time,
) {
    let request = ReportRequest { lease: sample::lease(9, now), now, wants: vec![(due.clone(), 1)] };
    let claimed = store.claim_notifications(request).await.unwrap();
    assert_eq!(claimed.len(), 1);
    let key = claimed[0].key.clone();
    let Some(state) = becomes(key.uid) else { return };
    let token = sample::lease(9, now).token;
    let due_at = (!state.is_settled()).then_some(now);
    let notified = NotificationResult { key, token, at: now, state, due_at, call, tells_history: false };
    assert_eq!(store.settle_notifications(vec![notified]).await.unwrap(), [true]);
}

pub(super) async fn is_there(store: &Shared, of: &TenantId, uid: MessageUid) -> bool {
    store.message(of, &MessageKey::Uid(uid)).await.unwrap().is_some()
}

pub(super) async fn tally(store: &Shared, of: &TenantId) -> Vec<(MessageStatus, i64)> {
    let stats = store.stats(Some(of), at(0)).await.unwrap();
    stats.by_status.into_iter().filter(|(_, count)| *count != 0).collect()
}

/// Message, bodies, history, tags and notifications are removed; a tombstone stays, and its blobs are
/// unreferenced.
pub async fn a_message_that_was_told_goes_whole(store: &Shared) {
    let blob = store.reserve_blob([1; 32], 9, at(0)).await.unwrap();
    let body = crate::record::StoredBody::Blob(crate::record::BlobRef { name: blob.clone(), size: 9 });
    let furnished =
        Sample::new(1).to("Ann@example.org").to("bob@example.org").collapse("c").content(|content| {
            content.tags = vec!["spring".to_owned(), "news".to_owned()];
            content.payload = Some(body);
        });
    let due = subscribe(store, "hook").await;
    let uid = sent(store, furnished).await;
    let other = sent(store, Sample::new(2).content(|content| content.tags = vec!["news".to_owned()])).await;
    fan_out(store, at(3)).await;
    notify(store, &due, Some(NotificationState::Acknowledged), at(4)).await;

    assert_eq!(expunge(store, END_MS).await, 0, "it is not old enough");
    assert_eq!(expunge(store, 100).await, 1);
    assert_eq!(store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap(), None);
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), None);
    assert!(store.notifications(&tenant(), uid).await.unwrap().is_empty());
    let tagged = MessageFilter { tag: Some("news".to_owned()), ..MessageFilter::default() };
    let left = store.messages(&tenant(), &tagged, None, 9).await.unwrap();
    assert_eq!(left.iter().map(|one| one.uid).collect::<Vec<_>>(), [other]);
    assert_eq!(tally(store, &tenant()).await, [(MessageStatus::Sent, 1)]);
    assert_eq!(store.condemn_blobs(at(1), 9).await.unwrap(), [blob]);
    accept(store, Sample::new(3).collapse("c").created(5)).await;

    let trace = store.tombstone(uid).await.unwrap().unwrap();
    assert_eq!((&trace.tenant, trace.uid, trace.status), (&tenant(), uid, MessageStatus::Sent));
    assert_eq!(trace.expires_at, at(40 * DAY_MS));
    assert!(trace.is_of(&KEY, "ann@example.org") && trace.is_of(&KEY, "bob@example.org"));
    assert_eq!(trace.recipients[0], MessageTombstone::digest(&KEY, &tenant(), "ann@example.org"));
    assert_eq!(store.tombstone(other).await.unwrap(), None);
}

/// However old it is.
pub async fn what_has_not_ended_stays(store: &Shared) {
    let sending = accept_and_claim(store, Sample::new(1), 1).await;
    let mut doubtful = accept_and_claim(store, Sample::new(2), 2).await;
    doubt(store, &mut doubtful, None, at(1)).await;
    let ready = accept(store, Sample::new(3).from(TENANT, OTHER_ACCOUNT)).await;
    let scheduled = accept(store, Sample::new(4).send_at(DAY_MS)).await;
    let uncomposed = accept(store, Sample::new(5).uncomposed("{}", None)).await;
    fan_out(store, at(3)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 0);
    for uid in [sending.uid, doubtful.uid, ready, scheduled, uncomposed] {
        assert!(is_there(store, &tenant(), uid).await);
    }
    assert_eq!(store.erase(&tenant(), "person-3@example.org", at(9), 9).await.unwrap().waiting, 1);
}

/// Every state in which nothing more happens by itself is an end.
pub async fn every_end_is_one(store: &Shared) {
    let ends = [
        MessageState::Failed,
        MessageState::Invalid,
        MessageState::Suppressed,
        MessageState::Cancelled,
        MessageState::Expired,
    ];
    for (number, end) in (1..).zip(ends) {
        let uid = accept(store, Sample::new(number)).await;
        let fence = WriteFence { status: MessageStatus::Ready, token: None, version: Some(1) };
        assert!(apply(store, change(uid, fence, end, at(END_MS))).await);
    }
    fan_out(store, at(3)).await;
    assert_eq!(tally(store, &tenant()).await.len(), 5);
    assert_eq!(expunge(store, 100).await, 5);
    assert!(tally(store, &tenant()).await.is_empty());
}

/// A pending, calling or waiting notification is open; the time counts from when it was settled.
pub async fn what_is_still_to_be_told_stays(store: &Shared) {
    let due = subscribe(store, "hook").await;
    let uid = sent(store, Sample::new(1)).await;
    fan_out(store, at(3)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "pending");
    notify(store, &due, Some(NotificationState::Waiting), at(4)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "waiting");
    notify(store, &due, None, at(5)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "calling");
    assert_eq!(store.erase(&tenant(), "person-1@example.org", at(5), 9).await.unwrap(), waiting(1));
    assert_eq!(store.reclaim_notifications(&[], at(6), 9).await.unwrap(), 1);
    notify(store, &due, Some(NotificationState::Acknowledged), at(DAY_MS)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "told just now");
    assert_eq!(expunge(store, DAY_MS + 1).await, 1);
    assert!(!is_there(store, &tenant(), uid).await);
}

pub(super) fn waiting(waiting: i64) -> ErasureCounts {
    ErasureCounts { waiting, ..ErasureCounts::default() }
}

/// A message whose report died is kept until the second bound, and holds back no other.
pub async fn what_could_not_be_told_stays_for_longer(store: &Shared) {
    let due = subscribe(store, "hook").await;
    let mut uids = Vec::new();
    for number in 1..=4 {
        uids.push(sent(store, Sample::new(number)).await);
    }
    fan_out(store, at(3)).await;
    let dies = |uid: MessageUid| uids.iter().position(|one| *one == uid).unwrap() % 2 == 0;
    for _ in 0..4 {
        let becomes = |uid| match dies(uid) {
            true => Some(NotificationState::Dead),
            false => Some(NotificationState::Acknowledged),
        };
        notify_as(store, &due, becomes, None, at(4)).await;
    }
    let mut removed = Vec::new();
    for _ in 0..3 {
        removed.push(store.expunge(bounds(TENANT, DAY_MS, END_MS, 1)).await.unwrap());
    }
    assert_eq!(removed, [1, 1, 0]);
    for uid in &uids {
        assert_eq!(is_there(store, &tenant(), *uid).await, dies(*uid));
    }
    assert_eq!(store.expunge(bounds(TENANT, DAY_MS, 4, 1)).await.unwrap(), 0, "they died at this time");
    for expected in [1, 1, 0] {
        assert_eq!(store.expunge(bounds(TENANT, DAY_MS, 5, 1)).await.unwrap(), expected);
    }
}

/// Events become notifications from the journal; what is not fanned out yet may have subscribers.
pub async fn what_waits_in_the_journal_stays(store: &Shared) {
    let uid = sent(store, Sample::new(1)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "it has no position");
    assert_eq!(store.erase(&tenant(), "person-1@example.org", at(9), 9).await.unwrap(), waiting(1));
    while store.sequence(99).await.unwrap() > 0 {}
    assert_eq!(expunge(store, DAY_MS).await, 0, "no notifications were made");
    fan_out(store, at(3)).await;
    assert_eq!(expunge(store, DAY_MS).await, 1);
    assert!(!is_there(store, &tenant(), uid).await);
}

/// What ended while the store was away has the time at which it ended, long before that of other things in
/// the journal.
pub async fn what_was_written_late_stays_until_it_is_told(store: &Shared) {
    let due = subscribe(store, "hook").await;
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    fan_out(store, at(3)).await;
    let now = 3 * HOUR_MS;
    accept(store, Sample::new(2).created(now)).await;
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(END_MS))).await);
    assert_eq!(expunge(store, DAY_MS).await, 0, "it has no position");
    while store.sequence(99).await.unwrap() > 0 {}
    assert_eq!(expunge(store, DAY_MS).await, 0, "no notifications were made");
    assert_eq!(store.erase(&tenant(), "person-1@example.org", at(now), 9).await.unwrap(), waiting(1));
    fan_out(store, at(now)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "somebody is to be told");
    notify(store, &due, Some(NotificationState::Acknowledged), at(now)).await;
    assert_eq!(expunge(store, DAY_MS).await, 1);
}

/// Events long before the first of them was fanned out.
pub async fn what_is_old_does_not_wait_for_the_journal(store: &Shared) {
    sent(store, Sample::new(1)).await;
    fan_out(store, at(3)).await;
    accept(store, Sample::new(2).created(2 * HOUR_MS)).await;
    assert_eq!(expunge(store, 3 * HOUR_MS).await, 1);
}

/// A call takes no more than its limit, and nothing of another tenant.
pub async fn slices_are_bounded_and_of_one_tenant(store: &Shared) {
    for number in 1..=5 {
        sent(store, Sample::new(number)).await;
        sent(store, Sample::new(number + 10).from(OTHER_TENANT, ACCOUNT)).await;
    }
    fan_out(store, at(3)).await;
    for (removed, left) in [(2, 3), (2, 1), (1, 0), (0, 0)] {
        assert_eq!(store.expunge(bounds(TENANT, DAY_MS, DAY_MS, 2)).await.unwrap(), removed);
        assert_eq!(tally(store, &tenant()).await.iter().map(|(_, count)| count).sum::<i64>(), left);
    }
    assert_eq!(tally(store, &other_tenant()).await, [(MessageStatus::Sent, 5)]);
    assert_eq!(store.expunge(bounds(OTHER_TENANT, DAY_MS, DAY_MS, 99)).await.unwrap(), 5);
}

/// The second call finds it removed.
pub async fn of_concurrent_calls_each_message_goes_once(store: &Shared) {
    for number in 1..=20 {
        sent(store, Sample::new(number)).await;
    }
    fan_out(store, at(3)).await;
    let calls = (0..4).map(|_| {
        let store = store.clone();
        async move { store.expunge(bounds(TENANT, DAY_MS, DAY_MS, 99)).await.unwrap() }
    });
    let mut removed: u32 = all_at_once(calls).await.into_iter().sum();
    // What one of them held, the others passed over.
    removed += expunge(store, DAY_MS).await;
    assert_eq!(removed, 20);
    assert!(tally(store, &tenant()).await.is_empty());
}

/// A message that is to be sent again has not ended.
pub async fn what_is_sent_again_stays(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert!(apply(store, outcome(&claimed, false, AttemptOutcome::Failed, at(END_MS))).await);
    fan_out(store, at(3)).await;
    let fence = WriteFence { status: MessageStatus::Failed, token: None, version: None };
    let replay = step(claimed.uid, fence, MessageState::Failed, TransitionInput::Replay, at(4));
    assert!(apply(store, crate::record::MessageChange { due_at: Some(at(4)), ..replay }).await);
    fan_out(store, at(5)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0);
    assert_eq!(claim(store, 2, at(5), 9).await.len(), 1);
}
