//! The journal: events of messages, in the order in which they became visible.
//!
//! Each transaction collects the events it appends that subscribers may want ([`EventJournal::note`]), and
//! writes them as one small page for each tenant before it commits ([`write`]): one insert per commit,
//! however many events. Page ids are assigned before the commit, so a lower id may become visible later.
//! Positions are assigned after the commit ([`sequence`]), under the lock of one row, so a reader that
//! follows positions misses nothing. If a transaction fails, its collected events are dropped with it.

mod changes;
pub(crate) mod event_row;
pub(crate) mod history;
mod page;
pub(crate) mod suppression_changes;

use std::collections::BTreeMap;

use postway_domain::{
    EventKind, LaneId, MessageState, MessageUid, TenantId, Time, message::ScheduleReason,
    subscriber::event_name,
};

pub(crate) use page::{EventDetail, JournalEntry, JournalPage};

use crate::{
    error::StoreError,
    sql::{
        SqlSession, SqlText,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The most entries of one page, so that a page can be processed in one transaction.
const PAGE_ENTRIES_MAX: usize = 512;
/// The most pages that get their positions at once.
const SEQUENCED_MAX: u32 = 4_096;

/// The name, in the table `progress`, of the process that assigns positions.
pub(crate) const SEQUENCE: &str = "sequence";
/// The name, in the table `progress`, of the process that makes notifications.
pub(crate) const FAN_OUT: &str = "fan_out";

/// The name under which `progress` records how many entries of a page are done, if the page takes several
/// transactions. It is combined with the position, so that it cannot apply to another page.
const FAN_OUT_PART: &str = "fan_out_part";
const PART_BASE: i64 = 1_024;
const _: () = assert!((PAGE_ENTRIES_MAX as i64) < PART_BASE);

static INSERT: MultiRow = MultiRow::new("INSERT INTO journal (tenant, at, entries) VALUES ", 3, "");
const PROGRESS: SqlText = SqlText::of_each(
    "SELECT position FROM progress WHERE name = ?",
    "SELECT position FROM progress WHERE name = ? FOR UPDATE",
    "SELECT position FROM progress WHERE name = ? FOR UPDATE",
);
const POSITION: SqlText = SqlText::same("SELECT position FROM progress WHERE name = ?");
const ADVANCE: SqlText = SqlText::same("UPDATE progress SET position = ? WHERE name = ?");
const NOTE_PART: SqlText = SqlText::or_mysql(
    "INSERT INTO progress (name, position) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET position = excluded.position",
    "INSERT INTO progress (name, position) VALUES (?, ?) ON DUPLICATE KEY UPDATE position = VALUES(position)",
);
/// Read without a lock, so that readers do not wait for a transaction under way.
pub(crate) const UNPLACED: SqlText = SqlText::or_mysql(
    "SELECT id FROM journal WHERE position IS NULL ORDER BY id LIMIT ?",
    "SELECT id FROM journal FORCE INDEX (journal_position) WHERE position IS NULL ORDER BY id LIMIT ?",
);
macro_rules! place {
    () => {
        MultiRow::of_pieces(
            "UPDATE journal SET position = v.column2 FROM (VALUES ",
            "(CAST(? AS BIGINT),CAST(? AS BIGINT))",
            ",",
            ") AS v WHERE journal.id = v.column1",
        )
    };
}
pub(crate) static PLACE: MultiRowSql = MultiRowSql {
    sqlite: place!(),
    postgres: place!(),
    mysql: MultiRow::of_pieces(
        "UPDATE (",
        "SELECT CAST(? AS SIGNED) AS id, CAST(? AS SIGNED) AS place",
        " UNION ALL ",
        ") AS v STRAIGHT_JOIN journal j FORCE INDEX (PRIMARY) ON j.id = v.id SET j.position = v.place",
    ),
};
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[PROGRESS, POSITION, ADVANCE, NOTE_PART, UNPLACED];

/// Sample texts, for the test that prepares every statement.
#[cfg(test)]
pub(crate) fn multi() -> [SqlText; 2] {
    [INSERT.sample().into(), PLACE.sample()]
}

/// An event that was appended to a message's history.
pub(crate) struct AppendedEvent {
    pub uid: MessageUid,
    pub seq: i64,
    pub at: Time,
    pub kind: EventKind,
    /// The state of the message after it.
    pub to: MessageState,
}

/// The events that a transaction has collected so far.
#[derive(Default)]
pub(crate) struct EventJournal(BTreeMap<TenantId, Vec<JournalPage>>);

impl EventJournal {
    /// Collects an event if subscribers may be notified of it.
    pub fn note(&mut self, tenant: &TenantId, lane: LaneId, happening: AppendedEvent) {
        let AppendedEvent { uid, seq, at, kind, to } = happening;
        let detail = match (kind, to) {
            (EventKind::Scheduled, MessageState::Scheduled(ScheduleReason::Retry)) => EventDetail::Deferred,
            (EventKind::Resolved, MessageState::Sent) => EventDetail::ResolvedSent,
            (EventKind::Resolved, MessageState::Failed) => EventDetail::ResolvedFailed,
            _ => EventDetail::None,
        };
        let (Some(_), Ok(seq)) = (event_name(kind, detail == EventDetail::Deferred), u32::try_from(seq))
        else {
            return;
        };
        if !self.0.contains_key(tenant) {
            self.0.insert(tenant.clone(), Vec::new());
        }
        let Some(pages) = self.0.get_mut(tenant) else { return };
        if pages.last().is_none_or(|page| page.entries.len() >= PAGE_ENTRIES_MAX) {
            pages.push(JournalPage::new(at));
        }
        if let Some(page) = pages.last_mut() {
            page.add(at, lane, uid, seq, kind, detail);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pages by tenant, in order for each tenant.
    pub fn into_pages(self) -> impl Iterator<Item = (TenantId, JournalPage)> {
        self.0
            .into_iter()
            .flat_map(|(tenant, pages)| pages.into_iter().map(move |page| (tenant.clone(), page)))
    }
}

/// Writes the pages of the transaction under way.
pub(crate) async fn write(session: &mut dyn SqlSession, journal: EventJournal) -> Result<(), StoreError> {
    let pages: Vec<(TenantId, JournalPage)> = journal.into_pages().collect();
    for (sql, run) in INSERT.runs(&pages) {
        let row = |(tenant, page): &(TenantId, JournalPage)| values![tenant.as_str(), page.at, page.encode()];
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

/// The progress of this process. Its row is locked until the transaction ends.
pub(crate) async fn lock_progress(session: &mut dyn SqlSession, walk: &str) -> Result<i64, StoreError> {
    position_in(session, PROGRESS, walk).await
}

/// The progress of this process, without a lock.
pub(crate) async fn progress(session: &mut dyn SqlSession, walk: &str) -> Result<i64, StoreError> {
    position_in(session, POSITION, walk).await
}

async fn position_in(session: &mut dyn SqlSession, sql: SqlText, walk: &str) -> Result<i64, StoreError> {
    let rows = session.rows(sql, values![walk]).await?;
    let missing = || StoreError::Unexpected(format!("the table progress has lost its row {walk}"));
    rows.first().ok_or_else(missing)?.int(0)
}

/// Records the progress of this process.
pub(crate) async fn advance(session: &mut dyn SqlSession, walk: &str, to: i64) -> Result<(), StoreError> {
    session.execute(ADVANCE, values![to, walk]).await.map(drop)
}

/// The page that is fanned out in part, and the number of its entries that are done. Called under the lock of
/// [`FAN_OUT`].
pub(crate) async fn page_in_part(session: &mut dyn SqlSession) -> Result<(i64, usize), StoreError> {
    let rows = session.rows(POSITION, values![FAN_OUT_PART]).await?;
    let noted = rows.first().map_or(Ok(0), |row| row.int(0))?;
    Ok((noted / PART_BASE, usize::try_from(noted % PART_BASE).unwrap_or(0)))
}

/// Records how many entries of a page are done.
pub(crate) async fn note_part(
    session: &mut dyn SqlSession,
    page: i64,
    entries: usize,
) -> Result<(), StoreError> {
    let entries = i64::try_from(entries).unwrap_or(0).min(PART_BASE - 1);
    session.execute(NOTE_PART, values![FAN_OUT_PART, page * PART_BASE + entries]).await.map(drop)
}

/// Gives the visible pages without a position the next positions. Returns the number of pages.
pub(crate) async fn sequence(session: &mut dyn SqlSession, limit: u32) -> Result<u32, StoreError> {
    let last = lock_progress(session, SEQUENCE).await?;
    let rows = session.rows(UNPLACED, values![limit.min(SEQUENCED_MAX)]).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.int(0)).collect::<Result<_, _>>()?;
    let placed: Vec<(i64, i64)> = ids.into_iter().zip(last + 1..).collect();
    for (sql, run) in PLACE.runs(&placed) {
        session.execute(sql, run.iter().flat_map(|(id, place)| values![*id, *place]).collect()).await?;
    }
    if let Some((_, place)) = placed.last() {
        advance(session, SEQUENCE, *place).await?;
    }
    Ok(u32::try_from(placed.len()).unwrap_or(SEQUENCED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(journal: &mut EventJournal, tenant: &str, lane: u8, seq: i64, kind: EventKind, to: MessageState) {
        let (uid, at) = (MessageUid::from_bytes([lane; 16]), Time::from_millis(seq));
        let lane = LaneId::from_bytes([lane; 16]);
        journal.note(&tenant.parse().unwrap(), lane, AppendedEvent { uid, seq, at, kind, to });
    }

    #[test]
    fn a_tenants_events_share_a_page_and_lanes_are_named_once() {
        let mut journal = EventJournal::default();
        for seq in 1..=4 {
            note(&mut journal, "a", (seq % 2) as u8, seq, EventKind::Sent, MessageState::Sent);
        }
        note(&mut journal, "b", 1, 1, EventKind::Accepted, MessageState::Ready);
        let pages: Vec<_> = journal.into_pages().collect();
        assert_eq!(pages.iter().map(|(tenant, _)| tenant.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let page = &pages[0].1;
        assert_eq!((page.lanes.len(), page.entries.len(), page.at), (2, 4, Time::from_millis(4)));
        assert_eq!(page.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn what_nobody_is_told_of_leaves_no_page() {
        let mut journal = EventJournal::default();
        note(&mut journal, "a", 1, 1, EventKind::Ready, MessageState::Ready);
        note(&mut journal, "a", 1, 2, EventKind::Sending, MessageState::Sending { wire_committed: false });
        note(&mut journal, "a", 1, 3, EventKind::Scheduled, MessageState::Scheduled(ScheduleReason::SendAt));
        note(&mut journal, "a", 1, 4, EventKind::Notified, MessageState::Sent);
        assert!(journal.is_empty());
        note(&mut journal, "a", 1, 5, EventKind::Scheduled, MessageState::Scheduled(ScheduleReason::Retry));
        let (_, page) = journal.into_pages().next().unwrap();
        assert_eq!(page.entries[0].detail, EventDetail::Deferred);
    }

    #[test]
    fn a_large_transaction_leaves_several_pages() {
        let mut journal = EventJournal::default();
        for seq in 1..=(2 * PAGE_ENTRIES_MAX as i64 + 1) {
            note(&mut journal, "a", 1, seq, EventKind::RecipientFailed, MessageState::Sent);
        }
        let lengths: Vec<_> = journal.into_pages().map(|(_, page)| page.entries.len()).collect();
        assert_eq!(lengths, [PAGE_ENTRIES_MAX, PAGE_ENTRIES_MAX, 1]);
    }
}
