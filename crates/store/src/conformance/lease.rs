//! Work whose worker is gone, as after a crash.

use postway_domain::{
    EventKind, MessageState, MessageStatus, RecipientStatus,
    message::{AttemptOutcome, OtherRecipients, ScheduleReason, TransitionInput},
};

use super::{
    Shared,
    sample::{self, LEASE_LASTS, Sample, at, incarnation},
    stage::{
        accept, accept_and_claim, all_at_once, apply, assert_gapless, claim, commit_wire, doubt, outcome,
        permission, record, request, step,
    },
};
use crate::record::{
    ChangeResult, ClaimedMessage, DirectoryChange, LeaseGrant, MessageChange, RecipientChange,
    StalledMessage, WireCommit, WriteFence,
};

/// Claims one message for the n-th process.
async fn claim_as(store: &Shared, process: u8, now_ms: i64) -> ClaimedMessage {
    let mut request = request(&sample::relay(), i64::from(process), at(now_ms), 1, false);
    request.lease = LeaseGrant { incarnation: incarnation(process), ..request.lease };
    store.claim(request).await.unwrap().remove(0)
}

/// What housekeeping writes for work that it found.
fn give_back(stalled: &StalledMessage, now_ms: i64) -> MessageChange {
    let fence = WriteFence { status: stalled.state.status(), token: None, version: Some(stalled.version) };
    MessageChange {
        due_at: Some(at(now_ms)),
        lost_leases: Some(stalled.lost_leases + 1),
        ..step(stalled.uid, fence, stalled.state, TransitionInput::LoseLease, at(now_ms))
    }
}

/// A start voids the leases of earlier lives, and says how far each had come.
pub async fn work_of_a_dead_process_is_found(store: &Shared) {
    for n in 1..=3 {
        accept(store, Sample::new(n).hold_in_doubt().expires(99_000)).await;
    }
    let claimed = claim_as(store, 1, 10).await;
    let mut committed = claim_as(store, 1, 20).await;
    assert!(commit_wire(store, &mut committed, at(30)).await);
    claim_as(store, 2, 25).await;

    let found = store.stalled(&[incarnation(2), incarnation(3)], at(40), 10).await.unwrap();
    let seen: Vec<_> = found.iter().map(|one| (one.uid, one.state, one.version, one.attempt)).collect();
    let expected = [
        (claimed.uid, MessageState::Sending { wire_committed: false }, claimed.version, 1),
        (committed.uid, MessageState::Sending { wire_committed: true }, committed.version, 1),
    ];
    assert_eq!(seen, expected);
    assert_eq!(found[0].key, sample::relay());
    assert_eq!(found[0].holder, Some(incarnation(1)));
    assert_eq!((found[0].doubts, found[0].lost_leases, found[0].has_doubtful), (0, 0, false));
    assert_eq!((found[0].on_doubt, found[0].expires_at), (claimed.on_doubt, Some(at(99_000))));
    assert_eq!(store.stalled(&[], at(40), 10).await.unwrap().len(), 3, "nobody is alive");
}

/// A process that hangs loses its work at last.
pub async fn work_of_a_living_process_is_found_only_past_the_backstop(store: &Shared) {
    accept_and_claim(store, Sample::new(1), 1).await;
    let alive = [incarnation(1)];
    let until = at(0).plus(LEASE_LASTS);
    assert!(store.stalled(&alive, at(LEASE_LASTS.as_millis() as i64 - 1), 9).await.unwrap().is_empty());
    assert_eq!(store.stalled(&alive, until, 9).await.unwrap().len(), 1);
    accept(store, Sample::new(2)).await;
    assert_eq!(store.stalled(&[], until, 9).await.unwrap().len(), 1, "what waits has no worker to lose");
}

/// A bounded bite, from the end where it hurts most.
pub async fn stalled_work_comes_longest_untouched_first(store: &Shared) {
    for n in 0..5 {
        accept(store, Sample::new(n)).await;
    }
    let first = claim_as(store, 1, 100).await;
    let second = claim_as(store, 1, 200).await;
    let mut third = claim_as(store, 1, 150).await;
    assert!(commit_wire(store, &mut third, at(300)).await);
    let found = store.stalled(&[], at(400), 2).await.unwrap();
    assert_eq!(found.iter().map(|one| one.uid).collect::<Vec<_>>(), [first.uid, second.uid]);
}

