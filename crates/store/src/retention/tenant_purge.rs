//! Removing a deleted tenant in bounded slices. Nothing refers to its blobs then, so they are removed, too.

use postway_domain::TenantId;

use crate::{
    error::StoreError,
    inbound,
    journal::suppression_changes,
    record::ChangeResult,
    retention::{message_parts::remove_suppression_changes, remove_parts},
    sql::{Row, SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

const SLICE: SqlText = SqlText::same("SELECT uid FROM message WHERE tenant = ? ORDER BY uid LIMIT ?");
const IS_DELETED: SqlText = SqlText::same("SELECT id FROM tenant WHERE id = ? AND deleted_at IS NOT NULL");
static KEYS: MultiRow = MultiRow::new("DELETE FROM dedup WHERE uid IN (", 1, ")");
/// Tables that may have as many rows as there are messages and are found by tenant only: the statement that
/// selects a slice, and the deletion, which takes the last selected column as a list, after the others.
static OF_TENANT_MANY: [(SqlText, MultiRow); 16] = [
    (
        SqlText::same("SELECT first_uid FROM text_block WHERE tenant = ? ORDER BY first_uid LIMIT ?"),
        MultiRow::new("DELETE FROM text_block WHERE tenant = ? AND first_uid IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT tag, uid FROM tag WHERE tenant = ? ORDER BY tag, uid LIMIT ?"),
        MultiRow::new("DELETE FROM tag WHERE tenant = ? AND tag = ? AND uid IN (", 1, ")"),
    ),
    (
        SqlText::or_mysql(
            "SELECT kind, key FROM dedup WHERE tenant = ? ORDER BY kind, key LIMIT ?",
            "SELECT kind, `key` FROM dedup WHERE tenant = ? ORDER BY kind, `key` LIMIT ?",
        ),
        MultiRow::new("DELETE FROM dedup WHERE tenant = ? AND kind = ? AND dedup.key IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT name FROM collapse WHERE tenant = ? ORDER BY name LIMIT ?"),
        MultiRow::new("DELETE FROM collapse WHERE tenant = ? AND name IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT address FROM suppression WHERE tenant = ? ORDER BY address LIMIT ?"),
        MultiRow::new("DELETE FROM suppression WHERE tenant = ? AND address IN (", 1, ")"),
    ),
    (
        SqlText::same(
            "SELECT pattern, stream FROM scoped_suppression WHERE tenant = ? ORDER BY pattern, stream LIMIT ?",
        ),
        MultiRow::new(
            "DELETE FROM scoped_suppression WHERE tenant = ? AND pattern = ? AND stream IN (",
            1,
            ")",
        ),
    ),
    (
        SqlText::same("SELECT id FROM known_recipient WHERE tenant = ? ORDER BY id LIMIT ?"),
        MultiRow::new("DELETE FROM known_recipient WHERE tenant = ? AND id IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT name, version FROM template WHERE tenant = ? ORDER BY name, version LIMIT ?"),
        MultiRow::new("DELETE FROM template WHERE tenant = ? AND name = ? AND version IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT id FROM journal WHERE tenant = ? LIMIT ?"),
        MultiRow::new("DELETE FROM journal WHERE tenant = ? AND id IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT account, hour FROM statistic WHERE tenant = ? ORDER BY account, hour LIMIT ?"),
        MultiRow::new("DELETE FROM statistic WHERE tenant = ? AND account = ? AND hour IN (", 1, ")"),
    ),
    (
        SqlText::same(
            "SELECT stream, hour FROM stream_statistic WHERE tenant = ? ORDER BY stream, hour LIMIT ?",
        ),
        MultiRow::new("DELETE FROM stream_statistic WHERE tenant = ? AND stream = ? AND hour IN (", 1, ")"),
    ),
    (
        SqlText::same(
            "SELECT mailbox, digest FROM inbound_seen WHERE tenant = ? ORDER BY mailbox, digest LIMIT ?",
        ),
        MultiRow::new("DELETE FROM inbound_seen WHERE tenant = ? AND mailbox = ? AND digest IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT uid FROM provider_event WHERE tenant = ? ORDER BY uid LIMIT ?"),
        MultiRow::new("DELETE FROM provider_event WHERE tenant = ? AND uid IN (", 1, ")"),
    ),
    (
        SqlText::same(
            "SELECT domain, digest FROM domain_report WHERE tenant = ? ORDER BY domain, digest LIMIT ?",
        ),
        MultiRow::new("DELETE FROM domain_report WHERE tenant = ? AND domain = ? AND digest IN (", 1, ")"),
    ),
    (
        SqlText::same(
            "SELECT domain, day FROM domain_report_line WHERE tenant = ? ORDER BY domain, day LIMIT ?",
        ),
        MultiRow::new("DELETE FROM domain_report_line WHERE tenant = ? AND domain = ? AND day IN (", 1, ")"),
    ),
    (
        SqlText::same("SELECT id FROM contact WHERE tenant = ? ORDER BY id LIMIT ?"),
        MultiRow::new("DELETE FROM contact WHERE tenant = ? AND id IN (", 1, ")"),
    ),
];
const OF_TENANT: [SqlText; 21] = [
    // What is archived lies outside the database: its rows stay until it is deleted there.
    SqlText::same("UPDATE archived_mail SET expires_at = 0 WHERE tenant = ?"),
    SqlText::same("DELETE FROM quota_use WHERE tenant = ?"),
    SqlText::same("DELETE FROM provider_hook WHERE tenant = ?"),
    SqlText::same("DELETE FROM bulk_action WHERE tenant = ?"),
    SqlText::same("DELETE FROM domain_check WHERE tenant = ?"),
    SqlText::same("DELETE FROM stream WHERE tenant = ?"),
    SqlText::same("DELETE FROM route WHERE tenant = ?"),
    SqlText::same("DELETE FROM oauth_state WHERE tenant = ?"),
    SqlText::same("DELETE FROM pace WHERE tenant = ?"),
    SqlText::same("DELETE FROM notification WHERE tenant = ?"),
    SqlText::same("DELETE FROM subscriber WHERE tenant = ?"),
    SqlText::same("DELETE FROM dkim_key WHERE tenant = ?"),
    SqlText::same("DELETE FROM rule WHERE tenant = ?"),
    SqlText::same("DELETE FROM mailbox WHERE tenant = ?"),
    SqlText::same("DELETE FROM mailbox_state WHERE tenant = ?"),
    SqlText::same("DELETE FROM tally WHERE tenant = ?"),
    SqlText::same("DELETE FROM spent WHERE tenant = ?"),
    SqlText::same("DELETE FROM circuit WHERE tenant = ?"),
    SqlText::same("DELETE FROM suspension WHERE tenant = ?"),
    SqlText::same("DELETE FROM api_key WHERE tenant = ?"),
    SqlText::same("DELETE FROM account WHERE tenant = ?"),
];

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    let many = OF_TENANT_MANY.iter().flat_map(|(slice, delete)| [*slice, delete.sample().into()]);
    [SLICE, IS_DELETED, KEYS.sample().into()].into_iter().chain(OF_TENANT).chain(many).collect()
}

/// Removes a slice, and when no slice is left, the remaining rows. [`ChangeResult::Done`] while there may be
/// more. The tenant's own row stays, because the name was used, and so does the audit log. Its lanes are
/// removed later, as all lanes without messages are.
pub(crate) async fn purge(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    limit: u32,
) -> Result<ChangeResult, StoreError> {
    if session.rows(IS_DELETED, values![tenant.as_str()]).await?.is_empty() {
        return Ok(ChangeResult::Missing);
    }
    let rows = session.rows(SLICE, values![tenant.as_str(), limit]).await?;
    let uids: Vec<[u8; 16]> = rows.iter().map(|row| row.id16(0)).collect::<Result<_, _>>()?;
    for (sql, run) in KEYS.runs(&uids) {
        session.execute(sql.into(), run.iter().map(Value::from).collect()).await?;
    }
    remove_parts(session, &uids).await?;
    if !uids.is_empty() || inbound::tenant_slice(session, tenant.as_str(), limit).await? > 0 {
        return Ok(ChangeResult::Done);
    }
    let changes = suppression_changes::of_tenant(session, tenant, limit).await?;
    if !changes.is_empty() {
        remove_suppression_changes(session, &changes).await?;
        return Ok(ChangeResult::Done);
    }
    for (slice, delete) in &OF_TENANT_MANY {
        let rows = session.rows(*slice, values![tenant.as_str(), limit]).await?;
        for (group, ids) in grouped(&rows) {
            for (sql, run) in delete.runs(&ids) {
                let place = [values![tenant.as_str()], group.to_vec(), run.to_vec()];
                session.execute(sql.into(), place.concat()).await?;
            }
        }
        if !rows.is_empty() {
            return Ok(ChangeResult::Done);
        }
    }
    for sql in OF_TENANT {
        session.execute(sql, values![tenant.as_str()]).await?;
    }
    Ok(ChangeResult::Already)
}

/// The last values of rows, grouped by the values before them.
fn grouped(rows: &[Row]) -> Vec<(&[Value], Vec<Value>)> {
    let mut groups: Vec<(&[Value], Vec<Value>)> = Vec::new();
    for (id, group) in rows.iter().filter_map(|row| row.values.split_last()) {
        match groups.last_mut() {
            Some((of, ids)) if *of == group => ids.push(id.clone()),
            _ => groups.push((group, vec![id.clone()])),
        }
    }
    groups
}
