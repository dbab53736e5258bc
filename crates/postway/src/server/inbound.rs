//! The inbound room in this process: which node watches the mailboxes, and what the room is made of.

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use async_trait::async_trait;
use postway_domain::{Clock, secret::SecretKey};
use postway_inbound::{ImapSource, Monitor, MonitorParts, Node, Router, RouterParts, Source, TrustStore};
use postway_intake::Door;
use postway_store::{Store, StoreError, blob::Depot};
use tokio_util::sync::CancellationToken;

use crate::cluster::membership::Membership;

/// The duty of watching the mailboxes: one node at a time does it for all.
const DUTY: &str = "mailboxes";
/// The largest file of trusted certificates.
const TRUST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// This process, as the monitor sees it.
struct Watcher(Arc<Membership>);

#[async_trait]
impl Node for Watcher {
    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        self.0.holds(DUTY).await
    }
}

/// What the room is made of.
pub struct InboundParts {
    /// Where everything is.
    pub store: Arc<dyn Store>,
    /// Where large mail is.
    pub depot: Arc<Depot>,
    /// The one way in, for mail that is sent on.
    pub door: Arc<Door>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Opens mailboxes' secrets, knows our envelope senders.
    pub secret_key: Arc<SecretKey>,
    /// The way to the servers.
    pub source: Arc<ImapSource>,
    /// Whom signatures of certified mail must lead to.
    pub trust: TrustStore,
    /// This process among the others.
    pub membership: Arc<Membership>,
}

/// Both loops of the room.
pub struct InboundRoom {
    monitor: Monitor,
    router: Router,
}

impl InboundRoom {
    /// A room at rest.
    pub fn new(parts: InboundParts) -> Self {
        let InboundParts { store, depot, door, clock, secret_key, source, trust, membership } = parts;
        let source: Arc<dyn Source> = source;
        let router = Router::new(RouterParts {
            store: store.clone(),
            depot: depot.clone(),
            door,
            clock: clock.clone(),
            secret_key,
            source: source.clone(),
            trust,
            incarnation: membership.roster().me(),
            poll: RouterParts::POLL,
        });
        let node = Arc::new(Watcher(membership));
        let monitor =
            Monitor::new(MonitorParts { store, depot, clock, source, node, poll: MonitorParts::POLL });
        Self { monitor, router }
    }

    /// Works until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        tokio::join!(self.monitor.run(stop.clone()), self.router.run(stop));
    }
}

/// The authorities that certify providers of certified mail; nobody, where no file is named.
pub fn trust(file: Option<&Path>) -> anyhow::Result<TrustStore> {
    let Some(file) = file else { return Ok(TrustStore::default()) };
    let named = || format!("cannot use {} (pec.trust_file, POSTWAY_PEC_TRUST_FILE)", file.display());
    let size = std::fs::metadata(file).with_context(named)?.len();
    anyhow::ensure!(size <= TRUST_BYTES_MAX, "{}: it is larger than {TRUST_BYTES_MAX} bytes", named());
    let bundle = std::fs::read(file).with_context(named)?;
    TrustStore::from_pem(&bundle).with_context(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trust_file_that_is_none_is_named() {
        assert!(trust(None).unwrap().is_empty());
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("trust.pem");
        std::fs::write(&file, "no certificate").unwrap();
        let error = format!("{:#}", trust(Some(&file)).unwrap_err());
        assert!(error.contains("trust.pem") && error.contains("holds no certificate"), "{error}");
        assert!(trust(Some(&folder.path().join("missing.pem"))).is_err());
    }
}
