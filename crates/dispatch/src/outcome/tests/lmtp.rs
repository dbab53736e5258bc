//! Answers of LMTP: each recipient by itself, after the dot.

use super::*;

fn answered() -> RecipientReply {
    RecipientReply::Taken(reply(250))
}

fn lost() -> RecipientReply {
    RecipientReply::Doubtful(SendFailure::timeout(FailurePhase::Dot))
}

#[test]
fn a_recipient_has_the_words_of_its_own_answer() {
    let verdict = judge_with(&job(2), true, false, vec![answered(), refused(550)], taken());
    assert_eq!(verdict.outcome, AttemptOutcome::Sent);
    assert_eq!(statuses(&verdict), [RecipientStatus::Sent, RecipientStatus::Failed]);
    assert!(verdict.change.recipients.iter().all(|change| change.reply.is_some()));
}

#[test]
fn only_recipients_without_an_answer_are_in_doubt() {
    let verdict = judge_with(&job(3), true, false, vec![answered(), lost(), lost()], taken());
    assert_eq!(verdict.outcome, AttemptOutcome::InDoubt);
    assert_eq!(
        statuses(&verdict),
        [RecipientStatus::Sent, RecipientStatus::InDoubt, RecipientStatus::InDoubt]
    );
    assert_eq!(verdict.failure.map(|failure| failure.phase), Some(FailurePhase::Dot));
    // One that asked to be tried later is, before those in doubt are sent to again.
    let verdict = judge_with(&job(3), true, false, vec![answered(), refused(452), lost()], taken());
    assert_eq!(verdict.outcome, AttemptOutcome::Retry);
    assert_eq!(
        statuses(&verdict),
        [RecipientStatus::Sent, RecipientStatus::Pending, RecipientStatus::InDoubt]
    );
}

#[test]
fn a_resend_settles_those_that_were_answered_and_leaves_the_others_in_doubt() {
    let resend = ClaimedMessage { resend: true, doubts: 1, ..job(2) };
    let verdict = judge_with(&resend, true, false, vec![answered(), lost()], taken());
    assert_eq!(verdict.outcome, AttemptOutcome::InDoubt);
    assert_eq!(statuses(&verdict), [RecipientStatus::Sent, RecipientStatus::InDoubt]);
}

#[test]
fn all_refused_after_the_dot_is_a_failure_and_no_doubt() {
    let verdict =
        judge_with(&job(2), true, false, vec![refused(550), refused(554)], DeliveryEnd::NoRecipients);
    assert_eq!(verdict.outcome, AttemptOutcome::Failed);
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed, RecipientStatus::Failed]);
}
