//! Removing inbound mail with all that belongs to it.

use crate::{
    error::StoreError,
    record::MailboxKey,
    sql::{SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

use super::mailboxes::key_of;

/// The most mails removed in one transaction.
const MAILS_AT_ONCE: u32 = 500;
/// The most digests removed in one transaction.
const DIGESTS_AT_ONCE: u32 = 5_000;

static PARTS: [MultiRow; 5] = [
    MultiRow::new("DELETE FROM inbound_body WHERE uid IN (", 1, ")"),
    MultiRow::new("DELETE FROM inbound_message WHERE uid IN (", 1, ")"),
    MultiRow::new("DELETE FROM event WHERE uid IN (", 1, ")"),
    MultiRow::new("DELETE FROM notification WHERE uid IN (", 1, ")"),
    // Last: as long as a mail exists, all its parts exist.
    MultiRow::new("DELETE FROM inbound WHERE uid IN (", 1, ")"),
];
pub(crate) const OF_MAILBOX: SqlText =
    SqlText::same("SELECT uid FROM inbound WHERE tenant = ? AND mailbox = ? ORDER BY uid LIMIT ?");
pub(crate) const OF_TENANT: SqlText =
    SqlText::same("SELECT uid FROM inbound WHERE tenant = ? ORDER BY uid LIMIT ?");
const SEEN: SqlText =
    SqlText::same("SELECT digest FROM inbound_seen WHERE tenant = ? AND mailbox = ? LIMIT ?");
static FORGET_SEEN: MultiRow =
    MultiRow::new("DELETE FROM inbound_seen WHERE tenant = ? AND mailbox = ? AND digest IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    let multi = PARTS.iter().chain([&FORGET_SEEN]).map(|multi| multi.sample().into());
    [OF_MAILBOX, OF_TENANT, SEEN].into_iter().chain(multi).collect()
}

/// Removes these mails. Their digests stay with the mailbox.
pub(crate) async fn mails(session: &mut dyn SqlSession, uids: &[[u8; 16]]) -> Result<(), StoreError> {
    for table in &PARTS {
        for (sql, run) in table.runs(uids) {
            session.execute(sql.into(), run.iter().map(Value::from).collect()).await?;
        }
    }
    Ok(())
}

/// Removes some of a tenant's mail. Returns the number of mails.
pub(crate) async fn tenant_slice(
    session: &mut dyn SqlSession,
    tenant: &str,
    limit: u32,
) -> Result<usize, StoreError> {
    let rows = session.rows(OF_TENANT, values![tenant, limit]).await?;
    let uids: Vec<[u8; 16]> = rows.iter().map(|row| row.id16(0)).collect::<Result<_, _>>()?;
    mails(session, &uids).await?;
    Ok(uids.len())
}

/// Removes some mail and digests of a mailbox. Returns whether nothing is left.
pub(crate) async fn mailbox_slice(
    session: &mut dyn SqlSession,
    key: &MailboxKey,
) -> Result<bool, StoreError> {
    let rows = session.rows(OF_MAILBOX, [key_of(key), values![MAILS_AT_ONCE]].concat()).await?;
    let uids: Vec<[u8; 16]> = rows.iter().map(|row| row.id16(0)).collect::<Result<_, _>>()?;
    mails(session, &uids).await?;
    if uids.len() == MAILS_AT_ONCE as usize {
        return Ok(false);
    }
    let rows = session.rows(SEEN, [key_of(key), values![DIGESTS_AT_ONCE]].concat()).await?;
    let digests: Vec<[u8; 32]> = rows.iter().map(|row| row.id32(0)).collect::<Result<_, _>>()?;
    for (sql, run) in FORGET_SEEN.runs(&digests) {
        let place = [key_of(key), run.iter().map(Value::from).collect()].concat();
        session.execute(sql.into(), place).await?;
    }
    Ok(digests.len() < DIGESTS_AT_ONCE as usize)
}
