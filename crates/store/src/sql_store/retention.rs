//! [`RetentionStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{Lane, MessageUid, TenantId, Time, id::StreamId};

use super::SqlStore;
use crate::{
    error::StoreError,
    port::RetentionStore,
    queue::lane_upkeep,
    record::{
        ErasureCounts, ExpungeRequest, ExpungeSlice, LaneUpkeep, MessageTombstone, OldestMail, StatisticsRow,
        StreamStatisticsRow,
    },
    retention::{RetainJob, SLICE_MAX, delivery_state, erase, inbound_mail, scan, statistics, traces},
    text_block::upkeep,
};

/// The number of rows that a job removed.
fn removed(done: ErasureCounts) -> u32 {
    u32::try_from(done.removed).unwrap_or(u32::MAX)
}

#[async_trait]
impl<T: SqlStore> RetentionStore for T {
    async fn trim_journal(&self, before: Time, limit: u32) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::TrimJournal(before, limit.min(SLICE_MAX))).await.map(removed)
    }

    async fn trim_audit(&self, before: Time, limit: u32) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::TrimAudit(before, limit.min(SLICE_MAX))).await.map(removed)
    }

    async fn tombstone(&self, uid: MessageUid) -> Result<Option<MessageTombstone>, StoreError> {
        traces::tombstone(&mut *self.reader().await?, uid).await
    }

    async fn forget_traces(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::ForgetTraces(now, limit.min(SLICE_MAX))).await.map(removed)
    }

    async fn expunge_some(
        &self,
        requests: Vec<ExpungeRequest>,
        limit: u32,
    ) -> Result<ExpungeSlice, StoreError> {
        let (seen, slice) =
            scan::find_some(&mut *self.reader().await?, self.walks(), &requests, limit).await?;
        if seen.is_empty() {
            return Ok(slice);
        }
        let done = self.writers().retain(RetainJob::Expunge(requests, seen)).await?;
        Ok(ExpungeSlice { removed: removed(done), ..slice })
    }

    async fn oldest_mail(&self, tenants: &[TenantId]) -> Result<Vec<OldestMail>, StoreError> {
        scan::oldest_mail(&mut *self.reader().await?, tenants).await
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        address: &str,
        now: Time,
        limit: u32,
    ) -> Result<ErasureCounts, StoreError> {
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
        let is_suppressed = erase::is_in_suppression_changes(&mut *session, tenant, address).await?;
        drop(session);
        let found = (seen.len() + mails.len()) as i64;
        let mut erased = ErasureCounts::default();
        if found > 0 || is_suppressed {
            let job = RetainJob::Erase(tenant.clone(), address.to_owned(), now, seen, mails);
            erased = self.writers().retain(job).await?;
        }
        erased.waiting = waiting + behind + mails_waiting + found - erased.removed - erased.redacted;
        Ok(erased)
    }

    async fn move_messages(&self, moves: Vec<(MessageUid, Lane)>) -> Result<u32, StoreError> {
        self.writers().retain(RetainJob::MoveMessages(moves)).await.map(removed)
    }

    async fn move_misplaced(&self) -> Result<LaneUpkeep, StoreError> {
        let page = lane_upkeep::find_misplaced(&mut *self.reader().await?, &self.walks().lanes).await?;
        let mut upkeep = LaneUpkeep { done: 0, is_last: page.is_last };
        for some in page.found.chunks(lane_upkeep::MOVED_LANES) {
            // Again until no lane has more, or the lanes in order that are left have to wait.
            loop {
                let moved =
                    self.writers().retain(RetainJob::MoveWaiting(some.to_vec())).await.map(removed)?;
                upkeep.done += moved;
                if moved < lane_upkeep::MOVED_MESSAGES {
                    break;
                }
            }
        }
        Ok(upkeep)
    }

    async fn retire_lanes(&self, now: Time) -> Result<LaneUpkeep, StoreError> {
        let (walks, is_shared) = (&self.walks().lanes, self.has_other_processes());
        let page = lane_upkeep::find_idle(&mut *self.reader().await?, walks, now, is_shared).await?;
        let mut upkeep = LaneUpkeep { done: 0, is_last: page.is_last };
        if !page.found.to_mark.is_empty() || !page.found.to_remove.is_empty() {
            let job = RetainJob::RetireLanes(page.found, now);
            upkeep.done = self.writers().retain(job).await.map(removed)?;
        }
        Ok(upkeep)
    }

    async fn tend_text_blocks(&self, now: Time) -> Result<LaneUpkeep, StoreError> {
        let mut session = self.reader().await?;
        let filled = upkeep::read_empty(&mut *session, now).await?;
        let (planned, is_last) = upkeep::plan(&mut *session, &self.walks().text_blocks, now).await?;
        drop(session);
        let mut tended = LaneUpkeep { done: 0, is_last: is_last && filled.is_empty() && planned.is_empty() };
        if !tended.is_last {
            let job = RetainJob::WriteTextBlocks(planned, filled, now);
            tended.done = self.writers().retain(job).await.map(removed)?;
        }
        Ok(tended)
    }

    async fn statistics(
        &self,
        tenant: &TenantId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StatisticsRow>, StoreError> {
        statistics::list(&mut *self.reader().await?, tenant, since, until).await
    }

    async fn stream_statistics(
        &self,
        tenant: &TenantId,
        stream: &StreamId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StreamStatisticsRow>, StoreError> {
        statistics::list_of_stream(&mut *self.reader().await?, tenant, stream, since, until).await
    }

    async fn busiest_streams(&self, since: Time, limit: u32) -> Result<Vec<StreamStatisticsRow>, StoreError> {
        statistics::busiest(&mut *self.reader().await?, since, limit).await
    }
}
