//! Messages that need something from elsewhere before they can be composed.

use postway_domain::{
    EventKind, MessageState, MessageStatus, RecipientStatus, TenantId, Time,
    message::{OtherRecipients, ScheduleReason, TransitionInput},
};

use super::{
    Shared,
    sample::{self, ACCOUNT, LEASE_LASTS, OTHER_TENANT, Sample, at, incarnation, other_tenant, tenant},
    stage::{
        accept, all_at_once, apply, assert_gapless, claim as dispatch, direct, record, step, suspend, uids,
        within,
    },
};
use crate::{
    conformance::suppress::suppression,
    record::{
        BodyLocation, ChangeResult, DirectoryChange, MessageChange, PreparationResult, PreparationState,
        PrepareRequest, PreparedMessage, StoredBody, SuspensionScope, ToPrepare, WriteFence,
    },
};

const PAYLOAD: &str = r#"{"template":"welcome"}"#;
const SETTLED: &str = r#"{"from":"news@example.com"}"#;

/// The n-th message, not composed yet.
fn uncomposed(number: u32) -> Sample {
    Sample::new(number).uncomposed(PAYLOAD, Some(SETTLED))
}

/// Claims what the samples' tenant has to prepare.
pub(crate) async fn claim(store: &Shared, token: i64, now: Time, room: u32) -> Vec<ToPrepare> {
    claim_of(store, token, now, &[(tenant(), room)]).await
}

async fn claim_of(store: &Shared, token: i64, now: Time, wants: &[(TenantId, u32)]) -> Vec<ToPrepare> {
    let request = PrepareRequest { lease: sample::lease(token, now), now, wants: wants.to_vec() };
    store.claim_preparation(request).await.unwrap()
}

async fn claim_one(store: &Shared, token: i64, now: Time) -> ToPrepare {
    let mut claimed = claim(store, token, now, 1).await;
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

/// A message composed of these bytes.
pub(crate) fn composed(raw: &'static str) -> PreparedMessage {
    PreparedMessage {
        subject: "Rendered Größe".to_owned(),
        raw: StoredBody::Inline(raw.into()),
        eight_bit: true,
        smtputf8: true,
        links: Vec::new(),
    }
}

fn settled(
    one: &ToPrepare,
    input: TransitionInput,
    preparation: PreparationResult,
    now: Time,
) -> MessageChange {
    let fence =
        WriteFence { status: MessageStatus::Validating, token: Some(one.token), version: Some(one.version) };
    MessageChange {
        preparation: Some(preparation),
        ..step(one.uid, fence, MessageState::Validating, input, now)
    }
}

/// What a preparer writes when it is done.
pub(crate) fn done(one: &ToPrepare, prepared: PreparedMessage, now: Time) -> MessageChange {
    MessageChange {
        due_at: Some(now),
        ..settled(one, TransitionInput::Pass, PreparationResult::Done(prepared), now)
    }
}

fn later(one: &ToPrepare, until: Time, now: Time) -> MessageChange {
    settled(one, TransitionInput::FetchLater, PreparationResult::Later(until), now)
}

async fn state(store: &Shared, now: Time) -> (Vec<TenantId>, Option<Time>) {
    let PreparationState { due, next_due_at } = store.preparation_state(now).await.unwrap();
    (due, next_due_at)
}

async fn count(store: &Shared, status: MessageStatus) -> i64 {
    let stats = store.stats(Some(&tenant()), at(0)).await.unwrap();
    stats.by_status.get(&status).copied().unwrap_or_default()
}

/// It has no bytes to send, and room that stands is not for it.
pub async fn what_is_not_composed_is_not_dispatched(store: &Shared) {
    store.claim(super::stage::request(&sample::relay(), 1, at(0), 9, true)).await.unwrap();
    let uid = accept(store, uncomposed(1)).await;
    assert!(dispatch(store, 2, at(9_000), 9).await.is_empty());
    assert!(store.queue_state(at(9_000)).await.unwrap().due.is_empty());
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Accepted, Some(at(0))));
    assert_eq!(
        (found.raw, found.payload),
        (BodyLocation::Nowhere, BodyLocation::Inline(PAYLOAD.len() as u64))
    );
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), None);
    assert_eq!(store.body(uid).await.unwrap(), None);
    assert_eq!(state(store, at(0)).await, (vec![tenant()], None));
}

