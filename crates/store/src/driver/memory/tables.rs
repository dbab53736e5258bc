//! The tables and the index of what waits to be claimed.
//!
//! A message is only ever changed through [`MemoryTables::insert`] and [`MemoryTables::edit`], so that the
//! index cannot go stale.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{LaneId, MessageUid, TenantId, Time};

use super::{
    admin::MemoryDirectory, archive::ArchiveTable, content::MemoryCatalogue,
    domain_reports::DomainReportTables, hooks::HookTables, mailboxes::InboundTables, preparation::BlobNames,
    reporting::ReportingTables, stored_message::StoredMessage,
};
use crate::record::{AccountKey, DedupKind, MessageTombstone};

/// Messages that wait, by when they are due.
pub(super) type Queue = BTreeSet<(Time, MessageUid)>;

/// What a deduplication key refers to.
#[derive(Clone, Copy)]
pub(super) struct DedupOwner {
    pub uid: MessageUid,
    pub fingerprint: [u8; 32],
    /// Set when its message is gone.
    pub expires_at: Option<Time>,
}

impl DedupOwner {
    /// Itself, unless its time is over.
    pub fn held_at(self, now: Time) -> Option<Self> {
        Some(self).filter(|key| key.expires_at.is_none_or(|at| at > now))
    }
}

/// Everything there is.
#[derive(Default)]
pub(super) struct MemoryTables {
    pub messages: BTreeMap<MessageUid, StoredMessage>,
    pub waiting: BTreeMap<AccountKey, BTreeMap<LaneId, Queue>>,
    pub directory: MemoryDirectory,
    pub catalogue: MemoryCatalogue,
    /// The latest message of each collapse key.
    pub collapse: BTreeMap<(TenantId, String), MessageUid>,
    pub blobs: BlobNames,
    pub reports: ReportingTables,
    pub inbound: InboundTables,
    pub hooks: HookTables,
    pub domain_reports: DomainReportTables,
    pub archive: ArchiveTable,
    pub tombstones: BTreeMap<MessageUid, MessageTombstone>,
    keys: BTreeMap<(TenantId, u8, String), DedupOwner>,
}

impl MemoryTables {
    /// Adds a message.
    pub fn insert(&mut self, stored: StoredMessage) {
        self.enqueue(&stored);
        self.messages.insert(stored.uid(), stored);
    }

    /// Changes a message; `None` if there is no such message.
    pub fn edit<T>(&mut self, uid: MessageUid, edit: impl FnOnce(&mut StoredMessage) -> T) -> Option<T> {
        let mut stored = self.messages.remove(&uid)?;
        self.dequeue(&stored);
        let known = stored.record.events.len();
        let outcome = edit(&mut stored);
        self.reports.note(&stored, known);
        self.insert(stored);
        Some(outcome)
    }

    /// Removes a message and its keys.
    pub fn remove(&mut self, uid: MessageUid) {
        self.take_out(uid);
        self.keys.retain(|_, key| key.uid != uid);
    }

    /// Removes a message and lets its keys end at this time.
    pub fn retire(&mut self, uid: MessageUid, keys_end_at: Time) {
        self.take_out(uid);
        self.collapse.retain(|_, latest| *latest != uid);
        for key in self.keys.values_mut().filter(|key| key.uid == uid) {
            key.expires_at = Some(keys_end_at);
        }
    }

    fn take_out(&mut self, uid: MessageUid) {
        if let Some(stored) = self.messages.remove(&uid) {
            self.dequeue(&stored);
        }
        self.catalogue.links.retain(|(of, _), _| *of != uid);
        self.reports.forget_message(uid);
        self.inbound.forget_message(uid);
    }

    /// Forgets the keys that have ended, the first to end first; how many.
    pub fn forget_keys(&mut self, now: Time, limit: usize) -> usize {
        let ended = self.keys.iter().filter_map(|(name, key)| Some((key.expires_at?, name.clone())));
        let mut ended: Vec<_> = ended.filter(|(at, _)| *at <= now).collect();
        ended.sort();
        ended.truncate(limit);
        ended.iter().filter(|(_, name)| self.keys.remove(name).is_some()).count()
    }

    /// Removes what is left of a tenant besides its messages.
    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.collapse.retain(|(of, _), _| of != tenant);
        self.keys.retain(|(of, ..), _| of != tenant);
    }

    /// What a key refers to, if it was used.
    pub fn key(&self, tenant: &TenantId, kind: DedupKind, key: &str) -> Option<DedupOwner> {
        self.keys.get(&(tenant.clone(), kind as u8, key.to_owned())).copied()
    }

    /// Remembers a key.
    pub fn remember(&mut self, tenant: &TenantId, kind: DedupKind, key: &str, stands_for: DedupOwner) {
        self.keys.insert((tenant.clone(), kind as u8, key.to_owned()), stands_for);
    }

    fn enqueue(&mut self, stored: &StoredMessage) {
        let Some(due_at) = stored.claimable_at() else {
            return;
        };
        let lanes = self.waiting.entry(stored.account_key()).or_default();
        lanes.entry(stored.lane_id()).or_default().insert((due_at, stored.uid()));
    }

    /// Leaves no empty queue behind, so that looking for work costs what there is of it.
    fn dequeue(&mut self, stored: &StoredMessage) {
        let Some(due_at) = stored.claimable_at() else {
            return;
        };
        let key = stored.account_key();
        let lane_id = stored.lane_id();
        let Some(lanes) = self.waiting.get_mut(&key) else {
            return;
        };
        if let Some(queue) = lanes.get_mut(&lane_id) {
            queue.remove(&(due_at, stored.uid()));
            if queue.is_empty() {
                lanes.remove(&lane_id);
            }
        }
        if lanes.is_empty() {
            self.waiting.remove(&key);
        }
    }
}
