//! Every way in which an attempt can end, without a network.

mod lmtp;
mod resend;

use bytes::Bytes;
use postway_domain::{
    Lane, LeaseToken, MessagePriority, MessageState, MessageStatus, MessageUid, RecipientKind,
    message::{OnDoubt, ScheduleReason},
};
use postway_store::record::{AccountKey, ClaimedRecipient};
use rand::{SeedableRng, rngs::StdRng};
use serde_json::Value;

use super::*;

fn job(recipients: u32) -> ClaimedMessage {
    let mut random = StdRng::seed_from_u64(1);
    let at = Time::from_millis(1_000);
    ClaimedMessage {
        uid: MessageUid::new(at, &mut random),
        lane: Lane {
            tenant: "default".parse().unwrap(),
            account: "relay".parse().unwrap(),
            priority: MessagePriority::Normal,
            batch: None,
            destination: None,
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
        resend: false,
        sent_before: 0,
        doubtful_before: 0,
        eight_bit: false,
        smtputf8: false,
        size: 0,
        raw: Some(Bytes::new()),
        permit: Some(permit()),
        over_limit: false,
        suppressed: Vec::new(),
        sensitive: false,
        recipient_deleted: false,
        via: None,
        dsn: None,
        trace: None,
    }
}

fn permit() -> SendingPermit {
    SendingPermit {
        key: AccountKey { tenant: "default".parse().unwrap(), account: "relay".parse().unwrap() },
        debited_at: Time::from_millis(1_000),
        use_by: Time::from_millis(3_000),
        spans: vec![postway_domain::LimitSpan::Minute],
    }
}

static POLICY: RetryPolicy = RetryPolicy { delays_s: Vec::new(), jitter: 0.0 };

/// The facts of an attempt that has sent nothing yet.
fn attempt(job: &ClaimedMessage) -> AttemptFacts<'_> {
    AttemptFacts {
        job,
        account: &job.lane.account,
        committed: false,
        offered: false,
        permit: job.permit.as_ref(),
        ended_at: Time::from_millis(5_000),
        duration: Duration::from_millis(7),
        remote: None,
        policy: &POLICY,
        account_at_fault: None,
        certified: false,
        converted: &[],
        dsn_offered: None,
    }
}

fn chance() -> StdRng {
    StdRng::seed_from_u64(7)
}

fn reply(code: u16) -> RelayReply {
    RelayReply { code, enhanced: None, text: "said the relay".to_owned() }
}

fn accepted() -> RecipientReply {
    RecipientReply::Accepted(reply(250))
}

fn broke() -> SendFailure {
    SendFailure::poison(FailurePhase::Compose, "broke")
}

fn refused(code: u16) -> RecipientReply {
    RecipientReply::Refused(reply(code).into_failure(FailurePhase::Rcpt))
}

fn taken() -> DeliveryEnd {
    DeliveryEnd::Accepted { reply: reply(250), provider_message_id: Some("4XYZ".to_owned()) }
}

/// Judges with a schedule of two delays without jitter.
fn judge_with(
    job: &ClaimedMessage,
    committed: bool,
    account_at_fault: bool,
    recipients: Vec<RecipientReply>,
    end: DeliveryEnd,
) -> AttemptVerdict {
    let policy = RetryPolicy { delays_s: vec![10, 20], jitter: 0.0 };
    let attempt = AttemptFacts {
        committed,
        offered: true,
        remote: Some("relay:25".to_owned()),
        policy: &policy,
        account_at_fault: account_at_fault.then_some(Duration::ZERO),
        ..attempt(job)
    };
    judge_attempt(&attempt, DeliveryResult::new(recipients, end), &mut chance())
}

fn statuses(verdict: &AttemptVerdict) -> Vec<RecipientStatus> {
    verdict.change.recipients.iter().map(|change| change.status).collect()
}

fn kinds(verdict: &AttemptVerdict) -> Vec<EventKind> {
    verdict.change.events.iter().map(|event| event.kind).collect()
}

