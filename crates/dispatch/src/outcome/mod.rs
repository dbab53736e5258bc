//! From what the transport saw to what is written: pure, so that every case can be tested without a wire.

pub(crate) mod attempt_metrics;
mod event_data;
mod not_started;
pub(crate) mod settle;
pub(crate) mod wire_marks;

use std::time::Duration;

use postway_domain::{
    AccountId, EventKind, Failure, RecipientStatus, State, Status, Time,
    failure::{Category, Phase, Severity},
    message::{Input, LeaseEffect, Outcome, reason, transition},
    retry::RetryPolicy,
};
use postway_store::record::{
    AttemptEnd, Change, Claimed, ClaimedRecipient, Fence, Permit, RecipientChange, SmtpReply,
};
use rand::Rng;
use serde_json::json;

use self::event_data::Told;
pub(crate) use self::not_started::{Hold, all_suppressed, hold, over_limit, recipient_deleted, too_late};
use crate::transport::{Delivery, DeliveryEnd, RecipientReply, Reply};

/// How an attempt went, besides the delivery itself.
pub(crate) struct Attempt<'a> {
    pub job: &'a Claimed,
    /// The account that sends it, which may stand in for its own.
    pub account: &'a AccountId,
    pub committed: bool,
    /// Whether the relay may have seen something of the mail, so that its permit is used.
    pub offered: bool,
    /// That permit, if there is a limit.
    pub permit: Option<&'a Permit>,
    pub ended_at: Time,
    pub duration: Duration,
    pub remote: Option<String>,
    pub policy: &'a RetryPolicy,
    /// Whether the account rather than the mail is at fault, and how long the mail waits besides for its circuit.
    pub account_at_fault: Option<Duration>,
    /// Whether the account sends certified mail, so that a receipt must follow.
    pub certified: bool,
    /// What of the mail was encoded for the relay.
    pub converted: &'static [&'static str],
    /// Whether the relay took the sender's wishes about reports.
    pub takes_dsn: bool,
}

impl Attempt<'_> {
    fn duration_ms(&self) -> i64 {
        i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX)
    }
}

/// How soon the provider's receipt must follow certified mail.
const RECEIPT_WITHIN: Duration = Duration::from_secs(30 * 60);

/// The decision: what to write, and what to tell metrics and log.
pub(crate) struct Verdict {
    pub change: Change,
    /// What follows it in the same transaction.
    pub then: Option<Change>,
    pub outcome: Outcome,
    pub failure: Option<Failure>,
    pub provider_message_id: Option<String>,
    pub duration: Duration,
}

/// Recipients that are on the suppression list since the message was accepted. Those in doubt stay so: they may have got
/// it before.
fn suppressed(job: &Claimed) -> impl Iterator<Item = RecipientChange> {
    let status = RecipientStatus::Suppressed;
    let suppressed = job.suppressed.iter().filter(|_| !job.resend);
    suppressed.map(move |&position| RecipientChange { position, status, reply: None })
}

/// A failure's reply, as kept with a recipient.
fn reply_of(failure: &Failure) -> SmtpReply {
    SmtpReply {
        code: failure.smtp_code,
        enhanced: failure.enhanced.map(|code| code.to_string()),
        text: failure.message.clone(),
    }
}

fn kept(reply: &Reply) -> SmtpReply {
    const TEXT_CHARS_MAX: usize = 512;
    SmtpReply {
        code: Some(reply.code),
        enhanced: reply.enhanced.map(|code| code.to_string()),
        text: reply.text.chars().take(TEXT_CHARS_MAX).collect(),
    }
}

/// What the attempt makes of each recipient, counted. Of a resend it counts what the attempt says, and writes that they are
/// still in doubt: to refuse this copy says nothing about the one before.
#[derive(Default)]
struct Tally<'a> {
    changes: Vec<RecipientChange>,
    refused: Vec<(&'a ClaimedRecipient, &'a Failure)>,
    open: usize,
    split_off: usize,
    sent: usize,
    captured: usize,
    doubtful: usize,
    /// The failure that speaks for the message: the end's, else the first recipient's.
    failure: Option<Failure>,
}

