//! Streams: a tenant's named kinds of mail.

use postway_domain::{MailStream, TenantId, id::StreamId};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO stream (tenant, id, name, description, unsubscribe, unsubscribe_mailto, version, created_at, ",
            "updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, id, name, description, unsubscribe, unsubscribe_mailto, version, created_at, updated_at ",
            "FROM stream ",
            $end
        )
    };
}

const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const UPDATE: SqlText = SqlText::same(
    "UPDATE stream SET name = ?, description = ?, unsubscribe = ?, unsubscribe_mailto = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
const DELETE: SqlText = SqlText::same("DELETE FROM stream WHERE tenant = ? AND id = ?");
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND id = ?"));
const LIST: SqlText = SqlText::same(select!("WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?"));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, UPDATE, DELETE, FIND, LIST];

pub(crate) async fn create(
    session: &mut dyn SqlSession,
    stream: &MailStream,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        stream.tenant.as_str(),
        stream.id.as_str(),
        stream.name.as_str(),
        stream.description.as_deref(),
        i64::from(stream.unsubscribe),
        stream.unsubscribe_mailto.as_deref(),
        stream.version,
        stream.created_at,
        stream.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn update(
    session: &mut dyn SqlSession,
    stream: &MailStream,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        stream.name.as_str(),
        stream.description.as_deref(),
        i64::from(stream.unsubscribe),
        stream.unsubscribe_mailto.as_deref(),
        stream.version,
        stream.updated_at,
        stream.tenant.as_str(),
        stream.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &StreamId,
) -> Result<ChangeResult, StoreError> {
    session.execute(DELETE, values![tenant.as_str(), id.as_str()]).await.map(was_there)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &StreamId,
) -> Result<Option<MailStream>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: Option<&StreamId>,
    limit: u32,
) -> Result<Vec<MailStream>, StoreError> {
    let values = values![tenant.as_str(), after.map_or("", |id| id.as_str()), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<MailStream, StoreError> {
    Ok(MailStream {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        name: row.text(2)?.to_owned(),
        description: row.opt_string(3)?,
        unsubscribe: row.int(4)? != 0,
        unsubscribe_mailto: row.opt_string(5)?,
        version: row.int(6)?,
        created_at: row.time(7)?,
        updated_at: row.time(8)?,
    })
}