/// Housekeeping decides by it whom a lost attempt can have reached.
pub async fn stalled_work_tells_of_its_recipients(store: &Shared) {
    let sample = Sample::new(1).to("a@example.org").to("b@example.org").expires(200);
    let mut claimed = accept_and_claim(store, sample, 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    let doubtful = RecipientChange { position: 0, status: RecipientStatus::InDoubt, reply: None };
    let retry = MessageChange {
        due_at: Some(at(100)),
        retries: Some(1),
        recipients: vec![doubtful],
        ..outcome(&claimed, true, AttemptOutcome::Retry, at(2))
    };
    assert!(apply(store, retry).await);
    let told = |found: Vec<StalledMessage>| -> Vec<_> {
        let told =
            |one: &StalledMessage| (one.has_open, one.has_doubtful, one.has_sent, one.retries, one.rest());
        found.iter().map(told).collect()
    };
    let overdue = store.overdue(at(200), 9).await.unwrap();
    assert_eq!(told(overdue), [(true, true, false, 1, OtherRecipients::InDoubt)]);
    let again = claim(store, 2, at(100), 1).await.remove(0);
    let stalled = store.stalled(&[], at(100), 9).await.unwrap();
    assert_eq!(told(stalled), [(true, true, false, 1, OtherRecipients::InDoubt)]);
    let sent = RecipientChange { position: 0, status: RecipientStatus::Sent, reply: None };
    let failed = RecipientChange { position: 1, status: RecipientStatus::Failed, reply: None };
    let held = MessageChange {
        due_at: Some(at(110)),
        recipients: vec![sent, failed],
        ..outcome(&again, false, AttemptOutcome::Returned, at(101))
    };
    assert!(apply(store, held).await);
    assert_eq!(
        told(store.overdue(at(200), 9).await.unwrap()),
        [(false, false, true, 1, OtherRecipients::Sent)]
    );
}

/// A withdrawal or an expiry ends the open recipients and no others. The history has both that and the
/// result.
pub async fn ending_the_open_hides_neither_a_doubt_nor_what_was_sent(store: &Shared) {
    let cases = [
        (RecipientStatus::InDoubt, OtherRecipients::InDoubt, MessageState::InDoubt, EventKind::InDoubt),
        (RecipientStatus::Sent, OtherRecipients::Sent, MessageState::Sent, EventKind::Sent),
    ];
    for (n, (first, rest, becomes, event)) in (1..).zip(cases) {
        let sample = Sample::new(n).to("a@example.org").to("b@example.org");
        let claimed = accept_and_claim(store, sample, i64::from(n)).await;
        let one = RecipientChange { position: 0, status: first, reply: None };
        let retry = MessageChange {
            due_at: Some(at(100)),
            recipients: vec![one],
            ..outcome(&claimed, false, AttemptOutcome::Retry, at(2))
        };
        assert!(apply(store, retry).await);
        let waits = record(store, claimed.uid).await.summary;
        let fence =
            WriteFence { status: MessageStatus::Scheduled, token: None, version: Some(waits.version) };
        assert!(
            apply(store, step(claimed.uid, fence, waits.state, TransitionInput::Cancel(rest), at(3))).await
        );
        let found = record(store, claimed.uid).await;
        assert_eq!((found.summary.state, found.summary.due_at), (becomes, None));
        let stand: Vec<_> = found.recipients.iter().map(|one| one.status).collect();
        assert_eq!(stand, [first, RecipientStatus::Cancelled]);
        let told: Vec<_> = found.events.iter().rev().take(2).map(|event| event.kind).collect();
        assert_eq!(told, [event, EventKind::Cancelled]);
        assert_gapless(&found);
        let stats = store.stats(Some(&sample::tenant()), at(3)).await.unwrap();
        assert_eq!(stats.by_status.get(&becomes.status()), Some(&1));
    }
    assert!(claim(store, 9, at(9_000), 9).await.is_empty(), "nothing of it goes again by itself");
}

/// The clock was ahead when they became ready, and was set back. What has another reason to wait goes on
/// waiting.
pub async fn ready_mail_of_a_clock_that_was_ahead_is_pulled_to_now(store: &Shared) {
    for n in 1..=3 {
        accept(store, Sample::new(n).created(60_000)).await;
    }
    let due = accept(store, Sample::new(4).created(900)).await;
    let later = accept(store, Sample::new(5).created(1_000).send_at(70_000)).await;
    assert_eq!(claim(store, 1, at(1_000), 9).await.len(), 1);
    let pull = |limit| store.change(DirectoryChange::PullReady(at(1_000), limit), None);
    assert_eq!(pull(2).await.unwrap(), ChangeResult::Done);
    assert_eq!(claim(store, 2, at(1_000), 9).await.len(), 2);
    assert_eq!(pull(2).await.unwrap(), ChangeResult::Done);
    assert_eq!(pull(2).await.unwrap(), ChangeResult::Already);
    assert_eq!(claim(store, 3, at(1_000), 9).await.len(), 1);
    assert_eq!(record(store, due).await.summary.attempt, 1);
    let later = record(store, later).await.summary;
    assert_eq!((later.due_at, later.version), (Some(at(70_000)), 1));
}

/// No retry, resend or mail that was given back is due later than the longest delay from now: the clock was
/// ahead then.
pub async fn attempts_beyond_an_accounts_longest_delay_are_pulled_to_now(store: &Shared) {
    let retry = MessageState::Scheduled(ScheduleReason::Retry);
    for (n, state, due) in [
        (1, retry, 9_000),
        (2, MessageState::InDoubt, 9_001),
        (3, MessageState::Ready, 9_002),
        (4, retry, 5_000),
    ] {
        accept(store, Sample::new(n).state(state, Some(at(due)))).await;
    }
    let later = accept(store, Sample::new(5).send_at(70_000)).await;
    let others = Sample::new(6).from(sample::TENANT, sample::OTHER_ACCOUNT).state(retry, Some(at(9_000)));
    accept(store, others).await;
    let pull = || {
        let latest = vec![(sample::relay(), at(5_000))];
        store.change(DirectoryChange::PullBeyond(latest, at(1_000), 2), None)
    };
    assert_eq!(pull().await.unwrap(), ChangeResult::Done);
    assert_eq!(claim(store, 1, at(1_000), 9).await.len(), 2);
    assert_eq!(pull().await.unwrap(), ChangeResult::Done);
    assert_eq!(pull().await.unwrap(), ChangeResult::Already);
    assert_eq!(claim(store, 2, at(1_000), 9).await.len(), 1);
    assert_eq!(claim(store, 3, at(5_000), 9).await.len(), 1, "what may be right waits");
    assert_eq!(record(store, later).await.summary.due_at, Some(at(70_000)), "as its sender asked");
}

/// However many housekeepers find it.
pub async fn lost_work_is_given_back_once(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let found = store.stalled(&[], at(100), 9).await.unwrap().remove(0);
    let calls = (0..8).map(|_| {
        let store = store.clone();
        let change = give_back(&found, 100);
        async move { apply(&store, change).await }
    });
    assert_eq!(all_at_once(calls).await.iter().filter(|won| **won).count(), 1);
    assert!(store.stalled(&[], at(100), 9).await.unwrap().is_empty());
    let again = claim(store, 2, at(100), 9).await;
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].uid, again[0].attempt, again[0].lost_leases), (claimed.uid, 2, 1));
    let found = record(store, claimed.uid).await;
    assert_eq!(found.events.iter().filter(|event| event.kind == EventKind::Ready).count(), 2);
    assert_gapless(&found);
}

