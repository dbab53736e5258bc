//! The recipients of a message, each with its own outcome.

use serde::{Deserialize, Serialize};

/// The header field that names a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientKind {
    /// In `To`.
    To = 0,
    /// In `Cc`.
    Cc = 1,
    /// In the envelope only.
    Bcc = 2,
}

/// The outcome of one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientStatus {
    /// Open: still to be sent to.
    Pending = 0,
    /// The relay accepted it.
    Sent = 1,
    /// Refused permanently.
    Failed = 2,
    /// May have been sent to.
    InDoubt = 3,
    /// On the suppression list.
    Suppressed = 4,
    /// The message was cancelled.
    Cancelled = 5,
    /// The message expired.
    Expired = 6,
    /// The sandbox captured the mail; nothing was sent.
    Captured = 7,
}

macro_rules! coded {
    ($name:ident: $($variant:ident = $word:literal),*) => {
        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The word users see.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// The code a store keeps.
            pub fn code(self) -> i64 {
                self as i64
            }

            /// From the code a store keeps.
            pub fn from_code(code: i64) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.code() == code)
            }
        }
    };
}
pub(super) use coded;

coded!(RecipientKind: To = "to", Cc = "cc", Bcc = "bcc");
coded!(RecipientStatus: Pending = "pending", Sent = "sent", Failed = "failed", InDoubt = "in_doubt",
    Suppressed = "suppressed", Cancelled = "cancelled", Expired = "expired", Captured = "captured");
