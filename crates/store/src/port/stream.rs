//! Streams, and the readers who left them.

use async_trait::async_trait;
use postway_domain::{MailStream, TenantId, id::StreamId};

use crate::{
    error::StoreError,
    record::{ChangeResult, ReaderDecision, ScopeFilter, ScopedSuppression, SuppressionScope},
};

/// A tenant's streams, and scoped suppressions. Operators change both through
/// [`super::DirectoryStore::change`].
#[async_trait]
pub trait StreamStore: Send + Sync {
    /// A tenant's streams by id, after `after`.
    async fn streams(
        &self,
        tenant: &TenantId,
        after: Option<&StreamId>,
        limit: u32,
    ) -> Result<Vec<MailStream>, StoreError>;

    /// One stream.
    async fn stream(&self, tenant: &TenantId, id: &StreamId) -> Result<Option<MailStream>, StoreError>;

    /// Scoped suppressions by pattern and stream, after `after`, including expired ones.
    async fn scoped_suppressions(
        &self,
        filter: &ScopeFilter,
        after: Option<&SuppressionScope>,
        limit: u32,
    ) -> Result<Vec<ScopedSuppression>, StoreError>;

    /// One scoped suppression, even if it has expired.
    async fn scoped_suppression(
        &self,
        scope: &SuppressionScope,
    ) -> Result<Option<ScopedSuppression>, StoreError>;

    /// Writes a reader's decision and its event in one transaction. [`ChangeResult::Already`] if nothing
    /// changes. A reader who comes back undoes only what a reader did: a suppression that an operator added
    /// stays.
    async fn decide(&self, decision: ReaderDecision) -> Result<ChangeResult, StoreError>;
}
