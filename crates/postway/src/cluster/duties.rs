//! Which duties this node has: the jobs that one node at a time does for all.
//!
//! The subsystems ask by their own small traits; this is the one answer to all of them.

use std::sync::Arc;

use async_trait::async_trait;
use postway_domain::Incarnation;
use postway_intake::outbox::OutboxNode;
use postway_store::StoreError;

use super::membership::ClusterMembership;

/// The duty of ordering events and making notifications of them.
const SEQUENCE_DUTY: &str = "reports";
/// The duty of watching mailboxes.
const MAILBOX_DUTY: &str = "mailboxes";

/// The duty of making copies for archives.
const ARCHIVE_DUTY: &str = "archives";

/// This node, as the subsystems see it.
pub struct NodeDuties(pub Arc<ClusterMembership>);

#[async_trait]
impl postway_notify::NotifierNode for NodeDuties {
    fn alive(&self) -> Option<Vec<Incarnation>> {
        let roster = self.0.roster();
        roster.is_calm().then(|| roster.alive())
    }

    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        self.0.has_duty(SEQUENCE_DUTY).await
    }
}

#[async_trait]
impl postway_inbound::MonitorNode for NodeDuties {
    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        self.0.has_duty(MAILBOX_DUTY).await
    }
}

#[async_trait]
impl postway_archive::ArchiveNode for NodeDuties {
    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        self.0.has_duty(ARCHIVE_DUTY).await
    }
}

/// Each outbox source is a duty of its own, so that nodes can share the sources.
#[async_trait]
impl OutboxNode for NodeDuties {
    async fn is_on_duty(&self, duty: &str) -> Result<bool, StoreError> {
        self.0.has_duty(duty).await
    }
}
