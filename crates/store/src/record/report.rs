//! Telling what became of messages: notifications, the feed, statistics, and the end of what is told.

use postway_domain::{AccountId, Event, EventKind, MessageUid, Status, TenantId, Time, id::SubscriberId};

use super::claim::Lease;

/// A place in a tenant's feed: a page of the journal in the order of their commits, and an entry of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition {
    /// The page.
    pub page: i64,
    /// The entry, from 0.
    pub entry: u32,
}

/// Something that happened to a message, at its place in the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedEvent {
    /// Its place.
    pub position: FeedPosition,
    /// The message.
    pub uid: MessageUid,
    /// What happened.
    pub kind: EventKind,
    /// Whether a scheduled message was deferred by a failure.
    pub deferred: bool,
    /// The entry of its history; `None` where the message is gone.
    pub event: Option<Event>,
}

/// A notification: an event, and who is told of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationKey {
    /// Whose message.
    pub tenant: TenantId,
    /// Who is told.
    pub subscriber: SubscriberId,
    /// The message.
    pub uid: MessageUid,
    /// The event's place in the message's history.
    pub seq: i64,
}

/// How a notification stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationState {
    /// Nobody has called yet.
    Pending = 0,
    /// Somebody is calling.
    Calling = 1,
    /// A call failed; there will be another.
    Waiting = 2,
    /// The subscriber has it.
    Acknowledged = 3,
    /// No call helped.
    Dead = 4,
}

impl NotificationState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Calling, Self::Waiting, Self::Acknowledged, Self::Dead];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Calling => "calling",
            Self::Waiting => "waiting",
            Self::Acknowledged => "acknowledged",
            Self::Dead => "dead",
        }
    }

    /// As a store keeps it.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// From a store.
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
    /// Whose.
    pub tenant: TenantId,
    /// Who.
    pub subscriber: SubscriberId,
}

/// What waits to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportState {
    /// Who has notifications due now: active, and not asked to be left alone.
    pub due: Vec<DueSubscriber>,
    /// When the next of the rest is due.
    pub next_due_at: Option<Time>,
}

/// Asks for notifications to send.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// The lease to write.
    pub lease: Lease,
    /// Now.
    pub now: Time,
    /// How many of whom.
    pub wants: Vec<(DueSubscriber, u32)>,
}

/// A notification leased to the caller. Of one message only the lowest that is not settled is given out.
#[derive(Clone, Debug)]
pub struct ToNotify {
    /// Which.
    pub key: NotificationKey,
    /// What happened; `None` where the message is gone.
    pub event: Option<Event>,
    /// Whether a scheduled message was deferred by a failure.
    pub deferred: bool,
    /// Calls so far.
    pub tries: i64,
    /// When it was made.
    pub created_at: Time,
}

/// A call that is about to be made, and that the message's history is to tell of (`notifying`).
#[derive(Clone, Debug)]
pub struct BegunCall {
    /// Which.
    pub key: NotificationKey,
    /// The claim's token; what another has claimed since is not called.
    pub token: postway_domain::LeaseToken,
    /// Now.
    pub at: Time,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Notified {
    /// Which.
    pub key: NotificationKey,
    /// The claim's token; what another has claimed since is not written.
    pub token: postway_domain::LeaseToken,
    /// Now.
    pub at: Time,
    /// What it becomes: waiting, acknowledged, dead, or pending where it was given back without a call.
    pub state: NotificationState,
    /// When it is due next, if it waits or goes back.
    pub due_at: Option<Time>,
    /// The call, unless there was none.
    pub call: Option<Call>,
    /// Whether the message's history tells that it was taken (`notified`).
    pub tells_history: bool,
}

/// A call as the delivery log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub at: Time,
    /// How long it took.
    pub latency_ms: i64,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// What was sent, shortened.
    pub request: String,
    /// What was answered, shortened, or what went wrong.
    pub answer: String,
}

