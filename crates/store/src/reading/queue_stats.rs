//! The state of the queue: messages in each status, and how long the due and the blocked ones have waited.
//! The same for every SQL database.
//!
//! Writers keep the counts. Ages are read from the lanes in which mail waits and from accounts, with one
//! index lookup each, so the cost does not depend on how many messages wait. Doubts on hold have no index,
//! which every write would pay for: they are counted among the newest [`QueueStats::DOUBTS_MAX`] in doubt.

use postway_domain::{AccountSettings, LaneRange, LimitSpan, MessageStatus, TenantId, Time};

use crate::{
    admin::{is_suspended, is_used_up},
    error::StoreError,
    record::QueueStats,
    sql::{
        Row, SqlSession, SqlText, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        waiting_lanes::waiting_lanes,
    },
};

const TALLY: SqlText = SqlText::or_mysql(
    "SELECT status, CAST(SUM(count) AS BIGINT) FROM tally WHERE tenant = ? GROUP BY status",
    "SELECT status, CAST(SUM(`count`) AS SIGNED) FROM tally WHERE tenant = ? GROUP BY status",
);
const TALLY_OF_ALL: SqlText = SqlText::or_mysql(
    "SELECT status, CAST(SUM(count) AS BIGINT) FROM tally GROUP BY status",
    "SELECT status, CAST(SUM(`count`) AS SIGNED) FROM tally GROUP BY status",
);
pub(crate) const DOUBTS: SqlText = SqlText::same(
    "SELECT COUNT(*) FROM (SELECT due_at FROM message WHERE status = 8 AND tenant = ? ORDER BY uid DESC LIMIT ?) AS doubts \
     WHERE due_at IS NULL",
);
const DOUBTS_OF_ALL: SqlText = SqlText::same(
    "SELECT COUNT(*) FROM (SELECT due_at FROM message WHERE status = 8 LIMIT ?) AS doubts WHERE due_at IS NULL",
);

/// An account's use of one of its limits.
macro_rules! used {
    ($span:literal, $integer:literal) => {
        concat!(
            "(SELECT CAST(COALESCE(SUM(s.used), 0) AS ",
            $integer,
            ") FROM spent s WHERE s.tenant = o.tenant AND s.account = o.account AND s.span = ",
            $span,
            " AND s.bucket >= ?), "
        )
    };
}
/// Every account with mail due in these lanes: since when unblocked mail is due, and suspended mail; whether
/// the circuit is open; its limit use; its settings. Each step reads what the one before leaves, and runs
/// once for a lane: `$once` makes PostgreSQL and SQLite do so, and `$all` makes MySQL.
macro_rules! due {
    ($once:literal, $all:literal, $first:literal, $lanes:literal, $integer:literal) => {
        MultiRow::new(
            concat!(
                "WITH waiting AS ",
                $once,
                "(SELECT l.tenant AS tenant, l.account AS account, l.batch AS batch, (SELECT m.due_at FROM message m ",
                $first,
                " LIMIT 1) AS due_at FROM lane l",
                $lanes,
                "l.id IN ("
            ),
            1,
            concat!(
            ")",
            $all,
            "), due AS ",
            $once,
            "(SELECT w.tenant AS tenant, w.account AS account, w.due_at AS due_at, CASE WHEN ",
            is_suspended!("w"),
            " THEN 1 ELSE 0 END AS suspended FROM waiting w WHERE w.due_at <= ?",
            $all,
            "), oldest AS (SELECT tenant, account, MIN(CASE WHEN suspended = 0 THEN due_at END) AS open_due, \
             MIN(CASE WHEN suspended = 1 THEN due_at END) AS held_due FROM due GROUP BY tenant, account) \
             SELECT o.open_due, o.held_due, \
             (SELECT COUNT(*) FROM circuit c WHERE c.tenant = o.tenant AND c.account = o.account), ",
            used!(1, $integer),
            used!(2, $integer),
            used!(3, $integer),
            "a.settings FROM oldest o LEFT JOIN account a ON a.tenant = o.tenant AND a.id = o.account",
            ),
        )
    };
}
macro_rules! due_here {
    ($lanes:literal) => {
        due!(
            "MATERIALIZED ",
            "",
            "WHERE m.lane = l.id AND m.due_at IS NOT NULL ORDER BY m.due_at",
            $lanes,
            "BIGINT"
        )
    };
}
macro_rules! due_of {
    ($lanes:literal) => {
        MultiRowSql {
            sqlite: due_here!($lanes),
            postgres: due_here!($lanes),
            mysql: due!(
                "",
                " LIMIT 18446744073709551615",
                "FORCE INDEX (message_due) WHERE m.due_lane = l.id ORDER BY m.due_lane, m.due_at",
                $lanes,
                "SIGNED"
            ),
        }
    };
}
pub(crate) static DUE: MultiRowSql = due_of!(" WHERE l.tenant = ? AND ");
/// Mail of deleted tenants does not count.
static DUE_OF_ALL: MultiRowSql = due_of!(" JOIN tenant t ON t.id = l.tenant WHERE t.deleted_at IS NULL AND ");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![TALLY, TALLY_OF_ALL, DOUBTS, DOUBTS_OF_ALL, DUE.sample(), DUE_OF_ALL.sample()]
}

