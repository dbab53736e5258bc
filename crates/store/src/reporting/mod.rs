//! Reporting to subscribers, the same for every SQL database.
//!
//! From the pages of the journal [`fan_out`] makes a notification for each event and each of the
//! [`subscribers`], and counts hours and the [`rates`] of the last hour. [`notifications`] are a queue,
//! leased and fenced like messages, and can be sent again ([`resend`]). [`feed`] reads the same pages for
//! `GET /v1/events`, and [`outcomes`] what lists show. Writes go through the writers and share commits with
//! everything else.

pub(crate) mod delivery_log;
pub(crate) mod fan_out;
pub(crate) mod feed;
pub(crate) mod hourly_counts;
pub(crate) mod notifications;
pub(crate) mod outcomes;
#[cfg(test)]
pub(crate) mod query_plans;
pub(crate) mod rates;
pub(crate) mod resend;
pub(crate) mod settle;
pub(crate) mod stream_counts;
pub(crate) mod subscribers;

use postway_domain::{Incarnation, MessageUid, Time};

pub use fan_out::hears_of;
pub(crate) use fan_out::is_told;
pub(crate) use hourly_counts::{count, hour_of};
pub(crate) use notifications::add_head;
#[cfg(test)]
pub(crate) use notifications::{DUE, HEADS, LEASE};
pub(crate) use rates::list as pace;
pub(crate) use resend::PAGE_MAX as REVIVED_MAX;
#[cfg(test)]
pub(crate) use resend::WAITING;
#[cfg(test)]
pub(crate) use settle::LEASED;
pub(crate) use settle::{next_due, next_state, settle};
pub(crate) use stream_counts::count as count_stream;
pub(crate) use subscribers::{OWN, create, delete, forget, keep_own, own_of, quiet, update};

use crate::{
    error::StoreError,
    journal,
    queue::transaction::WriteTransaction,
    record::{
        BegunCall, DueSubscriber, NotificationKey, NotificationResult, ReportRequest, ResendRequest, ToNotify,
    },
};

/// A write job of reporting.
pub(crate) enum ReportJob {
    /// Gives positions to up to this number of pages.
    Sequence(u32),
    /// Makes notifications from up to this number of pages.
    FanOut(Time, u32),
    Claim(ReportRequest),
    Begin(Vec<BegunCall>),
    Settle(Vec<NotificationResult>),
    /// Reclaims up to the given number of notifications that are leased to other incarnations than these, or
    /// past their backstop.
    Reclaim(Vec<Incarnation>, Time, u32),
    Again(NotificationKey, Time),
    /// Makes up to the given number of a subscriber's waiting notifications due now.
    Hasten(DueSubscriber, Time, u32),
    /// Makes these notifications due again if they are still settled.
    Resend(ResendRequest, Vec<(MessageUid, i64)>),
}

/// The answer to a job.
pub(crate) enum ReportAnswer {
    Count(u32),
    Claimed(Vec<ToNotify>),
    Held(Vec<bool>),
}

impl ReportJob {
    /// Roughly how many messages this job touches.
    pub fn messages(&self) -> usize {
        match self {
            ReportJob::Sequence(_) | ReportJob::Again(..) => 1,
            // A page mostly costs less than a message.
            ReportJob::FanOut(_, limit) => (*limit as usize).div_ceil(4),
            ReportJob::Reclaim(_, _, limit) | ReportJob::Hasten(_, _, limit) => *limit as usize,
            ReportJob::Resend(_, found) => found.len(),
            ReportJob::Claim(request) => request.wants.iter().map(|(_, room)| *room as usize).sum(),
            ReportJob::Begin(begun) => begun.len(),
            ReportJob::Settle(notified) => notified.len(),
        }
    }
}

/// Does a job inside the transaction under way.
pub(crate) async fn write(
    engine: &mut impl WriteTransaction,
    job: &ReportJob,
) -> Result<ReportAnswer, StoreError> {
    let mut session = engine.session()?;
    let (reported, wakes) = match job {
        ReportJob::Sequence(limit) => {
            let count = journal::sequence(&mut *session, *limit).await?;
            (ReportAnswer::Count(count), count > 0)
        }
        ReportJob::FanOut(now, limit) => {
            let count = fan_out::fan_out(&mut *session, *now, *limit).await?;
            (ReportAnswer::Count(count), count > 0)
        }
        ReportJob::Reclaim(alive, now, limit) => {
            let count = notifications::reclaim(&mut *session, alive, *now, *limit).await?;
            (ReportAnswer::Count(count), count > 0)
        }
        ReportJob::Again(key, now) => {
            let done = notifications::again(&mut *session, key, *now).await?;
            (ReportAnswer::Held(vec![done]), done)
        }
        ReportJob::Hasten(who, now, limit) => {
            let count = resend::hasten(&mut *session, who, *now, *limit).await?;
            (ReportAnswer::Count(count), count > 0)
        }
        ReportJob::Resend(request, found) => {
            let count = resend::resend(&mut *session, request, found).await?;
            (ReportAnswer::Count(count), count > 0)
        }
        ReportJob::Claim(request) => {
            let claimed = notifications::claim(&mut *session, request).await?;
            drop(session);
            engine.after().wrote |= !claimed.is_empty();
            return Ok(ReportAnswer::Claimed(claimed));
        }
        ReportJob::Begin(begun) => {
            let held = settle::begin(&mut *session, begun).await?;
            drop(session);
            engine.after().wrote |= held.contains(&true);
            return Ok(ReportAnswer::Held(held));
        }
        ReportJob::Settle(notified) => {
            drop(session);
            return Ok(ReportAnswer::Held(settle(engine, &notified.iter().collect::<Vec<_>>()).await?));
        }
    };
    drop(session);
    engine.after().wrote |= wakes;
    engine.after().reports |= wakes;
    Ok(reported)
}

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    [
        journal::STATEMENTS.to_vec(),
        journal::multi().to_vec(),
        subscribers::STATEMENTS.to_vec(),
        delivery_log::STATEMENTS.to_vec(),
        fan_out::statements(),
        outcomes::statements(),
        feed::statements(),
        journal::history::statements(),
        hourly_counts::statements(),
        stream_counts::statements(),
        notifications::statements(),
        rates::statements(),
        resend::statements(),
        settle::statements(),
    ]
    .concat()
}
