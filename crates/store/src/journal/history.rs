//! The events that notifications add to a message's own history: a call to a subscriber begins, and the
//! subscriber has acknowledged.
//!
//! Subscribers are not notified of these events, and the message's version does not change, so concurrent
//! work on the message is not disturbed. The first is written before the call is made, so that a process that
//! dies during the call leaves a trace.

use std::collections::{BTreeMap, HashMap};

use postway_domain::{EventKind, MessageUid, Time};
use serde_json::json;

use crate::{
    error::StoreError,
    record::{BegunCall, NewEvent, NotificationResult, NotificationState},
    sql::{SqlSession, Value, multi_row::MultiRow, values},
};

static COUNT: MultiRow = MultiRow::new("UPDATE message SET event_seq = event_seq + ? WHERE uid IN (", 1, ")");
static COUNTED: MultiRow = MultiRow::new("SELECT uid, event_seq FROM message WHERE uid IN (", 1, ")");
static INSERT: MultiRow = MultiRow::new("INSERT INTO event (uid, seq, at, kind, data) VALUES ", 5, "");

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    [&COUNT, &COUNTED, &INSERT].map(|multi| multi.sample().into()).to_vec()
}

/// The event that a call adds before it is made.
pub(crate) fn begun_event(begun: &BegunCall) -> (Time, NewEvent) {
    let data = json!({"subscriber": begun.key.subscriber.as_str()});
    (begun.at, NewEvent { kind: EventKind::Notifying, data: Some(data.to_string()) })
}

/// The event that an acknowledged call adds.
pub(crate) fn acknowledged_event(notified: &NotificationResult) -> Option<(Time, NewEvent)> {
    let call = notified.call.as_ref().filter(|_| notified.tells_history)?;
    if notified.state != NotificationState::Acknowledged {
        return None;
    }
    let mut data = json!({"subscriber": notified.key.subscriber.as_str()});
    if let (Some(status), Some(data)) = (call.status, data.as_object_mut()) {
        data.insert("status".to_owned(), status.into());
    }
    Some((notified.at, NewEvent { kind: EventKind::Notified, data: Some(data.to_string()) }))
}

/// Appends events to histories, in order for each message.
pub(crate) async fn append(
    session: &mut dyn SqlSession,
    events: BTreeMap<MessageUid, Vec<(Time, NewEvent)>>,
) -> Result<(), StoreError> {
    let mut by_count: BTreeMap<usize, Vec<MessageUid>> = BTreeMap::new();
    for (uid, events) in &events {
        by_count.entry(events.len()).or_default().push(*uid);
    }
    let ids = |run: &[MessageUid]| run.iter().map(|uid| Value::from(uid.as_bytes())).collect::<Vec<_>>();
    let mut last: HashMap<MessageUid, i64> = HashMap::with_capacity(events.len());
    for (count, uids) in by_count {
        for (sql, run) in COUNT.runs(&uids) {
            session.execute(sql.into(), [values![count as i64], ids(run)].concat()).await?;
        }
        for (sql, run) in COUNTED.runs(&uids) {
            for row in session.rows(sql.into(), ids(run)).await? {
                last.insert(MessageUid::from_bytes(row.id16(0)?), row.int(1)?);
            }
        }
    }
    let mut rows = Vec::new();
    for (uid, events) in events {
        // A removed message has no history.
        let Some(last) = last.get(&uid) else { continue };
        let first = last - events.len() as i64 + 1;
        rows.extend((first..).zip(events).map(|(seq, (at, event))| (uid, seq, at, event)));
    }
    insert_events(session, &rows).await
}

/// Writes events with their sequence numbers.
pub(crate) async fn insert_events(
    session: &mut dyn SqlSession,
    events: &[(MessageUid, i64, Time, NewEvent)],
) -> Result<(), StoreError> {
    for (sql, run) in INSERT.runs(events) {
        let row = |(uid, seq, at, event): &(MessageUid, i64, Time, NewEvent)| {
            values![uid.as_bytes(), *seq, *at, event.kind.code(), event.data.as_deref()]
        };
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}
