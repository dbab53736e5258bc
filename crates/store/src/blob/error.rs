//! Errors of blob storage.

use crate::{error::StoreError, record::BlobName};

/// Why a blob could not be written, read or deleted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BlobError {
    /// The configured location is invalid or cannot be used.
    #[error("no place for blobs: {0}")]
    NoPlace(String),
    /// The blob is missing.
    #[error(
        "the blob {0} is missing: do all nodes share storage.url, was it changed, or emptied by somebody else?"
    )]
    Missing(BlobName),
    /// The object is missing.
    #[error("the object {0} is missing: was it deleted by somebody else?")]
    ObjectMissing(String),
    /// The blob is damaged.
    #[error("the blob {0} is damaged: restore it from a backup")]
    Damaged(BlobName),
    /// The storage does not answer, or is full; try again later.
    #[error("the place for blobs is not available: {0}")]
    Unavailable(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BlobError {
    /// Whether the same call may succeed later without any intervention.
    pub fn is_transient(&self) -> bool {
        match self {
            BlobError::Unavailable(_) => true,
            BlobError::NoPlace(_)
            | BlobError::Missing(_)
            | BlobError::ObjectMissing(_)
            | BlobError::Damaged(_) => false,
            BlobError::Store(error) => error.is_transient(),
        }
    }

    /// Converts an error of the library about an object.
    pub(super) fn from_object(path: &str, error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => BlobError::ObjectMissing(path.to_owned()),
            error => BlobError::Unavailable(error.to_string()),
        }
    }

    /// Converts an error of the library.
    pub(super) fn from_storage(name: &BlobName, error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => BlobError::Missing(name.clone()),
            error => BlobError::Unavailable(error.to_string()),
        }
    }
}

/// For callers that handle both errors as one.
impl From<BlobError> for StoreError {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Store(error) => error,
            error if error.is_transient() => StoreError::Unavailable(error.to_string()),
            error => StoreError::Unexpected(error.to_string()),
        }
    }
}
