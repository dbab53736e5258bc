//! Making notifications due early, or again.
//!
//! Waiting notifications become due at once when their subscriber is back ([`hasten`]); settled ones are sent
//! again on request ([`find`], [`resend`]). Either may concern very many, so both go page by page: a
//! transaction writes at most as many as it was asked for, and a process that dies between two pages leaves
//! each notification as it was or due.

use std::collections::BTreeMap;

use postway_domain::{MessageUid, Time};

use crate::{
    error::StoreError,
    record::{DueSubscriber, NotificationState, ResendRequest},
    sql::{
        Row, SqlSession, SqlText, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The most notifications written in one transaction.
pub(crate) const PAGE_MAX: u32 = 500;
/// The most notifications examined for one page.
const LOOKED_MAX: u32 = 5_000;

/// Notifications called since their subscriber is back wait for another reason.
macro_rules! waiting {
    ($from:literal, $end:literal) => {
        concat!(
            "SELECT n.uid, n.seq FROM ",
            $from,
            " WHERE n.tenant = ? AND n.subscriber = ? AND n.due_at > ? AND (n.called_at IS NULL OR n.called_at <= ?) \
             ORDER BY n.due_at, n.uid, n.seq LIMIT ?",
            $end
        )
    };
}
/// Skips rows that another transaction has locked.
pub(crate) const WAITING: SqlText = SqlText::of_each(
    waiting!("notification n", ""),
    waiting!("notification n", " FOR UPDATE OF n SKIP LOCKED"),
    waiting!("notification n FORCE INDEX (notification_due)", " FOR UPDATE SKIP LOCKED"),
);
macro_rules! hasten {
    ($table:literal) => {
        MultiRow::new(
            concat!(
                "UPDATE ",
                $table,
                " SET due_at = ? WHERE tenant = ? AND subscriber = ? AND seq = ? AND uid IN ("
            ),
            1,
            ")",
        )
    };
}
static HASTEN: MultiRowSql = MultiRowSql {
    sqlite: hasten!("notification"),
    postgres: hasten!("notification"),
    mysql: hasten!("notification FORCE INDEX (PRIMARY)"),
};

macro_rules! settled {
    ($columns:literal, $and:literal, $end:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM notification WHERE tenant = ? AND subscriber = ? AND uid >= ? AND (uid > ? OR seq > ?) ",
            $and,
            "ORDER BY uid, seq LIMIT ",
            $end
        )
    };
}
/// The last message that is examined, if there are more behind it.
pub(crate) const LOOK: SqlText = SqlText::same(settled!("uid", "", "1 OFFSET ?"));
pub(crate) const SETTLED: SqlText = SqlText::same(settled!(
    "uid, seq",
    "AND uid <= ? AND state BETWEEN ? AND 4 AND created_at >= ? AND created_at < ? ",
    "?"
));
macro_rules! again {
    ($table:literal) => {
        MultiRow::new(
            concat!(
                "UPDATE ",
                $table,
                " SET state = 0, due_at = ?, tries = 0, settled_at = NULL \
                 WHERE tenant = ? AND subscriber = ? AND seq = ? AND state BETWEEN ? AND 4 AND uid IN ("
            ),
            1,
            ")",
        )
    };
}
static AGAIN: MultiRowSql = MultiRowSql {
    sqlite: again!("notification"),
    postgres: again!("notification"),
    mysql: again!("notification FORCE INDEX (PRIMARY)"),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![WAITING, HASTEN.sample(), LOOK, SETTLED, AGAIN.sample()]
}

/// Makes at most `limit` waiting notifications of a subscriber due now. Returns their number.
pub(crate) async fn hasten(
    session: &mut dyn SqlSession,
    who: &DueSubscriber,
    now: Time,
    limit: u32,
) -> Result<u32, StoreError> {
    let DueSubscriber { tenant, subscriber } = who;
    let place = values![tenant.as_str(), subscriber.as_str(), now, now, limit.min(PAGE_MAX)];
    let rows = session.rows(WAITING, place).await?;
    let found = rows.iter().map(read_place).collect::<Result<Vec<_>, _>>()?;
    for (seq, uids) in by_sequence(&found) {
        for (sql, run) in HASTEN.runs(&uids) {
            let place = values![now, tenant.as_str(), subscriber.as_str(), seq];
            session.execute(sql, place.into_iter().chain(ids(run)).collect()).await?;
        }
    }
    Ok(u32::try_from(found.len()).unwrap_or(limit))
}

/// Finds the next page of notifications to send again, and where the page after it begins.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    request: &ResendRequest,
) -> Result<(Vec<(MessageUid, i64)>, Option<(MessageUid, i64)>), StoreError> {
    let ResendRequest { who, since, until, after, limit, .. } = request;
    let limit = (*limit).clamp(1, PAGE_MAX);
    let (uid, seq) = after.unwrap_or((MessageUid::from_bytes([0; 16]), -1));
    let from = values![who.tenant.as_str(), who.subscriber.as_str(), uid.as_bytes(), uid.as_bytes(), seq];
    let rows = session.rows(LOOK, [from.clone(), values![LOOKED_MAX]].concat()).await?;
    let end = rows.first().map(|row| row.id16(0).map(MessageUid::from_bytes)).transpose()?;
    let last = end.unwrap_or(MessageUid::from_bytes([0xff; 16]));
    let which = values![last.as_bytes(), lowest(request), *since, *until, limit];
    let rows = session.rows(SETTLED, [from, which].concat()).await?;
    let found = rows.iter().map(read_place).collect::<Result<Vec<_>, _>>()?;
    let next = request.page_end(&found, limit, end);
    Ok((found, next))
}

