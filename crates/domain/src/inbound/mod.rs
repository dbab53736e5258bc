//! Inbound mail: its states, and how far a folder was read.
//!
//! `received → routing → routed | no_match | waiting | dead`. A mail is `gone` if it was there when its
//! folder was listed and not when it was fetched. A routed mail with a follow-up is processed again each time
//! a reminder is due.

pub mod domain_report;
pub mod provider_hook;
pub mod rule;
pub mod watched_mailbox;

use std::time::Duration;

use crate::{message::event::EventKind, time::Time};

/// How often a process may die while it processes a mail before the mail is dead. After the first time the
/// mail is processed alone, so that a second death is certainly its own.
pub const LOST_LEASES_MAX: i64 = 2;
/// How long a mail whose process died waits before it is processed again. If something else kills the
/// process, it does so during this wait, and the mail is not blamed.
pub const SUSPECT_WAIT: Duration = Duration::from_secs(5);

/// The state of an inbound mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InboundState {
    /// Stored, and not processed yet.
    Received = 0,
    /// Being processed.
    Routing = 1,
    /// Processed, and at least one rule or report applied.
    Routed = 2,
    /// Processed, and nothing applied.
    NoMatch = 3,
    /// It was removed from its folder before it could be read.
    Gone = 4,
    /// Processing failed; it will be tried again.
    Waiting = 5,
    /// Processing failed permanently or too often.
    Dead = 6,
}

impl InboundState {
    /// Every value.
    pub const ALL: [Self; 7] =
        [Self::Received, Self::Routing, Self::Routed, Self::NoMatch, Self::Gone, Self::Waiting, Self::Dead];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Routing => "routing",
            Self::Routed => "routed",
            Self::NoMatch => "no_match",
            Self::Gone => "gone",
            Self::Waiting => "waiting",
            Self::Dead => "dead",
        }
    }

    /// The state with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// The code that a store keeps.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The value of a code that a store keeps.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// Whether nothing more happens automatically, except reminders.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Routed | Self::NoMatch | Self::Gone | Self::Dead)
    }

    /// Whether an operator may have it processed again.
    pub fn can_be_replayed(self) -> bool {
        self.is_settled() && self != Self::Gone
    }
}

/// How far a folder was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderCursor {
    /// The UIDVALIDITY of the folder.
    pub uid_validity: u32,
    /// The last UID that was read; 0 before the first.
    pub last_uid: u32,
    /// Mail that came into the folder before this time is ignored, also after the server has assigned new
    /// UIDs.
    pub not_before: Option<Time>,
    /// The last UID when this UIDVALIDITY was first seen. Only up to it can mail be older than `not_before`;
    /// mail added later is read, whatever its date.
    pub old_through: u32,
}

/// The rank of an event about the outcome of a recipient: of two events the higher is shown, and of equal
/// ones the later. `None` for events that say nothing about the outcome.
pub fn outcome_rank(kind: EventKind) -> Option<u8> {
    /// From the lowest rank to the highest.
    const RANKED: [EventKind; 10] = [
        EventKind::AutoReplied,
        EventKind::Delayed,
        EventKind::PecAccepted,
        EventKind::PecTakenOver,
        EventKind::PecTimeout,
        EventKind::Delivered,
        EventKind::PecDelivered,
        EventKind::PecFailed,
        EventKind::Bounced,
        EventKind::Complained,
    ];
    (0..).zip(RANKED).find(|(_, ranked)| *ranked == kind).map(|(rank, _)| rank)
}

/// Whether an event replaces the outcome that is shown for a recipient.
pub fn replaces_outcome(shown: Option<EventKind>, kind: EventKind) -> bool {
    let rank = outcome_rank(kind);
    rank.is_some() && rank >= shown.and_then(outcome_rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_is_shown_and_of_equal_ones_the_later() {
        use EventKind::{AutoReplied, Bounced, Complained, Delayed, Delivered, PecDelivered, Sent};
        for (shown, kind, replaces) in [
            (None, AutoReplied, true),
            (Some(AutoReplied), Delayed, true),
            (Some(Delayed), AutoReplied, false),
            (Some(Delivered), PecDelivered, true),
            (Some(Bounced), Bounced, true),
            (Some(Bounced), Delivered, false),
            (Some(Bounced), Complained, true),
            (None, Sent, false),
        ] {
            assert_eq!(replaces_outcome(shown, kind), replaces, "{shown:?} {kind:?}");
        }
    }

    #[test]
    fn every_state_survives_its_code_and_its_word() {
        for state in InboundState::ALL {
            assert_eq!(InboundState::from_code(state.code()), Some(state));
            assert_eq!(InboundState::from_word(state.as_str()), Some(state));
        }
    }
}
