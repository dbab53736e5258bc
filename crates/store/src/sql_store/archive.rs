//! [`ArchiveStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId, Time};

use super::SqlStore;
use crate::{
    admin::archive,
    error::StoreError,
    port::ArchiveStore,
    record::{ArchiveBacklog, ArchiveFilter, ArchivedMail},
};

#[async_trait]
impl<T: SqlStore> ArchiveStore for T {
    async fn archived(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<ArchivedMail>, StoreError> {
        archive::find(&mut *self.reader().await?, tenant, uid).await
    }

    async fn archive(
        &self,
        tenant: &TenantId,
        filter: &ArchiveFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<ArchivedMail>, StoreError> {
        archive::list(&mut *self.reader().await?, tenant, filter, before, limit).await
    }

    async fn expired_archive(&self, now: Time, limit: u32) -> Result<Vec<ArchivedMail>, StoreError> {
        archive::expired(&mut *self.reader().await?, now, limit).await
    }

    async fn archive_backlog(&self, tenant: Option<&TenantId>) -> Result<Vec<ArchiveBacklog>, StoreError> {
        archive::backlog(&mut *self.reader().await?, tenant).await
    }
}
