//! [`InboundStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{
    Contact, InboundRule, Incarnation, MessageUid, TenantId, Time, WatchedMailbox,
    id::{ContactId, MailboxId, RuleId},
};

use super::SqlStore;
use crate::{
    error::StoreError,
    inbound::{
        InboundAnswer, InboundJob, claim, contacts, cursor, mailboxes, mails, message_lookup, receipts, rules,
    },
    port::InboundStore,
    record::{
        ChangeResult, InboundFilter, InboundMailResult, InboundRecord, InboundReplay, InboundView,
        MailToProcess, MailboxKey, MailboxNote, MailboxPage, MailboxState, ProcessRequest, ProcessingState,
        ReaderDecision, ReceiptPlace, RegistrationResult, StoredBody, StoredReceipt, TracedMessage,
    },
    retention::{RetainJob, SLICE_MAX, inbound_mail},
};

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question about mail that came in".into())
}

async fn counted(store: &impl SqlStore, job: InboundJob) -> Result<u32, StoreError> {
    match store.writers().inbound(job).await? {
        InboundAnswer::Count(count) => Ok(count),
        _ => Err(mismatched()),
    }
}

async fn changed(store: &impl SqlStore, job: InboundJob) -> Result<ChangeResult, StoreError> {
    match store.writers().inbound(job).await? {
        InboundAnswer::Changed(changed) => Ok(changed),
        _ => Err(mismatched()),
    }
}

/// Writes a reader's decision.
pub(crate) async fn decide(
    store: &impl SqlStore,
    decision: ReaderDecision,
) -> Result<ChangeResult, StoreError> {
    changed(store, InboundJob::Decide(decision)).await
}

#[async_trait]
impl<T: SqlStore> InboundStore for T {
    async fn mailboxes(&self, tenant: Option<&TenantId>) -> Result<Vec<WatchedMailbox>, StoreError> {
        mailboxes::list(&mut *self.reader().await?, tenant).await
    }

    async fn mailbox_states(&self, tenant: Option<&TenantId>) -> Result<Vec<MailboxState>, StoreError> {
        cursor::list(&mut *self.reader().await?, tenant).await
    }

    async fn mailbox(&self, key: &MailboxKey) -> Result<Option<(WatchedMailbox, MailboxState)>, StoreError> {
        mailboxes::find(&mut *self.reader().await?, key).await
    }

    async fn register(&self, page: MailboxPage) -> Result<RegistrationResult, StoreError> {
        match self.writers().inbound(InboundJob::Register(page)).await? {
            InboundAnswer::Registered(registered) => Ok(registered),
            _ => Err(mismatched()),
        }
    }

    async fn note_mailbox(&self, note: MailboxNote) -> Result<(), StoreError> {
        self.writers().inbound(InboundJob::Note(note)).await.map(drop)
    }

    async fn route_state(&self, now: Time) -> Result<ProcessingState, StoreError> {
        claim::state(&mut *self.reader().await?, now).await
    }

    async fn claim_inbound(&self, request: ProcessRequest) -> Result<Vec<MailToProcess>, StoreError> {
        match self.writers().inbound(InboundJob::Claim(request)).await? {
            InboundAnswer::Claimed(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    async fn settle_inbound(&self, routed: Vec<InboundMailResult>) -> Result<Vec<bool>, StoreError> {
        match self.writers().inbound(InboundJob::Settle(routed)).await? {
            InboundAnswer::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    async fn reclaim_inbound(&self, alive: &[Incarnation], now: Time, limit: u32) -> Result<u32, StoreError> {
        counted(self, InboundJob::Reclaim(alive.to_vec(), now, limit)).await
    }

    async fn inbound_woken(&self) {
        self.handover().inbound_woken().await;
    }

    async fn rules(
        &self,
        tenant: &TenantId,
        mailbox: Option<&MailboxId>,
    ) -> Result<Vec<InboundRule>, StoreError> {
        rules::list(&mut *self.reader().await?, tenant, mailbox).await
    }

    async fn rule(&self, tenant: &TenantId, id: &RuleId) -> Result<Option<InboundRule>, StoreError> {
        rules::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn contacts(
        &self,
        tenant: &TenantId,
        after: Option<&ContactId>,
        limit: u32,
    ) -> Result<Vec<Contact>, StoreError> {
        contacts::list(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn contact(&self, tenant: &TenantId, id: &ContactId) -> Result<Option<Contact>, StoreError> {
        contacts::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn contact_named(&self, tenant: &TenantId, name: &str) -> Result<Option<Contact>, StoreError> {
        contacts::named(&mut *self.reader().await?, tenant, name).await
    }

    async fn inbound(
        &self,
        tenant: &TenantId,
        filter: &InboundFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<InboundView>, StoreError> {
        let first = MessageUid::from_bytes([0; 16]);
        mails::list(&mut *self.reader().await?, tenant, filter, (first, before), limit).await
    }

    async fn inbound_one(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<InboundRecord>, StoreError> {
        mails::find(&mut *self.reader().await?, tenant, uid).await
    }

    async fn inbound_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<StoredBody>, StoreError> {
        mails::raw(&mut *self.reader().await?, tenant, uid).await
    }

    async fn replay_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<ChangeResult, StoreError> {
        changed(self, InboundJob::Replay(tenant.clone(), uid, now)).await
    }

    async fn replay_inbound_all(&self, replay: InboundReplay) -> Result<u32, StoreError> {
        counted(self, InboundJob::ReplayAll(replay)).await
    }

    async fn resolve_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<ChangeResult, StoreError> {
        changed(self, InboundJob::Resolve(tenant.clone(), uid, now)).await
    }

    async fn traced(&self, uids: &[MessageUid]) -> Result<Vec<TracedMessage>, StoreError> {
        message_lookup::find(&mut *self.reader().await?, uids).await
    }

    async fn receipt_page(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        after: Option<ReceiptPlace>,
        limit: u32,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        receipts::page(&mut *self.reader().await?, tenant, uid, after, limit).await
    }

    async fn receipt_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        digest: [u8; 32],
    ) -> Result<Option<StoredBody>, StoreError> {
        receipts::raw(&mut *self.reader().await?, tenant, uid, digest).await
    }

    async fn time_out_receipts(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        counted(self, InboundJob::TimeOut(now, limit.min(SLICE_MAX))).await
    }

    async fn expunge_inbound(
        &self,
        tenant: &TenantId,
        before: Time,
        unreported_before: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let mut session = self.reader().await?;
        let old =
            inbound_mail::find_old(&mut *session, tenant, [before, unreported_before], limit.min(SLICE_MAX))
                .await?;
        drop(session);
        if old.is_empty() {
            return Ok(0);
        }
        let removed = self.writers().retain(RetainJob::ExpungeInbound(tenant.clone(), old)).await?;
        Ok(u32::try_from(removed.removed).unwrap_or(u32::MAX))
    }
}
