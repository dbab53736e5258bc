//! Hooks of accounts, and the events that providers report.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Incarnation, KeyDigest, MessageUid, ProviderEventState, ProviderHook, TenantId, Time,
    inbound::SUSPECT_WAIT,
};

use super::{MemoryStore, admin::done_if, tables::MemoryTables};
use crate::{
    error::StoreError,
    hook::{
        claim::{ClaimBytes, keep_suspects_apart, rounds},
        settle::next_state,
    },
    port::HookStore,
    record::{
        AccountKey, ChangeResult, FindingOrigin, LeaseGrant, ProcessingState, ProviderEventBatch,
        ProviderEventClaim, ProviderEventFilter, ProviderEventResult, ProviderEventToProcess,
        ProviderEventView, SHOWN_EVENT_BYTES_MAX, SentThrough,
    },
};

/// An event, and what only the queue knows of it.
struct StoredProviderEvent {
    view: ProviderEventView,
    digest: [u8; 32],
    once: Option<[u8; 32]>,
    lost_leases: i64,
    lease: Option<LeaseGrant>,
}

impl StoredProviderEvent {
    fn key(&self) -> AccountKey {
        AccountKey { tenant: self.view.tenant.clone(), account: self.view.account.clone() }
    }

    fn shown(&self) -> ProviderEventView {
        let mut view = self.view.clone();
        if view.raw.len() > SHOWN_EVENT_BYTES_MAX {
            view.raw.clear();
        }
        view
    }

    fn to_process(&self) -> ProviderEventToProcess {
        ProviderEventToProcess {
            uid: self.view.uid,
            key: self.key(),
            provider: self.view.provider,
            raw: self.view.raw.clone(),
            tries: self.view.tries,
            lost_leases: self.lost_leases,
            created_at: self.view.created_at,
        }
    }
}

/// All hooks and reported events.
#[derive(Default)]
pub(super) struct HookTables {
    hooks: BTreeMap<AccountKey, ProviderHook>,
    events: BTreeMap<MessageUid, StoredProviderEvent>,
}

impl HookTables {
    pub fn delete(&mut self, key: &AccountKey) -> ChangeResult {
        done_if(self.hooks.remove(key).is_some(), ChangeResult::Missing)
    }

    pub fn forget_tenant(&mut self, tenant: &TenantId) {
        self.hooks.retain(|key, _| key.tenant != *tenant);
        self.events.retain(|_, event| event.view.tenant != *tenant);
    }

    /// When the oldest event of a tenant came.
    pub fn oldest_event(&self, tenant: &TenantId) -> Option<Time> {
        let views = self.events.values().map(|event| &event.view);
        views.filter(|view| view.tenant == *tenant).map(|view| view.created_at).min()
    }

    fn add(&mut self, batch: ProviderEventBatch) {
        for event in batch.events {
            let is_known = |stored: &StoredProviderEvent| {
                stored.digest == event.digest || (event.once.is_some() && stored.once == event.once)
            };
            if self.events.values().any(is_known) {
                continue;
            }
            let view = ProviderEventView {
                uid: event.uid,
                tenant: batch.key.tenant.clone(),
                account: batch.key.account.clone(),
                provider: batch.provider,
                state: ProviderEventState::Waiting,
                due_at: Some(batch.at),
                tries: 0,
                kind: None,
                message: None,
                error: None,
                raw: event.raw.to_vec(),
                created_at: batch.at,
                settled_at: None,
            };
            let (digest, once) = (event.digest, event.once);
            let stored = StoredProviderEvent { view, digest, once, lost_leases: 0, lease: None };
            self.events.insert(event.uid, stored);
        }
    }

    fn reclaim(&mut self, alive: &[Incarnation], now: Time, limit: u32) -> u32 {
        let mut given_back = 0;
        for event in self.events.values_mut() {
            let Some(lease) = &event.lease else { continue };
            let is_late = alive.contains(&lease.incarnation);
            if given_back == limit || (is_late && lease.until > now) {
                continue;
            }
            event.lease = None;
            event.view.state = ProviderEventState::Waiting;
            event.view.due_at = Some(if is_late { now } else { now.plus(SUSPECT_WAIT) });
            event.lost_leases += i64::from(!is_late);
            given_back += 1;
        }
        given_back
    }
}

