//! Tenants.

use postway_domain::{AccountId, Tenant, TenantId, Time, secret::SealedSecret};

use super::suspensions;
use crate::{
    error::StoreError,
    record::{ChangeResult, SuspensionRecord, SuspensionScope},
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO tenant (id, name, default_account, settings, secret, weight, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO tenant (id, name, default_account, settings, secret, weight, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const UPDATE: SqlText = SqlText::same(
    "UPDATE tenant SET name = ?, default_account = ?, settings = ?, secret = ?, weight = ?, version = ?, \
     updated_at = ? WHERE id = ? AND version = ? AND deleted_at IS NULL",
);
const DELETE: SqlText = SqlText::same(
    "UPDATE tenant SET deleted_at = ?, version = version + 1 WHERE id = ? AND deleted_at IS NULL",
);
const SET_DEFAULT: SqlText = SqlText::same(
    "UPDATE tenant SET default_account = ?, version = version + 1 WHERE id = ? AND deleted_at IS NULL",
);
const FIND: SqlText = SqlText::same(
    "SELECT id, name, default_account, settings, secret, version, created_at, updated_at, deleted_at FROM tenant \
     WHERE id = ?",
);
const LIST: SqlText = SqlText::same(
    "SELECT id, name, default_account, settings, secret, version, created_at, updated_at, deleted_at FROM tenant \
     WHERE id > ? ORDER BY id LIMIT ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, UPDATE, DELETE, SET_DEFAULT, FIND, LIST];

fn settings_json(tenant: &Tenant) -> Result<String, StoreError> {
    serde_json::to_string(&tenant.settings).map_err(|error| StoreError::Unexpected(error.to_string()))
}

pub(crate) async fn create(
    session: &mut dyn SqlSession,
    tenant: &Tenant,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        tenant.id.as_str(),
        tenant.name.as_str(),
        tenant.default_account.as_ref().map(|id| id.as_str()),
        settings_json(tenant)?,
        tenant.secret.as_ref().map(|sealed| sealed.0.clone()),
        tenant.settings.weight,
        tenant.version,
        tenant.created_at,
        tenant.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn update(
    session: &mut dyn SqlSession,
    tenant: &Tenant,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        tenant.name.as_str(),
        tenant.default_account.as_ref().map(|id| id.as_str()),
        settings_json(tenant)?,
        tenant.secret.as_ref().map(|sealed| sealed.0.clone()),
        tenant.settings.weight,
        tenant.version,
        tenant.updated_at,
        tenant.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    id: &TenantId,
    at: Time,
) -> Result<ChangeResult, StoreError> {
    let deleted = session.execute(DELETE, values![at, id.as_str()]).await.map(was_there)?;
    if deleted == ChangeResult::Done {
        let suspension = SuspensionRecord { tenant: id.clone(), scope: SuspensionScope::Tenant, since: at };
        suspensions::suspend(session, &suspension).await?;
    }
    Ok(deleted)
}

pub(crate) async fn set_default(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    account: &AccountId,
) -> Result<ChangeResult, StoreError> {
    session.execute(SET_DEFAULT, values![account.as_str(), tenant.as_str()]).await.map(was_there)
}

pub(crate) async fn find(session: &mut dyn SqlSession, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
    session.rows(FIND, values![id.as_str()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    after: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<Tenant>, StoreError> {
    let values = values![after.map_or("", |id| id.as_str()), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Tenant, StoreError> {
    Ok(Tenant {
        id: row.parsed(0)?,
        name: row.text(1)?.to_owned(),
        default_account: row.opt_parsed(2)?,
        // Tenants written by an earlier version have no settings.
        settings: if row.opt_text(3)?.is_some() { row.json(3)? } else { Default::default() },
        secret: row.opt_bytes(4)?.map(|bytes| SealedSecret(bytes.to_vec())),
        version: row.int(5)?,
        created_at: row.time(6)?,
        updated_at: row.time(7)?,
        deleted_at: row.opt_time(8)?,
    })
}
