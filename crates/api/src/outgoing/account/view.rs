//! An account as JSON, without its secret.

use std::{collections::BTreeMap, net::IpAddr};

use postway_domain::{
    Account, AccountKind, AccountLimits, LimitSpan, RelayTlsMode, Time, destination::DestinationLimit,
    dsn::DsnRequest, limit::LimitBehavior, message::OnDoubt, oauth::OAuthUse,
    provider_account::AccountSecret,
};
use postway_store::record::{LimitUse, OpenCircuit, SuspensionScope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::error::ApiError, setting::oauth::OAuthView, state::AppState};

/// An account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountView {
    /// Its id.
    #[schema(example = "relay-1")]
    id: String,
    /// The tenant it belongs to.
    tenant: String,
    /// `smtp`, `lmtp`, `ses`, a provider (`sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`),
    /// `http` or `sandbox`.
    #[schema(value_type = String, example = "smtp")]
    kind: AccountKind,
    /// The relay's host name or address.
    host: Option<String>,
    /// The relay's port.
    port: Option<u16>,
    /// `starttls`, `implicit`, `none` or `opportunistic`.
    #[schema(value_type = String, example = "starttls")]
    tls: RelayTlsMode,
    /// The user name.
    username: Option<String>,
    /// Whether a password is set; it is never shown.
    password_set: bool,
    /// Instead of a password, how it obtains the tokens it signs in with; without the secrets.
    oauth: Option<OAuthView>,
    /// Whether the password may cross a connection without TLS.
    allow_plaintext_auth: bool,
    /// More certificate authorities to trust.
    ca_pem: Option<String>,
    /// SES: the AWS region.
    region: Option<String>,
    /// SES: the public half of the key.
    access_key_id: Option<String>,
    /// SES: whether the secret half is set; it is never shown.
    secret_access_key_set: bool,
    /// SES: the configuration set that every mail names.
    configuration_set: Option<String>,
    /// SES: the endpoint to call instead of the region's own.
    endpoint: Option<String>,
    /// Providers: whether an API key is set; it is never shown.
    api_key_set: bool,
    /// Providers: the address to call instead of the provider's own; the URL of an `http` account.
    base_url: Option<String>,
    /// Mailgun: the sending domain.
    domain: Option<String>,
    /// Postmark: the message stream.
    message_stream: Option<String>,
    /// The most connections at once, per node.
    max_connections: u32,
    /// The envelope sender, if it is not the mail's From.
    return_path: Option<String>,
    /// The account that takes over while this one's circuit is open or its daily limit is used up.
    fallback: Option<String>,
    /// Whether it sends certified mail (PEC).
    pec: bool,
    /// What to do with mail in doubt that does not say; null if the tenant decides.
    #[schema(value_type = Option<String>, example = "hold")]
    on_doubt: Option<OnDoubt>,
    /// The proxy that its connections go through, without its password.
    proxy: Option<String>,
    /// Whether a password of the proxy is set; it is never shown.
    proxy_password_set: bool,
    /// The address of the server that its connections leave from.
    #[schema(value_type = Option<String>)]
    source_address: Option<IpAddr>,
    /// The reports that it asks relays for, about mail whose sender has no wishes.
    #[schema(value_type = Option<String>, example = "NOTIFY=SUCCESS,FAILURE RET=HDRS")]
    dsn: Option<DsnRequest>,
    /// How much it may send; 0 means no limit.
    limits: AccountLimitsView,
    /// How its daily limit grows while it is new.
    warm_up: Option<WarmUpView>,
    /// Limits per receiving domain and node, if they differ from the built-in ones; `*` applies to all other
    /// domains.
    #[schema(value_type = BTreeMap<String, DestinationView>)]
    destinations: BTreeMap<String, DestinationLimit>,
    /// When to retry.
    retry: RetryDelaysView,
    /// Whether it is suspended.
    suspended: bool,
    /// Its circuit: whether it is paused because of failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    circuit: Option<AccountCircuitView>,
    /// The use of its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<LimitsUsedView>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// How much an account may send in any window of that length. 0: no limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limits)]
pub(crate) struct AccountLimitsView {
    /// In any 60 seconds.
    per_minute: u32,
    /// In any 60 minutes.
    per_hour: u32,
    /// In any 24 hours.
    per_day: u32,
    /// What happens to mail beyond the limit: `defer` or `reject`.
    #[schema(value_type = String, example = "defer")]
    behavior: LimitBehavior,
}

/// A daily limit that grows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WarmUp)]
pub(crate) struct WarmUpView {
    /// When the first day begins.
    #[schema(value_type = String, format = DateTime)]
    pub(super) from: Time,
    /// The limit of the first, second, … day.
    #[schema(example = json!([50, 100, 500]))]
    pub(super) per_day: Vec<u32>,
}

/// Delays between attempts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Retry)]
pub(crate) struct RetryDelaysView {
    /// Seconds to wait after the first, second, … transient failure.
    #[schema(example = json!([1, 5, 30, 120, 600]))]
    delays_s: Vec<u32>,
    /// The random variation of each delay: 0.25 means up to a quarter shorter or longer.
    #[schema(example = 0.25)]
    jitter: f64,
}

