//! Forgetting, the same for every SQL database: messages that ended and were told of, keys and traces that have ended,
//! pages of the journal, old entries of the audit log, and addresses that must not be known any more.
//!
//! Promises:
//! - nothing goes that has not ended, or that somebody is still to be told of;
//! - what goes, goes whole, in one transaction, and leaves a trace and its keys for a time;
//! - a call is bounded: it looks at so many on a connection of its own, and the writer, which sending waits for, gets a
//!   slice of at most [`SLICE_MAX`] by their ids.
//!
//! What was changed between the look and the slice, or is in somebody's hands, stays for the next call.

mod erase;
mod expunge;
mod parts;
mod redact;
mod rules;
mod statistics;
mod told;
mod traces;
mod walk;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId, Time};

pub(crate) use parts::remove_parts;
pub(crate) use redact::{ERASED_ADDRESS, is_addressed, without};
pub(crate) use rules::{FanOutBacklog, KEY_LASTS, SLICE_MAX, TRACE_LASTS, Told};
pub(crate) use told::{backlog, of_messages};
pub(crate) use walk::{Seen, Walks, newest_before};

use crate::{
    directory::{self, Portable},
    error::StoreError,
    group::Engine,
    inbound,
    port::Retain,
    record::{Erased, Expunge, StatisticsRow, Tombstone},
};

/// A write of retention.
pub(crate) enum RetainJob {
    /// Pages of the journal older than this, so many.
    TrimJournal(Time, u32),
    /// Entries of the audit log older than this, so many.
    TrimAudit(Time, u32),
    /// Keys and traces that have ended by now, so many of each.
    ForgetTraces(Time, u32),
    /// These messages, where they are as they were seen.
    Expunge(Box<Expunge>, Vec<Seen>),
    /// An address in these messages of a tenant, where they are as they were seen, and these mails that came in.
    Erase(TenantId, String, Time, Vec<Seen>, Vec<MessageUid>),
}

impl RetainJob {
    /// How many messages it is about, about.
    pub fn messages(&self) -> usize {
        match self {
            RetainJob::TrimJournal(..) | RetainJob::TrimAudit(..) => 1,
            RetainJob::ForgetTraces(_, limit) => *limit as usize,
            RetainJob::Expunge(_, seen) => seen.len(),
            RetainJob::Erase(.., seen, mails) => seen.len() + mails.len(),
        }
    }
}

/// Does one inside the transaction under way. What is no erasure says how much it removed, and no more.
pub(crate) async fn write(engine: &mut impl Engine, job: &RetainJob) -> Result<Erased, StoreError> {
    let removed = match job {
        RetainJob::TrimJournal(before, limit) => {
            traces::trim_journal(&mut *engine.session()?, *before, *limit).await?
        }
        RetainJob::TrimAudit(before, limit) => {
            directory::trim_audit(&mut *engine.session()?, *before, *limit).await?
        }
        RetainJob::ForgetTraces(now, limit) => traces::forget(&mut *engine.session()?, *now, *limit).await?,
        RetainJob::Expunge(expunge, seen) => expunge::expunge(engine, expunge, seen).await?,
        RetainJob::Erase(tenant, address, now, seen, mails) => {
            let mut erased = erase::erase(engine, tenant, address, *now, seen).await?;
            let removed = inbound::expunge(&mut *engine.session()?, tenant, mails).await?;
            erased.removed += i64::try_from(removed).unwrap_or(i64::MAX);
            return Ok(erased);
        }
    };
    Ok(Erased { removed: i64::try_from(removed).unwrap_or(i64::MAX), ..Erased::default() })
}

/// How much a job removed, as its caller is told.
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
        let seen = walk::find(&mut *self.reader().await?, self.walks(), &expunge).await?;
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
        // Both by one measure, the waiting first: a message that is left must not fall between them.
        let backlog = told::backlog(&mut *session, tenant).await?;
        let waiting = erase::count_waiting(&mut *session, tenant, address).await?;
        let limit = limit.min(SLICE_MAX);
        let (seen, behind) = erase::find(&mut *session, tenant, address, &backlog, limit).await?;
        let room = limit as usize - seen.len().min(limit as usize);
        let (mails, mails_waiting) =
            inbound::find_named(&mut *session, tenant, address, &backlog, room).await?;
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

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::Sql> {
    let listed = [erase::STATEMENTS, statistics::STATEMENTS, told::STATEMENTS, traces::STATEMENTS].concat();
    let multi = [erase::multi(), parts::multi(), told::multi(), traces::multi()].concat();
    let multi = multi.into_iter().map(|multi| multi.sample().into()).collect();
    [vec![walk::PAGE], listed, expunge::statements(), multi].concat()
}
