//! Reads for the dispatcher: what is stalled, overdue or due.

use postway_domain::{Incarnation, LaneId, MessageUid, Time};
use sqlx::{MySql, MySqlPool, QueryBuilder, Row, mysql::MySqlRow};

use super::{bytes16, failed, on_doubt, state, time};
use crate::{
    admin::is_suspended,
    error::StoreError,
    record::{AccountKey, DueAccount, QueueState, Stalled},
    sql::{
        decode::{self, parsed},
        multi_row::Multi,
    },
};

/// The columns that [`read_stalled`] takes.
macro_rules! stalled {
    ($index:literal, $rest:literal) => {
        concat!(
            "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, m.doubts, m.lost_leases, ",
            "m.on_doubt, m.expires_at, l.tenant, l.account, ",
            "EXISTS (SELECT 1 FROM recipient r WHERE r.uid = m.uid AND r.status = 3), m.lease_node, m.retries, ",
            "EXISTS (SELECT 1 FROM recipient r WHERE r.uid = m.uid AND r.status = 0), ",
            "EXISTS (SELECT 1 FROM recipient r WHERE r.uid = m.uid AND r.status = 1), ",
            "(SELECT c.sensitive FROM content c WHERE c.uid = m.uid) ",
            "FROM message m FORCE INDEX (",
            $index,
            ") STRAIGHT_JOIN lane l ON l.id = m.lane WHERE ",
            $rest
        )
    };
}

/// Goes on with the processes alive.
pub(super) const STALLED: &str =
    stalled!("message_status", "m.status IN (1, 4) AND (m.lease_until <= ? OR m.lease_node IS NULL OR NOT ");
pub(super) const OVERDUE: &str =
    stalled!("message_expiry", "m.waits_until <= ? ORDER BY m.waits_until LIMIT ?");
/// For every lane with waiting mail: when its first message is due.
pub(super) const QUEUE: &str = concat!(
    "SELECT id, tenant, account, due_at, version, weight FROM (\
     SELECT l.id, l.tenant, l.account, a.version, t.weight, (SELECT m.due_at FROM message m FORCE INDEX (message_due) \
     WHERE m.due_lane = l.id AND NOT (m.wait <=> 3) AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) \
     ORDER BY m.due_lane, m.due_at LIMIT 1) AS due_at FROM lane l JOIN account a ON a.tenant = l.tenant AND a.id = l.account \
     JOIN tenant t ON t.id = l.tenant WHERE NOT ",
    is_suspended!("l"),
    ") AS lanes WHERE due_at IS NOT NULL ORDER BY tenant, account",
);
/// The first message after now, of lanes that have others before: each lane by itself, so that the server starts there
/// and does not read through what is due.
pub(super) static LATER: Multi = Multi::of_pieces(
    "SELECT MIN(due_at) FROM (",
    "SELECT (SELECT m.due_at FROM message m FORCE INDEX (message_due) WHERE m.due_lane = ? AND m.due_at > ? \
     AND NOT (m.wait <=> 3) ORDER BY m.due_at LIMIT 1) AS due_at",
    " UNION ALL ",
    ") AS firsts",
);

fn read_stalled(row: &MySqlRow) -> Result<Stalled, StoreError> {
    Ok(Stalled {
        uid: MessageUid::from_bytes(bytes16(row, 0)?),
        state: state(row, 1)?,
        version: row.try_get(4).map_err(failed)?,
        attempt: row.try_get(5).map_err(failed)?,
        doubts: row.try_get(6).map_err(failed)?,
        lost_leases: row.try_get(7).map_err(failed)?,
        on_doubt: on_doubt(row, 8)?,
        expires_at: time(row, 9)?,
        key: AccountKey {
            tenant: parsed(row.try_get(10).map_err(failed)?)?,
            account: parsed(row.try_get(11).map_err(failed)?)?,
        },
        has_doubtful: row.try_get(12).map_err(failed)?,
        holder: decode::incarnation(row.try_get(13).map_err(failed)?)?,
        retries: row.try_get(14).map_err(failed)?,
        has_open: row.try_get(15).map_err(failed)?,
        has_sent: row.try_get(16).map_err(failed)?,
        sensitive: row.try_get::<i64, _>(17).map_err(failed)? != 0,
    })
}

pub(super) async fn stalled(
    pool: &MySqlPool,
    alive: &[Incarnation],
    now: Time,
    limit: u32,
) -> Result<Vec<Stalled>, StoreError> {
    // The text of the statement has a placeholder already; the builder adds the rest.
    let (before, after) = STALLED.split_once('?').unwrap_or((STALLED, ""));
    let mut query = QueryBuilder::<MySql>::new(before);
    query.push_bind(now.as_millis()).push(after);
    if alive.is_empty() {
        query.push("FALSE");
    } else {
        query.push("m.lease_node IN (");
        let mut list = query.separated(", ");
        for incarnation in alive {
            list.push_bind(incarnation.as_bytes().to_vec());
        }
        query.push(")");
    }
    query.push(") ORDER BY m.updated_at LIMIT ").push_bind(i64::from(limit));
    let rows = query.build().fetch_all(pool).await.map_err(failed)?;
    rows.iter().map(read_stalled).collect()
}

pub(super) async fn overdue(pool: &MySqlPool, now: Time, limit: u32) -> Result<Vec<Stalled>, StoreError> {
    let query = sqlx::query(OVERDUE).bind(now.as_millis()).bind(i64::from(limit));
    let rows = query.fetch_all(pool).await.map_err(failed)?;
    rows.iter().map(read_stalled).collect()
}

pub(super) async fn queue_state(pool: &MySqlPool, now: Time) -> Result<QueueState, StoreError> {
    let mut queue = QueueState::default();
    let mut due_lanes = Vec::new();
    let sooner = |queue: &mut QueueState, later: Time| {
        queue.next_due_at = Some(queue.next_due_at.map_or(later, |earlier| earlier.min(later)));
    };
    for row in sqlx::query(QUEUE).bind(now.as_millis()).fetch_all(pool).await.map_err(failed)? {
        match time(&row, 3)? {
            Some(later) if later > now => sooner(&mut queue, later),
            _ => {
                due_lanes.push(LaneId::from_bytes(bytes16(&row, 0)?));
                let key = AccountKey {
                    tenant: parsed(row.try_get(1).map_err(failed)?)?,
                    account: parsed(row.try_get(2).map_err(failed)?)?,
                };
                if queue.due.last().is_none_or(|last| last.key != key) {
                    let (version, weight) =
                        (row.try_get(4).map_err(failed)?, row.try_get(5).map_err(failed)?);
                    queue.due.push(DueAccount { key, version, weight: decode::weight(weight) });
                }
            }
        }
    }
    for (sql, run) in LATER.runs(&due_lanes) {
        let mut query = sqlx::query(sql);
        for lane in run {
            query = query.bind(lane.as_bytes().as_slice()).bind(now.as_millis());
        }
        let row = query.fetch_one(pool).await.map_err(failed)?;
        if let Some(later) = time(&row, 0)? {
            sooner(&mut queue, later);
        }
    }
    Ok(queue)
}
