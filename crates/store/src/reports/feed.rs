//! The feed: a tenant's pages, read along their positions.

use std::collections::{BTreeMap, HashMap};

use postway_domain::{Event, EventKind, MessageUid, TenantId};

use crate::{
    decode,
    error::StoreError,
    journal::{self, Entry, Page},
    record::{FeedEvent, FeedPosition},
    rows::Multi,
    sql::{Session, Sql, Value, values},
};

/// Pages that are read at once.
const PAGES_AT_ONCE: u32 = 64;

const PAGES: Sql = Sql::same(
    "SELECT position, at, entries FROM journal WHERE tenant = ? AND position >= ? ORDER BY position LIMIT ?",
);
static EVENTS: Multi = Multi::new("SELECT uid, at, kind, data FROM event WHERE seq = ? AND uid IN (", 1, ")");

#[cfg(test)]
pub(super) fn statements() -> Vec<Sql> {
    vec![PAGES, EVENTS.sample().into()]
}

/// What happened after this place, oldest first.
pub(super) async fn feed(
    session: &mut dyn Session,
    tenant: &TenantId,
    after: FeedPosition,
    limit: u32,
) -> Result<Vec<FeedEvent>, StoreError> {
    let mut places: Vec<(FeedPosition, Entry)> = Vec::new();
    let mut from = after.page;
    while places.len() < limit as usize {
        let rows = session.rows(PAGES, values![tenant.as_str(), from, PAGES_AT_ONCE]).await?;
        for row in &rows {
            let position = row.int(0)?;
            let page = Page::decode(row.time(1)?, row.opt_bytes(2)?.unwrap_or_default())?;
            let entries =
                (0..).zip(page.entries).map(|(entry, one)| (FeedPosition { page: position, entry }, one));
            places.extend(entries.filter(|(place, _)| *place > after));
            from = position + 1;
        }
        if rows.len() < PAGES_AT_ONCE as usize {
            break;
        }
    }
    places.truncate(limit as usize);
    let mut events = events_of(session, places.iter().map(|(_, one)| (one.uid, i64::from(one.seq)))).await?;
    let told = places.into_iter().map(|(position, one)| FeedEvent {
        position,
        uid: one.uid,
        kind: one.kind,
        deferred: one.is_deferred(),
        event: events.remove(&(one.uid, i64::from(one.seq))),
    });
    Ok(told.collect())
}

/// The place behind all that has one.
pub(super) async fn end(session: &mut dyn Session) -> Result<FeedPosition, StoreError> {
    let page = journal::progress(session, journal::SEQUENCE).await?;
    Ok(FeedPosition { page, entry: u32::MAX })
}

/// Events by their places in their histories; none of messages that are gone.
pub(super) async fn events_of(
    session: &mut dyn Session,
    places: impl Iterator<Item = (MessageUid, i64)>,
) -> Result<HashMap<(MessageUid, i64), Event>, StoreError> {
    // Most messages go the same way, so there are few places, each of many messages.
    let mut by_seq: BTreeMap<i64, Vec<MessageUid>> = BTreeMap::new();
    for (uid, seq) in places {
        by_seq.entry(seq).or_default().push(uid);
    }
    let mut events = HashMap::new();
    for (seq, uids) in by_seq {
        for (sql, run) in EVENTS.runs(&uids) {
            let ids = run.iter().map(|uid| Value::from(uid.as_bytes()));
            for row in session.rows(sql.into(), [Value::from(seq)].into_iter().chain(ids).collect()).await? {
                let event = Event {
                    seq,
                    at: row.time(1)?,
                    kind: decode::coded(row.int(2)?, EventKind::from_code)?,
                    data: row.opt_text(3)?.map(str::to_owned),
                };
                events.insert((MessageUid::from_bytes(row.id16(0)?), seq), event);
            }
        }
    }
    Ok(events)
}
