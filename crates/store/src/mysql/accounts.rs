//! Tenants and accounts.

use postway_domain::{Account, AccountId, TenantId, Time, secret::Sealed};
use sqlx::{MySql, Row, mysql::MySqlRow, query::Query};

use super::{engine::Txn, failed};
use crate::{
    decode::parsed,
    error::StoreError,
    port::DeleteAccount,
    record::{AccountKey, Tenant},
};

pub(super) const CREATE_TENANT: &str =
    "INSERT INTO tenant (id, name, default_account, created_at) VALUES (?, ?, ?, ?)";
pub(super) const SET_DEFAULT: &str = "UPDATE tenant SET default_account = ? WHERE id = ?";
pub(super) const TENANT: &str = "SELECT id, name, default_account, created_at FROM tenant WHERE id = ?";
pub(super) const CREATE: &str = "INSERT INTO account (tenant, id, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?)";
pub(super) const UPDATE: &str = "UPDATE account SET settings = ?, secret = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?";
/// The parameters are the tenant twice, then the account twice.
pub(super) const ACCOUNTS: &str = "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account \
     WHERE (? IS NULL OR tenant = ?) AND (? IS NULL OR id = ?) ORDER BY tenant, id";
pub(super) const IN_USE: &str = "SELECT EXISTS (SELECT 1 FROM tenant WHERE id = ? AND default_account = ?) \
     OR EXISTS (SELECT 1 FROM lane l JOIN message m ON m.lane = l.id \
     WHERE l.tenant = ? AND l.account = ? AND m.status IN (0, 1, 2, 3, 4, 8))";
pub(super) const DELETE: &str = "DELETE FROM account WHERE tenant = ? AND id = ?";

/// Inserts one row; `false` if its key is taken. Only the statement is undone then, not the transaction.
async fn insert(
    txn: &mut Txn,
    query: Query<'_, MySql, sqlx::mysql::MySqlArguments>,
) -> Result<bool, StoreError> {
    match query.execute(txn.conn()?).await {
        Ok(_) => Ok(true),
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

pub(super) async fn create_tenant(txn: &mut Txn, tenant: &Tenant) -> Result<bool, StoreError> {
    txn.after.wrote = true;
    let query = sqlx::query(CREATE_TENANT)
        .bind(tenant.id.as_str())
        .bind(&tenant.name)
        .bind(tenant.default_account.as_ref().map(|id| id.as_str()))
        .bind(tenant.created_at.as_millis());
    insert(txn, query).await
}

pub(super) async fn set_default(
    txn: &mut Txn,
    tenant: &TenantId,
    account: &AccountId,
) -> Result<(), StoreError> {
    txn.after.wrote = true;
    let query = sqlx::query(SET_DEFAULT).bind(account.as_str()).bind(tenant.as_str());
    query.execute(txn.conn()?).await.map_err(failed)?;
    Ok(())
}

pub(super) async fn create(txn: &mut Txn, account: &Account) -> Result<bool, StoreError> {
    let query = sqlx::query(CREATE)
        .bind(account.tenant.as_str())
        .bind(account.id.as_str())
        .bind(settings_json(account)?)
        .bind(account.secret.as_ref().map(|sealed| sealed.0.as_slice()))
        .bind(account.version)
        .bind(account.created_at.as_millis())
        .bind(account.updated_at.as_millis());
    note_change(txn, &account.tenant, &account.id);
    insert(txn, query).await
}

pub(super) async fn update(txn: &mut Txn, account: &Account, expected: i64) -> Result<bool, StoreError> {
    let done = sqlx::query(UPDATE)
        .bind(settings_json(account)?)
        .bind(account.secret.as_ref().map(|sealed| sealed.0.as_slice()))
        .bind(account.version)
        .bind(account.updated_at.as_millis())
        .bind(account.tenant.as_str())
        .bind(account.id.as_str())
        .bind(expected)
        .execute(txn.conn()?)
        .await
        .map_err(failed)?;
    note_change(txn, &account.tenant, &account.id);
    Ok(done.rows_affected() == 1)
}

pub(super) async fn delete(
    txn: &mut Txn,
    tenant: &TenantId,
    id: &AccountId,
) -> Result<DeleteAccount, StoreError> {
    let in_use: bool = sqlx::query_scalar(IN_USE)
        .bind(tenant.as_str())
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(id.as_str())
        .fetch_one(txn.conn()?)
        .await
        .map_err(failed)?;
    if in_use {
        return Ok(DeleteAccount::InUse);
    }
    let query = sqlx::query(DELETE).bind(tenant.as_str()).bind(id.as_str());
    let done = query.execute(txn.conn()?).await.map_err(failed)?;
    note_change(txn, tenant, id);
    Ok(if done.rows_affected() == 1 { DeleteAccount::Deleted } else { DeleteAccount::NotFound })
}

fn note_change(txn: &mut Txn, tenant: &TenantId, id: &AccountId) {
    txn.after.wrote = true;
    txn.after.woken.insert(AccountKey { tenant: tenant.clone(), account: id.clone() });
}

fn settings_json(account: &Account) -> Result<String, StoreError> {
    serde_json::to_string(&account.settings).map_err(|error| StoreError::Unexpected(error.to_string()))
}

pub(super) fn read_account(row: &MySqlRow) -> Result<Account, StoreError> {
    let settings: &str = row.try_get(2).map_err(failed)?;
    Ok(Account {
        tenant: parsed(row.try_get(0).map_err(failed)?)?,
        id: parsed(row.try_get(1).map_err(failed)?)?,
        settings: serde_json::from_str(settings)
            .map_err(|error| StoreError::Unexpected(format!("an account's settings: {error}")))?,
        secret: row.try_get::<Option<Vec<u8>>, _>(3).map_err(failed)?.map(Sealed),
        version: row.try_get(4).map_err(failed)?,
        created_at: Time::from_millis(row.try_get(5).map_err(failed)?),
        updated_at: Time::from_millis(row.try_get(6).map_err(failed)?),
    })
}

pub(super) fn read_tenant(row: &MySqlRow) -> Result<Tenant, StoreError> {
    let default_account: Option<&str> = row.try_get(2).map_err(failed)?;
    Ok(Tenant {
        id: parsed(row.try_get(0).map_err(failed)?)?,
        name: row.try_get(1).map_err(failed)?,
        default_account: default_account.map(parsed).transpose()?,
        created_at: Time::from_millis(row.try_get(3).map_err(failed)?),
    })
}
