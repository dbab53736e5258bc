//! [`HookStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{Incarnation, KeyDigest, MessageUid, ProviderHook, TenantId, Time};

use super::SqlStore;
use crate::{
    admin::provider_hooks,
    error::StoreError,
    hook::{HookAnswer, HookJob, claim, events, sent_through},
    port::HookStore,
    record::{
        AccountKey, ProcessingState, ProviderEventBatch, ProviderEventClaim, ProviderEventFilter,
        ProviderEventResult, ProviderEventToProcess, ProviderEventView, SentThrough,
    },
    retention::SLICE_MAX,
};

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question about reported events".into())
}

async fn counted(store: &impl SqlStore, job: HookJob) -> Result<u32, StoreError> {
    match store.writers().hook(job).await? {
        HookAnswer::Count(count) => Ok(count),
        HookAnswer::Claimed(_) | HookAnswer::Held(_) => Err(mismatched()),
    }
}

#[async_trait]
impl<T: SqlStore> HookStore for T {
    async fn provider_hooks(&self, tenant: Option<&TenantId>) -> Result<Vec<ProviderHook>, StoreError> {
        provider_hooks::list(&mut *self.reader().await?, tenant).await
    }

    async fn provider_hook(&self, key: &AccountKey) -> Result<Option<ProviderHook>, StoreError> {
        provider_hooks::find(&mut *self.reader().await?, key).await
    }

    async fn hook_by_token(&self, token: &KeyDigest) -> Result<Option<ProviderHook>, StoreError> {
        provider_hooks::by_token(&mut *self.reader().await?, token).await
    }

    async fn add_provider_events(&self, batch: ProviderEventBatch) -> Result<(), StoreError> {
        counted(self, HookJob::Add(batch)).await.map(drop)
    }

    async fn provider_event_state(&self, now: Time) -> Result<ProcessingState, StoreError> {
        claim::state(&mut *self.reader().await?, now).await
    }

    async fn claim_provider_events(
        &self,
        claim: ProviderEventClaim,
    ) -> Result<Vec<ProviderEventToProcess>, StoreError> {
        match self.writers().hook(HookJob::Claim(claim)).await? {
            HookAnswer::Claimed(claimed) => Ok(claimed),
            HookAnswer::Count(_) | HookAnswer::Held(_) => Err(mismatched()),
        }
    }

    async fn settle_provider_events(&self, done: Vec<ProviderEventResult>) -> Result<Vec<bool>, StoreError> {
        match self.writers().hook(HookJob::Settle(done)).await? {
            HookAnswer::Held(held) => Ok(held),
            HookAnswer::Count(_) | HookAnswer::Claimed(_) => Err(mismatched()),
        }
    }

    async fn reclaim_provider_events(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        counted(self, HookJob::Reclaim(alive.to_vec(), now, limit)).await
    }

    async fn provider_event_woken(&self) {
        self.handover().provider_event_woken().await;
    }

    async fn sent_through(
        &self,
        provider_ids: &[String],
        uids: &[MessageUid],
    ) -> Result<Vec<SentThrough>, StoreError> {
        sent_through::find(&mut *self.reader().await?, provider_ids, uids).await
    }

    async fn provider_events(
        &self,
        filter: &ProviderEventFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<ProviderEventView>, StoreError> {
        events::list(&mut *self.reader().await?, filter, before, limit).await
    }

    async fn expunge_provider_events(
        &self,
        tenant: &TenantId,
        before: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        counted(self, HookJob::Expunge(tenant.clone(), before, limit.min(SLICE_MAX))).await
    }
}
