//! Decides about messages whose worker is gone and messages that have expired: pure functions with the same
//! rules as the outcomes of attempts. Open recipients are sent to, those that may have been sent to are in
//! doubt, and `sent` stays `sent`.

use std::time::Duration;

use postway_domain::{
    MessageState, MessageStatus, RecipientStatus, Time,
    message::{AttemptOutcome, OtherRecipients, TransitionInput},
    retry::RetryPolicy,
};
use postway_store::record::{MessageChange, StalledMessage, WriteFence};
use serde_json::{Value, json};

/// The number of leases lost in a row after which a message is quarantined: it may be what kills its workers.
const LOST_LEASES_MAX: i64 = 5;

/// The change of a message whose worker is gone. Before the wire commit it returns to the queue; after it,
/// the recipients that the relay had accepted are in doubt, and the message is retried for those still open.
pub(super) fn lost_lease_change(
    one: &StalledMessage,
    policy: Option<&RetryPolicy>,
    now: Time,
) -> Option<MessageChange> {
    let on_the_wire = one.state == MessageState::Sending { wire_committed: true };
    let lost_leases = one.lost_leases + 1;
    let suspect =
        lost_leases >= LOST_LEASES_MAX && !on_the_wire && one.state.status() == MessageStatus::Sending;
    let fallback = RetryPolicy::smtp();
    let policy = policy.unwrap_or(&fallback);
    // If recipients were marked one by one at the wire commit, the marks say which were accepted. The others
    // can be retried at once.
    let retry_after = match on_the_wire && one.has_doubtful && one.has_open {
        true => policy.delay(u32::try_from(one.retries).unwrap_or(u32::MAX), &mut rand::rng()),
        false => None,
    };
    let change = match retry_after {
        _ if suspect => quarantine(one, lost_leases, now)?,
        Some(delay) => MessageChange {
            retries: Some(one.retries + 1),
            due_at: Some(now.plus(delay)),
            error: Some(lost_at_the_dot()),
            ..step_change(one, TransitionInput::Settle(AttemptOutcome::Retry), now)?
        },
        None => abandon_attempt(one, policy, now)?,
    };
    let reason = if suspect { "quarantined" } else { "lease lost" };
    let data = lost_attempt_data(one, &change, reason, now);
    Some(MessageChange { lost_leases: Some(lost_leases), ..change.telling(&data) })
}

/// The event data of a lost attempt: the fields of an attempt's own outcome, as far as they are known, and
/// the node that had it.
fn lost_attempt_data(one: &StalledMessage, change: &MessageChange, reason: &str, now: Time) -> Value {
    let error = change.error.as_deref().and_then(|error| serde_json::from_str::<Value>(error).ok());
    let error = error.unwrap_or_default();
    let mut data = json!({
        "attempt": one.attempt,
        "duration_ms": null,
        "code": error["code"],
        "category": error["category"],
        "original_code": null,
        "will_retry": change.due_at.is_some(),
        "next_attempt": change.due_at.map(|_| one.attempt + 1),
        "backoff_ms": change.due_at.map(|due| due.since(now).as_millis() as u64),
        "reason": reason,
        "account": one.key.account,
        "node": one.holder.map(|node| node.to_string()),
    });
    if let Some(due_at) = change.due_at {
        data["due_at"] = json!(due_at);
    }
    data
}

/// The lease is lost, and with it the attempt.
fn abandon_attempt(one: &StalledMessage, policy: &RetryPolicy, now: Time) -> Option<MessageChange> {
    let change = step_change(one, TransitionInput::LoseLease, now)?;
    match change.to {
        MessageState::Ready => Some(MessageChange { due_at: Some(now), ..change }),
        MessageState::InDoubt => {
            let doubts = one.doubts + 1;
            let nth = u32::try_from(doubts - 1).unwrap_or(0);
            let delay = policy.delay(nth, &mut rand::rng());
            let resend_at = now.plus(delay.unwrap_or(Duration::from_secs(60)));
            let too_late = one.expires_at.is_some_and(|at| at <= resend_at);
            // If no recipient was marked, the relay had accepted them all; otherwise the open ones have no
            // retry left.
            let open = if one.has_doubtful { RecipientStatus::Failed } else { RecipientStatus::InDoubt };
            Some(MessageChange {
                due_at: one.on_doubt.resends(doubts, too_late).then_some(resend_at),
                doubts: Some(doubts),
                error: Some(lost_at_the_dot()),
                ends_open_recipients: Some(open),
                ..change
            })
        }
        _ => Some(change),
    }
}

/// Quarantines the message; recipients that earlier attempts sent to, or may have sent to, keep their state.
fn quarantine(one: &StalledMessage, lost_leases: i64, now: Time) -> Option<MessageChange> {
    let outcome = match one.rest() {
        OtherRecipients::InDoubt => AttemptOutcome::InDoubtEarlier,
        OtherRecipients::Sent => AttemptOutcome::SentEarlier,
        OtherRecipients::Nothing | OtherRecipients::Open => AttemptOutcome::Quarantined,
    };
    let change = step_change(one, TransitionInput::Settle(outcome), now)?;
    let message = format!("quarantined: its workers died {lost_leases} times in a row");
    let error = json!({"code": "quarantined", "category": "poison", "message": message}).to_string();
    Some(MessageChange {
        error: (change.to != MessageState::Sent).then_some(error),
        ends_open_recipients: Some(RecipientStatus::Failed),
        ..change
    })
}

fn lost_at_the_dot() -> String {
    json!({"code": "in_doubt", "category": "unknown", "phase": "dot",
           "message": "the worker was lost after it may have written the final dot"})
    .to_string()
}

/// The change of a message that has expired, for the recipients it was not sent to.
pub(super) fn expiry_change(one: &StalledMessage, now: Time) -> Option<MessageChange> {
    let change = step_change(one, TransitionInput::Expire(one.rest()), now)?;
    if change.to != MessageState::Expired {
        return Some(change.telling(&json!({"attempt": one.attempt, "reason": "expired"})));
    }
    let error =
        json!({"code": "expired", "category": "unknown", "message": "expires_at passed before it was sent"});
    Some(MessageChange { error: Some(error.to_string()), ..change })
}

fn step_change(one: &StalledMessage, input: TransitionInput, now: Time) -> Option<MessageChange> {
    let fence = WriteFence { status: one.state.status(), token: None, version: Some(one.version) };
    match MessageChange::step(one.uid, fence, one.state, input, now) {
        Ok(change) => {
            Some(MessageChange { erases_bodies: change.to == MessageState::Sent && one.sensitive, ..change })
        }
        Err(error) => {
            tracing::error!(uid = %one.uid, %error, "housekeeping met a state it does not know");
            None
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::sample;
