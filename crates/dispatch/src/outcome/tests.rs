//! Every way an attempt can end, without a wire.

use bytes::Bytes;
use postway_domain::{
    Lane, LeaseToken, MessageUid, Priority, RecipientKind, State, Status,
    failure::{Category, Phase, Severity},
    message::{OnDoubt, Wait},
};
use postway_store::record::ClaimedRecipient;
use rand::{SeedableRng, rngs::StdRng};

use super::*;

fn job(recipients: u32) -> Claimed {
    let mut random = StdRng::seed_from_u64(1);
    let at = Time::from_millis(1_000);
    Claimed {
        uid: MessageUid::new(at, &mut random),
        lane: Lane {
            tenant: "default".parse().unwrap(),
            account: "relay".parse().unwrap(),
            priority: Priority::Normal,
            batch: None,
        },
        token: LeaseToken::new(&mut random),
        version: 2,
        attempt: 1,
        retries: 0,
        doubts: 0,
        lost_leases: 2,
        on_doubt: OnDoubt::Resend,
        created_at: at,
        claimed_at: at,
        expires_at: None,
        request_id: None,
        sender: "shop@example.com".to_owned(),
        recipients: (0..recipients)
            .map(|position| ClaimedRecipient {
                position,
                address: format!("r{position}@example.net").parse().unwrap(),
                kind: RecipientKind::To,
            })
            .collect(),
        sent_before: 0,
        doubtful_before: 0,
        eight_bit: false,
        smtputf8: false,
        size: 0,
        raw: Some(Bytes::new()),
    }
}

fn reply(code: u16) -> Reply {
    Reply { code, enhanced: None, text: "said the relay".to_owned() }
}

fn accepted() -> RecipientReply {
    RecipientReply::Accepted(reply(250))
}

fn refused(code: u16) -> RecipientReply {
    RecipientReply::Refused(reply(code).into_failure(Phase::Rcpt))
}

fn taken() -> DeliveryEnd {
    DeliveryEnd::Accepted { reply: reply(250), provider_message_id: Some("4XYZ".to_owned()) }
}

/// Judges with a schedule of two delays without jitter.
fn judge_with(
    job: &Claimed,
    committed: bool,
    account_at_fault: bool,
    recipients: Vec<RecipientReply>,
    end: DeliveryEnd,
) -> Verdict {
    let policy = RetryPolicy { delays_s: vec![10, 20], jitter: 0.0 };
    let attempt = Attempt {
        job,
        committed,
        ended_at: Time::from_millis(5_000),
        duration: Duration::from_millis(7),
        remote: Some("relay:25".to_owned()),
        policy: &policy,
        account_at_fault,
    };
    judge(&attempt, Delivery { recipients, end }, &mut StdRng::seed_from_u64(7))
}

fn statuses(verdict: &Verdict) -> Vec<RecipientStatus> {
    verdict.change.recipients.iter().map(|change| change.status).collect()
}

fn kinds(verdict: &Verdict) -> Vec<EventKind> {
    verdict.change.events.iter().map(|event| event.kind).collect()
}

#[test]
fn a_taken_mail_is_sent_with_the_relays_word() {
    let verdict = judge_with(&job(1), true, false, vec![accepted()], taken());
    assert_eq!(verdict.change.to, State::Sent);
    assert_eq!(verdict.change.fence.version, Some(3), "the wire commit counted");
    assert_eq!(statuses(&verdict), [RecipientStatus::Sent]);
    assert_eq!(kinds(&verdict), [EventKind::Sent]);
    let attempt = verdict.change.attempt.unwrap();
    assert_eq!(attempt.provider_message_id.as_deref(), Some("4XYZ"));
    assert_eq!((attempt.outcome, attempt.duration_ms), ("sent", 7));
    assert_eq!(verdict.change.lost_leases, Some(0), "lost leases count in a row");
}

#[test]
fn only_open_recipients_are_tried_again() {
    let recipients = vec![accepted(), refused(550), refused(450)];
    let verdict = judge_with(&job(3), true, false, recipients, taken());
    assert_eq!(verdict.change.to, State::Scheduled(Wait::Retry));
    assert_eq!(
        statuses(&verdict),
        [RecipientStatus::Sent, RecipientStatus::Failed, RecipientStatus::Pending]
    );
    assert_eq!(kinds(&verdict), [EventKind::RecipientFailed, EventKind::Scheduled]);
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(15_000)));
    assert_eq!(verdict.change.retries, Some(1));
}