/// A notification as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationView {
    /// Which.
    pub key: NotificationKey,
    /// Of what.
    pub kind: EventKind,
    /// Whether a scheduled message was deferred by a failure.
    pub deferred: bool,
    /// How it stands.
    pub state: NotificationState,
    /// Calls so far.
    pub tries: i64,
    /// When it is due next.
    pub due_at: Option<Time>,
    /// When it was made.
    pub created_at: Time,
    /// When it was settled.
    pub settled_at: Option<Time>,
    /// Its latest call.
    pub last_call: Option<Call>,
}

/// A page of what a subscriber was told, and is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryPage {
    /// Those of the newest messages first.
    pub told: Vec<NotificationView>,
    /// Before which message and event the next page begins, where there may be one. Only so many are looked at for a page, so one
    /// with fewer than were asked for, or none, may have a next.
    pub next: Option<(MessageUid, i64)>,
}

impl DeliveryPage {
    /// So many of what was found; `looked_until` is where to go on if that was not more.
    pub(crate) fn of(
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

/// Which settled notifications of a subscriber are to be told again: one page of them.
#[derive(Clone, Debug)]
pub struct ResendRequest {
    /// Whose.
    pub who: DueSubscriber,
    /// Those that were made at this time or later.
    pub since: Time,
    /// Those that were made before this.
    pub until: Time,
    /// Only the dead; else those that were acknowledged as well.
    pub only_dead: bool,
    /// Behind this message and event: where the page before ended.
    pub after: Option<(MessageUid, i64)>,
    /// Now: when they are due.
    pub now: Time,
    /// At most so many.
    pub limit: u32,
}

/// What a page of a [`ResendRequest`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResendPage {
    /// How many are due again.
    pub resent: u32,
    /// Behind which message and event the next page begins, where there may be one. Only so many are looked at for a page,
    /// so one that resent nothing may have a next.
    pub next: Option<(MessageUid, i64)>,
}

/// Which messages retention may remove.
#[derive(Clone, Debug)]
pub struct Expunge {
    /// Whose.
    pub tenant: TenantId,
    /// Those that ended and were reported before this.
    pub reported_before: Time,
    /// Those whose reports died, if they ended before this.
    pub unreported_before: Time,
    /// Now: keys that remember them end a day from here, their traces thirty.
    pub now: Time,
    /// The key of the digests by which their recipients are still known.
    pub recipient_key: [u8; 32],
    /// At most so many.
    pub limit: u32,
}

/// What a page of a walk along the lanes came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneUpkeep {
    /// How many messages were moved, or how many lanes removed.
    pub done: u32,
    /// Whether the walk has come to its end; the next call begins again.
    pub is_last: bool,
}

/// What erasing an address did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Messages removed.
    pub removed: i64,
    /// Messages to others as well, in which the address and the bodies were removed.
    pub redacted: i64,
    /// Messages that are still on their way, and were left.
    pub waiting: i64,
}

/// What one account did in one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticsRow {
    /// The hour's beginning.
    pub hour: Time,
    /// Whose.
    pub tenant: TenantId,
    /// Which account.
    pub account: AccountId,
    /// What was counted.
    pub counts: Counts,
}

/// Counts of one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted.
    pub accepted: i64,
    /// Sent.
    pub sent: i64,
    /// Failed.
    pub failed: i64,
    /// Refused by a check.
    pub invalid: i64,
    /// Deferred by a transient failure.
    pub deferred: i64,
    /// Bounced.
    pub bounced: i64,
    /// Complained of.
    pub complained: i64,
    /// Not sent because of the suppression list.
    pub suppressed: i64,
    /// The time from acceptance to `sent`, in milliseconds, summed over `sent`.
    pub queue_ms: i64,
}

/// A trace of a message that is gone: a late bounce is still known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Whose.
    pub tenant: TenantId,
    /// The message.
    pub uid: MessageUid,
    /// What had become of it.
    pub status: Status,
    /// Digests of its recipients' addresses in lower case, under the key that [`Expunge`] gave.
    pub recipients: Vec<[u8; 32]>,
    /// When the trace ends.
    pub expires_at: Time,
}
