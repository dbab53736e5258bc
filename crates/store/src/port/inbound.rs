//! The side of mail that comes in: mailboxes, their mail, and what it says about mail that went out.
//!
//! Registering a page and moving the cursor is one transaction, and so is dealing with one mail: its state, the histories it adds
//! to, suppressions, receipts. Both are fenced, the first by the cursor, the second by a lease.

use async_trait::async_trait;
use postway_domain::{
    Contact, Incarnation, MessageUid, Rule, TenantId, Time, WatchedMailbox,
    id::{ContactId, MailboxId, RuleId},
};

use super::PAGE_MAX;
use crate::{
    error::StoreError,
    record::{
        Body, Changed, InboundFilter, InboundRecord, InboundReplay, InboundView, MailboxKey, MailboxNote,
        MailboxState, ReceiptPlace, ReceiptView, Registered, Registration, RouteRequest, RouteState, Routed,
        ToRoute, Traced,
    },
};

/// See the module.
#[async_trait]
pub trait Inbound: Send + Sync {
    /// A tenant's mailboxes by id, of all tenants that are not deleted where none is named.
    async fn mailboxes(&self, tenant: Option<&TenantId>) -> Result<Vec<WatchedMailbox>, StoreError>;

    /// How a tenant's mailboxes stand, of all tenants that are not deleted where none is named.
    async fn mailbox_states(&self, tenant: Option<&TenantId>) -> Result<Vec<MailboxState>, StoreError>;

    /// A mailbox and how it stands.
    async fn mailbox(&self, key: &MailboxKey) -> Result<Option<(WatchedMailbox, MailboxState)>, StoreError>;

    /// Keeps a page of mail and moves the cursor.
    async fn register(&self, page: Registration) -> Result<Registered, StoreError>;

    /// Notes how a look at a mailbox went.
    async fn note_mailbox(&self, note: MailboxNote) -> Result<(), StoreError>;

    /// What waits to be dealt with.
    async fn route_state(&self, now: Time) -> Result<RouteState, StoreError>;

    /// Leases mail that waits to be dealt with, the longest due first.
    async fn claim_inbound(&self, request: RouteRequest) -> Result<Vec<ToRoute>, StoreError>;

    /// Writes what came of it; `true` where the lease still held.
    async fn settle_inbound(&self, routed: Vec<Routed>) -> Result<Vec<bool>, StoreError>;

    /// Gives back mail leased to others than those alive, or past its backstop, with one try used; how many.
    async fn reclaim_inbound(&self, alive: &[Incarnation], now: Time, limit: u32) -> Result<u32, StoreError>;

    /// Pends until there may be something new to deal with. A hint.
    async fn inbound_woken(&self);

    /// The rules of a mailbox in their order, all of a tenant's by mailbox where none is named.
    async fn rules(&self, tenant: &TenantId, mailbox: Option<&MailboxId>) -> Result<Vec<Rule>, StoreError>;

    /// One rule.
    async fn rule(&self, tenant: &TenantId, id: &RuleId) -> Result<Option<Rule>, StoreError>;

    /// A tenant's contacts by id, after this one.
    async fn contacts(
        &self,
        tenant: &TenantId,
        after: Option<&ContactId>,
        limit: u32,
    ) -> Result<Vec<Contact>, StoreError>;

    /// One contact.
    async fn contact(&self, tenant: &TenantId, id: &ContactId) -> Result<Option<Contact>, StoreError>;

    /// The contact of this name.
    async fn contact_named(&self, tenant: &TenantId, name: &str) -> Result<Option<Contact>, StoreError>;

    /// A tenant's mail that came in, the newest first, before this one.
    async fn inbound(
        &self,
        tenant: &TenantId,
        filter: &InboundFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<InboundView>, StoreError>;

    /// One of them, with all that belongs to it.
    async fn inbound_one(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<InboundRecord>, StoreError>;

    /// Its bytes.
    async fn inbound_raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<Body>, StoreError>;

    /// Makes a settled mail due again, with all its tries: `Missing` where there is none, `InUse` where it is not settled,
    /// or has no bytes.
    async fn replay_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<Changed, StoreError>;

    /// Makes settled mail due again, as [`Inbound::replay_inbound`] does with one; how many.
    async fn replay_inbound_all(&self, replay: InboundReplay) -> Result<u32, StoreError>;

    /// Says that what a mail asked for is done: no more reminders. `Already` where somebody said so before.
    async fn resolve_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<Changed, StoreError>;

    /// Messages that reports may be about, of any tenant, by id; traces of those that are gone among them.
    async fn traced(&self, uids: &[MessageUid]) -> Result<Vec<Traced>, StoreError>;

    /// A page of a message's receipts, in the order in which they came, after this place.
    async fn receipt_page(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        after: Option<ReceiptPlace>,
        limit: u32,
    ) -> Result<Vec<ReceiptView>, StoreError>;

    /// All receipts of a message, in the order in which they came.
    async fn receipts(&self, tenant: &TenantId, uid: MessageUid) -> Result<Vec<ReceiptView>, StoreError> {
        let mut receipts: Vec<ReceiptView> = Vec::new();
        loop {
            let after = receipts.last().map(ReceiptView::place);
            let page = self.receipt_page(tenant, uid, after, PAGE_MAX).await?;
            let is_last = page.len() < PAGE_MAX as usize;
            receipts.extend(page);
            if is_last {
                return Ok(receipts);
            }
        }
    }

    /// The bytes of a message's receipt, by their digest.
    async fn receipt_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        digest: [u8; 32],
    ) -> Result<Option<Body>, StoreError>;

    /// Writes `pec_timeout` into the histories of messages whose receipt has not come in time; how many.
    async fn time_out_receipts(&self, now: Time, limit: u32) -> Result<u32, StoreError>;

    /// Removes settled mail that was registered before `before`, with its bytes; how many. That it was here is remembered as
    /// long as its mailbox exists. Mail that somebody is still to be told or reminded of stays, and so does mail with a report
    /// that died at `unreported_before` or later: it can be told again.
    async fn expunge_inbound(
        &self,
        tenant: &TenantId,
        before: Time,
        unreported_before: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;
}
