//! Mail that is due only later because the clock was ahead when its time was set, and has been set back since. Lane by lane
//! through the index of due work, in bounded slices.
//!
//! Ready mail waits for nothing else, so right after a step all of it is due now. What waits for a retry or a resend is known by
//! its time: none is due later than its account's longest delay from now. So is what waits to be prepared.

use postway_domain::{Status, Time, message::Wait};

use crate::{
    error::StoreError,
    record::{AccountKey, Changed},
    sql::{Session, Sql, values},
};

const PULL: Sql = Sql::or_mysql(
    "UPDATE message SET due_at = ? WHERE status = 2 AND due_at > ? AND uid IN (SELECT uid FROM (\
     SELECT m.uid FROM lane l CROSS JOIN message m WHERE m.lane = l.id AND m.due_at > ? AND m.status = 2 LIMIT ?) \
     AS ahead)",
    "UPDATE message SET due_at = ? WHERE status = 2 AND due_at > ? AND uid IN (SELECT uid FROM (\
     SELECT m.uid FROM lane l STRAIGHT_JOIN message m FORCE INDEX (message_due) ON m.due_lane = l.id \
     WHERE m.due_at > ? AND m.status = 2 LIMIT ?) AS ahead)",
);
const PULL_BEYOND: Sql = Sql::or_mysql(
    "UPDATE message SET due_at = ? WHERE due_at > ? AND uid IN (SELECT uid FROM (\
     SELECT m.uid FROM lane l CROSS JOIN message m WHERE l.tenant = ? AND l.account = ? AND m.lane = l.id \
     AND m.due_at > ? AND (m.status = 2 OR m.status = 8 OR (m.status = 3 AND m.wait = 2)) LIMIT ?) AS ahead)",
    "UPDATE message SET due_at = ? WHERE due_at > ? AND uid IN (SELECT uid FROM (\
     SELECT m.uid FROM lane l STRAIGHT_JOIN message m FORCE INDEX (message_due) ON m.due_lane = l.id \
     WHERE l.tenant = ? AND l.account = ? \
     AND m.due_at > ? AND (m.status = 2 OR m.status = 8 OR (m.status = 3 AND m.wait = 2)) LIMIT ?) AS ahead)",
);
/// Which rows wait for a time that the clock had: of a message that was not tried yet, or of one whose fetch was put off. Those of
/// refused messages are never due, and stay so.
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
const PULL_PREPARATION: Sql = Sql::or_mysql(
    pull_preparation!("tenant t JOIN preparation p ON p.tenant = t.id JOIN message m ON m.uid = p.uid"),
    pull_preparation!(
        "tenant t STRAIGHT_JOIN preparation p FORCE INDEX (preparation_due) ON p.tenant = t.id \
         STRAIGHT_JOIN message m FORCE INDEX (PRIMARY) ON m.uid = p.uid"
    ),
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[Sql] = &[PULL, PULL_BEYOND, PULL_PREPARATION];

/// Makes so many ready messages due now. [`Changed::Already`] where there are none.
pub(crate) async fn pull(session: &mut dyn Session, now: Time, limit: u32) -> Result<Changed, StoreError> {
    let now = now.as_millis();
    let pulled = session.execute(PULL, values![now, now, now, i64::from(limit)]).await?;
    Ok(if pulled > 0 { Changed::Done } else { Changed::Already })
}

/// Makes so many messages of each account due now whose next attempt is later than its latest time.
pub(crate) async fn pull_beyond(
    session: &mut dyn Session,
    latest: &[(AccountKey, Time)],
    now: Time,
    limit: u32,
) -> Result<Changed, StoreError> {
    let mut pulled = 0;
    for (key, latest) in latest {
        let (now, latest) = (now.as_millis(), latest.as_millis());
        let (tenant, account) = (key.tenant.as_str(), key.account.as_str());
        let values = values![now, latest, tenant, account, latest, i64::from(limit)];
        pulled += session.execute(PULL_BEYOND, values).await?;
    }
    Ok(if pulled > 0 { Changed::Done } else { Changed::Already })
}

/// Makes so many messages due to be prepared now that a clock that was ahead has wait.
pub(crate) async fn pull_preparation(
    session: &mut dyn Session,
    now: Time,
    latest: Time,
    limit: u32,
) -> Result<Changed, StoreError> {
    let values = values![now, now, latest, i64::from(limit)];
    let pulled = session.execute(PULL_PREPARATION, values).await?;
    Ok(if pulled > 0 { Changed::Done } else { Changed::Already })
}

// The statements above write these codes as literals.
const _: () = assert!(Status::Ready as i64 == 2 && Status::Scheduled as i64 == 3);
const _: () = assert!(Status::InDoubt as i64 == 8 && Wait::Retry as i64 == 2);
const _: () = assert!(Status::Accepted as i64 == 0 && Wait::Fetch as i64 == 3);
