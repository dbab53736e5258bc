//! Rules: what to do with the mail of a mailbox.

use postway_domain::{
    InboundRule, TenantId,
    id::{MailboxId, RuleId},
};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO rule (tenant, id, mailbox, position, active, content, version, created_at, updated_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, id, mailbox, position, active, content, version, created_at, updated_at FROM rule ",
            $end
        )
    };
}

/// Locked, so that the mailbox is not deleted in the meantime.
const MAILBOX: SqlText = SqlText::of_each(
    "SELECT deleted FROM mailbox_state WHERE tenant = ? AND mailbox = ? AND deleted = 0",
    "SELECT deleted FROM mailbox_state WHERE tenant = ? AND mailbox = ? AND deleted = 0 FOR UPDATE",
    "SELECT deleted FROM mailbox_state WHERE tenant = ? AND mailbox = ? AND deleted = 0 FOR UPDATE",
);
const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const UPDATE: SqlText = SqlText::same(
    "UPDATE rule SET mailbox = ?, position = ?, active = ?, content = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
/// Mail that failed keeps waiting.
const HASTEN: SqlText = SqlText::same(
    "UPDATE inbound SET due_at = ? WHERE tenant = ? AND mailbox = ? AND due_at > ? AND state = 5 AND tries = 0",
);
const DELETE: SqlText = SqlText::same("DELETE FROM rule WHERE tenant = ? AND id = ?");
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND id = ?"));
const OF_TENANT: SqlText = SqlText::same(select!("WHERE tenant = ? ORDER BY mailbox, position, id"));
const OF_MAILBOX: SqlText = SqlText::same(select!("WHERE tenant = ? AND mailbox = ? ORDER BY position, id"));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[MAILBOX, CREATE, UPDATE, HASTEN, DELETE, FIND, OF_TENANT, OF_MAILBOX];

fn content_json(rule: &InboundRule) -> Result<String, StoreError> {
    serde_json::to_string(&rule.content).map_err(|error| StoreError::Unexpected(error.to_string()))
}

async fn has_mailbox(session: &mut dyn SqlSession, rule: &InboundRule) -> Result<bool, StoreError> {
    Ok(!session.rows(MAILBOX, values![rule.tenant.as_str(), rule.mailbox.as_str()]).await?.is_empty())
}

/// Creates a rule; `Exists` if its id is taken, `Missing` if its mailbox does not exist.
pub(crate) async fn create(
    session: &mut dyn SqlSession,
    rule: &InboundRule,
) -> Result<ChangeResult, StoreError> {
    if !has_mailbox(session, rule).await? {
        return Ok(ChangeResult::Missing);
    }
    let values = values![
        rule.tenant.as_str(),
        rule.id.as_str(),
        rule.mailbox.as_str(),
        rule.position,
        i64::from(rule.active),
        content_json(rule)?,
        rule.version,
        rule.created_at,
        rule.updated_at,
    ];
    let made = session.insert(CREATE, values).await.map(is_new)?;
    if made == ChangeResult::Done {
        hasten(session, rule).await?;
    }
    Ok(made)
}

/// Mail that waits until its mailbox has a rule is due now.
async fn hasten(session: &mut dyn SqlSession, rule: &InboundRule) -> Result<(), StoreError> {
    if rule.active {
        let (now, of, mailbox) = (rule.updated_at, rule.tenant.as_str(), rule.mailbox.as_str());
        session.execute(HASTEN, values![now, of, mailbox, now]).await?;
    }
    Ok(())
}

/// Replaces a rule if its stored version is `expected`; `Missing` if its mailbox does not exist.
pub(crate) async fn update(
    session: &mut dyn SqlSession,
    rule: &InboundRule,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    if !has_mailbox(session, rule).await? {
        return Ok(ChangeResult::Missing);
    }
    let values = values![
        rule.mailbox.as_str(),
        rule.position,
        i64::from(rule.active),
        content_json(rule)?,
        rule.version,
        rule.updated_at,
        rule.tenant.as_str(),
        rule.id.as_str(),
        expected,
    ];
    if session.execute(UPDATE, values).await? != 1 {
        return Ok(ChangeResult::Stale);
    }
    hasten(session, rule).await?;
    Ok(ChangeResult::Done)
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &RuleId,
) -> Result<ChangeResult, StoreError> {
    session.execute(DELETE, values![tenant.as_str(), id.as_str()]).await.map(was_there)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &RuleId,
) -> Result<Option<InboundRule>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    mailbox: Option<&MailboxId>,
) -> Result<Vec<InboundRule>, StoreError> {
    let rows = match mailbox {
        Some(mailbox) => session.rows(OF_MAILBOX, values![tenant.as_str(), mailbox.as_str()]).await?,
        None => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
    };
    rows.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<InboundRule, StoreError> {
    Ok(InboundRule {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        mailbox: row.parsed(2)?,
        position: row.int(3)?,
        active: row.int(4)? != 0,
        content: row.json(5)?,
        version: row.int(6)?,
        created_at: row.time(7)?,
        updated_at: row.time(8)?,
    })
}
