//! Recipients have their own outcome.

use serde::{Deserialize, Serialize};

/// Where a recipient stands in the mail.
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

/// What became of one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientStatus {
    /// Still to be sent.
    Pending = 0,
    /// The relay took it.
    Sent = 1,
    /// Refused for good.
    Failed = 2,
    /// Perhaps sent.
    InDoubt = 3,
    /// On the suppression list.
    Suppressed = 4,
    /// Withdrawn.
    Cancelled = 5,
    /// Too late.
    Expired = 6,
    /// The sandbox took it: it never left.
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