#[test]
fn a_taken_mail_is_sent_with_the_relays_word() {
    let verdict = judge_with(&job(1), true, false, vec![accepted()], taken());
    assert_eq!(verdict.change.to, MessageState::Sent);
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
    assert_eq!(verdict.change.to, MessageState::Scheduled(ScheduleReason::Retry));
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
    let exhausted = ClaimedMessage { retries: 2, ..job(1) };
    let verdict = judge_with(&exhausted, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!((verdict.change.to, verdict.change.exhausted), (MessageState::Failed, true));
    let sent_before = ClaimedMessage { sent_before: 1, ..exhausted.clone() };
    let verdict = judge_with(&sent_before, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!((verdict.change.to, verdict.change.exhausted), (MessageState::Sent, false));
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed]);
    let doubtful_before = ClaimedMessage { doubtful_before: 1, ..sent_before };
    let verdict = judge_with(&doubtful_before, false, false, vec![refused(450)], DeliveryEnd::NoRecipients);
    assert_eq!(verdict.change.to, MessageState::InDoubt);
}

#[test]
fn a_lost_answer_is_doubt_and_its_policy_decides() {
    let lost = || DeliveryEnd::InDoubt(SendFailure::timeout(FailurePhase::Dot));
    let verdict = judge_with(&job(2), true, false, vec![accepted(), accepted()], lost());
    assert_eq!(verdict.change.to, MessageState::InDoubt);
    assert!(verdict.change.keep_token, "the late answer must still be able to settle it");
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(15_000)));
    assert_eq!(statuses(&verdict), [RecipientStatus::InDoubt; 2]);
    let held = ClaimedMessage { on_doubt: OnDoubt::Hold, ..job(1) };
    assert_eq!(judge_with(&held, true, false, vec![accepted()], lost()).change.due_at, None);
    let often = ClaimedMessage { doubts: OnDoubt::RESENDS_MAX, ..job(1) };
    assert_eq!(judge_with(&often, true, false, vec![accepted()], lost()).change.due_at, None);
    let late = ClaimedMessage { expires_at: Some(Time::from_millis(4_999)), ..job(1) };
    assert_eq!(judge_with(&late, true, false, vec![accepted()], lost()).change.due_at, None);
}

#[test]
fn a_fault_of_the_account_returns_the_mail_without_using_a_retry() {
    let fault = SendFailure::new(
        "auth",
        FailureCategory::Authentication,
        FailurePhase::Auth,
        FailureSeverity::Account,
        "wrong password",
    );
    let verdict =
        judge_with(&job(1), false, true, vec![RecipientReply::NotTried], DeliveryEnd::NotSent(fault));
    assert_eq!(verdict.change.to, MessageState::Ready);
    assert_eq!((verdict.change.retries, verdict.change.due_at), (None, Some(Time::from_millis(5_000))));
    assert!(verdict.change.error.unwrap().contains("wrong password"));
}

#[test]
fn a_split_goes_on_at_once_and_uses_no_retry() {
    let too_many = RecipientReply::Deferred(reply(452).into_failure(FailurePhase::Rcpt));
    let verdict = judge_with(&job(2), true, false, vec![accepted(), too_many], taken());
    assert_eq!((verdict.change.to, verdict.change.retries), (MessageState::Ready, None));
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(5_000)));
}

#[test]
fn a_refused_gate_returns_the_mail() {
    let verdict = judge_with(&job(1), false, false, vec![accepted()], DeliveryEnd::GateRefused);
    assert_eq!((verdict.change.to, verdict.change.retries), (MessageState::Ready, None));
    assert_eq!(statuses(&verdict), [RecipientStatus::Pending]);
}

#[test]
fn a_refusal_of_the_mail_fails_every_recipient() {
    let refusal = reply(554).into_failure(FailurePhase::Dot);
    let verdict =
        judge_with(&job(2), true, false, vec![accepted(), accepted()], DeliveryEnd::NotSent(refusal));
    assert_eq!(verdict.change.to, MessageState::Failed);
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed; 2]);
    assert!(!verdict.change.exhausted, "it is no dead letter");
}

