//! An account as dispatch uses it: its current configuration, its circuit, its queue of claimed messages, and
//! the meters of the domains it sends to.
//!
//! An [`AccountSender`] lives as long as the account; `config.rs` is rebuilt whenever the settings change.

pub(crate) mod circuit;
pub(crate) mod config;
pub(crate) mod destinations;
pub(crate) mod job_queue;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use postway_store::record::AccountKey;

use self::{
    circuit::AccountCircuit, config::AccountConfig, destinations::DestinationMeters,
    job_queue::AccountJobQueue,
};
use crate::context::DispatchContext;

/// How long the cached answer to "is this a test tenant?" is trusted.
const TENANT_FRESH_FOR: Duration = Duration::from_secs(1);

/// An account with the state that its couriers share. It lives as long as the account; its configuration is
/// replaced when the settings change.
pub(crate) struct AccountSender {
    pub key: AccountKey,
    pub queue: AccountJobQueue,
    pub destinations: Arc<DestinationMeters>,
    /// How many connections the couriers have open.
    connections: Arc<AtomicUsize>,
    config: Mutex<Arc<AccountConfig>>,
    circuit: Mutex<AccountCircuit>,
    circuit_write: Mutex<CircuitWrite>,
    /// Whether the tenant is a test tenant, as last read.
    test_flag: Mutex<Option<CachedTestFlag>>,
}

/// A cached answer to whether the account's tenant is a test tenant.
#[derive(Clone, Copy, Debug)]
struct CachedTestFlag {
    is_test: bool,
    read_at: Instant,
    generation: u64,
}

/// Whether the store's copy of the circuit is current.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CircuitWrite {
    /// The store has the latest state.
    #[default]
    Current,
    /// A task is writing it.
    Writing,
    /// The circuit changed while a task was writing it, so that task writes once more.
    Stale,
}

impl AccountSender {
    /// Opens the sender with the circuit that another node, or this one before a restart, has stored.
    pub async fn open(
        key: AccountKey,
        config: AccountConfig,
        tenant_in_flight: Arc<AtomicUsize>,
        context: &DispatchContext,
    ) -> Self {
        let stored = match context.store.circuit(&key).await {
            Ok(stored) => stored,
            // Without the stored circuit, the first attempt finds out whether the account works.
            Err(error) => {
                tracing::warn!(%error, "an account's circuit could not be read");
                None
            }
        };
        let sender = Self::new(key, config, tenant_in_flight);
        if let Some(stored) = stored {
            sender.circuit().adopt(stored, context.now());
        }
        sender
    }

    fn new(key: AccountKey, config: AccountConfig, tenant_in_flight: Arc<AtomicUsize>) -> Self {
        Self {
            key,
            queue: AccountJobQueue::new(tenant_in_flight),
            destinations: Arc::default(),
            connections: Arc::default(),
            config: Mutex::new(Arc::new(config)),
            circuit: Mutex::default(),
            circuit_write: Mutex::default(),
            test_flag: Mutex::default(),
        }
    }

    pub fn config(&self) -> Arc<AccountConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration and closes the circuit, since the new settings may work. The change of
    /// settings has already closed the store's copy.
    pub fn replace_config(&self, config: AccountConfig) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        self.circuit().reset();
    }

    pub fn circuit(&self) -> MutexGuard<'_, AccountCircuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the account belongs to a test tenant. The answer is cached for [`TENANT_FRESH_FOR`]; if the
    /// tenant cannot be read, the last answer stays.
    pub async fn belongs_to_test_tenant(&self, context: &DispatchContext) -> bool {
        let known = *self.test_flag.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken before the read, so that a change during the read makes the cached answer look old.
        let generation = context.store.generation();
        if let Some(known) = known
            && known.generation == generation
            && known.read_at.elapsed() < TENANT_FRESH_FOR
        {
            return known.is_test;
        }
        let is_test = match context.store.tenant(&self.key.tenant).await {
            Ok(tenant) => tenant.is_some_and(|tenant| tenant.settings.test),
            Err(error) => {
                tracing::warn!(%error, "a tenant could not be read");
                known.is_some_and(|known| known.is_test)
            }
        };
        let read = CachedTestFlag { is_test, read_at: Instant::now(), generation };
        *self.test_flag.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        is_test
    }

    /// Counts a connection until the returned value is dropped.
    pub fn count_connection(&self) -> ConnectionCount {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount(self.connections.clone())
    }

    /// Whether any courier has a connection open.
    pub fn is_connected(&self) -> bool {
        self.connections.load(Ordering::Relaxed) > 0
    }

    /// Notes that the circuit changed. Returns whether the caller must write it to the store.
    pub fn begin_circuit_write(&self) -> bool {
        let mut circuit_write = self.circuit_write.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = *circuit_write == CircuitWrite::Current;
        *circuit_write = if begins { CircuitWrite::Writing } else { CircuitWrite::Stale };
        begins
    }

    /// Notes that the circuit was written. Returns whether it must be written once more.
    pub fn end_circuit_write(&self) -> bool {
        let mut circuit_write = self.circuit_write.lock().unwrap_or_else(PoisonError::into_inner);
        let more = *circuit_write == CircuitWrite::Stale;
        *circuit_write = if more { CircuitWrite::Writing } else { CircuitWrite::Current };
        more
    }
}

/// Counts one open connection until it is dropped.
pub(crate) struct ConnectionCount(Arc<AtomicUsize>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