/// How much one receiving domain is sent. 0: no limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DestinationLimit)]
pub(crate) struct DestinationView {
    /// The most simultaneous mails.
    connections: u32,
    /// The most mails begun in any second.
    per_second: u32,
}

/// An account's circuit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Circuit)]
pub(crate) struct AccountCircuitView {
    /// `closed`: the account is used. `open`: its mail waits until the account is tried again.
    #[schema(example = "closed")]
    state: &'static str,
    /// The failure's code.
    code: Option<String>,
    /// The text of the failure.
    reason: Option<String>,
    /// When the circuit opened.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Time>,
    /// When the account is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
}

/// What counts against the limits now; null if there is no such limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Used)]
pub(crate) struct LimitsUsedView {
    /// Against `per_minute`.
    minute: Option<i64>,
    /// Against `per_hour`.
    hour: Option<i64>,
    /// Against `per_day`.
    day: Option<i64>,
}

/// A tenant's accounts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountList {
    /// The accounts, by id.
    pub(crate) data: Vec<AccountView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl AccountView {
    /// Its id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn new(account: &Account, suspended: bool) -> Self {
        let settings = account.settings.clone();
        let limits = settings.limits;
        Self {
            id: account.id.to_string(),
            tenant: account.tenant.to_string(),
            kind: settings.kind,
            host: settings.host,
            port: settings.port,
            tls: settings.tls,
            username: settings.username,
            password_set: account.secret.is_some()
                && settings.kind.secret() == AccountSecret::Password
                && settings.oauth.is_none(),
            oauth: settings
                .oauth
                .as_ref()
                .map(|oauth| OAuthView::new(oauth, settings.kind.oauth_use().unwrap_or(OAuthUse::Smtp))),
            allow_plaintext_auth: settings.allow_plaintext_auth,
            ca_pem: settings.ca_pem,
            region: settings.ses.region,
            access_key_id: settings.ses.access_key_id,
            secret_access_key_set: account.secret.is_some() && settings.kind == AccountKind::Ses,
            configuration_set: settings.ses.configuration_set,
            endpoint: settings.ses.endpoint,
            api_key_set: account.secret.is_some() && settings.kind.secret().field() == "api_key",
            base_url: settings.provider.base_url,
            domain: settings.provider.domain,
            message_stream: settings.provider.message_stream,
            max_connections: settings.max_connections,
            return_path: settings.return_path,
            fallback: settings.fallback.map(|id| id.to_string()),
            pec: settings.pec,
            on_doubt: settings.on_doubt,
            proxy_password_set: settings.proxy.as_ref().is_some_and(|proxy| proxy.password.is_some()),
            proxy: settings.proxy.map(|proxy| proxy.url),
            source_address: settings.source_address,
            dsn: settings.dsn,
            limits: AccountLimitsView {
                per_minute: limits.per_minute,
                per_hour: limits.per_hour,
                per_day: limits.per_day,
                behavior: limits.behavior,
            },
            warm_up: settings.warm_up.map(|plan| WarmUpView { from: plan.from, per_day: plan.per_day }),
            destinations: settings.destinations,
            retry: RetryDelaysView { delays_s: settings.retry.delays_s, jitter: settings.retry.jitter },
            suspended,
            circuit: None,
            used: None,
            version: account.version,
            created_at: account.created_at,
            updated_at: account.updated_at,
        }
    }

    /// Adds the circuit.
    pub(super) fn with_circuit(self, circuit: Option<OpenCircuit>) -> Self {
        Self { circuit: Some(circuit.into()), ..self }
    }

    /// The view of an account with its current state.
    pub(crate) async fn with_standing(app: &AppState, account: &Account) -> Result<Self, ApiError> {
        let key = super::key_of(account);
        let now = app.clock.now();
        let limits = account.settings.effective_limits(now);
        let circuit = app.store.circuit(&key).await?;
        let used = match limits.is_unlimited() {
            true => Vec::new(),
            false => app.store.used(&key, &limits, now).await?,
        };
        let view = Self::new(account, is_suspended(app, account).await?);
        Ok(Self { circuit: Some(circuit.into()), used: Some(LimitsUsedView::new(&limits, &used)), ..view })
    }
}

/// Whether this account itself is suspended.
pub(super) async fn is_suspended(app: &AppState, account: &Account) -> Result<bool, ApiError> {
    let scope = SuspensionScope::Account(account.id.clone());
    Ok(app.store.suspensions(&account.tenant).await?.iter().any(|one| one.scope == scope))
}

impl From<Option<OpenCircuit>> for AccountCircuitView {
    fn from(circuit: Option<OpenCircuit>) -> Self {
        match circuit {
            None => Self { state: "closed", code: None, reason: None, since: None, until: None },
            Some(circuit) => Self {
                state: "open",
                code: Some(circuit.code),
                reason: Some(circuit.reason),
                since: Some(circuit.opened_at),
                until: Some(circuit.open_until),
            },
        }
    }
}

impl LimitsUsedView {
    fn new(limits: &AccountLimits, used: &[(LimitSpan, LimitUse)]) -> Self {
        let of = |span| {
            let count = used.iter().find(|(of, _)| *of == span).map_or(0, |(_, used)| used.count);
            limits.over(span).map(|_| count)
        };
        Self { minute: of(LimitSpan::Minute), hour: of(LimitSpan::Hour), day: of(LimitSpan::Day) }
    }
}
