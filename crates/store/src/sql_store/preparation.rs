//! [`PreparationStore`] over SQL.

use async_trait::async_trait;
use postway_domain::Time;

use super::SqlStore;
use crate::{
    error::StoreError,
    port::PreparationStore,
    queue::preparation,
    record::{PreparationState, PrepareRequest, ToPrepare},
};

#[async_trait]
impl<T: SqlStore> PreparationStore for T {
    async fn preparation_state(&self, now: Time) -> Result<PreparationState, StoreError> {
        preparation::state(&mut *self.reader().await?, now).await
    }

    async fn claim_preparation(&self, request: PrepareRequest) -> Result<Vec<ToPrepare>, StoreError> {
        self.writers().claim_preparation(request).await
    }

    async fn preparation_woken(&self) {
        self.handover().preparation_woken().await;
    }
}
