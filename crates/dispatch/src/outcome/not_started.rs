//! Messages that end or are returned before anything was sent. There is no attempt to record.

use std::time::Duration;

use postway_domain::{
    Lane, SendFailure,
    failure::{FailureCategory, FailurePhase, FailureSeverity},
    message::{AttemptOutcome, TransitionInput, transition},
};
use postway_store::record::{MessageChange, NewEvent, WriteFence};
use rand::Rng;
use serde_json::{Value, json};

use super::{AttemptFacts, AttemptVerdict, judge_attempt, settling_change};
use crate::transport::{DeliveryEnd, DeliveryResult, RecipientReply};

/// The first wait of a message whose body could not be read; each further wait is twice as long.
const BODY_WAIT_FIRST: Duration = Duration::from_secs(5);
/// The longest such wait: rare enough to keep the history readable, frequent enough to notice repaired
/// storage.
const BODY_WAIT_MAX: Duration = Duration::from_secs(300);

/// Why a message is returned.
pub(crate) enum ReturnReason {
    /// The permit has expired: its debit counts for a time that has passed.
    PermitExpired,
    /// The process is isolated: another node may send the message instead.
    Isolated,
    /// The provider asked for a pause of this length.
    Paused(Duration),
    /// The limit of a receiving domain is used up.
    Destination {
        /// For this long.
        wait: Duration,
        /// The lane in which claims pass over it meanwhile, if that is not its own.
        lane: Option<Lane>,
    },
    /// The body cannot be read here and now; another node or a later attempt may read it.
    Body(SendFailure),
}

/// Returns a message that was about to be sent, without using a retry.
pub(crate) fn return_message(attempt: &AttemptFacts<'_>, reason: ReturnReason) -> AttemptVerdict {
    let mut moves_to = None;
    let (failure, delay, note) = match reason {
        ReturnReason::PermitExpired => (None, Duration::ZERO, Some("permit expired")),
        ReturnReason::Isolated => (None, Duration::ZERO, Some("its node was isolated")),
        ReturnReason::Destination { wait, lane } => {
            moves_to = lane;
            let message = "a receiving domain is being sent as much as it may be for now";
            let failure = not_started(
                "destination_limit",
                FailureCategory::RateLimited,
                FailureSeverity::Transient,
                message,
            );
            (Some(failure), wait, None)
        }
        ReturnReason::Paused(wait) => {
            let message = "the provider asked to be sent nothing for a while";
            let failure = not_started(
                "provider_paused",
                FailureCategory::RateLimited,
                FailureSeverity::Transient,
                message,
            );
            (Some(failure), wait, None)
        }
        ReturnReason::Body(failure) => (Some(failure), body_wait(attempt.job.attempt), None),
    };
    let mut change = settling_change(attempt, AttemptOutcome::Returned, Some(delay), failure.as_ref(), None);
    if let Some(note) = note {
        add_reason(&mut change, note);
    }
    // It was not started, so its count of lost leases stays.
    change.lost_leases = None;
    let duration = attempt.duration;
    AttemptVerdict {
        change,
        then: None,
        moves_to,
        outcome: AttemptOutcome::Returned,
        failure,
        provider_message_id: None,
        duration,
    }
}

/// How long a message waits whose body could not be read, by the number of the attempt.
fn body_wait(attempt: i64) -> Duration {
    let doublings = u32::try_from(attempt - 1).unwrap_or_default().min(16);
    (BODY_WAIT_FIRST * (1 << doublings)).min(BODY_WAIT_MAX)
}

/// Fails a message that exceeds a limit of an account that rejects such mail.
pub(crate) fn over_limit(attempt: &AttemptFacts<'_>, random: &mut impl Rng) -> AttemptVerdict {
    let message = "the account's limit is used up, and it rejects what is beyond";
    fail(
        attempt,
        not_started("limit_exceeded", FailureCategory::Quota, FailureSeverity::Permanent, message),
        random,
    )
}

/// Puts a message in doubt on hold when its `expires_at` has passed: it may have arrived, and must not be
/// resent.
pub(crate) fn too_late(attempt: &AttemptFacts<'_>, random: &mut impl Rng) -> AttemptVerdict {
    let message = "its expires_at passed before it was sent again";
    fail(
        attempt,
        not_started("expired", FailureCategory::Unknown, FailureSeverity::Permanent, message),
        random,
    )
}

/// Fails a message whose recipient the tenant has deleted meanwhile.
pub(crate) fn recipient_deleted(attempt: &AttemptFacts<'_>, random: &mut impl Rng) -> AttemptVerdict {
    let message = "its recipient was deleted from the directory of recipients";
    fail(
        attempt,
        not_started("RECIPIENT_NOT_FOUND", FailureCategory::Policy, FailureSeverity::Permanent, message),
        random,
    )
}

/// Ends a message whose remaining recipients are all on the suppression list. If earlier attempts sent to
/// some, or may have, that decides its final state.
pub(crate) fn all_suppressed(attempt: &AttemptFacts<'_>, random: &mut impl Rng) -> AttemptVerdict {
    let job = attempt.job;
    let message = "every recipient that was left is on the suppression list";
    if job.sent_before + job.doubtful_before > 0 || job.resend {
        return fail(
            attempt,
            not_started("suppressed", FailureCategory::Policy, FailureSeverity::Permanent, message),
            random,
        );
    }
    // Only a waiting message can be suppressed, so it is returned and suppressed in one transaction.
    let mut change = settling_change(attempt, AttemptOutcome::Returned, None, None, None);
    change.fence.version = Some(job.version);
    add_reason(&mut change, "suppressed");
    let data = Some(json!({"attempt": job.attempt, "reason": message}).to_string());
    let then = transition(change.to, TransitionInput::Suppress).ok().map(|(to, effects)| MessageChange {
        fence: WriteFence { status: change.to.status(), token: None, version: Some(job.version + 1) },
        to,
        events: effects.event.map(|kind| NewEvent { kind, data }).into_iter().collect(),
        recipients: Vec::new(),
        ends_open_recipients: effects.ends_open_recipients,
        refund: None,
        ..change.clone()
    });
    let duration = attempt.duration;
    AttemptVerdict {
        change,
        then,
        moves_to: None,
        outcome: AttemptOutcome::Returned,
        failure: None,
        provider_message_id: None,
        duration,
    }
}

fn fail(attempt: &AttemptFacts<'_>, failure: SendFailure, random: &mut impl Rng) -> AttemptVerdict {
    let recipients = attempt.job.recipients.iter().map(|_| RecipientReply::NotTried).collect();
    let mut verdict =
        judge_attempt(attempt, DeliveryResult::new(recipients, DeliveryEnd::NotSent(failure)), random);
    verdict.change.attempt = None;
    verdict
}

fn not_started(
    code: &'static str,
    category: FailureCategory,
    severity: FailureSeverity,
    message: &str,
) -> SendFailure {
    SendFailure::new(code, category, FailurePhase::Compose, severity, message)
}

/// Adds a reason to the data of the last event.
fn add_reason(change: &mut MessageChange, reason: &str) {
    let Some(data) = change.events.last_mut().and_then(|event| event.data.as_mut()) else { return };
    if let Ok(Value::Object(mut object)) = serde_json::from_str(data) {
        object.insert("reason".to_owned(), json!(reason));
        *data = Value::Object(object).to_string();
    }
}
