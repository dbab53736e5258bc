//! The reporters' side: telling what became of messages, and forgetting what was told.
//!
//! Every transaction that writes events leaves a page in the journal for each tenant, with it. Pages get their positions
//! after the commit, from one sequencer; the feed is read by them. From the pages notifications are made, one for each
//! event and subscriber, and hours are counted, each page once.

use async_trait::async_trait;
use postway_domain::{Event, MessageUid, Subscriber, TenantId, Time, id::SubscriberId};

use crate::{
    error::StoreError,
    record::{
        BegunCall, DeliveryPage, DueSubscriber, Erased, Expunge, Fate, FeedEvent, FeedPosition, LaneUpkeep,
        NotificationKey, NotificationState, NotificationView, Notified, ReportRequest, ReportState,
        ResendPage, ResendRequest, StatisticsRow, ToNotify, Tombstone,
    },
};

/// See the module.
#[async_trait]
pub trait Report: Send + Sync {
    /// Gives committed pages their positions, at most `limit`; how many. One caller at a time (a duty); another that
    /// believes to be it fails without harm.
    async fn sequence(&self, limit: u32) -> Result<u32, StoreError>;

    /// Makes notifications of the next pages, at most `limit`, and counts their hours; how many pages, where one that was
    /// done in part counts as well. Each page is done once, whoever calls.
    async fn fan_out(&self, now: Time, limit: u32) -> Result<u32, StoreError>;

    /// What a tenant's messages went through after this place, oldest first.
    async fn feed(
        &self,
        tenant: &TenantId,
        after: FeedPosition,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError>;

    /// The place behind the latest page, for readers that want only what comes.
    async fn feed_end(&self, tenant: &TenantId) -> Result<FeedPosition, StoreError>;

    /// Pends until there may be something new in the journal, in the feed, or due. A hint.
    async fn report_woken(&self);

    /// Who has notifications due.
    async fn report_state(&self, now: Time) -> Result<ReportState, StoreError>;

    /// Leases notifications, the longest due first.
    async fn claim_notifications(&self, request: ReportRequest) -> Result<Vec<ToNotify>, StoreError>;

    /// Tells the histories of messages that somebody is about to be called, before the call; `true` where the lease still
    /// holds, and so the call may be made.
    async fn begin_calls(&self, begun: Vec<BegunCall>) -> Result<Vec<bool>, StoreError>;

    /// Writes what came of calls; `true` where the lease still held.
    async fn settle_notifications(&self, notified: Vec<Notified>) -> Result<Vec<bool>, StoreError>;

    /// Gives back notifications leased to others than those alive, or past their backstop; how many.
    async fn reclaim_notifications(
        &self,
        alive: &[postway_domain::Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;

    /// A subscriber.
    async fn subscriber(
        &self,
        tenant: &TenantId,
        id: &SubscriberId,
    ) -> Result<Option<Subscriber>, StoreError>;

    /// A tenant's subscribers by id, of all tenants where none is named.
    async fn subscribers(&self, tenant: Option<&TenantId>) -> Result<Vec<Subscriber>, StoreError>;

    /// The notifications of a message, in order.
    async fn notifications(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Vec<NotificationView>, StoreError>;

    /// What became of these messages and who was told of them, in no order; only of those of which there is something to say.
    async fn fates(&self, tenant: &TenantId, uids: &[MessageUid]) -> Result<Vec<Fate>, StoreError>;

    /// How many recipients of each of these messages were refused for good, in no order; only of those of which some were.
    async fn refused_recipients(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, i64)>, StoreError>;

    /// The latest event of each of these messages that subscribers may be told of, without its particulars, in no order.
    async fn news(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, Event)>, StoreError>;

    /// A subscriber's notifications, the newest first, before this one; in this state where one is given.
    async fn deliveries(
        &self,
        tenant: &TenantId,
        subscriber: &SubscriberId,
        state: Option<NotificationState>,
        before: Option<(MessageUid, i64)>,
        limit: u32,
    ) -> Result<DeliveryPage, StoreError>;

    /// Makes a settled notification due again; `false` where it is not settled or not there.
    async fn notify_again(&self, key: &NotificationKey, now: Time) -> Result<bool, StoreError>;

    /// Makes what waits for a subscriber due now, at most `limit`; how many. What was called after `now` is left. Each
    /// message's stay in order.
    async fn hasten_notifications(
        &self,
        who: &DueSubscriber,
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;

    /// Makes the next page of a subscriber's settled notifications due again. What is due already stays as it is, so a
    /// page may be asked for twice.
    async fn resend_notifications(&self, request: ResendRequest) -> Result<ResendPage, StoreError>;
}

/// Forgetting: what was told and is old, and what must not be known any more.
#[async_trait]
pub trait Retain: Send + Sync {
    /// Removes pages of the journal that notifications were made of, older than `before`; how many.
    async fn trim_journal(&self, before: Time, limit: u32) -> Result<u32, StoreError>;

    /// Removes the oldest entries of the audit log, older than `before`; how many.
    async fn trim_audit(&self, before: Time, limit: u32) -> Result<u32, StoreError>;

    /// The trace of a message that is gone.
    async fn tombstone(&self, uid: MessageUid) -> Result<Option<Tombstone>, StoreError>;

    /// Forgets keys and traces that have ended; how many.
    async fn forget_traces(&self, now: Time, limit: u32) -> Result<u32, StoreError>;

    /// Removes messages that ended and were reported, with all that belongs to them; how many. Never one that has not
    /// ended or that somebody is still to be told of. Zero: none can go now, or the many that were looked at stay, and the
    /// next call goes on behind them.
    async fn expunge(&self, expunge: Expunge) -> Result<u32, StoreError>;

    /// Removes an address from the messages that have ended; at most `limit` of them. Zero removed and redacted: done.
    /// Those that have not ended, or that somebody is still to be told of, are counted and left; so are the tenant's own
    /// lists, of recipients and of suppressions.
    async fn erase(
        &self,
        tenant: &TenantId,
        address: &str,
        now: Time,
        limit: u32,
    ) -> Result<Erased, StoreError>;

    /// Moves mail that waits in lanes under earlier ids to where claims find it, as far as one page of a walk along the lanes
    /// goes. The next call goes on behind it.
    async fn move_misplaced(&self) -> Result<LaneUpkeep, StoreError>;

    /// Removes lanes to which no message has referred for long enough, and marks those to which none refers now, as far as one
    /// page of a walk along the lanes goes. The next call goes on behind it.
    async fn retire_lanes(&self, now: Time) -> Result<LaneUpkeep, StoreError>;

    /// What a tenant's accounts did, hour by hour, from `since` until before `until`.
    async fn statistics(
        &self,
        tenant: &TenantId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StatisticsRow>, StoreError>;
}
