//! The events of changed suppression lists. They belong to no message, so each has an id of its own and no
//! lane.
//!
//! Nothing else refers to these ids. The table `suppression_change` says whose they are, which address they
//! name, and when they are old enough to go.

use std::collections::BTreeMap;

use postway_domain::{EmailAddress, LaneId, MessageState, MessageUid, TenantId, Time};

use super::{AppendedEvent, EventJournal, history};
use crate::{
    error::StoreError,
    record::SuppressionListChange,
    sql::{SqlSession, SqlText, values},
};

/// How long the events of such changes are kept.
pub(crate) const CHANGES_LAST_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
/// The most that are removed at once.
const REMOVED_MAX: u32 = 2_000;

const INSERT: SqlText = SqlText::or_mysql(
    "INSERT INTO suppression_change (uid, tenant, pattern, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO suppression_change (uid, tenant, pattern, at) VALUES (?, ?, ?, ?)",
);
pub(crate) const OLD: SqlText =
    SqlText::same("SELECT uid FROM suppression_change WHERE at < ? ORDER BY at LIMIT ?");
pub(crate) const OF_PATTERN: SqlText =
    SqlText::same("SELECT uid FROM suppression_change WHERE tenant = ? AND pattern = ? LIMIT ?");
const OF_TENANT: SqlText = SqlText::same("SELECT uid FROM suppression_change WHERE tenant = ? LIMIT ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[INSERT, OLD, OF_PATTERN, OF_TENANT];

/// The lane of events that belong to no message: no account is counted for them.
pub(crate) fn no_lane() -> LaneId {
    LaneId::from_bytes([0; 16])
}

/// Writes the events of these changes. A change that was written before is left out.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    changes: &[SuppressionListChange],
) -> Result<(), StoreError> {
    // In the order of ids, so that two transactions lock them in the same order.
    let changes: BTreeMap<MessageUid, &SuppressionListChange> =
        changes.iter().map(|change| (change.uid(), change)).collect();
    let mut events = Vec::with_capacity(changes.len());
    for (uid, change) in changes {
        let values = values![uid.as_bytes(), change.tenant.as_str(), change.pattern.as_str(), change.at];
        if session.insert(INSERT, values).await? {
            let (seq, at, kind) = (1, change.at, change.kind());
            let happening = AppendedEvent { uid, seq, at, kind, to: MessageState::Sent };
            journal.note(&change.tenant, no_lane(), happening);
            events.push((uid, seq, at, change.event()));
        }
    }
    history::insert_events(session, &events).await
}

/// The ids of changes that are old enough to go.
pub(crate) async fn old(session: &mut dyn SqlSession, now: Time) -> Result<Vec<[u8; 16]>, StoreError> {
    let before = Time::from_millis(now.as_millis() - CHANGES_LAST_MS);
    let rows = session.rows(OLD, values![before, REMOVED_MAX]).await?;
    rows.iter().map(|row| row.id16(0)).collect()
}

/// The ids of some changes that name this address.
pub(crate) async fn of_address(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
    limit: u32,
) -> Result<Vec<[u8; 16]>, StoreError> {
    let mut found = Vec::new();
    for spelling in EmailAddress::spellings_of(&address.to_ascii_lowercase()) {
        let rows = session.rows(OF_PATTERN, values![tenant.as_str(), spelling.as_str(), limit]).await?;
        for row in &rows {
            found.push(row.id16(0)?);
        }
    }
    Ok(found)
}

/// The ids of some changes of this tenant.
pub(crate) async fn of_tenant(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<[u8; 16]>, StoreError> {
    let rows = session.rows(OF_TENANT, values![tenant.as_str(), limit]).await?;
    rows.iter().map(|row| row.id16(0)).collect()
}
