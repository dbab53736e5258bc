//! Bulk actions, step by step.

use async_trait::async_trait;
use postway_domain::{TenantId, id::BulkActionId};

use crate::{
    error::StoreError,
    record::{BulkAction, BulkStep},
};

/// Actions on many messages. They are created and stopped through [`super::DirectoryStore::change`].
#[async_trait]
pub trait BulkActionStore: Send + Sync {
    /// A tenant's bulk actions, the latest first, before `before`.
    async fn bulk_actions(
        &self,
        tenant: &TenantId,
        before: Option<BulkActionId>,
        limit: u32,
    ) -> Result<Vec<BulkAction>, StoreError>;

    /// One bulk action.
    async fn bulk_action(
        &self,
        tenant: &TenantId,
        id: BulkActionId,
    ) -> Result<Option<BulkAction>, StoreError>;

    /// The oldest running bulk action of each tenant after `after`, in the order of tenants.
    async fn running_bulk_actions(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<BulkAction>, StoreError>;

    /// Does a slice in one transaction: the changes of messages, the suppressions, and how far the action is.
    /// Says which changes were applied; `None` if the action was stopped or continued by somebody else
    /// meanwhile, and nothing was written.
    async fn advance_bulk_action(&self, step: BulkStep) -> Result<Option<Vec<bool>>, StoreError>;
}
