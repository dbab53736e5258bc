//! Templates, known recipients, signing keys, links.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    DkimKey, EmailAddress, KnownRecipient, MessageUid, RecipientId, RecipientKey, Template, TemplateName,
    TenantId, Time, secret::SealedSecret,
};

use super::{MemoryStore, admin::done_if};
use crate::{
    error::StoreError,
    port,
    record::{BlobName, ChangeResult, DomainCheckRecord, FileLink},
};

/// What content is made with.
#[derive(Default)]
pub(super) struct MemoryCatalogue {
    templates: BTreeMap<(TenantId, TemplateName), BTreeMap<i64, Template>>,
    pub recipients: BTreeMap<(TenantId, RecipientId), KnownRecipient>,
    keys: BTreeMap<(TenantId, String, String), DkimKey>,
    checks: BTreeMap<(TenantId, String), DomainCheckRecord>,
    pub links: BTreeMap<(MessageUid, BlobName), FileLink>,
}

impl MemoryCatalogue {
    pub fn create_template(&mut self, template: Template) -> ChangeResult {
        let place = (template.tenant.clone(), template.name.clone());
        let versions = self.templates.entry(place.clone()).or_default();
        let newest = versions.last_key_value().map_or(0, |(version, _)| *version);
        if versions.contains_key(&template.version) {
            return ChangeResult::Exists;
        }
        let is_next = template.version == newest + 1;
        if is_next {
            let oldest_kept = template.version - Template::VERSIONS_MAX;
            versions.insert(template.version, template);
            versions.retain(|version, _| *version > oldest_kept);
        }
        // No name without a version.
        if versions.is_empty() {
            self.templates.remove(&place);
        }
        done_if(is_next, ChangeResult::Stale)
    }

    pub fn put_check(&mut self, check: DomainCheckRecord) -> ChangeResult {
        self.checks.insert((check.tenant.clone(), check.domain.clone()), check);
        ChangeResult::Done
    }

    pub fn delete_check(&mut self, tenant: TenantId, domain: String) -> ChangeResult {
        done_if(self.checks.remove(&(tenant, domain)).is_some(), ChangeResult::Missing)
    }

    pub fn delete_template(&mut self, tenant: &TenantId, name: &TemplateName) -> ChangeResult {
        done_if(self.templates.remove(&(tenant.clone(), name.clone())).is_some(), ChangeResult::Missing)
    }

    fn template(&self, tenant: &TenantId, name: &TemplateName, version: Option<i64>) -> Option<Template> {
        let versions = self.templates.get(&(tenant.clone(), name.clone()))?;
        match version {
            Some(version) => versions.get(&version).cloned(),
            None => versions.values().next_back().cloned(),
        }
    }

    fn list_templates(&self, tenant: &TenantId, after: Option<&TemplateName>, limit: u32) -> Vec<Template> {
        let later =
            |(of, name): &(TenantId, TemplateName)| of == tenant && after.is_none_or(|after| name > after);
        let later = self.templates.iter().filter(|(place, _)| later(place));
        later
            .filter_map(|(_, versions)| versions.values().next_back())
            .take(limit as usize)
            .cloned()
            .collect()
    }

    fn list_versions(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        before: Option<i64>,
        limit: u32,
    ) -> Vec<Template> {
        let versions = self.templates.get(&(tenant.clone(), name.clone()));
        let versions = versions.into_iter().flat_map(|versions| versions.values().rev());
        let older = versions.filter(|one| before.is_none_or(|before| one.version < before));
        older.take(limit as usize).cloned().collect()
    }

    /// Whether another entry that is not deleted has its external id.
    fn is_external_id_taken(&self, recipient: &KnownRecipient) -> bool {
        let Some(external_id) = &recipient.external_id else { return false };
        self.live(&recipient.tenant)
            .any(|one| one.external_id.as_ref() == Some(external_id) && one.id != recipient.id)
    }

    /// A tenant's entries that are not deleted, by id.
    fn live(&self, tenant: &TenantId) -> impl Iterator<Item = &KnownRecipient> {
        self.recipients.values().filter(move |one| one.tenant == *tenant && one.deleted_at.is_none())
    }

