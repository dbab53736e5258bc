//! Provides tokens from memory, the store, or a renewal.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use postway_domain::{
    Clock, Time,
    oauth::{OAuthOwner, OAuthSecrets, OAuthSettings, OAuthUse},
    secret::SecretKey,
};
use postway_net::{
    AddressGuard, EgressPath,
    http::{HttpClient, HttpSettings},
};
use postway_store::Store;
use secrecy::SecretString;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::TaskTracker;

use crate::{
    error::TokenError,
    renewal,
    token::{AccessToken, StoredTokens},
};

/// How long to wait after a failure before the server is called again: many connections may ask at once.
const FAILURE_PAUSE_MIN: Duration = Duration::from_secs(3);
/// The longest wait that a server may ask for.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(5 * 60);

/// The tokens of all grants of this process.
#[derive(Clone)]
pub struct OAuthTokens {
    pub(crate) shared: Arc<SharedTokens>,
}

/// State that all sources of a process share.
pub(crate) struct SharedTokens {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub secret_key: Arc<SecretKey>,
    guard: Arc<AddressGuard>,
    known: Mutex<BTreeMap<OAuthOwner, Arc<tokio::sync::Mutex<KnownTokens>>>>,
    /// Running renewals. They finish even if their caller is gone.
    renewals: TaskTracker,
}

/// What this process knows about one grant's tokens. A renewal locks it.
#[derive(Default)]
pub(crate) struct KnownTokens {
    fingerprint: String,
    token: Option<AccessToken>,
    failure: Option<(Time, TokenError)>,
    /// Tokens that could not be stored yet.
    pub unsaved: Option<StoredTokens>,
}

/// A grant and its owner.
#[derive(Clone)]
pub struct OwnedGrant {
    /// The owner: an account or a mailbox.
    pub owner: OAuthOwner,
    /// The grant.
    pub settings: OAuthSettings,
    /// Its secrets.
    pub secrets: OAuthSecrets,
    /// The user name that signs in.
    pub username: String,
    /// The protocol that the token is for.
    pub purpose: OAuthUse,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
    /// The path of the calls that fetch tokens: that of the account's other connections.
    pub egress: EgressPath,
}

/// Provides the tokens of one grant. Cheap to clone.
#[derive(Clone)]
pub struct TokenSource(Arc<TokenOrigin>);

enum TokenOrigin {
    /// A fixed token from the settings, which is never renewed.
    Given(AccessToken),
    Grant(GrantSource),
}

/// A grant, with everything needed to renew its tokens.
#[derive(Clone)]
pub(crate) struct GrantSource {
    pub shared: Arc<SharedTokens>,
    pub grant: Arc<OwnedGrant>,
    pub fingerprint: Arc<str>,
    pub consent: Arc<str>,
    pub http: HttpClient,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource(hidden)")
    }
}

impl OAuthTokens {
    /// Tokens that are stored in this store and requested through this guard.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        secret_key: Arc<SecretKey>,
        guard: Arc<AddressGuard>,
    ) -> Self {
        let (known, renewals) = (Mutex::default(), TaskTracker::new());
        Self { shared: Arc::new(SharedTokens { store, clock, secret_key, guard, known, renewals }) }
    }

    /// The token source of a grant.
    pub fn source(&self, grant: OwnedGrant) -> TokenSource {
        let extra_roots_pem = grant.extra_roots_pem.clone();
        let egress = grant.egress.clone();
        let http_settings = HttpSettings { extra_roots_pem, egress, ..HttpSettings::default() };
        TokenSource(Arc::new(TokenOrigin::Grant(GrantSource {
            shared: self.shared.clone(),
            fingerprint: grant.settings.fingerprint(&grant.secrets).into(),
            consent: grant.settings.consent(&grant.secrets).into(),
            http: HttpClient::new(self.shared.guard.clone(), http_settings),
            grant: Arc::new(grant),
        })))
    }

    /// Waits for running renewals: new tokens must be stored before the store is closed. Each renewal is
    /// bounded, so this is, too.
    pub async fn finish(&self) {
        self.shared.renewals.close();
        self.shared.renewals.wait().await;
    }
}

