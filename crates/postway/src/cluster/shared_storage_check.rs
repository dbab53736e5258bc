//! Whether the nodes of a database share the folder that large bodies are in.
//!
//! Without `storage.url` each node keeps bodies over 128 KiB in its own data folder. That is right for a
//! database with one node. If several nodes share a server it is a mistake, which shows only when one node
//! accepts such a mail and another is to send it: the mail waits until the node that has the body sends it.
//! So every node writes a mark beside its blobs before it registers, and searches for the marks of the
//! others. A node whose mark is missing appears in the log, in `GET /v1/nodes`, in `/health/ready` and in
//! `postway doctor`.

use std::{sync::Arc, time::Duration};

use postway_store::{LivenessRoster, Store, StoreError, blob::BlobStorage, record::NodeRecord};
use tokio_util::sync::CancellationToken;

/// How often to search for the others' marks.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Searches for the marks of other nodes.
pub struct SharedStorageCheck {
    pub store: Arc<dyn Store>,
    pub depot: Arc<BlobStorage>,
    pub roster: Arc<LivenessRoster>,
    /// The identity in this node's mark.
    pub identity: [u8; 16],
}

/// Whether there is something to check: several nodes, and a folder that may be local to each.
fn needs_check(store: &dyn Store, depot: &BlobStorage) -> bool {
    store.is_shared() && depot.is_folder()
}

/// Writes the mark of a node that is about to register.
pub async fn leave_mark(store: &dyn Store, depot: &BlobStorage, identity: &[u8; 16]) {
    if needs_check(store, depot)
        && let Err(error) = depot.leave_mark(identity).await
    {
        tracing::warn!(%error, "this node could not mark its storage; others will take it for one of its own");
    }
}

impl SharedStorageCheck {
    /// Checks until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) -> Self {
        if !needs_check(&*self.store, &self.depot) {
            return self;
        }
        let mut known = Vec::new();
        loop {
            match self.missing().await {
                Ok(missing) => self.log_missing(&missing, &mut known),
                // Without the register nothing is known about the others.
                Err(error) => tracing::debug!(%error, "cannot tell whether the nodes share their storage"),
            }
            tokio::select! {
                () = stop.cancelled() => return self,
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
        }
    }

    /// Removes the mark of this node, once it has left the register.
    pub async fn leave(self) {
        if needs_check(&*self.store, &self.depot)
            && let Err(error) = self.depot.remove_mark(&self.identity).await
        {
            tracing::debug!(%error, "the mark of this node stays in its storage");
        }
    }

    /// The nodes that are alive and whose mark is not here.
    async fn missing(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let mut missing = Vec::new();
        for node in self.store.nodes().await? {
            let is_other = node.identity != self.identity && !self.roster.is_dead(node.incarnation);
            if is_other && !self.depot.has_mark(&node.identity).await? {
                missing.push(node);
            }
        }
        Ok(missing)
    }

    /// Logs each node once whose storage is separate.
    fn log_missing(&self, missing: &[NodeRecord], known: &mut Vec<postway_domain::Incarnation>) {
        for node in missing.iter().filter(|node| !known.contains(&node.incarnation)) {
            tracing::error!(
                node = node.name,
                address = node.address,
                "storage is not shared with another node: mail over 128 KiB that one takes waits until that one sends \
                 it; set storage.url (POSTWAY_STORAGE_URL) to a place that all nodes share"
            );
        }
        if missing.is_empty() && !known.is_empty() {
            tracing::info!("storage is shared with every node now");
        }
        *known = missing.iter().map(|node| node.incarnation).collect();
        self.roster.set_apart(known.clone());
    }
}
