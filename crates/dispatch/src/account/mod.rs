//! An account as dispatch uses it.

pub(crate) mod circuit;
pub(crate) mod destinations;
mod job_queue;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use postway_domain::{
    Account, AccountId, AccountKind, AccountLimits, AccountSettings, Clock, Time, TlsMode,
    failure::{Category, Failure, Phase, Severity},
    oauth::{OAuthOwner, OAuthSettings},
    provider_account::AccountSecret,
    secret::SecretKey,
};
use postway_net::Guard;
use postway_oauth::{GrantOf, OAuthTokens, TokenSource};
use postway_store::record::AccountKey;

use self::{circuit::Circuit, destinations::Destinations, job_queue::Queue};
use crate::{
    context::Shared,
    transport::{
        Credentials, Deadlines, Dial, ProviderClient, ProviderCredentials, ProviderSettings, SesClient,
        SesCredentials, SesSettings, SmtpSettings,
    },
};

/// How long a tenant is taken to be what it was.
const TENANT_FRESH_FOR: Duration = Duration::from_secs(1);

/// How this version of an account sends.
pub(crate) enum Route {
    /// Capture.
    Sandbox,
    /// Relay.
    Smtp(Box<SmtpSettings>),
    /// Call.
    Ses(SesClient),
    /// Call a provider.
    Provider(ProviderClient),
    /// Its settings cannot be used; its mail waits.
    Broken(Failure),
}

/// What a route is made with, besides the account itself.
pub(crate) struct Means<'a> {
    pub secret_key: &'a SecretKey,
    pub clock: &'a Arc<dyn Clock>,
    pub tokens: &'a OAuthTokens,
    pub guard: &'a Arc<Guard>,
    pub dial: &'a Arc<dyn Dial>,
    pub ehlo_name: &'a str,
    pub deadlines: Deadlines,
}

/// One version of an account's settings, ready to use.
pub(crate) struct Plan {
    pub version: i64,
    pub connections_max: usize,
    pub settings: AccountSettings,
    pub route: Route,
    /// Who sends in its place while it cannot.
    pub fallback: Option<AccountId>,
}

impl Plan {
    pub fn make(account: &Account, shared: &Shared) -> Self {
        let means = Means {
            secret_key: &shared.secret_key,
            clock: &shared.clock,
            tokens: &shared.tokens,
            guard: &shared.config.guard,
            dial: &shared.config.dial,
            ehlo_name: &shared.config.ehlo_name,
            deadlines: shared.config.deadlines,
        };
        Self {
            version: account.version,
            connections_max: account.settings.max_connections as usize,
            settings: account.settings.clone(),
            route: Route::make(account, &means),
            fallback: account.settings.fallback.clone(),
        }
    }

    /// How much it may send, as of now: a warm-up plan changes by the day.
    pub fn limits(&self, now: Time) -> AccountLimits {
        self.settings.effective_limits(now)
    }
}

/// An account with its couriers' queue. Lives as long as the account; its plan changes with the settings.
pub(crate) struct Post {
    pub key: AccountKey,
    pub queue: Queue,
    pub destinations: Arc<Destinations>,
    /// Connections that couriers hold open.
    connections: Arc<AtomicUsize>,
    plan: Mutex<Arc<Plan>>,
    circuit: Mutex<Circuit>,
    telling: Mutex<Telling>,
    /// Whether its tenant is one for tests.
    of_test_tenant: Mutex<Option<TestTenant>>,
}

/// What is known of an account's tenant, and since when.
#[derive(Clone, Copy, Debug)]
struct TestTenant {
    is_test: bool,
    read_at: Instant,
    generation: u64,
}

/// Where the store's word on the circuit stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Telling {
    /// It says what is so.
    #[default]
    Done,
    /// Somebody is writing it.
    Writing,
    /// It changed while somebody was writing it.
    Again,
}

impl Post {
    /// With what other nodes, or this one before its restart, have found out about the account.
    pub async fn open(key: AccountKey, plan: Plan, of_tenant: Arc<AtomicUsize>, shared: &Shared) -> Self {
        let found = match shared.store.circuit(&key).await {
            Ok(found) => found,
            // Whether the account works is found out by using it, too.
            Err(error) => {
                tracing::warn!(%error, "an account's circuit could not be read");
                None
            }
        };
        let post = Self::new(key, plan, of_tenant);
        if let Some(found) = found {
            post.circuit().adopt(found, shared.now());
        }
        post
    }

