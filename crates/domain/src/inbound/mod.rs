//! The life of a mail that came in.
//!
//! `received → routing → routed | no_match | waiting | dead`; `gone` is a mail that was there when its folder was listed and not when
//! it was fetched. A routed mail with a follow-up is taken again each time a reminder is due, and is routed again.

pub mod rule;
pub mod watched_mailbox;

use std::time::Duration;

use crate::{message::event::EventKind, time::Time};

/// How often a process may die with a mail in hand before the mail is set aside. After the first time it is dealt with alone, so that
/// the second time tells.
pub const LOST_LEASES_MAX: i64 = 2;
/// How long a mail whose process died waits before it is dealt with again. Where something else keeps killing the process, it does so
/// before this mail is looked at, and the mail is not blamed.
pub const SUSPECT_WAIT: Duration = Duration::from_secs(5);

/// Where a mail that came in stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InboundState {
    /// Kept; nobody has looked at it yet.
    Received = 0,
    /// A worker has it.
    Routing = 1,
    /// Something was done with it.
    Routed = 2,
    /// Nothing was to be done with it.
    NoMatch = 3,
    /// It was removed from its folder before it could be read.
    Gone = 4,
    /// It could not be dealt with; there will be another try.
    Waiting = 5,
    /// No try helped, or none can.
    Dead = 6,
}

impl InboundState {
    /// All of them.
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

    /// From the word users see.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// As a store keeps it.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// From a store.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// Whether nothing more happens by itself, but for reminders.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Routed | Self::NoMatch | Self::Gone | Self::Dead)
    }

    /// Whether an operator may have it looked at again.
    pub fn can_be_replayed(self) -> bool {
        self.is_settled() && self != Self::Gone
    }
}

/// A folder as far as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// What the server says its UIDs are good for.
    pub uid_validity: u32,
    /// The last UID that was dealt with; 0 before the first.
    pub last_uid: u32,
    /// Mail that came into the folder before this is not ours, also where its UIDs are given anew.
    pub not_before: Option<Time>,
    /// The last UID that there was when these UIDs were first seen: only up to it can mail be from before. What is put into the
    /// folder later is ours, whatever its date.
    pub old_through: u32,
}

/// How much an event says about what became of a recipient: of two, the higher is shown, and of equal ones the later. None for
/// events that say nothing about that.
pub fn outcome_rank(kind: EventKind) -> Option<u8> {
    /// From the least to the most.
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

/// Whether an event replaces what is shown of a recipient.
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