fn tally<'a>(job: &'a Claimed, delivery: &'a Delivery) -> Tally<'a> {
    let failure = match &delivery.end {
        DeliveryEnd::NotSent(failure) | DeliveryEnd::InDoubt(failure) => Some(failure.clone()),
        DeliveryEnd::Accepted { .. }
        | DeliveryEnd::Captured { .. }
        | DeliveryEnd::GateRefused
        | DeliveryEnd::NoRecipients => None,
    };
    let mut tally = Tally { failure, ..Tally::default() };
    for (recipient, reply) in job.recipients.iter().zip(&delivery.recipients) {
        let (status, kept_reply) = match (reply, &delivery.end) {
            (RecipientReply::Refused(failure), _) => {
                tally.failure.get_or_insert_with(|| failure.clone());
                if failure.is_permanent() {
                    if !job.resend {
                        tally.refused.push((recipient, failure));
                    }
                    (RecipientStatus::Failed, Some(reply_of(failure)))
                } else {
                    (RecipientStatus::Pending, Some(reply_of(failure)))
                }
            }
            (RecipientReply::Deferred(failure), _) => {
                tally.split_off += 1;
                tally.failure.get_or_insert_with(|| failure.clone());
                (RecipientStatus::Pending, Some(reply_of(failure)))
            }
            (RecipientReply::Accepted(_), DeliveryEnd::Accepted { reply, .. }) => {
                (RecipientStatus::Sent, Some(kept(reply)))
            }
            (RecipientReply::Accepted(_), DeliveryEnd::Captured { reply }) => {
                (RecipientStatus::Captured, Some(kept(reply)))
            }
            (RecipientReply::Accepted(_), DeliveryEnd::InDoubt(_)) => (RecipientStatus::InDoubt, None),
            (RecipientReply::Accepted(_) | RecipientReply::NotTried, DeliveryEnd::NotSent(failure)) => {
                let status =
                    if failure.is_permanent() { RecipientStatus::Failed } else { RecipientStatus::Pending };
                (status, Some(reply_of(failure)))
            }
            (RecipientReply::Accepted(_), DeliveryEnd::GateRefused | DeliveryEnd::NoRecipients)
            | (
                RecipientReply::NotTried,
                DeliveryEnd::Accepted { .. }
                | DeliveryEnd::Captured { .. }
                | DeliveryEnd::InDoubt(_)
                | DeliveryEnd::GateRefused
                | DeliveryEnd::NoRecipients,
            ) => (RecipientStatus::Pending, None),
        };
        match status {
            RecipientStatus::Pending => tally.open += 1,
            RecipientStatus::Sent => tally.sent += 1,
            RecipientStatus::Captured => tally.captured += 1,
            RecipientStatus::InDoubt => tally.doubtful += 1,
            RecipientStatus::Failed
            | RecipientStatus::Suppressed
            | RecipientStatus::Cancelled
            | RecipientStatus::Expired => {}
        }
        let status = match status {
            RecipientStatus::Pending | RecipientStatus::Failed if job.resend => RecipientStatus::InDoubt,
            status => status,
        };
        tally.changes.push(RecipientChange { position: recipient.position, status, reply: kept_reply });
    }
    tally
}

/// The outcome for the message as a whole, and when it is due again.
fn decide(
    attempt: &Attempt<'_>,
    tally: &Tally<'_>,
    end: &DeliveryEnd,
    random: &mut impl Rng,
) -> (Outcome, Option<Duration>) {
    if matches!(end, DeliveryEnd::GateRefused) {
        return (Outcome::Held, Some(Duration::ZERO));
    }
    let job = attempt.job;
    // A resend that is in doubt anew is so for all its recipients: none is told apart from the others any more.
    let doubtful_again = job.resend && tally.doubtful > 0;
    if tally.open > 0 && !doubtful_again {
        if let Some(wait) = attempt.account_at_fault {
            return (Outcome::Held, Some(wait));
        }
        let progress = tally.sent + tally.doubtful > 0;
        if progress && tally.open == tally.split_off {
            return (Outcome::Held, Some(Duration::ZERO));
        }
        let retries_used = u32::try_from(job.retries).unwrap_or(u32::MAX);
        if let Some(delay) = attempt.policy.delay(retries_used, random) {
            return (Outcome::Retry, Some(delay));
        }
    }
    let resent_to = if job.resend { job.recipients.len() + job.suppressed.len() } else { 0 };
    let concluded = if tally.doubtful > 0 {
        Outcome::Doubt
    } else if job.doubtful_before > 0 || tally.sent + tally.captured < resent_to {
        Outcome::DoubtEarlier
    } else if tally.sent > 0 {
        Outcome::Sent
    } else if job.sent_before > 0 {
        Outcome::SentEarlier
    } else if tally.captured > 0 {
        Outcome::Captured
    } else if tally.open > 0 {
        Outcome::Exhausted
    } else {
        Outcome::Failed
    };
    match concluded {
        // Whoever is left was refused for good, has no retry left or must not be sent to: once more would settle nothing.
        Outcome::DoubtEarlier if job.resend => (concluded, None),
        Outcome::Doubt | Outcome::DoubtEarlier => {
            let doubts = job.doubts + 1;
            let delay = resend_delay(attempt.policy, doubts, random);
            let too_late = job.expires_at.is_some_and(|at| at <= attempt.ended_at.plus(delay));
            (concluded, job.on_doubt.resends(doubts, too_late).then_some(delay))
        }
        _ => (concluded, None),
    }
}

