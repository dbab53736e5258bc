//! Our states in Postmark's words.

use postway_domain::{EventKind, State};

/// Where a message stands.
pub(super) fn status(state: State) -> &'static str {
    match state {
        State::Accepted
        | State::Validating
        | State::Ready
        | State::Scheduled(_)
        | State::Sending { .. }
        | State::InDoubt => "Queued",
        State::Sent => "Sent",
        // It was dealt with, and did not go out.
        State::Failed
        | State::Invalid
        | State::Suppressed
        | State::Cancelled
        | State::Expired
        | State::Captured => "Processed",
    }
}

/// What became of a recipient after the mail was sent, as an event's type; none where it has no word there.
pub(super) fn event(outcome: EventKind) -> Option<&'static str> {
    match outcome {
        EventKind::Delivered | EventKind::PecDelivered => Some("Delivered"),
        EventKind::Delayed => Some("Transient"),
        EventKind::Bounced | EventKind::PecFailed => Some("Bounced"),
        EventKind::Complained => Some("SpamComplaint"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word() {
        for &state in State::ALL {
            let word = status(state);
            assert_eq!(word == "Queued", !state.status().is_final(), "{state:?}");
            assert_eq!(word == "Sent", state == State::Sent);
        }
    }
}
