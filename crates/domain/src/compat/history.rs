//! The names of events in the reference systems, which depend on the events before and after.

use super::{Sense, Told};
use crate::message::{
    State,
    event::{Event, EventKind},
};

/// How far the callback about a message's end has come, from the latest event about it. `is_open` says that a
/// notification is still due; a callback that was given up is not under way.
pub fn told_000(events: &[Event], state: State, is_open: bool) -> Told {
    if !state.status().is_final() {
        return Told::No;
    }
    let says = |event: &Event| is_told_of(event.kind).then_some(event.kind).or_else(|| move_before(event));
    match events.iter().rev().find_map(says) {
        Some(EventKind::Notified) => Told::Acknowledged,
        Some(EventKind::Notifying) if is_open => Told::Calling,
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
            | EventKind::Replied,
        )
        | None => Told::No,
    }
}

/// Whether an event is about a callback. In reference 000 such an event changes the state of a mail; here it
/// does not.
pub fn is_told_of(kind: EventKind) -> bool {
    matches!(kind, EventKind::Notifying | EventKind::Notified)
}

/// The kinds of events that change the state of a message, for [`told_000`] in SQL.
pub fn moves() -> impl Iterator<Item = EventKind> {
    EventKind::ALL.iter().copied().filter(|kind| is_move(*kind))
}

/// What an event adds to `email_statuses` of reference 000, if anything.
pub fn history_000(kind: EventKind, sense: Sense) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "ACCEPTED",
        EventKind::Validating => "INTAKING",
        EventKind::Invalid => "INVALID",
        EventKind::Ready => "READY",
        EventKind::Scheduled | EventKind::Replayed => match sense {
            Sense::Intake => "ACCEPTED",
            Sense::Plain | Sense::Sent | Sense::Failed | Sense::Retry => "READY",
        },
        EventKind::Sending | EventKind::InDoubt => "PROCESSING",
        EventKind::Sent => "SENT",
        EventKind::Captured => "CAPTURED",
        EventKind::Failed | EventKind::Cancelled | EventKind::Expired | EventKind::Suppressed => "FAILED",
        EventKind::Resolved => match sense {
            Sense::Sent => "SENT",
            Sense::Failed => "FAILED",
            Sense::Plain | Sense::Retry | Sense::Intake => "READY",
        },
        EventKind::Notifying => match sense {
            Sense::Sent => "CALLING-SENT-CALLBACK",
            Sense::Failed => "CALLING-FAILED-CALLBACK",
            Sense::Plain | Sense::Retry | Sense::Intake => return None,
        },
        EventKind::Notified => match sense {
            Sense::Sent => "SENT-ACKNOWLEDGED",
            Sense::Failed => "FAILED-ACKNOWLEDGED",
            Sense::Plain | Sense::Retry | Sense::Intake => return None,
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
        | EventKind::Replied
        | EventKind::UnprovenReport => return None,
    })
}

/// What an event adds to `email_events` of reference 004, if anything.
pub fn event_004(kind: EventKind, sense: Sense) -> Option<&'static str> {
    Some(match kind {
        EventKind::Accepted => "RECEIVED",
        EventKind::Validated => "VALIDATED",
        EventKind::Replayed => match sense {
            Sense::Intake => "RECEIVED",
            Sense::Plain | Sense::Sent | Sense::Failed | Sense::Retry => "VALIDATED",
        },
        EventKind::Invalid => "VALIDATION_FAILED",
        EventKind::Sending => "SENT_ATTEMPT",
        EventKind::Sent => "SENT",
        EventKind::Captured => "CAPTURED",
        EventKind::Failed | EventKind::Cancelled | EventKind::Expired | EventKind::Suppressed => "FAILED",
        // The first `ready` adds nothing to `validated`, and a doubt that is not resent adds nothing to
        // `sending`.
        EventKind::Scheduled | EventKind::Ready | EventKind::InDoubt => match sense {
            Sense::Retry => "RETRY_SCHEDULED",
            Sense::Plain | Sense::Sent | Sense::Failed | Sense::Intake => return None,
        },
        EventKind::Resolved => match sense {
            Sense::Sent => "SENT",
            Sense::Failed => "FAILED",
            Sense::Plain | Sense::Retry | Sense::Intake => "VALIDATED",
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
        | EventKind::Replied
        | EventKind::UnprovenReport => return None,
    })
}

/// What the event at index `at` of a message's history led to; `state` is the current state. The views
/// compute the same in SQL.
pub fn sense(events: &[Event], at: usize, state: State) -> Sense {
    let Some(event) = events.get(at) else { return Sense::Plain };
    let begins_attempt = |event: &&Event| matches!(event.kind, EventKind::Sending | EventKind::Resent);
    match event.kind {
        EventKind::Scheduled if is_after(events, at, EventKind::Validating) => Sense::Intake,
        EventKind::Scheduled if events[..at].iter().any(|event| begins_attempt(&event)) => Sense::Retry,
        // A message that is returned only to be ended is not tried again.
        EventKind::Ready if will_retry(event) && events[..at].iter().any(|event| begins_attempt(&event)) => {
            Sense::Retry
        }
        EventKind::InDoubt if will_retry(event) => Sense::Retry,
        EventKind::Replayed
            if events[..at].iter().rev().find_map(move_before) == Some(EventKind::Invalid) =>
        {
            Sense::Intake
        }
        EventKind::Resolved => match (events[at + 1..].iter().find_map(move_after), state) {
            (None, State::Sent) => Sense::Sent,
            (None, State::Failed) | (Some(EventKind::Replayed), _) => Sense::Failed,
            (
                None,
                State::Accepted
                | State::Validating
                | State::Ready
                | State::Scheduled(_)
                | State::Sending { .. }
                | State::Invalid
                | State::InDoubt
                | State::Suppressed
                | State::Cancelled
                | State::Expired
                | State::Captured,
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
                    | EventKind::Replied,
                ),
                _,
            ) => Sense::Plain,
        },
        EventKind::Notifying | EventKind::Notified => {
            match (events[..at].iter().rev().find_map(move_before), state) {
                (Some(EventKind::Sent), _) | (Some(EventKind::Resolved), State::Sent) => Sense::Sent,
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
                ) => Sense::Failed,
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
                        | EventKind::Replied,
                    )
                    | None,
                    _,
                ) => Sense::Plain,
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
        | EventKind::Replied => Sense::Plain,
    }
}

/// Whether the event at index `at` comes right after one of `kind`.
fn is_after(events: &[Event], at: usize, kind: EventKind) -> bool {
    at.checked_sub(1).is_some_and(|before| events[before].kind == kind)
}

/// Whether the data of an event says that the message will be tried again.
fn will_retry(event: &Event) -> bool {
    #[derive(serde::Deserialize)]
    struct RetryData {
        #[serde(default)]
        will_retry: bool,
    }
    let data = event.data.as_deref().and_then(|data| serde_json::from_str::<RetryData>(data).ok());
    data.is_some_and(|data| data.will_retry)
}

/// The kind of an event that follows a resolution, if it changes the state.
fn move_after(event: &Event) -> Option<EventKind> {
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
fn move_before(event: &Event) -> Option<EventKind> {
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
