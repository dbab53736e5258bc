//! Accounts.

use postway_domain::{Account, AccountId, TenantId, secret::Sealed};

use super::{is_new, pauses, was_there};
use crate::{
    error::StoreError,
    record::{AccountKey, Changed, SuspensionScope},
    sql::{Row, Session, Sql, values},
};

const CREATE: Sql = Sql::or_mysql(
    "INSERT INTO account (tenant, id, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO account (tenant, id, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?)",
);
const UPDATE: Sql = Sql::same(
    "UPDATE account SET settings = ?, secret = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
const FIND: Sql = Sql::same(
    "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account WHERE tenant = ? AND id = ?",
);
const OF_TENANT: Sql = Sql::same(
    "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account WHERE tenant = ? ORDER BY id",
);
const ALL: Sql = Sql::same(
    "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account ORDER BY tenant, id",
);
const IS_DEFAULT: Sql = Sql::same("SELECT id FROM tenant WHERE id = ? AND default_account = ?");
const HAS_MAIL: Sql = Sql::same(
    "SELECT message.uid FROM lane JOIN message ON message.lane = lane.id \
     WHERE lane.tenant = ? AND lane.account = ? AND message.status IN (0, 1, 2, 3, 4, 8) LIMIT 1",
);
const DELETE: Sql = Sql::same("DELETE FROM account WHERE tenant = ? AND id = ?");
#[cfg(test)]
pub(super) const STATEMENTS: &[Sql] = &[CREATE, UPDATE, FIND, OF_TENANT, ALL, IS_DEFAULT, HAS_MAIL, DELETE];

fn settings_json(account: &Account) -> Result<String, StoreError> {
    serde_json::to_string(&account.settings).map_err(|error| StoreError::Unexpected(error.to_string()))
}

pub(super) async fn create(session: &mut dyn Session, account: &Account) -> Result<Changed, StoreError> {
    let values = values![
        account.tenant.as_str(),
        account.id.as_str(),
        settings_json(account)?,
        account.secret.as_ref().map(|sealed| sealed.0.clone()),
        account.version,
        account.created_at,
        account.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(super) async fn update(
    session: &mut dyn Session,
    account: &Account,
    expected: i64,
) -> Result<Changed, StoreError> {
    let values = values![
        settings_json(account)?,
        account.secret.as_ref().map(|sealed| sealed.0.clone()),
        account.version,
        account.updated_at,
        account.tenant.as_str(),
        account.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { Changed::Done } else { Changed::Stale })
}

pub(super) async fn delete(session: &mut dyn Session, key: &AccountKey) -> Result<Changed, StoreError> {
    let place = || values![key.tenant.as_str(), key.account.as_str()];
    for needed in [IS_DEFAULT, HAS_MAIL] {
        if !session.rows(needed, place()).await?.is_empty() {
            return Ok(Changed::InUse);
        }
    }
    let deleted = session.execute(DELETE, place()).await.map(was_there)?;
    if deleted == Changed::Done {
        // An account of the same name that is made later starts afresh. Its limits go on: the relay remembers.
        pauses::close_circuit(session, key).await?;
        let scope = SuspensionScope::Account(key.account.clone());
        pauses::activate(session, &key.tenant, &scope).await?;
    }
    Ok(deleted)
}

pub(super) async fn find(
    session: &mut dyn Session,
    tenant: &TenantId,
    id: &AccountId,
) -> Result<Option<Account>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

pub(super) async fn list(
    session: &mut dyn Session,
    tenant: Option<&TenantId>,
) -> Result<Vec<Account>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
        None => session.rows(ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        settings: row.json(2)?,
        secret: row.opt_bytes(3)?.map(|bytes| Sealed(bytes.to_vec())),
        version: row.int(4)?,
        created_at: row.time(5)?,
        updated_at: row.time(6)?,
    })
}
