//! The destination of a stored secret, and how it is protected on the way.
//!
//! Passwords and tokens are stored and never shown. A caller who could redirect one, to another host or to a
//! connection that others can read, would obtain it. So a change of the destination must bring the secret
//! along: a stored secret goes only where it was meant for, whichever key asks. Accounts, mailboxes and the
//! endpoints of tenants all use this check.
//!
//! Webhooks do not need it: their secrets sign, and are never sent.

use postway_domain::{
    AccountKind, AccountSettings, RelayTlsMode,
    mailbox::{MailboxSettings, MailboxTls},
    oauth::OAuthSettings,
    tenant::RemoteService,
};
use url::Url;

use crate::http::error::FieldError;

/// The destination of a secret, in the fields that define it.
#[derive(Debug, PartialEq)]
pub(crate) struct SecretDestination {
    place: Vec<(&'static str, Option<String>)>,
    tls: TlsProtection,
    allows_plaintext: bool,
    ca_pem: Option<String>,
}

/// The levels of TLS protection, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TlsProtection {
    Nothing,
    WhereOffered,
    Always,
}

impl SecretDestination {
    fn to(place: Vec<(&'static str, Option<String>)>) -> Self {
        Self { place, tls: TlsProtection::Always, allows_plaintext: false, ca_pem: None }
    }

    /// The destination of an account's password or secret key. A signing key is never sent, but what it signs
    /// is.
    pub(crate) fn of_account(settings: &AccountSettings) -> Self {
        let proxy = ("proxy", settings.proxy.as_ref().map(|proxy| proxy.url.clone()));
        match settings.kind {
            AccountKind::Ses => {
                let ses = &settings.ses;
                Self::to(vec![("region", ses.region.clone()), ("endpoint", ses.endpoint.clone()), proxy])
            }
            AccountKind::Sendgrid
            | AccountKind::Mailgun
            | AccountKind::Postmark
            | AccountKind::Resend
            | AccountKind::Graph
            | AccountKind::Gmail
            | AccountKind::Http => Self {
                ca_pem: settings.ca_pem.clone(),
                ..Self::to(vec![
                    ("kind", Some(settings.kind.as_str().to_owned())),
                    ("oauth.token_url", settings.oauth.as_ref().and_then(OAuthSettings::token_url)),
                    ("base_url", settings.provider.base_url.clone()),
                    proxy,
                ])
            },
            AccountKind::Smtp | AccountKind::Lmtp | AccountKind::Sandbox => Self {
                place: vec![
                    ("oauth.token_url", settings.oauth.as_ref().and_then(OAuthSettings::token_url)),
                    ("host", settings.host.as_deref().map(str::to_ascii_lowercase)),
                    ("port", settings.port.map(|port| port.to_string())),
                    proxy,
                ],
                tls: match settings.tls {
                    RelayTlsMode::None => TlsProtection::Nothing,
                    RelayTlsMode::Opportunistic => TlsProtection::WhereOffered,
                    RelayTlsMode::Starttls | RelayTlsMode::Implicit => TlsProtection::Always,
                },
                allows_plaintext: settings.allow_plaintext_auth,
                ca_pem: settings.ca_pem.clone(),
            },
        }
    }

    /// The destination of a mailbox's password or token.
    pub(crate) fn of_mailbox(settings: &MailboxSettings) -> Self {
        Self {
            place: vec![
                ("host", Some(settings.host.to_ascii_lowercase())),
                ("port", Some(settings.port.to_string())),
                ("proxy", settings.proxy.clone()),
                ("oauth.token_url", settings.oauth.as_ref().and_then(OAuthSettings::token_url)),
            ],
            tls: match settings.tls {
                MailboxTls::None => TlsProtection::Nothing,
                MailboxTls::Starttls | MailboxTls::Implicit => TlsProtection::Always,
            },
            allows_plaintext: false,
            ca_pem: settings.ca_pem.clone(),
        }
    }

    /// The destination of a proxy's password.
    pub(crate) fn of_proxy(url: Option<&str>) -> Self {
        Self::to(vec![("proxy", url.map(str::to_owned))])
    }

    /// The destination of a tenant endpoint's credentials: the complete server.
    pub(crate) fn of_remote(remote: &RemoteService) -> Self {
        let whole =
            format!("{}{}", remote.url.trim_end_matches('/'), remote.path.as_deref().unwrap_or_default());
        // An invalid URL is never called; it is compared as text so that two invalid ones differ.
        let server = Url::parse(&whole).map_or(whole, |url| url.origin().ascii_serialization());
        Self::to(vec![("url", Some(server))])
    }

    /// Refuses a change of the destination of a stored secret that does not bring the secret, named by its
    /// field, along.
    pub(crate) fn check(before: &Self, after: &Self, secret: &str) -> Result<(), FieldError> {
        let Some(field) = after.exposes(before) else { return Ok(()) };
        let message = format!(
            "is needed again, because `{field}` changes: what is stored is sent only where it was given for, and no \
             less protected"
        );
        Err(FieldError::new(secret, message))
    }

    /// The field whose change would expose the secret.
    fn exposes(&self, before: &Self) -> Option<&'static str> {
        let mut moved =
            self.place.iter().filter(|part| !before.place.contains(part)).map(|(field, _)| *field);
        let weaker = [
            ("tls", self.tls < before.tls),
            ("allow_plaintext_auth", self.allows_plaintext && !before.allows_plaintext),
            // Fewer trusted authorities are no exposure.
            ("ca_pem", self.ca_pem.is_some() && self.ca_pem != before.ca_pem),
        ];
        moved.next().or_else(|| weaker.into_iter().find(|(_, is_weaker)| *is_weaker).map(|(field, _)| field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay() -> AccountSettings {
        AccountSettings {
            kind: AccountKind::Smtp,
            host: Some("smtp.example.com".to_owned()),
            tls: RelayTlsMode::Starttls,
            ..AccountSettings::sandbox()
        }
    }

    #[track_caller]
    fn exposes(before: &AccountSettings, after: &AccountSettings) -> Option<&'static str> {
        SecretDestination::of_account(after).exposes(&SecretDestination::of_account(before))
    }

    #[test]
    fn another_place_or_less_protection_exposes_a_password_and_more_of_it_does_not() {
        let pem = |text: &str| Some(text.to_owned());
        let moved = AccountSettings { host: Some("smtp.evil.example".to_owned()), ..relay() };
        assert_eq!(exposes(&relay(), &moved), Some("host"));
        assert_eq!(exposes(&relay(), &AccountSettings { port: Some(2525), ..relay() }), Some("port"));
        for tls in [RelayTlsMode::None, RelayTlsMode::Opportunistic] {
            let weaker = AccountSettings { tls, ..relay() };
            assert_eq!((exposes(&relay(), &weaker), exposes(&weaker, &relay())), (Some("tls"), None));
        }
        let mut provider = AccountSettings { kind: AccountKind::Sendgrid, ..AccountSettings::sandbox() };
        let before = provider.clone();
        provider.provider.base_url = Some("https://evil.example".to_owned());
        assert_eq!(exposes(&before, &provider), Some("base_url"));
        let graph = AccountSettings { kind: AccountKind::Graph, ..relay() };
        assert_eq!(exposes(&relay(), &graph), Some("kind"), "a grant goes to one service");
        let plain = AccountSettings { allow_plaintext_auth: true, ..relay() };
        assert_eq!(exposes(&relay(), &plain), Some("allow_plaintext_auth"));
        let trusting = AccountSettings { ca_pem: pem("a"), ..relay() };
        assert_eq!((exposes(&relay(), &trusting), exposes(&trusting, &relay())), (Some("ca_pem"), None));
        assert_eq!(exposes(&trusting, &AccountSettings { ca_pem: pem("b"), ..relay() }), Some("ca_pem"));
        let same = AccountSettings {
            host: Some("SMTP.example.com".to_owned()),
            tls: RelayTlsMode::Implicit,
            username: Some("other".to_owned()),
            ..relay()
        };
        assert_eq!(exposes(&relay(), &same), None);
    }

    #[test]
    fn a_tenants_place_is_its_server_whatever_the_path() {
        let remote = |url: &str, path: Option<&str>| RemoteService {
            url: url.to_owned(),
            path: path.map(str::to_owned),
            auth: Default::default(),
            username: None,
        };
        let stays = |after: RemoteService| {
            let before = remote("https://app.example.com/mail", Some("/sync"));
            SecretDestination::of_remote(&after).exposes(&SecretDestination::of_remote(&before)).is_none()
        };
        assert!(
            stays(remote("https://APP.example.com:443", None))
                && stays(remote("https://app.example.com/", Some("/x")))
        );
        for elsewhere in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com@evil.example",
            "https://app.example.com.evil.example",
        ] {
            assert!(!stays(remote(elsewhere, None)), "{elsewhere}");
        }
        assert!(!stays(remote("https://app.example.com", Some(".evil.example/"))));
    }
}
