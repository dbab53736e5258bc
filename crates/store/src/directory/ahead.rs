//! Ready mail that is due only later, because the clock was ahead when it became ready and has been set back since. It
//! waits for nothing else, so it is due now. Lane by lane through the index of due work, in bounded slices.

use postway_domain::{Status, Time};

use crate::{
    error::StoreError,
    record::Changed,
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
#[cfg(test)]
pub(crate) const STATEMENTS: &[Sql] = &[PULL];

/// Makes so many of them due now. [`Changed::Already`] where there are none.
pub(super) async fn pull(session: &mut dyn Session, now: Time, limit: u32) -> Result<Changed, StoreError> {
    let now = now.as_millis();
    let pulled = session.execute(PULL, values![now, now, now, i64::from(limit)]).await?;
    Ok(if pulled > 0 { Changed::Done } else { Changed::Already })
}

// The statement above writes this code as a literal.
const _: () = assert!(Status::Ready as i64 == 2);
