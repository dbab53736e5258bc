//! The store in memory: the port's meaning without a database, for the simulation and for tests.
//!
//! Every call is one critical section under one lock, so it is one transaction; nothing is awaited inside,
//! and nothing is durable. Everything is kept in ordered maps: the same calls give the same answers.
//!
//! One store may have several views, one for each node of a simulation: they see the same tables, and each
//! has hints and standing claims of its own.
//!
//! It fails only where a caller broke the port's terms (a message id used twice) or an earlier call panicked
//! and may have left the tables half written.

mod accept;
mod admin;
mod archive;
mod bulk_actions;
mod claim;
mod content;
mod domain_reports;
mod findings;
mod hooks;
mod inbound;
mod inbound_mail;
mod mailboxes;
mod notifications;
mod people;
mod preparation;
mod rate_limit;
mod read;
mod reporting;
mod retention;
mod routes;
mod stored_message;
mod streams;
mod subscribers;
mod suppressions;
mod suspensions;
mod tables;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountLimits, ApiKey, Incarnation, KeyDigest, LimitSpan, MessageState,
    MessageStatus, MessageUid, Tenant, TenantId, Time,
    id::{AuditId, BatchCode, SessionId},
    oauth::{OAuthOwner, OAuthState},
    quota::QuotaDay,
};

use self::tables::MemoryTables;
use crate::{
    error::StoreError,
    nodes::single::LocalNodes,
    port::{DirectoryStore, IntakeStore, NodeStore, OperationStore, Read, WorkStore},
    queue::hand_over::HandOver,
    record::{
        Acceptance, AccountGate, AccountKey, AttemptDialogue, AuditEntry, BatchRecord, ChangeResult,
        ClaimRequest, ClaimedMessage, DedupKind, DirectoryChange, DutyRecord, LimitUse, MessageBrief,
        MessageChange, MessageCount, MessageFilter, MessageKey, MessagePage, MessageRecord, NewMessage,
        NodeBeat, NodeRecord, OpenCircuit, PreparationResult, QueueState, QueueStats, QuotaUse, SendingRate,
        StalledMessage, StoredBody, SuppressionRecord, SuspensionRecord, WireCommit,
    },
};

/// A store that forgets everything with its process.
#[derive(Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<MemoryTables>>,
    nodes: Arc<LocalNodes>,
    is_shared: bool,
    hand_over: HandOver,
    commits: AtomicU64,
    generation: AtomicU64,
}

impl MemoryStore {
    /// An empty store, without a tenant.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that several nodes share, as they share a server's database; empty, too.
    pub fn shared() -> Self {
        Self { is_shared: true, ..Self::default() }
    }

    /// The same store as another process, or another life of this one, has it before it.
    pub fn beside(&self) -> Self {
        let (tables, nodes) = (self.tables.clone(), self.nodes.clone());
        Self { tables, nodes, is_shared: self.is_shared, ..Self::default() }
    }

