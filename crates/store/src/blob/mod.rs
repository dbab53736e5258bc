//! Bytes outside the database: bodies too large for a row, and files that mail links to.
//!
//! Each content of a tenant is stored once, in a folder or in object storage. The database assigns the name
//! before the blob is written ([`crate::BlobNameStore`]), and says when nothing refers to it any more; only
//! then is it deleted. What [`BlobStorage::put`] returns is durable. What [`BlobStorage::get`] returns is
//! what was put: a damaged blob is an error, never mail.

mod disposition;
mod error;
mod folder;
mod location;
mod node_marker;
mod object;
mod registry;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    ObjectStore, ObjectStoreExt, PutPayload,
    path::Path,
    signer::{Method, SignedUrlOptions, Signer},
};
use postway_domain::{TenantId, Time};
use url::Url;

use self::folder::BlobFolder;
use crate::{
    port::BlobNameStore,
    record::{BlobName, BlobRef, StoredBody},
};

pub use self::error::BlobError;
pub(crate) use self::location::parts as blob_parts;
pub(crate) use self::registry::{BlobCursor, BlobJob, read_page, write};
#[cfg(test)]
pub(crate) use registry::STATEMENTS;

/// Bodies up to this size are stored in the database.
pub const INLINE_BYTES_MAX: usize = 128 * 1024;
/// How long a reserved name is safe while nothing refers to it yet.
pub const RESERVED_FOR: Duration = Duration::from_secs(60 * 60);
/// The longest validity of a signed URL.
const SIGNED_FOR_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The number of concurrent deletions.
const DELETIONS_AT_ONCE: usize = 8;

/// The storage of blobs.
#[derive(Debug)]
pub struct BlobStorage {
    objects: Arc<dyn ObjectStore>,
    /// The prefix of all blobs.
    prefix: Path,
    signer: Option<Arc<dyn Signer>>,
    /// For writing to a folder, because the object storage library would not sync.
    folder: Option<BlobFolder>,
}

impl BlobStorage {
    /// Opens `file:///path`, `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`.
    /// Credentials and endpoints come from the environment: `AWS_…`, `AZURE_…`, `GOOGLE_…`.
    pub fn open(url: &str) -> Result<Self, BlobError> {
        location::open(url, std::env::vars_os().filter_map(location::as_option))
    }

    /// Stores blobs in memory, for tests.
    pub fn memory() -> Self {
        let objects = Arc::new(object_store::memory::InMemory::new());
        Self { objects, prefix: Path::default(), signer: None, folder: None }
    }

    /// Stores blobs in memory, with this delay for reads and deletions, for tests.
    pub fn slow_memory(wait: std::time::Duration) -> Self {
        use object_store::throttle::{ThrottleConfig, ThrottledStore};
        let config = ThrottleConfig {
            wait_get_per_call: wait,
            wait_delete_per_call: wait,
            ..ThrottleConfig::default()
        };
        let objects = Arc::new(ThrottledStore::new(object_store::memory::InMemory::new(), config));
        Self { objects, ..Self::memory() }
    }

    /// Stores bytes inline if they are few, else in a blob.
    pub async fn keep(
        &self,
        store: &dyn BlobNameStore,
        tenant: &TenantId,
        bytes: Bytes,
        inline_bytes_max: usize,
        now: Time,
    ) -> Result<StoredBody, BlobError> {
        if bytes.len() <= inline_bytes_max {
            return Ok(StoredBody::Inline(bytes));
        }
        self.put(store, tenant, bytes, now).await.map(StoredBody::Blob)
    }

    /// Stores bytes in a blob. Something must refer to it within [`RESERVED_FOR`].
    pub async fn put(
        &self,
        store: &dyn BlobNameStore,
        tenant: &TenantId,
        bytes: Bytes,
        now: Time,
    ) -> Result<BlobRef, BlobError> {
        let size = bytes.len() as u64;
        let digest = digest_of(tenant, &bytes).await?;
        let name = store.reserve_blob(digest, size, now).await?;
        self.write(&name, bytes).await?;
        Ok(BlobRef { name, size })
    }

    async fn write(&self, name: &BlobName, bytes: Bytes) -> Result<(), BlobError> {
        if let Some(folder) = &self.folder {
            return folder.write(name, bytes).await;
        }
        let (path, size) = (self.path(name), bytes.len() as u64);
        match self.objects.head(&path).await {
            Ok(found) if found.size == size => return Ok(()),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(BlobError::from_storage(name, error)),
        }
        let written = self.objects.put(&path, PutPayload::from_bytes(bytes)).await;
        written.map(drop).map_err(|error| BlobError::from_storage(name, error))
    }

    /// The bytes of a body, inline or from its blob.
    pub async fn resolve(&self, tenant: &TenantId, body: StoredBody) -> Result<Bytes, BlobError> {
        match body {
            StoredBody::Inline(bytes) => Ok(bytes),
            StoredBody::Blob(blob) => self.get(tenant, &blob).await,
        }
    }