/// What is shown of a doubt whose own attempt is over, where the last one had nothing to complain of.
fn doubt_remains() -> Failure {
    let (category, severity) = (Category::Unknown, Severity::Transient);
    Failure::new("in_doubt", category, Phase::Dot, severity, reason::DOUBT_REMAINS)
}

/// How long a message in doubt waits before it is sent again: the retry delay of as many failures.
pub(crate) fn resend_delay(policy: &RetryPolicy, doubts: i64, random: &mut impl Rng) -> Duration {
    let nth = u32::try_from(doubts - 1).unwrap_or(0);
    policy.delay(nth, random).unwrap_or(Duration::from_secs(60))
}

/// Turns an attempt into the change that records it.
pub(crate) fn judge(attempt: &Attempt<'_>, delivery: Delivery, random: &mut impl Rng) -> Verdict {
    let job = attempt.job;
    let mut tally = tally(job, &delivery);
    let (outcome, delay) = decide(attempt, &tally, &delivery.end, random);
    let exhausted = matches!(outcome, Outcome::Exhausted)
        || (tally.open > 0 && !matches!(outcome, Outcome::Retry | Outcome::Held));
    if exhausted {
        for change in &mut tally.changes {
            if change.status == RecipientStatus::Pending {
                change.status = RecipientStatus::Failed;
            }
        }
    }
    let (reply, provider_message_id) = match &delivery.end {
        DeliveryEnd::Accepted { reply, provider_message_id } => {
            (Some(kept(reply)), provider_message_id.clone())
        }
        DeliveryEnd::Captured { reply } => (Some(kept(reply)), None),
        DeliveryEnd::NotSent(_)
        | DeliveryEnd::InDoubt(_)
        | DeliveryEnd::GateRefused
        | DeliveryEnd::NoRecipients => (tally.failure.as_ref().map(reply_of), None),
    };
    let failure = match outcome {
        Outcome::Sent | Outcome::SentEarlier | Outcome::Captured => None,
        Outcome::Retry
        | Outcome::Failed
        | Outcome::Exhausted
        | Outcome::Doubt
        | Outcome::Held
        | Outcome::Quarantined => tally.failure.clone(),
        Outcome::DoubtEarlier => tally.failure.clone().or_else(|| Some(doubt_remains())),
    };
    let mut change = settled(attempt, outcome, delay, failure.as_ref(), provider_message_id.as_deref());
    change.exhausted = outcome == Outcome::Exhausted;
    let recipient_failed = |(recipient, failure): &(&ClaimedRecipient, &Failure)| {
        Told::of_recipient(attempt, recipient, failure).event(EventKind::RecipientFailed)
    };
    let recipient_events = tally.refused.iter().map(recipient_failed);
    change.events.splice(0..0, recipient_events);
    change.recipients.extend(tally.changes);
    change.attempt = Some(AttemptEnd {
        number: job.attempt,
        started_at: job.claimed_at,
        duration_ms: attempt.duration_ms(),
        account: attempt.account.clone(),
        remote: attempt.remote.clone(),
        outcome: word(outcome),
        reply,
        provider_message_id: provider_message_id.clone(),
    });
    Verdict { change, then: None, outcome, failure, provider_message_id, duration: attempt.duration }
}

/// A message that broke its worker: set aside, or in doubt and held if its dot may have gone out. What earlier attempts
/// sent, or may have sent, stays so. `marked` says whether the recipients that may be in doubt are marked as such: then
/// the relay had refused the others.
pub(crate) fn quarantine(attempt: &Attempt<'_>, marked: bool, failure: Failure) -> Verdict {
    let job = attempt.job;
    let outcome = match attempt.committed {
        true => Outcome::Doubt,
        false if job.doubtful_before > 0 || job.resend => Outcome::DoubtEarlier,
        false if job.sent_before > 0 => Outcome::SentEarlier,
        false => Outcome::Quarantined,
    };
    let shown = Some(&failure).filter(|_| outcome != Outcome::SentEarlier);
    let mut change = settled(attempt, outcome, None, shown, None);
    if attempt.committed {
        let open = if marked { RecipientStatus::Failed } else { RecipientStatus::InDoubt };
        change.ends_open_recipients = Some(open);
    } else if !job.resend {
        let status = RecipientStatus::Failed;
        let failed = |one: &ClaimedRecipient| RecipientChange { position: one.position, status, reply: None };
        change.recipients.extend(job.recipients.iter().map(failed));
    }
    let duration = attempt.duration;
    Verdict { change, then: None, outcome, failure: Some(failure), provider_message_id: None, duration }
}

