//! Writing the results of calls.
//!
//! The rows are locked and their tokens compared, then written set-wise. Notifications that follow a waiting
//! one wait as long.

use std::collections::{BTreeMap, HashMap};

use postway_domain::{MessageUid, Time};

use super::notifications::{place_of, read_key};
use crate::{
    error::StoreError,
    journal::history::{self, acknowledged_event, begun_event},
    queue::transaction::WriteTransaction,
    record::{BegunCall, NotificationKey, NotificationResult, NotificationState},
    sql::{
        SqlSession, SqlText,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

macro_rules! leased {
    ($row:literal, $join:literal, $end:literal) => {
        MultiRow::of_pieces(
            "SELECT n.tenant, n.subscriber, n.uid, n.seq, n.lease_token, n.tries FROM (VALUES ",
            $row,
            ",",
            concat!(
                ") AS v ",
                $join,
                " notification n ON n.tenant = v.column1 AND n.subscriber = v.column2 AND n.uid = v.column3 \
                 AND n.seq = v.column4 WHERE n.state = 1",
                $end
            ),
        )
    };
}
/// Locks the notifications that are being sent.
pub(crate) static LEASED: MultiRowSql = MultiRowSql {
    sqlite: leased!("(?,?,?,?)", "CROSS JOIN", ""),
    postgres: leased!(
        "(CAST(? AS TEXT),CAST(? AS TEXT),CAST(? AS BYTEA),CAST(? AS BIGINT))",
        "JOIN",
        " FOR UPDATE OF n"
    ),
    mysql: MultiRow::of_pieces(
        "SELECT tenant, subscriber, uid, seq, lease_token, tries FROM notification FORCE INDEX (PRIMARY) WHERE state = 1 AND (",
        "(tenant = ? AND subscriber = ? AND uid = ? AND seq = ?)",
        " OR ",
        ") FOR UPDATE",
    ),
};

/// The rows exist and are locked, so nothing is ever inserted. This form is the one in which all databases
/// can give each row its own values.
macro_rules! settle {
    ($end:literal) => {
        MultiRow::of_pieces(
            "INSERT INTO notification (tenant, subscriber, uid, seq, state, due_at, tries, settled_at, called_at, latency_ms, \
             status, request, answer, kind, deferred, created_at) VALUES ",
            "(?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0)",
            ",",
            $end,
        )
    };
}
macro_rules! settle_on_conflict {
    () => {
        settle!(
            " ON CONFLICT (tenant, subscriber, uid, seq) DO UPDATE SET state = excluded.state, due_at = excluded.due_at, \
             tries = excluded.tries, settled_at = excluded.settled_at, lease_node = NULL, lease_token = NULL, \
             lease_until = NULL, called_at = COALESCE(excluded.called_at, notification.called_at), \
             latency_ms = COALESCE(excluded.latency_ms, notification.latency_ms), \
             status = CASE WHEN excluded.called_at IS NULL THEN notification.status ELSE excluded.status END, \
             request = COALESCE(excluded.request, notification.request), \
             answer = COALESCE(excluded.answer, notification.answer)"
        )
    };
}
static SETTLE: MultiRowSql = MultiRowSql {
    sqlite: settle_on_conflict!(),
    postgres: settle_on_conflict!(),
    mysql: settle!(
        " ON DUPLICATE KEY UPDATE state = VALUES(state), due_at = VALUES(due_at), tries = VALUES(tries), \
         settled_at = VALUES(settled_at), lease_node = NULL, lease_token = NULL, lease_until = NULL, \
         called_at = COALESCE(VALUES(called_at), called_at), latency_ms = COALESCE(VALUES(latency_ms), latency_ms), \
         status = CASE WHEN VALUES(called_at) IS NULL THEN status ELSE VALUES(status) END, \
         request = COALESCE(VALUES(request), request), answer = COALESCE(VALUES(answer), answer)"
    ),
};
/// The notifications that follow a waiting one.
const FOLLOW: SqlText = SqlText::same(
    "UPDATE notification SET due_at = ? WHERE tenant = ? AND subscriber = ? AND uid = ? AND seq > ? AND due_at < ?",
);
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![LEASED.sample(), SETTLE.sample(), FOLLOW]
}

/// Writes the results of calls; `true` for each that was applied because the lease was still valid.
pub(crate) async fn settle(
    engine: &mut impl WriteTransaction,
    notified: &[&NotificationResult],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; notified.len()];
    if notified.is_empty() {
        return Ok(held);
    }
    let mut session = engine.session()?;
    // In the order of keys, so that two transactions that settle the same notifications lock them in the same
    // order.
    let mut order: Vec<usize> = (0..notified.len()).collect();
    order.sort_by_key(|index| &notified[*index].key);
    let keys: Vec<&NotificationKey> = order.iter().map(|index| &notified[*index].key).collect();
    let mut leased = lock(&mut *session, &keys).await?;
    let mut done: Vec<(&NotificationResult, i64)> = Vec::with_capacity(notified.len());
    for index in order {
        let one = notified[index];
        if leased.get(&one.key).is_some_and(|(token, _)| *token == one.token.as_i64()) {
            held[index] = true;
            done.extend(leased.remove(&one.key).map(|(_, tries)| (one, tries)));
        }
    }
    write(&mut *session, &done).await?;
    drop(session);
    engine.after().wrote |= !done.is_empty();
    // Notifications that follow may be sent now, and returned ones again.
    let frees = |one: &NotificationResult| next_due(one).is_none_or(|due_at| due_at <= one.at);
    engine.after().reports |= done.iter().any(|(one, _)| frees(one));
    Ok(held)
}

