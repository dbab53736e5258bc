//! What is left of a deleted tenant, removed in bounded slices.

use postway_domain::TenantId;

use crate::{
    error::StoreError,
    record::Changed,
    rows::Multi,
    sql::{Session, Sql, Value, values},
};

const SLICE: Sql = Sql::same("SELECT uid FROM message WHERE tenant = ? ORDER BY uid LIMIT ?");
const IS_DELETED: Sql = Sql::same("SELECT id FROM tenant WHERE id = ? AND deleted_at IS NOT NULL");
static OF_MESSAGE: [Multi; 6] = [
    Multi::new("DELETE FROM content WHERE uid IN (", 1, ")"),
    Multi::new("DELETE FROM recipient WHERE uid IN (", 1, ")"),
    Multi::new("DELETE FROM event WHERE uid IN (", 1, ")"),
    Multi::new("DELETE FROM attempt WHERE uid IN (", 1, ")"),
    Multi::new("DELETE FROM dedup WHERE uid IN (", 1, ")"),
    // Last: what has a message has all of it.
    Multi::new("DELETE FROM message WHERE uid IN (", 1, ")"),
];
const OF_TENANT: [Sql; 10] = [
    Sql::same("DELETE FROM tag WHERE tenant = ?"),
    Sql::same("DELETE FROM dedup WHERE tenant = ?"),
    Sql::same("DELETE FROM tally WHERE tenant = ?"),
    Sql::same("DELETE FROM collapse WHERE tenant = ?"),
    Sql::same("DELETE FROM spent WHERE tenant = ?"),
    Sql::same("DELETE FROM circuit WHERE tenant = ?"),
    Sql::same("DELETE FROM suppression WHERE tenant = ?"),
    Sql::same("DELETE FROM suspension WHERE tenant = ?"),
    Sql::same("DELETE FROM api_key WHERE tenant = ?"),
    Sql::same("DELETE FROM account WHERE tenant = ?"),
];
#[cfg(test)]
pub(super) const STATEMENTS: &[Sql] = &[SLICE, IS_DELETED];

/// Removes a slice of messages; when there are none left, the rest. [`Changed::Done`] while there may be more. The
/// tenant's own row stays as a sign that the name was used, and so do its lanes, which other nodes may remember.
pub(super) async fn purge(
    session: &mut dyn Session,
    tenant: &TenantId,
    limit: u32,
) -> Result<Changed, StoreError> {
    if session.rows(IS_DELETED, values![tenant.as_str()]).await?.is_empty() {
        return Ok(Changed::Missing);
    }
    let rows = session.rows(SLICE, values![tenant.as_str(), limit]).await?;
    let uids: Vec<[u8; 16]> = rows.iter().map(|row| row.id16(0)).collect::<Result<_, _>>()?;
    for table in &OF_MESSAGE {
        for (sql, run) in table.runs(&uids) {
            let values = run.iter().map(Value::from).collect();
            session.execute(sql.into(), values).await?;
        }
    }
    if !uids.is_empty() {
        return Ok(Changed::Done);
    }
    for sql in OF_TENANT {
        session.execute(sql, values![tenant.as_str()]).await?;
    }
    Ok(Changed::Already)
}