    /// The bytes of a blob of this tenant.
    pub async fn get(&self, tenant: &TenantId, blob: &BlobRef) -> Result<Bytes, BlobError> {
        let name = &blob.name;
        let found =
            self.objects.get(&self.path(name)).await.map_err(|error| BlobError::from_storage(name, error))?;
        if found.meta.size != blob.size {
            return Err(BlobError::Damaged(name.clone()));
        }
        let bytes = found.bytes().await.map_err(|error| BlobError::from_storage(name, error))?;
        if digest_of(tenant, &bytes).await? != name.digest {
            return Err(BlobError::Damaged(name.clone()));
        }
        Ok(bytes)
    }

    /// The bytes of a blob piece by piece, for files that need not be in memory at once. A damaged blob ends
    /// with an error.
    pub async fn get_stream(
        &self,
        tenant: &TenantId,
        blob: &BlobRef,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, BlobError> {
        let name = blob.name.clone();
        let found = self
            .objects
            .get(&self.path(&name))
            .await
            .map_err(|error| BlobError::from_storage(&name, error))?;
        if found.meta.size != blob.size {
            return Err(BlobError::Damaged(name));
        }
        let pieces = found.into_stream();
        let state = (pieces, Some(digest_begun(tenant)), name);
        let checked = stream::try_unfold(state, |(mut pieces, digest, name)| async move {
            let Some(mut digest) = digest else { return Ok(None) };
            match pieces.try_next().await.map_err(|error| BlobError::from_storage(&name, error))? {
                Some(piece) => {
                    digest.update(&piece);
                    Ok(Some((piece, (pieces, Some(digest), name))))
                }
                None if digest.finish().as_ref() == name.digest => Ok(None),
                None => Err(BlobError::Damaged(name)),
            }
        });
        Ok(checked.boxed())
    }

    /// Deletes a blob. A missing one counts as deleted.
    pub async fn delete(&self, name: &BlobName) -> Result<(), BlobError> {
        match self.objects.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BlobError::from_storage(name, error)),
        }
    }

    /// A URL with which anybody can download a blob for a while, at most a week. `None` if blobs are in a
    /// folder, and on Azure, whose URLs cannot carry the file name.
    pub async fn signed_url(
        &self,
        name: &BlobName,
        filename: &str,
        content_type: &str,
        lifetime: Duration,
    ) -> Result<Option<Url>, BlobError> {
        let Some(signer) = &self.signer else { return Ok(None) };
        let disposition = disposition::attachment(filename);
        let options = SignedUrlOptions::new().with_query([
            ("response-content-disposition", disposition.as_str()),
            ("response-content-type", content_type),
        ]);
        let lifetime = lifetime.min(SIGNED_FOR_MAX);
        match signer.signed_url_opts(Method::GET, &self.path(name), lifetime, &options).await {
            Ok(url) => Ok(Some(url)),
            Err(object_store::Error::NotSupported { .. }) => Ok(None),
            Err(error) => Err(BlobError::from_storage(name, error)),
        }
    }

    /// Deletes at most `limit` blobs that nothing refers to and that were reserved before `before`, and
    /// temporary files of writers that died before then. Returns the number of deleted blobs; those that
    /// could not be deleted are tried again by the next sweep.
    pub async fn sweep(
        &self,
        store: &dyn BlobNameStore,
        before: Time,
        limit: u32,
    ) -> Result<usize, BlobError> {
        if let Some(folder) = &self.folder {
            folder.clear(before).await?;
        }
        let condemned = store.condemn_blobs(before, limit).await?;
        let deletions = stream::iter(condemned).map(|name| async {
            let deleted = self.delete(&name).await;
            (name, deleted)
        });
        let mut gone = Vec::new();
        let mut deletions = deletions.buffer_unordered(DELETIONS_AT_ONCE);
        while let Some((name, deleted)) = deletions.next().await {
            match deleted {
                Ok(()) => gone.push(name),
                Err(error) => tracing::warn!(%error, "a blob could not be deleted; it is tried again"),
            }
        }
        if !gone.is_empty() {
            store.forget_blobs(&gone).await?;
        }
        Ok(gone.len())
    }

    fn path(&self, name: &BlobName) -> Path {
        location::parts(name).into_iter().fold(self.prefix.clone(), |path, part| path.join(part))
    }
}

/// A digest that begins with the tenant: the same content of two tenants is two blobs.
fn digest_begun(tenant: &TenantId) -> Context {
    let mut digest = Context::new(&SHA256);
    digest.update(tenant.as_str().as_bytes());
    // No tenant id contains this byte, so tenant and content cannot be confused.
    digest.update(&[0]);
    digest
}

/// Not on the runtime's threads, because large bodies take time.
async fn digest_of(tenant: &TenantId, bytes: &Bytes) -> Result<[u8; 32], BlobError> {
    let (mut digest, bytes) = (digest_begun(tenant), bytes.clone());
    let whole = tokio::task::spawn_blocking(move || {
        digest.update(&bytes);
        let mut whole = [0; 32];
        whole.copy_from_slice(digest.finish().as_ref());
        whole
    });
    whole.await.map_err(|error| BlobError::Unavailable(error.to_string()))
}
