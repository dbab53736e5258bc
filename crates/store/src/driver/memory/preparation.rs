//! Messages that wait to be prepared, and the names of blobs.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    MessageState, MessageUid, TenantId, Time,
    message::{TransitionInput, transition},
};

use super::{MemoryStore, stored_message::StoredMessage, tables::MemoryTables};
use crate::{
    error::StoreError,
    port::{BlobNameStore, PreparationStore},
    record::{
        BlobName, ChangeResult, FileLink, LeaseGrant, NewLink, PreparationResult, PreparationState,
        PrepareRequest, PreparedMessage, StoredBody, ToPrepare,
    },
};

/// What is known of a message that is not composed yet.
pub(super) struct WaitingPreparation {
    pub due_at: Time,
    tries: i64,
    settled: Option<String>,
}

impl WaitingPreparation {
    pub fn new(due_at: Time, settled: Option<String>) -> Self {
        Self { due_at, tries: 0, settled }
    }
}

/// A blob's entry.
struct BlobEntry {
    generation: i64,
    reserved_at: Time,
    condemned: bool,
}

/// The names of blobs by their digests.
#[derive(Default)]
pub(super) struct BlobNames(BTreeMap<[u8; 32], BlobEntry>);

impl StoredMessage {
    /// When it is due to be prepared, if it waits for that.
    pub fn preparable_at(&self) -> Option<Time> {
        let state = self.record.summary.state;
        self.waiting
            .as_ref()
            .map(|waiting| waiting.due_at)
            .filter(|_| transition(state, TransitionInput::Validate).is_ok())
    }

    /// Leases it to be prepared; `None` if its state forbids it.
    fn prepare(&mut self, lease: &LeaseGrant, now: Time) -> Option<ToPrepare> {
        let (state, effects) = transition(self.record.summary.state, TransitionInput::Validate).ok()?;
        self.lease(state, lease, now);
        if let (Some(kind), Some(waiting)) = (effects.event, &self.waiting) {
            let data = format!("{{\"try\":{}}}", waiting.tries + 1);
            self.happen(kind, Some(data), now);
        }
        let (waiting, summary) = (self.waiting.as_ref()?, &self.record.summary);
        Some(ToPrepare {
            uid: summary.uid,
            lane: summary.lane.clone(),
            client_id: summary.client_id.clone(),
            token: lease.token,
            version: summary.version,
            tries: waiting.tries,
            lost_leases: self.lost_leases,
            created_at: summary.created_at,
            expires_at: summary.expires_at,
            request_id: summary.request_id.clone(),
            message_id: summary.message_id.clone(),
            settled: waiting.settled.clone(),
            payload: self.payload.clone(),
        })
    }

    /// Writes what came of a preparation; the files it links to.
    pub fn settle(&mut self, preparation: PreparationResult) -> Vec<NewLink> {
        match preparation {
            PreparationResult::Done(PreparedMessage { subject, raw, eight_bit, smtputf8, links }) => {
                self.record.summary.subject = subject;
                (self.eight_bit, self.smtputf8) = (eight_bit, smtputf8);
                self.size = raw.len();
                self.raw = Some(raw).filter(|raw| !raw.is_empty());
                self.waiting = None;
                return links;
            }
            // What was settled is kept, in case it is prepared once more.
            PreparationResult::Refused => {}
            PreparationResult::Again(at) => {
                let settled = self.waiting.take().and_then(|waiting| waiting.settled);
                self.waiting = Some(WaitingPreparation::new(at, settled));
            }
            PreparationResult::Later(at) => {
                if let Some(waiting) = &mut self.waiting {
                    (waiting.due_at, waiting.tries) = (at, waiting.tries + 1);
                }
            }
        }
        Vec::new()
    }

    fn refers_to(&self, blob: &BlobName) -> bool {
        let bodies = [&self.raw, &self.payload].into_iter().flatten();
        bodies.filter_map(StoredBody::blob).any(|body| body.name == *blob)
    }
}

impl MemoryTables {
    /// See [`crate::record::DirectoryChange::PullPreparation`].
    pub fn pull_preparation(&mut self, now: Time, latest: Time, limit: usize) -> ChangeResult {
        let is_ahead = |stored: &&StoredMessage| match (stored.preparable_at(), stored.record.summary.state) {
            (Some(due_at), MessageState::Accepted) => due_at > now,
            (Some(due_at), _) => due_at > latest,
            (None, _) => false,
        };
        let ahead: Vec<MessageUid> =
            self.messages.values().filter(is_ahead).map(StoredMessage::uid).take(limit).collect();
        for uid in &ahead {
            self.edit(*uid, |stored| {
                if let Some(waiting) = &mut stored.waiting {
                    waiting.due_at = now;
                }
            });
        }
        if ahead.is_empty() { ChangeResult::Already } else { ChangeResult::Done }
    }

