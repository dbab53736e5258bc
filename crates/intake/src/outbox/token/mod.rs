//! Tokens, and the mails that carry them.
//!
//! The secret and the code of a token are derived from its nonce with a key that only the gateway has. So the
//! application's database never contains a secret: before the mail it has only the nonce, afterwards only
//! digests. And a mail that is retried after a crash is the same mail.
//!
//! The token in a link is `base64url(secret ‖ HMAC-SHA256(key, path ‖ secret ‖ code))`: with the key, and the
//! code that the reader types, it can be checked without the database.
//!
//! The gateway's secret key may be replaced while mails are on their way. So there are keys for each of its
//! generations: the newest makes new tokens, and tokens of all generations are valid.

mod keys;
mod link;
mod mail;
mod mint;

pub(super) use keys::TokenKeys;
pub(super) use link::SignedLink;
pub use link::TokenLinkKey;
pub(super) use mail::{SealedMail, TokenMailer};
pub(super) use mint::sha256;
use mint::{TokenMint, hex};

/// The purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenAction {
    Activation,
    PasswordRecovery,
}

impl TokenAction {
    /// The name of the action, which is also that of its template.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Activation => "activation",
            Self::PasswordRecovery => "password_recovery",
        }
    }

    /// Reads an action from its column.
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Activation, Self::PasswordRecovery].into_iter().find(|action| action.as_str() == text)
    }
}