    fn new(key: AccountKey, plan: Plan, of_tenant: Arc<AtomicUsize>) -> Self {
        Self {
            key,
            queue: Queue::new(of_tenant),
            destinations: Arc::default(),
            connections: Arc::default(),
            plan: Mutex::new(Arc::new(plan)),
            circuit: Mutex::default(),
            telling: Mutex::default(),
            of_test_tenant: Mutex::default(),
        }
    }

    pub fn plan(&self) -> Arc<Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// New settings deserve a new chance: the circuit closes. Whoever changed them has closed the store's.
    pub fn replace_plan(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        self.circuit().reset();
    }

    pub fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its tenant is one for tests. What changed is known within a moment; what cannot be read is as it was.
    pub async fn is_of_test_tenant(&self, shared: &Shared) -> bool {
        let known = *self.of_test_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        // Before it is read: what changes meanwhile looks changed.
        let generation = shared.store.generation();
        if let Some(known) = known
            && known.generation == generation
            && known.read_at.elapsed() < TENANT_FRESH_FOR
        {
            return known.is_test;
        }
        let is_test = match shared.store.tenant(&self.key.tenant).await {
            Ok(tenant) => tenant.is_some_and(|tenant| tenant.settings.test),
            Err(error) => {
                tracing::warn!(%error, "a tenant could not be read");
                known.is_some_and(|known| known.is_test)
            }
        };
        let read = TestTenant { is_test, read_at: Instant::now(), generation };
        *self.of_test_tenant.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        is_test
    }

    /// Counts a connection until what is returned is dropped.
    pub fn hold_connection(&self) -> Held {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Held(self.connections.clone())
    }

    /// Whether some courier has a connection.
    pub fn is_connected(&self) -> bool {
        self.connections.load(Ordering::Relaxed) > 0
    }

    /// The circuit has changed: returns whether the caller is the one to tell the store.
    pub fn begin_telling(&self) -> bool {
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = *telling == Telling::Done;
        *telling = if begins { Telling::Writing } else { Telling::Again };
        begins
    }

    /// What was to be told is written: returns whether there is more.
    pub fn end_telling(&self) -> bool {
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let more = *telling == Telling::Again;
        *telling = if more { Telling::Writing } else { Telling::Done };
        more
    }
}

/// A connection that counts.
pub(crate) struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Route {
    pub fn make(account: &Account, means: &Means<'_>) -> Self {
        let made = match account.settings.kind {
            AccountKind::Sandbox => Ok(Route::Sandbox),
            AccountKind::Smtp => {
                smtp_settings(account, means).map(|settings| Route::Smtp(Box::new(settings)))
            }
            AccountKind::Ses => ses_settings(account, means)
                .and_then(|settings| SesClient::new(settings, means.clock.clone()))
                .map(Route::Ses),
            AccountKind::Sendgrid
            | AccountKind::Mailgun
            | AccountKind::Postmark
            | AccountKind::Resend
            | AccountKind::Graph
            | AccountKind::Gmail
            | AccountKind::Http => provider_settings(account, means)
                .and_then(|settings| ProviderClient::new(settings, means.clock.clone()))
                .map(Route::Provider),
        };
        made.unwrap_or_else(Route::Broken)
    }
}

fn broken(message: impl AsRef<str>) -> Failure {
    Failure::new("account_settings", Category::Configuration, Phase::Connect, Severity::Account, message)
}

fn secret(account: &Account, means: &Means<'_>) -> Result<Option<String>, Failure> {
    let Some(sealed) = &account.secret else { return Ok(None) };
    means
        .secret_key
        .open(&account.sealed_place(), sealed)
        .map(Some)
        .map_err(|error| broken(error.to_string()))
}

