//! What every part of dispatch shares: the configuration, the store, clocks, keys, and the news between couriers and the runner.

pub(crate) mod capacity_events;
pub(crate) mod in_flight;

use std::sync::Arc;

use postway_domain::{Clock, Time, secret::SecretKey};
use postway_net::TlsClient;
use postway_oauth::OAuthTokens;
use postway_store::{Store, blob::Depot};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{capacity_events::Freed, in_flight::InHand};
use crate::DispatchConfig;

/// What every part of dispatch shares.
pub(crate) struct Shared {
    pub config: DispatchConfig,
    pub store: Arc<dyn Store>,
    pub depot: Arc<Depot>,
    pub clock: Arc<dyn Clock>,
    pub secret_key: Arc<SecretKey>,
    pub tokens: OAuthTokens,
    pub tls: TlsClient,
    /// Memory for bodies too large to come with their claim, in MiB.
    pub large_bodies: tokio::sync::Semaphore,
    pub tasks: TaskTracker,
    pub in_hand: InHand,
    /// Stop taking new work.
    pub stop: CancellationToken,
    /// Told when a courier has finished a message.
    pub freed: Freed,
}

impl Shared {
    /// Now, in the clock of this process and in everybody's.
    pub fn now(&self) -> ClockReading {
        ClockReading { instant: tokio::time::Instant::now(), time: self.clock.now() }
    }
}

/// Memory for large bodies, in MiB.
pub(crate) const LARGE_BODIES_MIB: usize = 64;

/// Now, in both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    pub instant: Instant,
    pub time: Time,
}
