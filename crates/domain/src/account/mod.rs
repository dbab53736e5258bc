//! Accounts: how a tenant's mail leaves.
//!
//! Settings are stored as JSON. A new field gets a default, so that settings stored by an older version can
//! be read.

pub mod dkim_key;
pub mod egress;
pub mod oauth;
pub mod provider;

use std::{collections::BTreeMap, net::IpAddr};

use serde::{Deserialize, Serialize};

use crate::{
    account::{egress::ProxySetting, oauth::OAuthSettings, provider::ProviderAccount},
    identity::{
        id::{AccountId, TenantId},
        secret::SealedSecret,
    },
    limit::{
        AccountLimits, WarmUpPlan,
        destination::{DestinationLimit, check_destinations},
    },
    message::{
        OnDoubt,
        dsn::DsnRequest,
        retry::{RetryPolicy, RetryPolicyError},
    },
    time::Time,
};

/// Which transport an account uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// A relay over SMTP.
    Smtp,
    /// A server that delivers into mailboxes, over LMTP.
    Lmtp,
    /// Amazon SES, called over HTTPS.
    Ses,
    /// SendGrid's API v3.
    Sendgrid,
    /// Mailgun's API v3.
    Mailgun,
    /// Postmark's API.
    Postmark,
    /// Resend's API.
    Resend,
    /// Microsoft Graph.
    Graph,
    /// Gmail's API.
    Gmail,
    /// A service that accepts Postway's documented JSON form.
    Http,
    /// Captures mail instead of sending it.
    Sandbox,
}

impl AccountKind {
    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            AccountKind::Smtp => "smtp",
            AccountKind::Lmtp => "lmtp",
            AccountKind::Ses => "ses",
            AccountKind::Sendgrid => "sendgrid",
            AccountKind::Mailgun => "mailgun",
            AccountKind::Postmark => "postmark",
            AccountKind::Resend => "resend",
            AccountKind::Graph => "graph",
            AccountKind::Gmail => "gmail",
            AccountKind::Http => "http",
            AccountKind::Sandbox => "sandbox",
        }
    }
}

/// How a connection to a relay is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayTlsMode {
    /// STARTTLS; without it the connection fails.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Implicit,
    /// Plain text.
    None,
    /// STARTTLS if offered. The certificate is checked only if credentials are sent.
    Opportunistic,
}

/// The settings of an `ses` account. The secret half of its key is the account's secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SesAccount {
    /// The AWS region.
    pub region: Option<String>,
    /// The public half of the key; without it, the machine's own key signs.
    pub access_key_id: Option<String>,
    /// The configuration set that every mail names.
    pub configuration_set: Option<String>,
    /// Where to call instead of the region's own endpoint.
    pub endpoint: Option<String>,
}

/// An account's settings, all but its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountSettings {
    /// The transport.
    pub kind: AccountKind,
    /// The relay's host name or address.
    pub host: Option<String>,
    /// The relay's port.
    pub port: Option<u16>,
    /// How the connection is protected.
    pub tls: RelayTlsMode,
    /// The user name, if the account signs in.
    pub username: Option<String>,
    /// The grant whose tokens it signs in with instead of a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthSettings>,
    /// Whether the password may cross an unprotected connection.
    #[serde(default)]
    pub allow_plaintext_auth: bool,
    /// Additional roots to trust for this relay, in PEM form.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The most connections at once, per node.
    pub max_connections: u32,
    /// The envelope sender, if it is not the mail's `From`.
    pub return_path: Option<String>,
    /// When to try again.
    pub retry: RetryPolicy,
    /// How much it may send.
    #[serde(default)]
    pub limits: AccountLimits,
    /// How its daily limit grows while it is new.
    #[serde(default)]
    pub warm_up: Option<WarmUpPlan>,
    /// The account that sends its mail while it cannot.
    #[serde(default)]
    pub fallback: Option<AccountId>,
    /// Limits for receiving domains that differ from the built-in ones.
    #[serde(default)]
    pub destinations: BTreeMap<String, DestinationLimit>,
    /// SES only.
    #[serde(default)]
    pub ses: SesAccount,
    /// Providers over HTTP only.
    #[serde(default, skip_serializing_if = "ProviderAccount::is_empty")]
    pub provider: ProviderAccount,
    /// Whether it sends certified mail (PEC).
    #[serde(default)]
    pub pec: bool,
    /// What to do with mail in doubt that does not say; the tenant's setting if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
    /// The proxy that its connections go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySetting>,
    /// The address of this machine that its connections leave from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_address: Option<IpAddr>,
    /// The reports that it asks relays for, about mail whose sender has no wishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dsn: Option<DsnRequest>,
    /// Whether a tenant's own key set the target, so that the account must have its own AWS key. The stored
    /// name is older than this meaning.
    #[serde(default, rename = "guarded")]
    pub by_tenant: bool,
}

