//! [`Retain`] over SQL.

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId, Time};

use super::Portable;
use crate::{
    error::StoreError,
    port::Retain,
    record::{Erased, Expunge, StatisticsRow, Tombstone},
    retention::{RetainJob, SLICE_MAX, delivery_state, erase, inbound_mail, scan, statistics, traces},
};

/// The number of rows that a job removed.
fn removed(done: Erased) -> u32 {
    u32::try_from(done.removed).unwrap_or(u32::MAX)
}

#[async_trait]
impl<T: Portable> Retain for T {
    async fn trim_journal(&self, before: Time, limit: u32) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::TrimJournal(before, limit.min(SLICE_MAX))).await.map(removed)
    }

    async fn trim_audit(&self, before: Time, limit: u32) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::TrimAudit(before, limit.min(SLICE_MAX))).await.map(removed)
    }

    async fn tombstone(&self, uid: MessageUid) -> Result<Option<Tombstone>, StoreError> {
        traces::tombstone(&mut *self.reader().await?, uid).await
    }

    async fn forget_traces(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::ForgetTraces(now, limit.min(SLICE_MAX))).await.map(removed)
    }

    async fn expunge(&self, expunge: Expunge) -> Result<u32, StoreError> {
        let seen = scan::find(&mut *self.reader().await?, self.walks(), &expunge).await?;
        if seen.is_empty() {
            return Ok(0);
        }
        self.writers().retain(RetainJob::Expunge(Box::new(expunge), seen)).await.map(removed)
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        address: &str,
        now: Time,
        limit: u32,
    ) -> Result<Erased, StoreError> {
        let mut session = self.reader().await?;
        // Both counts use the same backlog, and waiting messages are counted first, so that a message that is
        // left is not missed between them.
        let backlog = delivery_state::backlog(&mut *session, tenant).await?;
        let waiting = erase::count_waiting(&mut *session, tenant, address).await?;
        let limit = limit.min(SLICE_MAX);
        let (seen, behind) = erase::find(&mut *session, tenant, address, &backlog, limit).await?;
        let room = limit as usize - seen.len().min(limit as usize);
        let (mails, mails_waiting) =
            inbound_mail::find_named(&mut *session, tenant, address, &backlog, room).await?;
        drop(session);
        let found = (seen.len() + mails.len()) as i64;
        let mut erased = Erased::default();
        if found > 0 {
            let job = RetainJob::Erase(tenant.clone(), address.to_owned(), now, seen, mails);
            erased = self.writers().retain(job).await?;
        }
        erased.waiting = waiting + behind + mails_waiting + found - erased.removed - erased.redacted;
        Ok(erased)
    }

    async fn statistics(
        &self,
        tenant: &TenantId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StatisticsRow>, StoreError> {
        statistics::list(&mut *self.reader().await?, tenant, since, until).await
    }
}
