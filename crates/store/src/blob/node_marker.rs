//! Marks of nodes beside the blobs, by which nodes that share a database see whether they share these, too.
//!
//! A folder on one machine looks to another like a folder of its own. A node leaves its mark where it keeps blobs; who
//! cannot read the mark of a node that is alive cannot read its blobs.

use object_store::{ObjectStoreExt, PutPayload, path::Path};

use super::{BlobError, Depot};

/// Where marks are: never the name of a folder of blobs.
const MARKS: &str = "nodes";

impl Depot {
    /// Whether blobs are in a folder, which others may have under the same name and not share.
    pub fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Leaves the mark of a node.
    pub async fn leave_mark(&self, node: &[u8; 16]) -> Result<(), BlobError> {
        let left = self.objects.put(&self.mark(node), PutPayload::default()).await;
        left.map(drop).map_err(unavailable)
    }

    /// Whether the mark of a node is here.
    pub async fn has_mark(&self, node: &[u8; 16]) -> Result<bool, BlobError> {
        match self.objects.head(&self.mark(node)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Takes the mark of a node away.
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
        let open = |folder: &TempDir| Depot::open(&format!("file://{}", folder.path().display())).unwrap();
        let [first, beside, apart] = [&folders[0], &folders[0], &folders[1]].map(open);
        assert!(first.is_folder() && !Depot::memory().is_folder());
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
