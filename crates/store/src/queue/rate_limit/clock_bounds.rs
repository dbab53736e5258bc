//! The times of day that a debit may carry.
//!
//! Use is counted by the time that all nodes agree on. When that time is set, the use moves with it, but a
//! node that has not heard of it yet still goes by the time before: what it debited would count in windows
//! that nobody looks at, and it would look at windows that nobody counts in. So whoever sets the time leaves
//! here which times are over, in the same transaction, and a debit by such a time is refused. The node hears
//! the new time with its next heartbeats.
//!
//! The bounds are rows of the table of use, under a tenant and an account without a name.

use std::time::Duration;

use postway_domain::Time;

use crate::{
    error::StoreError,
    sql::{Row, SqlSession, SqlText, values},
};

/// Clocks of nodes that agree are apart by less.
const APART_MS: i64 = 2_000;
/// A node that runs has heard within this time that the clock was set. It is far longer than a node may send
/// without a heartbeat that lands.
const HEARD_WITHIN: Duration = Duration::from_secs(120);

/// The span code of the row whose bucket is the earliest time, in milliseconds.
const SINCE: i64 = 4;
/// The span code of the row whose bucket is the time that was left, and whose use is by how much.
const LEFT: i64 = 5;

const READ: SqlText =
    SqlText::same("SELECT span, used, bucket FROM spent WHERE tenant = '' AND account = '' AND span > 3");
const DROP: SqlText = SqlText::same("DELETE FROM spent WHERE tenant = '' AND account = ''");
const WRITE: SqlText =
    SqlText::same("INSERT INTO spent (tenant, account, span, bucket, used) VALUES ('', '', ?, ?, ?)");
/// Waits for every transaction that is debiting. Those that begin later wait for this one, and then read the
/// new bounds.
const HOLD_ALL: SqlText = SqlText::same("UPDATE spent SET used = used + 1 WHERE span = 0");
#[cfg(test)]
pub(super) const STATEMENTS: &[SqlText] = &[READ, DROP, WRITE, HOLD_ALL];

/// Which times are over although a clock may still show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockBounds {
    /// The clock was set forward: it has shown at least this since, in milliseconds.
    since_ms: Option<i64>,
    /// The clock was set back from this time, by so many milliseconds.
    left_ms: Option<(i64, i64)>,
}

impl ClockBounds {
    /// Whether a clock that shows this time may be right.
    pub fn allows(self, now: Time) -> bool {
        let now_ms = now.as_millis();
        let is_before = self.since_ms.is_some_and(|since_ms| now_ms < since_ms);
        let is_left =
            |(left_ms, _): (i64, i64)| now_ms >= left_ms - APART_MS && now_ms < left_ms + heard_within_ms();
        !is_before && !self.left_ms.is_some_and(is_left)
    }

    /// The bounds once the clock is set forward by `by_ms`.
    pub fn set_forward(self, now: Time, by_ms: i64) -> Self {
        let since_ms = now.as_millis().saturating_add(by_ms) - APART_MS;
        Self { since_ms: Some(self.since_ms.map_or(since_ms, |before| before.max(since_ms))), left_ms: None }
    }

    /// The bounds when the clock shows `now` after it was set back by `by_ms`, or by whatever the bounds say.
    /// A small step has none: the right clock is there again before a wrong one is sure to have heard of it.
    pub fn set_back(self, now: Time, by_ms: i64) -> Self {
        let now_ms = now.as_millis();
        let ahead_ms = self.since_ms.map_or(0, |since_ms| since_ms - now_ms);
        let by_ms = by_ms.max(ahead_ms);
        let left = (by_ms >= 2 * heard_within_ms()).then_some((now_ms + by_ms, by_ms));
        let before = self.left_ms.filter(|(left_ms, _)| now_ms < left_ms - APART_MS);
        Self { since_ms: self.since_ms.filter(|since_ms| *since_ms <= now_ms), left_ms: left.or(before) }
    }

