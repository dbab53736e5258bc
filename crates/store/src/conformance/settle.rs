//! What an outcome writes.

use postway_domain::{
    EventKind, MessageState, MessageStatus, RecipientStatus,
    message::{AttemptOutcome, OtherRecipients, ScheduleReason, TransitionInput},
};

use super::{
    Shared,
    sample::{self, Sample, at, event, reply},
    stage::{
        accept, accept_and_claim, apply, assert_gapless, attempt, claim, commit_wire, doubt, late, outcome,
        record, step, woken,
    },
};
use crate::record::{AttemptEnd, MessageChange, RecipientChange, WriteFence};

fn kinds(record: &crate::record::MessageRecord) -> Vec<EventKind> {
    record.events.iter().map(|event| event.kind).collect()
}

/// State, times, recipients, attempt and events are one write.
pub async fn a_sent_message_is_written_whole(store: &Shared) {
    let mut claimed =
        accept_and_claim(store, Sample::new(1).to("a@example.org").to("b@example.org"), 1).await;
    assert!(commit_wire(store, &mut claimed, at(10)).await);
    let recipients = vec![
        RecipientChange { position: 0, status: RecipientStatus::Sent, reply: Some(reply(250, "queued")) },
        RecipientChange { position: 1, status: RecipientStatus::Failed, reply: Some(reply(550, "unknown")) },
    ];
    let ended = AttemptEnd {
        outcome: "sent",
        reply: Some(reply(250, "queued as 42")),
        provider_message_id: Some("42".to_owned()),
        ..attempt(&claimed, at(30))
    };
    let mut change = outcome(&claimed, true, AttemptOutcome::Sent, at(30));
    change.events.insert(0, event(EventKind::RecipientFailed));
    assert!(apply(store, MessageChange { recipients, attempt: Some(ended.clone()), ..change }).await);

    let found = record(store, claimed.uid).await;
    assert_eq!(found.summary.state, MessageState::Sent);
    assert_eq!((found.summary.sent_at, found.summary.failed_at), (Some(at(30)), None));
    assert_eq!((found.summary.updated_at, found.summary.due_at), (at(30), None));
    assert_eq!(found.summary.version, claimed.version + 1);
    assert_eq!(found.summary.provider_message_id.as_deref(), Some("42"));
    assert_eq!(found.recipients[0].status, RecipientStatus::Sent);
    assert_eq!(found.recipients[1].reply, Some(reply(550, "unknown")));
    assert_eq!(found.attempts.len(), 1);
    let shown = &found.attempts[0];
    assert_eq!((shown.number, shown.started_at, shown.duration_ms), (1, at(0), 30));
    assert_eq!((shown.account.as_str(), &shown.remote), (ended.account.as_str(), &ended.remote));
    assert_eq!((shown.outcome.as_str(), &shown.reply), ("sent", &ended.reply));
    let history = [EventKind::Accepted, EventKind::Ready, EventKind::Sending, EventKind::RecipientFailed];
    assert_eq!(kinds(&found), [&history[..], &[EventKind::Sent]].concat());
    assert_gapless(&found);
}