    pub fn create_recipient(&mut self, recipient: KnownRecipient) -> ChangeResult {
        let place = (recipient.tenant.clone(), recipient.id);
        let is_free = !self.recipients.contains_key(&place) && !self.is_external_id_taken(&recipient);
        if is_free {
            self.recipients.insert(place, recipient);
        }
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn update_recipient(&mut self, recipient: KnownRecipient, expected: i64) -> ChangeResult {
        if self.is_external_id_taken(&recipient) {
            return ChangeResult::Exists;
        }
        match self.recipients.get_mut(&(recipient.tenant.clone(), recipient.id)) {
            Some(stored) if stored.version == expected && stored.deleted_at.is_none() => {
                *stored = KnownRecipient { created_at: stored.created_at, deleted_at: None, ..recipient };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn delete_recipient(&mut self, tenant: TenantId, id: RecipientId, at: Time) -> ChangeResult {
        match self.recipients.get_mut(&(tenant, id)) {
            Some(stored) if stored.deleted_at.is_none() => {
                stored.personal_number = None;
                stored.personal_number_digest = None;
                stored.deleted_at = Some(at);
                stored.updated_at = at;
                stored.version += 1;
                ChangeResult::Done
            }
            Some(_) => ChangeResult::Already,
            None => ChangeResult::Missing,
        }
    }

    fn recipient(&self, tenant: &TenantId, key: &RecipientKey) -> Option<KnownRecipient> {
        let found = match key {
            RecipientKey::Id(id) => self.recipients.get(&(tenant.clone(), *id)),
            RecipientKey::External(id) => {
                let has_id =
                    |one: &&KnownRecipient| one.tenant == *tenant && one.external_id.as_ref() == Some(id);
                let live = self.live(tenant).find(has_id);
                live.or_else(|| self.recipients.values().filter(has_id).max_by_key(|one| one.deleted_at))
            }
            RecipientKey::Personal(digest) => {
                self.live(tenant).find(|one| one.personal_number_digest == Some(*digest))
            }
        };
        found.cloned()
    }

    fn list_recipients(
        &self,
        tenant: &TenantId,
        address: Option<&str>,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Vec<KnownRecipient> {
        let later = self.live(tenant).filter(|one| after.is_none_or(|after| one.id > after));
        let matches = |one: &&KnownRecipient| {
            address.is_none_or(|address| EmailAddress::is_same(&one.address, address))
        };
        later.filter(matches).take(limit as usize).cloned().collect()
    }

    pub fn create_key(&mut self, mut key: DkimKey) -> ChangeResult {
        key.domain.make_ascii_lowercase();
        let place = (key.tenant.clone(), key.domain.clone(), key.selector.clone());
        let is_free = !self.keys.contains_key(&place);
        self.keys.entry(place).or_insert(key);
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn switch_key(
        &mut self,
        tenant: TenantId,
        domain: &str,
        selector: String,
        active: bool,
    ) -> ChangeResult {
        match self.keys.get_mut(&(tenant, domain.to_ascii_lowercase(), selector)) {
            Some(stored) => {
                stored.active = active;
                ChangeResult::Done
            }
            None => ChangeResult::Missing,
        }
    }

    pub fn reseal_key(&mut self, key: DkimKey, was: &SealedSecret) -> ChangeResult {
        let place = (key.tenant, key.domain.to_ascii_lowercase(), key.selector);
        match self.keys.get_mut(&place).filter(|stored| stored.private == *was) {
            Some(stored) => {
                stored.private = key.private;
                ChangeResult::Done
            }
            None => ChangeResult::Stale,
        }
    }

    pub fn delete_key(&mut self, tenant: TenantId, domain: &str, selector: String) -> ChangeResult {
        let place = (tenant, domain.to_ascii_lowercase(), selector);
        done_if(self.keys.remove(&place).is_some(), ChangeResult::Missing)
    }

    fn list_keys(&self, tenant: Option<&TenantId>, domain: Option<&str>) -> Vec<DkimKey> {
        let of_tenant = self.keys.values().filter(|key| tenant.is_none_or(|tenant| key.tenant == *tenant));
        let of_domain = |key: &&DkimKey| domain.is_none_or(|domain| key.domain.eq_ignore_ascii_case(domain));
        of_tenant.filter(of_domain).cloned().collect()
    }

    pub fn forget_links(&mut self, now: Time) {
        self.links.retain(|_, link| link.file.expires_at > now);
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.templates.retain(|(of, _), _| of != tenant);
        self.recipients.retain(|(of, _), _| of != tenant);
        self.keys.retain(|(of, ..), _| of != tenant);
        self.checks.retain(|(of, _), _| of != tenant);
        self.links.retain(|_, link| link.tenant != *tenant);
    }
}

#[async_trait]
impl port::CatalogueStore for MemoryStore {
    async fn template(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
    ) -> Result<Option<Template>, StoreError> {
        Ok(self.tables()?.catalogue.template(tenant, name, version))
    }

    async fn templates(
        &self,
        tenant: &TenantId,
        after: Option<&TemplateName>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError> {
        Ok(self.tables()?.catalogue.list_templates(tenant, after, limit))
    }

    async fn template_versions(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError> {
        Ok(self.tables()?.catalogue.list_versions(tenant, name, before, limit))
    }

    async fn recipient(
        &self,
        tenant: &TenantId,
        key: &RecipientKey,
    ) -> Result<Option<KnownRecipient>, StoreError> {
        Ok(self.tables()?.catalogue.recipient(tenant, key))
    }

    async fn recipients(
        &self,
        tenant: &TenantId,
        address: Option<&str>,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Result<Vec<KnownRecipient>, StoreError> {
        Ok(self.tables()?.catalogue.list_recipients(tenant, address, after, limit))
    }

    async fn dkim_keys(
        &self,
        tenant: Option<&TenantId>,
        domain: Option<&str>,
    ) -> Result<Vec<DkimKey>, StoreError> {
        Ok(self.tables()?.catalogue.list_keys(tenant, domain))
    }

    async fn domain_checks(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<DomainCheckRecord>, StoreError> {
        let tables = self.tables()?;
        let of_tenant = tables.catalogue.checks.values().filter(|check| check.tenant == *tenant);
        Ok(of_tenant.take(limit as usize).cloned().collect())
    }

    async fn stale_domain_checks(
        &self,
        before: Time,
        limit: u32,
    ) -> Result<Vec<DomainCheckRecord>, StoreError> {
        let tables = self.tables()?;
        let old = tables.catalogue.checks.values().filter(|check| check.checked_at <= before);
        let mut old: Vec<DomainCheckRecord> = old.cloned().collect();
        old.sort_by_key(|check| (check.checked_at, check.tenant.clone(), check.domain.clone()));
        old.truncate(limit as usize);
        Ok(old)
    }

    async fn link(&self, uid: MessageUid, blob: &BlobName) -> Result<Option<FileLink>, StoreError> {
        Ok(self.tables()?.catalogue.links.get(&(uid, blob.clone())).cloned())
    }
}
