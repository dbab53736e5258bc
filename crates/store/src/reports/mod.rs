//! Telling what became of messages, the same for every SQL database.
//!
//! [`subscribers`] are who is told. From the pages of the journal [`fan_out`] makes a notification for each event and
//! subscriber, and counts hours and the [`pace`] of the last one; [`notifications`] are a queue of their own, leased and fenced like messages, and may be
//! made due once more ([`revive`]); [`feed`] reads the same pages for whoever asks, and [`fates`] what lists say. Writes go through the writers, so they share commits with everything else.

mod fan_out;
mod fates;
mod feed;
mod history;
mod hours;
mod log;
mod notifications;
mod pace;
#[cfg(test)]
mod plans;
mod revive;
mod settle;
mod subscribers;

use async_trait::async_trait;
use postway_domain::{Event, Incarnation, MessageUid, Subscriber, TenantId, Time, id::SubscriberId};

pub use fan_out::hears_of;
pub(crate) use fan_out::is_told;
pub(crate) use history::{begun_event, insert_events, told_event};
pub(crate) use hours::{count, hour_of};
pub(crate) use notifications::add_head;
#[cfg(test)]
pub(crate) use notifications::{DUE, HEADS, LEASE};
pub(crate) use pace::list as pace;
pub(crate) use revive::PAGE_MAX as REVIVED_MAX;
#[cfg(test)]
pub(crate) use revive::WAITING;
#[cfg(test)]
pub(crate) use settle::LEASED;
pub(crate) use settle::{next_due, next_state, settle};
pub(crate) use subscribers::{client_of, create, delete, forget, keep_client, quiet, update};

use crate::{
    crash::crash_point,
    directory::Portable,
    error::StoreError,
    group::Engine,
    journal,
    port::Report,
    record::{
        BegunCall, DeliveryPage, DueSubscriber, Fate, FeedEvent, FeedPosition, NotificationKey,
        NotificationState, NotificationView, Notified, ReportRequest, ReportState, ResendPage, ResendRequest,
        ToNotify,
    },
};

/// Something to write.
pub(crate) enum ReportJob {
    /// Gives positions to so many pages.
    Sequence(u32),
    /// Makes notifications of so many pages.
    FanOut(Time, u32),
    Claim(ReportRequest),
    Begin(Vec<BegunCall>),
    Settle(Vec<Notified>),
    /// Gives back what others than those alive have leased, or what is past its backstop; so many.
    Reclaim(Vec<Incarnation>, Time, u32),
    Again(NotificationKey, Time),
    /// Makes what waits for a subscriber due now; so many.
    Hasten(DueSubscriber, Time, u32),
    /// Makes these due again, where they are still settled.
    Resend(ResendRequest, Vec<(MessageUid, i64)>),
}

/// What came of it.
pub(crate) enum Reported {
    Count(u32),
    Claimed(Vec<ToNotify>),
    Held(Vec<bool>),
}

impl ReportJob {
    /// How many messages it is about, about.
    pub fn messages(&self) -> usize {
        match self {
            ReportJob::Sequence(_) | ReportJob::Again(..) => 1,
            ReportJob::FanOut(_, limit)
            | ReportJob::Reclaim(_, _, limit)
            | ReportJob::Hasten(_, _, limit) => *limit as usize,
            ReportJob::Resend(_, found) => found.len(),
            ReportJob::Claim(request) => request.wants.iter().map(|(_, room)| *room as usize).sum(),
            ReportJob::Begin(begun) => begun.len(),
            ReportJob::Settle(notified) => notified.len(),
        }
    }
}

/// Does one inside the transaction under way.
pub(crate) async fn write(engine: &mut impl Engine, job: &ReportJob) -> Result<Reported, StoreError> {
    let mut session = engine.session()?;
    let (reported, wakes) = match job {
        ReportJob::Sequence(limit) => {
            let count = journal::sequence(&mut *session, *limit).await?;
            (Reported::Count(count), count > 0)
        }
        ReportJob::FanOut(now, limit) => {
            let count = fan_out::fan_out(&mut *session, *now, *limit).await?;
            (Reported::Count(count), count > 0)
        }
        ReportJob::Reclaim(alive, now, limit) => {
            let count = notifications::reclaim(&mut *session, alive, *now, *limit).await?;
            (Reported::Count(count), count > 0)
        }
        ReportJob::Again(key, now) => {
            let done = notifications::again(&mut *session, key, *now).await?;
            (Reported::Held(vec![done]), done)
        }
        ReportJob::Hasten(who, now, limit) => {
            let count = revive::hasten(&mut *session, who, *now, *limit).await?;
            (Reported::Count(count), count > 0)
        }
        ReportJob::Resend(request, found) => {
            let count = revive::resend(&mut *session, request, found).await?;
            (Reported::Count(count), count > 0)
        }
        ReportJob::Claim(request) => {
            let claimed = notifications::claim(&mut *session, request).await?;
            drop(session);
            engine.after().wrote |= !claimed.is_empty();
            return Ok(Reported::Claimed(claimed));
        }
        ReportJob::Begin(begun) => {
            let held = settle::begin(&mut *session, begun).await?;
            drop(session);
            engine.after().wrote |= held.contains(&true);
            return Ok(Reported::Held(held));
        }
        ReportJob::Settle(notified) => {
            drop(session);
            return Ok(Reported::Held(settle(engine, &notified.iter().collect::<Vec<_>>()).await?));
        }
    };
    drop(session);
    engine.after().wrote |= wakes;
    engine.after().reports |= wakes;
    Ok(reported)
}

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question about reports".into())
}

