//! Notifications, the feed, statistics, and retention.

use postway_domain::{
    AccountId, EventKind, MessageEvent, MessageStatus, MessageUid, TenantId, Time, id::SubscriberId,
};

use super::claim::LeaseGrant;

/// A position in a tenant's feed: a page of the journal in commit order, and an entry of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition {
    /// The page.
    pub page: i64,
    /// The index of the entry in the page.
    pub entry: u32,
}

/// An event at its position in the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedEvent {
    /// Its position.
    pub position: FeedPosition,
    /// The message.
    pub uid: MessageUid,
    /// The kind of the event.
    pub kind: EventKind,
    /// Whether a scheduled message was deferred by a failure.
    pub deferred: bool,
    /// The event; `None` if the message has been removed.
    pub event: Option<MessageEvent>,
}

/// The key of a notification: an event and a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationKey {
    /// The tenant of the message.
    pub tenant: TenantId,
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The message.
    pub uid: MessageUid,
    /// The event's sequence number in the message's history.
    pub seq: i64,
}

/// The state of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationState {
    /// No call has been made yet.
    Pending = 0,
    /// A call is under way.
    Calling = 1,
    /// A call failed; there will be another.
    Waiting = 2,
    /// The subscriber has it.
    Acknowledged = 3,
    /// Every call failed, and no other will be made.
    Dead = 4,
}

impl NotificationState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Calling, Self::Waiting, Self::Acknowledged, Self::Dead];

    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Calling => "calling",
            Self::Waiting => "waiting",
            Self::Acknowledged => "acknowledged",
            Self::Dead => "dead",
        }
    }

    /// The code that is stored.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The state with this stored code.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// Whether nothing more happens by itself.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Dead)
    }
}

/// A subscriber with notifications due now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueSubscriber {
    /// The tenant.
    pub tenant: TenantId,
    /// The subscriber.
    pub subscriber: SubscriberId,
}

/// Which notifications wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportState {
    /// The subscribers with notifications due now that are active and not in a quiet period.
    pub due: Vec<DueSubscriber>,
    /// When the next notification that is not due yet becomes due.
    pub next_due_at: Option<Time>,
}

/// Asks for notifications to send.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// The lease to record.
    pub lease: LeaseGrant,
    /// The current time.
    pub now: Time,
    /// The subscribers to serve, with the number of notifications wanted of each.
    pub wants: Vec<(DueSubscriber, u32)>,
}

/// A notification leased to the caller. Of each message's notifications only the oldest unsettled one is
/// leased.
#[derive(Clone, Debug)]
pub struct ToNotify {
    /// The notification.
    pub key: NotificationKey,
    /// The event; `None` if the message has been removed.
    pub event: Option<MessageEvent>,
    /// Whether a scheduled message was deferred by a failure.
    pub deferred: bool,
    /// The number of calls so far.
    pub tries: i64,
    /// When it was created.
    pub created_at: Time,
}

/// A call that is about to be made, to be recorded in the message's history as `notifying`.
#[derive(Clone, Debug)]
pub struct BegunCall {
    /// The notification.
    pub key: NotificationKey,
    /// The claim's token. If another node has claimed the notification since, the call must not be made.
    pub token: postway_domain::LeaseToken,
    /// The current time.
    pub at: Time,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct NotificationResult {
    /// The notification.
    pub key: NotificationKey,
    /// The claim's token. If another node has claimed the notification since, nothing is written.
    pub token: postway_domain::LeaseToken,
    /// The current time.
    pub at: Time,
    /// The new state: waiting, acknowledged, dead, or pending if it was returned without a call.
    pub state: NotificationState,
    /// When it is due next, if it is waiting or was returned.
    pub due_at: Option<Time>,
    /// The call, if one was made.
    pub call: Option<NotificationCall>,
    /// Whether the message's history gets a `notified` event.
    pub tells_history: bool,
}

/// A call as the delivery log stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationCall {
    /// When it began.
    pub at: Time,
    /// How long it took.
    pub latency_ms: i64,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The request body, shortened.
    pub request: String,
    /// The answer, shortened, or the error.
    pub answer: String,
}

/// A notification as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationView {
    /// The notification.
    pub key: NotificationKey,
    /// The kind of its event.
    pub kind: EventKind,
    /// Whether a scheduled message was deferred by a failure.
    pub deferred: bool,
    /// Its state.
    pub state: NotificationState,
    /// The number of calls so far.
    pub tries: i64,
    /// When it is due next.
    pub due_at: Option<Time>,
    /// When it was created.
    pub created_at: Time,
    /// When it was settled.
    pub settled_at: Option<Time>,
    /// Its latest call.
    pub last_call: Option<NotificationCall>,
}

/// A page of a subscriber's notifications, sent and still to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryPage {
    /// The notifications, those of the newest messages first.
    pub told: Vec<NotificationView>,
    /// The message and event before which the next page begins, if there may be one. The number of rows that
    /// one call examines is bounded, so a page may be short or empty and still have a next one.
    pub next: Option<(MessageUid, i64)>,
}