/// The state of a tenant's queue, or of all.
pub(crate) async fn stats(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
    now: Time,
) -> Result<QueueStats, StoreError> {
    let whose = || tenant.map(|tenant| Value::from(tenant.as_str()));
    let mut stats = QueueStats::default();
    let tally = if tenant.is_some() { TALLY } else { TALLY_OF_ALL };
    for row in session.rows(tally, whose().into_iter().collect()).await? {
        stats.by_status.insert(decode::coded(row.int(0)?, MessageStatus::from_code)?, row.int(1)?);
    }
    let (due, range) = match tenant {
        Some(tenant) => (&DUE, LaneRange::of_tenant(tenant)),
        None => (&DUE_OF_ALL, LaneRange::ALL),
    };
    let lanes = waiting_lanes(session, range).await?;
    for (sql, run) in due.runs(&lanes) {
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes()));
        let times =
            [Value::from(now)].into_iter().chain(LimitSpan::ALL.map(|span| span.oldest_counted(now).into()));
        for row in session.rows(sql, whose().into_iter().chain(ids).chain(times).collect()).await? {
            stats.note_held(row.opt_time(1)?);
            match is_shut(&row, now)? {
                true => stats.note_held(row.opt_time(0)?),
                false => stats.note_due(row.opt_time(0)?),
            }
        }
    }
    if stats.by_status.get(&MessageStatus::InDoubt).is_some_and(|doubts| *doubts > 0) {
        let doubts = if tenant.is_some() { DOUBTS } else { DOUBTS_OF_ALL };
        let values = whose().into_iter().chain([QueueStats::DOUBTS_MAX.into()]).collect();
        let rows = session.rows(doubts, values).await?;
        stats.doubts_held = rows.first().map_or(Ok(0), |row| row.int(0))?;
    }
    Ok(stats)
}

/// Whether the account of a row of [`DUE`] has an open circuit, is beyond a limit, or was deleted.
fn is_shut(row: &Row, now: Time) -> Result<bool, StoreError> {
    if row.int(2)? > 0 || row.opt_text(6)?.is_none() {
        return Ok(true);
    }
    let used = [row.int(3)?, row.int(4)?, row.int(5)?];
    if used == [0; 3] {
        return Ok(false);
    }
    let settings: AccountSettings = row.json(6)?;
    let of = |wanted| {
        LimitSpan::ALL.into_iter().zip(used).find(|(span, _)| *span == wanted).map_or(0, |(_, used)| used)
    };
    Ok(is_used_up(&settings, now, of))
}
