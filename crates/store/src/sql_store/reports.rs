//! [`ReportStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{Incarnation, MessageEvent, MessageUid, Subscriber, TenantId, Time, id::SubscriberId};

use super::SqlStore;
use crate::{
    error::StoreError,
    failpoint::crash_point,
    port::ReportStore,
    record::{
        BegunCall, DeliveryPage, DueSubscriber, FeedEvent, FeedPosition, MessageOutcomes, NotificationKey,
        NotificationResult, NotificationState, NotificationView, ReportRequest, ReportState, ResendPage,
        ResendRequest, ToNotify,
    },
    reporting::{ReportAnswer, ReportJob, delivery_log, feed, notifications, outcomes, resend, subscribers},
};

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question about reports".into())
}

async fn counted(store: &impl SqlStore, job: ReportJob) -> Result<u32, StoreError> {
    match store.writers().report(job).await? {
        ReportAnswer::Count(count) => Ok(count),
        ReportAnswer::Claimed(_) | ReportAnswer::Held(_) => Err(mismatched()),
    }
}

async fn applied(store: &impl SqlStore, job: ReportJob) -> Result<Vec<bool>, StoreError> {
    match store.writers().report(job).await? {
        ReportAnswer::Held(applied) => Ok(applied),
        ReportAnswer::Claimed(_) | ReportAnswer::Count(_) => Err(mismatched()),
    }
}

#[async_trait]
impl<T: SqlStore> ReportStore for T {
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
            ReportAnswer::Claimed(claimed) => Ok(claimed),
            ReportAnswer::Count(_) | ReportAnswer::Held(_) => Err(mismatched()),
        }
    }

    async fn begin_calls(&self, begun: Vec<BegunCall>) -> Result<Vec<bool>, StoreError> {
        applied(self, ReportJob::Begin(begun)).await
    }

    async fn settle_notifications(&self, notified: Vec<NotificationResult>) -> Result<Vec<bool>, StoreError> {
        applied(self, ReportJob::Settle(notified)).await
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
        delivery_log::of_message(&mut *self.reader().await?, tenant, uid).await
    }

    async fn fates(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<MessageOutcomes>, StoreError> {
        outcomes::fates(&mut *self.reader().await?, tenant, uids).await
    }

    async fn refused_recipients(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, i64)>, StoreError> {
        outcomes::refused(&mut *self.reader().await?, tenant, uids).await
    }

    async fn news(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, MessageEvent)>, StoreError> {
        outcomes::news(&mut *self.reader().await?, tenant, uids).await
    }

    async fn deliveries(
        &self,
        tenant: &TenantId,
        subscriber: &SubscriberId,
        state: Option<NotificationState>,
        before: Option<(MessageUid, i64)>,
        limit: u32,
    ) -> Result<DeliveryPage, StoreError> {
        delivery_log::of_subscriber(&mut *self.reader().await?, tenant, subscriber, state, before, limit)
            .await
    }

    async fn notify_again(&self, key: &NotificationKey, now: Time) -> Result<bool, StoreError> {
        Ok(applied(self, ReportJob::Again(key.clone(), now)).await? == [true])
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
        let (found, next) = resend::find(&mut *self.reader().await?, &request).await?;
        let resent = match found.is_empty() {
            true => 0,
            false => counted(self, ReportJob::Resend(request, found)).await?,
        };
        crash_point("notify_after_resend");
        Ok(ResendPage { resent, next })
    }
}
