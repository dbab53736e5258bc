//! What may go, and for how long it is remembered. Pure: the same for every store.

use std::time::Duration;

use postway_domain::{Status, Time};

use crate::record::Expunge;

/// The most messages, keys, traces or pages that one transaction removes.
pub(crate) const SLICE_MAX: u32 = 500;
/// How long ids and idempotency keys are taken after their message is gone.
pub(crate) const KEY_LASTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a late bounce is still known.
pub(crate) const TRACE_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A page of the journal has the time of its latest entry, and a change that could not be written for a while has an earlier
/// one. They do not differ by more than this.
const JOURNAL_STRAYS_MAX: Duration = Duration::from_secs(60 * 60);

/// How far telling of a message has come. The default is one that nobody asked to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Somebody is still to be told.
    pub is_open: bool,
    /// Somebody could not be told.
    pub is_dead: bool,
    /// When the last of it was settled.
    pub settled_at: Option<Time>,
}

/// What happened before this is not only in the journal: `pending_since` is the oldest page of which no notifications were
/// made.
pub(crate) fn told_before(pending_since: Option<Time>) -> Time {
    pending_since.map_or(Time::from_millis(i64::MAX), |at| at.minus(JOURNAL_STRAYS_MAX))
}

impl Told {
    /// Whether a message has come to its end: nothing happens to it by itself, and nobody is still to hear of it.
    pub(crate) fn is_over(self, status: Status, updated_at: Time, told_before: Time) -> bool {
        status.is_final() && !self.is_open && updated_at < told_before
    }
}

impl Expunge {
    /// The same, but sparing what nobody could be told of yet.
    pub(crate) fn sparing(&self, pending_since: Option<Time>) -> Self {
        let reported_before = self.reported_before.min(told_before(pending_since));
        Self { reported_before, ..self.clone() }
    }

    /// Whether this message may go: it has ended, and the time since it was told, or since it ended where telling
    /// failed, is over.
    pub(crate) fn takes(&self, status: Status, updated_at: Time, told: Told) -> bool {
        let was_long_ago = if told.is_dead {
            updated_at < self.unreported_before
        } else {
            told.settled_at.is_none_or(|at| at < self.reported_before)
        };
        told.is_over(status, updated_at, self.reported_before) && was_long_ago
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expunge(reported_before: i64, unreported_before: i64) -> Expunge {
        Expunge {
            tenant: "acme".parse().unwrap(),
            reported_before: Time::from_millis(reported_before),
            unreported_before: Time::from_millis(unreported_before),
            now: Time::from_millis(1_000_000),
            recipient_key: [0; 32],
            limit: 1,
        }
    }

    #[test]
    fn only_what_has_ended_goes() {
        for &status in Status::ALL {
            let takes = expunge(100, 100).takes(status, Time::from_millis(50), Told::default());
            assert_eq!(takes, status.is_final(), "{status:?}");
        }
    }

    #[test]
    fn time_counts_from_the_last_that_was_told() {
        let told = |settled_at| Told { settled_at: Some(Time::from_millis(settled_at)), ..Told::default() };
        let takes =
            |updated_at, told| expunge(100, 10).takes(Status::Sent, Time::from_millis(updated_at), told);
        assert!(takes(99, Told::default()) && !takes(100, Told::default()));
        assert!(takes(50, told(99)) && !takes(50, told(100)));
        let dead = Told { is_dead: true, settled_at: Some(Time::from_millis(99)), ..Told::default() };
        assert!(takes(9, dead) && !takes(10, dead));
        assert!(!takes(9, Told { is_open: true, ..dead }));
    }

    #[test]
    fn what_waits_in_the_journal_is_spared() {
        let hour_ms = 3_600_000;
        let before = |pending: Option<i64>| {
            let spared = expunge(hour_ms, 10).sparing(pending.map(Time::from_millis));
            spared.reported_before.as_millis()
        };
        assert_eq!(before(None), hour_ms);
        assert_eq!(before(Some(2 * hour_ms - 1)), hour_ms - 1);
        assert_eq!(before(Some(3 * hour_ms)), hour_ms);
    }
}
