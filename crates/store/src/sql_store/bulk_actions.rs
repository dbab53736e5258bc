//! [`BulkActionStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{TenantId, id::BulkActionId};

use super::SqlStore;
use crate::{
    admin::bulk_actions,
    error::StoreError,
    port::BulkActionStore,
    record::{BulkAction, BulkStep},
};

#[async_trait]
impl<T: SqlStore> BulkActionStore for T {
    async fn bulk_actions(
        &self,
        tenant: &TenantId,
        before: Option<BulkActionId>,
        limit: u32,
    ) -> Result<Vec<BulkAction>, StoreError> {
        bulk_actions::list(&mut *self.reader().await?, tenant, before, limit).await
    }

    async fn bulk_action(
        &self,
        tenant: &TenantId,
        id: BulkActionId,
    ) -> Result<Option<BulkAction>, StoreError> {
        bulk_actions::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn running_bulk_actions(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<BulkAction>, StoreError> {
        bulk_actions::running(&mut *self.reader().await?, after, limit).await
    }

    async fn advance_bulk_action(&self, step: BulkStep) -> Result<Option<Vec<bool>>, StoreError> {
        self.writers().advance_bulk_action(step).await
    }
}
