//! An account as JSON, without its secret.

use std::collections::BTreeMap;

use postway_domain::{
    Account, AccountKind, AccountLimits, Span, Time, TlsMode, destination::DestinationLimit,
    limit::LimitBehavior, message::OnDoubt, oauth::OAuthUse,
};
use postway_store::record::{Circuit, SuspensionScope, Used};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::error::ApiError, setting::oauth::OAuthView, state::App};

/// An account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountView {
    /// Its id.
    #[schema(example = "relay-1")]
    id: String,
    /// Whose it is.
    tenant: String,
    /// `smtp`, `ses`, a provider (`sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`), `http` or `sandbox`.
    #[schema(value_type = String, example = "smtp")]
    kind: AccountKind,
    /// The relay's host name or address.
    host: Option<String>,
    /// The relay's port.
    port: Option<u16>,
    /// `starttls`, `implicit`, `none` or `opportunistic`.
    #[schema(value_type = String, example = "starttls")]
    tls: TlsMode,
    /// Who signs in.
    username: Option<String>,
    /// Whether there is a password; it is never shown.
    password_set: bool,
    /// How it comes by the tokens that it signs in with, in the place of a password; without its secrets.
    oauth: Option<OAuthView>,
    /// Whether the password may cross a connection without TLS.
    allow_plaintext_auth: bool,
    /// More certificate authorities to trust.
    ca_pem: Option<String>,
    /// SES: the AWS region.
    region: Option<String>,
    /// SES: the public half of the key.
    access_key_id: Option<String>,
    /// SES: whether there is a secret half; it is never shown.
    secret_access_key_set: bool,
    /// SES: the configuration set that every mail names.
    configuration_set: Option<String>,
    /// SES: where to call instead of the region's own endpoint.
    endpoint: Option<String>,
    /// Providers: whether there is an API key; it is never shown.
    api_key_set: bool,
    /// Providers: where to call instead of the provider's own address; the address of an `http` account.
    base_url: Option<String>,
    /// Mailgun: the sending domain.
    domain: Option<String>,
    /// Postmark: the message stream.
    message_stream: Option<String>,
    /// The most connections at once, per node.
    max_connections: u32,
    /// The envelope sender, when it is not the mail's From.
    return_path: Option<String>,
    /// The account that sends its mail while its circuit is open or its day is used up.
    fallback: Option<String>,
    /// Certified mail.
    pec: bool,
    /// What becomes of mail in doubt that says nothing of it; null where the tenant decides.
    #[schema(value_type = Option<String>, example = "hold")]
    on_doubt: Option<OnDoubt>,
    /// How much it may send; 0 means no limit.
    limits: LimitsView,
    /// How its daily limit grows while it is new.
    warm_up: Option<WarmUpView>,
    /// How much receiving domains are sent, per node, where it is not what is built in; `*` stands for all others.
    #[schema(value_type = BTreeMap<String, DestinationView>)]
    destinations: BTreeMap<String, DestinationLimit>,
    /// When to try again.
    retry: RetryView,
    /// Whether somebody has suspended it.
    suspended: bool,
    /// Whether it is left alone because it was at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    circuit: Option<CircuitView>,
    /// What it has used of its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<UsedView>,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// How much an account may send, in any window of that length. 0: no limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limits)]
pub(crate) struct LimitsView {
    /// In any sixty seconds.
    per_minute: u32,
    /// In any sixty minutes.
    per_hour: u32,
    /// In any twenty-four hours.
    per_day: u32,
    /// What happens to mail beyond: `defer` or `reject`.
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
    /// How much may be sent on the first, second, … day.
    #[schema(example = json!([50, 100, 500]))]
    pub(super) per_day: Vec<u32>,
}

/// Delays between attempts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Retry)]
pub(crate) struct RetryView {
    /// Seconds to wait after the first, second, … transient failure.
    #[schema(example = json!([1, 5, 30, 120, 600]))]
    delays_s: Vec<u32>,
    /// How much chance moves each delay: 0.25 means up to a quarter shorter or longer.
    #[schema(example = 0.25)]
    jitter: f64,
}

/// How much one receiving domain is sent. 0: no limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DestinationLimit)]
pub(crate) struct DestinationView {
    /// Mails on the wire at once.
    connections: u32,
    /// Mails begun in any second.
    per_second: u32,
}

/// Whether an account is left alone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Circuit)]
pub(crate) struct CircuitView {
    /// `closed`: it is used. `open`: its mail waits until it is tried again.
    #[schema(example = "closed")]
    state: &'static str,
    /// The failure's code.
    code: Option<String>,
    /// What was said.
    reason: Option<String>,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Time>,
    /// When it is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
}

/// What counts against the limits now; null where there is none.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Used)]
pub(crate) struct UsedView {
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
    /// By id.
    pub(crate) data: Vec<AccountView>,
    /// Give this as `cursor` for the next; null at the end.
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
                && settings.kind == AccountKind::Smtp
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
            limits: LimitsView {
                per_minute: limits.per_minute,
                per_hour: limits.per_hour,
                per_day: limits.per_day,
                behavior: limits.behavior,
            },
            warm_up: settings.warm_up.map(|plan| WarmUpView { from: plan.from, per_day: plan.per_day }),
            destinations: settings.destinations,
            retry: RetryView { delays_s: settings.retry.delays_s, jitter: settings.retry.jitter },
            suspended,
            circuit: None,
            used: None,
            version: account.version,
            created_at: account.created_at,
            updated_at: account.updated_at,
        }
    }

    /// With whether it is left alone.
    pub(super) fn with_circuit(self, circuit: Option<Circuit>) -> Self {
        Self { circuit: Some(circuit.into()), ..self }
    }

    /// With how it stands at the moment.
    pub(crate) async fn with_standing(app: &App, account: &Account) -> Result<Self, ApiError> {
        let key = super::key_of(account);
        let now = app.clock.now();
        let limits = account.settings.effective_limits(now);
        let circuit = app.store.circuit(&key).await?;
        let used = match limits.is_unlimited() {
            true => Vec::new(),
            false => app.store.used(&key, &limits, now).await?,
        };
        let view = Self::new(account, is_suspended(app, account).await?);
        Ok(Self { circuit: Some(circuit.into()), used: Some(UsedView::new(&limits, &used)), ..view })
    }
}

/// Whether somebody has suspended this very account.
pub(super) async fn is_suspended(app: &App, account: &Account) -> Result<bool, ApiError> {
    let scope = SuspensionScope::Account(account.id.clone());
    Ok(app.store.suspensions(&account.tenant).await?.iter().any(|one| one.scope == scope))
}

impl From<Option<Circuit>> for CircuitView {
    fn from(circuit: Option<Circuit>) -> Self {
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

impl UsedView {
    fn new(limits: &AccountLimits, used: &[(Span, Used)]) -> Self {
        let of = |span| {
            let count = used.iter().find(|(of, _)| *of == span).map_or(0, |(_, used)| used.count);
            limits.over(span).map(|_| count)
        };
        Self { minute: of(Span::Minute), hour: of(Span::Hour), day: of(Span::Day) }
    }
}