/// A process that was stopped for longer than its lease wakes up to nothing: not while its work waits, not
/// while another has it, and what went out stays in doubt by its own word only.
pub async fn the_writes_of_a_process_that_comes_back_are_refused(store: &Shared) {
    let zombie = accept_and_claim(store, Sample::new(1), 1).await;
    let stalled = store.stalled(&[], at(100), 9).await.unwrap().remove(0);
    assert!(apply(store, give_back(&stalled, 100)).await);
    let writes = |now| outcome(&zombie, false, AttemptOutcome::Failed, now);
    assert_eq!(store.wire_commit(vec![permission(&zombie, at(101))]).await.unwrap(), [false]);
    assert!(!apply(store, writes(at(101))).await);
    let mut heir = claim(store, 2, at(102), 1).await.remove(0);
    assert_eq!(store.wire_commit(vec![permission(&zombie, at(103))]).await.unwrap(), [false]);
    assert!(!apply(store, writes(at(103))).await);
    let guess = WireCommit { version: heir.version, ..permission(&zombie, at(103)) };
    assert_eq!(store.wire_commit(vec![guess]).await.unwrap(), [false], "nor with the right version");
    doubt(store, &mut heir, None, at(104)).await;
    let late = WriteFence { status: MessageStatus::InDoubt, token: Some(zombie.token), version: None };
    assert!(!apply(store, MessageChange { fence: late, ..writes(at(105)) }).await);
}

/// Waiting mail whose time is over is housekeeping's; what is on the wire is not.
pub async fn overdue_mail_is_found_while_it_waits(store: &Shared) {
    accept_and_claim(store, Sample::new(9).expires(50), 1).await;
    let ready = accept(store, Sample::new(1).expires(100)).await;
    let scheduled = accept(store, Sample::new(2).send_at(5_000).expires(90)).await;
    let accepted = accept(store, Sample::new(3).state(MessageState::Accepted, None).expires(95)).await;
    accept(store, Sample::new(4).expires(101)).await;
    accept(store, Sample::new(5)).await;
    let mut found: Vec<_> = store.overdue(at(100), 9).await.unwrap();
    found.sort_by_key(|one| one.uid);
    assert_eq!(found.iter().map(|one| one.uid).collect::<Vec<_>>(), [ready, scheduled, accepted]);
    assert_eq!(store.overdue(at(100), 2).await.unwrap().len(), 2);
    for one in found {
        let fence = WriteFence { status: one.state.status(), token: None, version: Some(one.version) };
        assert!(
            apply(
                store,
                step(one.uid, fence, one.state, TransitionInput::Expire(OtherRecipients::Nothing), at(100))
            )
            .await
        );
    }
    assert!(store.overdue(at(100), 9).await.unwrap().is_empty());
    assert_eq!(record(store, ready).await.summary.state, MessageState::Expired);
}
