//! Where a token comes from: memory, the store, or a renewal.

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
    Guard,
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

/// For how long a failure stands before the server is asked again: many connections may ask at once.
const FAILURE_PAUSE_MIN: Duration = Duration::from_secs(3);
/// The longest wait that a server may ask for.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(5 * 60);

/// Gives tokens to whoever signs in, and remembers them.
#[derive(Clone)]
pub struct OAuthTokens {
    pub(crate) shared: Arc<SharedTokens>,
}

/// What all sources of a process share.
pub(crate) struct SharedTokens {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub secret_key: Arc<SecretKey>,
    guard: Arc<Guard>,
    known: Mutex<BTreeMap<OAuthOwner, Arc<tokio::sync::Mutex<KnownTokens>>>>,
    /// Renewals under way. They end by themselves, also where nobody waits for them any more.
    renewals: TaskTracker,
}

/// What this process knows of one grant's tokens. Its lock is held by whoever renews them.
#[derive(Default)]
pub(crate) struct KnownTokens {
    fingerprint: String,
    token: Option<AccessToken>,
    failure: Option<(Time, TokenError)>,
    /// Tokens that could not be stored yet.
    pub unsaved: Option<StoredTokens>,
}

/// A grant and whose it is.
#[derive(Clone)]
pub struct GrantOf {
    /// Whose it is.
    pub owner: OAuthOwner,
    /// The grant.
    pub settings: OAuthSettings,
    /// Its secrets.
    pub secrets: OAuthSecrets,
    /// Who signs in.
    pub username: String,
    /// What for.
    pub purpose: OAuthUse,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
}

/// Gives the tokens of one grant. Cheap to clone.
#[derive(Clone)]
pub struct TokenSource(Arc<TokenOrigin>);

enum TokenOrigin {
    /// A token that a person has given: nothing renews it.
    Given(AccessToken),
    Grant(GrantSource),
}

/// A grant, with what is needed to renew its tokens.
#[derive(Clone)]
pub(crate) struct GrantSource {
    pub shared: Arc<SharedTokens>,
    pub grant: Arc<GrantOf>,
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
    /// Tokens that are kept in this store, and asked for behind this guard.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        secret_key: Arc<SecretKey>,
        guard: Arc<Guard>,
    ) -> Self {
        let (known, renewals) = (Mutex::default(), TaskTracker::new());
        Self { shared: Arc::new(SharedTokens { store, clock, secret_key, guard, known, renewals }) }
    }

    /// The tokens of a grant.
    pub fn source(&self, grant: GrantOf) -> TokenSource {
        let extra_roots_pem = grant.extra_roots_pem.clone();
        let http_settings = HttpSettings { extra_roots_pem, ..HttpSettings::default() };
        TokenSource(Arc::new(TokenOrigin::Grant(GrantSource {
            shared: self.shared.clone(),
            fingerprint: grant.settings.fingerprint(&grant.secrets).into(),
            consent: grant.settings.consent(&grant.secrets).into(),
            http: HttpClient::new(self.shared.guard.clone(), http_settings),
            grant: Arc::new(grant),
        })))
    }

    /// Waits for renewals that are under way: what a server has given must be stored before the store is closed. Each is
    /// bounded, so this is.
    pub async fn finish(&self) {
        self.shared.renewals.close();
        self.shared.renewals.wait().await;
    }
}

impl TokenSource {
    /// A token that a person has given. Nothing renews it.
    pub fn given(token: SecretString) -> Self {
        Self(Arc::new(TokenOrigin::Given(AccessToken::given(token))))
    }

    /// A token that is good now.
    pub async fn token(&self) -> Result<AccessToken, TokenError> {
        match &*self.0 {
            TokenOrigin::Given(token) => Ok(token.clone()),
            TokenOrigin::Grant(source) => source.token(None).await,
        }
    }

    /// Another token than the one that was refused; `None` where another would be refused as well, because this one is new.
    pub async fn another(&self, refused: &AccessToken) -> Result<Option<AccessToken>, TokenError> {
        match &*self.0 {
            TokenOrigin::Given(_) => Ok(None),
            TokenOrigin::Grant(source) if refused.is_young(source.shared.clock.now()) => Ok(None),
            TokenOrigin::Grant(source) => source.token(Some(refused)).await.map(Some),
        }
    }

    /// How long a token is good for, from now.
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
        // In a task of its own: a caller that goes away must not take with it a refresh token that was just given.
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
    /// The token that is known, unless it is the one that was refused.
    fn unless_refused(&self, refused: Option<&AccessToken>) -> Option<&AccessToken> {
        self.token.as_ref().filter(|token| refused.is_none_or(|refused| !token.is(refused)))
    }

    /// Where no token can be had, the old one is good until its end.
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
