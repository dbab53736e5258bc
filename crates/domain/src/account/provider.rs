//! Accounts of providers that are called over HTTP: which settings each kind needs.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::account::{AccountKind, AccountSettings, oauth::OAuthUse};

/// The longest base URL, in bytes.
pub const BASE_URL_BYTES_MAX: usize = 1_024;
/// The longest domain, in bytes.
const DOMAIN_BYTES_MAX: usize = 253;
/// The longest name of a message stream, in bytes.
const STREAM_BYTES_MAX: usize = 128;

/// The settings of an account at a provider. Its API key, or its grant, is the account's secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderAccount {
    /// The base URL instead of the provider's own; the complete address for an `http` account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Mailgun: the sending domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Postmark: the message stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_stream: Option<String>,
}

impl ProviderAccount {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The kind of secret that an account has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountSecret {
    /// No secret.
    Nothing,
    /// A password for the user name, if the account signs in.
    Password,
    /// The secret half of an AWS key.
    SecretAccessKey,
    /// An API key of the provider.
    ApiKey,
    /// An API key, if the service needs one.
    OptionalApiKey,
    /// The secrets of a grant.
    Grant,
}

impl AccountSecret {
    /// The field that sets the secret.
    pub fn field(self) -> &'static str {
        match self {
            Self::Nothing | Self::Password => "password",
            Self::SecretAccessKey => "secret_access_key",
            Self::ApiKey | Self::OptionalApiKey => "api_key",
            Self::Grant => "oauth",
        }
    }
}

impl AccountKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Smtp,
        Self::Lmtp,
        Self::Ses,
        Self::Sendgrid,
        Self::Mailgun,
        Self::Postmark,
        Self::Resend,
        Self::Graph,
        Self::Gmail,
        Self::Http,
        Self::Sandbox,
    ];

    /// The kind with this name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The kind of secret of such an account.
    pub fn secret(self) -> AccountSecret {
        match self {
            Self::Sandbox => AccountSecret::Nothing,
            Self::Smtp | Self::Lmtp => AccountSecret::Password,
            Self::Ses => AccountSecret::SecretAccessKey,
            Self::Sendgrid | Self::Mailgun | Self::Postmark | Self::Resend => AccountSecret::ApiKey,
            Self::Http => AccountSecret::OptionalApiKey,
            Self::Graph | Self::Gmail => AccountSecret::Grant,
        }
    }

    /// The purpose of its tokens, if it can sign in with tokens.
    pub fn oauth_use(self) -> Option<OAuthUse> {
        match self {
            Self::Smtp => Some(OAuthUse::Smtp),
            Self::Graph => Some(OAuthUse::Graph),
            Self::Gmail => Some(OAuthUse::Gmail),
            Self::Lmtp
            | Self::Ses
            | Self::Sendgrid
            | Self::Mailgun
            | Self::Postmark
            | Self::Resend
            | Self::Http
            | Self::Sandbox => None,
        }
    }
}

impl AccountSettings {
    /// The faults of the settings of a provider account.
    pub(crate) fn check_provider(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let mut refuse = |field, message: &str| wrong.push((field, message.to_owned()));
        let ProviderAccount { base_url, domain, message_stream } = &self.provider;
        match base_url.as_deref() {
            None if self.kind == AccountKind::Http => {
                refuse("base_url", "an http account needs the address that it posts to");
            }
            Some(url) if !is_base_url(url, self.kind == AccountKind::Http) => refuse(
                "base_url",
                match self.kind {
                    AccountKind::Http => {
                        "must be an https address without user, query and fragment; http is for this machine alone"
                    }
                    AccountKind::Smtp
                    | AccountKind::Lmtp
                    | AccountKind::Ses
                    | AccountKind::Sendgrid
                    | AccountKind::Mailgun
                    | AccountKind::Postmark
                    | AccountKind::Resend
                    | AccountKind::Graph
                    | AccountKind::Gmail
                    | AccountKind::Sandbox => {
                        "must be https, host and port alone, such as https://api.eu.mailgun.net; http is for this machine alone"
                    }
                },
            ),
            Some(_) | None => {}
        }
        let is_domain = |name: &str| {
            (1..=DOMAIN_BYTES_MAX).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        };
        match domain.as_deref() {
            None if self.kind == AccountKind::Mailgun => {
                refuse("domain", "a mailgun account needs the domain that it sends for");
            }
            Some(name) if !is_domain(name) => refuse("domain", "must be a domain, such as mg.example.com"),
            Some(_) | None => {}
        }
        let is_word = |text: &str| {
            (1..=STREAM_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if message_stream.as_deref().is_some_and(|stream| !is_word(stream)) {
            refuse("message_stream", "must be 1 to 128 characters of visible ASCII");
        }
        if self.kind.secret() == AccountSecret::Grant && self.username.is_none() {
            refuse("username", "is needed: the address of the mailbox that sends");
        }
        wrong
    }
}

/// Whether mail and a key may be sent to `url`: under TLS, or on this machine.
fn is_base_url(url: &str, may_have_path: bool) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"@?#\\\"<>".contains(&byte);
    if url.len() > BASE_URL_BYTES_MAX || !url.bytes().all(is_plain) {
        return false;
    }
    let (rest, is_secure) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => return false,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !host.is_empty() && (is_secure || is_here) && (may_have_path || path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(kind: AccountKind, provider: ProviderAccount) -> Vec<&'static str> {
        let settings = AccountSettings { kind, provider, ..AccountSettings::sandbox() };
        settings.check().into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn each_kind_names_what_it_lacks() {
        let nothing = ProviderAccount::default;
        for (kind, wrong) in [
            (AccountKind::Sendgrid, &[][..]),
            (AccountKind::Postmark, &[]),
            (AccountKind::Resend, &[]),
            (AccountKind::Mailgun, &["domain"]),
            (AccountKind::Graph, &["username"]),
            (AccountKind::Gmail, &["username"]),
            (AccountKind::Http, &["base_url"]),
        ] {
            assert_eq!(fields(kind, nothing()), wrong, "{kind:?}");
        }
        let odd = ProviderAccount {
            domain: Some("a b".to_owned()),
            message_stream: Some(String::new()),
            ..nothing()
        };
        assert_eq!(fields(AccountKind::Postmark, odd), ["domain", "message_stream"]);
    }

    #[test]
    fn a_key_goes_out_under_tls_or_stays_on_this_machine() {
        for (url, is_good, is_good_with_path) in [
            ("https://api.eu.mailgun.net", true, true),
            ("https://api.eu.mailgun.net/", true, true),
            ("http://localhost:8025", true, true),
            ("http://127.0.0.1:1/", true, true),
            ("http://[::1]:1", true, true),
            ("https://hooks.example.com/mail/send", false, true),
            ("http://api.example.com", false, false),
            ("http://localhost.example.com", false, false),
            ("https://user@example.com", false, false),
            ("https://example.com/?key=1", false, false),
            ("https://", false, false),
            ("https:///x", false, false),
            ("ftp://localhost", false, false),
        ] {
            assert_eq!(
                (is_base_url(url, false), is_base_url(url, true)),
                (is_good, is_good_with_path),
                "{url}"
            );
        }
    }

    #[test]
    fn every_kind_is_found_by_its_word() {
        for kind in AccountKind::ALL {
            assert_eq!(AccountKind::from_word(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(AccountKind::from_word("pigeon"), None);
    }
}