async fn counted(store: &impl Portable, job: ReportJob) -> Result<u32, StoreError> {
    match store.writers().report(job).await? {
        Reported::Count(count) => Ok(count),
        Reported::Claimed(_) | Reported::Held(_) => Err(mismatched()),
    }
}

async fn held(store: &impl Portable, job: ReportJob) -> Result<Vec<bool>, StoreError> {
    match store.writers().report(job).await? {
        Reported::Held(held) => Ok(held),
        Reported::Claimed(_) | Reported::Count(_) => Err(mismatched()),
    }
}

#[async_trait]
impl<T: Portable> Report for T {
    async fn sequence(&self, limit: u32) -> Result<u32, StoreError> {
        counted(self, ReportJob::Sequence(limit)).await
    }

    async fn fan_out(&self, now: Time, limit: u32) -> Result<u32, StoreError> {
        counted(self, ReportJob::FanOut(now, limit)).await
    }

    async fn feed(
        &self,
        tenant: &TenantId,
        after: FeedPosition,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError> {
        feed::feed(&mut *self.reader().await?, tenant, after, limit).await
    }

    async fn feed_end(&self, _tenant: &TenantId) -> Result<FeedPosition, StoreError> {
        feed::end(&mut *self.reader().await?).await
    }

    async fn report_woken(&self) {
        self.handover().reports_woken().await;
    }

    async fn report_state(&self, now: Time) -> Result<ReportState, StoreError> {
        notifications::state(&mut *self.reader().await?, now).await
    }

    async fn claim_notifications(&self, request: ReportRequest) -> Result<Vec<ToNotify>, StoreError> {
        match self.writers().report(ReportJob::Claim(request)).await? {
            Reported::Claimed(claimed) => Ok(claimed),
            Reported::Count(_) | Reported::Held(_) => Err(mismatched()),
        }
    }

    async fn begin_calls(&self, begun: Vec<BegunCall>) -> Result<Vec<bool>, StoreError> {
        held(self, ReportJob::Begin(begun)).await
    }

    async fn settle_notifications(&self, notified: Vec<Notified>) -> Result<Vec<bool>, StoreError> {
        held(self, ReportJob::Settle(notified)).await
    }

    async fn reclaim_notifications(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        counted(self, ReportJob::Reclaim(alive.to_vec(), now, limit)).await
    }

    async fn subscriber(
        &self,
        tenant: &TenantId,
        id: &SubscriberId,
    ) -> Result<Option<Subscriber>, StoreError> {
        subscribers::find(&mut *self.reader().await?, tenant, id).await
    }

    async fn subscribers(&self, tenant: Option<&TenantId>) -> Result<Vec<Subscriber>, StoreError> {
        subscribers::list(&mut *self.reader().await?, tenant).await
    }

    async fn notifications(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Vec<NotificationView>, StoreError> {
        log::of_message(&mut *self.reader().await?, tenant, uid).await
    }

    async fn fates(&self, tenant: &TenantId, uids: &[MessageUid]) -> Result<Vec<Fate>, StoreError> {
        fates::fates(&mut *self.reader().await?, tenant, uids).await
    }

    async fn refused_recipients(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, i64)>, StoreError> {
        fates::refused(&mut *self.reader().await?, tenant, uids).await
    }

    async fn news(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, Event)>, StoreError> {
        fates::news(&mut *self.reader().await?, tenant, uids).await
    }

    async fn deliveries(
        &self,
        tenant: &TenantId,
        subscriber: &SubscriberId,
        state: Option<NotificationState>,
        before: Option<(MessageUid, i64)>,
        limit: u32,
    ) -> Result<DeliveryPage, StoreError> {
        log::of_subscriber(&mut *self.reader().await?, tenant, subscriber, state, before, limit).await
    }

    async fn notify_again(&self, key: &NotificationKey, now: Time) -> Result<bool, StoreError> {
        Ok(held(self, ReportJob::Again(key.clone(), now)).await? == [true])
    }

    async fn hasten_notifications(
        &self,
        who: &DueSubscriber,
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError> {
        counted(self, ReportJob::Hasten(who.clone(), now, limit)).await
    }

    async fn resend_notifications(&self, request: ResendRequest) -> Result<ResendPage, StoreError> {
        let (found, next) = revive::find(&mut *self.reader().await?, &request).await?;
        let resent = match found.is_empty() {
            true => 0,
            false => counted(self, ReportJob::Resend(request, found)).await?,
        };
        crash_point("notify_after_resend");
        Ok(ResendPage { resent, next })
    }
}

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::Sql> {
    [
        journal::STATEMENTS.to_vec(),
        journal::multi().to_vec(),
        subscribers::STATEMENTS.to_vec(),
        log::STATEMENTS.to_vec(),
        fan_out::statements(),
        fates::statements(),
        feed::statements(),
        history::statements(),
        hours::statements(),
        notifications::statements(),
        pace::statements(),
        revive::statements(),
        settle::statements(),
    ]
    .concat()
}
