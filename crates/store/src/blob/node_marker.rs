//! Markers of nodes beside the blobs. With them, nodes that share a database check whether they share the
//! blobs, too.
//!
//! A path on one machine may be another folder on the next. A node leaves its marker where it stores blobs; a
//! node that cannot read the marker of a live node cannot read that node's blobs.

use object_store::{ObjectStoreExt, PutPayload, path::Path};

use super::{BlobError, BlobStorage};

/// The folder of markers: never the name of a folder of blobs.
const MARKS: &str = "nodes";

impl BlobStorage {
    /// Whether blobs are in a folder, which other nodes may have under the same name without sharing it.
    pub fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Writes the marker of a node.
    pub async fn leave_mark(&self, node: &[u8; 16]) -> Result<(), BlobError> {
        let left = self.objects.put(&self.mark(node), PutPayload::default()).await;
        left.map(drop).map_err(unavailable)
    }

    /// Whether the marker of a node is here.
    pub async fn has_mark(&self, node: &[u8; 16]) -> Result<bool, BlobError> {
        match self.objects.head(&self.mark(node)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Removes the marker of a node.
    pub async fn remove_mark(&self, node: &[u8; 16]) -> Result<(), BlobError> {
        match self.objects.delete(&self.mark(node)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }

    fn mark(&self, node: &[u8; 16]) -> Path {
        self.prefix.clone().join(MARKS).join(format!("{:032x}", u128::from_be_bytes(*node)))
    }
}

fn unavailable(error: object_store::Error) -> BlobError {
    BlobError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn a_mark_is_seen_by_who_shares_the_folder_alone() {
        let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let open =
            |folder: &TempDir| BlobStorage::open(&format!("file://{}", folder.path().display())).unwrap();
        let [first, beside, apart] = [&folders[0], &folders[0], &folders[1]].map(open);
        assert!(first.is_folder() && !BlobStorage::memory().is_folder());
        let node = [7; 16];
        first.leave_mark(&node).await.unwrap();
        first.leave_mark(&node).await.unwrap();
        assert!(beside.has_mark(&node).await.unwrap() && !beside.has_mark(&[8; 16]).await.unwrap());
        assert!(!apart.has_mark(&node).await.unwrap());
        first.remove_mark(&node).await.unwrap();
        assert!(!beside.has_mark(&node).await.unwrap());
        apart.remove_mark(&node).await.unwrap();
    }
}