    fn tables(&self) -> Result<MutexGuard<'_, MemoryTables>, StoreError> {
        self.tables.lock().map_err(|_| {
            StoreError::Unexpected("an earlier call panicked and may have left it half written".to_owned())
        })
    }

    /// Counts a transaction, if it wrote.
    fn commit(&self, wrote: bool) {
        if wrote {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Applies changes under the tables' lock, and gives the hints that follow.
    fn apply_to(&self, tables: &mut MemoryTables, changes: Vec<MessageChange>) -> Vec<bool> {
        let (mut woken, mut prepares) = (Vec::new(), false);
        let mut held = Vec::with_capacity(changes.len());
        for change in changes {
            let gives_back = change.to == MessageState::Accepted;
            let is_later =
                matches!(change.preparation, Some(PreparationResult::Later(_) | PreparationResult::Again(_)));
            let (uid, awaits) = (change.uid, change.awaits_receipt);
            held.push(tables.apply(change, &mut woken));
            if let (Some(&true), Some(until)) = (held.last(), awaits) {
                tables.inbound.waiting.entry(uid).or_insert(until);
            }
            prepares |= (gives_back || is_later) && held.last() == Some(&true);
        }
        self.commit(held.contains(&true));
        self.hand_over.wake(woken);
        if prepares {
            self.hand_over.wake_preparation();
        }
        self.tell(tables.reports.leave_pages());
        held
    }

    /// Wakes reporting if there is something new.
    fn tell(&self, news: bool) {
        if news {
            self.hand_over.wake_reports();
        }
    }
}

#[async_trait]
impl IntakeStore for MemoryStore {
    async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError> {
        let mut tables = self.tables()?;
        let accepted = tables.accept(messages, &self.hand_over)?;
        self.commit(accepted.answers.iter().any(Acceptance::is_accepted));
        self.hand_over.deliver(accepted.handed_over);
        self.hand_over.wake(accepted.woken);
        if accepted.prepares {
            self.hand_over.wake_preparation();
        }
        self.tell(tables.reports.leave_pages());
        Ok(accepted.answers)
    }

    async fn seen_before(
        &self,
        tenant: &TenantId,
        keys: &[(DedupKind, String)],
        fingerprint: &[u8; 32],
        now: Time,
    ) -> Result<Option<Acceptance>, StoreError> {
        let tables = self.tables()?;
        Ok(keys.iter().find_map(|(kind, key)| tables.key_seen(tenant, *kind, key, fingerprint, now)))
    }
}

#[async_trait]
impl WorkStore for MemoryStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedMessage>, StoreError> {
        let mut tables = self.tables()?;
        let mut claimed = Vec::new();
        for want in &request.wants {
            let (taken, rest) = tables.claim(want, &request);
            if want.park {
                // Under the tables' lock, so that nothing is accepted between the last look and the standing
                // claim.
                self.hand_over.park(rest, &request.lease, request.now);
            }
            claimed.extend(taken);
        }
        self.commit(!claimed.is_empty());
        self.tell(tables.reports.leave_pages());
        Ok(claimed)
    }

    async fn handed_over(&self) -> Vec<ClaimedMessage> {
        self.hand_over.delivered().await
    }

    fn unpark(&self) {
        self.hand_over.unpark();
    }

    async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError> {
        let mut tables = self.tables()?;
        let held: Vec<bool> = commits.into_iter().map(|commit| tables.wire_commit(commit)).collect();
        self.commit(held.contains(&true));
        Ok(held)
    }

    async fn apply(&self, changes: Vec<MessageChange>) -> Result<Vec<bool>, StoreError> {
        Ok(self.apply_to(&mut *self.tables()?, changes))
    }

    async fn body(&self, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        Ok(self.tables()?.body(uid))
    }

    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<StalledMessage>, StoreError> {
        Ok(self.tables()?.stalled(alive, now, limit))
    }

    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError> {
        Ok(self.tables()?.overdue(now, limit))
    }

    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError> {
        Ok(self.tables()?.queue_state(now))
    }

    async fn woken(&self) -> Vec<AccountKey> {
        self.hand_over.woken().await
    }
}

#[async_trait]
impl Read for MemoryStore {
    async fn message(
        &self,
        tenant: &TenantId,
        key: &MessageKey,
    ) -> Result<Option<MessageRecord>, StoreError> {
        Ok(self.tables()?.message(tenant, key))
    }

    async fn search(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<MessagePage, StoreError> {
        Ok(self.tables()?.search(tenant, filter, before, limit))
    }

    async fn count(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        most: u32,
    ) -> Result<MessageCount, StoreError> {
        let page = self.tables()?.search(tenant, filter, None, most);
        Ok(MessageCount { messages: page.messages.len() as u64, is_more: page.next.is_some() })
    }

    async fn briefs(&self, tenant: &TenantId, uids: &[MessageUid]) -> Result<Vec<MessageBrief>, StoreError> {
        Ok(self.tables()?.briefs(tenant, uids))
    }

    async fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        Ok(self.tables()?.raw(tenant, uid))
    }

    async fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        Ok(self.tables()?.payload(tenant, uid))
    }

    async fn dialogue(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<AttemptDialogue>, StoreError> {
        Ok(self.tables()?.dialogue(tenant, uid))
    }

    async fn pace(&self, tenant: &TenantId, since: Time) -> Result<Vec<SendingRate>, StoreError> {
        Ok(self.tables()?.reports.pace_since(tenant, since))
    }

    async fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Result<QueueStats, StoreError> {
        Ok(self.tables()?.stats(tenant, now))
    }
}

