//! Mail that comes in, the same for every SQL database.
//!
//! [`mailboxes`], [`rules`] and [`contacts`] are changed with the directory, and audited; [`states`] tells how far each mailbox was
//! read. A page of mail is kept by [`register`], leased by [`claim`], and settled by [`settle`] with all that it says about mail
//! that went out ([`findings`]). Writes go through the writers, so they share commits with everything else.

mod claim;
mod contacts;
mod decide;
mod findings;
mod histories;
mod job;
mod mailboxes;
mod mails;
mod receipts;
mod register;
mod remove;
mod retain;
mod rules;
mod settle;
mod states;
mod traced;
mod turns;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use postway_domain::{
    Contact, Incarnation, MessageUid, Rule, TenantId, Time, WatchedMailbox,
    id::{ContactId, MailboxId, RuleId},
};

pub(crate) use findings::ends_waiting;
pub(crate) use job::{Handled, InboundJob, write};
pub(crate) use mailboxes::{forget, place_of};
pub(crate) use receipts::begin_waiting;
pub(crate) use register::check;
pub(crate) use remove::tenant_slice;
pub(crate) use retain::{expunge, find_named};
pub(crate) use settle::{Next, add_tags, no_lane};
pub(crate) use traced::accepted_at;
pub(crate) use turns::RouteTurns;

use crate::{
    directory::Portable,
    error::StoreError,
    port::Inbound,
    record::{
        Body, Changed, DirectoryChange, InboundFilter, InboundRecord, InboundReplay, InboundView, MailboxKey,
        MailboxNote, MailboxState, ReaderDecision, ReceiptPlace, ReceiptView, Registered, Registration,
        RouteRequest, RouteState, Routed, ToRoute, Traced,
    },
    retention::SLICE_MAX,
    sql::{Session, Sql, values},
};

const HOLD_NAMES: Sql = Sql::of_each(
    "SELECT id FROM tenant WHERE id = ?",
    "SELECT id FROM tenant WHERE id = ? FOR UPDATE",
    "SELECT id FROM tenant WHERE id = ? FOR UPDATE",
);

/// Lets nobody else take a name of a tenant's until the transaction ends: what is free now is free then.
async fn hold_names(session: &mut dyn Session, tenant: &TenantId) -> Result<(), StoreError> {
    session.rows(HOLD_NAMES, values![tenant.as_str()]).await.map(drop)
}

/// Makes a change of mailboxes, rules or contacts.
pub(crate) async fn change(
    session: &mut dyn Session,
    change: &DirectoryChange,
) -> Result<Changed, StoreError> {
    match change {
        DirectoryChange::CreateMailbox(mailbox) => mailboxes::create(session, mailbox).await,
        DirectoryChange::UpdateMailbox(mailbox, expected) => {
            mailboxes::update(session, mailbox, *expected).await
        }
        DirectoryChange::DeleteMailbox(key) => mailboxes::delete(session, key).await,
        DirectoryChange::CreateRule(rule) => rules::create(session, rule).await,
        DirectoryChange::UpdateRule(rule, expected) => rules::update(session, rule, *expected).await,
        DirectoryChange::DeleteRule(tenant, id) => rules::delete(session, tenant, id).await,
        DirectoryChange::CreateContact(contact) => contacts::create(session, contact).await,
        DirectoryChange::UpdateContact(contact, expected) => {
            contacts::update(session, contact, *expected).await
        }
        DirectoryChange::DeleteContact(tenant, id) => contacts::delete(session, tenant, id).await,
        _ => Err(StoreError::Unexpected(
            "a change of the directory that is not about mail that comes in".into(),
        )),
    }
}

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question about mail that came in".into())
}

async fn counted(store: &impl Portable, job: InboundJob) -> Result<u32, StoreError> {
    match store.writers().inbound(job).await? {
        Handled::Count(count) => Ok(count),
        _ => Err(mismatched()),
    }
}

async fn changed(store: &impl Portable, job: InboundJob) -> Result<Changed, StoreError> {
    match store.writers().inbound(job).await? {
        Handled::Changed(changed) => Ok(changed),
        _ => Err(mismatched()),
    }
}

