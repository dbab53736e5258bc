//! [`StreamStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{MailStream, TenantId, id::StreamId};

use super::{SqlStore, inbound};
use crate::{
    admin::{scoped_suppressions, streams},
    error::StoreError,
    port::StreamStore,
    record::{ChangeResult, ReaderDecision, ScopeFilter, ScopedSuppression, SuppressionScope},
};

#[async_trait]
impl<T: SqlStore> StreamStore for T {
    async fn streams(
        &self,
        tenant: &TenantId,
        after: Option<&StreamId>,
        limit: u32,
    ) -> Result<Vec<MailStream>, StoreError> {
        streams::list(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn stream(&self, tenant: &TenantId, id: &StreamId) -> Result<Option<MailStream>, StoreError> {
        streams::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn scoped_suppressions(
        &self,
        filter: &ScopeFilter,
        after: Option<&SuppressionScope>,
        limit: u32,
    ) -> Result<Vec<ScopedSuppression>, StoreError> {
        scoped_suppressions::list(&mut *self.reader().await?, filter, after, limit).await
    }

    async fn scoped_suppression(
        &self,
        scope: &SuppressionScope,
    ) -> Result<Option<ScopedSuppression>, StoreError> {
        scoped_suppressions::find(&mut *self.reader().await?, scope).await
    }

    async fn decide(&self, decision: ReaderDecision) -> Result<ChangeResult, StoreError> {
        inbound::decide(self, decision).await
    }
}
