//! A message: its states, what moves it between them, and the parts it is made of.

pub mod dsn;
pub mod event;
pub mod lane;
pub mod reason;
mod recipient;
mod rest;
pub mod retry;
mod state;
mod transition;
pub mod verp;

pub use reason::reason;
pub use recipient::{RecipientKind, RecipientStatus};
pub use rest::Rest;
pub use state::{Priority, State, Status, Wait};
pub use transition::{Effects, Input, InvalidTransition, LeaseEffect, Outcome, Resolution, transition};

use serde::{Deserialize, Serialize};

/// What to do with a message whose dot went out without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDoubt {
    /// Send it once more under the same Message-ID: perhaps twice, never not at all.
    #[default]
    Resend,
    /// Wait for an operator's word.
    Hold,
}

impl OnDoubt {
    /// A message is sent again this often by itself; at the doubt after that it is held, whatever its policy.
    pub const RESENDS_MAX: i64 = 3;

    /// What users are told where they give another word.
    pub const WORDS: &'static str = "must be resend or hold";

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            OnDoubt::Resend => "resend",
            OnDoubt::Hold => "hold",
        }
    }

    /// Whether a message that has now been in doubt `doubts` times is sent again by itself.
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
