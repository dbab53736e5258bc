//! The names of events in the reference systems, which depend on the events before and after.

use super::{CallbackProgress, EventConsequence};
use crate::message::{
    MessageState,
    event::{EventKind, MessageEvent},
};

/// How far the callback about a message's end has come, from the latest event about it. `is_open` says that a
/// notification is still due; a callback that was given up is not under way.
pub fn callback_progress_000(
    events: &[MessageEvent],
    state: MessageState,
    is_open: bool,
) -> CallbackProgress {
    if !state.status().is_final() {
        return CallbackProgress::NotBegun;
    }
    let says = |event: &MessageEvent| {
        is_callback_event(event.kind).then_some(event.kind).or_else(|| move_before(event))
    };
    match events.iter().rev().find_map(says) {
        Some(EventKind::Notified) => CallbackProgress::Acknowledged,
        Some(EventKind::Notifying) if is_open => CallbackProgress::Calling,
        Some(
            EventKind::Accepted
            | EventKind::Validated
            | EventKind::Invalid
            | EventKind::Ready
            | EventKind::Scheduled
            | EventKind::Sending
            | EventKind::Sent
            | EventKind::Failed
            | EventKind::RecipientFailed
            | EventKind::InDoubt
            | EventKind::Resent
            | EventKind::Resolved
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Suppressed
            | EventKind::Replayed
            | EventKind::Delivered
            | EventKind::Delayed
            | EventKind::Bounced
            | EventKind::Complained
            | EventKind::AutoReplied
            | EventKind::PecAccepted
            | EventKind::PecTakenOver
            | EventKind::PecDelivered
            | EventKind::PecFailed
            | EventKind::PecTimeout
            | EventKind::Notifying
            | EventKind::Received
            | EventKind::UnprovenReport
            | EventKind::Captured
            | EventKind::Validating
            | EventKind::Unsubscribed
            | EventKind::Resubscribed
            | EventKind::SuppressionCreated
            | EventKind::SuppressionDeleted
            | EventKind::Opened
            | EventKind::Clicked
            | EventKind::Replied,
        )
        | None => CallbackProgress::NotBegun,
    }
}

/// Whether an event is about a callback. In reference 000 such an event changes the state of a mail; here it
/// does not.
pub fn is_callback_event(kind: EventKind) -> bool {
    matches!(kind, EventKind::Notifying | EventKind::Notified)
}

/// The kinds of events that change the state of a message, for [`callback_progress_000`] in SQL.
pub fn moves() -> impl Iterator<Item = EventKind> {
    EventKind::ALL.iter().copied().filter(|kind| is_move(*kind))
}

/// What an event adds to `email_statuses` of reference 000, if anything.
pub fn history_000(kind: EventKind, sense: EventConsequence) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "ACCEPTED",
        EventKind::Validating => "INTAKING",
        EventKind::Invalid => "INVALID",
        EventKind::Ready => "READY",
        EventKind::Scheduled | EventKind::Replayed => match sense {
            EventConsequence::Intake => "ACCEPTED",
            EventConsequence::Plain
            | EventConsequence::Sent
            | EventConsequence::Failed
            | EventConsequence::Retry => "READY",
        },
        EventKind::Sending | EventKind::InDoubt => "PROCESSING",
        EventKind::Sent => "SENT",
        EventKind::Captured => "CAPTURED",
        EventKind::Failed | EventKind::Cancelled | EventKind::Expired | EventKind::Suppressed => "FAILED",
        EventKind::Resolved => match sense {
            EventConsequence::Sent => "SENT",
            EventConsequence::Failed => "FAILED",
            EventConsequence::Plain | EventConsequence::Retry | EventConsequence::Intake => "READY",
        },
        EventKind::Notifying => match sense {
            EventConsequence::Sent => "CALLING-SENT-CALLBACK",
            EventConsequence::Failed => "CALLING-FAILED-CALLBACK",
            EventConsequence::Plain | EventConsequence::Retry | EventConsequence::Intake => return None,
        },
        EventKind::Notified => match sense {
            EventConsequence::Sent => "SENT-ACKNOWLEDGED",
            EventConsequence::Failed => "FAILED-ACKNOWLEDGED",
            EventConsequence::Plain | EventConsequence::Retry | EventConsequence::Intake => return None,
        },
        // `ready` already reported the checks, and `sending` the attempt.
        EventKind::Validated
        | EventKind::Resent
        | EventKind::RecipientFailed
        | EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout
        | EventKind::Received
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Opened
        | EventKind::Clicked
        | EventKind::Replied
        | EventKind::UnprovenReport => return None,
    })
}