/// It is due when the schedule says, not before, and its account is woken.
pub async fn a_retry_waits_for_its_time(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    woken(store, 1).await;
    let retry = MessageChange {
        due_at: Some(at(5_000)),
        retries: Some(1),
        error: Some(r#"{"code":451}"#.to_owned()),
        ..outcome(&claimed, false, AttemptOutcome::Retry, at(10))
    };
    assert!(apply(store, retry).await);
    assert_eq!(woken(store, 1).await, [sample::relay()]);
    let found = record(store, claimed.uid).await;
    assert_eq!(found.summary.state, MessageState::Scheduled(ScheduleReason::Retry));
    assert_eq!((found.summary.due_at, found.summary.retries), (Some(at(5_000)), 1));
    assert_eq!(found.summary.error.as_deref(), Some(r#"{"code":451}"#));
    assert!(claim(store, 2, at(4_999), 1).await.is_empty());
    let again = claim(store, 2, at(5_000), 1).await.remove(0);
    assert_eq!((again.attempt, again.retries, again.version), (2, 1, 4));
}

/// Those that have an outcome keep it, and so do those in doubt.
pub async fn a_failure_ends_open_recipients(store: &Shared) {
    let sample = Sample::new(1).to("a@example.org").to("b@example.org").to("c@example.org");
    let claimed = accept_and_claim(store, sample, 1).await;
    let change = |position, status| RecipientChange { position, status, reply: None };
    let failure = MessageChange {
        recipients: vec![change(0, RecipientStatus::Sent), change(2, RecipientStatus::InDoubt)],
        exhausted: true,
        error: Some(r#"{"kind":"exhausted"}"#.to_owned()),
        ..outcome(&claimed, false, AttemptOutcome::Exhausted, at(20))
    };
    assert!(apply(store, failure).await);
    let found = record(store, claimed.uid).await;
    assert_eq!((found.summary.state, found.summary.failed_at), (MessageState::Failed, Some(at(20))));
    assert_eq!((found.summary.exhausted, found.summary.sent_at), (true, None));
    assert_eq!(found.summary.error.as_deref(), Some(r#"{"kind":"exhausted"}"#));
    let statuses: Vec<_> = found.recipients.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [RecipientStatus::Sent, RecipientStatus::Failed, RecipientStatus::InDoubt]);
}

/// A second life starts without the marks of the first, but with its history.
pub async fn a_replay_forgets_the_failure(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let failed = MessageChange {
        exhausted: true,
        retries: Some(5),
        error: Some("{}".to_owned()),
        ..outcome(&claimed, false, AttemptOutcome::Exhausted, at(20))
    };
    assert!(apply(store, failed).await);
    let fence = WriteFence { status: MessageStatus::Failed, token: None, version: Some(claimed.version + 1) };
    let open = RecipientChange { position: 0, status: RecipientStatus::Pending, reply: None };
    let replay = MessageChange {
        due_at: Some(at(30)),
        retries: Some(0),
        recipients: vec![open],
        ..step(claimed.uid, fence, MessageState::Failed, TransitionInput::Replay, at(30))
    };
    assert!(apply(store, replay).await);
    let found = record(store, claimed.uid).await;
    assert_eq!((found.summary.state, found.summary.failed_at), (MessageState::Ready, None));
    assert_eq!((found.summary.exhausted, &found.summary.error, found.summary.retries), (false, &None, 0));
    assert_eq!(found.attempts.len(), 1);
    let again = claim(store, 2, at(30), 1).await.remove(0);
    assert_eq!((again.attempt, again.recipients.len()), (2, 1));
}

/// Counters change where the change says so.
pub async fn a_counter_not_named_stays(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let held = MessageChange {
        due_at: Some(at(1)),
        retries: Some(3),
        doubts: Some(2),
        lost_leases: Some(1),
        ..outcome(&claimed, false, AttemptOutcome::Returned, at(1))
    };
    assert!(apply(store, held).await);
    let second = claim(store, 2, at(1), 1).await.remove(0);
    assert_eq!((second.retries, second.doubts, second.lost_leases), (3, 2, 1));
    let held = MessageChange {
        due_at: Some(at(2)),
        lost_leases: Some(0),
        ..outcome(&second, false, AttemptOutcome::Returned, at(2))
    };
    assert!(apply(store, held).await);
    let third = claim(store, 3, at(2), 1).await.remove(0);
    assert_eq!((third.retries, third.doubts, third.lost_leases), (3, 2, 0));
}

/// The 250 that came after all ends the doubt, whatever the version is by now.
pub async fn a_late_answer_settles_a_doubt_by_its_token(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    doubt(store, &mut claimed, Some(at(9_000)), at(10)).await;
    let found = record(store, claimed.uid).await;
    assert_eq!((found.summary.doubts, found.recipients[0].status), (1, RecipientStatus::InDoubt));
    let answer = TransitionInput::Settle(AttemptOutcome::Sent);
    let settled = MessageChange {
        recipients: vec![RecipientChange { position: 0, status: RecipientStatus::Sent, reply: None }],
        ..step(claimed.uid, late(claimed.token), MessageState::InDoubt, answer, at(20))
    };
    assert!(apply(store, settled.clone()).await);
    assert!(!apply(store, settled).await, "once");
    let found = record(store, claimed.uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Sent, None));
    assert_eq!(found.events.last().unwrap().kind, EventKind::Resolved);
    assert!(claim(store, 2, at(9_000), 1).await.is_empty(), "and nothing is sent again");
    assert_gapless(&found);
}

/// From then on the resend's outcome counts, in its own doubt too.
pub async fn a_late_answer_is_refused_once_a_resend_is_claimed(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    doubt(store, &mut claimed, Some(at(1_000)), at(10)).await;
    let mut resend = claim(store, 2, at(1_000), 1).await.remove(0);
    let answer = step(
        claimed.uid,
        late(claimed.token),
        MessageState::InDoubt,
        TransitionInput::Settle(AttemptOutcome::Sent),
        at(1_001),
    );
    assert!(!apply(store, answer.clone()).await, "while it is sent again");
    doubt(store, &mut resend, None, at(1_002)).await;
    assert!(!apply(store, answer).await, "while that is in doubt");
    let own = step(
        claimed.uid,
        late(resend.token),
        MessageState::InDoubt,
        TransitionInput::Settle(AttemptOutcome::Sent),
        at(1_003),
    );
    assert!(apply(store, own).await);
}

/// A token is kept only where the change says so.
pub async fn a_token_not_kept_is_gone(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    let change =
        MessageChange { keep_token: false, ..outcome(&claimed, true, AttemptOutcome::InDoubt, at(2)) };
    assert!(apply(store, change).await);
    let answer = step(
        claimed.uid,
        late(claimed.token),
        MessageState::InDoubt,
        TransitionInput::Settle(AttemptOutcome::Sent),
        at(3),
    );
    assert!(!apply(store, answer).await);
}

/// It is not leased, so its version is the fence.
pub async fn a_waiting_message_is_cancelled_without_a_lease(store: &Shared) {
    let uid = accept(store, Sample::new(1).to("a@example.org").to("b@example.org").send_at(9_000)).await;
    let fence = WriteFence { status: MessageStatus::Scheduled, token: None, version: Some(1) };
    let cancel = step(
        uid,
        fence,
        MessageState::Scheduled(ScheduleReason::SendAt),
        TransitionInput::Cancel(OtherRecipients::Nothing),
        at(5),
    );
    assert!(apply(store, cancel).await);
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Cancelled, None));
    assert!(found.recipients.iter().all(|one| one.status == RecipientStatus::Cancelled));
    assert!(claim(store, 1, at(10_000), 1).await.is_empty());
}

/// Sooner or later than before: it is due then and not when it was, and its account is woken.
pub async fn a_waiting_message_is_given_another_time(store: &Shared) {
    let (sooner, later) = (Sample::new(1).send_at(5_000), Sample::new(2).send_at(5_000));
    let (sooner, later) = (accept(store, sooner).await, accept(store, later).await);
    let moved = |uid, due_at| {
        let fence = WriteFence { status: MessageStatus::Scheduled, token: None, version: Some(1) };
        let change = step(
            uid,
            fence,
            MessageState::Scheduled(ScheduleReason::SendAt),
            TransitionInput::Reschedule,
            at(5),
        );
        MessageChange { due_at: Some(due_at), ..change }
    };
    assert!(apply(store, moved(sooner, at(1_000))).await);
    assert_eq!(woken(store, 1).await, [sample::relay()]);
    assert!(apply(store, moved(later, at(9_000))).await);
    assert!(!apply(store, moved(later, at(1))).await, "the version it read is gone");

    let found = record(store, later).await;
    assert_eq!(found.summary.state, MessageState::Scheduled(ScheduleReason::SendAt));
    assert_eq!((found.summary.due_at, found.summary.version), (Some(at(9_000)), 2));
    assert_eq!(kinds(&found).last(), Some(&EventKind::Scheduled));
    assert_gapless(&found);
    assert!(claim(store, 1, at(999), 2).await.is_empty());
    let claimed: Vec<_> = claim(store, 1, at(8_999), 2).await.iter().map(|one| one.uid).collect();
    assert_eq!(claimed, [sooner]);
    assert_eq!(claim(store, 2, at(9_000), 2).await.remove(0).uid, later);
}

/// Through retries, doubts and resends, every entry has its place.
pub async fn history_has_no_gap(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    for round in 1..=3 {
        let now = at(round * 100);
        let retry =
            MessageChange { due_at: Some(now), ..outcome(&claimed, false, AttemptOutcome::Retry, now) };
        assert!(apply(store, retry).await);
        claimed = claim(store, round + 1, now, 1).await.remove(0);
    }
    doubt(store, &mut claimed, Some(at(500)), at(450)).await;
    let mut resend = claim(store, 9, at(500), 1).await.remove(0);
    assert!(commit_wire(store, &mut resend, at(501)).await);
    assert!(apply(store, outcome(&resend, true, AttemptOutcome::Sent, at(502))).await);
    let found = record(store, claimed.uid).await;
    assert_gapless(&found);
    let mut expected = vec![EventKind::Accepted, EventKind::Ready, EventKind::Sending];
    expected.extend([EventKind::Scheduled, EventKind::Sending].repeat(3));
    expected.extend([EventKind::InDoubt, EventKind::Sending, EventKind::Resent, EventKind::Sent]);
    assert_eq!(kinds(&found), expected);
    let numbers: Vec<_> = found.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert!(found.events.is_sorted_by_key(|event| event.at));
}
