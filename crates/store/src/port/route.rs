//! Routes.

use async_trait::async_trait;
use postway_domain::{MailRoute, TenantId, id::RouteId};

use crate::error::StoreError;

/// A tenant's routes. Operators change them through [`super::DirectoryStore::change`].
#[async_trait]
pub trait RouteStore: Send + Sync {
    /// A tenant's routes in the order in which they apply: by position, then by id.
    async fn routes(&self, tenant: &TenantId) -> Result<Vec<MailRoute>, StoreError>;

    /// One route.
    async fn route(&self, tenant: &TenantId, id: &RouteId) -> Result<Option<MailRoute>, StoreError>;
}
