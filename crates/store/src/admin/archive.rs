//! The list of what tenants' archives hold, and how much waits for them.

use postway_domain::{MessageUid, Subscriber, TenantId, Time};

use crate::{
    error::StoreError,
    record::{ArchiveBacklog, ArchiveFilter, ArchivedMail, ChangeResult},
    sql::{Row, SqlSession, SqlText, values, was_there},
};

macro_rules! put {
    ($end:literal) => {
        concat!(
            "INSERT INTO archived_mail (tenant, uid, path, size, digest, is_sealed, archived_at, expires_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, uid, path, size, digest, is_sealed, archived_at, expires_at FROM archived_mail ",
            $end
        )
    };
}

const PUT: SqlText = SqlText::or_mysql(
    put!(
        " ON CONFLICT (tenant, uid) DO UPDATE SET path = excluded.path, size = excluded.size, digest = excluded.digest, \
         is_sealed = excluded.is_sealed, archived_at = excluded.archived_at, expires_at = excluded.expires_at"
    ),
    put!(
        " ON DUPLICATE KEY UPDATE path = VALUES(path), size = VALUES(size), digest = VALUES(digest), \
         is_sealed = VALUES(is_sealed), archived_at = VALUES(archived_at), expires_at = VALUES(expires_at)"
    ),
);
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND uid = ?"));
const LIST: SqlText =
    SqlText::same(select!("WHERE tenant = ? AND uid >= ? AND uid < ? ORDER BY uid DESC LIMIT ?"));
const EXPIRED: SqlText =
    SqlText::same(select!("WHERE expires_at <= ? ORDER BY expires_at, tenant, uid LIMIT ?"));
const REMOVE: SqlText =
    SqlText::same("DELETE FROM archived_mail WHERE tenant = ? AND uid = ? AND digest = ?");
const KEEPERS: SqlText =
    SqlText::same("SELECT tenant FROM subscriber WHERE id = ? AND deleted = 0 ORDER BY tenant");
/// Open notifications are those in states below the first settled one; their index begins with the time at
/// which they are due, which a leased one does not have.
const WAITING: SqlText = SqlText::same(
    "SELECT COUNT(*), MIN(w.created_at) FROM (SELECT created_at FROM notification WHERE tenant = ? AND subscriber = ? \
     AND due_at IS NOT NULL ORDER BY due_at LIMIT ?) w",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[PUT, FIND, LIST, EXPIRED, REMOVE, KEEPERS, WAITING];

/// Notes a copy. A repeat, after a crash between writing it and noting it, replaces the note.
pub(crate) async fn put(
    session: &mut dyn SqlSession,
    mail: &ArchivedMail,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        mail.tenant.as_str(),
        mail.uid.as_bytes(),
        mail.path.as_str(),
        i64::try_from(mail.size).unwrap_or(i64::MAX),
        &mail.digest,
        i64::from(mail.is_sealed),
        mail.archived_at,
        mail.expires_at,
    ];
    session.execute(PUT, values).await.map(|_| ChangeResult::Done)
}

/// Forgets a copy that was deleted, unless it was stored again meanwhile.
pub(crate) async fn forget(
    session: &mut dyn SqlSession,
    mail: &ArchivedMail,
) -> Result<ChangeResult, StoreError> {
    let values = values![mail.tenant.as_str(), mail.uid.as_bytes(), &mail.digest];
    session.execute(REMOVE, values).await.map(was_there)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<ArchivedMail>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), uid.as_bytes()]).await?.first().map(read).transpose()
}

/// The lowest id of a filter, and the id below which all of it lies.
pub(crate) fn range(filter: &ArchiveFilter, before: Option<MessageUid>) -> (MessageUid, MessageUid) {
    let first = filter.since.map_or(MessageUid::from_bytes([0; 16]), MessageUid::first_at);
    let end = filter.until.map_or(MessageUid::from_bytes([0xff; 16]), MessageUid::first_at);
    (first, before.map_or(end, |before| before.min(end)))
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    filter: &ArchiveFilter,
    before: Option<MessageUid>,
    limit: u32,
) -> Result<Vec<ArchivedMail>, StoreError> {
    let (first, end) = range(filter, before);
    let values = values![tenant.as_str(), first.as_bytes(), end.as_bytes(), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

pub(crate) async fn expired(
    session: &mut dyn SqlSession,
    now: Time,
    limit: u32,
) -> Result<Vec<ArchivedMail>, StoreError> {
    session.rows(EXPIRED, values![now, limit]).await?.iter().map(read).collect()
}

pub(crate) async fn backlog(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<ArchiveBacklog>, StoreError> {
    let mut found = Vec::new();
    for keeper in session.rows(KEEPERS, values![Subscriber::ARCHIVE]).await? {
        let of: TenantId = keeper.parsed(0)?;
        if tenant.is_some_and(|tenant| *tenant != of) {
            continue;
        }
        let values = values![of.as_str(), Subscriber::ARCHIVE, ArchiveBacklog::COUNTED_MAX];
        let rows = session.rows(WAITING, values).await?;
        let Some(row) = rows.first() else { continue };
        found.push(ArchiveBacklog { tenant: of, waiting: row.int(0)?, oldest: row.opt_time(1)? });
    }
    Ok(found)
}

fn read(row: &Row) -> Result<ArchivedMail, StoreError> {
    Ok(ArchivedMail {
        tenant: row.parsed(0)?,
        uid: MessageUid::from_bytes(row.id16(1)?),
        path: row.text(2)?.to_owned(),
        size: u64::try_from(row.int(3)?).unwrap_or_default(),
        digest: row.id32(4)?,
        is_sealed: row.int(5)? != 0,
        archived_at: row.time(6)?,
        expires_at: row.opt_time(7)?,
    })
}