#[test]
fn the_last_open_recipient_decides_by_what_was_sent_before() {
    let exhausted = Claimed { retries: 2, ..job(1) };
    let verdict = judge_with(&exhausted, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!((verdict.change.to, verdict.change.exhausted), (State::Failed, true));
    let sent_before = Claimed { sent_before: 1, ..exhausted.clone() };
    let verdict = judge_with(&sent_before, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!((verdict.change.to, verdict.change.exhausted), (State::Sent, false));
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed]);
    let doubtful_before = Claimed { doubtful_before: 1, ..sent_before };
    let verdict = judge_with(&doubtful_before, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!(verdict.change.to, State::InDoubt);
}

#[test]
fn a_lost_answer_is_doubt_and_its_policy_decides() {
    let lost = || DeliveryEnd::InDoubt(Failure::timeout(Phase::Dot));
    let verdict = judge_with(&job(2), true, false, vec![accepted(), accepted()], lost());
    assert_eq!(verdict.change.to, State::InDoubt);
    assert!(verdict.change.keep_token, "the late answer must still be able to settle it");
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(15_000)));
    assert_eq!(statuses(&verdict), [RecipientStatus::InDoubt; 2]);
    let held = Claimed { on_doubt: OnDoubt::Hold, ..job(1) };
    assert_eq!(judge_with(&held, true, false, vec![accepted()], lost()).change.due_at, None);
    let often = Claimed { doubts: OnDoubt::RESENDS_MAX, ..job(1) };
    assert_eq!(judge_with(&often, true, false, vec![accepted()], lost()).change.due_at, None);
    let late = Claimed { expires_at: Some(Time::from_millis(4_999)), ..job(1) };
    assert_eq!(judge_with(&late, true, false, vec![accepted()], lost()).change.due_at, None);
}

#[test]
fn the_accounts_fault_holds_the_mail_without_using_a_retry() {
    let fault =
        Failure::new("auth", Category::Authentication, Phase::Auth, Severity::Account, "wrong password");
    let verdict =
        judge_with(&job(1), false, true, vec![RecipientReply::NotTried], DeliveryEnd::NotSent(fault));
    assert_eq!(verdict.change.to, State::Ready);
    assert_eq!((verdict.change.retries, verdict.change.due_at), (None, Some(Time::from_millis(5_000))));
    assert!(verdict.change.error.unwrap().contains("wrong password"));
}

#[test]
fn a_split_goes_on_at_once_and_uses_no_retry() {
    let too_many = RecipientReply::Deferred(reply(452).into_failure(Phase::Rcpt));
    let verdict = judge_with(&job(2), true, false, vec![accepted(), too_many], taken());
    assert_eq!((verdict.change.to, verdict.change.retries), (State::Ready, None));
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(5_000)));
}

#[test]
fn a_refused_gate_gives_the_mail_back() {
    let verdict = judge_with(&job(1), false, false, vec![accepted()], DeliveryEnd::GateRefused);
    assert_eq!((verdict.change.to, verdict.change.retries), (State::Ready, None));
    assert_eq!(statuses(&verdict), [RecipientStatus::Pending]);
}

#[test]
fn a_refusal_of_the_whole_mail_fails_every_recipient() {
    let refusal = reply(554).into_failure(Phase::Dot);
    let verdict =
        judge_with(&job(2), true, false, vec![accepted(), accepted()], DeliveryEnd::NotSent(refusal));
    assert_eq!(verdict.change.to, State::Failed);
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed; 2]);
    assert!(!verdict.change.exhausted, "it is no dead letter");
}

#[test]
fn poison_is_set_aside_before_the_dot_and_in_doubt_after_it() {
    let claimed = job(1);
    let policy = RetryPolicy::smtp();
    let mut attempt = Attempt {
        job: &claimed,
        committed: false,
        ended_at: Time::from_millis(5_000),
        duration: Duration::ZERO,
        remote: None,
        policy: &policy,
        account_at_fault: false,
    };
    let verdict = quarantine(&attempt, Failure::poison(Phase::Compose, "broke"));
    assert_eq!(verdict.change.to.status(), Status::Failed);
    assert_eq!(verdict.change.ends_open_recipients, Some(RecipientStatus::Failed));
    attempt.committed = true;
    let verdict = quarantine(&attempt, Failure::poison(Phase::Compose, "broke"));
    assert_eq!((verdict.change.to, verdict.change.due_at), (State::InDoubt, None));
    assert_eq!(verdict.change.ends_open_recipients, Some(RecipientStatus::InDoubt));
}
