//! What the last check of each sending domain's DNS found.

use postway_domain::TenantId;

use crate::{
    error::StoreError,
    record::{ChangeResult, DomainCheckRecord},
    sql::{Row, SqlSession, SqlText, values, was_there},
};

const PUT: SqlText = SqlText::or_mysql(
    "INSERT INTO domain_check (tenant, domain, findings, checked_at, right_since) VALUES (?, ?, ?, ?, ?) \
     ON CONFLICT (tenant, domain) DO UPDATE SET findings = excluded.findings, checked_at = excluded.checked_at, \
     right_since = excluded.right_since",
    "INSERT INTO domain_check (tenant, domain, findings, checked_at, right_since) VALUES (?, ?, ?, ?, ?) \
     ON DUPLICATE KEY UPDATE findings = VALUES(findings), checked_at = VALUES(checked_at), \
     right_since = VALUES(right_since)",
);
const LIST: SqlText = SqlText::same(
    "SELECT tenant, domain, findings, checked_at, right_since FROM domain_check WHERE tenant = ? ORDER BY domain LIMIT ?",
);
const OLDEST: SqlText = SqlText::same(
    "SELECT tenant, domain, findings, checked_at, right_since FROM domain_check WHERE checked_at <= ? \
     ORDER BY checked_at, tenant, domain LIMIT ?",
);
const DELETE: SqlText = SqlText::same("DELETE FROM domain_check WHERE tenant = ? AND domain = ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[PUT, LIST, OLDEST, DELETE];

pub(crate) async fn put(
    session: &mut dyn SqlSession,
    check: &DomainCheckRecord,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        check.tenant.as_str(),
        check.domain.as_str(),
        check.findings.as_str(),
        check.checked_at,
        check.right_since,
    ];
    session.execute(PUT, values).await.map(|_| ChangeResult::Done)
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    domain: &str,
) -> Result<ChangeResult, StoreError> {
    session.execute(DELETE, values![tenant.as_str(), domain]).await.map(was_there)
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<DomainCheckRecord>, StoreError> {
    session.rows(LIST, values![tenant.as_str(), limit]).await?.iter().map(read).collect()
}

pub(crate) async fn oldest(
    session: &mut dyn SqlSession,
    before: postway_domain::Time,
    limit: u32,
) -> Result<Vec<DomainCheckRecord>, StoreError> {
    session.rows(OLDEST, values![before, limit]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<DomainCheckRecord, StoreError> {
    Ok(DomainCheckRecord {
        tenant: row.parsed(0)?,
        domain: row.text(1)?.to_owned(),
        findings: row.text(2)?.to_owned(),
        checked_at: row.time(3)?,
        right_since: row.opt_time(4)?,
    })
}