impl AccountSettings {
    /// The most connections of an account.
    pub const CONNECTIONS_MAX: u32 = 500;
    /// The default number of connections.
    pub const CONNECTIONS_DEFAULT: u32 = 10;

    /// The settings of a sandbox account.
    pub fn sandbox() -> Self {
        Self {
            kind: AccountKind::Sandbox,
            host: None,
            port: None,
            tls: RelayTlsMode::None,
            username: None,
            oauth: None,
            allow_plaintext_auth: false,
            ca_pem: None,
            max_connections: Self::CONNECTIONS_DEFAULT,
            return_path: None,
            retry: RetryPolicy::api(),
            limits: AccountLimits::default(),
            warm_up: None,
            fallback: None,
            destinations: BTreeMap::new(),
            ses: SesAccount::default(),
            provider: ProviderAccount::default(),
            pec: false,
            on_doubt: None,
            proxy: None,
            source_address: None,
            dsn: None,
            by_tenant: false,
        }
    }

    /// The limits in force now: its own, or those of the warm-up plan if they are lower.
    pub fn effective_limits(&self, now: Time) -> AccountLimits {
        let planned = self.warm_up.as_ref().and_then(|plan| plan.today(now));
        let per_day = match (self.limits.per_day, planned) {
            (own, None) => own,
            (0, Some(planned)) => planned,
            (own, Some(planned)) => own.min(planned),
        };
        AccountLimits { per_day, ..self.limits }
    }

    /// The faults of these settings, as pairs of field and message.
    pub fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = match self.kind {
            AccountKind::Smtp | AccountKind::Lmtp => self.check_relay(),
            AccountKind::Ses => self.check_ses(),
            AccountKind::Sandbox => Vec::new(),
            AccountKind::Sendgrid
            | AccountKind::Mailgun
            | AccountKind::Postmark
            | AccountKind::Resend
            | AccountKind::Graph
            | AccountKind::Gmail
            | AccountKind::Http => self.check_provider(),
        };
        if let Some(username) = &self.username
            && (username.is_empty() || username.len() > 320 || username.chars().any(char::is_control))
        {
            wrong.push(("username", "must be 1 to 320 characters without control characters".to_owned()));
        }
        if !(1..=Self::CONNECTIONS_MAX).contains(&self.max_connections) {
            wrong.push(("max_connections", format!("must be between 1 and {}", Self::CONNECTIONS_MAX)));
        }
        if let Some(path) = &self.return_path
            && path.parse::<crate::address::EmailAddress>().is_err()
        {
            wrong.push(("return_path", "must be an email address".to_owned()));
        }
        if let Err(error) = self.retry.check() {
            let field = match error {
                RetryPolicyError::Jitter => "retry.jitter",
                RetryPolicyError::TooMany | RetryPolicyError::Delay => "retry.delays_s",
            };
            wrong.push((field, error.to_string()));
        }
        wrong.extend(self.limits.check());
        if let Some(plan) = &self.warm_up
            && (!(1..=WarmUpPlan::DAYS_MAX).contains(&plan.per_day.len()) || plan.per_day.contains(&0))
        {
            wrong.push(("warm_up.per_day", format!("must be 1 to {} numbers above 0", WarmUpPlan::DAYS_MAX)));
        }
        wrong.extend(check_destinations(&self.destinations).map(|message| ("destinations", message)));
        wrong
    }

    fn check_relay(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        match self.host.as_deref() {
            None | Some("") => {
                let message = format!("an {} account needs the host of its relay", self.kind.as_str());
                wrong.push(("host", message));
            }
            Some(host) if host.len() > 253 || host.bytes().any(|b| b <= b' ' || b == 127) => {
                wrong.push(("host", "must be a host name or an IP address".to_owned()));
            }
            Some(_) => {}
        }
        if self.kind == AccountKind::Lmtp && self.port == Some(25) {
            // RFC 2033 5: a server there speaks SMTP, and its one reply would be taken for the first of many.
            wrong.push(("port", "must not be 25 for LMTP: that is the port of SMTP".to_owned()));
        }
        if self.port == Some(0) {
            wrong.push(("port", "must be between 1 and 65535".to_owned()));
        }
        wrong
    }

    fn check_ses(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let is_region = |region: &str| {
            let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=32).contains(&region.len()) && region.bytes().all(is_part)
        };
        let is_word =
            |text: &str| (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if !self.ses.region.as_deref().is_some_and(is_region) {
            wrong.push(("region", "an ses account needs an AWS region, such as eu-west-1".to_owned()));
        }
        for (field, value) in
            [("access_key_id", &self.ses.access_key_id), ("configuration_set", &self.ses.configuration_set)]
        {
            if value.as_deref().is_some_and(|value| !is_word(value)) {
                wrong.push((field, "must be 1 to 128 characters of visible ASCII".to_owned()));
            }
        }
        if let Some(endpoint) = &self.ses.endpoint
            && !is_bare_address(endpoint)
        {
            let message =
                "must be scheme, host and port alone, such as https://email.eu-west-1.amazonaws.com";
            wrong.push(("endpoint", message.to_owned()));
        }
        wrong
    }
}

