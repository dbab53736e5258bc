//! Reporting and retention: notifying subscribers, and removing what is old.
//!
//! Every transaction that writes events also writes a journal page for each tenant. Pages get their positions
//! after the commit, from one sequencer, and the feed is read in the order of positions. Fan-out makes one
//! notification for each event and subscriber from the pages, and counts hours, each page once.

use async_trait::async_trait;
use postway_domain::{
    Lane, MessageEvent, MessageUid, Subscriber, TenantId, Time,
    id::{StreamId, SubscriberId},
};

use crate::{
    error::StoreError,
    record::{
        BegunCall, DeliveryPage, DueSubscriber, ErasureCounts, ExpungeRequest, ExpungeSlice, FeedEvent,
        FeedPosition, LaneUpkeep, MessageOutcomes, MessageTombstone, NotificationKey, NotificationResult,
        NotificationState, NotificationView, OldestMail, ReportRequest, ReportState, ResendPage,
        ResendRequest, StatisticsRow, StreamStatisticsRow, ToNotify,
    },
};

/// Reporting, see the module.
#[async_trait]
pub trait ReportStore: Send + Sync {
    /// Gives at most `limit` committed pages their positions and returns how many. One caller at a time (a
    /// duty); a second caller that believes it has the duty fails without harm.
    async fn sequence(&self, limit: u32) -> Result<u32, StoreError>;

    /// Makes notifications from at most `limit` pages and counts their hours. Returns the number of pages,
    /// including one that was done in part. Each page is done once, whichever node calls.
    async fn fan_out(&self, now: Time, limit: u32) -> Result<u32, StoreError>;

