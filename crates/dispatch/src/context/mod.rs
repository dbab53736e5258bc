//! The context that every part of dispatch shares: configuration, store, clocks and keys, the messages in
//! flight, and the signals from couriers to the runner.

pub(crate) mod capacity_events;
pub(crate) mod in_flight;

use std::{sync::Arc, time::Duration};

use postway_domain::{Clock, Time, secret::SecretKey};
use postway_net::{AddressGuard, TlsClient};
use postway_oauth::OAuthTokens;
use postway_store::{LivenessRoster, Store, blob::BlobStorage};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{capacity_events::CapacityEvents, in_flight::InFlightMessages};
use crate::transport::{RelayDialer, SmtpDeadlines};

/// The settings of dispatch.
#[derive(Clone)]
pub struct DispatchConfig {
    /// The membership of this incarnation: says whether other nodes may be taking over its leases.
    pub roster: Arc<LivenessRoster>,
    /// The name that EHLO gives to relays.
    pub ehlo_name: String,
    /// The most messages in flight at once, over all accounts.
    pub in_flight_max: usize,
    /// How long each phase of an SMTP conversation may take.
    pub deadlines: SmtpDeadlines,
    /// How long a shutdown waits for attempts that are on the wire.
    pub drain: Duration,
    /// The addresses that an account may connect to when a tenant's own key set its target.
    pub guard: Arc<AddressGuard>,
    /// Opens connections to relays.
    pub dial: Arc<dyn RelayDialer>,
}

/// The parts that runner, couriers and accounts share.
pub(crate) struct DispatchContext {
    pub config: DispatchConfig,
    pub store: Arc<dyn Store>,
    pub depot: Arc<BlobStorage>,
    pub clock: Arc<dyn Clock>,
    pub secret_key: Arc<SecretKey>,
    pub tokens: OAuthTokens,
    pub tls: TlsClient,
    /// Memory for bodies too large to come with their claim, in MiB.
    pub large_bodies: tokio::sync::Semaphore,
    pub tasks: TaskTracker,
    pub in_flight: InFlightMessages,
    /// Cancelled when the process stops: no new work is taken.
    pub stop: CancellationToken,
    /// Signals that an account has free capacity again.
    pub capacity_events: CapacityEvents,
}

impl DispatchContext {
    /// The current time on both clocks.
    pub fn now(&self) -> ClockReading {
        ClockReading { instant: tokio::time::Instant::now(), time: self.clock.now() }
    }
}

/// The memory budget for bodies that do not come with their claim, in MiB.
pub(crate) const LARGE_BODIES_MIB: usize = 64;

/// One moment on two clocks: the monotonic clock of this process, and the wall clock that all nodes share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    pub instant: Instant,
    pub time: Time,
}