/// Makes those of these notifications that are still settled due again. Returns their number.
pub(crate) async fn resend(
    session: &mut dyn SqlSession,
    request: &ResendRequest,
    found: &[(MessageUid, i64)],
) -> Result<u32, StoreError> {
    let ResendRequest { who: DueSubscriber { tenant, subscriber }, now, .. } = request;
    let mut resent = 0;
    for (seq, uids) in by_sequence(found) {
        for (sql, run) in AGAIN.runs(&uids) {
            let place = values![*now, tenant.as_str(), subscriber.as_str(), seq, lowest(request)];
            resent += session.execute(sql, place.into_iter().chain(ids(run)).collect()).await?;
        }
    }
    Ok(u32::try_from(resent).unwrap_or(u32::MAX))
}

impl ResendRequest {
    /// Where the next page begins: after the last notification of a full page, else after the last message
    /// examined, with all its events.
    pub(crate) fn page_end(
        &self,
        found: &[(MessageUid, i64)],
        limit: u32,
        looked_until: Option<MessageUid>,
    ) -> Option<(MessageUid, i64)> {
        let is_full = found.len() >= limit as usize;
        found.last().copied().filter(|_| is_full).or(looked_until.map(|uid| (uid, i64::MAX)))
    }
}

/// The lowest state that is sent again; the settled states are the highest.
fn lowest(request: &ResendRequest) -> i64 {
    match request.only_dead {
        true => NotificationState::Dead.code(),
        false => NotificationState::Acknowledged.code(),
    }
}

/// Most messages take the same steps, so there are few sequence numbers, each with many messages.
fn by_sequence(found: &[(MessageUid, i64)]) -> BTreeMap<i64, Vec<MessageUid>> {
    let mut by_sequence: BTreeMap<i64, Vec<MessageUid>> = BTreeMap::new();
    for (uid, seq) in found {
        by_sequence.entry(*seq).or_default().push(*uid);
    }
    by_sequence
}

fn ids(uids: &[MessageUid]) -> impl Iterator<Item = Value> {
    uids.iter().map(|uid| Value::from(uid.as_bytes()))
}

fn read_place(row: &Row) -> Result<(MessageUid, i64), StoreError> {
    Ok((MessageUid::from_bytes(row.id16(0)?), row.int(1)?))
}

// The statements above write these codes as literals.
const _: () = assert!(NotificationState::Acknowledged as i64 == 3 && NotificationState::Dead as i64 == 4);
