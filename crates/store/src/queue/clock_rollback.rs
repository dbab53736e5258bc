//! Mail that is due too late because the clock was ahead when its time was set, and has been set back since.
//! Lane by lane through the index of due work, in bounded slices.
//!
//! `ready` mail waits for nothing else, so right after a clock step all of it is due now. Mail that waits for
//! a retry or a resend is recognised by its time: none is due later than its account's longest delay from
//! now. The same applies to mail that waits to be prepared.

use postway_domain::{LaneRange, MessageStatus, Time, message::ScheduleReason};

use crate::{
    error::StoreError,
    record::{AccountKey, ChangeResult},
    sql::{
        SqlSession, SqlText, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
        waiting_lanes::waiting_lanes,
    },
};

/// Ready mail of some lanes that is due later than now.
macro_rules! pull {
    ($from:literal) => {
        MultiRow::new(
            concat!(
                "UPDATE message SET due_at = ? WHERE status = 2 AND due_at > ? AND uid IN (SELECT uid FROM (SELECT m.uid FROM ",
                $from,
                " AND m.due_at > ? AND m.status = 2 AND l.id IN ("
            ),
            1,
            ") LIMIT ?) AS ahead)",
        )
    };
}
static PULL: MultiRowSql = MultiRowSql {
    sqlite: pull!("lane l CROSS JOIN message m WHERE m.lane = l.id"),
    postgres: pull!("lane l CROSS JOIN message m WHERE m.lane = l.id"),
    mysql: pull!("lane l STRAIGHT_JOIN message m FORCE INDEX (message_due) ON m.due_lane = l.id WHERE TRUE"),
};
/// Mail of some lanes that waits for its next attempt until later than it can have to.
macro_rules! pull_beyond {
    ($from:literal) => {
        MultiRow::new(
            concat!(
                "UPDATE message SET due_at = ? WHERE due_at > ? AND uid IN (SELECT uid FROM (SELECT m.uid FROM ",
                $from,
                " AND l.tenant = ? AND l.account = ? AND m.due_at > ? \
                 AND (m.status = 2 OR m.status = 8 OR (m.status = 3 AND m.wait = 2)) AND l.id IN ("
            ),
            1,
            ") LIMIT ?) AS ahead)",
        )
    };
}
static PULL_BEYOND: MultiRowSql = MultiRowSql {
    sqlite: pull_beyond!("lane l CROSS JOIN message m WHERE m.lane = l.id"),
    postgres: pull_beyond!("lane l CROSS JOIN message m WHERE m.lane = l.id"),
    mysql: pull_beyond!(
        "lane l STRAIGHT_JOIN message m FORCE INDEX (message_due) ON m.due_lane = l.id WHERE TRUE"
    ),
};
/// The rows that wait for a time set by a clock that was ahead: messages not tried yet, or whose fetch was
/// deferred. Those of refused messages are never due, and stay so.
macro_rules! pull_preparation {
    ($from:literal) => {
        concat!(
            "UPDATE preparation SET due_at = ? WHERE due_at < 253402300799999 AND uid IN (SELECT uid FROM (SELECT p.uid FROM ",
            $from,
            " WHERE p.due_at > ? AND p.due_at < 253402300799999 ",
            "AND (m.status = 0 OR (m.status = 3 AND m.wait = 3 AND p.due_at > ?)) LIMIT ?) AS ahead)"
        )
    };
}
const PULL_PREPARATION: SqlText = SqlText::or_mysql(
    pull_preparation!("tenant t JOIN preparation p ON p.tenant = t.id JOIN message m ON m.uid = p.uid"),
    pull_preparation!(
        "tenant t STRAIGHT_JOIN preparation p FORCE INDEX (preparation_due) ON p.tenant = t.id \
         STRAIGHT_JOIN message m FORCE INDEX (PRIMARY) ON m.uid = p.uid"
    ),
);
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![PULL.sample(), PULL_BEYOND.sample(), PULL_PREPARATION]
}

/// Makes at most `limit` ready messages due now. [`ChangeResult::Already`] if there are none.
pub(crate) async fn pull(
    session: &mut dyn SqlSession,
    now: Time,
    limit: u32,
) -> Result<ChangeResult, StoreError> {
    let lanes = waiting_lanes(session, LaneRange::ALL).await?;
    let (mut left, most) = (u64::from(limit), u64::from(limit));
    for (sql, run) in PULL.runs(&lanes) {
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes())).collect();
        let values = [values![now, now, now], ids, values![left as i64]].concat();
        left -= session.execute(sql, values).await?.min(left);
        if left == 0 {
            break;
        }
    }
    Ok(if left < most { ChangeResult::Done } else { ChangeResult::Already })
}

/// Makes at most `limit` messages of each account due now whose next attempt is later than the account's
/// latest time.
pub(crate) async fn pull_beyond(
    session: &mut dyn SqlSession,
    latest: &[(AccountKey, Time)],
    now: Time,
    limit: u32,
) -> Result<ChangeResult, StoreError> {
    let mut pulled = 0;
    for (key, latest) in latest {
        let (tenant, account) = (key.tenant.as_str(), key.account.as_str());
        let lanes = waiting_lanes(session, LaneRange::of_account(&key.tenant, &key.account)).await?;
        let mut left = u64::from(limit);
        for (sql, run) in PULL_BEYOND.runs(&lanes) {
            let ids = run.iter().map(|lane| Value::from(lane.as_bytes())).collect();
            let values =
                [values![now, *latest, tenant, account, *latest], ids, values![left as i64]].concat();
            let some = session.execute(sql, values).await?.min(left);
            (pulled, left) = (pulled + some, left - some);
            if left == 0 {
                break;
            }
        }
    }
    Ok(if pulled > 0 { ChangeResult::Done } else { ChangeResult::Already })
}

/// Makes up to `limit` messages due for preparation now whose time was set by a clock that was ahead.
pub(crate) async fn pull_preparation(
    session: &mut dyn SqlSession,
    now: Time,
    latest: Time,
    limit: u32,
) -> Result<ChangeResult, StoreError> {
    let values = values![now, now, latest, i64::from(limit)];
    let pulled = session.execute(PULL_PREPARATION, values).await?;
    Ok(if pulled > 0 { ChangeResult::Done } else { ChangeResult::Already })
}

// The statements above write these codes as literals.
const _: () = assert!(MessageStatus::Ready as i64 == 2 && MessageStatus::Scheduled as i64 == 3);
const _: () = assert!(MessageStatus::InDoubt as i64 == 8 && ScheduleReason::Retry as i64 == 2);
const _: () = assert!(MessageStatus::Accepted as i64 == 0 && ScheduleReason::Fetch as i64 == 3);
