//! How far each mailbox was read, and the result of the last poll.
//!
//! The cursor has its own row, because it changes with every page. The row is also the fence of a mailbox:
//! registering a page locks it first.

use postway_domain::{TenantId, inbound::FolderCursor};

use super::mailboxes::key_of;
use crate::{
    error::StoreError,
    record::{MailboxKey, MailboxNote, MailboxState},
    sql::{Row, SqlSession, SqlText, values},
};

macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, mailbox, uid_validity, last_uid, not_before, old_through, uid_next, scanned_at, error, ",
            "error_since ",
            "FROM mailbox_state WHERE deleted = 0",
            $end
        )
    };
}

const NOTE_DONE: SqlText = SqlText::same(
    "UPDATE mailbox_state SET uid_next = COALESCE(?, uid_next), scanned_at = ?, error = NULL, error_since = NULL \
     WHERE tenant = ? AND mailbox = ? AND deleted = 0",
);
const NOTE_ERROR: SqlText = SqlText::same(
    "UPDATE mailbox_state SET uid_next = COALESCE(?, uid_next), error = ?, error_since = COALESCE(error_since, ?) \
     WHERE tenant = ? AND mailbox = ? AND deleted = 0",
);
const FIND: SqlText = SqlText::same(select!(" AND tenant = ? AND mailbox = ?"));
const OF_TENANT: SqlText = SqlText::same(select!(" AND tenant = ? ORDER BY mailbox"));
const ALL: SqlText = SqlText::same(select!(
    " AND tenant IN (SELECT t.id FROM tenant t WHERE t.deleted_at IS NULL) ORDER BY tenant, mailbox"
));
const LOCK: SqlText = SqlText::of_each(
    select!(" AND tenant = ? AND mailbox = ?"),
    select!(" AND tenant = ? AND mailbox = ? FOR UPDATE"),
    select!(" AND tenant = ? AND mailbox = ? FOR UPDATE"),
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[NOTE_DONE, NOTE_ERROR, FIND, OF_TENANT, ALL, LOCK];

/// Records the result of a poll.
pub(crate) async fn note(session: &mut dyn SqlSession, note: &MailboxNote) -> Result<(), StoreError> {
    let (sql, said) = match &note.error {
        None => (NOTE_DONE, values![note.uid_next, note.at]),
        Some(error) => (NOTE_ERROR, values![note.uid_next, error.as_str(), note.at]),
    };
    session.execute(sql, [said, key_of(&note.key)].concat()).await.map(drop)
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<MailboxState>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
        None => session.rows(ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    key: &MailboxKey,
) -> Result<Option<MailboxState>, StoreError> {
    session.rows(FIND, key_of(key)).await?.first().map(read).transpose()
}

/// The cursor, locked until the transaction ends. `None` if the mailbox was deleted.
pub(crate) async fn lock(
    session: &mut dyn SqlSession,
    key: &MailboxKey,
) -> Result<Option<MailboxState>, StoreError> {
    session.rows(LOCK, key_of(key)).await?.first().map(read).transpose()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<MailboxState, StoreError> {
    let cursor = match (row.opt_u32(2)?, row.opt_u32(3)?, row.opt_u32(5)?) {
        (Some(uid_validity), Some(last_uid), Some(old_through)) => {
            Some(FolderCursor { uid_validity, last_uid, not_before: row.opt_time(4)?, old_through })
        }
        _ => None,
    };
    Ok(MailboxState {
        key: MailboxKey { tenant: row.parsed(0)?, mailbox: row.parsed(1)? },
        cursor,
        uid_next: row.opt_u32(6)?,
        scanned_at: row.opt_time(7)?,
        error: row.opt_string(8)?,
        error_since: row.opt_time(9)?,
    })
}
