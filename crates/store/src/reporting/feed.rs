//! The feed: a tenant's pages in the order of their positions.

use std::collections::{BTreeMap, HashMap};

use postway_domain::{MessageEvent, MessageUid, TenantId};

use crate::{
    error::StoreError,
    journal::{
        self, JournalEntry, JournalPage,
        event_row::{self, JOINED_MAX},
    },
    record::{FeedEvent, FeedPosition},
    sql::{SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

/// The number of pages read at once.
const PAGES_AT_ONCE: u32 = 64;

const PAGES: SqlText = SqlText::same(
    "SELECT position, at, entries FROM journal WHERE tenant = ? AND position >= ? ORDER BY position LIMIT ?",
);
/// A row may have some events after the one whose number it has.
static EVENTS: MultiRow = MultiRow::new(
    "SELECT uid, seq, at, kind, data, more FROM event WHERE seq > ? AND seq <= ? AND uid IN (",
    1,
    ")",
);

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![PAGES, EVENTS.sample().into()]
}

/// The events after this position, oldest first.
pub(crate) async fn feed(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: FeedPosition,
    limit: u32,
) -> Result<Vec<FeedEvent>, StoreError> {
    let mut places: Vec<(FeedPosition, JournalEntry)> = Vec::new();
    let mut from = after.page;
    while places.len() < limit as usize {
        let rows = session.rows(PAGES, values![tenant.as_str(), from, PAGES_AT_ONCE]).await?;
        for row in &rows {
            let position = row.int(0)?;
            let page = JournalPage::decode(row.time(1)?, row.opt_bytes(2)?.unwrap_or_default())?;
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
    let found_events = places.into_iter().map(|(position, one)| FeedEvent {
        position,
        uid: one.uid,
        kind: one.kind,
        deferred: one.is_deferred(),
        event: events.remove(&(one.uid, i64::from(one.seq))),
    });
    Ok(found_events.collect())
}

/// The position behind the last page.
pub(crate) async fn end(session: &mut dyn SqlSession) -> Result<FeedPosition, StoreError> {
    let page = journal::progress(session, journal::SEQUENCE).await?;
    Ok(FeedPosition { page, entry: u32::MAX })
}

/// Events by their sequence numbers; those of removed messages are missing.
pub(crate) async fn events_of(
    session: &mut dyn SqlSession,
    places: impl Iterator<Item = (MessageUid, i64)>,
) -> Result<HashMap<(MessageUid, i64), MessageEvent>, StoreError> {
    // Most messages take the same steps, so there are few sequence numbers, each with many messages.
    let mut by_seq: BTreeMap<i64, Vec<MessageUid>> = BTreeMap::new();
    for (uid, seq) in places {
        by_seq.entry(seq).or_default().push(uid);
    }
    let mut events = HashMap::new();
    for (seq, uids) in by_seq {
        for (sql, run) in EVENTS.runs(&uids) {
            let ids = run.iter().map(|uid| Value::from(uid.as_bytes()));
            let bounds = values![seq - JOINED_MAX, seq];
            for row in session.rows(sql.into(), bounds.into_iter().chain(ids).collect()).await? {
                let data = row.opt_text(4)?.map(str::to_owned);
                let found_events =
                    event_row::events_of(row.int(1)?, row.time(2)?, row.int(3)?, data, row.opt_text(5)?)?;
                let uid = MessageUid::from_bytes(row.id16(0)?);
                let wanted = found_events.into_iter().find(|event| event.seq == seq);
                events.extend(wanted.map(|event| ((uid, seq), event)));
            }
        }
    }
    Ok(events)
}
