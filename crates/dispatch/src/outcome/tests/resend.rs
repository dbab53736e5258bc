//! Resends: their recipients are in doubt, and stay so whatever the relay says about this copy, unless it
//! accepts it.

use postway_domain::message::OtherRecipients;
use proptest::prelude::*;

use super::*;
use crate::outcome::wire_marks::recipient_marks;

/// A message that was in doubt once and is resent to all its recipients.
fn resend(recipients: u32) -> ClaimedMessage {
    ClaimedMessage { resend: true, attempt: 2, doubts: 1, ..job(recipients) }
}

fn lost() -> DeliveryEnd {
    DeliveryEnd::InDoubt(SendFailure::timeout(FailurePhase::Dot))
}

/// The state after a cancellation now.
fn withdrawn(verdict: &AttemptVerdict) -> Option<MessageState> {
    let rest = OtherRecipients::beside_open(statuses(verdict));
    transition(verdict.change.to, TransitionInput::Cancel(rest)).ok().map(|(to, _)| to)
}

#[test]
fn a_resend_that_is_taken_settles_the_doubt() {
    let verdict = judge_with(&resend(2), true, false, vec![accepted(), accepted()], taken());
    assert_eq!((verdict.change.to, statuses(&verdict)), (MessageState::Sent, vec![RecipientStatus::Sent; 2]));
}

#[test]
fn a_resend_refused_for_now_is_tried_again_and_stays_in_doubt() {
    let verdict = judge_with(&resend(1), false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!(
        (verdict.change.to, verdict.change.retries),
        (MessageState::Scheduled(ScheduleReason::Retry), Some(1))
    );
    assert_eq!(statuses(&verdict), [RecipientStatus::InDoubt]);
    assert_eq!(verdict.change.doubts, None, "there is no new doubt");
    assert_eq!(verdict.change.recipients[0].reply.as_ref().and_then(|reply| reply.code), Some(450));
    assert_eq!(withdrawn(&verdict), Some(MessageState::InDoubt), "it was never called unsent");
    let fault = SendFailure::new(
        "auth",
        FailureCategory::Authentication,
        FailurePhase::Auth,
        FailureSeverity::Account,
        "wrong password",
    );
    let held =
        judge_with(&resend(1), false, true, vec![RecipientReply::NotTried], DeliveryEnd::NotSent(fault));
    assert_eq!((held.change.to, statuses(&held)), (MessageState::Ready, vec![RecipientStatus::InDoubt]));
}

#[test]
fn a_doubt_that_has_expired_is_put_on_hold() {
    let verdict = too_late(&attempt(&resend(1)), &mut chance());
    assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
    assert_eq!((statuses(&verdict), verdict.change.doubts), (vec![RecipientStatus::InDoubt], None));
    assert!(verdict.change.error.unwrap().contains("expired"));
    // The same holds for one that would have expired by the time of the resend.
    let ended_at = attempt(&job(1)).ended_at;
    for (left, resent) in [(Duration::from_millis(1), false), (Duration::from_secs(3_600), true)] {
        let brief = ClaimedMessage { expires_at: Some(ended_at.plus(left)), ..job(1) };
        let verdict = judge_with(&brief, true, false, vec![accepted()], lost());
        assert_eq!((verdict.change.to, verdict.change.due_at.is_some()), (MessageState::InDoubt, resent));
    }
}

#[test]
fn a_resend_without_a_retry_left_is_on_hold() {
    let last = ClaimedMessage { retries: 2, ..resend(1) };
    let verdict = judge_with(&last, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
    assert_eq!((verdict.change.exhausted, verdict.change.doubts), (false, None));
    assert!(!verdict.change.keep_token, "this attempt has had its answer");
}

#[test]
fn a_refusal_of_the_second_copy_says_nothing_about_the_first() {
    let refusal = || DeliveryEnd::NotSent(reply(554).into_failure(FailurePhase::Dot));
    for (committed, answer, end) in
        [(false, refused(550), DeliveryEnd::NoRecipients), (true, accepted(), refusal())]
    {
        let verdict = judge_with(&resend(1), committed, false, vec![answer], end);
        assert_eq!(
            (verdict.change.to, verdict.change.due_at),
            (MessageState::InDoubt, None),
            "and it is not asked again"
        );
        assert_eq!(
            (statuses(&verdict), kinds(&verdict)),
            (vec![RecipientStatus::InDoubt], vec![EventKind::InDoubt])
        );
        assert!(verdict.change.error.unwrap().contains("said the relay"));
    }
    let verdict = judge_with(&resend(2), true, false, vec![accepted(), refused(550)], taken());
    assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
    assert_eq!(statuses(&verdict), [RecipientStatus::Sent, RecipientStatus::InDoubt]);
}

#[test]
fn a_resend_in_doubt_anew_is_so_for_all_it_was_for() {
    let answers = || vec![accepted(), refused(450)];
    let verdict = judge_with(&resend(2), true, false, answers(), lost());
    assert_eq!((verdict.change.to, verdict.change.doubts), (MessageState::InDoubt, Some(2)));
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(25_000)), "the second delay");
    assert_eq!(statuses(&verdict), [RecipientStatus::InDoubt; 2]);
    let often = ClaimedMessage { doubts: OnDoubt::RESENDS_MAX, ..resend(2) };
    assert_eq!(judge_with(&often, true, false, answers(), lost()).change.due_at, None);
    assert_eq!(judge_with(&often, true, true, answers(), lost()).change.due_at, None, "whoever is at fault");
}

