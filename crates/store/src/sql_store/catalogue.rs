//! [`CatalogueStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{
    DkimKey, KnownRecipient, MessageUid, RecipientId, RecipientKey, Template, TemplateName, TenantId, Time,
};

use super::SqlStore;
use crate::{
    admin::domain_checks,
    content::{dkim_keys, links, recipients, templates},
    error::StoreError,
    port::CatalogueStore,
    record::{BlobName, DomainCheckRecord, FileLink},
};

#[async_trait]
impl<T: SqlStore> CatalogueStore for T {
    async fn template(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
    ) -> Result<Option<Template>, StoreError> {
        templates::find(&mut *self.reader().await?, tenant, name, version).await
    }

    async fn templates(
        &self,
        tenant: &TenantId,
        after: Option<&TemplateName>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError> {
        templates::list(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn template_versions(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError> {
        templates::versions(&mut *self.reader().await?, tenant, name, before, limit).await
    }

    async fn recipient(
        &self,
        tenant: &TenantId,
        key: &RecipientKey,
    ) -> Result<Option<KnownRecipient>, StoreError> {
        recipients::find(&mut *self.reader().await?, tenant, key).await
    }

    async fn recipients(
        &self,
        tenant: &TenantId,
        address: Option<&str>,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Result<Vec<KnownRecipient>, StoreError> {
        recipients::list(&mut *self.reader().await?, tenant, address, after, limit).await
    }

    async fn dkim_keys(
        &self,
        tenant: Option<&TenantId>,
        domain: Option<&str>,
    ) -> Result<Vec<DkimKey>, StoreError> {
        dkim_keys::list(&mut *self.reader().await?, tenant, domain).await
    }

    async fn domain_checks(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<DomainCheckRecord>, StoreError> {
        domain_checks::list(&mut *self.reader().await?, tenant, limit).await
    }

    async fn stale_domain_checks(
        &self,
        before: Time,
        limit: u32,
    ) -> Result<Vec<DomainCheckRecord>, StoreError> {
        domain_checks::oldest(&mut *self.reader().await?, before, limit).await
    }

    async fn link(&self, uid: MessageUid, blob: &BlobName) -> Result<Option<FileLink>, StoreError> {
        links::find(&mut *self.reader().await?, uid, blob).await
    }
}
