//! Turns the result of an attempt into the change that is written. Pure, so that every case is tested without
//! a network.
//!
//! [`judge_attempt`] is the usual way; `not_started.rs` covers messages that end or are returned before
//! anything was sent, `wire_marks.rs` the wire commit, `event_data.rs` the events. `settle.rs` makes the
//! change durable.

pub(crate) mod attempt_metrics;
mod event_data;
mod not_started;
pub(crate) mod settle;
pub(crate) mod wire_marks;

use std::time::Duration;

use postway_domain::{
    AccountId, EventKind, Lane, MessageState, MessageStatus, RecipientStatus, SendFailure, Time,
    failure::{FailureCategory, FailurePhase, FailureSeverity},
    message::{AttemptOutcome, LeaseEffect, TransitionInput, reason, transition},
    retry::RetryPolicy,
};
use postway_store::record::{
    AttemptEnd, ClaimedMessage, ClaimedRecipient, MessageChange, RecipientChange, SendingPermit, SmtpReply,
    WriteFence,
};
use rand::Rng;
use serde_json::json;

use self::event_data::OutcomeEventData;
pub(crate) use self::not_started::{
    ReturnReason, all_suppressed, over_limit, recipient_deleted, return_message, too_late,
};
use crate::transport::{DeliveryEnd, DeliveryResult, RecipientReply, RelayReply, hide_addresses};

/// The facts of an attempt, besides the delivery itself.
pub(crate) struct AttemptFacts<'a> {
    pub job: &'a ClaimedMessage,
    /// The account that sends: the message's own or its fallback.
    pub account: &'a AccountId,
    pub committed: bool,
    /// Whether the relay may have seen a part of the mail, so that its permit is used.
    pub offered: bool,
    /// The permit, if the account has a limit.
    pub permit: Option<&'a SendingPermit>,
    pub ended_at: Time,
    pub duration: Duration,
    pub remote: Option<String>,
    pub policy: &'a RetryPolicy,
    /// Set if the account rather than the mail is at fault: how long the mail waits, besides the open
    /// circuit.
    pub account_at_fault: Option<Duration>,
    /// Whether the account sends certified mail, so that a receipt must follow.
    pub certified: bool,
    /// The parts of the mail that were encoded for the relay.
    pub converted: &'static [&'static str],
    /// Whether the relay offers DSN, so that the wishes about reports went with the mail; `None` if there
    /// were none.
    pub dsn_offered: Option<bool>,
}

impl AttemptFacts<'_> {
    fn duration_ms(&self) -> i64 {
        i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX)
    }
}

/// How soon the provider's receipt must follow certified mail.
const RECEIPT_WITHIN: Duration = Duration::from_secs(30 * 60);

/// The decision about an attempt: what to write, and what metrics and log report.
pub(crate) struct AttemptVerdict {
    pub change: MessageChange,
    /// A second change, written in the same transaction.
    pub then: Option<MessageChange>,
    /// The lane to which the message is moved once it waits again.
    pub moves_to: Option<Lane>,
    pub outcome: AttemptOutcome,
    pub failure: Option<SendFailure>,
    pub provider_message_id: Option<String>,
    pub duration: Duration,
}

/// Changes for recipients that were put on the suppression list after the message was accepted. A resend
/// changes none: its recipients stay in doubt, because they may have the first copy.
fn suppressed_changes(job: &ClaimedMessage) -> impl Iterator<Item = RecipientChange> {
    let status = RecipientStatus::Suppressed;
    let suppressed = job.suppressed.iter().filter(|_| !job.resend);
    suppressed.map(move |&position| RecipientChange { position, status, reply: None })
}

/// The reply of a failure, as it is stored with a recipient.
fn failure_reply(failure: &SendFailure) -> SmtpReply {
    SmtpReply {
        code: failure.smtp_code,
        enhanced: failure.enhanced.map(|code| code.to_string()),
        text: failure.message.clone(),
    }
}

fn stored_reply(reply: &RelayReply) -> SmtpReply {
    const TEXT_CHARS_MAX: usize = 512;
    SmtpReply {
        code: Some(reply.code),
        enhanced: reply.enhanced.map(|code| code.to_string()),
        text: reply.text.chars().take(TEXT_CHARS_MAX).collect(),
    }
}

/// What the attempt means for each recipient, with counts. For a resend, the counts follow the replies, but
/// the written status stays in doubt: a relay that refuses this copy says nothing about the first one.
#[derive(Default)]
struct RecipientTally<'a> {
    changes: Vec<RecipientChange>,
    refused: Vec<(&'a ClaimedRecipient, &'a SendFailure)>,
    open: usize,
    split_off: usize,
    sent: usize,
    captured: usize,
    doubtful: usize,
    /// The failure shown for the message: that of the transaction, else the first recipient's.
    failure: Option<SendFailure>,
}