#[test]
fn poison_is_set_aside_before_the_dot_and_in_doubt_after_it() {
    let claimed = job(1);
    let mut attempt = attempt(&claimed);
    let verdict = quarantine(&attempt, false, broke());
    assert_eq!(verdict.change.to.status(), MessageStatus::Failed);
    assert_eq!(verdict.change.ends_open_recipients, Some(RecipientStatus::Failed));
    attempt.committed = true;
    // If the relay refused some, the wire commit recorded who may be in doubt; open recipients are not among
    // them.
    for (marked, open) in [(false, RecipientStatus::InDoubt), (true, RecipientStatus::Failed)] {
        let verdict = quarantine(&attempt, marked, broke());
        assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
        assert_eq!(verdict.change.ends_open_recipients, Some(open));
        assert!(verdict.change.recipients.is_empty(), "what is marked stays so");
    }
}

#[test]
fn poison_hides_neither_an_earlier_doubt_nor_what_was_sent() {
    let sent = ClaimedMessage { sent_before: 1, ..job(1) };
    let verdict = quarantine(&attempt(&sent), false, broke());
    assert_eq!((verdict.change.to, statuses(&verdict)), (MessageState::Sent, vec![RecipientStatus::Failed]));
    let doubtful = ClaimedMessage { doubtful_before: 1, ..sent };
    let verdict = quarantine(&attempt(&doubtful), false, broke());
    assert_eq!((verdict.change.to, verdict.change.due_at), (MessageState::InDoubt, None));
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed]);
}

#[test]
fn a_permit_comes_back_only_if_nothing_of_the_mail_was_offered() {
    let claimed = job(1);
    let refused = || {
        let failure = SendFailure::io(FailurePhase::Connect, std::io::ErrorKind::ConnectionRefused, "no");
        DeliveryResult::new(vec![RecipientReply::NotTried], DeliveryEnd::NotSent(failure))
    };
    assert_eq!(judge_attempt(&attempt(&claimed), refused(), &mut chance()).change.refund, Some(permit()));
    let offered = AttemptFacts { offered: true, ..attempt(&claimed) };
    assert_eq!(judge_attempt(&offered, refused(), &mut chance()).change.refund, None);
    assert_eq!(return_unstarted(&claimed, Time::from_millis(5_000)).refund, Some(permit()));
    assert_eq!(return_message(&attempt(&claimed), ReturnReason::PermitExpired).change.refund, Some(permit()));
}

