//! The port's side of mail that comes in.

use async_trait::async_trait;
use postway_domain::{
    Contact, InboundRule, Incarnation, MessageUid, TenantId, Time, WatchedMailbox,
    id::{ContactId, MailboxId, RuleId},
};

use super::MemoryStore;
use crate::{
    error::StoreError,
    inbound::check,
    port::InboundStore,
    record::{
        ChangeResult, InboundFilter, InboundMailResult, InboundRecord, InboundReplay, InboundView,
        MailToProcess, MailboxKey, MailboxNote, MailboxPage, MailboxState, ProcessRequest, ProcessingState,
        ReceiptPlace, RegistrationResult, StoredBody, StoredReceipt, TracedMessage,
    },
};

impl MemoryStore {
    /// Counts a transaction, if it wrote, and hints that there is mail to deal with.
    fn wake_inbound(&self, wrote: bool) {
        self.commit(wrote);
        if wrote {
            self.hand_over.wake_inbound();
        }
    }
}

#[async_trait]
impl InboundStore for MemoryStore {
    async fn mailboxes(&self, tenant: Option<&TenantId>) -> Result<Vec<WatchedMailbox>, StoreError> {
        let tables = self.tables()?;
        Ok(tables.mailboxes_of(tenant).map(|(mailbox, _)| mailbox.clone()).collect())
    }

    async fn mailbox_states(&self, tenant: Option<&TenantId>) -> Result<Vec<MailboxState>, StoreError> {
        let tables = self.tables()?;
        Ok(tables.mailboxes_of(tenant).map(|(_, state)| state.clone()).collect())
    }

    async fn mailbox(&self, key: &MailboxKey) -> Result<Option<(WatchedMailbox, MailboxState)>, StoreError> {
        Ok(self.tables()?.inbound.mailboxes.get(key).cloned())
    }

    async fn register(&self, page: MailboxPage) -> Result<RegistrationResult, StoreError> {
        check(&page)?;
        let registered = self.tables()?.inbound.register(page);
        self.wake_inbound(registered != RegistrationResult::Stale);
        Ok(registered)
    }

    async fn note_mailbox(&self, note: MailboxNote) -> Result<(), StoreError> {
        self.tables()?.inbound.note(note);
        self.commit(true);
        Ok(())
    }

    async fn route_state(&self, now: Time) -> Result<ProcessingState, StoreError> {
        Ok(self.tables()?.route_state(now))
    }

    async fn claim_inbound(&self, request: ProcessRequest) -> Result<Vec<MailToProcess>, StoreError> {
        let claimed = self.tables()?.claim_inbound(&request);
        self.commit(!claimed.is_empty());
        Ok(claimed)
    }

    async fn settle_inbound(&self, routed: Vec<InboundMailResult>) -> Result<Vec<bool>, StoreError> {
        let mut tables = self.tables()?;
        let held: Vec<bool> = routed.iter().map(|one| tables.settle_inbound(one)).collect();
        self.wake_inbound(held.contains(&true));
        self.tell(tables.reports.leave_pages());
        Ok(held)
    }

    async fn reclaim_inbound(&self, alive: &[Incarnation], now: Time, limit: u32) -> Result<u32, StoreError> {
        let given_back = self.tables()?.inbound.reclaim(alive, now, limit);
        self.wake_inbound(given_back > 0);
        Ok(given_back)
    }

    async fn inbound_woken(&self) {
        self.hand_over.inbound_woken().await;
    }

    async fn rules(
        &self,
        tenant: &TenantId,
        mailbox: Option<&MailboxId>,
    ) -> Result<Vec<InboundRule>, StoreError> {
        Ok(self.tables()?.inbound.list_rules(tenant, mailbox))
    }

    async fn rule(&self, tenant: &TenantId, id: &RuleId) -> Result<Option<InboundRule>, StoreError> {
        Ok(self.tables()?.inbound.rule(tenant, id))
    }

    async fn contacts(
        &self,
        tenant: &TenantId,
        after: Option<&ContactId>,
        limit: u32,
    ) -> Result<Vec<Contact>, StoreError> {
        Ok(self.tables()?.inbound.list_contacts(tenant, after, limit))
    }

    async fn contact(&self, tenant: &TenantId, id: &ContactId) -> Result<Option<Contact>, StoreError> {
        Ok(self.tables()?.inbound.contact(tenant, id))
    }

    async fn contact_named(&self, tenant: &TenantId, name: &str) -> Result<Option<Contact>, StoreError> {
        Ok(self.tables()?.inbound.contact_named(tenant, name))
    }

    async fn inbound(
        &self,
        tenant: &TenantId,
        filter: &InboundFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<InboundView>, StoreError> {
        Ok(self.tables()?.inbound.list(tenant, filter, before, limit))
    }

    async fn inbound_one(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<InboundRecord>, StoreError> {
        Ok(self.tables()?.inbound_record(tenant, uid))
    }

    async fn inbound_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<StoredBody>, StoreError> {
        Ok(self.tables()?.inbound.of_tenant(tenant, uid).and_then(|mail| mail.body.clone()))
    }

    async fn replay_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<ChangeResult, StoreError> {
        let changed = self.tables()?.inbound.replay(tenant, uid, now);
        self.wake_inbound(changed == ChangeResult::Done);
        Ok(changed)
    }

    async fn replay_inbound_all(&self, replay: InboundReplay) -> Result<u32, StoreError> {
        let replayed = self.tables()?.inbound.replay_all(&replay);
        self.wake_inbound(replayed > 0);
        Ok(replayed)
    }

    async fn resolve_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<ChangeResult, StoreError> {
        let changed = self.tables()?.inbound.resolve(tenant, uid, now);
        self.commit(changed == ChangeResult::Done);
        Ok(changed)
    }

    async fn traced(&self, uids: &[MessageUid]) -> Result<Vec<TracedMessage>, StoreError> {
        Ok(self.tables()?.traced(uids))
    }

    async fn receipt_page(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        after: Option<ReceiptPlace>,
        limit: u32,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let mut receipts = self.tables()?.receipts(tenant, uid);
        receipts.retain(|receipt| after.is_none_or(|after| receipt.place() > after));
        receipts.truncate(limit as usize);
        Ok(receipts)
    }

    async fn receipt_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        digest: [u8; 32],
    ) -> Result<Option<StoredBody>, StoreError> {
        Ok(self.tables()?.receipt_raw(tenant, uid, digest))
    }

    async fn time_out_receipts(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        let mut tables = self.tables()?;
        let late = tables.time_out_receipts(now, limit);
        self.commit(late > 0);
        self.tell(tables.reports.leave_pages());
        Ok(late)
    }

    async fn expunge_inbound(
        &self,
        tenant: &TenantId,
        before: Time,
        unreported_before: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let removed = self.tables()?.expunge_inbound(tenant, before, unreported_before, limit);
        self.commit(removed > 0);
        Ok(removed)
    }
}
