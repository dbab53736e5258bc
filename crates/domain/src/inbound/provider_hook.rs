//! Hooks: the addresses to which providers report what happened to mail, and the states of such reports.
//!
//! An account has at most one hook. Its token, which is part of the URL, finds the hook and is a secret of
//! its own; only its digest is stored. A call must also be signed, in the provider's own way.
//!
//! `waiting → leased → applied | ignored | unmatched | dead`. An event may come before the answer to the call
//! that sent its message, so one whose message is unknown waits again for a while.

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::{
    account::AccountKind,
    identity::{
        id::{AccountId, TenantId},
        key::KeyDigest,
        secret::SealedSecret,
    },
    time::Time,
};

/// A provider whose events are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookProvider {
    /// Amazon SES, through SNS.
    Ses,
    /// SendGrid's signed event webhook.
    Sendgrid,
    /// Mailgun.
    Mailgun,
    /// Postmark.
    Postmark,
    /// Resend, signed as Standard Webhooks say.
    Resend,
    /// Any service that posts the documented form, signed as Standard Webhooks say.
    Http,
}

impl HookProvider {
    /// Every value.
    pub const ALL: [Self; 6] =
        [Self::Ses, Self::Sendgrid, Self::Mailgun, Self::Postmark, Self::Resend, Self::Http];

    /// The word users see, which is also part of the URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ses => "ses",
            Self::Sendgrid => "sendgrid",
            Self::Mailgun => "mailgun",
            Self::Postmark => "postmark",
            Self::Resend => "resend",
            Self::Http => "http",
        }
    }

    /// The provider with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == word)
    }

    /// The provider of an account of this kind; `None` if the kind does not tell, or reports no events.
    pub fn of_account(kind: AccountKind) -> Option<Self> {
        match kind {
            AccountKind::Ses => Some(Self::Ses),
            AccountKind::Sendgrid => Some(Self::Sendgrid),
            AccountKind::Mailgun => Some(Self::Mailgun),
            AccountKind::Postmark => Some(Self::Postmark),
            AccountKind::Resend => Some(Self::Resend),
            AccountKind::Http => Some(Self::Http),
            AccountKind::Smtp
            | AccountKind::Lmtp
            | AccountKind::Graph
            | AccountKind::Gmail
            | AccountKind::Sandbox => None,
        }
    }

    /// What proves its calls.
    pub fn proof(self) -> HookProof {
        match self {
            Self::Ses => HookProof::Certificate,
            Self::Sendgrid => HookProof::PublicKey,
            Self::Mailgun => HookProof::SigningKey,
            Self::Postmark => HookProof::Password,
            Self::Resend | Self::Http => HookProof::SigningSecret,
        }
    }
}

/// What proves that a call comes from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookProof {
    /// A signature by a certificate of the provider, and a list of topics.
    Certificate,
    /// A signature that the provider's public key verifies.
    PublicKey,
    /// A key that the provider gives.
    SigningKey,
    /// A user name and a password that the provider sends.
    Password,
    /// A secret of the form `whsec_…`.
    SigningSecret,
}

/// The settings of a hook that are no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookSettings {
    /// SES: the ARNs of the topics that may report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// SES: where an emulator of SNS serves its certificates and confirmations, as `http://host:port`. Calls
    /// of Amazon are accepted only without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sns_endpoint: Option<String>,
    /// SendGrid: the verification key, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Postmark: the user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
}

impl HookSettings {
    /// The most topics.
    pub const TOPICS_MAX: usize = 20;
}

/// The hook of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderHook {
    /// The tenant.
    pub tenant: TenantId,
    /// The account whose messages it reports on.
    pub account: AccountId,
    /// The provider that calls it.
    pub provider: HookProvider,
    /// The digest of its token.
    pub token: KeyDigest,
    /// Its settings.
    pub settings: HookSettings,
    /// The secret that proves calls, if the provider has one.
    pub secret: Option<SealedSecret>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl ProviderHook {
    /// The prefix of every token.
    pub const TOKEN_PREFIX: &'static str = "ph_";

    /// The context that its secret is sealed for.
    pub fn sealing_context(tenant: &TenantId, account: &AccountId) -> String {
        format!("provider_hook/{tenant}/{account}")
    }

    /// Makes a token: 32 random bytes, to show once.
    pub fn make_token(random: &mut impl Rng) -> String {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random.random::<[u8; 32]>());
        format!("{}{secret}", Self::TOKEN_PREFIX)
    }
}

/// The state of a reported event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderEventState {
    /// Stored, and waits to be processed.
    Waiting = 0,
    /// Being processed.
    Leased = 1,
    /// Written to its message.
    Applied = 2,
    /// It says nothing that is recorded.
    Ignored = 3,
    /// No message of the account was found for it in time.
    Unmatched = 4,
    /// It could not be read, or its processing failed too often.
    Dead = 5,
}

impl ProviderEventState {
    /// Every value.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Leased, Self::Applied, Self::Ignored, Self::Unmatched, Self::Dead];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Applied => "applied",
            Self::Ignored => "ignored",
            Self::Unmatched => "unmatched",
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

    /// Whether nothing more happens.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Waiting | Self::Leased => false,
            Self::Applied | Self::Ignored | Self::Unmatched | Self::Dead => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn every_word_and_code_leads_back() {
        for provider in HookProvider::ALL {
            assert_eq!(HookProvider::from_word(provider.as_str()), Some(provider));
        }
        for state in ProviderEventState::ALL {
            assert_eq!(ProviderEventState::from_word(state.as_str()), Some(state));
            assert_eq!(ProviderEventState::from_code(state.code()), Some(state));
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let mut random = StdRng::seed_from_u64(7);
        let (one, other) = (ProviderHook::make_token(&mut random), ProviderHook::make_token(&mut random));
        assert_ne!(one, other);
        assert!(one.starts_with("ph_") && one.len() == 46, "{one}");
    }
}