impl MemoryTables {
    pub(super) fn put_provider_hook(&mut self, hook: ProviderHook, expected: Option<i64>) -> ChangeResult {
        let key = AccountKey { tenant: hook.tenant.clone(), account: hook.account.clone() };
        let stored = self.hooks.hooks.get(&key).map(|stored| stored.version);
        match (expected, stored) {
            (None, _) if !self.directory.accounts.contains_key(&key) => ChangeResult::Missing,
            (None, Some(_)) => ChangeResult::Exists,
            (None, None) => {
                self.hooks.hooks.insert(key, hook);
                ChangeResult::Done
            }
            (Some(expected), Some(version)) if expected == version => {
                self.hooks.hooks.insert(key, hook);
                ChangeResult::Done
            }
            (Some(_), _) => ChangeResult::Stale,
        }
    }

    fn is_hook_served(&self, key: &AccountKey) -> bool {
        let tenant = self.directory.tenants.get(&key.tenant);
        self.hooks.hooks.contains_key(key) && tenant.is_some_and(|tenant| tenant.deleted_at.is_none())
    }

    /// The waiting events of hooks that are served, by when they are due.
    fn waiting_events(&self) -> Vec<(Time, MessageUid, AccountKey)> {
        let due = self
            .hooks
            .events
            .values()
            .filter_map(|event| Some((event.view.due_at?, event.view.uid, event.key())));
        let mut due: Vec<_> = due.filter(|(.., key)| self.is_hook_served(key)).collect();
        due.sort();
        due
    }

    fn claim_provider_events(&mut self, claim: &ProviderEventClaim) -> Vec<ProviderEventToProcess> {
        let mut due = self.waiting_events();
        due.retain(|(at, ..)| *at <= claim.now);
        let mut keys: Vec<AccountKey> = Vec::new();
        for (.., key) in &due {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        let mut left = claim.limit;
        let mut bytes_left = ClaimBytes::new(claim.bytes_max);
        let mut claimed: Vec<ProviderEventToProcess> = Vec::new();
        for round in rounds(&keys, claim) {
            for (key, (part, mut part_bytes)) in keys.iter().zip(round) {
                let taken = part.min(left) as usize;
                let of_key =
                    due.iter().filter(|(_, uid, of)| of == key && !claimed.iter().any(|one| one.uid == *uid));
                let events = of_key.filter_map(|(_, uid, _)| self.hooks.events.get(uid)).take(taken);
                let fitting: Vec<ProviderEventToProcess> = events
                    .take_while(|event| bytes_left.take(event.view.raw.len() as i64, &mut part_bytes))
                    .map(StoredProviderEvent::to_process)
                    .collect();
                left -= u32::try_from(fitting.len()).unwrap_or(left);
                claimed.extend(fitting);
            }
        }
        keep_suspects_apart(&mut claimed);
        for one in &claimed {
            if let Some(event) = self.hooks.events.get_mut(&one.uid) {
                event.lease = Some(claim.lease);
                (event.view.state, event.view.due_at) = (ProviderEventState::Leased, None);
            }
        }
        claimed
    }

    fn settle_provider_event(&mut self, done: ProviderEventResult) -> bool {
        let stored = self.hooks.events.get_mut(&done.uid);
        let Some(event) =
            stored.filter(|event| event.lease.as_ref().is_some_and(|lease| lease.token == done.token))
        else {
            return false;
        };
        let to = next_state(done.to);
        (event.lease, event.lost_leases) = (None, 0);
        let view = &mut event.view;
        (view.state, view.tries, view.message) = (to, done.tries, done.message);
        view.due_at = (!to.is_settled()).then_some(done.due_at.unwrap_or(done.at));
        view.settled_at = to.is_settled().then_some(done.at);
        (view.kind, view.error) = (done.kind.map(str::to_owned), done.error);
        self.find(done.uid, FindingOrigin::ProviderEvent, done.at, &done.findings);
        true
    }
}

#[async_trait]
impl HookStore for MemoryStore {
    async fn provider_hooks(&self, tenant: Option<&TenantId>) -> Result<Vec<ProviderHook>, StoreError> {
        let tables = self.tables()?;
        let of_tenant = |hook: &&ProviderHook| tenant.is_none_or(|tenant| hook.tenant == *tenant);
        Ok(tables.hooks.hooks.values().filter(of_tenant).cloned().collect())
    }