fn smtp_settings(account: &Account, means: &Means<'_>) -> Result<SmtpSettings, Failure> {
    let settings = &account.settings;
    let host = settings.host.clone().ok_or_else(|| broken("the account has no host"))?;
    let port = settings.port.unwrap_or(match settings.tls {
        TlsMode::Implicit => 465,
        TlsMode::Starttls => 587,
        TlsMode::None | TlsMode::Opportunistic => 25,
    });
    let credentials = match (&settings.username, &settings.oauth, secret(account, means)?) {
        (Some(username), Some(grant), secrets) => {
            let source = token_source(account, grant, username, secrets, means)?;
            Some(Credentials::Token { username: username.clone(), source })
        }
        (None, Some(_), _) => return Err(broken("the account signs in with tokens and has no username")),
        (Some(username), None, Some(password)) => {
            Some(Credentials::Password { username: username.clone(), password: password.into() })
        }
        (None, None, _) | (_, None, None) => None,
    };
    Ok(SmtpSettings {
        credentials,
        allow_plaintext_auth: settings.allow_plaintext_auth,
        ehlo_name: means.ehlo_name.to_owned(),
        deadlines: means.deadlines,
        extra_roots_pem: settings.ca_pem.clone(),
        guard: means.guard.clone(),
        dial: means.dial.clone(),
        ..SmtpSettings::new(host, port, settings.tls)
    })
}

/// Where the tokens of the account's grant come from.
fn token_source(
    account: &Account,
    grant: &OAuthSettings,
    username: &str,
    secrets: Option<String>,
    means: &Means<'_>,
) -> Result<TokenSource, Failure> {
    // The error is not repeated: it may quote the secret.
    let secrets = serde_json::from_str(secrets.as_deref().unwrap_or("{}"))
        .map_err(|_| broken("the stored secrets of the grant cannot be read: set them again"))?;
    let kind = account.settings.kind;
    let purpose = kind.oauth_use().ok_or_else(|| broken("an account of this kind takes no tokens"))?;
    Ok(means.tokens.source(GrantOf {
        owner: OAuthOwner::account(&account.tenant, &account.id),
        settings: grant.clone(),
        secrets,
        username: username.to_owned(),
        purpose,
        extra_roots_pem: account.settings.ca_pem.clone(),
    }))
}

fn provider_settings(account: &Account, means: &Means<'_>) -> Result<ProviderSettings, Failure> {
    let settings = &account.settings;
    let credentials = match (settings.kind.secret(), &settings.oauth, secret(account, means)?) {
        (AccountSecret::Grant, Some(grant), secrets) => {
            let username = settings.username.as_deref().unwrap_or_default();
            ProviderCredentials::Token(token_source(account, grant, username, secrets, means)?)
        }
        (AccountSecret::Grant, None, _) => return Err(broken("the account has no oauth")),
        (_, _, Some(key)) => ProviderCredentials::Key(key.into()),
        (AccountSecret::OptionalApiKey, _, None) => ProviderCredentials::Nobody,
        (_, _, None) => return Err(broken("the account has no api_key")),
    };
    Ok(ProviderSettings {
        account: settings.provider.clone(),
        username: settings.username.clone(),
        extra_roots_pem: settings.ca_pem.clone(),
        guard: means.guard.clone(),
        ..ProviderSettings::new(settings.kind, credentials)
    })
}

fn ses_settings(account: &Account, means: &Means<'_>) -> Result<SesSettings, Failure> {
    let settings = &account.settings;
    let region = settings.ses.region.clone().ok_or_else(|| broken("the account has no region"))?;
    let credentials = match (&settings.ses.access_key_id, secret(account, means)?) {
        (Some(id), Some(secret)) => SesCredentials::new(id.clone(), secret.into(), None),
        // The machine's own key is the operator's, not a tenant's to use.
        (None, _) if !settings.by_tenant => SesCredentials::find(&region)?,
        (None, _) | (_, None) => {
            return Err(broken("the account needs an access_key_id and a secret_access_key"));
        }
    };
    Ok(SesSettings {
        endpoint: settings.ses.endpoint.clone(),
        configuration_set: settings.ses.configuration_set.clone(),
        extra_roots_pem: settings.ca_pem.clone(),
        guard: means.guard.clone(),
        ..SesSettings::new(region, credentials)
    })
}
