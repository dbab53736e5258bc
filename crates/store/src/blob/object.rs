//! Objects beside the blobs, under names that their callers choose: archived mail by date.
//!
//! Nothing counts references to them. Writing the same name again replaces the object, whole.

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, path::Path};

use super::{BlobError, BlobStorage};

impl BlobStorage {
    /// Writes an object. It is durable when this returns; a reader sees all of it or none.
    pub async fn put_object(&self, path: &str, bytes: Bytes) -> Result<(), BlobError> {
        if let Some(folder) = &self.folder {
            return folder.write_object(path, bytes).await;
        }
        let written = self.objects.put(&self.object_path(path), PutPayload::from_bytes(bytes)).await;
        written.map(drop).map_err(|error| BlobError::from_object(path, error))
    }

    /// The bytes of an object.
    pub async fn get_object(&self, path: &str) -> Result<Bytes, BlobError> {
        let failed = |error| BlobError::from_object(path, error);
        self.objects.get(&self.object_path(path)).await.map_err(failed)?.bytes().await.map_err(failed)
    }

    /// Deletes an object. A missing one counts as deleted.
    pub async fn delete_object(&self, path: &str) -> Result<(), BlobError> {
        match self.objects.delete(&self.object_path(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BlobError::from_object(path, error)),
        }
    }

    fn object_path(&self, path: &str) -> Path {
        path.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }
}
