//! Appending to the histories of sent messages what others report about them.
//!
//! The messages are locked, and their versions do not change, so concurrent work on them is not disturbed.
//! Their time of last change moves, so that retention counts from it and spares events that are only in the
//! journal yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{EventKind, LaneId, MessageState, MessageUid, TenantId, Time};

use super::claim::ids;
use crate::{
    error::StoreError,
    journal::{self, AppendedEvent, EventJournal},
    record::NewEvent,
    sql::{
        SqlSession,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

const MESSAGES: &str = "SELECT uid, tenant, lane, event_seq FROM message WHERE uid IN (";
/// In the order of ids, so that two transactions that add to the same messages lock them in the same order.
static LOCK: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(MESSAGES, 1, ")"),
    postgres: MultiRow::new(MESSAGES, 1, ") ORDER BY uid FOR UPDATE"),
    mysql: MultiRow::new(MESSAGES, 1, ") ORDER BY uid FOR UPDATE"),
};
static COUNT: MultiRow = MultiRow::new(
    "UPDATE message SET event_seq = event_seq + ?, updated_at = CASE WHEN updated_at > ? THEN updated_at ELSE ? END \
     WHERE uid IN (",
    1,
    ")",
);

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![LOCK.sample(), COUNT.sample().into()]
}

struct LockedMessage {
    tenant: TenantId,
    lane: LaneId,
    event_seq: i64,
    added: i64,
    latest: Option<Time>,
}

/// Locked messages, and the events to append to their histories.
pub(crate) struct MessageHistories {
    targets: HashMap<MessageUid, LockedMessage>,
    events: Vec<(MessageUid, i64, Time, NewEvent)>,
}

impl MessageHistories {
    /// Locks those of these messages that exist.
    pub async fn lock(
        session: &mut dyn SqlSession,
        uids: impl Iterator<Item = MessageUid>,
    ) -> Result<Self, StoreError> {
        let uids: Vec<MessageUid> = uids.collect::<BTreeSet<_>>().into_iter().collect();
        let mut targets = HashMap::with_capacity(uids.len());
        for (sql, run) in LOCK.runs(&uids) {
            for row in session.rows(sql, ids(run)).await? {
                let target = LockedMessage {
                    tenant: row.parsed(1)?,
                    lane: LaneId::from_bytes(row.id16(2)?),
                    event_seq: row.int(3)?,
                    added: 0,
                    latest: None,
                };
                targets.insert(MessageUid::from_bytes(row.id16(0)?), target);
            }
        }
        Ok(Self { targets, events: Vec::new() })
    }

    /// Whether the message exists.
    pub fn has(&self, uid: MessageUid) -> bool {
        self.targets.contains_key(&uid)
    }

    /// Whether the message exists and belongs to this tenant.
    pub fn is_of(&self, uid: MessageUid, tenant: &TenantId) -> bool {
        self.targets.get(&uid).is_some_and(|target| target.tenant == *tenant)
    }

    /// Adds an event, and notes it in the journal. Does nothing for a removed message.
    pub fn add(
        &mut self,
        journal: &mut EventJournal,
        uid: MessageUid,
        at: Time,
        kind: EventKind,
        data: Option<String>,
    ) {
        let Some(target) = self.targets.get_mut(&uid) else { return };
        target.event_seq += 1;
        target.added += 1;
        target.latest = target.latest.max(Some(at));
        let seq = target.event_seq;
        // The state only says how a doubt was resolved, and no report is about that.
        let happening = AppendedEvent { uid, seq, at, kind, to: MessageState::Sent };
        journal.note(&target.tenant, target.lane, happening);
        self.events.push((uid, seq, at, NewEvent { kind, data }));
    }

    /// Writes the added events.
    pub async fn write(self, session: &mut dyn SqlSession) -> Result<(), StoreError> {
        let mut alike: BTreeMap<(i64, Time), Vec<MessageUid>> = BTreeMap::new();
        for (uid, target) in &self.targets {
            if let Some(latest) = target.latest {
                alike.entry((target.added, latest)).or_default().push(*uid);
            }
        }
        for ((added, latest), mut uids) in alike {
            uids.sort();
            for (sql, run) in COUNT.runs(&uids) {
                session.execute(sql.into(), [values![added, latest, latest], ids(run)].concat()).await?;
            }
        }
        journal::history::insert_events(session, &self.events).await
    }
}
