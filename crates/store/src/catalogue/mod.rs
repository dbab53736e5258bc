//! What content is made with: templates, known recipients, signing keys, links. The same for every SQL database.
//!
//! Changes come as [`crate::record::DirectoryChange`] and run in the directory's transactions, with their audit entries;
//! links are written with the preparation that made them. Reads run on connections of their own.

pub(crate) mod dkim_keys;
pub(crate) mod links;
pub(crate) mod recipients;
pub(crate) mod templates;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use postway_domain::{
    DkimKey, KnownRecipient, MessageUid, RecipientId, RecipientKey, Template, TemplateName, TenantId,
};

use crate::{
    directory::Portable,
    error::StoreError,
    port::Catalogue,
    record::{BlobName, Link},
};

#[async_trait]
impl<T: Portable> Catalogue for T {
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

    async fn link(&self, uid: MessageUid, blob: &BlobName) -> Result<Option<Link>, StoreError> {
        links::find(&mut *self.reader().await?, uid, blob).await
    }
}

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::Sql> {
    let listed = [templates::STATEMENTS, recipients::STATEMENTS, dkim_keys::STATEMENTS].concat();
    [listed, links::statements()].concat()
}
