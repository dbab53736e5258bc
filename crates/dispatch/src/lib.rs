//! Dispatch: claims due messages, sends them, and writes the outcomes back.
//!
//! There is one [`Dispatcher`] per process. Its runner claims work for every account that has capacity. Each
//! account has couriers, one per connection, and a courier sends one message after the other. Dispatch
//! exchanges work with the other subsystems only through the store. `README.md` beside this crate follows one
//! attempt from its claim to its outcome.
//!
//! Promises:
//!
//! - A message's final dot is written only after the wire commit is durable.
//! - A message occupies its slot until its outcome is durable.
//! - A panic costs one message, not the process.
//! - A slow relay occupies only its own account's slots.
//! - While the process is isolated, other nodes may take over its leases, so it claims nothing and begins
//!   nothing.

mod account;
mod context;
mod courier;
mod outcome;
pub mod probe;
mod runner;
pub mod transport;

use std::sync::Arc;

use postway_domain::{Clock, secret::SecretKey};
use postway_net::TlsClient;
use postway_oauth::OAuthTokens;
use postway_store::{Store, blob::BlobStorage};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use context::{DispatchConfig, in_flight::InFlightMessages};

use crate::context::{DispatchContext, LARGE_BODIES_MIB, capacity_events::CapacityEvents};

/// A running dispatcher.
pub struct Dispatcher {
    context: Arc<DispatchContext>,
    runner: JoinHandle<()>,
}

impl Dispatcher {
    /// Starts dispatching.
    pub fn start(
        config: DispatchConfig,
        store: Arc<dyn Store>,
        depot: Arc<BlobStorage>,
        clock: Arc<dyn Clock>,
        secret_key: Arc<SecretKey>,
    ) -> Self {
        let tokens = OAuthTokens::new(store.clone(), clock.clone(), secret_key.clone(), config.guard.clone());
        let context = Arc::new(DispatchContext {
            config,
            store,
            depot,
            clock,
            secret_key,
            tokens,
            tls: TlsClient::new(),
            large_bodies: tokio::sync::Semaphore::new(LARGE_BODIES_MIB),
            tasks: TaskTracker::new(),
            in_flight: InFlightMessages::default(),
            stop: CancellationToken::new(),
            capacity_events: CapacityEvents::default(),
        });
        let runner = tokio::spawn(runner::run(context.clone()));
        Self { context, runner }
    }

    /// The messages in flight; the returned handle always shows the current set.
    pub fn in_hand(&self) -> InFlightMessages {
        self.context.in_flight.clone()
    }

    /// Stops claiming, returns messages that have not started, and waits up to [`DispatchConfig::drain`] for
    /// attempts on the wire. Attempts that do not finish by then stay leased; the next start reclaims them.
    /// Returns whether all finished.
    pub async fn drain(self) -> bool {
        self.context.stop.cancel();
        self.context.store.unpark();
        let finished = tokio::time::timeout(self.context.config.drain, async {
            if let Err(error) = self.runner.await {
                tracing::error!(%error, "the dispatcher ended badly");
            }
            self.context.tasks.close();
            self.context.tasks.wait().await;
            self.context.tokens.finish().await;
        });
        finished.await.is_ok()
    }
}