/// Writes what a reader decided.
pub(crate) async fn decide(store: &impl Portable, decision: ReaderDecision) -> Result<Changed, StoreError> {
    changed(store, InboundJob::Decide(decision)).await
}

#[async_trait]
impl<T: Portable> Inbound for T {
    async fn mailboxes(&self, tenant: Option<&TenantId>) -> Result<Vec<WatchedMailbox>, StoreError> {
        mailboxes::list(&mut *self.reader().await?, tenant).await
    }

    async fn mailbox_states(&self, tenant: Option<&TenantId>) -> Result<Vec<MailboxState>, StoreError> {
        states::list(&mut *self.reader().await?, tenant).await
    }

    async fn mailbox(&self, key: &MailboxKey) -> Result<Option<(WatchedMailbox, MailboxState)>, StoreError> {
        mailboxes::find(&mut *self.reader().await?, key).await
    }

    async fn register(&self, page: Registration) -> Result<Registered, StoreError> {
        match self.writers().inbound(InboundJob::Register(page)).await? {
            Handled::Registered(registered) => Ok(registered),
            _ => Err(mismatched()),
        }
    }

    async fn note_mailbox(&self, note: MailboxNote) -> Result<(), StoreError> {
        self.writers().inbound(InboundJob::Note(note)).await.map(drop)
    }

    async fn route_state(&self, now: Time) -> Result<RouteState, StoreError> {
        claim::state(&mut *self.reader().await?, now).await
    }

    async fn claim_inbound(&self, request: RouteRequest) -> Result<Vec<ToRoute>, StoreError> {
        match self.writers().inbound(InboundJob::Claim(request)).await? {
            Handled::Claimed(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    async fn settle_inbound(&self, routed: Vec<Routed>) -> Result<Vec<bool>, StoreError> {
        match self.writers().inbound(InboundJob::Settle(routed)).await? {
            Handled::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    async fn reclaim_inbound(&self, alive: &[Incarnation], now: Time, limit: u32) -> Result<u32, StoreError> {
        counted(self, InboundJob::Reclaim(alive.to_vec(), now, limit)).await
    }

    async fn inbound_woken(&self) {
        self.handover().inbound_woken().await;
    }

    async fn rules(&self, tenant: &TenantId, mailbox: Option<&MailboxId>) -> Result<Vec<Rule>, StoreError> {
        rules::list(&mut *self.reader().await?, tenant, mailbox).await
    }

    async fn rule(&self, tenant: &TenantId, id: &RuleId) -> Result<Option<Rule>, StoreError> {
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

    async fn inbound_raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<Body>, StoreError> {
        mails::raw(&mut *self.reader().await?, tenant, uid).await
    }

    async fn replay_inbound(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        now: Time,
    ) -> Result<Changed, StoreError> {
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
    ) -> Result<Changed, StoreError> {
        changed(self, InboundJob::Resolve(tenant.clone(), uid, now)).await
    }

    async fn traced(&self, uids: &[MessageUid]) -> Result<Vec<Traced>, StoreError> {
        traced::find(&mut *self.reader().await?, uids).await
    }

    async fn receipt_page(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        after: Option<ReceiptPlace>,
        limit: u32,
    ) -> Result<Vec<ReceiptView>, StoreError> {
        receipts::page(&mut *self.reader().await?, tenant, uid, after, limit).await
    }

    async fn receipt_raw(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
        digest: [u8; 32],
    ) -> Result<Option<Body>, StoreError> {
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
        let old = retain::find_old(&mut *session, tenant, [before, unreported_before], limit.min(SLICE_MAX))
            .await?;
        drop(session);
        if old.is_empty() {
            return Ok(0);
        }
        counted(self, InboundJob::Expunge(tenant.clone(), old)).await
    }
}

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<Sql> {
    let listed = [
        mailboxes::STATEMENTS,
        states::STATEMENTS,
        rules::STATEMENTS,
        contacts::STATEMENTS,
        mails::STATEMENTS,
    ]
    .concat();
    [
        vec![HOLD_NAMES],
        listed,
        register::statements(),
        claim::statements(),
        settle::statements(),
        findings::statements(),
        histories::statements(),
        receipts::statements(),
        remove::statements(),
        retain::statements(),
        traced::statements(),
    ]
    .concat()
}
