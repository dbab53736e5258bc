//! Our states in Postmark's terms.

use postway_domain::{EventKind, MessageState};

/// The status of a message.
pub(super) fn status(state: MessageState) -> &'static str {
    match state {
        MessageState::Accepted
        | MessageState::Validating
        | MessageState::Ready
        | MessageState::Scheduled(_)
        | MessageState::Sending { .. }
        | MessageState::InDoubt => "Queued",
        MessageState::Sent => "Sent",
        // It was processed, and not delivered.
        MessageState::Failed
        | MessageState::Invalid
        | MessageState::Suppressed
        | MessageState::Cancelled
        | MessageState::Expired
        | MessageState::Captured => "Processed",
    }
}

/// The outcome of a recipient as an event's type; `None` if there is no such type.
pub(super) fn event(outcome: EventKind) -> Option<&'static str> {
    match outcome {
        EventKind::Delivered | EventKind::PecDelivered => Some("Delivered"),
        EventKind::Delayed => Some("Transient"),
        EventKind::Bounced | EventKind::PecFailed => Some("Bounced"),
        EventKind::Complained => Some("SpamComplaint"),
        _ => None,
    }
}

/// Why a mail did not reach a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostmarkBounceKind {
    /// The address does not work.
    HardBounce,
    /// The address did not work this time.
    SoftBounce,
    /// A relay refused the mail.
    Blocked,
    /// The reader complained.
    SpamComplaint,
}

impl PostmarkBounceKind {
    /// Each with its name, number, title and description.
    const ALL: [(Self, &str, u32, &str, &str); 4] = [
        (Self::HardBounce, "HardBounce", 1, "Hard bounce", "The address does not exist, or takes no mail."),
        (Self::SoftBounce, "SoftBounce", 4_096, "Soft bounce", "The mail came back; the next may arrive."),
        (Self::Blocked, "Blocked", 100_006, "Blocked", "The relay refused the mail for this address."),
        (
            Self::SpamComplaint,
            "SpamComplaint",
            100_001,
            "Spam complaint",
            "The reader marked the mail as spam.",
        ),
    ];

    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name, ..)| name.eq_ignore_ascii_case(word)).map(|(kind, ..)| kind)
    }

    fn row(self) -> (Self, &'static str, u32, &'static str, &'static str) {
        Self::ALL.into_iter().find(|(kind, ..)| *kind == self).unwrap_or(Self::ALL[0])
    }

    pub(super) fn as_str(self) -> &'static str {
        self.row().1
    }

    pub(super) fn code(self) -> u32 {
        self.row().2
    }

    pub(super) fn name(self) -> &'static str {
        self.row().3
    }

    pub(super) fn description(self) -> &'static str {
        self.row().4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word() {
        for &state in MessageState::ALL {
            let word = status(state);
            assert_eq!(word == "Queued", !state.status().is_final(), "{state:?}");
            assert_eq!(word == "Sent", state == MessageState::Sent);
        }
    }
}
