//! One version of an account's settings, turned into what sends: the transport, its credentials, its limits.

use std::sync::Arc;

use postway_domain::{
    Account, AccountId, AccountKind, AccountLimits, AccountSettings, Clock, RelayTlsMode, Time,
    egress::ProxySetting,
    failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure},
    oauth::{OAuthOwner, OAuthSettings},
    provider_account::AccountSecret,
    secret::SecretKey,
};
use postway_net::{AddressGuard, EgressPath, OutboundProxy};
use postway_oauth::{OAuthTokens, OwnedGrant, TokenSource};

use super::destinations::OwnLimits;
use crate::{
    context::DispatchContext,
    transport::{
        ProviderClient, ProviderCredentials, ProviderSettings, RelayCredentials, RelayDialer, RelayProtocol,
        SesClient, SesCredentials, SesSettings, SmtpDeadlines, SmtpSettings,
    },
};

/// The transport of an account, ready to use.
pub(crate) enum AccountTransport {
    /// Captures mail.
    Sandbox,
    /// Sends to a relay over SMTP.
    Smtp(Box<SmtpSettings>),
    /// Calls SES.
    Ses(SesClient),
    /// Calls a provider over HTTP.
    Provider(ProviderClient),
    /// The settings cannot be used; the account's mail waits.
    Unusable(SendFailure),
}

/// Everything besides the account itself that building a transport needs.
pub(crate) struct TransportResources<'a> {
    pub secret_key: &'a SecretKey,
    pub clock: &'a Arc<dyn Clock>,
    pub tokens: &'a OAuthTokens,
    pub guard: &'a Arc<AddressGuard>,
    pub dial: &'a Arc<dyn RelayDialer>,
    pub ehlo_name: &'a str,
    pub deadlines: SmtpDeadlines,
}

/// One version of an account's settings, ready to use.
pub(crate) struct AccountConfig {
    pub version: i64,
    pub connections_max: usize,
    pub settings: AccountSettings,
    pub transport: AccountTransport,
    /// The account that sends in its place while it cannot.
    pub fallback: Option<AccountId>,
    /// Its own limits of receiving domains.
    pub destinations: OwnLimits,
}

impl AccountConfig {
    pub fn new(account: &Account, context: &DispatchContext) -> Self {
        let resources = TransportResources {
            secret_key: &context.secret_key,
            clock: &context.clock,
            tokens: &context.tokens,
            guard: &context.config.guard,
            dial: &context.config.dial,
            ehlo_name: &context.config.ehlo_name,
            deadlines: context.config.deadlines,
        };
        Self {
            version: account.version,
            connections_max: account.settings.max_connections as usize,
            settings: account.settings.clone(),
            transport: AccountTransport::new(account, &resources),
            fallback: account.settings.fallback.clone(),
            destinations: Arc::new(account.settings.destinations.clone()),
        }
    }

    /// The limits in force now; a warm-up plan changes them daily.
    pub fn limits(&self, now: Time) -> AccountLimits {
        self.settings.effective_limits(now)
    }
}

impl AccountTransport {
    pub fn new(account: &Account, resources: &TransportResources<'_>) -> Self {
        let made = match account.settings.kind {
            AccountKind::Sandbox => Ok(AccountTransport::Sandbox),
            AccountKind::Smtp | AccountKind::Lmtp => {
                smtp_settings(account, resources).map(|settings| AccountTransport::Smtp(Box::new(settings)))
            }
            AccountKind::Ses => ses_settings(account, resources)
                .and_then(|settings| SesClient::new(settings, resources.clock.clone()))
                .map(AccountTransport::Ses),
            AccountKind::Sendgrid
            | AccountKind::Mailgun
            | AccountKind::Postmark
            | AccountKind::Resend
            | AccountKind::Graph
            | AccountKind::Gmail
            | AccountKind::Http => provider_settings(account, resources)
                .and_then(|settings| ProviderClient::new(settings, resources.clock.clone()))
                .map(AccountTransport::Provider),
        };
        made.unwrap_or_else(AccountTransport::Unusable)
    }
}

fn settings_failure(message: impl AsRef<str>) -> SendFailure {
    SendFailure::new(
        "account_settings",
        FailureCategory::Configuration,
        FailurePhase::Connect,
        FailureSeverity::Account,
        message,
    )
}

fn open_secret(account: &Account, resources: &TransportResources<'_>) -> Result<Option<String>, SendFailure> {
    let Some(sealed) = &account.secret else { return Ok(None) };
    resources
        .secret_key
        .open(&account.current_sealing_context(), sealed)
        .map(Some)
        .map_err(|error| settings_failure(error.to_string()))
}

/// The path that the account's connections take.
fn egress_path(account: &Account, resources: &TransportResources<'_>) -> Result<EgressPath, SendFailure> {
    let settings = &account.settings;
    let proxy = match &settings.proxy {
        None => None,
        Some(proxy) => {
            let context = ProxySetting::account_context(&account.tenant, &account.id);
            let password = proxy
                .open_password(resources.secret_key, &context)
                .map_err(|error| settings_failure(error.to_string()))?;
            let proxy = OutboundProxy::with_password(&proxy.url, password.as_deref());
            Some(proxy.map_err(|error| settings_failure(error.to_string()))?)
        }
    };
    Ok(EgressPath { proxy, source: settings.source_address })
}