#[test]
fn a_resend_to_suppressed_recipients_is_on_hold() {
    let nobody = ClaimedMessage { suppressed: vec![0, 1], ..resend(0) };
    let verdict = all_suppressed(&attempt(&nobody), &mut chance());
    assert_eq!(
        (verdict.change.to, verdict.change.due_at, verdict.then.is_some()),
        (MessageState::InDoubt, None, false)
    );
    assert!(statuses(&verdict).is_empty(), "they may have got it before");
    assert!(verdict.change.refund.is_some() && verdict.change.attempt.is_none());
    let some = ClaimedMessage { suppressed: vec![1], ..resend(1) };
    let verdict = judge_with(&some, true, false, vec![accepted()], taken());
    assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
    assert_eq!(statuses(&verdict), [RecipientStatus::Sent]);
    assert!(verdict.change.error.unwrap().contains(r#""code":"in_doubt""#), "there is a reason to show");
}

#[test]
fn what_may_not_be_sent_again_is_not_called_unsent() {
    for verdict in [
        over_limit(&attempt(&resend(1)), &mut chance()),
        recipient_deleted(&attempt(&resend(1)), &mut chance()),
        quarantine(&attempt(&resend(1)), false, broke()),
    ] {
        assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
        assert!(statuses(&verdict).iter().all(|status| *status == RecipientStatus::InDoubt));
        assert_eq!(verdict.change.ends_open_recipients, None);
    }
}

#[test]
fn the_permission_for_the_dot_says_who_may_be_in_doubt_unless_all_are() {
    let answers = || vec![accepted(), refused(450), refused(550)];
    let marked = |job: &ClaimedMessage, answers: Vec<RecipientReply>| {
        recipient_marks(job, &answers).into_iter().map(|change| change.status).collect::<Vec<_>>()
    };
    let each = [RecipientStatus::InDoubt, RecipientStatus::Pending, RecipientStatus::Failed];
    assert_eq!(marked(&job(3), answers()), each);
    assert!(marked(&job(1), vec![accepted()]).is_empty());
    let beside_others = ClaimedMessage { doubtful_before: 1, ..job(1) };
    assert_eq!(marked(&beside_others, vec![accepted()]), [RecipientStatus::InDoubt]);
    let again = ClaimedMessage { suppressed: vec![3], ..resend(3) };
    assert!(marked(&again, answers()).is_empty(), "all of them are, whatever the relay says");
}

/// The reply to RCPT with this number.
fn answer(number: u8) -> RecipientReply {
    match number {
        0..=2 => accepted(),
        3 => refused(450),
        4 => refused(550),
        5 => RecipientReply::Deferred(reply(452).into_failure(FailurePhase::Rcpt)),
        _ => RecipientReply::NotTried,
    }
}

/// The end with this number, and whether the wire commit was durable then.
fn end(number: u8) -> (bool, DeliveryEnd) {
    match number {
        0 | 1 => (true, taken()),
        2 => (true, lost()),
        3 => (true, DeliveryEnd::NotSent(reply(451).into_failure(FailurePhase::Dot))),
        4 => (true, DeliveryEnd::NotSent(reply(554).into_failure(FailurePhase::Dot))),
        5 => (false, DeliveryEnd::NotSent(SendFailure::timeout(FailurePhase::Data))),
        6 => (false, DeliveryEnd::GateRefused),
        _ => (false, DeliveryEnd::NoRecipients),
    }
}

proptest! {
    #[test]
    fn only_a_relays_yes_settles_a_doubt(
        answers in prop::collection::vec(0..7u8, 0..5),
        ends in 0..8u8,
        suppressed in 0..2u32,
        (sent_before, retries, doubts) in (0..2u32, 0..4i64, 1..5i64),
        at_fault in any::<bool>(),
    ) {
        let count = answers.len() as u32;
        let suppressed = (count..count + suppressed).collect();
        let job = ClaimedMessage { suppressed, sent_before, retries, doubts, ..resend(count) };
        let (committed, end) = end(ends);
        let is_taken = matches!(end, DeliveryEnd::Accepted { .. });
        let answers: Vec<RecipientReply> = answers.into_iter().map(answer).collect();
        let yes: Vec<bool> = answers.iter().map(|answer| is_taken && answer.is_accepted()).collect();
        let verdict = judge_with(&job, committed, at_fault, answers, end);

        let becomes = |yes: &bool| if *yes { RecipientStatus::Sent } else { RecipientStatus::InDoubt };
        prop_assert_eq!(statuses(&verdict), yes.iter().map(becomes).collect::<Vec<_>>());
        let doubt_remains = yes.contains(&false) || !job.suppressed.is_empty();
        match verdict.change.to {
            MessageState::Sent | MessageState::Failed => prop_assert!(!doubt_remains),
            MessageState::InDoubt => prop_assert!(doubt_remains),
            MessageState::Ready | MessageState::Scheduled(ScheduleReason::Retry) => {
                prop_assert!(yes.contains(&false) || ends == 6);
                prop_assert!(!yes.contains(&false) || withdrawn(&verdict) == Some(MessageState::InDoubt));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        let resends = verdict.change.to == MessageState::InDoubt && verdict.change.due_at.is_some();
        prop_assert!(!resends || verdict.change.doubts.is_some_and(|doubts| doubts <= OnDoubt::RESENDS_MAX));
        prop_assert!(!kinds(&verdict).contains(&EventKind::RecipientFailed));
    }
}