/// The clock was ahead and was set back. What was refused is not prepared once more, and a fetch that may be
/// right waits.
pub async fn preparation_of_a_clock_that_was_ahead_is_pulled_to_now(store: &Shared) {
    for n in 1..=2 {
        accept(store, uncomposed(n).created(60_000)).await;
    }
    for (token, until) in [(1, 9_000), (2, 9_001), (3, 5_000)] {
        accept(store, uncomposed(2 + token as u32)).await;
        let one = claim_one(store, token, at(0)).await;
        assert!(apply(store, later(&one, at(until), at(0))).await);
    }
    accept(store, uncomposed(6)).await;
    let one = claim_one(store, 4, at(0)).await;
    assert!(apply(store, settled(&one, TransitionInput::Refuse, PreparationResult::Refused, at(0))).await);
    assert!(claim(store, 5, at(1_000), 9).await.is_empty());
    let pull = || {
        let pull = DirectoryChange::PullPreparation { now: at(1_000), latest: at(5_000), limit: 3 };
        store.change(pull, None)
    };
    assert_eq!(pull().await.unwrap(), ChangeResult::Done);
    assert_eq!(claim(store, 6, at(1_000), 9).await.len(), 3);
    assert_eq!(pull().await.unwrap(), ChangeResult::Done);
    assert_eq!(pull().await.unwrap(), ChangeResult::Already);
    assert_eq!(claim(store, 7, at(1_000), 9).await.len(), 1);
    assert_eq!(claim(store, 8, at(5_000), 9).await.len(), 1, "what may be right waits");
    assert!(claim(store, 9, at(99_000), 9).await.is_empty(), "what was refused is never due");
}

/// All that a preparer needs, and a lease like any other.
pub async fn a_claim_leases_what_waits_to_be_prepared(store: &Shared) {
    let sample = uncomposed(1).client_id("mine").batch("spring").expires(90_000);
    let sample = sample.content(|content| content.request_id = Some("req".to_owned()));
    let message = sample.clone().build();
    let uid = accept(store, sample).await;
    let one = claim_one(store, 77, at(5)).await;
    assert_eq!((one.uid, &one.lane, &one.client_id), (uid, &message.lane, &message.client_id));
    assert_eq!((one.token.as_i64(), one.version, one.tries, one.lost_leases), (77, 2, 0, 0));
    assert_eq!((one.created_at, one.expires_at), (at(0), Some(at(90_000))));
    assert_eq!((one.request_id.as_deref(), one.message_id.as_str()), (Some("req"), "1@example.com"));
    assert_eq!((one.settled.as_deref(), &one.payload), (Some(SETTLED), &message.content.payload));
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.version), (MessageState::Validating, 2));
    assert_eq!((found.summary.updated_at, found.summary.due_at), (at(5), None));
    let begun = found.events.last().unwrap();
    assert_eq!((found.events.len(), begun.kind, begun.at), (2, EventKind::Validating, at(5)), "it has begun");
    assert_eq!(begun.data.as_deref(), Some("{\"try\":1}"));
    assert_gapless(&found);
    assert_eq!(
        (count(store, MessageStatus::Accepted).await, count(store, MessageStatus::Validating).await),
        (0, 1)
    );
    assert!(claim(store, 78, at(6), 9).await.is_empty());
    assert_eq!(state(store, at(6)).await, (Vec::new(), None));
}

/// One tenant's many take nothing from another's few.
pub async fn each_tenant_has_its_own_room(store: &Shared) {
    for n in 1..=5 {
        accept(store, uncomposed(n).created(i64::from(10 - n))).await;
    }
    let theirs = accept(store, uncomposed(9).from(OTHER_TENANT, ACCOUNT)).await;
    assert_eq!(state(store, at(10)).await.0, [tenant(), other_tenant()]);
    let claimed = claim_of(store, 1, at(10), &[(tenant(), 2), (other_tenant(), 5)]).await;
    let created: Vec<_> = claimed.iter().map(|one| one.created_at).collect();
    assert_eq!(created, [at(5), at(6), at(0)], "the longest waiting first");
    assert_eq!((claimed[2].uid, &claimed[2].lane.tenant), (theirs, &other_tenant()));
    assert_eq!(state(store, at(10)).await.0, [tenant()]);
}