fn smtp_settings(account: &Account, resources: &TransportResources<'_>) -> Result<SmtpSettings, SendFailure> {
    let settings = &account.settings;
    let host = settings.host.clone().ok_or_else(|| settings_failure("the account has no host"))?;
    let (protocol, port) = match (settings.kind, settings.tls) {
        // The port that Dovecot and others listen on for LMTP.
        (AccountKind::Lmtp, _) => (RelayProtocol::Lmtp, 24),
        (_, RelayTlsMode::Implicit) => (RelayProtocol::Smtp, 465),
        (_, RelayTlsMode::Starttls) => (RelayProtocol::Smtp, 587),
        (_, RelayTlsMode::None | RelayTlsMode::Opportunistic) => (RelayProtocol::Smtp, 25),
    };
    let port = settings.port.unwrap_or(port);
    let credentials = match (&settings.username, &settings.oauth, open_secret(account, resources)?) {
        (Some(username), Some(grant), secrets) => {
            let source = token_source(account, grant, username, secrets, resources)?;
            Some(RelayCredentials::Token { username: username.clone(), source })
        }
        (None, Some(_), _) => {
            return Err(settings_failure("the account signs in with tokens and has no username"));
        }
        (Some(username), None, Some(password)) => {
            Some(RelayCredentials::Password { username: username.clone(), password: password.into() })
        }
        (None, None, _) | (_, None, None) => None,
    };
    Ok(SmtpSettings {
        credentials,
        allow_plaintext_auth: settings.allow_plaintext_auth,
        ehlo_name: resources.ehlo_name.to_owned(),
        deadlines: resources.deadlines,
        extra_roots_pem: settings.ca_pem.clone(),
        guard: resources.guard.clone(),
        protocol,
        egress: egress_path(account, resources)?,
        dial: resources.dial.clone(),
        ..SmtpSettings::new(host, port, settings.tls)
    })
}

/// The source of the tokens of the account's grant.
fn token_source(
    account: &Account,
    grant: &OAuthSettings,
    username: &str,
    secrets: Option<String>,
    resources: &TransportResources<'_>,
) -> Result<TokenSource, SendFailure> {
    // The error is not repeated: it may quote the secret.
    let secrets = serde_json::from_str(secrets.as_deref().unwrap_or("{}"))
        .map_err(|_| settings_failure("the stored secrets of the grant cannot be read: set them again"))?;
    let kind = account.settings.kind;
    let purpose =
        kind.oauth_use().ok_or_else(|| settings_failure("an account of this kind takes no tokens"))?;
    Ok(resources.tokens.source(OwnedGrant {
        owner: OAuthOwner::account(&account.tenant, &account.id),
        settings: grant.clone(),
        secrets,
        username: username.to_owned(),
        purpose,
        extra_roots_pem: account.settings.ca_pem.clone(),
        egress: egress_path(account, resources)?,
    }))
}

fn provider_settings(
    account: &Account,
    resources: &TransportResources<'_>,
) -> Result<ProviderSettings, SendFailure> {
    let settings = &account.settings;
    let credentials = match (settings.kind.secret(), &settings.oauth, open_secret(account, resources)?) {
        (AccountSecret::Grant, Some(grant), secrets) => {
            let username = settings.username.as_deref().unwrap_or_default();
            ProviderCredentials::Token(token_source(account, grant, username, secrets, resources)?)
        }
        (AccountSecret::Grant, None, _) => return Err(settings_failure("the account has no oauth")),
        (_, _, Some(key)) => ProviderCredentials::Key(key.into()),
        (AccountSecret::OptionalApiKey, _, None) => ProviderCredentials::Nobody,
        (_, _, None) => return Err(settings_failure("the account has no api_key")),
    };
    Ok(ProviderSettings {
        account: settings.provider.clone(),
        username: settings.username.clone(),
        extra_roots_pem: settings.ca_pem.clone(),
        guard: resources.guard.clone(),
        egress: egress_path(account, resources)?,
        ..ProviderSettings::new(settings.kind, credentials)
    })
}

fn ses_settings(account: &Account, resources: &TransportResources<'_>) -> Result<SesSettings, SendFailure> {
    let settings = &account.settings;
    let region = settings.ses.region.clone().ok_or_else(|| settings_failure("the account has no region"))?;
    let credentials = match (&settings.ses.access_key_id, open_secret(account, resources)?) {
        (Some(id), Some(secret)) => SesCredentials::new(id.clone(), secret.into(), None),
        // The machine's own key is the operator's, not a tenant's to use.
        (None, _) if !settings.by_tenant => SesCredentials::find(&region)?,
        (None, _) | (_, None) => {
            return Err(settings_failure("the account needs an access_key_id and a secret_access_key"));
        }
    };
    Ok(SesSettings {
        endpoint: settings.ses.endpoint.clone(),
        configuration_set: settings.ses.configuration_set.clone(),
        extra_roots_pem: settings.ca_pem.clone(),
        guard: resources.guard.clone(),
        egress: egress_path(account, resources)?,
        ..SesSettings::new(region, credentials)
    })
}
