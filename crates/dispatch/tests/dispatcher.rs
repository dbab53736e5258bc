//! The complete dispatcher on the store in memory, with relays over pipes and a simulated clock.
//!
//! One binary, one file per theme; this file has the shared parts.

#[path = "dispatcher/destinations.rs"]
mod destinations;
#[path = "dispatcher/isolation.rs"]
mod isolation;
#[path = "dispatcher/permits.rs"]
mod permits;
#[path = "dispatcher/relay.rs"]
mod relay;
#[path = "dispatcher/returned.rs"]
mod returned;

use std::{sync::Arc, time::Duration};

use postway_dispatch::{DispatchConfig, Dispatcher, transport::SmtpDeadlines};
use postway_domain::{
    Account, AccountSettings, Clock, MessageStatus, MessageUid, RelayTlsMode, Time, secret::SecretKey,
};
use postway_net::AddressGuard;
use postway_store::{
    DirectoryStore as _, IntakeStore as _, LivenessRoster, Read as _,
    blob::BlobStorage,
    conformance::sample::{self, Sample, at},
    memory::MemoryStore,
    record::{MessageKey, NewMessage},
};
use tokio::time::Instant;

use self::relay::PipeRelay;

/// Longer than anything here takes, on a clock that advances only while all tasks wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// A clock that follows tokio's.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Time {
        at(0).plus(self.0.elapsed())
    }
}

/// A dispatcher with one account, which sends over `relay`.
struct DispatcherStage {
    store: Arc<MemoryStore>,
    clock: Arc<TokioClock>,
    roster: Arc<LivenessRoster>,
    relay: Arc<PipeRelay>,
    depot: Arc<BlobStorage>,
    dispatcher: Dispatcher,
}

impl DispatcherStage {
    /// A dispatcher over this relay, with these account settings and this depot for large bodies.
    async fn set(relay: PipeRelay, depot: BlobStorage, edit: impl FnOnce(&mut AccountSettings)) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::shared()), Arc::new(TokioClock(Instant::now())));
        let roster = Arc::new(LivenessRoster::new(sample::incarnation(1), true));
        roster.note_beat(Instant::now());
        let tenant = postway_domain::Tenant::new(sample::tenant(), "Acme", at(0));
        assert!(store.create_tenant(tenant).await.expect("the store in memory answers"));
        let mut account = sample::account(sample::TENANT, sample::ACCOUNT);
        let settings = &mut account.settings;
        (settings.tls, settings.username, settings.max_connections) = (RelayTlsMode::None, None, 1);
        edit(settings);
        assert!(
            store
                .create_account(Account { secret: None, ..account })
                .await
                .expect("the store in memory answers")
        );
        let (relay, depot) = (Arc::new(relay), Arc::new(depot));
        let config = DispatchConfig {
            roster: roster.clone(),
            ehlo_name: "node.example".to_owned(),
            in_flight_max: 64,
            deadlines: SmtpDeadlines::uniform(Duration::from_secs(60)),
            drain: Duration::from_secs(30),
            guard: Arc::new(AddressGuard::default()),
            dial: relay.clone(),
        };
        let secret_key =
            Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).expect("a key of this length"));
        let dispatcher = Dispatcher::start(config, store.clone(), depot.clone(), clock.clone(), secret_key);
        Self { store, clock, roster, relay, depot, dispatcher }
    }

    /// Sends a heartbeat every second from now on, as long as the test runs.
    fn keep_beating(&self) {
        let roster = self.roster.clone();
        tokio::spawn(async move {
            loop {
                roster.note_beat(Instant::now());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Accepts the n-th mail now.
    async fn accept(&self, number: u32) -> MessageUid {
        self.accept_as(number, |message| message).await
    }

    async fn accept_as(&self, number: u32, edit: impl FnOnce(NewMessage) -> NewMessage) -> MessageUid {
        let now_ms = self.clock.now().as_millis() - at(0).as_millis();
        let message = edit(Sample::new(number).created(now_ms).build());
        let uid = message.uid;
        assert!(
            self.store.accept(vec![message]).await.expect("the store in memory answers")[0].is_accepted()
        );
        uid
    }

    async fn status(&self, uid: MessageUid) -> MessageStatus {
        status_in(&self.store, uid).await
    }

    async fn wait_for(&self, uid: MessageUid, status: MessageStatus) {
        let reached = async {
            while self.status(uid).await != status {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached)
            .await
            .unwrap_or_else(|_| panic!("{uid} never became {status:?}"));
    }
}

async fn status_in(store: &MemoryStore, uid: MessageUid) -> MessageStatus {
    let found = store.message(&sample::tenant(), &MessageKey::Uid(uid)).await;
    let found = found.expect("the store in memory answers");
    found.expect("it was accepted").summary.state.status()
}
