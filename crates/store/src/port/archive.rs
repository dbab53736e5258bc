//! Copies of sent mail that are stored in tenants' archives. Which copies are still to be made is a queue of
//! notifications ([`super::ReportStore`]).

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId, Time};

use crate::{
    error::StoreError,
    record::{ArchiveBacklog, ArchiveFilter, ArchivedMail},
};

/// The list of what is archived. It is changed through [`super::DirectoryStore::change`].
#[async_trait]
pub trait ArchiveStore: Send + Sync {
    /// A stored copy.
    async fn archived(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<ArchivedMail>, StoreError>;

    /// A tenant's stored copies, those of the latest messages first, before `before`.
    async fn archive(
        &self,
        tenant: &TenantId,
        filter: &ArchiveFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<ArchivedMail>, StoreError>;

    /// Copies of any tenant whose time is over, the longest over first.
    async fn expired_archive(&self, now: Time, limit: u32) -> Result<Vec<ArchivedMail>, StoreError>;

    /// How many copies wait for each tenant's archive, for tenants that have one.
    async fn archive_backlog(&self, tenant: Option<&TenantId>) -> Result<Vec<ArchiveBacklog>, StoreError>;
}
