//! What the handlers share.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use postway_domain::{Clock, TenantId, secret::SecretKey};
use postway_intake::{Door, outbox::Desk};
use postway_store::{Roster, Store, StoreError};

use crate::{
    admin::{audit::AuditIds, outbox_token::Pace},
    auth::{AdminKey, KeyRing, session::EndedSessions},
    compat::CompatConfig,
    http::body_budget::Room,
    inbound::mailbox::probe::InboundProbe,
    message::feed::Seats,
    observe::metrics::MetricsAccess,
    outgoing::account::{probe::AccountProbe, unopened::UnopenedSecrets},
    web::unsubscribe::ReaderPace,
};

/// All that the surface needs from the binary.
#[derive(Clone)]
pub struct ApiState {
    /// Where everything is read, and where operators' words are written.
    pub store: Arc<dyn Store>,
    /// The one way in for messages.
    pub door: Arc<Door>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who may do everything.
    pub admin_key: AdminKey,
    /// Encrypts the credentials of accounts.
    pub secret_key: Arc<SecretKey>,
    /// How many stored secrets it does not open, as found by whoever checks.
    pub unopened_secrets: Arc<UnopenedSecrets>,
    /// What `/metrics` shows, and to whom.
    pub metrics: MetricsAccess,
    /// Which nodes are alive.
    pub roster: Arc<Roster>,
    /// Tries accounts and webhooks.
    pub probe: Arc<dyn AccountProbe>,
    /// Where sources of the outbox are asked about.
    pub outbox: Arc<Desk>,
    /// Tries mailboxes and rules.
    pub inbound: Arc<dyn InboundProbe>,
    /// Which doors of other systems are open.
    pub compat: CompatConfig,
    /// How long reported messages of a tenant that says nothing are kept.
    pub report_retention: Duration,
}

/// The state as handlers see it: [`ApiState`] and what this room remembers for itself.
pub(crate) struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) door: Arc<Door>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) admin_key: AdminKey,
    pub(crate) secret_key: Arc<SecretKey>,
    pub(crate) unopened_secrets: Arc<UnopenedSecrets>,
    pub(crate) metrics: MetricsAccess,
    pub(crate) roster: Arc<Roster>,
    pub(crate) probe: Arc<dyn AccountProbe>,
    pub(crate) outbox: Arc<Desk>,
    pub(crate) inbound: Arc<dyn InboundProbe>,
    pub(crate) report_retention: Duration,
    pub(crate) keys: KeyRing,
    pub(crate) ended_sessions: EndedSessions,
    pub(crate) audit_ids: AuditIds,
    pub(crate) seats: Seats,
    pub(crate) token_pace: Pace,
    pub(crate) reader_pace: ReaderPace,
    pub(crate) room: Room,
    tenants: KnownTenants,
}

/// A handler's handle on the state.
pub(crate) type Shared = Arc<App>;

impl App {
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
            outbox,
            inbound,
            report_retention,
            ..
        } = state;
        let (keys, tenants) = (KeyRing::default(), KnownTenants::default());
        let room = Room::for_bodies_of(door.limits().request_bytes_max);
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
            outbox,
            inbound,
            report_retention,
            keys,
            ended_sessions: EndedSessions::default(),
            audit_ids: AuditIds::default(),
            seats: Seats::default(),
            token_pace: Pace::default(),
            reader_pace: ReaderPace::default(),
            room,
            tenants,
        }
    }

    /// Whether there is such a tenant, not deleted; asks the store at most every few seconds for those that exist.
    pub(crate) async fn knows_tenant(&self, id: &TenantId) -> Result<bool, StoreError> {
        let Err(forgotten) = self.tenants.has(id) else { return Ok(true) };
        let exists = self.store.tenant(id).await?.is_some_and(|tenant| tenant.deleted_at.is_none());
        if exists {
            self.tenants.remember(id.clone(), forgotten);
        }
        Ok(exists)
    }

    /// Forgets a deleted tenant and its keys: here it is gone at once, on other nodes within seconds.
    pub(crate) fn forget_tenant(&self, id: &TenantId) {
        self.tenants.forget(id);
        self.keys.forget(id, None);
    }
}

/// Tenants seen in the store a moment ago, so that not every request asks. Holds existing tenants only: its size is
/// bounded by theirs, and a tenant made this second is found at once.
#[derive(Default)]
struct KnownTenants(RwLock<SeenTenants>);

#[derive(Default)]
struct SeenTenants {
    seen_at: HashMap<TenantId, Instant>,
    /// How often one was forgotten: what was read before the last time may be deleted.
    forgotten: u64,
}

impl KnownTenants {
    const FRESH_FOR: Duration = Duration::from_secs(5);

    /// Whether it was seen a moment ago; else how often one was forgotten until now.
    fn has(&self, id: &TenantId) -> Result<(), u64> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = known.seen_at.get(id).is_some_and(|seen| seen.elapsed() < Self::FRESH_FOR);
        if is_fresh { Ok(()) } else { Err(known.forgotten) }
    }

    /// Remembers one that was read after others had been forgotten so often, unless one was since: it may be the one.
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
