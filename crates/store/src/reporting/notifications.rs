//! Notifications: a leased and fenced queue for each subscriber.
//!
//! Of the notifications of one message and subscriber only the oldest unsettled one is leased, so a receiver
//! gets a message's events in order. Those after one that waits are made to wait as long, so a receiver that
//! is down costs a claim nothing. The result of a call is written with the claim's token: a late worker
//! changes nothing.

use std::collections::BTreeMap;

use postway_domain::{Incarnation, MessageUid, TenantId, Time, id::SubscriberId};

use super::feed::events_of;
use crate::{
    error::StoreError,
    record::{DueSubscriber, NotificationKey, NotificationState, ReportRequest, ReportState, ToNotify},
    sql::{
        Row, SqlSession, SqlText, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The oldest unsettled notification of its message.
macro_rules! is_next {
    ($table:literal) => {
        concat!(
            "n.seq = (SELECT MIN(l.seq) FROM ",
            $table,
            " WHERE l.tenant = n.tenant AND l.subscriber = n.subscriber AND l.uid = n.uid AND l.state < 3)"
        )
    };
}

macro_rules! due {
    ($from:literal, $is_next:expr, $end:literal) => {
        concat!(
            "SELECT n.uid, n.seq, n.deferred, n.tries, n.created_at FROM ",
            $from,
            " WHERE n.tenant = ? AND n.subscriber = ? AND n.due_at <= ? AND ",
            $is_next,
            " AND (SELECT s.active FROM subscriber s WHERE s.tenant = ? AND s.id = ? \
             AND (s.quiet_until IS NULL OR s.quiet_until <= ?)) = 1 ORDER BY n.due_at, n.uid, n.seq LIMIT ?",
            $end
        )
    };
}

/// The first notification of every subscriber that may be sent now, and the first after now. The order names
/// all columns of the index, or MySQL would sort.
macro_rules! heads {
    ($from:literal, $is_next:expr) => {
        concat!(
            "SELECT s.tenant, s.id, s.quiet_until, (SELECT n.due_at FROM ",
            $from,
            " WHERE n.tenant = s.tenant AND n.subscriber = s.id AND n.due_at <= ? AND ",
            $is_next,
            " ORDER BY n.tenant, n.subscriber, n.due_at LIMIT 1), (SELECT n.due_at FROM ",
            $from,
            " WHERE n.tenant = s.tenant AND n.subscriber = s.id AND n.due_at > ? \
             ORDER BY n.tenant, n.subscriber, n.due_at LIMIT 1) \
             FROM subscriber s JOIN tenant t ON t.id = s.tenant WHERE s.active = 1 AND t.deleted_at IS NULL \
             ORDER BY s.tenant, s.id"
        )
    };
}

/// Skips rows that another transaction has locked.
pub(crate) const DUE: SqlText = SqlText::of_each(
    due!("notification n", is_next!("notification l"), ""),
    due!("notification n", is_next!("notification l"), " FOR UPDATE OF n SKIP LOCKED"),
    due!(
        "notification n FORCE INDEX (notification_due)",
        is_next!("notification l FORCE INDEX (PRIMARY)"),
        " FOR UPDATE SKIP LOCKED"
    ),
);
pub(crate) const HEADS: SqlText = SqlText::or_mysql(
    heads!("notification n", is_next!("notification l")),
    heads!("notification n FORCE INDEX (notification_due)", is_next!("notification l FORCE INDEX (PRIMARY)")),
);

macro_rules! lease {
    ($table:literal) => {
        MultiRow::new(
            concat!(
                "UPDATE ",
                $table,
                " SET state = 1, due_at = NULL, lease_node = ?, lease_token = ?, lease_until = ? \
                 WHERE tenant = ? AND subscriber = ? AND seq = ? AND uid IN ("
            ),
            1,
            ")",
        )
    };
}
pub(crate) static LEASE: MultiRowSql = MultiRowSql {
    sqlite: lease!("notification"),
    postgres: lease!("notification"),
    mysql: lease!("notification FORCE INDEX (PRIMARY)"),
};

const HOLDERS: SqlText =
    SqlText::same("SELECT DISTINCT lease_node FROM notification WHERE lease_node IS NOT NULL");
const LOST: SqlText = SqlText::of_each(
    "SELECT tenant, subscriber, uid, seq FROM notification WHERE lease_node = ? AND lease_until <= ? LIMIT ?",
    "SELECT tenant, subscriber, uid, seq FROM notification WHERE lease_node = ? AND lease_until <= ? LIMIT ? \
     FOR UPDATE SKIP LOCKED",
    "SELECT tenant, subscriber, uid, seq FROM notification WHERE lease_node = ? AND lease_until <= ? LIMIT ? \
     FOR UPDATE SKIP LOCKED",
);
const GIVE_BACK: SqlText = SqlText::same(
    "UPDATE notification SET state = CASE WHEN tries > 0 THEN 2 ELSE 0 END, due_at = ?, lease_node = NULL, \
     lease_token = NULL, lease_until = NULL WHERE tenant = ? AND subscriber = ? AND uid = ? AND seq = ?",
);
const AGAIN: SqlText = SqlText::same(
    "UPDATE notification SET state = 0, due_at = ?, tries = 0, settled_at = NULL \
     WHERE tenant = ? AND subscriber = ? AND uid = ? AND seq = ? AND state IN (3, 4)",
);

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![DUE, HEADS, HOLDERS, LOST, GIVE_BACK, AGAIN, LEASE.sample()]
}

/// The subscribers with notifications due that are active and not in a quiet period.
pub(crate) async fn state(session: &mut dyn SqlSession, now: Time) -> Result<ReportState, StoreError> {
    let mut state = ReportState::default();
    for row in session.rows(HEADS, values![now, now]).await? {
        let who = DueSubscriber { tenant: row.parsed(0)?, subscriber: row.parsed(1)? };
        add_head(&mut state, who, row.opt_time(2)?, row.opt_time(3)?.is_some(), row.opt_time(4)?, now);
    }
    Ok(state)
}

/// Adds a subscriber: the end of its quiet period, whether a notification may be sent now, and when its next
/// is due.
pub(crate) fn add_head(
    state: &mut ReportState,
    who: DueSubscriber,
    quiet_until: Option<Time>,
    is_due: bool,
    later: Option<Time>,
    now: Time,
) {
    let next = match quiet_until.filter(|until| *until > now) {
        Some(until) if is_due => Some(until),
        Some(until) => later.map(|later| later.max(until)),
        None => {
            state.due.extend(is_due.then_some(who));
            later
        }
    };
    state.next_due_at = [state.next_due_at, next].into_iter().flatten().min();
}

/// Leases due notifications, the longest due first.
pub(crate) async fn claim(
    session: &mut dyn SqlSession,
    request: &ReportRequest,
) -> Result<Vec<ToNotify>, StoreError> {
    let (lease, now) = (&request.lease, request.now);
    let mut claimed = Vec::new();
    for (DueSubscriber { tenant, subscriber }, room) in &request.wants {
        let values = values![
            tenant.as_str(),
            subscriber.as_str(),
            now,
            tenant.as_str(),
            subscriber.as_str(),
            now,
            *room
        ];
        let mut by_seq: BTreeMap<i64, Vec<MessageUid>> = BTreeMap::new();
        for row in session.rows(DUE, values).await? {
            let (uid, seq) = (MessageUid::from_bytes(row.id16(0)?), row.int(1)?);
            by_seq.entry(seq).or_default().push(uid);
            claimed.push(ToNotify {
                key: NotificationKey { tenant: tenant.clone(), subscriber: subscriber.clone(), uid, seq },
                event: None,
                deferred: row.int(2)? != 0,
                tries: row.int(3)?,
                created_at: row.time(4)?,
            });
        }
        for (seq, uids) in by_seq {
            for (sql, run) in LEASE.runs(&uids) {
                let (node, token) = (lease.incarnation.as_bytes(), lease.token.as_i64());
                let place = values![node, token, lease.until, tenant.as_str(), subscriber.as_str(), seq];
                let ids = run.iter().map(|uid| Value::from(uid.as_bytes()));
                session.execute(sql, place.into_iter().chain(ids).collect()).await?;
            }
        }
    }
    let events = events_of(session, claimed.iter().map(|one| (one.key.uid, one.key.seq))).await?;
    for one in &mut claimed {
        // Several subscribers may be notified of one event.
        one.event = events.get(&(one.key.uid, one.key.seq)).cloned();
    }
    Ok(claimed)
}

/// Reclaims notifications that are leased to an incarnation not in `alive`, or past their backstop.
pub(crate) async fn reclaim(
    session: &mut dyn SqlSession,
    alive: &[Incarnation],
    now: Time,
    limit: u32,
) -> Result<u32, StoreError> {
    let mut lost = Vec::new();
    for holder in session.rows(HOLDERS, Vec::new()).await? {
        let left = i64::from(limit) - lost.len() as i64;
        let holder = holder.id16(0)?;
        let is_alive = alive.iter().any(|one| *one.as_bytes() == holder);
        let until = if is_alive { now.as_millis() } else { i64::MAX };
        for row in session.rows(LOST, values![&holder, until, left]).await? {
            lost.push(read_key(&row)?);
        }
    }
    lost.sort();
    for key in &lost {
        session.execute(GIVE_BACK, [values![now], place_of(key)].concat()).await?;
    }
    Ok(u32::try_from(lost.len()).unwrap_or(limit))
}

/// Makes a settled notification due again.
pub(crate) async fn again(
    session: &mut dyn SqlSession,
    key: &NotificationKey,
    now: Time,
) -> Result<bool, StoreError> {
    Ok(session.execute(AGAIN, [values![now], place_of(key)].concat()).await? == 1)
}

pub(crate) fn place_of(key: &NotificationKey) -> Vec<Value> {
    values![key.tenant.as_str(), key.subscriber.as_str(), key.uid.as_bytes(), key.seq]
}

pub(crate) fn read_key(row: &Row) -> Result<NotificationKey, StoreError> {
    Ok(NotificationKey {
        tenant: row.parsed::<TenantId>(0)?,
        subscriber: row.parsed::<SubscriberId>(1)?,
        uid: MessageUid::from_bytes(row.id16(2)?),
        seq: row.int(3)?,
    })
}

// The statements above write these codes as literals.
const _: () = assert!(NotificationState::Calling as i64 == 1 && NotificationState::Waiting as i64 == 2);
const _: () = assert!(NotificationState::Acknowledged as i64 == 3 && NotificationState::Dead as i64 == 4);