fn tally<'a>(job: &'a ClaimedMessage, delivery: &'a DeliveryResult) -> RecipientTally<'a> {
    let failure = match &delivery.end {
        DeliveryEnd::NotSent(failure) | DeliveryEnd::InDoubt(failure) => Some(failure.clone()),
        DeliveryEnd::Accepted { .. }
        | DeliveryEnd::Captured { .. }
        | DeliveryEnd::GateRefused
        | DeliveryEnd::NoRecipients => None,
    };
    let mut tally = RecipientTally { failure, ..RecipientTally::default() };
    for (recipient, reply) in job.recipients.iter().zip(&delivery.recipients) {
        let (status, recipient_reply) = match (reply, &delivery.end) {
            (RecipientReply::Refused(failure), _) => {
                tally.failure.get_or_insert_with(|| failure.clone());
                if failure.is_permanent() {
                    if !job.resend {
                        tally.refused.push((recipient, failure));
                    }
                    (RecipientStatus::Failed, Some(failure_reply(failure)))
                } else {
                    (RecipientStatus::Pending, Some(failure_reply(failure)))
                }
            }
            (RecipientReply::Deferred(failure), _) => {
                tally.split_off += 1;
                tally.failure.get_or_insert_with(|| failure.clone());
                (RecipientStatus::Pending, Some(failure_reply(failure)))
            }
            (RecipientReply::Taken(reply), _)
            | (RecipientReply::Accepted(_), DeliveryEnd::Accepted { reply, .. }) => {
                (RecipientStatus::Sent, Some(stored_reply(reply)))
            }
            (RecipientReply::Doubtful(failure), _) => {
                tally.failure.get_or_insert_with(|| failure.clone());
                (RecipientStatus::InDoubt, None)
            }
            (RecipientReply::Accepted(_), DeliveryEnd::Captured { reply }) => {
                (RecipientStatus::Captured, Some(stored_reply(reply)))
            }
            (RecipientReply::Accepted(_), DeliveryEnd::InDoubt(_)) => (RecipientStatus::InDoubt, None),
            (RecipientReply::Accepted(_) | RecipientReply::NotTried, DeliveryEnd::NotSent(failure)) => {
                let status =
                    if failure.is_permanent() { RecipientStatus::Failed } else { RecipientStatus::Pending };
                (status, Some(failure_reply(failure)))
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
        tally.changes.push(RecipientChange { position: recipient.position, status, reply: recipient_reply });
    }
    tally
}

/// The outcome for the message as a whole, and when it is due again.
fn decide(
    attempt: &AttemptFacts<'_>,
    tally: &RecipientTally<'_>,
    end: &DeliveryEnd,
    random: &mut impl Rng,
) -> (AttemptOutcome, Option<Duration>) {
    if matches!(end, DeliveryEnd::GateRefused) {
        return (AttemptOutcome::Returned, Some(Duration::ZERO));
    }
    let job = attempt.job;
    // A resend that ends in doubt again is in doubt for all its recipients; their replies no longer count.
    let doubtful_again = job.resend && tally.doubtful > 0;
    if tally.open > 0 && !doubtful_again {
        if let Some(wait) = attempt.account_at_fault {
            return (AttemptOutcome::Returned, Some(wait));
        }
        let progress = tally.sent + tally.doubtful > 0;
        if progress && tally.open == tally.split_off {
            return (AttemptOutcome::Returned, Some(Duration::ZERO));
        }
        let retries_used = u32::try_from(job.retries).unwrap_or(u32::MAX);
        if let Some(delay) = attempt.policy.delay(retries_used, random) {
            return (AttemptOutcome::Retry, Some(delay));
        }
    }
    let resent_to = if job.resend { job.recipients.len() + job.suppressed.len() } else { 0 };
    let concluded = if tally.doubtful > 0 {
        AttemptOutcome::InDoubt
    } else if job.doubtful_before > 0 || tally.sent + tally.captured < resent_to {
        AttemptOutcome::InDoubtEarlier
    } else if tally.sent > 0 {
        AttemptOutcome::Sent
    } else if job.sent_before > 0 {
        AttemptOutcome::SentEarlier
    } else if tally.captured > 0 {
        AttemptOutcome::Captured
    } else if tally.open > 0 {
        AttemptOutcome::Exhausted
    } else {
        AttemptOutcome::Failed
    };
    match concluded {
        // Every recipient of this resend was refused permanently, has no retry left or is suppressed: another
        // resend would settle nothing.
        AttemptOutcome::InDoubtEarlier if job.resend => (concluded, None),
        AttemptOutcome::InDoubt | AttemptOutcome::InDoubtEarlier => {
            let doubts = job.doubts + 1;
            let delay = resend_delay(attempt.policy, doubts, random);
            let too_late = job.expires_at.is_some_and(|at| at <= attempt.ended_at.plus(delay));
            (concluded, job.on_doubt.resends(doubts, too_late).then_some(delay))
        }
        AttemptOutcome::Sent
        | AttemptOutcome::Captured
        | AttemptOutcome::Retry
        | AttemptOutcome::Failed
        | AttemptOutcome::Exhausted
        | AttemptOutcome::SentEarlier
        | AttemptOutcome::Returned
        | AttemptOutcome::Quarantined => (concluded, None),
    }
}

/// The failure shown when an earlier attempt left a doubt and the last attempt has no failure of its own.
fn doubt_remains() -> SendFailure {
    let (category, severity) = (FailureCategory::Unknown, FailureSeverity::Transient);
    SendFailure::new("in_doubt", category, FailurePhase::Dot, severity, reason::DOUBT_REMAINS)
}

/// How long a message in doubt waits before it is resent: the n-th doubt waits the n-th retry delay.
pub(crate) fn resend_delay(policy: &RetryPolicy, doubts: i64, random: &mut impl Rng) -> Duration {
    let nth = u32::try_from(doubts - 1).unwrap_or(0);
    policy.delay(nth, random).unwrap_or(Duration::from_secs(60))
}

/// Turns a finished attempt into the change that records it.
pub(crate) fn judge_attempt(
    attempt: &AttemptFacts<'_>,
    delivery: DeliveryResult,
    random: &mut impl Rng,
) -> AttemptVerdict {
    let job = attempt.job;
    let mut tally = tally(job, &delivery);
    let (outcome, delay) = decide(attempt, &tally, &delivery.end, random);
    let exhausted = matches!(outcome, AttemptOutcome::Exhausted)
        || (tally.open > 0 && !matches!(outcome, AttemptOutcome::Retry | AttemptOutcome::Returned));
    if exhausted {
        for change in &mut tally.changes {
            if change.status == RecipientStatus::Pending {
                change.status = RecipientStatus::Failed;
            }
        }
    }
    let (reply, provider_message_id) = match &delivery.end {
        DeliveryEnd::Accepted { reply, provider_message_id } => {
            (Some(stored_reply(reply)), provider_message_id.clone())
        }
        DeliveryEnd::Captured { reply } => (Some(stored_reply(reply)), None),
        DeliveryEnd::NotSent(_)
        | DeliveryEnd::InDoubt(_)
        | DeliveryEnd::GateRefused
        | DeliveryEnd::NoRecipients => (tally.failure.as_ref().map(failure_reply), None),
    };
    let failure = match outcome {
        AttemptOutcome::Sent | AttemptOutcome::SentEarlier | AttemptOutcome::Captured => None,
        AttemptOutcome::Retry
        | AttemptOutcome::Failed
        | AttemptOutcome::Exhausted
        | AttemptOutcome::InDoubt
        | AttemptOutcome::Returned
        | AttemptOutcome::Quarantined => tally.failure.clone(),
        AttemptOutcome::InDoubtEarlier => tally.failure.clone().or_else(|| Some(doubt_remains())),
    };
    let mut change =
        settling_change(attempt, outcome, delay, failure.as_ref(), provider_message_id.as_deref());
    change.exhausted = outcome == AttemptOutcome::Exhausted;
    let recipient_failed = |(recipient, failure): &(&ClaimedRecipient, &SendFailure)| {
        OutcomeEventData::for_recipient(attempt, recipient, failure).event(EventKind::RecipientFailed)
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
        outcome: outcome_word(outcome),
        reply,
        provider_message_id: provider_message_id.clone(),
        dialogue: delivery.dialogue.map(|text| if job.sensitive { hide_addresses(&text) } else { text }),
    });
    let duration = attempt.duration;
    AttemptVerdict { change, then: None, moves_to: None, outcome, failure, provider_message_id, duration }
}

/// Records a message whose attempt panicked: it is quarantined, or in doubt and on hold if its dot may have
/// gone out. Recipients that earlier attempts sent to, or may have sent to, stay as they are. `marked` says
/// that the wire commit recorded which recipients may be in doubt; then the relay had refused the others.
pub(crate) fn quarantine(attempt: &AttemptFacts<'_>, marked: bool, failure: SendFailure) -> AttemptVerdict {
    let job = attempt.job;
    let outcome = match attempt.committed {
        true => AttemptOutcome::InDoubt,
        false if job.doubtful_before > 0 || job.resend => AttemptOutcome::InDoubtEarlier,
        false if job.sent_before > 0 => AttemptOutcome::SentEarlier,
        false => AttemptOutcome::Quarantined,
    };
    let shown = Some(&failure).filter(|_| outcome != AttemptOutcome::SentEarlier);
    let mut change = settling_change(attempt, outcome, None, shown, None);
    if attempt.committed {
        let open = if marked { RecipientStatus::Failed } else { RecipientStatus::InDoubt };
        change.ends_open_recipients = Some(open);
    } else if !job.resend {
        let status = RecipientStatus::Failed;
        let failed = |one: &ClaimedRecipient| RecipientChange { position: one.position, status, reply: None };
        change.recipients.extend(job.recipients.iter().map(failed));
    }
    let duration = attempt.duration;
    AttemptVerdict {
        change,
        then: None,
        moves_to: None,
        outcome,
        failure: Some(failure),
        provider_message_id: None,
        duration,
    }
}

/// Returns a message that no courier has started, without using a retry.
pub(crate) fn return_unstarted(job: &ClaimedMessage, now: Time) -> MessageChange {
    let policy = RetryPolicy { delays_s: Vec::new(), jitter: 0.0 };
    let attempt = AttemptFacts {
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
        dsn_offered: None,
    };
    let mut change = settling_change(&attempt, AttemptOutcome::Returned, Some(Duration::ZERO), None, None);
    // It was not started, so its count of lost leases stays.
    change.lost_leases = None;
    change
}

fn settling_change(
    attempt: &AttemptFacts<'_>,
    outcome: AttemptOutcome,
    delay: Option<Duration>,
    failure: Option<&SendFailure>,
    provider_message_id: Option<&str>,
) -> MessageChange {
    let job = attempt.job;
    let from = MessageState::Sending { wire_committed: attempt.committed };
    let (to, effects) = match transition(from, TransitionInput::Settle(outcome)) {
        Ok(next) => next,
        // The table accepts every outcome that `decide` produces. If it ever did not, the wire commit
        // decides.
        Err(error) => {
            tracing::error!(uid = %job.uid, %error, "the state table refuses an outcome");
            let fallback = if attempt.committed { AttemptOutcome::InDoubt } else { AttemptOutcome::Returned };
            return settling_change(attempt, fallback, delay, failure, provider_message_id);
        }
    };
    let due_at = delay.map(|delay| attempt.ended_at.plus(delay));
    let retries = effects.uses_retry.then_some(job.retries + 1);
    // A doubt that a resend could not settle was counted when it arose.
    let is_new =
        outcome == AttemptOutcome::InDoubt || (outcome == AttemptOutcome::InDoubtEarlier && !job.resend);
    let doubts = is_new.then_some(job.doubts + 1);
    let data = OutcomeEventData::for_message(attempt, failure, due_at, provider_message_id);
    MessageChange {
        uid: job.uid,
        fence: WriteFence {
            status: MessageStatus::Sending,
            token: Some(job.token),
            // If the wire commit failed because the database went away, it may or may not have been written,
            // so a returned message is not fenced by version.
            version: (outcome != AttemptOutcome::Returned)
                .then_some(job.version + i64::from(attempt.committed)),
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
        events: effects.event.map(|kind| data.event(kind)).into_iter().collect(),
        recipients: suppressed_changes(job).collect(),
        // The recipients of the attempt are written one by one; only a quarantine ends all open ones at once.
        ends_open_recipients: (outcome == AttemptOutcome::Quarantined).then_some(RecipientStatus::Failed),
        attempt: None,
        refund: attempt.permit.filter(|_| !attempt.offered).cloned(),
        preparation: None,
        erases_bodies: matches!(to, MessageState::Sent | MessageState::Captured) && job.sensitive,
        awaits_receipt: (to == MessageState::Sent && attempt.certified)
            .then(|| attempt.ended_at.plus(RECEIPT_WITHIN)),
    }
}

fn error_json(failure: &SendFailure) -> String {
    json!({
        "code": failure.code, "category": failure.category, "provider_category": failure.reference_category(),
        "original_code": failure.original_code, "phase": failure.phase,
        "smtp_code": failure.smtp_code, "enhanced_code": failure.enhanced, "message": failure.message,
    })
    .to_string()
}

/// The word for an outcome in attempts, metrics and log lines.
pub(crate) fn outcome_word(outcome: AttemptOutcome) -> &'static str {
    match outcome {
        AttemptOutcome::Sent | AttemptOutcome::SentEarlier => "sent",
        AttemptOutcome::Captured => "captured",
        AttemptOutcome::Retry => "deferred",
        AttemptOutcome::Failed => "failed",
        AttemptOutcome::Exhausted => "exhausted",
        AttemptOutcome::InDoubt | AttemptOutcome::InDoubtEarlier => "in_doubt",
        AttemptOutcome::Returned => "held",
        AttemptOutcome::Quarantined => "quarantined",
    }
}

#[cfg(test)]
mod tests;
