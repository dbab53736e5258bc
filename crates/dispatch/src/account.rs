//! An account as dispatch uses it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postway_domain::{
    Account, AccountId, AccountKind, AccountLimits, Time,
    failure::{Category, Failure, Phase, Severity},
    retry::RetryPolicy,
};
use postway_store::record::AccountKey;

use crate::{
    Shared,
    circuit::Circuit,
    queue::Queue,
    transport::{Credentials, SmtpSettings},
};

/// How this version of an account sends.
pub(crate) enum Route {
    /// Capture.
    Sandbox,
    /// Relay.
    Smtp(Box<SmtpSettings>),
    /// Its settings cannot be used; its mail waits.
    Broken(Failure),
}

/// One version of an account's settings, ready to use.
pub(crate) struct Plan {
    pub version: i64,
    pub connections_max: usize,
    pub retry: RetryPolicy,
    pub route: Route,
    /// Who sends in its place while it cannot.
    pub fallback: Option<AccountId>,
}

/// An account with its couriers' queue. Lives as long as the account; its plan changes with the settings.
pub(crate) struct Post {
    pub key: AccountKey,
    pub queue: Queue,
    plan: Mutex<Arc<Plan>>,
    circuit: Mutex<Circuit>,
}

impl Post {
    pub fn new(key: AccountKey, plan: Plan) -> Self {
        Self { key, queue: Queue::default(), plan: Mutex::new(Arc::new(plan)), circuit: Mutex::default() }
    }

    /// With what other nodes have found out about the account.
    pub async fn open(key: AccountKey, plan: Plan, _shared: &Shared) -> Self {
        Self::new(key, plan)
    }

    pub fn plan(&self) -> Arc<Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// New settings deserve a new chance: the circuit closes.
    pub fn replace_plan(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        self.circuit().success();
    }

    pub fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plan {
    pub fn make(account: &Account, shared: &Shared) -> Self {
        let settings = &account.settings;
        let route = match settings.kind {
            AccountKind::Sandbox => Route::Sandbox,
            AccountKind::Smtp => match smtp_settings(account, shared) {
                Ok(settings) => Route::Smtp(Box::new(settings)),
                Err(failure) => Route::Broken(failure),
            },
        };
        Self {
            version: account.version,
            connections_max: settings.max_connections as usize,
            retry: settings.retry.clone(),
            route,
            fallback: None,
        }
    }

    /// How much it may send now.
    pub fn limits(&self, _now: Time) -> AccountLimits {
        AccountLimits::default()
    }
}

fn smtp_settings(account: &Account, shared: &Shared) -> Result<SmtpSettings, Failure> {
    let broken = |message: String| {
        Failure::new("account_settings", Category::Authentication, Phase::Connect, Severity::Account, message)
    };
    let settings = &account.settings;
    let host = settings.host.clone().ok_or_else(|| broken("the account has no host".to_owned()))?;
    let port = settings.port.unwrap_or(match settings.tls {
        postway_domain::TlsMode::Implicit => 465,
        postway_domain::TlsMode::Starttls => 587,
        postway_domain::TlsMode::None | postway_domain::TlsMode::Opportunistic => 25,
    });
    let credentials = match (&settings.username, &account.secret) {
        (Some(username), Some(secret)) => {
            let place = Account::secret_place(&account.tenant, &account.id);
            let password =
                shared.secret_key.open(&place, secret).map_err(|error| broken(error.to_string()))?;
            Some(Credentials { username: username.clone(), password: password.into() })
        }
        (None, _) | (_, None) => None,
    };
    Ok(SmtpSettings {
        credentials,
        allow_plaintext_auth: settings.allow_plaintext_auth,
        ehlo_name: shared.config.ehlo_name.clone(),
        deadlines: shared.config.deadlines,
        extra_roots_pem: settings.ca_pem.clone(),
        ..SmtpSettings::new(host, port, settings.tls)
    })
}