#[async_trait]
impl DirectoryStore for MemoryStore {
    async fn change(
        &self,
        change: DirectoryChange,
        audit: Option<AuditEntry>,
    ) -> Result<ChangeResult, StoreError> {
        let mut tables = self.tables()?;
        let woken = tables.woken_by(&change);
        let account = crate::engine::woken_by(&change);
        let wakes_reports = crate::engine::wakes_reports(&change);
        let changed = tables.change(change);
        self.generation.fetch_add(1, Ordering::AcqRel);
        if changed == ChangeResult::Done {
            account.iter().for_each(|key| self.hand_over.withdraw(key));
            audit.into_iter().for_each(|entry| tables.directory.audit.record(entry));
            self.commit(true);
            self.hand_over.wake(woken);
            self.tell(wakes_reports | tables.reports.leave_pages());
        }
        Ok(changed)
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
        Ok(self.tables()?.directory.tenants.get(id).cloned())
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.tables()?.directory.list_tenants(after, limit))
    }

    async fn accounts(&self, tenant: Option<&TenantId>) -> Result<Vec<Account>, StoreError> {
        Ok(self.tables()?.directory.list_accounts(tenant))
    }

    async fn account(&self, tenant: &TenantId, id: &AccountId) -> Result<Option<Account>, StoreError> {
        Ok(self.tables()?.directory.account(tenant, id))
    }

    async fn key(&self, digest: &KeyDigest) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.tables()?.directory.key(digest))
    }

    async fn key_by_id(&self, id: &str) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.tables()?.directory.key_by_id(id))
    }

    async fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
        Ok(self.tables()?.directory.list_keys(tenant))
    }

    async fn oauth_state(&self, owner: &OAuthOwner) -> Result<Option<OAuthState>, StoreError> {
        Ok(self.tables()?.directory.oauth.get(owner).cloned())
    }

    async fn oauth_states(&self) -> Result<Vec<OAuthState>, StoreError> {
        Ok(self.tables()?.directory.oauth.values().cloned().collect())
    }

    async fn quota_use(&self, tenant: &TenantId, day: QuotaDay) -> Result<QuotaUse, StoreError> {
        Ok(self.tables()?.directory.quotas.get(&(tenant.clone(), day)).copied().unwrap_or_default())
    }

    async fn is_session_ended(&self, id: SessionId) -> Result<bool, StoreError> {
        Ok(self.tables()?.directory.is_session_ended(id))
    }

    async fn suspensions(&self, tenant: &TenantId) -> Result<Vec<SuspensionRecord>, StoreError> {
        Ok(self.tables()?.directory.list_suspensions(tenant))
    }

    async fn batches(
        &self,
        tenant: &TenantId,
        after: Option<&BatchCode>,
        limit: u32,
    ) -> Result<Vec<BatchRecord>, StoreError> {
        Ok(self.tables()?.batches(tenant, after, limit))
    }

    async fn batch_states(
        &self,
        tenant: &TenantId,
        code: &BatchCode,
    ) -> Result<BTreeMap<MessageStatus, i64>, StoreError> {
        Ok(self.tables()?.batch_states(tenant, code))
    }

    async fn account_gates(
        &self,
        tenant: &TenantId,
        accounts: &[AccountId],
        now: Time,
    ) -> Result<Vec<(AccountId, AccountGate)>, StoreError> {
        Ok(self.tables()?.account_gates(tenant, accounts, now))
    }

    async fn held(&self, tenant: &TenantId, now: Time) -> Result<i64, StoreError> {
        Ok(self.tables()?.held(tenant, now))
    }

    async fn suppressions(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SuppressionRecord>, StoreError> {
        Ok(self.tables()?.directory.list_suppressions(tenant, after, limit))
    }

    async fn suppression(
        &self,
        tenant: &TenantId,
        address: &str,
    ) -> Result<Option<SuppressionRecord>, StoreError> {
        Ok(self.tables()?.directory.suppression(tenant, address))
    }

    async fn audit(
        &self,
        tenant: Option<&TenantId>,
        before: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.tables()?.directory.audit(tenant, before, limit))
    }

    async fn circuit(&self, key: &AccountKey) -> Result<Option<OpenCircuit>, StoreError> {
        Ok(self.tables()?.directory.circuit(key))
    }

    async fn circuits(&self, tenant: Option<&TenantId>) -> Result<Vec<OpenCircuit>, StoreError> {
        Ok(self.tables()?.directory.circuits(tenant))
    }

    async fn used(
        &self,
        key: &AccountKey,
        limits: &AccountLimits,
        now: Time,
    ) -> Result<Vec<(LimitSpan, LimitUse)>, StoreError> {
        Ok(self.tables()?.directory.used_of(key, limits, now))
    }
}

#[async_trait]
impl NodeStore for MemoryStore {
    fn is_shared(&self) -> bool {
        self.is_shared
    }

    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
        Ok(self.nodes.beat(node))
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        Ok(self.nodes.all())
    }

    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError> {
        self.nodes.strike(gone);
        Ok(())
    }

    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError> {
        Ok(self.nodes.duty(name))
    }

    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError> {
        Ok(self.nodes.take_duty(name, seen, by, at))
    }
}

#[async_trait]
impl OperationStore for MemoryStore {
    async fn ping(&self) -> Result<(), StoreError> {
        self.tables().map(drop)
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::MemoryStore;
    use crate::port::Store;

    async fn memory() -> (Arc<dyn Store>, ()) {
        (Arc::new(MemoryStore::new()), ())
    }

    crate::conformance_tests!(memory);
}