    /// What waits to be prepared, the longest waiting first.
    fn preparable(&self) -> Vec<(Time, &StoredMessage)> {
        let waiting = self.messages.values().filter_map(|stored| Some((stored.preparable_at()?, stored)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(due_at, stored)| (*due_at, stored.uid()));
        waiting
    }

    fn preparation_state(&self, now: Time) -> PreparationState {
        let mut state = PreparationState::default();
        for (due_at, stored) in self.preparable() {
            let tenant = &stored.record.summary.lane.tenant;
            let is_deleted = |tenant: &TenantId| {
                self.directory.tenants.get(tenant).is_none_or(|tenant| tenant.deleted_at.is_some())
            };
            if is_deleted(tenant) {
                continue;
            }
            if due_at > now {
                state.next_due_at = state.next_due_at.or(Some(due_at));
            } else if !stored.expired(now) && !state.due.contains(tenant) {
                state.due.push(tenant.clone());
            }
        }
        state.due.sort();
        state
    }

    fn claim_preparation(&mut self, request: &PrepareRequest) -> Vec<ToPrepare> {
        let mut claimed = Vec::new();
        for (tenant, room) in &request.wants {
            let due = self.preparable().into_iter().filter(|(due_at, stored)| {
                *due_at <= request.now
                    && stored.record.summary.lane.tenant == *tenant
                    && !stored.expired(request.now)
            });
            let uids: Vec<MessageUid> = due.map(|(_, stored)| stored.uid()).take(*room as usize).collect();
            for uid in uids {
                claimed
                    .extend(self.edit(uid, |stored| stored.prepare(&request.lease, request.now)).flatten());
            }
        }
        claimed
    }

    /// Keeps the files that a message links to.
    pub fn link(&mut self, uid: MessageUid, files: Vec<NewLink>) {
        let Some(stored) = self.messages.get(&uid) else { return };
        let tenant = stored.record.summary.lane.tenant.clone();
        for file in files {
            let link = FileLink { tenant: tenant.clone(), uid, file };
            self.catalogue.links.entry((uid, link.file.blob.name.clone())).or_insert(link);
        }
    }

    fn condemn(&mut self, before: Time, limit: u32) -> Vec<BlobName> {
        let mut old: Vec<(Time, BlobName)> = Vec::new();
        for (digest, entry) in &self.blobs.0 {
            let name = BlobName { digest: *digest, generation: entry.generation };
            let is_referenced = self.messages.values().any(|stored| stored.refers_to(&name))
                || self.catalogue.links.keys().any(|(_, blob)| *blob == name)
                || self.inbound.refers_to(&name);
            if entry.reserved_at < before && !is_referenced {
                old.push((entry.reserved_at, name));
            }
        }
        old.sort();
        old.truncate(limit as usize);
        let names: Vec<BlobName> = old.into_iter().map(|(_, name)| name).collect();
        for name in &names {
            if let Some(entry) = self.blobs.0.get_mut(&name.digest) {
                entry.condemned = true;
            }
        }
        names
    }
}

impl BlobNames {
    fn reserve(&mut self, digest: [u8; 32], now: Time) -> BlobName {
        let fresh = || BlobEntry { generation: now.as_millis(), reserved_at: now, condemned: false };
        let entry = self.0.entry(digest).or_insert_with(fresh);
        entry.generation += i64::from(entry.condemned);
        entry.condemned = false;
        entry.reserved_at = entry.reserved_at.max(now);
        BlobName { digest, generation: entry.generation }
    }
}

#[async_trait]
impl PreparationStore for MemoryStore {
    async fn preparation_state(&self, now: Time) -> Result<PreparationState, StoreError> {
        Ok(self.tables()?.preparation_state(now))
    }

    async fn claim_preparation(&self, request: PrepareRequest) -> Result<Vec<ToPrepare>, StoreError> {
        let claimed = self.tables()?.claim_preparation(&request);
        self.commit(!claimed.is_empty());
        Ok(claimed)
    }

    async fn preparation_woken(&self) {
        self.hand_over.preparation_woken().await;
    }
}

#[async_trait]
impl BlobNameStore for MemoryStore {
    async fn reserve_blob(&self, digest: [u8; 32], _size: u64, now: Time) -> Result<BlobName, StoreError> {
        let name = self.tables()?.blobs.reserve(digest, now);
        self.commit(true);
        Ok(name)
    }

    async fn condemn_blobs(&self, before: Time, limit: u32) -> Result<Vec<BlobName>, StoreError> {
        let condemned = self.tables()?.condemn(before, limit);
        self.commit(!condemned.is_empty());
        Ok(condemned)
    }

    async fn forget_blobs(&self, gone: &[BlobName]) -> Result<(), StoreError> {
        let is_gone = |digest: &[u8; 32], entry: &BlobEntry| {
            let name = BlobName { digest: *digest, generation: entry.generation };
            entry.condemned && gone.contains(&name)
        };
        self.tables()?.blobs.0.retain(|digest, entry| !is_gone(digest, entry));
        self.commit(true);
        Ok(())
    }
}