/// The bytes, the subject and the flags are those that were made.
pub async fn what_is_prepared_can_be_sent(store: &Shared) {
    let uid = accept(store, uncomposed(1)).await;
    let one = claim_one(store, 1, at(5)).await;
    let raw = "Subject: made\r\n\r\nbody\r\n";
    assert!(apply(store, done(&one, composed(raw), at(6))).await);
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Ready, Some(at(6))));
    assert_eq!(found.summary.subject, "Rendered Größe");
    assert_eq!(found.raw, BodyLocation::Inline(raw.len() as u64));
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), Some(StoredBody::Inline(raw.into())));
    let payload = store.payload(&tenant(), uid).await.unwrap();
    assert_eq!(payload, Some(StoredBody::Inline(PAYLOAD.into())), "the request is kept");
    let claimed = dispatch(store, 2, at(6), 9).await;
    assert_eq!(uids(&claimed), [uid]);
    assert_eq!((claimed[0].raw.as_deref(), claimed[0].size as usize), (Some(raw.as_bytes()), raw.len()));
    assert!(claimed[0].eight_bit && claimed[0].smtputf8);
    assert_gapless(&record(store, uid).await);
    assert!(claim(store, 3, at(9_000), 9).await.is_empty());
    assert_eq!(state(store, at(9_000)).await, (Vec::new(), None));
}

/// Neither too early nor twice, and it says how often it was tried.
pub async fn what_could_not_be_fetched_is_prepared_later(store: &Shared) {
    let uid = accept(store, uncomposed(1)).await;
    let one = claim_one(store, 1, at(5)).await;
    assert!(apply(store, later(&one, at(1_000), at(6))).await);
    let found = record(store, uid).await;
    assert_eq!(
        (found.summary.state, found.summary.due_at),
        (MessageState::Scheduled(ScheduleReason::Fetch), Some(at(1_000)))
    );
    assert!(dispatch(store, 9, at(9_000), 9).await.is_empty());
    assert!(claim(store, 2, at(999), 9).await.is_empty());
    assert_eq!(state(store, at(999)).await, (Vec::new(), Some(at(1_000))));
    assert_eq!(state(store, at(1_000)).await, (vec![tenant()], None));
    let again = claim_one(store, 2, at(1_000)).await;
    assert_eq!((again.uid, again.tries, again.version), (uid, 1, one.version + 2));
    assert!(!apply(store, later(&one, at(2_000), at(1_001))).await, "an old token");
    assert!(apply(store, done(&again, composed("x\r\n"), at(1_002))).await);
    assert_eq!(count(store, MessageStatus::Ready).await, 1);
}

/// It ends, with all its recipients, and is not met again.
pub async fn what_is_refused_is_invalid(store: &Shared) {
    let uid = accept(store, uncomposed(1)).await;
    let one = claim_one(store, 1, at(5)).await;
    assert!(apply(store, settled(&one, TransitionInput::Refuse, PreparationResult::Refused, at(6))).await);
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Invalid, None));
    assert_eq!(found.recipients[0].status, RecipientStatus::Failed);
    let kinds: Vec<_> = found.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds[1..], [EventKind::Validating, EventKind::Invalid], "intake began, and what came of it");
    assert_gapless(&found);
    assert_eq!(state(store, at(9_000)).await, (Vec::new(), None));
    assert!(claim(store, 2, at(9_000), 9).await.is_empty());
}

/// With what was settled when it was accepted, and with all its tries.
pub async fn what_was_refused_is_prepared_once_more_on_request(store: &Shared) {
    let uid = accept(store, uncomposed(1)).await;
    let one = claim_one(store, 1, at(5)).await;
    assert!(apply(store, later(&one, at(6), at(6))).await);
    let one = claim_one(store, 2, at(6)).await;
    assert!(apply(store, settled(&one, TransitionInput::Refuse, PreparationResult::Refused, at(7))).await);
    let version = record(store, uid).await.summary.version;
    let fence = WriteFence { status: MessageStatus::Invalid, token: None, version: Some(version) };
    let again = MessageChange {
        preparation: Some(PreparationResult::Again(at(8))),
        ..step(uid, fence, MessageState::Invalid, TransitionInput::Replay, at(8))
    };
    assert!(apply(store, again).await);
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Accepted, Some(at(8))));
    within(store.preparation_woken()).await;
    let one = claim_one(store, 3, at(8)).await;
    assert_eq!((one.tries, one.settled.as_deref()), (0, Some(SETTLED)));
    assert!(apply(store, done(&one, composed("x\r\n"), at(9))).await);
    assert_gapless(&record(store, uid).await);
    assert_eq!(count(store, MessageStatus::Ready).await, 1);
}