    /// A tenant's events after this position, oldest first.
    async fn feed(
        &self,
        tenant: &TenantId,
        after: FeedPosition,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError>;

    /// The position behind the latest page, for readers that want new events only.
    async fn feed_end(&self, tenant: &TenantId) -> Result<FeedPosition, StoreError>;

    /// Waits until there may be something new in the journal, in the feed, or due. A hint.
    async fn report_woken(&self);

    /// The subscribers that have notifications due.
    async fn report_state(&self, now: Time) -> Result<ReportState, StoreError>;

    /// Leases notifications, the longest due first.
    async fn claim_notifications(&self, request: ReportRequest) -> Result<Vec<ToNotify>, StoreError>;

    /// Appends `notifying` to the histories of messages before their calls; `true` for each whose lease is
    /// still valid, so that the call may be made.
    async fn begin_calls(&self, begun: Vec<BegunCall>) -> Result<Vec<bool>, StoreError>;

    /// Writes the results of calls; `true` for each that was applied because the lease was still valid.
    async fn settle_notifications(&self, notified: Vec<NotificationResult>) -> Result<Vec<bool>, StoreError>;

    /// Reclaims notifications that are leased to an incarnation not in `alive`, or past their backstop.
    /// Returns the number of notifications.
    async fn reclaim_notifications(
        &self,
        alive: &[postway_domain::Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;

    /// One subscriber.
    async fn subscriber(
        &self,
        tenant: &TenantId,
        id: &SubscriberId,
    ) -> Result<Option<Subscriber>, StoreError>;

    /// A tenant's subscribers by id; those of all tenants if `tenant` is `None`.
    async fn subscribers(&self, tenant: Option<&TenantId>) -> Result<Vec<Subscriber>, StoreError>;

    /// The notifications of a message in order.
    async fn notifications(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Vec<NotificationView>, StoreError>;

    /// The outcomes of these messages and the progress of their notifications, in no order; messages that
    /// have neither are left out.
    async fn fates(&self, tenant: &TenantId, uids: &[MessageUid])
    -> Result<Vec<MessageOutcomes>, StoreError>;

    /// The number of permanently refused recipients of each of these messages, in no order; messages without
    /// any are left out.
    async fn refused_recipients(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, i64)>, StoreError>;

    /// The latest event of each of these messages that subscribers may be notified of, without its data, in
    /// no order.
    async fn news(
        &self,
        tenant: &TenantId,
        uids: &[MessageUid],
    ) -> Result<Vec<(MessageUid, MessageEvent)>, StoreError>;

    /// A subscriber's notifications, the newest first, before `before`; only those in `state` if it is given.
    async fn deliveries(
        &self,
        tenant: &TenantId,
        subscriber: &SubscriberId,
        state: Option<NotificationState>,
        before: Option<(MessageUid, i64)>,
        limit: u32,
    ) -> Result<DeliveryPage, StoreError>;

    /// Makes a settled notification due again; `false` if it is not settled or does not exist.
    async fn notify_again(&self, key: &NotificationKey, now: Time) -> Result<bool, StoreError>;

    /// Makes at most `limit` waiting notifications of a subscriber due now and returns how many. Those called
    /// after `now` stay as they are. The notifications of each message stay in order.
    async fn hasten_notifications(
        &self,
        who: &DueSubscriber,
        now: Time,
        limit: u32,
    ) -> Result<u32, StoreError>;

    /// Makes the next page of a subscriber's settled notifications due again. Those that are due already stay
    /// as they are, so a page may be requested twice.
    async fn resend_notifications(&self, request: ResendRequest) -> Result<ResendPage, StoreError>;
}

/// Retention: removes what is old, and what must be erased.
#[async_trait]
pub trait RetentionStore: Send + Sync {
    /// Removes journal pages older than `before` that were fanned out. Returns the number of pages.
    async fn trim_journal(&self, before: Time, limit: u32) -> Result<u32, StoreError>;

    /// Removes the oldest audit entries that are older than `before`. Returns the number of entries.
    async fn trim_audit(&self, before: Time, limit: u32) -> Result<u32, StoreError>;

    /// The tombstone of a removed message.
    async fn tombstone(&self, uid: MessageUid) -> Result<Option<MessageTombstone>, StoreError>;

    /// Removes expired deduplication keys and tombstones. Returns how many.
    async fn forget_traces(&self, now: Time, limit: u32) -> Result<u32, StoreError>;

    /// Removes final messages whose notifications are settled, with all that belongs to them, and returns how
    /// many. A message that is not final, or has an open notification, is never removed. Zero means that none
    /// can be removed now, or that all the messages examined stay and the next call continues behind them.
    async fn expunge(&self, expunge: ExpungeRequest) -> Result<u32, StoreError> {
        let limit = expunge.limit;
        Ok(self.expunge_some(vec![expunge], limit).await?.removed)
    }

    /// The same for many tenants in one transaction, up to `limit` messages in all: each gets a share of
    /// them, in the order of the requests. All are of one time.
    async fn expunge_some(
        &self,
        requests: Vec<ExpungeRequest>,
        limit: u32,
    ) -> Result<ExpungeSlice, StoreError>;

    /// How old the oldest mail of each of these tenants is, so that tenants with nothing to remove cost
    /// nothing more.
    async fn oldest_mail(&self, tenants: &[TenantId]) -> Result<Vec<OldestMail>, StoreError>;

    /// Erases an address from at most `limit` final messages. If nothing is removed and nothing redacted, the
    /// work is done. Messages that are not final, or have open notifications, are counted and left; the
    /// tenant's own directory of recipients and suppression list are left, too.
    async fn erase(
        &self,
        tenant: &TenantId,
        address: &str,
        now: Time,
        limit: u32,
    ) -> Result<ErasureCounts, StoreError>;

    /// Moves these messages to lanes of the same tenant and account, if they wait to be claimed. Returns how
    /// many.
    async fn move_messages(&self, moves: Vec<(MessageUid, Lane)>) -> Result<u32, StoreError>;

    /// Moves mail that waits in lanes with earlier ids to the lanes in which claims find it, as far as one
    /// page of a walk along the lanes goes. The next call continues behind it.
    async fn move_misplaced(&self) -> Result<LaneUpkeep, StoreError>;

    /// Removes lanes to which no message has referred for long enough, and marks those to which none refers
    /// now, as far as one page of a walk along the lanes goes. The next call continues behind it.
    async fn retire_lanes(&self, now: Time) -> Result<LaneUpkeep, StoreError>;

    /// Plans and fills the blocks that searches for texts read, some of them. The next call continues.
    async fn tend_text_blocks(&self, now: Time) -> Result<LaneUpkeep, StoreError>;

    /// The hourly counters of a tenant's accounts, from `since` until before `until`.
    async fn statistics(
        &self,
        tenant: &TenantId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StatisticsRow>, StoreError>;

    /// The hourly counters of a stream, from `since` until before `until`.
    async fn stream_statistics(
        &self,
        tenant: &TenantId,
        stream: &StreamId,
        since: Time,
        until: Time,
    ) -> Result<Vec<StreamStatisticsRow>, StoreError>;

    /// The counters since then of the streams that sent most, the busiest first; `hour` is `since`. Of very
    /// many hours only the newest count.
    async fn busiest_streams(&self, since: Time, limit: u32) -> Result<Vec<StreamStatisticsRow>, StoreError>;
}
