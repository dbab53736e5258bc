//! Preparation, and the names of the blobs that bodies are stored in.

use async_trait::async_trait;
use postway_domain::Time;

use crate::{
    error::StoreError,
    record::{BlobName, PreparationState, PrepareRequest, ToPrepare},
};

/// What preparation uses: messages that need something from elsewhere before they can be composed. They start
/// as `accepted`; the result is written with [`super::WorkStore::apply`].
#[async_trait]
pub trait PreparationStore: Send + Sync {
    /// The tenants whose messages wait to be prepared.
    async fn preparation_state(&self, now: Time) -> Result<PreparationState, StoreError>;

    /// Leases messages that wait to be prepared, the longest waiting first; they become `validating`.
    async fn claim_preparation(&self, request: PrepareRequest) -> Result<Vec<ToPrepare>, StoreError>;

    /// Waits until there may be something new to prepare. A hint.
    async fn preparation_woken(&self);
}

/// The names of blobs. [`crate::blob::BlobStorage`] stores the bytes.
#[async_trait]
pub trait BlobNameStore: Send + Sync {
    /// The name under which to store a blob. It is safe from deletion for an hour from `now`, and after that
    /// while something refers to it. Called before the bytes are written.
    async fn reserve_blob(&self, digest: [u8; 32], size: u64, now: Time) -> Result<BlobName, StoreError>;

    /// Condemns blobs that nothing refers to and that were reserved before `before`, and returns them. Their
    /// bytes are to be deleted, and their names are not given out any more.
    async fn condemn_blobs(&self, before: Time, limit: u32) -> Result<Vec<BlobName>, StoreError>;

    /// Removes the names of blobs whose bytes were deleted.
    async fn forget_blobs(&self, gone: &[BlobName]) -> Result<(), StoreError>;
}