/// What an event adds to `email_events` of reference 004, if anything.
pub fn event_004(kind: EventKind, sense: EventConsequence) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "RECEIVED",
        EventKind::Validated => "VALIDATED",
        EventKind::Replayed => match sense {
            EventConsequence::Intake => "RECEIVED",
            EventConsequence::Plain
            | EventConsequence::Sent
            | EventConsequence::Failed
            | EventConsequence::Retry => "VALIDATED",
        },
        EventKind::Invalid => "VALIDATION_FAILED",
        EventKind::Sending => "SENT_ATTEMPT",
        EventKind::Sent => "SENT",
        EventKind::Captured => "CAPTURED",
        EventKind::Failed | EventKind::Cancelled | EventKind::Expired | EventKind::Suppressed => "FAILED",
        // The first `ready` adds nothing to `validated`, and a doubt that is not resent adds nothing to
        // `sending`.
        EventKind::Scheduled | EventKind::Ready | EventKind::InDoubt => match sense {
            EventConsequence::Retry => "RETRY_SCHEDULED",
            EventConsequence::Plain
            | EventConsequence::Sent
            | EventConsequence::Failed
            | EventConsequence::Intake => return None,
        },
        EventKind::Resolved => match sense {
            EventConsequence::Sent => "SENT",
            EventConsequence::Failed => "FAILED",
            EventConsequence::Plain | EventConsequence::Retry | EventConsequence::Intake => "VALIDATED",
        },
        // `sending` already reported the attempt.
        EventKind::Validating
        | EventKind::Resent
        | EventKind::RecipientFailed
        | EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::Received
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Opened
        | EventKind::Clicked
        | EventKind::Replied
        | EventKind::UnprovenReport => return None,
    })
}