    /// The bounds without what no clock shows any more.
    pub fn at(self, now: Time) -> Self {
        let now_ms = now.as_millis();
        let is_over = |(left_ms, by_ms): &(i64, i64)| {
            let is_heard = now_ms >= left_ms - by_ms + heard_within_ms() && now_ms < left_ms - APART_MS;
            is_heard || now_ms >= left_ms + heard_within_ms()
        };
        Self { left_ms: self.left_ms.filter(|left| !is_over(left)), ..self }
    }

    /// Notes a row of the bounds; false if it is none.
    pub fn note(&mut self, row: &Row) -> Result<bool, StoreError> {
        match row.int(0)? {
            SINCE => self.since_ms = Some(row.int(2)?),
            LEFT => self.left_ms = Some((row.int(2)?, row.int(1)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the bounds.
    pub async fn read(session: &mut dyn SqlSession) -> Result<Self, StoreError> {
        let mut bounds = Self::default();
        for row in session.rows(READ, Vec::new()).await? {
            bounds.note(&row)?;
        }
        Ok(bounds)
    }

    /// Stores the bounds instead of others.
    pub async fn write(self, session: &mut dyn SqlSession) -> Result<(), StoreError> {
        session.execute(DROP, Vec::new()).await?;
        if let Some(since_ms) = self.since_ms {
            session.execute(WRITE, values![SINCE, since_ms, 0i64]).await?;
        }
        if let Some((left_ms, by_ms)) = self.left_ms {
            session.execute(WRITE, values![LEFT, left_ms, by_ms]).await?;
        }
        Ok(())
    }
}

fn heard_within_ms() -> i64 {
    i64::try_from(HEARD_WITHIN.as_millis()).unwrap_or(i64::MAX)
}

/// Keeps every account from being debited until the transaction ends.
pub(super) async fn hold_all(session: &mut dyn SqlSession) -> Result<(), StoreError> {
    session.execute(HOLD_ALL, Vec::new()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_clock_that_was_not_set_forward_with_the_others_is_refused() {
        let bounds = ClockBounds::default().set_forward(at(0), HOUR_MS);
        assert!(!bounds.allows(at(0)) && !bounds.allows(at(10_000)));
        assert!(bounds.allows(at(HOUR_MS - 1_500)), "clocks that agree are not quite alike");
        assert!(bounds.allows(at(2 * HOUR_MS)));
        assert_eq!(bounds.set_forward(at(5_000), 3_000), bounds, "the latest counts");
    }

    #[test]
    fn a_clock_that_was_not_set_back_with_the_others_is_refused_as_long_as_it_may_not_know() {
        let bounds = ClockBounds::default().set_back(at(0), HOUR_MS);
        assert!(bounds.allows(at(0)) && bounds.allows(at(600_000)));
        assert!(!bounds.allows(at(HOUR_MS - 1_500)) && !bounds.allows(at(HOUR_MS + 60_000)));
        assert!(bounds.allows(at(HOUR_MS + 120_000)), "nobody is that late");
        assert!(!bounds.at(at(60_000)).allows(at(HOUR_MS)), "somebody may not have heard");
        let heard = bounds.at(at(120_000));
        assert_eq!(heard, ClockBounds::default(), "and time comes there again");
        assert_eq!(ClockBounds::default().set_back(at(0), 90_000), ClockBounds::default());
        assert_eq!(bounds.set_forward(at(0), HOUR_MS).left_ms, None, "it is set to that time again");
    }

    #[test]
    fn a_clock_that_is_set_back_by_whoever_has_the_word_is_refused_nothing() {
        let ahead = ClockBounds::default().set_forward(at(0), HOUR_MS);
        let back = ahead.set_back(at(10_000), 0);
        assert!(back.allows(at(10_000)), "{back:?}");
        assert!(!back.allows(at(HOUR_MS)), "that of the others is over");
    }
}
