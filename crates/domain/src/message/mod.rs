//! A message: its states, the table that moves it between them, and its parts.
//!
//! Start with [`transition`]: the other files describe what it speaks about.

mod destination_group;
pub mod dsn;
pub mod event;
pub mod lane;
mod other_recipients;
pub mod reason;
mod recipient;
pub mod retry;
mod state;
mod transition;
pub mod verp;

pub use destination_group::{DestinationGroup, DestinationGroupError};
pub use other_recipients::OtherRecipients;
pub use reason::reason;
pub use recipient::{RecipientKind, RecipientStatus};
pub use state::{MessagePriority, MessageState, MessageStatus, ScheduleReason};
pub use transition::{
    AttemptOutcome, DoubtResolution, InvalidTransition, LeaseEffect, TransitionEffects, TransitionInput,
    transition,
};

use serde::{Deserialize, Serialize};

/// What to do with a message in doubt: its dot was written and no answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDoubt {
    /// Resend it under the same Message-ID: it may arrive twice, but not never.
    #[default]
    Resend,
    /// Put it on hold until an operator decides.
    Hold,
}

impl OnDoubt {
    /// The most automatic resends; at the doubt after that the message is on hold, whatever its policy.
    pub const RESENDS_MAX: i64 = 3;

    /// The error text for any other word.
    pub const WORDS: &'static str = "must be resend or hold";

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            OnDoubt::Resend => "resend",
            OnDoubt::Hold => "hold",
        }
    }

    /// Whether a message that has now been in doubt `doubts` times is resent automatically.
    pub fn resends(self, doubts: i64, expired: bool) -> bool {
        match self {
            OnDoubt::Resend => doubts <= Self::RESENDS_MAX && !expired,
            OnDoubt::Hold => false,
        }
    }
}

impl std::str::FromStr for OnDoubt {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "resend" => Ok(OnDoubt::Resend),
            "hold" => Ok(OnDoubt::Hold),
            _ => Err(Self::WORDS),
        }
    }
}