impl DeliveryPage {
    /// A page of at most `limit` of the notifications in `told`. `looked_until` is where the next page begins
    /// if there are not more than that.
    pub(crate) fn from_found(
        mut told: Vec<NotificationView>,
        limit: u32,
        looked_until: Option<(MessageUid, i64)>,
    ) -> Self {
        let has_more = told.len() > limit as usize;
        told.truncate(limit as usize);
        let last = told.last().filter(|_| has_more).map(|last| (last.key.uid, last.key.seq));
        Self { told, next: last.or(looked_until) }
    }
}

/// A request to send a subscriber's settled notifications again, one page at a time.
#[derive(Clone, Debug)]
pub struct ResendRequest {
    /// The tenant.
    pub who: DueSubscriber,
    /// Only notifications created at this time or later.
    pub since: Time,
    /// Only notifications created before this time.
    pub until: Time,
    /// Whether only dead notifications are sent again; otherwise the acknowledged ones, too.
    pub only_dead: bool,
    /// The message and event after which this page begins: where the page before ended.
    pub after: Option<(MessageUid, i64)>,
    /// The current time: they become due then.
    pub now: Time,
    /// The most that one call handles.
    pub limit: u32,
}

/// The result of one page of a [`ResendRequest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResendPage {
    /// The number of notifications that are due again.
    pub resent: u32,
    /// The message and event after which the next page begins, if there may be one. The number of rows that
    /// one call examines is bounded, so a page that resent nothing may have a next one.
    pub next: Option<(MessageUid, i64)>,
}

/// Which messages retention may remove.
#[derive(Clone, Debug)]
pub struct ExpungeRequest {
    /// The tenant.
    pub tenant: TenantId,
    /// Messages that reached a final state and whose notifications were settled before this time.
    pub reported_before: Time,
    /// Messages with a dead notification, if they ended before this time.
    pub unreported_before: Time,
    /// The current time: their deduplication keys end a day from here, their tombstones thirty days from
    /// here.
    pub now: Time,
    /// The key of the digests that tombstones keep of recipients.
    pub recipient_key: [u8; 32],
    /// The most that one call handles.
    pub limit: u32,
}

/// The result of one slice of removals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpungeSlice {
    /// The number of messages removed.
    pub removed: u32,
    /// Tenants that were not looked at, because the slice was full before.
    pub unseen: Vec<TenantId>,
    /// Tenants that may have more to remove.
    pub unfinished: Vec<TenantId>,
}

/// When the oldest mail of a tenant came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldestMail {
    /// The tenant.
    pub tenant: TenantId,
    /// When its oldest message was accepted, if it has one.
    pub message: Option<Time>,
    /// When its oldest inbound mail was registered, if it has one.
    pub inbound: Option<Time>,
    /// When the oldest event that a provider reported to it came, if there is one.
    pub provider_event: Option<Time>,
}

/// The result of one page of a walk along the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneUpkeep {
    /// The number of messages moved, or of lanes removed.
    pub done: u32,
    /// Whether the walk has reached its end; the next call begins again.
    pub is_last: bool,
}

/// The result of erasing an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureCounts {
    /// The number of messages removed.
    pub removed: i64,
    /// The number of messages to several recipients in which the address and the bodies were removed.
    pub redacted: i64,
    /// The number of messages that are not final yet and were left unchanged.
    pub waiting: i64,
}

/// The counters of one account in one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticsRow {
    /// The beginning of the hour.
    pub hour: Time,
    /// The tenant.
    pub tenant: TenantId,
    /// The account.
    pub account: AccountId,
    /// The counters.
    pub counts: HourlyCounts,
}

/// Counters of one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourlyCounts {
    /// Messages accepted.
    pub accepted: i64,
    /// Messages sent.
    pub sent: i64,
    /// Messages failed.
    pub failed: i64,
    /// Messages refused by a check.
    pub invalid: i64,
    /// Deferrals after a transient failure.
    pub deferred: i64,
    /// Bounces.
    pub bounced: i64,
    /// Complaints.
    pub complained: i64,
    /// Messages not sent because of the suppression list.
    pub suppressed: i64,
    /// The time from acceptance to `sent`, in milliseconds, summed over `sent`.
    pub queue_ms: i64,
}

/// What is kept of a removed message, so that a late bounce can still be attributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTombstone {
    /// The tenant.
    pub tenant: TenantId,
    /// The message.
    pub uid: MessageUid,
    /// Its last status.
    pub status: MessageStatus,
    /// Digests of its recipients' lower-case addresses, under the key that [`ExpungeRequest`] gave.
    pub recipients: Vec<[u8; 32]>,
    /// When the tombstone itself is removed.
    pub expires_at: Time,
}
