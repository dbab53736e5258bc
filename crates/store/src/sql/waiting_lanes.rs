//! The lanes in which mail waits, found along the index of what waits.
//!
//! That index is led by the lane, and the ids of an account's lanes are neighbours in it ([`LaneRange`]). A
//! walk looks up the next lane behind each one that it finds, whatever waits there, so it costs by the lanes
//! with waiting mail and never by the lanes that were ever made ([ADR
//! 28](../../../../docs/adr/0028-lanes-in-order-of-accounts.md)).
//!
//! MySQL and MariaDB do not seek by a value of the row before. They read a short page of the index instead,
//! and go on behind the last lane in it.

use postway_domain::{LaneId, LaneRange};

use super::{SqlSession, SqlText, Value, multi_row::MultiRow, values};
use crate::{error::StoreError, record::AccountKey};

/// The most rows of one step of a walk. The statement names the number.
const WALK_ROWS: usize = 256;

/// Each look-up names the whole index in its order: PostgreSQL would take another index.
pub(crate) const WALK: SqlText = SqlText::or_mysql(
    "WITH RECURSIVE waiting (lane, number) AS (SELECT (SELECT m.lane FROM message m WHERE m.due_at IS NOT NULL \
     AND m.lane >= ? ORDER BY m.lane, m.due_at, m.uid LIMIT 1), 1 UNION ALL SELECT (SELECT m.lane FROM message m \
     WHERE m.due_at IS NOT NULL AND m.lane > w.lane ORDER BY m.lane, m.due_at, m.uid LIMIT 1), w.number + 1 \
     FROM waiting w WHERE w.lane < ? AND w.number < 256) SELECT lane FROM waiting WHERE lane <= ?",
    "SELECT m.due_lane FROM message m FORCE INDEX (message_due) WHERE m.due_lane >= ? AND m.due_lane <= ? \
     AND m.due_lane <= ? ORDER BY m.due_lane, m.due_at, m.uid LIMIT 256",
);
const _: () = assert!(WALK_ROWS == 256);

/// Which of some lanes are the account's: two accounts may share a range.
static OF_ACCOUNT: MultiRow =
    MultiRow::new("SELECT id FROM lane WHERE tenant = ? AND account = ? AND id IN (", 1, ")");

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![WALK, OF_ACCOUNT.sample().into()]
}

/// The lanes of a range in which mail waits, in the order of their ids; the words of each are still to be
/// checked.
pub(crate) async fn waiting_lanes(
    session: &mut dyn SqlSession,
    range: LaneRange,
) -> Result<Vec<LaneId>, StoreError> {
    waiting_lanes_up_to(session, range, usize::MAX).await
}

/// The first lanes of a range in which mail waits: at least `enough` of them, if there are as many.
pub(crate) async fn waiting_lanes_up_to(
    session: &mut dyn SqlSession,
    range: LaneRange,
    enough: usize,
) -> Result<Vec<LaneId>, StoreError> {
    let mut lanes: Vec<LaneId> = Vec::new();
    let (mut first, last) = (range.first, range.last);
    loop {
        let rows = session.rows(WALK, values![first.as_bytes(), last.as_bytes(), last.as_bytes()]).await?;
        for row in &rows {
            lanes.push(LaneId::from_bytes(row.id16(0)?));
        }
        lanes.dedup();
        let behind = lanes.last().filter(|_| rows.len() >= WALK_ROWS && lanes.len() < enough);
        match behind.and_then(|lane| lane.next()).filter(|next| *next <= last) {
            Some(next) => first = next,
            None => return Ok(lanes),
        }
    }
}

/// Whether mail of an account waits in the range of its lanes.
pub(crate) async fn has_waiting(
    session: &mut dyn SqlSession,
    key: &AccountKey,
    mut range: LaneRange,
) -> Result<bool, StoreError> {
    loop {
        let lanes = waiting_lanes_up_to(session, range, 1).await?;
        for (sql, run) in OF_ACCOUNT.runs(&lanes) {
            let ids = run.iter().map(|lane| Value::from(lane.as_bytes()));
            let words = values![key.tenant.as_str(), key.account.as_str()];
            if !session.rows(sql.into(), words.into_iter().chain(ids).collect()).await?.is_empty() {
                return Ok(true);
            }
        }
        match lanes.last().and_then(|lane| lane.next()).filter(|next| *next <= range.last) {
            Some(next) => range.first = next,
            None => return Ok(false),
        }
    }
}
