//! The list of what tenants' archives hold.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{MessageUid, Subscriber, TenantId, Time};

use super::{MemoryStore, admin::done_if};
use crate::{
    admin::archive::range,
    error::StoreError,
    port::ArchiveStore,
    record::{ArchiveBacklog, ArchiveFilter, ArchivedMail, ChangeResult},
};

/// Stored copies by tenant and message.
#[derive(Default)]
pub(super) struct ArchiveTable(BTreeMap<(TenantId, MessageUid), ArchivedMail>);

impl ArchiveTable {
    pub fn put(&mut self, mail: ArchivedMail) -> ChangeResult {
        self.0.insert((mail.tenant.clone(), mail.uid), mail);
        ChangeResult::Done
    }

    pub fn forget(&mut self, mail: &ArchivedMail) -> ChangeResult {
        let place = (mail.tenant.clone(), mail.uid);
        let is_there = self.0.get(&place).is_some_and(|stored| stored.digest == mail.digest);
        if is_there {
            self.0.remove(&place);
        }
        done_if(is_there, ChangeResult::Missing)
    }

    /// What is stored outside is deleted at the next round.
    pub fn expire_tenant(&mut self, tenant: &TenantId) {
        let of_tenant = self.0.iter_mut().filter(|((of, _), _)| of == tenant);
        of_tenant.for_each(|(_, mail)| mail.expires_at = Some(Time::from_millis(0)));
    }
}

#[async_trait]
impl ArchiveStore for MemoryStore {
    async fn archived(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<ArchivedMail>, StoreError> {
        Ok(self.tables()?.archive.0.get(&(tenant.clone(), uid)).cloned())
    }

    async fn archive(
        &self,
        tenant: &TenantId,
        filter: &ArchiveFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<ArchivedMail>, StoreError> {
        let (first, end) = range(filter, before);
        let tables = self.tables()?;
        let of_tenant = tables.archive.0.values().rev().filter(|mail| mail.tenant == *tenant);
        let listed = of_tenant.filter(|mail| mail.uid >= first && mail.uid < end);
        Ok(listed.take(limit as usize).cloned().collect())
    }

    async fn expired_archive(&self, now: Time, limit: u32) -> Result<Vec<ArchivedMail>, StoreError> {
        let tables = self.tables()?;
        let over = tables.archive.0.values().filter(|mail| mail.expires_at.is_some_and(|at| at <= now));
        let mut over: Vec<ArchivedMail> = over.cloned().collect();
        over.sort_by_key(|mail| mail.expires_at);
        over.truncate(limit as usize);
        Ok(over)
    }

    async fn archive_backlog(&self, tenant: Option<&TenantId>) -> Result<Vec<ArchiveBacklog>, StoreError> {
        let tables = self.tables()?;
        let keepers = tables.reports.subscribers.keys().filter(|(of, id)| {
            id.as_str() == Subscriber::ARCHIVE && tenant.is_none_or(|tenant| tenant == of)
        });
        let backlog = |(of, id): &(TenantId, postway_domain::id::SubscriberId)| {
            let all = tables.reports.notifications.values().map(|one| &one.view);
            let own = all.filter(|view| view.key.tenant == *of && view.key.subscriber == *id);
            let mut open: Vec<_> = own.filter(|view| view.due_at.is_some()).collect();
            open.sort_by_key(|view| view.due_at);
            open.truncate(ArchiveBacklog::COUNTED_MAX as usize);
            let oldest = open.iter().map(|view| view.created_at).min();
            ArchiveBacklog { tenant: of.clone(), waiting: open.len() as i64, oldest }
        };
        Ok(keepers.map(backlog).collect())
    }
}
