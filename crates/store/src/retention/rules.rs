//! What may be removed, and how long it is remembered. Pure: the same for every store.

use std::{collections::HashSet, time::Duration};

use postway_domain::{MessageStatus, MessageUid, Time};

use crate::{journal::JournalPage, record::ExpungeRequest};

/// The most messages, keys, tombstones or pages that one transaction removes.
pub(crate) const SLICE_MAX: u32 = 512;
/// The least share of a slice, so that a slice for many tenants does not take a row of each.
const SHARE_MIN: usize = 16;
/// How long ids and idempotency keys stay taken after their message was removed.
pub(crate) const KEY_LASTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a tombstone can attribute a late bounce.
pub(crate) const TRACE_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The share of the next tenant of a slice that has this much room left, for as many tenants.
pub(crate) fn share_of_slice(room: usize, tenants: usize) -> usize {
    (room / tenants.max(1)).max(SHARE_MIN).min(room)
}

/// The state of a message's notifications. The default is that of a message without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageDeliveryState {
    /// Whether a notification is still open.
    pub is_open: bool,
    /// Whether a notification is dead.
    pub is_dead: bool,
    /// When the last notification was settled.
    pub settled_at: Option<Time>,
}

/// A tenant's messages with events that are only in the journal: they are not fanned out yet, so their
/// subscribers are not known. Messages are recognised by their ids and not by times, because a change that
/// could not be written for a while is older than its page.
#[derive(Clone, Debug, Default)]
pub(crate) struct FanOutBacklog {
    uids: HashSet<MessageUid>,
    /// Whether there are more pages than were read: then any message may be in the backlog.
    is_cut: bool,
}

impl FanOutBacklog {
    pub(crate) fn add(&mut self, page: &JournalPage) {
        self.uids.extend(page.entries.iter().map(|entry| entry.uid));
    }

    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether this message may be in the backlog.
    pub(crate) fn holds(&self, uid: MessageUid) -> bool {
        self.is_cut || self.uids.contains(&uid)
    }

    /// The number of messages in the backlog, as far as it was read.
    pub(crate) fn len(&self) -> usize {
        self.uids.len()
    }
}

impl MessageDeliveryState {
    /// Whether a message is over: its status is final and no notification is open. A message in the
    /// [`FanOutBacklog`] is not over.
    pub(crate) fn is_over(self, status: MessageStatus) -> bool {
        status.is_final() && !self.is_open
    }
}

impl ExpungeRequest {
    /// Whether this message may be removed, unless it is in the [`FanOutBacklog`]: it is over, and the time
    /// since its last notification was settled has passed. After a dead notification this is the time in
    /// which it can be sent again on request.
    pub(crate) fn takes(
        &self,
        status: MessageStatus,
        updated_at: Time,
        delivery: MessageDeliveryState,
    ) -> bool {
        let before = if delivery.is_dead { self.unreported_before } else { self.reported_before };
        let was_long_ago = updated_at < before && delivery.settled_at.is_none_or(|at| at < before);
        delivery.is_over(status) && was_long_ago
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::{EventKind, LaneId};

    use super::*;
    use crate::journal::EventDetail;

    fn expunge(reported_before: i64, unreported_before: i64) -> ExpungeRequest {
        ExpungeRequest {
            tenant: "acme".parse().unwrap(),
            reported_before: Time::from_millis(reported_before),
            unreported_before: Time::from_millis(unreported_before),
            now: Time::from_millis(1_000_000),
            recipient_key: [0; 32],
            limit: 1,
        }
    }

    #[test]
    fn tenants_share_a_slice_and_what_is_left_over_goes_to_the_next() {
        assert_eq!(share_of_slice(500, 1), 500);
        assert_eq!((share_of_slice(500, 5), share_of_slice(490, 4)), (100, 122));
        assert_eq!((share_of_slice(500, 5_000), share_of_slice(9, 5_000)), (SHARE_MIN, 9));
    }

    #[test]
    fn only_what_has_ended_goes() {
        for &status in MessageStatus::ALL {
            let takes =
                expunge(100, 100).takes(status, Time::from_millis(50), MessageDeliveryState::default());
            assert_eq!(takes, status.is_final(), "{status:?}");
        }
    }

    #[test]
    fn time_counts_from_the_last_that_was_told() {
        let delivery = |settled_at| MessageDeliveryState {
            settled_at: Some(Time::from_millis(settled_at)),
            ..MessageDeliveryState::default()
        };
        let takes = |updated_at, delivery| {
            expunge(100, 10).takes(MessageStatus::Sent, Time::from_millis(updated_at), delivery)
        };
        assert!(takes(99, MessageDeliveryState::default()) && !takes(100, MessageDeliveryState::default()));
        assert!(takes(50, delivery(99)) && !takes(50, delivery(100)));
        let dead = MessageDeliveryState {
            is_dead: true,
            settled_at: Some(Time::from_millis(9)),
            ..MessageDeliveryState::default()
        };
        assert!(takes(9, dead) && !takes(10, dead));
        let died_later = MessageDeliveryState { settled_at: Some(Time::from_millis(10)), ..dead };
        assert!(!takes(9, died_later), "it can be sent again for as long after it died");
        assert!(!takes(9, MessageDeliveryState { is_open: true, ..dead }));
    }

    #[test]
    fn a_backlog_that_was_not_read_whole_may_hold_any_message() {
        let (known, other) = (MessageUid::from_bytes([1; 16]), MessageUid::from_bytes([2; 16]));
        let mut page = JournalPage::new(Time::from_millis(0));
        page.add(page.at, LaneId::from_bytes([0; 16]), known, 1, EventKind::Sent, EventDetail::None);
        let mut backlog = FanOutBacklog::default();
        backlog.add(&page);
        assert!(backlog.holds(known) && !backlog.holds(other));
        backlog.cut();
        assert!(backlog.holds(other));
    }
}
