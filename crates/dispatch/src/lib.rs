//! Dispatch: claims due mail, sends it, writes back what became of it.
//!
//! One [`Dispatcher`] per process. Its runner keeps every account supplied with work from the store; each account has
//! couriers, one per connection, that carry one message after the other. Dispatch meets the rest of the program in the
//! store alone.
//!
//! Promises: a message's final dot is written only after the store has made that permission durable; the slot is held
//! until the outcome is durable; a panic costs one message, not the process; a slow relay takes only its own slots. While
//! the process is isolated, so that other nodes may take its mail over, it claims nothing and begins nothing.

mod account;
mod context;
mod courier;
mod outcome;
pub mod probe;
mod runner;
pub mod transport;

use std::{sync::Arc, time::Duration};

use postway_domain::{Clock, secret::SecretKey};
use postway_net::{Guard, TlsClient};
use postway_oauth::OAuthTokens;
use postway_store::{Roster, Store, blob::Depot};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use context::in_flight::InHand;

use crate::{
    context::{LARGE_BODIES_MIB, Shared, capacity_events::Freed},
    transport::{Deadlines, Dial},
};

/// What dispatch needs to know.
#[derive(Clone)]
pub struct DispatchConfig {
    /// This life of this process among the others: whether they may be taking its work over.
    pub roster: Arc<Roster>,
    /// How we name ourselves to relays.
    pub ehlo_name: String,
    /// Messages in hand at once, over all accounts.
    pub in_flight_max: usize,
    /// How long each phase of a conversation may take.
    pub deadlines: Deadlines,
    /// How long a shutdown waits for what is on the wire.
    pub drain: Duration,
    /// Which addresses accounts may connect to whose target a tenant's own key has named.
    pub guard: Arc<Guard>,
    /// Who connects to relays.
    pub dial: Arc<dyn Dial>,
}

/// A running dispatcher.
pub struct Dispatcher {
    shared: Arc<Shared>,
    runner: JoinHandle<()>,
}

impl Dispatcher {
    /// Starts dispatching.
    pub fn start(
        config: DispatchConfig,
        store: Arc<dyn Store>,
        depot: Arc<Depot>,
        clock: Arc<dyn Clock>,
        secret_key: Arc<SecretKey>,
    ) -> Self {
        let tokens = OAuthTokens::new(store.clone(), clock.clone(), secret_key.clone(), config.guard.clone());
        let shared = Arc::new(Shared {
            config,
            store,
            depot,
            clock,
            secret_key,
            tokens,
            tls: TlsClient::new(),
            large_bodies: tokio::sync::Semaphore::new(LARGE_BODIES_MIB),
            tasks: TaskTracker::new(),
            in_hand: InHand::default(),
            stop: CancellationToken::new(),
            freed: Freed::default(),
        });
        let runner = tokio::spawn(runner::run(shared.clone()));
        Self { shared, runner }
    }

    /// What it has in its hands, as it changes.
    pub fn in_hand(&self) -> InHand {
        self.shared.in_hand.clone()
    }

    /// Stops claiming, gives back what has not started, and waits for what is on the wire, within the bound. What is
    /// not finished by then stays leased and comes back at the next start. Returns whether all was finished.
    pub async fn drain(self) -> bool {
        self.shared.stop.cancel();
        self.shared.store.unpark();
        let finished = tokio::time::timeout(self.shared.config.drain, async {
            if let Err(error) = self.runner.await {
                tracing::error!(%error, "the dispatcher ended badly");
            }
            self.shared.tasks.close();
            self.shared.tasks.wait().await;
            self.shared.tokens.finish().await;
        });
        finished.await.is_ok()
    }
}
