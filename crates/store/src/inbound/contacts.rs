//! A tenant's directory of contacts.

use aws_lc_rs::digest;
use postway_domain::{Contact, TenantId, id::ContactId};

use super::hold_names;
use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO contact (tenant, id, name, name_key, addresses, version, created_at, updated_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!("SELECT tenant, id, name, addresses, version, created_at, updated_at FROM contact ", $end)
    };
}

const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const UPDATE: SqlText = SqlText::same(
    "UPDATE contact SET name = ?, name_key = ?, addresses = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
const DELETE: SqlText = SqlText::same("DELETE FROM contact WHERE tenant = ? AND id = ?");
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND id = ?"));
const NAMED: SqlText = SqlText::same(select!("WHERE tenant = ? AND name_key = ?"));
const LIST: SqlText = SqlText::same(select!("WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?"));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, UPDATE, DELETE, FIND, NAMED, LIST];

/// The digest that a name is found by, because names are longer than some indexes allow.
fn key_of(name: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, Contact::key(name).as_bytes()).as_ref().to_vec()
}

fn addresses_json(contact: &Contact) -> String {
    serde_json::json!(contact.addresses).to_string()
}

/// Creates a contact; `Exists` if its id or its name is taken.
pub(crate) async fn create(
    session: &mut dyn SqlSession,
    contact: &Contact,
) -> Result<ChangeResult, StoreError> {
    hold_names(session, &contact.tenant).await?;
    let values = values![
        contact.tenant.as_str(),
        contact.id.as_str(),
        contact.name.as_str(),
        key_of(&contact.name),
        addresses_json(contact),
        contact.version,
        contact.created_at,
        contact.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

/// Replaces a contact if its stored version is `expected`; `Exists` if another has its name.
pub(crate) async fn update(
    session: &mut dyn SqlSession,
    contact: &Contact,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    hold_names(session, &contact.tenant).await?;
    let named = named(session, &contact.tenant, &contact.name).await?;
    if named.is_some_and(|other| other.id != contact.id) {
        return Ok(ChangeResult::Exists);
    }
    let values = values![
        contact.name.as_str(),
        key_of(&contact.name),
        addresses_json(contact),
        contact.version,
        contact.updated_at,
        contact.tenant.as_str(),
        contact.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &ContactId,
) -> Result<ChangeResult, StoreError> {
    session.execute(DELETE, values![tenant.as_str(), id.as_str()]).await.map(was_there)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &ContactId,
) -> Result<Option<Contact>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

pub(crate) async fn named(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    name: &str,
) -> Result<Option<Contact>, StoreError> {
    session.rows(NAMED, values![tenant.as_str(), key_of(name)]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: Option<&ContactId>,
    limit: u32,
) -> Result<Vec<Contact>, StoreError> {
    let values = values![tenant.as_str(), after.map_or("", |id| id.as_str()), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<Contact, StoreError> {
    Ok(Contact {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        name: row.text(2)?.to_owned(),
        addresses: row.json(3)?,
        version: row.int(4)?,
        created_at: row.time(5)?,
        updated_at: row.time(6)?,
    })
}