/// Appends `notifying` to histories before their calls, in the order of keys; `true` for each whose lease is
/// still valid.
pub(crate) async fn begin(
    session: &mut dyn SqlSession,
    begun: &[BegunCall],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; begun.len()];
    let mut order: Vec<usize> = (0..begun.len()).collect();
    order.sort_by_key(|index| &begun[*index].key);
    let keys: Vec<&NotificationKey> = order.iter().map(|index| &begun[*index].key).collect();
    let leased = lock(session, &keys).await?;
    let mut histories: BTreeMap<MessageUid, Vec<_>> = BTreeMap::new();
    for index in order {
        let one = &begun[index];
        if leased.get(&one.key).is_some_and(|(token, _)| *token == one.token.as_i64()) {
            held[index] = true;
            histories.entry(one.key.uid).or_default().push(begun_event(one));
        }
    }
    history::append(session, histories).await?;
    Ok(held)
}

/// Locks those of these notifications that are being sent. Returns their tokens and numbers of calls before.
async fn lock(
    session: &mut dyn SqlSession,
    keys: &[&NotificationKey],
) -> Result<HashMap<NotificationKey, (i64, i64)>, StoreError> {
    let mut leased = HashMap::with_capacity(keys.len());
    for (sql, run) in LEASED.runs(keys) {
        for row in session.rows(sql, run.iter().flat_map(|key| place_of(key)).collect()).await? {
            leased.insert(read_key(&row)?, (row.opt_int(4)?.unwrap_or_default(), row.int(5)?));
        }
    }
    Ok(leased)
}

/// Writes the results whose lease is valid, with the number of calls before.
async fn write(session: &mut dyn SqlSession, done: &[(&NotificationResult, i64)]) -> Result<(), StoreError> {
    for (sql, run) in SETTLE.runs(done) {
        let row = |(one, tries): &(&NotificationResult, i64)| {
            let call = one.call.as_ref();
            let result_values = values![
                next_state(one).code(),
                next_due(one),
                tries + i64::from(call.is_some()),
                one.state.is_settled().then_some(one.at),
                call.map(|call| call.at),
                call.map(|call| call.latency_ms),
                call.and_then(|call| call.status).map(i64::from),
                call.map(|call| call.request.as_str()),
                call.map(|call| call.answer.as_str()),
            ];
            place_of(&one.key).into_iter().chain(result_values)
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    let mut histories: BTreeMap<MessageUid, Vec<_>> = BTreeMap::new();
    for (one, _) in done {
        if let Some(due_at) = next_due(one) {
            let place = [values![due_at], place_of(&one.key), values![due_at]].concat();
            session.execute(FOLLOW, place).await?;
        }
        if let Some(event) = acknowledged_event(one) {
            histories.entry(one.key.uid).or_default().push(event);
        }
    }
    history::append(session, histories).await
}

/// The next state; no notification stays in `calling` without a lease.
pub(crate) fn next_state(notified: &NotificationResult) -> NotificationState {
    match notified.state {
        NotificationState::Calling => NotificationState::Pending,
        state => state,
    }
}

/// When it is due next, unless it is settled.
pub(crate) fn next_due(notified: &NotificationResult) -> Option<Time> {
    (!notified.state.is_settled()).then(|| notified.due_at.unwrap_or(notified.at))
}
