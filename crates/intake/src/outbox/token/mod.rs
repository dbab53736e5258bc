//! Tokens: what their mails hold, and how it is made.
//!
//! A secret and a code are made of the token's nonce under a key that only the gateway has. So nothing secret is ever in
//! the application's database: before the mail there is only the nonce, after it only digests. And a mail that is
//! tried again after a crash is the same mail.
//!
//! The link's token is `base64url(secret ‖ HMAC-SHA256(key, path ‖ secret ‖ code))`: whoever has the key, and the code that
//! its reader types, can check it without asking anybody.
//!
//! The gateway's secret key may be replaced while mails are out. So there are keys for each of its generations: the newest
//! makes what is new, and what any of them has made holds.

mod keys;
mod link;
mod mail;
mod mint;

pub(super) use keys::TokenKeys;
pub(super) use link::Link;
pub use link::LinkKey;
pub(super) use mail::{Mailer, Sealed};
pub(super) use mint::sha256;
use mint::{Mint, hex};

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Activation,
    PasswordRecovery,
}

impl Action {
    /// The template of its mail, which is also the word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Activation => "activation",
            Self::PasswordRecovery => "password_recovery",
        }
    }

    /// From a column.
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Activation, Self::PasswordRecovery].into_iter().find(|action| action.as_str() == text)
    }
}