/// The work of a dead process, and of one that hangs, is given to another.
pub async fn a_lost_preparation_is_given_to_another(store: &Shared) {
    let uid = accept(store, uncomposed(1)).await;
    let lost = claim_one(store, 1, at(5)).await;
    assert!(store.stalled(&[incarnation(1)], at(6), 9).await.unwrap().is_empty());
    let until = at(5).plus(LEASE_LASTS);
    assert_eq!(store.stalled(&[incarnation(1)], until, 9).await.unwrap().len(), 1, "past the backstop");
    let stalled = store.stalled(&[incarnation(2)], at(6), 9).await.unwrap().remove(0);
    assert_eq!(
        (stalled.uid, stalled.state, stalled.holder),
        (uid, MessageState::Validating, Some(incarnation(1)))
    );
    let fence = WriteFence { status: MessageStatus::Validating, token: None, version: Some(stalled.version) };
    let give_back = MessageChange {
        // As housekeeping may say it; dispatch must not see it for that.
        due_at: Some(at(7)),
        lost_leases: Some(1),
        ..step(uid, fence, MessageState::Validating, TransitionInput::LoseLease, at(7))
    };
    assert!(apply(store, give_back).await);
    assert!(dispatch(store, 2, at(9_000), 9).await.is_empty());
    assert_eq!(state(store, at(7)).await.0, [tenant()]);
    let heir = claim_one(store, 2, at(7)).await;
    assert_eq!((heir.uid, heir.lost_leases, heir.tries), (uid, 1, 0));
    assert!(!apply(store, done(&lost, composed("lost"), at(8))).await);
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), None);
    assert!(apply(store, done(&heir, composed("heir"), at(8))).await);
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), Some(StoredBody::Inline("heir".into())));
}

/// The first withdrawal wins; its row is removed by the next claim that meets it.
pub async fn a_withdrawal_wins_over_a_late_preparer(store: &Shared) {
    let (waits, held) = (accept(store, uncomposed(1)).await, accept(store, uncomposed(2).created(1)).await);
    for (uid, from) in [(waits, MessageState::Accepted), (held, MessageState::Validating)] {
        let one =
            if from == MessageState::Validating { Some(claim_one(store, 1, at(5)).await) } else { None };
        let version = record(store, uid).await.summary.version;
        let fence = WriteFence { status: from.status(), token: None, version: Some(version) };
        assert!(
            apply(store, step(uid, fence, from, TransitionInput::Cancel(OtherRecipients::Nothing), at(6)))
                .await
        );
        if let Some(one) = one {
            assert_eq!(one.uid, held, "what was withdrawn before is passed over");
            assert!(!apply(store, done(&one, composed("late"), at(7))).await);
        }
        assert_eq!(store.raw(&tenant(), uid).await.unwrap(), None);
        assert_eq!(record(store, uid).await.summary.state, MessageState::Cancelled);
    }
    assert!(claim(store, 2, at(9), 9).await.is_empty());
    assert_eq!(state(store, at(9)).await, (Vec::new(), None));
}

/// Waiting, being prepared, or waiting for a fetch; a preparer does not get what is over.
pub async fn what_waits_to_be_prepared_expires(store: &Shared) {
    let validated = accept(store, uncomposed(1).expires(100)).await;
    claim_one(store, 1, at(5)).await;
    let waits = accept(store, uncomposed(2).created(1).expires(100)).await;
    let fetched = accept(store, uncomposed(3).created(0).expires(100)).await;
    let one = claim_one(store, 2, at(5)).await;
    assert_eq!(one.uid, fetched);
    assert!(apply(store, later(&one, at(50), at(6))).await);
    assert!(claim(store, 3, at(100), 9).await.is_empty());
    assert_eq!(state(store, at(100)).await.0, []);
    let mut overdue = store.overdue(at(100), 9).await.unwrap();
    overdue.sort_by_key(|one| one.uid);
    let mut expected = [validated, waits, fetched];
    expected.sort();
    assert_eq!(overdue.iter().map(|one| one.uid).collect::<Vec<_>>(), expected);
    for one in overdue {
        let fence = WriteFence { status: one.state.status(), token: None, version: Some(one.version) };
        assert!(
            apply(
                store,
                step(one.uid, fence, one.state, TransitionInput::Expire(OtherRecipients::Nothing), at(100))
            )
            .await
        );
    }
    assert!(claim(store, 4, at(9_000), 9).await.is_empty());
    assert_eq!(state(store, at(9_000)).await, (Vec::new(), None));
}

