//! [`DirectoryStore`] over SQL.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountLimits, ApiKey, KeyDigest, LimitSpan, MessageStatus, Tenant, TenantId, Time,
    id::{AuditId, BatchCode, SessionId},
    oauth::{OAuthOwner, OAuthState},
    quota::QuotaDay,
};

use super::SqlStore;
use crate::{
    admin::{accounts, audit, blocked, keys, oauth, quotas, sessions, suppressions, suspensions, tenants},
    error::StoreError,
    port::DirectoryStore,
    queue::rate_limit,
    record::{
        AccountGate, AccountKey, AuditEntry, BatchRecord, ChangeResult, DirectoryChange, LimitUse,
        OpenCircuit, QuotaUse, SuppressionRecord, SuspensionRecord,
    },
};

#[async_trait]
impl<T: SqlStore> DirectoryStore for T {
    async fn change(
        &self,
        change: DirectoryChange,
        audit: Option<AuditEntry>,
    ) -> Result<ChangeResult, StoreError> {
        self.writers().change(change, audit).await
    }

    fn generation(&self) -> u64 {
        self.writers().generation()
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
        tenants::find(&mut *self.reader().await?, id).await
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError> {
        tenants::list(&mut *self.reader().await?, after, limit).await
    }

    async fn accounts(&self, tenant: Option<&TenantId>) -> Result<Vec<Account>, StoreError> {
        accounts::list(&mut *self.reader().await?, tenant).await
    }

    async fn account(&self, tenant: &TenantId, id: &AccountId) -> Result<Option<Account>, StoreError> {
        accounts::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn key(&self, digest: &KeyDigest) -> Result<Option<ApiKey>, StoreError> {
        keys::find(&mut *self.reader().await?, digest).await
    }

    async fn key_by_id(&self, id: &str) -> Result<Option<ApiKey>, StoreError> {
        keys::find_by_id(&mut *self.reader().await?, id).await
    }

    async fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
        keys::list(&mut *self.reader().await?, tenant).await
    }

    async fn is_session_ended(&self, id: SessionId) -> Result<bool, StoreError> {
        sessions::is_ended(&mut *self.reader().await?, id).await
    }

    async fn quota_use(&self, tenant: &TenantId, day: QuotaDay) -> Result<QuotaUse, StoreError> {
        quotas::find(&mut *self.reader().await?, tenant, day).await
    }

    async fn oauth_state(&self, owner: &OAuthOwner) -> Result<Option<OAuthState>, StoreError> {
        oauth::find(&mut *self.reader().await?, owner).await
    }

    async fn oauth_states(&self) -> Result<Vec<OAuthState>, StoreError> {
        oauth::list(&mut *self.reader().await?).await
    }

    async fn suspensions(&self, tenant: &TenantId) -> Result<Vec<SuspensionRecord>, StoreError> {
        suspensions::list(&mut *self.reader().await?, tenant).await
    }

    async fn batches(
        &self,
        tenant: &TenantId,
        after: Option<&BatchCode>,
        limit: u32,
    ) -> Result<Vec<BatchRecord>, StoreError> {
        suspensions::batches(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn batch_states(
        &self,
        tenant: &TenantId,
        code: &BatchCode,
    ) -> Result<BTreeMap<MessageStatus, i64>, StoreError> {
        suspensions::batch_states(&mut *self.reader().await?, tenant, code).await
    }

    async fn account_gates(
        &self,
        tenant: &TenantId,
        accounts: &[AccountId],
        now: Time,
    ) -> Result<Vec<(AccountId, AccountGate)>, StoreError> {
        blocked::gates(&mut *self.reader().await?, tenant, accounts, now).await
    }

    async fn held(&self, tenant: &TenantId, now: Time) -> Result<i64, StoreError> {
        blocked::count_blocked(&mut *self.reader().await?, tenant, now).await
    }

    async fn suppressions(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SuppressionRecord>, StoreError> {
        suppressions::list(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn suppression(
        &self,
        tenant: &TenantId,
        address: &str,
    ) -> Result<Option<SuppressionRecord>, StoreError> {
        suppressions::find(&mut *self.reader().await?, tenant, address).await
    }

    async fn audit(
        &self,
        tenant: Option<&TenantId>,
        before: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        audit::list(&mut *self.reader().await?, tenant, before, limit).await
    }

    async fn circuit(&self, key: &AccountKey) -> Result<Option<OpenCircuit>, StoreError> {
        suspensions::circuit(&mut *self.reader().await?, key).await
    }

    async fn circuits(&self, tenant: Option<&TenantId>) -> Result<Vec<OpenCircuit>, StoreError> {
        suspensions::circuits(&mut *self.reader().await?, tenant).await
    }

    async fn used(
        &self,
        key: &AccountKey,
        limits: &AccountLimits,
        now: Time,
    ) -> Result<Vec<(LimitSpan, LimitUse)>, StoreError> {
        rate_limit::used(&mut *self.reader().await?, key, limits, now).await
    }
}