    async fn provider_hook(&self, key: &AccountKey) -> Result<Option<ProviderHook>, StoreError> {
        Ok(self.tables()?.hooks.hooks.get(key).cloned())
    }

    async fn hook_by_token(&self, token: &KeyDigest) -> Result<Option<ProviderHook>, StoreError> {
        let tables = self.tables()?;
        let found = tables.hooks.hooks.iter().find(|(_, hook)| hook.token == *token);
        Ok(found.filter(|(key, _)| tables.is_hook_served(key)).map(|(_, hook)| hook.clone()))
    }

    async fn add_provider_events(&self, batch: ProviderEventBatch) -> Result<(), StoreError> {
        self.tables()?.hooks.add(batch);
        self.commit(true);
        self.hand_over.wake_provider_events();
        Ok(())
    }

    async fn provider_event_state(&self, now: Time) -> Result<ProcessingState, StoreError> {
        let waiting = self.tables()?.waiting_events();
        let due = u32::from(waiting.iter().any(|(at, ..)| *at <= now));
        Ok(ProcessingState { due, next_due_at: waiting.iter().map(|(at, ..)| *at).find(|at| *at > now) })
    }

    async fn claim_provider_events(
        &self,
        claim: ProviderEventClaim,
    ) -> Result<Vec<ProviderEventToProcess>, StoreError> {
        let claimed = self.tables()?.claim_provider_events(&claim);
        self.commit(!claimed.is_empty());
        Ok(claimed)
    }

    async fn settle_provider_events(&self, done: Vec<ProviderEventResult>) -> Result<Vec<bool>, StoreError> {
        let mut tables = self.tables()?;
        let held: Vec<bool> = done.into_iter().map(|one| tables.settle_provider_event(one)).collect();
        self.commit(held.contains(&true));
        self.tell(tables.reports.leave_pages());
        Ok(held)
    }

    async fn reclaim_provider_events(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let given_back = self.tables()?.hooks.reclaim(alive, now, limit);
        self.commit(given_back > 0);
        self.hand_over.wake_provider_events();
        Ok(given_back)
    }

    async fn provider_event_woken(&self) {
        self.hand_over.provider_event_woken().await;
    }

    async fn sent_through(
        &self,
        provider_ids: &[String],
        uids: &[MessageUid],
    ) -> Result<Vec<SentThrough>, StoreError> {
        let tables = self.tables()?;
        let mut found = Vec::new();
        for stored in tables.messages.values() {
            for attempt in &stored.record.attempts {
                let named = attempt.provider_message_id.as_ref().is_some_and(|id| provider_ids.contains(id));
                if (named || uids.contains(&stored.uid()))
                    && let Ok(account) = attempt.account.parse()
                {
                    found.push(SentThrough {
                        uid: stored.uid(),
                        account,
                        provider_message_id: attempt.provider_message_id.clone(),
                    });
                }
            }
        }
        Ok(found)
    }

    async fn provider_events(
        &self,
        filter: &ProviderEventFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<ProviderEventView>, StoreError> {
        let tables = self.tables()?;
        let matches = |event: &&StoredProviderEvent| {
            event.key() == filter.key
                && filter.state.is_none_or(|state| event.view.state == state)
                && before.is_none_or(|before| event.view.uid < before)
        };
        let found = tables.hooks.events.values().rev().filter(matches);
        Ok(found.take(limit as usize).map(StoredProviderEvent::shown).collect())
    }

    async fn expunge_provider_events(
        &self,
        tenant: &TenantId,
        before: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let mut tables = self.tables()?;
        let end = MessageUid::first_at(before);
        let events = &mut tables.hooks.events;
        let old = events.values().filter(|event| event.view.tenant == *tenant && event.view.uid < end);
        let old: Vec<MessageUid> = old.map(|event| event.view.uid).take(limit as usize).collect();
        for uid in &old {
            events.remove(uid);
        }
        self.commit(!old.is_empty());
        Ok(u32::try_from(old.len()).unwrap_or(limit))
    }
}
