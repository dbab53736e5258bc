//! The inbound subsystem of this process: the loop that watches mailboxes, the loop that processes their
//! mail, and the loop that processes what providers report.

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use postway_domain::{Clock, secret::SecretKey};
use postway_inbound::{
    FolderSource, ImapSource, MailProcessor, MailProcessorParts, Monitor, MonitorParts,
    ProviderEventProcessor, ProviderEventProcessorParts, TrustStore,
};
use postway_intake::Door;
use postway_store::{Store, blob::BlobStorage};
use tokio_util::sync::CancellationToken;

use crate::cluster::{duties::NodeDuties, membership::ClusterMembership};

/// The largest file of trusted certificates.
const TRUST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What the loops are made of.
pub struct InboundParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The storage of large mail.
    pub depot: Arc<BlobStorage>,
    /// The one way in, for mail that is forwarded.
    pub door: Arc<Door>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Opens the secrets of mailboxes, and recognises our own envelope senders.
    pub secret_key: Arc<SecretKey>,
    /// Connects to IMAP servers.
    pub source: Arc<ImapSource>,
    /// The authorities that signatures of certified mail must lead to.
    pub trust: TrustStore,
    /// This node among the others.
    pub membership: Arc<ClusterMembership>,
}

/// The loops.
pub struct InboundLoops {
    monitor: Monitor,
    router: MailProcessor,
    events: ProviderEventProcessor,
}

impl InboundLoops {
    /// Builds the loops; neither runs yet.
    pub fn new(parts: InboundParts) -> Self {
        let InboundParts { store, depot, door, clock, secret_key, source, trust, membership } = parts;
        let source: Arc<dyn FolderSource> = source;
        let router = MailProcessor::new(MailProcessorParts {
            store: store.clone(),
            depot: depot.clone(),
            door,
            clock: clock.clone(),
            secret_key,
            source: source.clone(),
            trust,
            incarnation: membership.roster().me(),
            poll: MailProcessorParts::POLL,
        });
        let events = ProviderEventProcessor::new(ProviderEventProcessorParts {
            store: store.clone(),
            clock: clock.clone(),
            incarnation: membership.roster().me(),
            poll: ProviderEventProcessorParts::POLL,
        });
        let node = Arc::new(NodeDuties(membership));
        let monitor =
            Monitor::new(MonitorParts { store, depot, clock, source, node, poll: MonitorParts::POLL });
        Self { monitor, router, events }
    }

    /// Runs the loops until they are stopped.
    pub async fn run(self, stop: CancellationToken) {
        tokio::join!(self.monitor.run(stop.clone()), self.events.run(stop.clone()), self.router.run(stop));
    }
}

/// Reads the authorities that certify providers of certified mail. Without a file none is trusted.
pub fn read_trust_store(file: Option<&Path>) -> anyhow::Result<TrustStore> {
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
    fn a_wrong_trust_file_is_named() {
        assert!(read_trust_store(None).unwrap().is_empty());
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("trust.pem");
        std::fs::write(&file, "no certificate").unwrap();
        let error = format!("{:#}", read_trust_store(Some(&file)).unwrap_err());
        assert!(error.contains("trust.pem") && error.contains("holds no certificate"), "{error}");
        assert!(read_trust_store(Some(&folder.path().join("missing.pem"))).is_err());
    }
}