/// Whether it waits or is being prepared.
pub async fn what_is_not_composed_is_superseded(store: &Shared) {
    let first = accept(store, uncomposed(1).collapse("code")).await;
    let second = accept(store, uncomposed(2).collapse("code").created(1)).await;
    assert_eq!(record(store, first).await.summary.state, MessageState::Cancelled);
    let one = claim_one(store, 1, at(5)).await;
    assert_eq!(one.uid, second);
    accept(store, Sample::new(3).collapse("code").created(2)).await;
    assert_eq!(record(store, second).await.summary.state, MessageState::Cancelled);
    assert!(!apply(store, done(&one, composed("late"), at(6))).await);
}

/// A pause holds what would be sent, not what is made ready for it.
pub async fn what_is_suspended_is_prepared_all_the_same(store: &Shared) {
    suspend(store, SuspensionScope::Tenant).await;
    let uid = accept(store, uncomposed(1)).await;
    assert_eq!(state(store, at(0)).await.0, [tenant()]);
    let one = claim_one(store, 1, at(0)).await;
    assert!(apply(store, done(&one, composed("x"), at(1))).await);
    assert!(dispatch(store, 2, at(2), 9).await.is_empty());
    assert_eq!(record(store, uid).await.summary.state, MessageState::Ready);
}

/// No recipient is left to prepare it for.
pub async fn a_suppressed_message_is_not_prepared(store: &Shared) {
    let list = vec![suppression(sample::TENANT, "person-1@example.org")];
    assert_eq!(direct(store, DirectoryChange::Suppress(list)).await, ChangeResult::Done);
    let uid = accept(store, uncomposed(1)).await;
    assert_eq!(record(store, uid).await.summary.state, MessageState::Suppressed);
    assert!(claim(store, 1, at(0), 9).await.is_empty());
    assert_eq!(state(store, at(0)).await, (Vec::new(), None));
}

/// After the commit that gives them something to do.
pub async fn preparers_are_woken(store: &Shared) {
    accept(store, uncomposed(1)).await;
    within(store.preparation_woken()).await;
    let one = claim_one(store, 1, at(5)).await;
    assert!(apply(store, later(&one, at(10), at(6))).await);
    within(store.preparation_woken()).await;
    let one = claim_one(store, 2, at(10)).await;
    let fence = WriteFence { status: MessageStatus::Validating, token: None, version: Some(one.version) };
    assert!(
        apply(store, step(one.uid, fence, MessageState::Validating, TransitionInput::LoseLease, at(11)))
            .await
    );
    within(store.preparation_woken()).await;
    let one = claim_one(store, 3, at(12)).await;
    super::stage::woken(store, 0).await;
    assert!(apply(store, done(&one, composed("x"), at(13))).await);
    assert_eq!(super::stage::woken(store, 1).await, [sample::relay()], "and dispatch when it is done");
}

/// However many preparers come together.
pub async fn no_message_is_prepared_twice_by_eight_preparers(store: &Shared) {
    for n in 0..40 {
        accept(store, uncomposed(n)).await;
    }
    let calls = (0..8).map(|n| {
        let store = store.clone();
        async move {
            let mut all = Vec::new();
            for round in 0..10 {
                all.extend(claim(&store, n * 100 + round, at(0), 3).await.into_iter().map(|one| one.uid));
            }
            all
        }
    });
    let mut claimed: Vec<_> = all_at_once(calls).await.into_iter().flatten().collect();
    // What one preparer had locked, another passed over.
    claimed.extend(claim(store, 9_999, at(0), 40).await.into_iter().map(|one| one.uid));
    assert_eq!(claimed.len(), 40);
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), 40);
    assert_eq!(count(store, MessageStatus::Validating).await, 40);
}