/// Gives a message back unsent, without using a retry.
pub(crate) fn give_back(job: &Claimed, now: Time) -> Change {
    let policy = RetryPolicy { delays_s: Vec::new(), jitter: 0.0 };
    let attempt = Attempt {
        job,
        account: &job.lane.account,
        committed: false,
        offered: false,
        permit: job.permit.as_ref(),
        ended_at: now,
        duration: Duration::ZERO,
        remote: None,
        policy: &policy,
        account_at_fault: None,
        certified: false,
        converted: &[],
        takes_dsn: false,
    };
    let mut change = settled(&attempt, Outcome::Held, Some(Duration::ZERO), None, None);
    // It was not started, so whatever became of its workers before is still all that is known.
    change.lost_leases = None;
    change
}

fn settled(
    attempt: &Attempt<'_>,
    outcome: Outcome,
    delay: Option<Duration>,
    failure: Option<&Failure>,
    provider_message_id: Option<&str>,
) -> Change {
    let job = attempt.job;
    let from = State::Sending { wire_committed: attempt.committed };
    let (to, effects) = match transition(from, Input::Settle(outcome)) {
        Ok(next) => next,
        // The table refuses nothing that `decide` produces; if it ever did, doubt is the truth about the wire.
        Err(error) => {
            tracing::error!(uid = %job.uid, %error, "an outcome that the table does not know");
            let fallback = if attempt.committed { Outcome::Doubt } else { Outcome::Held };
            return settled(attempt, fallback, delay, failure, provider_message_id);
        }
    };
    let due_at = delay.map(|delay| attempt.ended_at.plus(delay));
    let retries = effects.uses_retry.then_some(job.retries + 1);
    // The doubt that a resend could not settle has been counted.
    let is_new = outcome == Outcome::Doubt || (outcome == Outcome::DoubtEarlier && !job.resend);
    let doubts = is_new.then_some(job.doubts + 1);
    let told = Told::of_message(attempt, failure, due_at, provider_message_id);
    Change {
        uid: job.uid,
        fence: Fence {
            status: Status::Sending,
            token: Some(job.token),
            // Where the permission was refused because the database went away, nobody knows whether it was written.
            version: (outcome != Outcome::Held).then_some(job.version + i64::from(attempt.committed)),
        },
        to,
        at: attempt.ended_at,
        due_at,
        keep_token: effects.lease == LeaseEffect::Keep,
        retries,
        doubts,
        lost_leases: Some(0),
        exhausted: false,
        error: failure.map(error_json),
        events: effects.event.map(|kind| told.event(kind)).into_iter().collect(),
        recipients: suppressed(job).collect(),
        // Each recipient of the attempt is written by name; only a quarantined message ends the rest wholesale.
        ends_open_recipients: (outcome == Outcome::Quarantined).then_some(RecipientStatus::Failed),
        attempt: None,
        refund: attempt.permit.filter(|_| !attempt.offered).cloned(),
        preparation: None,
        erases_bodies: matches!(to, State::Sent | State::Captured) && job.sensitive,
        awaits_receipt: (to == State::Sent && attempt.certified)
            .then(|| attempt.ended_at.plus(RECEIPT_WITHIN)),
    }
}

fn error_json(failure: &Failure) -> String {
    json!({
        "code": failure.code, "category": failure.category, "provider_category": failure.reference_category(),
        "original_code": failure.original_code, "phase": failure.phase,
        "smtp_code": failure.smtp_code, "enhanced_code": failure.enhanced, "message": failure.message,
    })
    .to_string()
}

/// The outcome as attempts, metrics and log lines name it.
pub(crate) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Sent | Outcome::SentEarlier => "sent",
        Outcome::Captured => "captured",
        Outcome::Retry => "deferred",
        Outcome::Failed => "failed",
        Outcome::Exhausted => "exhausted",
        Outcome::Doubt | Outcome::DoubtEarlier => "in_doubt",
        Outcome::Held => "held",
        Outcome::Quarantined => "quarantined",
    }
}

#[cfg(test)]
mod tests;