#[test]
fn what_is_beyond_a_limit_that_rejects_fails_without_an_attempt() {
    let verdict = over_limit(&attempt(&job(2)), &mut chance());
    assert_eq!((verdict.change.to, verdict.change.exhausted), (MessageState::Failed, false));
    assert_eq!(statuses(&verdict), [RecipientStatus::Failed; 2]);
    assert!(verdict.change.attempt.is_none());
    let error = verdict.change.error.unwrap();
    assert!(error.contains(r#""code":"limit_exceeded""#) && error.contains("QUOTA_ERROR"), "{error}");
}

#[test]
fn mail_returned_before_it_began_waits_without_using_a_retry() {
    let claimed = job(1);
    let wait = Duration::from_millis(250);
    let verdict = return_message(&attempt(&claimed), ReturnReason::Destination { wait, lane: None });
    assert_eq!((verdict.change.to, verdict.change.retries), (MessageState::Ready, None));
    assert_eq!(verdict.change.due_at, Some(Time::from_millis(5_250)));
    assert!(verdict.change.attempt.is_none() && verdict.change.lost_leases.is_none());
    assert!(verdict.change.error.unwrap().contains("destination_limit"));
    let verdict = return_message(&attempt(&claimed), ReturnReason::PermitExpired);
    assert_eq!((verdict.change.due_at, verdict.change.error), (Some(Time::from_millis(5_000)), None));
    assert!(verdict.change.events[0].data.as_ref().unwrap().contains(r#""reason":"permit expired""#));
}

#[test]
fn mail_whose_body_cannot_be_read_waits_ever_longer_and_uses_no_retry() {
    let lack = || {
        let message = "the blob is missing";
        SendFailure::new(
            "body_unavailable",
            FailureCategory::Unknown,
            FailurePhase::Compose,
            FailureSeverity::Transient,
            message,
        )
    };
    let waits = [1, 2, 7, 90].map(|number| {
        let claimed = ClaimedMessage { attempt: number, retries: 3, ..job(1) };
        let verdict = return_message(&attempt(&claimed), ReturnReason::Body(lack()));
        assert_eq!((verdict.change.to, verdict.change.retries), (MessageState::Ready, None));
        assert!(verdict.change.attempt.is_none());
        assert!(verdict.change.error.unwrap().contains("body_unavailable"));
        verdict.change.due_at.unwrap().as_millis() - 5_000
    });
    assert_eq!(waits, [5_000, 10_000, 300_000, 300_000]);
}

#[test]
fn suppressed_recipients_are_written_with_the_outcome() {
    let some = ClaimedMessage { suppressed: vec![1], ..job(1) };
    let verdict = judge_with(&some, true, false, vec![accepted()], taken());
    assert_eq!(verdict.change.to, MessageState::Sent);
    assert_eq!(statuses(&verdict), [RecipientStatus::Suppressed, RecipientStatus::Sent]);
    assert!(verdict.change.events[0].data.as_ref().unwrap().contains(r#""suppressed":[1]"#));
}

#[test]
fn a_mail_without_recipients_left_is_returned_and_suppressed_at_once() {
    let all = ClaimedMessage { suppressed: vec![0, 1], ..job(0) };
    let verdict = all_suppressed(&attempt(&all), &mut chance());
    let then = verdict.then.as_ref().unwrap();
    assert_eq!((verdict.change.to, then.to), (MessageState::Ready, MessageState::Suppressed));
    assert_eq!((verdict.change.fence.version, then.fence.version), (Some(2), Some(3)));
    assert_eq!((then.fence.status, then.fence.token), (MessageStatus::Ready, None));
    assert_eq!((verdict.change.refund.is_some(), then.refund.is_some()), (true, false), "given back once");
    assert_eq!(then.events[0].kind, EventKind::Suppressed);

    let sent_before = ClaimedMessage { sent_before: 1, ..all };
    let verdict = all_suppressed(&attempt(&sent_before), &mut chance());
    assert_eq!((verdict.change.to, verdict.then.is_some()), (MessageState::Sent, false));
    assert_eq!(statuses(&verdict), [RecipientStatus::Suppressed; 2]);
}

#[test]
fn the_attempt_names_the_fallback_account_that_sent_it() {
    let (claimed, other) = (job(1), "other".parse().unwrap());
    let attempt = AttemptFacts { account: &other, committed: true, offered: true, ..attempt(&claimed) };
    let delivery = DeliveryResult::new(vec![accepted()], taken());
    assert_eq!(judge_attempt(&attempt, delivery, &mut chance()).change.attempt.unwrap().account, other);
}

#[test]
fn a_failure_has_our_words_and_those_that_gateways_share() {
    let quota = SendFailure {
        original_code: Some("DailyQuotaExceeded".to_owned()),
        ..reply(452).into_failure(FailurePhase::Dot)
    };
    let verdict = judge_with(&job(1), true, false, vec![accepted()], DeliveryEnd::NotSent(quota.clone()));
    for text in [verdict.change.error.unwrap(), verdict.change.events[0].data.clone().unwrap()] {
        let data: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(data["category"], quota.category.as_str());
        assert_eq!(data["provider_category"], quota.reference_category());
        assert_eq!(data["original_code"], "DailyQuotaExceeded");
    }
}

/// The data of the verdict's events.
fn data(verdict: &AttemptVerdict) -> Vec<Value> {
    let data = |event: &postway_store::record::NewEvent| event.data.as_deref().unwrap().to_owned();
    verdict.change.events.iter().map(|event| serde_json::from_str(&data(event)).unwrap()).collect()
}

/// The keys code, will_retry, next_attempt and backoff_ms of an event. Fails if one of the other required
/// keys is missing.
fn plain(data: &Value) -> [Value; 4] {
    for key in ["attempt", "duration_ms", "category", "original_code"] {
        assert!(data.get(key).is_some(), "{key} is missing: {data}");
    }
    ["code", "will_retry", "next_attempt", "backoff_ms"].map(|key| data.get(key).unwrap().clone())
}

#[test]
fn every_outcome_has_the_same_event_data() {
    let none = Value::Null;
    let sent = data(&judge_with(&job(1), true, false, vec![accepted()], taken()));
    assert_eq!(plain(&sent[0]), [none.clone(), json!(false), none.clone(), none.clone()]);
    assert_eq!(sent[0]["provider_message_id"], "4XYZ");
    for absent in ["message", "phase", "due_at", "recipient", "suppressed"] {
        assert_eq!(sent[0].get(absent), None, "a mail that was sent has little to tell");
    }
    let failed = data(&judge_with(&job(1), false, false, vec![refused(550)], DeliveryEnd::NoRecipients));
    assert_eq!(plain(&failed[1]), [json!("smtp_550"), json!(false), none.clone(), none.clone()]);
    let retried = data(&judge_with(&job(1), false, false, vec![refused(450)], DeliveryEnd::NoRecipients));
    assert_eq!(plain(&retried[0]), [json!("smtp_450"), json!(true), json!(2), json!(10_000)]);
    assert_eq!(retried[0]["due_at"], "1970-01-01T00:00:15.000Z");
    let lost = || DeliveryEnd::InDoubt(SendFailure::timeout(FailurePhase::Dot));
    let resent = data(&judge_with(&job(1), true, false, vec![accepted()], lost()));
    assert_eq!(plain(&resent[0]), [json!("dot_timeout"), json!(true), json!(2), json!(10_000)]);
    let held = ClaimedMessage { on_doubt: OnDoubt::Hold, ..job(1) };
    let held = data(&judge_with(&held, true, false, vec![accepted()], lost()));
    assert_eq!(plain(&held[0]), [json!("dot_timeout"), json!(false), none.clone(), none]);
    let back = data(&judge_with(&job(1), false, false, vec![accepted()], DeliveryEnd::GateRefused));
    assert_eq!(plain(&back[0]), [Value::Null, json!(true), json!(2), json!(0)]);
}

#[test]
fn a_recipient_that_was_refused_is_named() {
    let verdict = judge_with(&job(2), true, false, vec![accepted(), refused(550)], taken());
    let failed = &data(&verdict)[0];
    assert_eq!(plain(failed), [json!("smtp_550"), json!(false), Value::Null, Value::Null]);
    assert_eq!((&failed["recipient"], &failed["address"]), (&json!(1), &json!("r1@example.net")));
    assert_eq!((&failed["attempt"], &failed["duration_ms"]), (&json!(1), &json!(7)));
}

#[test]
fn certified_mail_awaits_its_receipt_once_it_is_sent() {
    let claimed = job(1);
    let certified = AttemptFacts { committed: true, offered: true, certified: true, ..attempt(&claimed) };
    let sent = judge_attempt(&certified, DeliveryResult::new(vec![accepted()], taken()), &mut chance());
    assert_eq!(sent.change.awaits_receipt, Some(Time::from_millis(5_000 + 30 * 60_000)));
    let refused = DeliveryResult::new(vec![refused(550)], DeliveryEnd::NoRecipients);
    assert_eq!(judge_attempt(&certified, refused, &mut chance()).change.awaits_receipt, None);
    let ordinary = AttemptFacts { certified: false, ..certified };
    let sent = judge_attempt(&ordinary, DeliveryResult::new(vec![accepted()], taken()), &mut chance());
    assert_eq!(sent.change.awaits_receipt, None);
}
