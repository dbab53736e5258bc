//! The sources of this process: one loop each, on whichever node has its duty.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use postway_domain::secret::SecretKey;
use postway_intake::{
    Door,
    outbox::{Desk, Outbox, OutboxNode, Source},
};
use postway_store::StoreError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cluster::membership::Membership;

/// This process, as a source sees it.
struct Duties(Arc<Membership>);

#[async_trait]
impl OutboxNode for Duties {
    async fn is_on_duty(&self, duty: &str) -> Result<bool, StoreError> {
        self.0.holds(duty).await
    }
}

/// All of them.
pub struct Outboxes(Vec<Arc<Outbox>>);

impl Outboxes {
    /// Nothing is connected to yet.
    pub fn new(
        sources: &[Source],
        door: &Arc<Door>,
        membership: &Arc<Membership>,
        secret_key: &SecretKey,
    ) -> anyhow::Result<Self> {
        let node: Arc<dyn OutboxNode> = Arc::new(Duties(membership.clone()));
        let outbox = |source: &Source| {
            let outbox = Outbox::new(source.clone(), door.clone(), node.clone(), secret_key);
            outbox.map(Arc::new).with_context(|| format!("cannot serve the outbox {}", source.name))
        };
        Ok(Self(sources.iter().map(outbox).collect::<anyhow::Result<_>>()?))
    }

    /// Where the API asks about them.
    pub fn desk(&self, secret_key: &SecretKey) -> anyhow::Result<Arc<Desk>> {
        Ok(Arc::new(Desk::new(self.0.clone(), secret_key)?))
    }

    /// Serves them until they are stopped.
    pub async fn run(self, stop: CancellationToken) {
        let mut serving: JoinSet<()> = self.0.into_iter().map(|outbox| outbox.run(stop.clone())).collect();
        while let Some(ended) = serving.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "an outbox ended badly and is not served any more");
            }
        }
    }
}
