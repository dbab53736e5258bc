//! Streams and their readers.

use async_trait::async_trait;
use postway_domain::{MailStream, TenantId, id::StreamId};

use crate::{
    error::StoreError,
    record::{Changed, ReaderDecision, ScopeFilter, ScopedSuppression, SuppressionScope},
};

/// A tenant's kinds of mail, and who gets none of them. Operators change both through [`super::Directory::change`].
#[async_trait]
pub trait Streams: Send + Sync {
    /// A tenant's streams by id, after this one.
    async fn streams(
        &self,
        tenant: &TenantId,
        after: Option<&StreamId>,
        limit: u32,
    ) -> Result<Vec<MailStream>, StoreError>;

    /// One stream.
    async fn stream(&self, tenant: &TenantId, id: &StreamId) -> Result<Option<MailStream>, StoreError>;

    /// Scoped suppressions by pattern and stream, after this one; those that are over are among them.
    async fn scoped_suppressions(
        &self,
        filter: &ScopeFilter,
        after: Option<&SuppressionScope>,
        limit: u32,
    ) -> Result<Vec<ScopedSuppression>, StoreError>;

    /// One scoped suppression, also if it is over.
    async fn scoped_suppression(
        &self,
        scope: &SuppressionScope,
    ) -> Result<Option<ScopedSuppression>, StoreError>;

    /// Writes what a reader decided, with its event, in one transaction. [`Changed::Already`] where it was so before. Whoever comes
    /// back undoes only what a reader did: what somebody else suppressed stays.
    async fn decide(&self, decision: ReaderDecision) -> Result<Changed, StoreError>;
}
