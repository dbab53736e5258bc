//! Our states in Resend's terms.

use postway_domain::{EventKind, MessageState, message::ScheduleReason};

/// The last event of an email: its outcome if one was reported, otherwise its state.
pub(super) fn last_event(state: MessageState, outcome: Option<EventKind>) -> &'static str {
    outcome.and_then(after_sent).unwrap_or_else(|| state_word(state))
}

fn state_word(state: MessageState) -> &'static str {
    match state {
        MessageState::Accepted
        | MessageState::Validating
        | MessageState::Ready
        | MessageState::Scheduled(ScheduleReason::Fetch)
        | MessageState::Sending { .. }
        | MessageState::InDoubt => "queued",
        MessageState::Scheduled(ScheduleReason::SendAt) => "scheduled",
        MessageState::Scheduled(ScheduleReason::Retry) => "delivery_delayed",
        MessageState::Sent => "sent",
        // This API has no term for an email that never left.
        MessageState::Failed | MessageState::Invalid | MessageState::Expired | MessageState::Captured => {
            "failed"
        }
        MessageState::Suppressed => "suppressed",
        MessageState::Cancelled => "canceled",
    }
}

/// The term for an outcome; `None` for one that only says that it is on its way.
fn after_sent(outcome: EventKind) -> Option<&'static str> {
    match outcome {
        EventKind::Delivered | EventKind::AutoReplied | EventKind::PecDelivered => Some("delivered"),
        EventKind::Delayed => Some("delivery_delayed"),
        EventKind::Bounced | EventKind::PecFailed => Some("bounced"),
        EventKind::Complained => Some("complained"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word_that_the_sdk_knows() {
        let known = [
            "bounced",
            "canceled",
            "complained",
            "delivered",
            "delivery_delayed",
            "failed",
            "queued",
            "scheduled",
            "sent",
            "suppressed",
        ];
        for &state in MessageState::ALL {
            assert!(known.contains(&last_event(state, None)), "{state:?}");
            for &outcome in EventKind::ALL {
                assert!(known.contains(&last_event(state, Some(outcome))), "{state:?} {outcome:?}");
            }
        }
        assert_eq!(last_event(MessageState::Sent, Some(EventKind::Bounced)), "bounced");
        assert_eq!(last_event(MessageState::Sent, Some(EventKind::PecAccepted)), "sent");
        assert_eq!(last_event(MessageState::Scheduled(ScheduleReason::SendAt), None), "scheduled");
        assert_eq!(last_event(MessageState::Cancelled, None), "canceled");
    }
}
