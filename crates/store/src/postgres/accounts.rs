//! Tenants and accounts.

use postway_domain::{Account, AccountId, TenantId, Time, secret::Sealed};
use sqlx::{Row, postgres::PgRow};

use super::{engine::Txn, failed, text, undone};
use crate::{
    decode::parsed,
    error::StoreError,
    group::{Answer, DirectoryJob},
    port::DeleteAccount,
    record::{AccountKey, Tenant},
};

pub(super) const CREATE_TENANT: &str = "INSERT INTO tenant (id, name, default_account, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
pub(super) const SET_DEFAULT: &str = "UPDATE tenant SET default_account = $1 WHERE id = $2";
pub(super) const TENANT: &str = "SELECT id, name, default_account, created_at FROM tenant WHERE id = $1";
pub(super) const CREATE: &str = "INSERT INTO account (tenant, id, settings, secret, version, created_at, updated_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
pub(super) const UPDATE: &str = "UPDATE account SET settings = $1, secret = $2, version = $3, updated_at = $4 \
     WHERE tenant = $5 AND id = $6 AND version = $7";
pub(super) const ACCOUNTS: &str = "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account \
     WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR id = $2) ORDER BY tenant, id";
pub(super) const IN_USE: &str = "SELECT EXISTS (SELECT 1 FROM tenant WHERE id = $1 AND default_account = $2) \
     OR EXISTS (SELECT 1 FROM lane JOIN message ON message.lane = lane.id \
     WHERE lane.tenant = $1 AND lane.account = $2 AND message.status IN (0, 1, 2, 3, 4, 8))";
pub(super) const DELETE: &str = "DELETE FROM account WHERE tenant = $1 AND id = $2";

pub(super) async fn directory(txn: &mut Txn, job: &DirectoryJob) -> Result<Answer, StoreError> {
    Ok(match job {
        DirectoryJob::CreateTenant(tenant) => Answer::Done(create_tenant(txn, tenant).await?),
        DirectoryJob::SetDefaultAccount(tenant, account) => {
            set_default(txn, tenant, account).await?;
            Answer::Done(true)
        }
        DirectoryJob::CreateAccount(account) => Answer::Done(create(txn, account).await?),
        DirectoryJob::UpdateAccount(account, expected) => {
            Answer::Done(update(txn, account, *expected).await?)
        }
        DirectoryJob::DeleteAccount(tenant, id) => Answer::Deleted(delete(txn, tenant, id).await?),
    })
}

async fn create_tenant(txn: &mut Txn, tenant: &Tenant) -> Result<bool, StoreError> {
    txn.after.wrote = true;
    let done = sqlx::query(CREATE_TENANT)
        .bind(tenant.id.as_str())
        .bind(text(&tenant.name))
        .bind(tenant.default_account.as_ref().map(|id| id.as_str()))
        .bind(tenant.created_at.as_millis())
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(done.rows_affected() == 1)
}

async fn set_default(txn: &mut Txn, tenant: &TenantId, account: &AccountId) -> Result<(), StoreError> {
    txn.after.wrote = true;
    let query = sqlx::query(SET_DEFAULT).bind(account.as_str()).bind(tenant.as_str());
    query.execute(&mut txn.conn).await.map_err(undone)?;
    Ok(())
}

async fn create(txn: &mut Txn, account: &Account) -> Result<bool, StoreError> {
    let done = sqlx::query(CREATE)
        .bind(account.tenant.as_str())
        .bind(account.id.as_str())
        .bind(settings_json(account)?)
        .bind(account.secret.as_ref().map(|sealed| sealed.0.as_slice()))
        .bind(account.version)
        .bind(account.created_at.as_millis())
        .bind(account.updated_at.as_millis())
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    note_change(txn, &account.tenant, &account.id);
    Ok(done.rows_affected() == 1)
}

async fn update(txn: &mut Txn, account: &Account, expected: i64) -> Result<bool, StoreError> {
    let done = sqlx::query(UPDATE)
        .bind(settings_json(account)?)
        .bind(account.secret.as_ref().map(|sealed| sealed.0.as_slice()))
        .bind(account.version)
        .bind(account.updated_at.as_millis())
        .bind(account.tenant.as_str())
        .bind(account.id.as_str())
        .bind(expected)
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    note_change(txn, &account.tenant, &account.id);
    Ok(done.rows_affected() == 1)
}

async fn delete(txn: &mut Txn, tenant: &TenantId, id: &AccountId) -> Result<DeleteAccount, StoreError> {
    let in_use: bool = sqlx::query_scalar(IN_USE)
        .bind(tenant.as_str())
        .bind(id.as_str())
        .fetch_one(&mut txn.conn)
        .await
        .map_err(undone)?;
    if in_use {
        return Ok(DeleteAccount::InUse);
    }
    let query = sqlx::query(DELETE).bind(tenant.as_str()).bind(id.as_str());
    let done = query.execute(&mut txn.conn).await.map_err(undone)?;
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

pub(super) fn read_account(row: &PgRow) -> Result<Account, StoreError> {
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

pub(super) fn read_tenant(row: &PgRow) -> Result<Tenant, StoreError> {
    let default_account: Option<&str> = row.try_get(2).map_err(failed)?;
    Ok(Tenant {
        id: parsed(row.try_get(0).map_err(failed)?)?,
        name: row.try_get(1).map_err(failed)?,
        default_account: default_account.map(parsed).transpose()?,
        created_at: Time::from_millis(row.try_get(3).map_err(failed)?),
    })
}
