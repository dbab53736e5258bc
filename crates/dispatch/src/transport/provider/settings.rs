//! The settings of a provider account: which provider, where, with which credentials, how long to wait.

use std::{fmt, sync::Arc};

use postway_domain::{AccountKind, SendFailure, provider_account::ProviderAccount};
use postway_net::{AddressGuard, EgressPath};
use postway_oauth::TokenSource;
use reqwest::Url;
use secrecy::SecretString;

use super::{
    api::ProviderApi, generic::GenericApi, gmail::GmailApi, graph::GraphApi, mailgun::MailgunApi,
    postmark::PostmarkApi, resend::ResendApi, sendgrid::SendgridApi,
};
use crate::transport::api_call::{CallTimeouts, unusable_settings};

/// Everything needed to send through a provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The kind of the account, which names the provider.
    pub kind: AccountKind,
    /// The base address, domain and stream at the provider.
    pub account: ProviderAccount,
    /// The mailbox that sends, for providers that have mailboxes.
    pub username: Option<String>,
    /// The credentials of calls.
    pub credentials: ProviderCredentials,
    /// How long a call may take.
    pub timeouts: CallTimeouts,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
    /// The addresses that may be connected to; the default allows public ones.
    pub guard: Arc<AddressGuard>,
    /// The path of the calls.
    pub egress: EgressPath,
}

/// The credentials of calls. They are never printed.
#[derive(Clone)]
pub enum ProviderCredentials {
    /// No credentials.
    Nobody,
    /// An API key.
    Key(SecretString),
    /// Tokens of a grant.
    Token(TokenSource),
}

impl fmt::Debug for ProviderCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderCredentials(hidden)")
    }
}

impl ProviderSettings {
    /// Settings for a provider's own address, with the default timeouts.
    pub fn new(kind: AccountKind, credentials: ProviderCredentials) -> Self {
        Self {
            kind,
            account: ProviderAccount::default(),
            username: None,
            credentials,
            timeouts: CallTimeouts::default(),
            extra_roots_pem: None,
            guard: Arc::default(),
            egress: EgressPath::default(),
        }
    }

    pub(super) fn api(&self) -> Result<Box<dyn ProviderApi>, SendFailure> {
        let username =
            || self.username.clone().ok_or_else(|| unusable_settings("the account has no username"));
        Ok(match self.kind {
            AccountKind::Sendgrid => Box::new(SendgridApi),
            AccountKind::Mailgun => {
                let domain = self.account.domain.clone();
                Box::new(MailgunApi {
                    domain: domain.ok_or_else(|| unusable_settings("the account has no domain"))?,
                })
            }
            AccountKind::Postmark => {
                Box::new(PostmarkApi { message_stream: self.account.message_stream.clone() })
            }
            AccountKind::Resend => Box::new(ResendApi),
            AccountKind::Graph => Box::new(GraphApi { mailbox: username()? }),
            AccountKind::Gmail => Box::new(GmailApi { mailbox: username()? }),
            AccountKind::Http => Box::new(GenericApi),
            AccountKind::Smtp | AccountKind::Lmtp | AccountKind::Ses | AccountKind::Sandbox => {
                return Err(unusable_settings("the account is not one of a provider over HTTP"));
            }
        })
    }

    /// The base address of the provider.
    pub(super) fn base(&self, api: &dyn ProviderApi) -> Result<Url, SendFailure> {
        let address = self.account.base_url.as_deref().unwrap_or(api.base());
        let invalid = |reason: &str| {
            unusable_settings(format!("{address:?} is no address of {}: {reason}", api.name()))
        };
        let base = Url::parse(address).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(invalid("it is neither http nor https"));
        }
        let has_more = base.query().is_some() || base.fragment().is_some();
        if has_more || !base.username().is_empty() || base.password().is_some() {
            return Err(invalid("it has a user, a query or a fragment"));
        }
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed() {
        let credentials = ProviderCredentials::Key("hunter2".to_owned().into());
        let printed = format!("{:?}", ProviderSettings::new(AccountKind::Sendgrid, credentials));
        assert!(!printed.contains("hunter2"), "{printed}");
    }

    #[test]
    fn settings_that_lack_something_are_the_accounts_fault() {
        for kind in [AccountKind::Mailgun, AccountKind::Graph, AccountKind::Gmail, AccountKind::Smtp] {
            let failure = ProviderSettings::new(kind, ProviderCredentials::Nobody).api().err().unwrap();
            assert!(failure.is_account(), "{kind:?}");
        }
        for base_url in ["ftp://x.example", "https://u@x.example", "https://x.example/?q", "x.example"] {
            let account =
                ProviderAccount { base_url: Some(base_url.to_owned()), ..ProviderAccount::default() };
            let settings = ProviderSettings {
                account,
                ..ProviderSettings::new(AccountKind::Resend, ProviderCredentials::Nobody)
            };
            assert!(settings.base(&ResendApi).unwrap_err().is_account(), "{base_url}");
        }
    }
}