/// Whether a text is `http(s)://host` or `http(s)://host:port`, with nothing after it but a slash.
fn is_bare_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (1..=255).contains(&rest.len()) && rest.bytes().all(is_part)
}

/// An account as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name in that tenant.
    pub id: AccountId,
    /// How it sends.
    pub settings: AccountSettings,
    /// Its password, the secret half of its key, its API key, or the secrets of its grant as a JSON object,
    /// encrypted.
    pub secret: Option<SealedSecret>,
    /// The version, which increases with each change, so that a cached copy can be recognised as old.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl Account {
    /// The context that this account's secret is sealed for.
    pub fn sealing_context(tenant: &TenantId, id: &AccountId) -> String {
        format!("account/{tenant}/{id}")
    }

    /// The context that the secrets of this account's grant are sealed for. It differs from that of a
    /// password, so that an older program, which would take them for a password, cannot open and send them.
    pub fn grant_sealing_context(tenant: &TenantId, id: &AccountId) -> String {
        format!("account/{tenant}/{id}/oauth")
    }

    /// The context that its current secret is sealed for.
    pub fn current_sealing_context(&self) -> String {
        match self.settings.oauth {
            Some(_) => Self::grant_sealing_context(&self.tenant, &self.id),
            None => Self::sealing_context(&self.tenant, &self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(settings: &AccountSettings) -> Vec<&'static str> {
        settings.check().into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn settings_of_an_older_version_still_read() {
        let stored = r#"{"kind":"smtp","host":"relay.example","port":25,"tls":"none","username":null,
            "max_connections":5,"return_path":null,"retry":{"delays_s":[1],"jitter":0.0}}"#;
        let settings: AccountSettings = serde_json::from_str(stored).unwrap();
        assert!(settings.limits.is_unlimited() && settings.destinations.is_empty() && !settings.by_tenant);
        let again = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<AccountSettings>(&again).unwrap(), settings);
    }

    #[test]
    fn while_an_account_is_new_the_plan_limits_its_day() {
        let day = 86_400_000;
        let plan = WarmUpPlan { from: Time::from_millis(0), per_day: vec![50, 5_000] };
        let limits = AccountLimits { per_hour: 40, per_day: 1_000, ..AccountLimits::default() };
        let settings = AccountSettings { limits, warm_up: Some(plan.clone()), ..AccountSettings::sandbox() };
        let per_day =
            |settings: &AccountSettings, ms| settings.effective_limits(Time::from_millis(ms)).per_day;
        assert_eq!([0, day, 2 * day].map(|ms| per_day(&settings, ms)), [50, 1_000, 1_000]);
        assert_eq!(settings.effective_limits(Time::from_millis(0)).per_hour, 40);
        let unlimited = AccountSettings { warm_up: Some(plan), ..AccountSettings::sandbox() };
        assert_eq!([0, day, 2 * day].map(|ms| per_day(&unlimited, ms)), [50, 5_000, 0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let ses = AccountSettings { kind: AccountKind::Ses, ..AccountSettings::sandbox() };
        assert_eq!(fields(&ses), ["region"]);
        let place = |endpoint: &str| SesAccount {
            region: Some("eu-west-1".to_owned()),
            endpoint: Some(endpoint.to_owned()),
            ..SesAccount::default()
        };
        for (endpoint, wrong) in [
            ("https://email.eu-west-1.amazonaws.com", &[][..]),
            ("http://127.0.0.1:5000/", &[]),
            ("http://[::1]:5000", &[]),
            ("ftp://x", &["endpoint"]),
            ("https://user@x", &["endpoint"]),
            ("https://x/path", &["endpoint"]),
            ("https://", &["endpoint"]),
        ] {
            assert_eq!(fields(&AccountSettings { ses: place(endpoint), ..ses.clone() }), wrong, "{endpoint}");
        }
        let settings = AccountSettings {
            limits: AccountLimits { per_minute: 10, per_hour: 5, ..AccountLimits::default() },
            warm_up: Some(WarmUpPlan { from: Time::from_millis(0), per_day: vec![0] }),
            destinations: BTreeMap::from([("A B".to_owned(), DestinationLimit::default())]),
            ..AccountSettings::sandbox()
        };
        assert_eq!(fields(&settings), ["limits.per_hour", "warm_up.per_day", "destinations"]);
    }
}
