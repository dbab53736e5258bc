//! Streams, scoped suppressions, and what readers decide.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{EventKind, MailStream, TenantId, Time, id::StreamId};

use super::{MemoryStore, admin::done_if, tables::MemoryTables};
use crate::{
    error::StoreError,
    port::StreamStore,
    record::{
        ChangeResult, ReaderDecision, ScopeFilter, ScopedSuppression, SuppressionReason, SuppressionScope,
    },
};

/// Suppressions of streams, patterns or the whole installation.
#[derive(Default)]
pub(super) struct ScopedTable(pub(super) BTreeMap<SuppressionScope, ScopedSuppression>);

impl ScopedTable {
    pub fn in_force(&self, now: Time) -> impl Iterator<Item = &ScopedSuppression> {
        self.0.values().filter(move |one| one.expires_at.is_none_or(|at| at > now))
    }

    pub fn forget(&mut self, now: Time) {
        self.0.retain(|_, one| one.expires_at.is_none_or(|at| at > now));
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.0.retain(|scope, _| scope.tenant.as_ref() != Some(tenant));
    }

    fn list(
        &self,
        filter: &ScopeFilter,
        after: Option<&SuppressionScope>,
        limit: u32,
    ) -> Vec<ScopedSuppression> {
        let of_tenant = self.0.values().filter(|one| one.scope.tenant == filter.tenant);
        let of_stream = of_tenant.filter(|one| filter.stream.is_none() || one.scope.stream == filter.stream);
        let place = |scope: &SuppressionScope| (scope.pattern.clone(), scope.stream.clone());
        let later = of_stream.filter(|one| after.is_none_or(|after| place(&one.scope) > place(after)));
        later.take(limit as usize).cloned().collect()
    }
}

/// Tenants' kinds of mail.
#[derive(Default)]
pub(super) struct StreamTable(BTreeMap<(TenantId, StreamId), MailStream>);

impl StreamTable {
    pub fn has(&self, tenant: &TenantId, id: &StreamId) -> bool {
        self.0.contains_key(&(tenant.clone(), id.clone()))
    }

    pub fn create(&mut self, stream: MailStream) -> ChangeResult {
        let place = (stream.tenant.clone(), stream.id.clone());
        let is_free = !self.0.contains_key(&place);
        self.0.entry(place).or_insert(stream);
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn update(&mut self, stream: MailStream, expected: i64) -> ChangeResult {
        match self.0.get_mut(&(stream.tenant.clone(), stream.id.clone())) {
            Some(stored) if stored.version == expected => {
                *stored = MailStream { created_at: stored.created_at, ..stream };
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn delete(&mut self, tenant: TenantId, id: StreamId) -> ChangeResult {
        done_if(self.0.remove(&(tenant, id)).is_some(), ChangeResult::Missing)
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.0.retain(|(of, _), _| of != tenant);
    }
}

impl MemoryTables {
    fn decide(&mut self, decision: &ReaderDecision) -> ChangeResult {
        let scope = decision.scope();
        let scoped = &mut self.directory.scoped.0;
        let earlier = scoped.get(&scope);
        let kind = match decision.leaves {
            true if earlier.is_some_and(|one| one.expires_at.is_none()) => return ChangeResult::Already,
            true => {
                scoped.insert(scope, decision.suppression());
                EventKind::Unsubscribed
            }
            false if earlier.is_some_and(|one| one.reason == SuppressionReason::Unsubscribe) => {
                scoped.remove(&scope);
                EventKind::Resubscribed
            }
            false => return ChangeResult::Already,
        };
        let stored = self.messages.get(&decision.message);
        if stored.is_some_and(|stored| stored.record.summary.lane.tenant == decision.tenant) {
            self.edit(decision.message, |stored| {
                stored.happen(kind, Some(decision.data()), decision.at);
                let updated_at = &mut stored.record.summary.updated_at;
                *updated_at = (*updated_at).max(decision.at);
            });
        }
        self.note_decision(&decision.suppression(), decision.leaves, decision.at);
        ChangeResult::Done
    }
}

#[async_trait]
impl StreamStore for MemoryStore {
    async fn streams(
        &self,
        tenant: &TenantId,
        after: Option<&StreamId>,
        limit: u32,
    ) -> Result<Vec<MailStream>, StoreError> {
        let tables = self.tables()?;
        let of_tenant = tables.directory.streams.0.values().filter(|stream| stream.tenant == *tenant);
        let later = of_tenant.filter(|stream| after.is_none_or(|after| stream.id > *after));
        Ok(later.take(limit as usize).cloned().collect())
    }

    async fn stream(&self, tenant: &TenantId, id: &StreamId) -> Result<Option<MailStream>, StoreError> {
        Ok(self.tables()?.directory.streams.0.get(&(tenant.clone(), id.clone())).cloned())
    }

    async fn scoped_suppressions(
        &self,
        filter: &ScopeFilter,
        after: Option<&SuppressionScope>,
        limit: u32,
    ) -> Result<Vec<ScopedSuppression>, StoreError> {
        Ok(self.tables()?.directory.scoped.list(filter, after, limit))
    }

    async fn scoped_suppression(
        &self,
        scope: &SuppressionScope,
    ) -> Result<Option<ScopedSuppression>, StoreError> {
        Ok(self.tables()?.directory.scoped.0.get(scope).cloned())
    }

    async fn decide(&self, decision: ReaderDecision) -> Result<ChangeResult, StoreError> {
        let mut tables = self.tables()?;
        let changed = tables.decide(&decision);
        self.commit(changed == ChangeResult::Done);
        self.tell(tables.reports.leave_pages());
        Ok(changed)
    }
}
