//! The audit log, as a chain: each line has the next position and a digest of itself and of the line before.
//!
//! One row, the head, has the last position and its digest. Who writes a line moves it first and holds it
//! until the commit, so lines of several nodes stand in one order, without a gap, and a reader who sees a
//! position can see all before it. Writing a line is rare, so waiting for that row costs nothing.

use postway_domain::{TenantId, Time, id::AuditId};

use crate::{
    error::StoreError,
    record::{AuditEntry, AuditHead, AuditLine, ChangeResult},
    sql::{Row, SqlSession, SqlText, values, without_nul},
};

macro_rules! select {
    ($end:literal) => {
        concat!("SELECT id, at, actor, tenant, action, target, request_id, detail, salt FROM audit ", $end)
    };
}

const MOVE_HEAD: SqlText = SqlText::same("UPDATE audit_head SET position = position + 1 WHERE id = 1");
const HEAD: SqlText = SqlText::same("SELECT position, digest, trimmed FROM audit_head WHERE id = 1");
const WRITE_HEAD: SqlText = SqlText::same("UPDATE audit_head SET digest = ? WHERE id = 1");
const INSERT: SqlText = SqlText::same(
    "INSERT INTO audit (id, at, actor, tenant, action, target, request_id, detail, salt, position, previous, digest, \
     target_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const ALL: SqlText = SqlText::same(select!("WHERE id < ? ORDER BY id DESC LIMIT ?"));
const OF_TENANT: SqlText = SqlText::same(select!("WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?"));
const LINES: SqlText = SqlText::same(
    "SELECT id, at, actor, tenant, action, target, request_id, detail, salt, position, previous, digest, target_digest \
     FROM audit WHERE position > ? ORDER BY position LIMIT ?",
);
const REDACT: SqlText = SqlText::same(
    "UPDATE audit SET target = ?, salt = NULL WHERE tenant = ? AND target = ? AND action LIKE 'suppression.%'",
);
/// Lines of older versions, which stand outside the chain, in the order of ids, which is that of their times.
const TRIM_UNCHAINED: SqlText = SqlText::of_each(
    "DELETE FROM audit WHERE id IN \
     (SELECT id FROM audit WHERE id < ? AND position IS NULL ORDER BY id LIMIT ?)",
    "DELETE FROM audit WHERE id = ANY \
     (ARRAY(SELECT id FROM audit WHERE id < ? AND position IS NULL ORDER BY id LIMIT ?))",
    "DELETE FROM audit WHERE id < ? AND position IS NULL ORDER BY id LIMIT ?",
);
const OLDEST: SqlText =
    SqlText::same("SELECT position, at FROM audit WHERE position IS NOT NULL ORDER BY position LIMIT ?");
const TRIM: SqlText = SqlText::same("DELETE FROM audit WHERE position <= ?");
const NOTE_TRIM: SqlText = SqlText::same("UPDATE audit_head SET trimmed = ? WHERE id = 1");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[
    MOVE_HEAD,
    HEAD,
    WRITE_HEAD,
    INSERT,
    ALL,
    OF_TENANT,
    LINES,
    REDACT,
    TRIM_UNCHAINED,
    OLDEST,
    TRIM,
    NOTE_TRIM,
];

/// Writes an entry as the next line of the chain.
pub(crate) async fn insert(session: &mut dyn SqlSession, entry: &AuditEntry) -> Result<(), StoreError> {
    session.execute(MOVE_HEAD, values![]).await?;
    let head = head(session).await?;
    let AuditLine { entry, position, previous, digest, target_digest } =
        as_stored(entry).into_line(head.position - 1, head.digest);
    let values = values![
        entry.id.as_bytes(),
        entry.at,
        entry.actor,
        entry.tenant.as_ref().map(|id| id.as_str()),
        entry.action,
        entry.target,
        entry.request_id,
        entry.detail,
        entry.salt.map(|salt| salt.to_vec()),
        position,
        &previous,
        &digest,
        &target_digest,
    ];
    session.execute(INSERT, values).await?;
    session.execute(WRITE_HEAD, values![&digest]).await.map(drop)
}

/// The entry as every database keeps it: what is digested must be what is read back.
fn as_stored(entry: &AuditEntry) -> AuditEntry {
    AuditEntry {
        actor: without_nul(entry.actor.clone()),
        action: without_nul(entry.action.clone()),
        target: without_nul(entry.target.clone()),
        request_id: entry.request_id.clone().map(without_nul),
        detail: entry.detail.clone().map(without_nul),
        salt: Some(entry.salt.unwrap_or_default()),
        ..entry.clone()
    }
}

/// Where the chain begins and ends.
pub(crate) async fn head(session: &mut dyn SqlSession) -> Result<AuditHead, StoreError> {
    let rows = session.rows(HEAD, values![]).await?;
    let lost = || StoreError::Unexpected("the head of the audit log is lost: table audit_head, id 1".into());
    let row = rows.first().ok_or_else(lost)?;
    Ok(AuditHead { position: row.int(0)?, digest: row.id32(1)?, trimmed: row.int(2)? })
}

/// Lines in their order, after the position `after`.
pub(crate) async fn lines(
    session: &mut dyn SqlSession,
    after: i64,
    limit: u32,
) -> Result<Vec<AuditLine>, StoreError> {
    let rows = session.rows(LINES, values![after, limit]).await?;
    let line = |row: &Row| {
        Ok(AuditLine {
            entry: read(row)?,
            position: row.int(9)?,
            previous: row.id32(10)?,
            digest: row.id32(11)?,
            target_digest: row.id32(12)?,
        })
    };
    rows.iter().map(line).collect()
}

/// Reads all entries of the tenant. That is rare, and they are few compared to its mail.
pub(crate) async fn redact(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    target: &str,
    digest: &str,
) -> Result<ChangeResult, StoreError> {
    session.execute(REDACT, values![digest, tenant.as_str(), target]).await.map(|_| ChangeResult::Done)
}

/// Removes at most `limit` of the oldest entries that are older than `before`, and notes up to where the chain
/// was cut: what is left is verified from its first line. Returns the number of entries.
pub(crate) async fn trim(
    session: &mut dyn SqlSession,
    before: Time,
    limit: u32,
) -> Result<usize, StoreError> {
    let values = values![AuditId::first_at(before).as_bytes(), limit];
    let unchained = session.execute(TRIM_UNCHAINED, values).await?;
    let left = u64::from(limit).saturating_sub(unchained);
    let oldest = session.rows(OLDEST, values![u32::try_from(left).unwrap_or(limit)]).await?;
    let mut cut = None;
    for row in &oldest {
        // A line stays until all lines before it are old: clocks of nodes differ, and the chain has no gap.
        if row.time(1)? >= before {
            break;
        }
        cut = Some(row.int(0)?);
    }
    let Some(cut) = cut else { return Ok(usize::try_from(unchained).unwrap_or(usize::MAX)) };
    session.execute(NOTE_TRIM, values![cut]).await?;
    let trimmed = unchained + session.execute(TRIM, values![cut]).await?;
    Ok(usize::try_from(trimmed).unwrap_or(usize::MAX))
}

/// Lists entries, the newest first.
pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
    before: Option<AuditId>,
    limit: u32,
) -> Result<Vec<AuditEntry>, StoreError> {
    let before = before.unwrap_or(AuditId::from_bytes([0xff; 16]));
    let rows = match tenant {
        Some(tenant) => session.rows(OF_TENANT, values![tenant.as_str(), before.as_bytes(), limit]).await?,
        None => session.rows(ALL, values![before.as_bytes(), limit]).await?,
    };
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<AuditEntry, StoreError> {
    let owned = |text: &str| text.to_owned();
    Ok(AuditEntry {
        id: AuditId::from_bytes(row.id16(0)?),
        at: row.time(1)?,
        actor: row.text(2)?.to_owned(),
        tenant: row.opt_parsed(3)?,
        action: row.text(4)?.to_owned(),
        target: row.text(5)?.to_owned(),
        request_id: row.opt_text(6)?.map(owned),
        detail: row.opt_text(7)?.map(owned),
        salt: row.opt_bytes(8)?.and_then(|salt| salt.try_into().ok()),
    })
}
