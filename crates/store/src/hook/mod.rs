//! The events that providers report to the hooks of accounts, the same for every SQL database.
//!
//! [`events`] are stored before the provider gets its
//! answer, and listed; [`claim`] leases them, and [`settle`] writes the result with all findings about sent
//! messages. [`sent_through`] says which account sent a message.

pub(crate) mod claim;
pub(crate) mod events;
pub(crate) mod sent_through;
pub(crate) mod settle;

use postway_domain::{Incarnation, TenantId, Time};

use crate::{
    error::StoreError,
    queue::transaction::WriteTransaction,
    record::{ProviderEventBatch, ProviderEventClaim, ProviderEventResult, ProviderEventToProcess},
};

/// A write job for reported events.
pub(crate) enum HookJob {
    Add(ProviderEventBatch),
    Claim(ProviderEventClaim),
    Settle(Vec<ProviderEventResult>),
    /// Reclaims up to the given number of events that are leased to other incarnations than these, or past
    /// their backstop.
    Reclaim(Vec<Incarnation>, Time, u32),
    /// Removes up to the given number of a tenant's events that came before this time.
    Expunge(TenantId, Time, u32),
}

/// The answer to a job.
pub(crate) enum HookAnswer {
    Claimed(Vec<ProviderEventToProcess>),
    Held(Vec<bool>),
    Count(u32),
}

impl HookJob {
    /// Roughly how many messages this job touches.
    pub fn messages(&self) -> usize {
        match self {
            HookJob::Add(batch) => batch.events.len(),
            HookJob::Claim(claim) => claim.limit as usize,
            HookJob::Settle(done) => done.iter().map(|one| 1 + one.findings.len()).sum(),
            HookJob::Reclaim(_, _, limit) | HookJob::Expunge(_, _, limit) => *limit as usize,
        }
    }

    /// The number of body bytes that it writes into rows.
    pub fn bytes(&self) -> usize {
        let HookJob::Add(batch) = self else { return 0 };
        batch.events.iter().map(|event| event.raw.len()).sum()
    }
}

/// Does a job inside the transaction under way.
pub(crate) async fn write(
    engine: &mut impl WriteTransaction,
    job: &HookJob,
) -> Result<HookAnswer, StoreError> {
    let mut journal = std::mem::take(&mut engine.after().journal);
    let mut session = engine.session()?;
    let session_ref = &mut *session;
    // The answer, and whether new work is due because of it.
    let (answer, wakes) = match job {
        HookJob::Add(batch) => {
            events::add(session_ref, batch).await?;
            (HookAnswer::Count(0), true)
        }
        HookJob::Claim(claim) => (HookAnswer::Claimed(claim::claim(session_ref, claim).await?), false),
        HookJob::Settle(done) => {
            (HookAnswer::Held(settle::settle(session_ref, &mut journal, done).await?), false)
        }
        HookJob::Reclaim(alive, now, limit) => {
            let count = claim::reclaim(session_ref, alive, *now, *limit).await?;
            (HookAnswer::Count(count), count > 0)
        }
        HookJob::Expunge(tenant, before, limit) => {
            (HookAnswer::Count(events::expunge(session_ref, tenant, *before, *limit).await?), false)
        }
    };
    drop(session);
    let after = engine.after();
    after.journal = journal;
    after.wrote |= !matches!(&answer, HookAnswer::Claimed(claimed) if claimed.is_empty());
    after.provider_events |= wakes;
    Ok(answer)
}

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    [events::statements(), claim::statements(), settle::statements(), sent_through::statements()].concat()
}
