//! What holds mail back and how much, and whom its end concerns.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{AccountId, Lane, LaneId, MessageStatus, TenantId, Time, id::BatchCode};

use super::tables::{MemoryTables, Queue};
use crate::{
    admin, engine,
    record::{AccountGate, AccountKey, BatchRecord, DirectoryChange, SuspensionRecord, SuspensionScope},
};

impl MemoryTables {
    /// The accounts that the dispatcher must check again after this change.
    pub fn woken_by(&self, change: &DirectoryChange) -> Vec<AccountKey> {
        match change {
            DirectoryChange::Activate(tenant, scope) => {
                let of_scope = |queues: &BTreeMap<LaneId, Queue>| {
                    let first = queues.values().filter_map(|queue| queue.first());
                    let mut lanes = first.filter_map(|(_, uid)| self.messages.get(uid));
                    lanes.any(|stored| scope.holds(&stored.record.summary.lane))
                };
                let of_tenant = self.waiting.iter().filter(|(key, _)| key.tenant == *tenant);
                of_tenant.filter(|(_, queues)| of_scope(queues)).map(|(key, _)| key.clone()).collect()
            }
            change => engine::woken_by(change).into_iter().collect(),
        }
    }

    /// See [`crate::DirectoryStore::batches`].
    pub fn batches(&self, tenant: &TenantId, after: Option<&BatchCode>, limit: u32) -> Vec<BatchRecord> {
        let mut waiting: BTreeMap<BatchCode, i64> = BTreeMap::new();
        let mut suspended: BTreeMap<BatchCode, Time> = BTreeMap::new();
        for stored in self.messages.values() {
            let summary = &stored.record.summary;
            if let (true, Some(batch)) = (summary.lane.tenant == *tenant, &summary.lane.batch) {
                *waiting.entry(batch.clone()).or_default() += i64::from(summary.due_at.is_some());
            }
        }
        for suspension in self.directory.list_suspensions(tenant) {
            if let SuspensionScope::Batch(code) = suspension.scope {
                waiting.entry(code.clone()).or_default();
                suspended.insert(code, suspension.since);
            }
        }
        let later = waiting.into_iter().filter(|(code, _)| after.is_none_or(|after| code > after));
        later
            .take(limit as usize)
            .map(|(code, waiting)| BatchRecord {
                suspended_since: suspended.get(&code).copied(),
                code,
                waiting: waiting.min(BatchRecord::WAITING_MAX),
            })
            .collect()
    }

    /// See [`crate::DirectoryStore::batch_states`].
    pub fn batch_states(&self, tenant: &TenantId, code: &BatchCode) -> BTreeMap<MessageStatus, i64> {
        let mut states = BTreeMap::new();
        let summaries = self.messages.values().map(|stored| &stored.record.summary);
        let of_batch = summaries
            .filter(|summary| summary.lane.tenant == *tenant && summary.lane.batch.as_ref() == Some(code));
        for summary in of_batch.take(BatchRecord::COUNTED_MAX as usize) {
            *states.entry(summary.state.status()).or_default() += 1;
        }
        states
    }

    /// See [`crate::DirectoryStore::account_gates`].
    pub fn account_gates(
        &self,
        tenant: &TenantId,
        accounts: &[AccountId],
        now: Time,
    ) -> Vec<(AccountId, AccountGate)> {
        let mut gates = Vec::new();
        for id in accounts {
            let key = AccountKey { tenant: tenant.clone(), account: id.clone() };
            let account = self.directory.account(tenant, id);
            let used = |span| self.directory.used(&key, span, now).count;
            if account.is_some_and(|account| admin::is_used_up(&account.settings, now, used)) {
                gates.push((id.clone(), AccountGate::Limit));
            }
            if self.directory.circuit(&key).is_some() {
                gates.push((id.clone(), AccountGate::Circuit));
            }
        }
        gates.sort();
        gates
    }

    /// See [`crate::DirectoryStore::held`].
    pub fn held(&self, tenant: &TenantId, now: Time) -> i64 {
        let suspended = self.directory.gates();
        let of_tenant = || {
            let summaries = self.messages.values().map(|stored| &stored.record.summary);
            summaries.filter(|summary| summary.lane.tenant == *tenant && summary.due_at.is_some())
        };
        let accounts: BTreeSet<AccountId> = of_tenant().map(|summary| summary.lane.account.clone()).collect();
        let accounts: Vec<AccountId> = accounts.into_iter().collect();
        let shut = self.account_gates(tenant, &accounts, now);
        let is_held = |lane: &Lane| !suspended.pass(lane) || shut.iter().any(|(id, _)| *id == lane.account);
        let held = of_tenant().filter(|summary| is_held(&summary.lane)).count();
        (held as i64).min(SuspensionRecord::HELD_MAX)
    }
}
