//! Inbound mail: mailboxes, their mail, and what it says about sent messages.
//!
//! Registering a page and moving the cursor is one transaction. Processing one mail is one, too: its state,
//! the events it adds, suppressions and receipts. The first is fenced by the cursor, the second by a lease.

use async_trait::async_trait;
use postway_domain::{
    Contact, InboundRule, Incarnation, MessageUid, TenantId, Time, WatchedMailbox,
    id::{ContactId, MailboxId, RuleId},
};

use super::PAGE_MAX;
use crate::{
    error::StoreError,
    record::{
        ChangeResult, InboundFilter, InboundMailResult, InboundRecord, InboundReplay, InboundView,
        MailToProcess, MailboxKey, MailboxNote, MailboxPage, MailboxState, ProcessRequest, ProcessingState,
        ReceiptPlace, RegistrationResult, StoredBody, StoredReceipt, TracedMessage,
    },
};

/// Inbound mail, see the module.
#[async_trait]
pub trait InboundStore: Send + Sync {
    /// A tenant's mailboxes by id; those of all tenants that are not deleted if `tenant` is `None`.
    async fn mailboxes(&self, tenant: Option<&TenantId>) -> Result<Vec<WatchedMailbox>, StoreError>;

    /// The states of a tenant's mailboxes; of all tenants that are not deleted if `tenant` is `None`.
    async fn mailbox_states(&self, tenant: Option<&TenantId>) -> Result<Vec<MailboxState>, StoreError>;

    /// A mailbox and its state.
    async fn mailbox(&self, key: &MailboxKey) -> Result<Option<(WatchedMailbox, MailboxState)>, StoreError>;

    /// Stores a page of mail and moves the cursor.
    async fn register(&self, page: MailboxPage) -> Result<RegistrationResult, StoreError>;

    /// Records the result of polling a mailbox.
    async fn note_mailbox(&self, note: MailboxNote) -> Result<(), StoreError>;

    /// Which mail waits to be processed.
    async fn route_state(&self, now: Time) -> Result<ProcessingState, StoreError>;

    /// Leases mail that waits to be processed, the longest due first.
    async fn claim_inbound(&self, request: ProcessRequest) -> Result<Vec<MailToProcess>, StoreError>;

    /// Writes the results of processing; `true` for each that was applied because the lease was still valid.
    async fn settle_inbound(&self, routed: Vec<InboundMailResult>) -> Result<Vec<bool>, StoreError>;

    /// Reclaims mail that is leased to an incarnation not in `alive`, or past its backstop; it has used one
    /// try. Returns the number of mails.
    async fn reclaim_inbound(&self, alive: &[Incarnation], now: Time, limit: u32) -> Result<u32, StoreError>;

    /// Waits until there may be new mail to process. A hint.
    async fn inbound_woken(&self);

    /// The rules of a mailbox in their order; all rules of the tenant, by mailbox, if `mailbox` is `None`.
    async fn rules(
        &self,
        tenant: &TenantId,
        mailbox: Option<&MailboxId>,
    ) -> Result<Vec<InboundRule>, StoreError>;

    /// One rule.
    async fn rule(&self, tenant: &TenantId, id: &RuleId) -> Result<Option<InboundRule>, StoreError>;

    /// A tenant's contacts by id, after `after`.
    async fn contacts(
        &self,
        tenant: &TenantId,
        after: Option<&ContactId>,
        limit: u32,
    ) -> Result<Vec<Contact>, StoreError>;

    /// One contact.
    async fn contact(&self, tenant: &TenantId, id: &ContactId) -> Result<Option<Contact>, StoreError>;

    /// The contact with this name.
    async fn contact_named(&self, tenant: &TenantId, name: &str) -> Result<Option<Contact>, StoreError>;

    /// A tenant's inbound mail, the newest first, before `before`.
    async fn inbound(
        &self,
        tenant: &TenantId,
        filter: &InboundFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<InboundView>, StoreError>;

    /// One inbound mail with all that belongs to it.
    async fn inbound_one(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<InboundRecord>, StoreError>;

    /// The bytes of an inbound mail.
    async fn inbound_raw(&self, tenant: &TenantId, uid: MessageUid)
    -> Result<Option<StoredBody>, StoreError>;

    /// Makes a settled mail due again with all its tries: `Missing` if it does not exist, `InUse` if it is
    /// not settled or has no bytes.
    async fn replay_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<ChangeResult, StoreError>;

    /// Makes settled mail due again, as [`InboundStore::replay_inbound`] does with one. Returns the number of
    /// mails.
    async fn replay_inbound_all(&self, replay: InboundReplay) -> Result<u32, StoreError>;

    /// Marks a mail as resolved: no more reminders. `Already` if it was resolved before.
    async fn resolve_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<ChangeResult, StoreError>;

    /// Messages that a report may be about, of any tenant, by id; tombstones of removed ones included.
    async fn traced(&self, uids: &[MessageUid]) -> Result<Vec<TracedMessage>, StoreError>;

    /// A page of a message's receipts in the order of arrival, after `after`.
    async fn receipt_page(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        after: Option<ReceiptPlace>,
        limit: u32,
    ) -> Result<Vec<StoredReceipt>, StoreError>;

    /// All receipts of a message in the order of arrival.
    async fn receipts(&self, tenant: &TenantId, uid: MessageUid) -> Result<Vec<StoredReceipt>, StoreError> {
        let mut receipts: Vec<StoredReceipt> = Vec::new();
        loop {
            let after = receipts.last().map(StoredReceipt::place);
            let page = self.receipt_page(tenant, uid, after, PAGE_MAX).await?;
            let is_last = page.len() < PAGE_MAX as usize;
            receipts.extend(page);
            if is_last {
                return Ok(receipts);
            }
        }
    }

    /// The bytes of a message's receipt, found by their digest.
    async fn receipt_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        digest: [u8; 32],
    ) -> Result<Option<StoredBody>, StoreError>;

    /// Appends `pec_timeout` to the histories of messages whose receipt is overdue. Returns the number of
    /// messages.
    async fn time_out_receipts(&self, now: Time, limit: u32) -> Result<u32, StoreError>;

    /// Removes settled mail that was registered before `before`, with its bytes, and returns how many. The
    /// mailbox remembers that it has had the mail as long as the mailbox exists. Mail with open notifications
    /// or reminders stays, and so does mail with a notification that died at `unreported_before` or later: it
    /// can be sent again.
    async fn expunge_inbound(
        &self,
        tenant: &TenantId,
        before: Time,
        unreported_before: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;
}
