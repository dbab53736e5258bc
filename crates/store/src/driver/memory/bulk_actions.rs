//! Bulk actions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId, Time, id::BulkActionId};

use super::{MemoryStore, admin::done_if, tables::MemoryTables};
use crate::{
    admin::bulk_actions,
    error::StoreError,
    port::BulkActionStore,
    record::{BulkAction, BulkActionState, BulkStep, ChangeResult, SuppressionOrigin},
};

/// Bulk actions by tenant and id.
#[derive(Default)]
pub(super) struct BulkTable(BTreeMap<(TenantId, BulkActionId), BulkAction>);

impl BulkTable {
    fn running(&self) -> impl Iterator<Item = &BulkAction> {
        self.0.values().filter(|action| action.state == BulkActionState::Running)
    }

    pub fn create(&mut self, action: BulkAction) -> ChangeResult {
        let running = self.running().filter(|other| other.tenant == action.tenant).count();
        if running >= BulkAction::RUNNING_MAX as usize {
            return ChangeResult::InUse;
        }
        let place = (action.tenant.clone(), action.id);
        let is_free = !self.0.contains_key(&place);
        self.0.entry(place).or_insert(action);
        done_if(is_free, ChangeResult::Exists)
    }

    pub fn stop(&mut self, tenant: TenantId, id: BulkActionId, at: Time) -> ChangeResult {
        let Some(action) = self.0.get_mut(&(tenant, id)) else { return ChangeResult::Missing };
        let runs = action.state == BulkActionState::Running;
        if runs {
            action.state = BulkActionState::Stopped;
            action.version += 1;
            (action.updated_at, action.ended_at) = (at, Some(at));
        }
        done_if(runs, ChangeResult::Already)
    }

    pub fn forget(&mut self, now: Time) {
        let until = bulk_actions::kept_until(now);
        self.0.retain(|_, action| action.ended_at.is_none_or(|at| at > until));
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.0.retain(|(of, _), _| of != tenant);
    }
}

impl MemoryTables {
    fn bulk_version(&self, step: &BulkStep) -> Option<i64> {
        let action = self.directory.bulk.0.get(&(step.tenant.clone(), step.id))?;
        (action.state == BulkActionState::Running).then_some(action.version)
    }

    fn advance_bulk(&mut self, step: &BulkStep, applied: &[bool]) {
        let missed = step.changes.iter().zip(applied).filter(|(_, held)| !**held);
        let missed: Vec<MessageUid> = missed.map(|(change, _)| change.uid).collect();
        let written = (step.changes.len() - missed.len()) as i64;
        let (again, left) = if step.tries_again { (missed, 0) } else { (Vec::new(), missed.len() as i64) };
        let is_finished = step.ends.is_some() && again.is_empty();
        if let Some(action) = self.directory.bulk.0.get_mut(&(step.tenant.clone(), step.id)) {
            action.reached = step.reached;
            action.again = again;
            action.changed += step.done + written;
            action.skipped += step.skipped + left;
            action.version += 1;
            action.updated_at = step.at;
            if is_finished {
                (action.state, action.ended_at) = (BulkActionState::Finished, Some(step.at));
            }
        }
        if let Some(entry) = step.ends.clone().filter(|_| is_finished) {
            self.directory.audit.record(entry);
        }
    }
}

#[async_trait]
impl BulkActionStore for MemoryStore {
    async fn bulk_actions(
        &self,
        tenant: &TenantId,
        before: Option<BulkActionId>,
        limit: u32,
    ) -> Result<Vec<BulkAction>, StoreError> {
        let tables = self.tables()?;
        let of_tenant = tables.directory.bulk.0.values().rev().filter(|action| action.tenant == *tenant);
        let older = of_tenant.filter(|action| before.is_none_or(|before| action.id < before));
        Ok(older.take(limit as usize).cloned().collect())
    }

    async fn bulk_action(
        &self,
        tenant: &TenantId,
        id: BulkActionId,
    ) -> Result<Option<BulkAction>, StoreError> {
        Ok(self.tables()?.directory.bulk.0.get(&(tenant.clone(), id)).cloned())
    }

    async fn running_bulk_actions(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<BulkAction>, StoreError> {
        let tables = self.tables()?;
        let mut first: BTreeMap<&TenantId, &BulkAction> = BTreeMap::new();
        for action in tables.directory.bulk.running().filter(|one| after.is_none_or(|a| one.tenant > *a)) {
            first.entry(&action.tenant).or_insert(action);
        }
        Ok(first.into_values().take(limit as usize).cloned().collect())
    }

    async fn advance_bulk_action(&self, step: BulkStep) -> Result<Option<Vec<bool>>, StoreError> {
        let mut tables = self.tables()?;
        if tables.bulk_version(&step) != Some(step.version) {
            return Ok(None);
        }
        let applied = self.apply_to(&mut tables, step.changes.clone());
        tables.suppress(step.suppressed.clone(), SuppressionOrigin::Operator, false);
        tables.advance_bulk(&step, &applied);
        self.commit(true);
        self.tell(tables.reports.leave_pages());
        Ok(Some(applied))
    }
}