impl TokenSource {
    /// A source of a fixed token, which is never renewed.
    pub fn given(token: SecretString) -> Self {
        Self(Arc::new(TokenOrigin::Given(AccessToken::given(token))))
    }

    /// A token that is valid now.
    pub async fn token(&self) -> Result<AccessToken, TokenError> {
        match &*self.0 {
            TokenOrigin::Given(token) => Ok(token.clone()),
            TokenOrigin::Grant(source) => source.token(None).await,
        }
    }

    /// Another token than the refused one; `None` if another would be refused as well, because this one is
    /// new.
    pub async fn another(&self, refused: &AccessToken) -> Result<Option<AccessToken>, TokenError> {
        match &*self.0 {
            TokenOrigin::Given(_) => Ok(None),
            TokenOrigin::Grant(source) if refused.is_young(source.shared.clock.now()) => Ok(None),
            TokenOrigin::Grant(source) => source.token(Some(refused)).await.map(Some),
        }
    }

    /// How long a token is still valid.
    pub fn left(&self, token: &AccessToken) -> Duration {
        match &*self.0 {
            TokenOrigin::Given(_) => Duration::MAX,
            TokenOrigin::Grant(source) => token.left(source.shared.clock.now()),
        }
    }
}

impl GrantSource {
    async fn token(&self, refused: Option<&AccessToken>) -> Result<AccessToken, TokenError> {
        let known = {
            let mut all = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(self.grant.owner.clone()).or_default().clone()
        };
        let mut known = known.lock_owned().await;
        if *known.fingerprint != *self.fingerprint {
            *known = KnownTokens { fingerprint: self.fingerprint.to_string(), ..KnownTokens::default() };
        }
        let now = self.shared.clock.now();
        if let Some(token) = known.unless_refused(refused).filter(|token| token.is_fresh(now)) {
            return Ok(token.clone());
        }
        if let Some((until, failure)) = &known.failure
            && now < *until
        {
            return known.fall_back(refused, failure.clone(), now);
        }
        // In a separate task: if the caller is cancelled, a new refresh token must not be lost.
        let renewal = self.clone().renew(known, refused.cloned());
        let renewed = self.shared.renewals.spawn(renewal).await;
        renewed.unwrap_or_else(|_| Err(TokenError::unavailable("the renewal of the token broke off")))
    }

    async fn renew(
        self,
        mut known: OwnedMutexGuard<KnownTokens>,
        refused: Option<AccessToken>,
    ) -> Result<AccessToken, TokenError> {
        let renewed = renewal::renew(&self, &mut known, refused.as_ref()).await;
        let now = self.shared.clock.now();
        match renewed {
            Ok(token) => {
                known.failure = None;
                known.token = Some(token.clone());
                Ok(token)
            }
            Err(error) => {
                let owner = &self.grant.owner;
                tracing::warn!(tenant = %owner.tenant, owner = owner.name, %error, "a token could not be renewed");
                let stands =
                    error.retry_after.unwrap_or_default().clamp(FAILURE_PAUSE_MIN, FAILURE_PAUSE_MAX);
                known.failure = Some((now.plus(stands), error.clone()));
                known.fall_back(refused.as_ref(), error, now)
            }
        }
    }
}

impl KnownTokens {
    /// The known token, unless it is the refused one.
    fn unless_refused(&self, refused: Option<&AccessToken>) -> Option<&AccessToken> {
        self.token.as_ref().filter(|token| refused.is_none_or(|refused| !token.is(refused)))
    }

    /// The old token if it is still valid, else the error.
    fn fall_back(
        &self,
        refused: Option<&AccessToken>,
        error: TokenError,
        now: Time,
    ) -> Result<AccessToken, TokenError> {
        let still_good = self.unless_refused(refused).filter(|token| !token.is_expired(now));
        still_good.cloned().ok_or(error)
    }
}
