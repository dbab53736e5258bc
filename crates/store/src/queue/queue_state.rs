//! The poll: which accounts have work due now, and when the next message of the rest is due.
//!
//! It looks up two messages in each lane in which mail waits ([`crate::sql::waiting_lanes`]), and costs the
//! same however many wait there.

use postway_domain::{LaneId, LaneRange, Time};

use crate::{
    admin::is_suspended,
    error::StoreError,
    record::{AccountKey, DueAccount, QueueState},
    sql::{
        SqlSession, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        values,
        waiting_lanes::waiting_lanes,
    },
};

/// When the first message of each of these lanes is due that may go: of all that are not suspended.
macro_rules! heads {
    ($first:literal) => {
        MultiRow::new(
            concat!(
                "SELECT l.id, l.tenant, l.account, a.version, t.weight, (SELECT m.due_at FROM message m ",
                $first,
                " LIMIT 1) FROM lane l JOIN account a ON a.tenant = l.tenant AND a.id = l.account \
                 JOIN tenant t ON t.id = l.tenant WHERE NOT ",
                is_suspended!("l"),
                " AND l.id IN ("
            ),
            1,
            ")",
        )
    };
}
macro_rules! heads_here {
    () => {
        heads!(
            "WHERE m.lane = l.id AND m.due_at IS NOT NULL AND m.wait IS DISTINCT FROM 3 \
             AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) ORDER BY m.due_at"
        )
    };
}
pub(crate) static HEADS: MultiRowSql = MultiRowSql {
    sqlite: heads_here!(),
    postgres: heads_here!(),
    mysql: heads!(
        "FORCE INDEX (message_due) WHERE m.due_lane = l.id AND NOT (m.wait <=> 3) \
         AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) ORDER BY m.due_lane, m.due_at"
    ),
};
/// The first message after now, of lanes that have others before: each lane by itself, so that the server
/// starts there and does not read through what is due.
macro_rules! later {
    ($from:literal) => {
        MultiRow::of_pieces(
            "SELECT MIN(due_at) FROM (",
            concat!("SELECT (SELECT m.due_at FROM message m ", $from, " LIMIT 1) AS due_at"),
            " UNION ALL ",
            ") AS firsts",
        )
    };
}
pub(crate) static LATER: MultiRowSql = MultiRowSql {
    sqlite: later!("WHERE m.lane = ? AND m.due_at > ? AND m.wait IS DISTINCT FROM 3 ORDER BY m.due_at"),
    postgres: later!("WHERE m.lane = ? AND m.due_at > ? AND m.wait IS DISTINCT FROM 3 ORDER BY m.due_at"),
    mysql: later!(
        "FORCE INDEX (message_due) WHERE m.due_lane = ? AND m.due_at > ? AND NOT (m.wait <=> 3) ORDER BY m.due_at"
    ),
};

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![HEADS.sample(), LATER.sample()]
}

/// Accounts that have work due now, and when the next of the rest is due.
pub(crate) async fn queue_state(session: &mut dyn SqlSession, now: Time) -> Result<QueueState, StoreError> {
    let lanes = waiting_lanes(session, LaneRange::ALL).await?;
    let (mut due, mut due_lanes, mut next_due_at) = (Vec::new(), Vec::new(), None::<Time>);
    let mut note_later = |later: Time| next_due_at = Some(next_due_at.map_or(later, |next| next.min(later)));
    for (sql, run) in HEADS.runs(&lanes) {
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes()));
        for row in session.rows(sql, values![now].into_iter().chain(ids).collect()).await? {
            match row.opt_time(5)? {
                None => {}
                Some(later) if later > now => note_later(later),
                Some(_) => {
                    due_lanes.push(LaneId::from_bytes(row.id16(0)?));
                    let key = AccountKey { tenant: row.parsed(1)?, account: row.parsed(2)? };
                    due.push(DueAccount { key, version: row.int(3)?, weight: decode::weight(row.int(4)?) });
                }
            }
        }
    }
    for (sql, run) in LATER.runs(&due_lanes) {
        let values = run.iter().flat_map(|lane| values![lane.as_bytes(), now]).collect();
        for row in session.rows(sql, values).await? {
            row.opt_time(0)?.into_iter().for_each(&mut note_later);
        }
    }
    due.sort_by(|a, b| a.key.cmp(&b.key));
    due.dedup_by(|a, b| a.key == b.key);
    Ok(QueueState { due, next_due_at })
}