/// What the event at index `at` of a message's history led to; `state` is the current state. The views
/// compute the same in SQL.
pub fn sense(events: &[MessageEvent], at: usize, state: MessageState) -> EventConsequence {
    let Some(event) = events.get(at) else { return EventConsequence::Plain };
    let begins_attempt = |event: &&MessageEvent| matches!(event.kind, EventKind::Sending | EventKind::Resent);
    match event.kind {
        EventKind::Scheduled if is_after(events, at, EventKind::Validating) => EventConsequence::Intake,
        EventKind::Scheduled if events[..at].iter().any(|event| begins_attempt(&event)) => {
            EventConsequence::Retry
        }
        // A message that is returned only to be ended is not tried again.
        EventKind::Ready if will_retry(event) && events[..at].iter().any(|event| begins_attempt(&event)) => {
            EventConsequence::Retry
        }
        EventKind::InDoubt if will_retry(event) => EventConsequence::Retry,
        EventKind::Replayed
            if events[..at].iter().rev().find_map(move_before) == Some(EventKind::Invalid) =>
        {
            EventConsequence::Intake
        }
        EventKind::Resolved => match (events[at + 1..].iter().find_map(move_after), state) {
            (None, MessageState::Sent) => EventConsequence::Sent,
            (None, MessageState::Failed) | (Some(EventKind::Replayed), _) => EventConsequence::Failed,
            (
                None,
                MessageState::Accepted
                | MessageState::Validating
                | MessageState::Ready
                | MessageState::Scheduled(_)
                | MessageState::Sending { .. }
                | MessageState::Invalid
                | MessageState::InDoubt
                | MessageState::Suppressed
                | MessageState::Cancelled
                | MessageState::Expired
                | MessageState::Captured,
            )
            | (
                Some(
                    EventKind::Accepted
                    | EventKind::Validated
                    | EventKind::Invalid
                    | EventKind::Ready
                    | EventKind::Scheduled
                    | EventKind::Sending
                    | EventKind::Sent
                    | EventKind::Failed
                    | EventKind::RecipientFailed
                    | EventKind::InDoubt
                    | EventKind::Resent
                    | EventKind::Resolved
                    | EventKind::Cancelled
                    | EventKind::Expired
                    | EventKind::Suppressed
                    | EventKind::Delivered
                    | EventKind::Delayed
                    | EventKind::Bounced
                    | EventKind::Complained
                    | EventKind::AutoReplied
                    | EventKind::PecAccepted
                    | EventKind::PecTakenOver
                    | EventKind::PecDelivered
                    | EventKind::PecFailed
                    | EventKind::PecTimeout
                    | EventKind::Notifying
                    | EventKind::Notified
                    | EventKind::Received
                    | EventKind::UnprovenReport
                    | EventKind::Captured
                    | EventKind::Validating
                    | EventKind::Unsubscribed
                    | EventKind::Resubscribed
                    | EventKind::SuppressionCreated
                    | EventKind::SuppressionDeleted
                    | EventKind::Opened
                    | EventKind::Clicked
                    | EventKind::Replied,
                ),
                _,
            ) => EventConsequence::Plain,
        },
        EventKind::Notifying | EventKind::Notified => {
            match (events[..at].iter().rev().find_map(move_before), state) {
                (Some(EventKind::Sent), _) | (Some(EventKind::Resolved), MessageState::Sent) => {
                    EventConsequence::Sent
                }
                (
                    Some(
                        EventKind::Failed
                        | EventKind::Resolved
                        | EventKind::Cancelled
                        | EventKind::Expired
                        | EventKind::Suppressed
                        | EventKind::Captured,
                    ),
                    _,
                ) => EventConsequence::Failed,
                (
                    Some(
                        EventKind::Accepted
                        | EventKind::Validated
                        | EventKind::Invalid
                        | EventKind::Ready
                        | EventKind::Scheduled
                        | EventKind::Sending
                        | EventKind::RecipientFailed
                        | EventKind::InDoubt
                        | EventKind::Resent
                        | EventKind::Replayed
                        | EventKind::Delivered
                        | EventKind::Delayed
                        | EventKind::Bounced
                        | EventKind::Complained
                        | EventKind::AutoReplied
                        | EventKind::PecAccepted
                        | EventKind::PecTakenOver
                        | EventKind::PecDelivered
                        | EventKind::PecFailed
                        | EventKind::PecTimeout
                        | EventKind::Notifying
                        | EventKind::Notified
                        | EventKind::Received
                        | EventKind::UnprovenReport
                        | EventKind::Validating
                        | EventKind::Unsubscribed
                        | EventKind::Resubscribed
                        | EventKind::SuppressionCreated
                        | EventKind::SuppressionDeleted
                        | EventKind::Opened
                        | EventKind::Clicked
                        | EventKind::Replied,
                    )
                    | None,
                    _,
                ) => EventConsequence::Plain,
            }
        }
        EventKind::Accepted
        | EventKind::Validated
        | EventKind::Invalid
        | EventKind::Ready
        | EventKind::Scheduled
        | EventKind::Sending
        | EventKind::Sent
        | EventKind::Failed
        | EventKind::RecipientFailed
        | EventKind::InDoubt
        | EventKind::Resent
        | EventKind::Cancelled
        | EventKind::Expired
        | EventKind::Suppressed
        | EventKind::Replayed
        | EventKind::Delivered
        | EventKind::Delayed
        | EventKind::Bounced
        | EventKind::Complained
        | EventKind::AutoReplied
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout
        | EventKind::Received
        | EventKind::UnprovenReport
        | EventKind::Captured
        | EventKind::Validating
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Opened
        | EventKind::Clicked
        | EventKind::Replied => EventConsequence::Plain,
    }
}

/// Whether the event at index `at` comes right after one of `kind`.
fn is_after(events: &[MessageEvent], at: usize, kind: EventKind) -> bool {
    at.checked_sub(1).is_some_and(|before| events[before].kind == kind)
}

/// Whether the data of an event says that the message will be tried again.
fn will_retry(event: &MessageEvent) -> bool {
    #[derive(serde::Deserialize)]
    struct RetryData {
        #[serde(default)]
        will_retry: bool,
    }
    let data = event.data.as_deref().and_then(|data| serde_json::from_str::<RetryData>(data).ok());
    data.is_some_and(|data| data.will_retry)
}

/// The kind of an event that follows a resolution, if it changes the state.
fn move_after(event: &MessageEvent) -> Option<EventKind> {
    let moves = matches!(
        event.kind,
        EventKind::Sending
            | EventKind::Resent
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Suppressed
            | EventKind::Replayed
    );
    moves.then_some(event.kind)
}

/// The kind of an event, if it changes the state.
fn move_before(event: &MessageEvent) -> Option<EventKind> {
    is_move(event.kind).then_some(event.kind)
}

fn is_move(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Invalid
            | EventKind::Sending
            | EventKind::Sent
            | EventKind::Failed
            | EventKind::Resent
            | EventKind::Resolved
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Suppressed
            | EventKind::Captured
    )
}
