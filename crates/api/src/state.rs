//! The state that all handlers share.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{Clock, TenantId, secret::SecretKey};
use postway_intake::{Door, outbox::OutboxStatusApi};
use postway_store::{LivenessRoster, Store, StoreError};

use crate::{
    admin::{audit::AuditIdSource, outbox_token::VerifyRateLimit},
    auth::{
        AdminKey, KeyCache, ProviderSignIn,
        person::{UserSessionCache, pace::SignInPace, password::PasswordCheck},
        session::EndedSessions,
    },
    compat::CompatConfig,
    http::body_budget::BodyBudget,
    inbound::mailbox::probe::InboundProbe,
    limit::{DoorLimits, RequestLimits},
    message::feed::WaitingReaders,
    observe::metrics::MetricsAccess,
    outgoing::{
        account::{probe::AccountProbe, unopened::UnopenedSecrets},
        domain::check::DomainChecker,
    },
    web::{hook::HookThrottle, unsubscribe::ReaderRateLimit},
};

/// What the binary hands over to build the API.
#[derive(Clone)]
pub struct ApiState {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The intake, the only way in for messages.
    pub door: Arc<Door>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The key that may do everything.
    pub admin_key: AdminKey,
    /// The key that encrypts stored credentials.
    pub secret_key: Arc<SecretKey>,
    /// How many stored secrets `secret_key` does not open, as the last check found.
    pub unopened_secrets: Arc<UnopenedSecrets>,
    /// What `/metrics` shows, and to whom.
    pub metrics: MetricsAccess,
    /// Which nodes are alive.
    pub roster: Arc<LivenessRoster>,
    /// Tests accounts and webhooks.
    pub probe: Arc<dyn AccountProbe>,
    /// Checks the DNS of domains.
    pub domains: DomainChecker,
    /// Answers questions about outbox sources.
    pub outbox: Arc<OutboxStatusApi>,
    /// Tests mailboxes and rules.
    pub inbound: Arc<dyn InboundProbe>,
    /// Which compatibility APIs are enabled.
    pub compat: CompatConfig,
    /// The provider at which people sign in, if there is one.
    pub provider: Option<Arc<ProviderSignIn>>,
    /// How long reported messages are kept when their tenant sets nothing.
    pub report_retention: Duration,
    /// Whether programs of this machine need no key, as in `postway dev`.
    pub opens_to_this_machine: bool,
    /// What keys and addresses may ask for.
    pub limits: RequestLimits,
}

/// The state as handlers see it: [`ApiState`] and the caches of this crate.
pub(crate) struct AppState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) door: Arc<Door>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) admin_key: AdminKey,
    pub(crate) secret_key: Arc<SecretKey>,
    pub(crate) unopened_secrets: Arc<UnopenedSecrets>,
    pub(crate) metrics: MetricsAccess,
    pub(crate) roster: Arc<LivenessRoster>,
    pub(crate) probe: Arc<dyn AccountProbe>,
    pub(crate) domains: DomainChecker,
    pub(crate) outbox: Arc<OutboxStatusApi>,
    pub(crate) inbound: Arc<dyn InboundProbe>,
    pub(crate) provider: Option<Arc<ProviderSignIn>>,
    pub(crate) report_retention: Duration,
    pub(crate) opens_to_this_machine: bool,
    pub(crate) key_cache: KeyCache,
    pub(crate) ended_sessions: EndedSessions,
    pub(crate) user_sessions: UserSessionCache,
    pub(crate) password_check: PasswordCheck,
    pub(crate) sign_in_pace: SignInPace,
    pub(crate) audit_ids: AuditIdSource,
    pub(crate) waiting_readers: WaitingReaders,
    pub(crate) verify_rate_limit: VerifyRateLimit,
    pub(crate) reader_rate_limit: ReaderRateLimit,
    pub(crate) hook_throttle: HookThrottle,
    pub(crate) body_budget: BodyBudget,
    pub(crate) door_limits: Arc<DoorLimits>,
    tenants: KnownTenants,
}

/// A handler's handle on the state.
pub(crate) type SharedState = Arc<AppState>;

impl AppState {
    pub(crate) fn new(state: ApiState) -> Self {
        let ApiState {
            store,
            door,
            clock,
            admin_key,
            secret_key,
            unopened_secrets,
            metrics,
            roster,
            probe,
            domains,
            outbox,
            inbound,
            provider,
            report_retention,
            opens_to_this_machine,
            limits,
            ..
        } = state;
        let (key_cache, tenants) = (KeyCache::default(), KnownTenants::default());
        let body_budget = BodyBudget::for_bodies_of(door.limits().request_bytes_max);
        let door_limits = Arc::new(DoorLimits::new(limits, roster.clone()));
        Self {
            store,
            door,
            clock,
            admin_key,
            secret_key,
            unopened_secrets,
            metrics,
            roster,
            probe,
            domains,
            outbox,
            inbound,
            provider,
            report_retention,
            opens_to_this_machine,
            key_cache,
            ended_sessions: EndedSessions::default(),
            user_sessions: UserSessionCache::default(),
            password_check: PasswordCheck::default(),
            sign_in_pace: SignInPace::default(),
            audit_ids: AuditIdSource::default(),
            waiting_readers: WaitingReaders::default(),
            verify_rate_limit: VerifyRateLimit::default(),
            reader_rate_limit: ReaderRateLimit::default(),
            hook_throttle: HookThrottle::default(),
            body_budget,
            door_limits,
            tenants,
        }
    }

    /// Whether the tenant exists and is not deleted. The store is asked for an existing tenant at most
    /// every few seconds.
    pub(crate) async fn knows_tenant(&self, id: &TenantId) -> Result<bool, StoreError> {
        let Err(forgotten) = self.tenants.check_fresh(id) else { return Ok(true) };
        let exists = self.store.tenant(id).await?.is_some_and(|tenant| tenant.deleted_at.is_none());
        if exists {
            self.tenants.remember(id.clone(), forgotten);
        }
        Ok(exists)
    }

    /// Removes a deleted tenant and its keys from the caches. It is gone here at once, on other nodes within
    /// seconds.
    pub(crate) fn forget_tenant(&self, id: &TenantId) {
        self.tenants.forget(id);
        self.key_cache.forget(id, None);
    }
}

/// Tenants that the store knew a moment ago, so that not every request asks it. Only existing tenants are in
/// it, so their number bounds its size, and a tenant created this second is found at once.
#[derive(Default)]
struct KnownTenants(RwLock<SeenTenants>);

#[derive(Default)]
struct SeenTenants {
    seen_at: HashMap<TenantId, Instant>,
    /// How many tenants were removed so far: what was read before the latest removal may be deleted by now.
    forgotten: u64,
}

impl KnownTenants {
    const FRESH_FOR: Duration = Duration::from_secs(5);

    /// Succeeds if the tenant was seen a moment ago; otherwise returns how many tenants were removed so far.
    fn check_fresh(&self, id: &TenantId) -> Result<(), u64> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = known.seen_at.get(id).is_some_and(|seen| seen.elapsed() < Self::FRESH_FOR);
        if is_fresh { Ok(()) } else { Err(known.forgotten) }
    }

    /// Remembers a tenant that was read when `forgotten` tenants had been removed, unless another one was
    /// removed since: it may be this one.
    fn remember(&self, id: TenantId, forgotten: u64) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.forgotten == forgotten {
            known.seen_at.insert(id, Instant::now());
        }
    }

    fn forget(&self, id: &TenantId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.seen_at.remove(id);
        known.forgotten += 1;
    }
}
