//! Hooks of accounts, and the events that providers report to them.
//!
//! An event is durable before the provider gets its answer. It is then processed by lease, like inbound mail:
//! its state, the events it adds to its message, outcomes and suppressions are one transaction.

use async_trait::async_trait;
use postway_domain::{Incarnation, KeyDigest, MessageUid, ProviderHook, TenantId, Time};

use crate::{
    error::StoreError,
    record::{
        AccountKey, ProcessingState, ProviderEventBatch, ProviderEventClaim, ProviderEventFilter,
        ProviderEventResult, ProviderEventToProcess, ProviderEventView, SentThrough,
    },
};

/// Hooks and their events, see the module. Hooks are changed through [`super::DirectoryStore::change`].
#[async_trait]
pub trait HookStore: Send + Sync {
    /// A tenant's hooks by account; those of all tenants if `tenant` is `None`.
    async fn provider_hooks(&self, tenant: Option<&TenantId>) -> Result<Vec<ProviderHook>, StoreError>;

    /// The hook of an account.
    async fn provider_hook(&self, key: &AccountKey) -> Result<Option<ProviderHook>, StoreError>;

    /// The hook whose token has this digest, unless its tenant is deleted.
    async fn hook_by_token(&self, token: &KeyDigest) -> Result<Option<ProviderHook>, StoreError>;

    /// Stores events that came. Those that came before are left out.
    async fn add_provider_events(&self, batch: ProviderEventBatch) -> Result<(), StoreError>;

    /// Which events wait to be processed. `due` is 1 if any is due.
    async fn provider_event_state(&self, now: Time) -> Result<ProcessingState, StoreError>;

    /// Leases events that wait to be processed. Hooks share the capacity: none gets more than its part while
    /// others have as much due. An event whose process died is leased alone.
    async fn claim_provider_events(
        &self,
        claim: ProviderEventClaim,
    ) -> Result<Vec<ProviderEventToProcess>, StoreError>;

    /// Writes the results of processing; `true` for each that was applied because the lease was still valid.
    async fn settle_provider_events(&self, done: Vec<ProviderEventResult>) -> Result<Vec<bool>, StoreError>;

    /// Reclaims events that are leased to an incarnation not in `alive`, or past their backstop. Returns
    /// their number.
    async fn reclaim_provider_events(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;

    /// Waits until there may be an event to process. A hint.
    async fn provider_event_woken(&self);

    /// The attempts through which mail was sent that a provider calls by these ids, or that are attempts of
    /// these messages; of any tenant.
    async fn sent_through(
        &self,
        provider_ids: &[String],
        uids: &[MessageUid],
    ) -> Result<Vec<SentThrough>, StoreError>;

    /// An account's reported events, the newest first, before `before`.
    async fn provider_events(
        &self,
        filter: &ProviderEventFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<ProviderEventView>, StoreError>;

    /// Removes a tenant's events that came before `before`, whatever their state, and returns how many.
    async fn expunge_provider_events(
        &self,
        tenant: &TenantId,
        before: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;
}
