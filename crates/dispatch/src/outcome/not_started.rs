//! Messages that end, or go back, before anything of them was sent. There is no attempt to record.

use std::time::Duration;

use postway_domain::{
    Failure,
    failure::{Category, Phase, Severity},
    message::{Input, Outcome, transition},
};
use postway_store::record::{Change, Fence, NewEvent};
use rand::Rng;
use serde_json::{Value, json};

use super::{Attempt, Verdict, judge, settled};
use crate::transport::{Delivery, DeliveryEnd, RecipientReply};

/// How long a message waits whose bytes could not be read; doubles up to the last.
const BODY_WAIT_FIRST: Duration = Duration::from_secs(5);
/// The longest such wait: seldom enough to leave a readable history, often enough to notice a mended folder.
const BODY_WAIT_MAX: Duration = Duration::from_secs(300);

/// Why a message is given back.
pub(crate) enum Hold {
    /// Its permit has run out: used now, it would count for a time in which it was not used.
    PermitExpired,
    /// This process is isolated: others may send it instead.
    Isolated,
    /// The account's provider asked to be sent nothing for this long.
    Paused(Duration),
    /// A receiving domain is sent enough for this long.
    Destination(Duration),
    /// Its bytes cannot be read here and now; another node, or an hour later, may find them.
    Body(Failure),
}

/// Gives a message back that was about to be sent, without using a retry.
pub(crate) fn hold(attempt: &Attempt<'_>, hold: Hold) -> Verdict {
    let (failure, delay, reason) = match hold {
        Hold::PermitExpired => (None, Duration::ZERO, Some("permit expired")),
        Hold::Isolated => (None, Duration::ZERO, Some("its node was isolated")),
        Hold::Destination(wait) => {
            let message = "a receiving domain is being sent as much as it may be for now";
            let failure = unbegun("destination_limit", Category::RateLimited, Severity::Transient, message);
            (Some(failure), wait, None)
        }
        Hold::Paused(wait) => {
            let message = "the provider asked to be sent nothing for a while";
            let failure = unbegun("provider_paused", Category::RateLimited, Severity::Transient, message);
            (Some(failure), wait, None)
        }
        Hold::Body(failure) => (Some(failure), body_wait(attempt.job.attempt), None),
    };
    let mut change = settled(attempt, Outcome::Held, Some(delay), failure.as_ref(), None);
    if let Some(reason) = reason {
        tell_reason(&mut change, reason);
    }
    // It was not started, so whatever became of its workers before is still all that is known.
    change.lost_leases = None;
    let duration = attempt.duration;
    Verdict { change, then: None, outcome: Outcome::Held, failure, provider_message_id: None, duration }
}

/// How long a message waits whose bytes could not be read, by the number of its attempt.
fn body_wait(attempt: i64) -> Duration {
    let doublings = u32::try_from(attempt - 1).unwrap_or_default().min(16);
    (BODY_WAIT_FIRST * (1 << doublings)).min(BODY_WAIT_MAX)
}

/// Ends a message that is beyond a limit that rejects.
pub(crate) fn over_limit(attempt: &Attempt<'_>, random: &mut impl Rng) -> Verdict {
    let message = "the account's limit is used up, and it rejects what is beyond";
    fail(attempt, unbegun("limit_exceeded", Category::Quota, Severity::Permanent, message), random)
}

/// Holds a message in doubt whose time is over: it may have arrived, and must not be sent any more.
pub(crate) fn too_late(attempt: &Attempt<'_>, random: &mut impl Rng) -> Verdict {
    let message = "its expires_at passed before it was sent again";
    fail(attempt, unbegun("expired", Category::Unknown, Severity::Permanent, message), random)
}

/// Ends a message to somebody whom its tenant has deleted meanwhile.
pub(crate) fn recipient_deleted(attempt: &Attempt<'_>, random: &mut impl Rng) -> Verdict {
    let message = "its recipient was deleted from the directory of recipients";
    fail(attempt, unbegun("RECIPIENT_NOT_FOUND", Category::Policy, Severity::Permanent, message), random)
}

/// Ends a message whose recipients are all on the suppression list by now. Where some were sent to before, or may have
/// been, that is what became of it.
pub(crate) fn all_suppressed(attempt: &Attempt<'_>, random: &mut impl Rng) -> Verdict {
    let job = attempt.job;
    let message = "every recipient that was left is on the suppression list";
    if job.sent_before + job.doubtful_before > 0 || job.resend {
        return fail(attempt, unbegun("suppressed", Category::Policy, Severity::Permanent, message), random);
    }
    // Only what waits can be suppressed: it is given back and ended in one transaction.
    let mut change = settled(attempt, Outcome::Held, None, None, None);
    change.fence.version = Some(job.version);
    tell_reason(&mut change, "suppressed");
    let data = Some(json!({"attempt": job.attempt, "reason": message}).to_string());
    let then = transition(change.to, Input::Suppress).ok().map(|(to, effects)| Change {
        fence: Fence { status: change.to.status(), token: None, version: Some(job.version + 1) },
        to,
        events: effects.event.map(|kind| NewEvent { kind, data }).into_iter().collect(),
        recipients: Vec::new(),
        ends_open_recipients: effects.ends_open_recipients,
        refund: None,
        ..change.clone()
    });
    let duration = attempt.duration;
    Verdict { change, then, outcome: Outcome::Held, failure: None, provider_message_id: None, duration }
}

fn fail(attempt: &Attempt<'_>, failure: Failure, random: &mut impl Rng) -> Verdict {
    let recipients = attempt.job.recipients.iter().map(|_| RecipientReply::NotTried).collect();
    let mut verdict = judge(attempt, Delivery::new(recipients, DeliveryEnd::NotSent(failure)), random);
    verdict.change.attempt = None;
    verdict
}

fn unbegun(code: &'static str, category: Category, severity: Severity, message: &str) -> Failure {
    Failure::new(code, category, Phase::Compose, severity, message)
}

/// Adds the reason to the event that tells the outcome.
fn tell_reason(change: &mut Change, reason: &str) {
    let Some(data) = change.events.last_mut().and_then(|event| event.data.as_mut()) else { return };
    if let Ok(Value::Object(mut object)) = serde_json::from_str(data) {
        object.insert("reason".to_owned(), json!(reason));
        *data = Value::Object(object).to_string();
    }
}
