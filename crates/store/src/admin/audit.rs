//! The audit log.

use postway_domain::{TenantId, Time, id::AuditId};

use crate::{
    error::StoreError,
    record::{AuditEntry, ChangeResult},
    sql::{Row, SqlSession, SqlText, values},
};

const INSERT: SqlText = SqlText::same(
    "INSERT INTO audit (id, at, actor, tenant, action, target, request_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
);
const ALL: SqlText = SqlText::same(
    "SELECT id, at, actor, tenant, action, target, request_id, detail FROM audit WHERE id < ? \
     ORDER BY id DESC LIMIT ?",
);
const OF_TENANT: SqlText = SqlText::same(
    "SELECT id, at, actor, tenant, action, target, request_id, detail FROM audit WHERE tenant = ? AND id < ? \
     ORDER BY id DESC LIMIT ?",
);
const REDACT: SqlText = SqlText::same(
    "UPDATE audit SET target = ? WHERE tenant = ? AND target = ? AND action LIKE 'suppression.%'",
);
/// In the order of ids, which is the order of their times.
const TRIM: SqlText = SqlText::of_each(
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ?)",
    "DELETE FROM audit WHERE id = ANY (ARRAY(SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ?))",
    "DELETE FROM audit WHERE id < ? ORDER BY id LIMIT ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[INSERT, ALL, OF_TENANT, REDACT, TRIM];

pub(crate) async fn insert(session: &mut dyn SqlSession, entry: &AuditEntry) -> Result<(), StoreError> {
    let values = values![
        entry.id.as_bytes(),
        entry.at,
        entry.actor.as_str(),
        entry.tenant.as_ref().map(|id| id.as_str()),
        entry.action.as_str(),
        entry.target.as_str(),
        entry.request_id.as_deref(),
        entry.detail.as_deref(),
    ];
    session.execute(INSERT, values).await.map(drop)
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

/// Removes at most `limit` of the oldest entries that are older than `before`. Returns the number of entries.
pub(crate) async fn trim(
    session: &mut dyn SqlSession,
    before: Time,
    limit: u32,
) -> Result<usize, StoreError> {
    let trimmed = session.execute(TRIM, values![AuditId::first_at(before).as_bytes(), limit]).await?;
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
    })
}
