//! [`RouteStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{MailRoute, TenantId, id::RouteId};

use super::SqlStore;
use crate::{admin::routes, error::StoreError, port::RouteStore};

#[async_trait]
impl<T: SqlStore> RouteStore for T {
    async fn routes(&self, tenant: &TenantId) -> Result<Vec<MailRoute>, StoreError> {
        routes::list(&mut *self.reader().await?, tenant).await
    }

    async fn route(&self, tenant: &TenantId, id: &RouteId) -> Result<Option<MailRoute>, StoreError> {
        routes::find(&mut *self.reader().await?, tenant, id).await
    }
}
