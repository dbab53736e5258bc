//! Reads for housekeeping: what is stalled or overdue.

use postway_domain::{Incarnation, MessageUid, Time};
use sqlx::{MySql, MySqlPool, QueryBuilder, Row, mysql::MySqlRow};

use super::{bytes16, failed, on_doubt, state, time};
use crate::{
    error::StoreError,
    record::{AccountKey, StalledMessage},
    sql::decode::{self, parsed},
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

fn read_stalled(row: &MySqlRow) -> Result<StalledMessage, StoreError> {
    Ok(StalledMessage {
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
) -> Result<Vec<StalledMessage>, StoreError> {
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

pub(super) async fn overdue(
    pool: &MySqlPool,
    now: Time,
    limit: u32,
) -> Result<Vec<StalledMessage>, StoreError> {
    let query = sqlx::query(OVERDUE).bind(now.as_millis()).bind(i64::from(limit));
    let rows = query.fetch_all(pool).await.map_err(failed)?;
    rows.iter().map(read_stalled).collect()
}
