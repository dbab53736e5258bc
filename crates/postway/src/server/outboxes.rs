//! The outbox sources of this process: one loop for each, which works on the node that has its duty.

use std::sync::Arc;

use anyhow::Context as _;
use postway_domain::secret::SecretKey;
use postway_intake::{
    Door,
    outbox::{OutboxNode, OutboxRunner, OutboxSource, OutboxStatusApi},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cluster::{duties::NodeDuties, membership::ClusterMembership};

/// All configured outbox sources.
pub struct OutboxSources(Vec<Arc<OutboxRunner>>);

impl OutboxSources {
    /// Prepares the sources; none is connected to yet.
    pub fn new(
        sources: &[OutboxSource],
        door: &Arc<Door>,
        membership: &Arc<ClusterMembership>,
        secret_key: &SecretKey,
    ) -> anyhow::Result<Self> {
        let node: Arc<dyn OutboxNode> = Arc::new(NodeDuties(membership.clone()));
        let outbox = |source: &OutboxSource| {
            let outbox = OutboxRunner::new(source.clone(), door.clone(), node.clone(), secret_key);
            outbox.map(Arc::new).with_context(|| format!("cannot serve the outbox {}", source.name))
        };
        Ok(Self(sources.iter().map(outbox).collect::<anyhow::Result<_>>()?))
    }

    /// The part of the API that shows their status.
    pub fn status_api(&self, secret_key: &SecretKey) -> anyhow::Result<Arc<OutboxStatusApi>> {
        Ok(Arc::new(OutboxStatusApi::new(self.0.clone(), secret_key)?))
    }

    /// Runs every source until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        let mut serving: JoinSet<()> = self.0.into_iter().map(|outbox| outbox.run(stop.clone())).collect();
        while let Some(ended) = serving.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "an outbox ended badly and is not served any more");
            }
        }
    }
}
