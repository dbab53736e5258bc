//! The hooks of accounts. A write names the version that was read.

use postway_domain::{HookProvider, KeyDigest, ProviderHook, TenantId, secret::SealedSecret};

use super::accounts;
use crate::{
    error::StoreError,
    record::{AccountKey, ChangeResult},
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT h.tenant, h.account, h.provider, h.token, h.settings, h.secret, h.version, h.created_at, h.updated_at ",
            "FROM provider_hook h ",
            $end
        )
    };
}
const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO provider_hook (tenant, account, provider, token, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO provider_hook (tenant, account, provider, token, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const UPDATE: SqlText = SqlText::same(
    "UPDATE provider_hook SET provider = ?, token = ?, settings = ?, secret = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND account = ? AND version = ?",
);
const DELETE: SqlText = SqlText::same("DELETE FROM provider_hook WHERE tenant = ? AND account = ?");
const FIND: SqlText = SqlText::same(select!("WHERE h.tenant = ? AND h.account = ?"));
const OF_TENANT: SqlText = SqlText::same(select!("WHERE h.tenant = ? ORDER BY h.account"));
const ALL: SqlText = SqlText::same(select!("ORDER BY h.tenant, h.account"));
const BY_TOKEN: SqlText =
    SqlText::same(select!("JOIN tenant t ON t.id = h.tenant AND t.deleted_at IS NULL WHERE h.token = ?"));
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, UPDATE, DELETE, FIND, OF_TENANT, ALL, BY_TOKEN];

/// Writes the first hook of an account, or the one after the expected version.
pub(crate) async fn put(
    session: &mut dyn SqlSession,
    hook: &ProviderHook,
    expected: Option<i64>,
) -> Result<ChangeResult, StoreError> {
    let settings =
        serde_json::to_string(&hook.settings).map_err(|error| StoreError::Unexpected(error.to_string()))?;
    let secret = hook.secret.as_ref().map(|sealed| sealed.0.clone());
    let (tenant, account, provider) = (hook.tenant.as_str(), hook.account.as_str(), hook.provider.as_str());
    let Some(expected) = expected else {
        let key = AccountKey { tenant: hook.tenant.clone(), account: hook.account.clone() };
        if accounts::there(session, [key].into()).await?.is_empty() {
            return Ok(ChangeResult::Missing);
        }
        let values = values![
            tenant,
            account,
            provider,
            &hook.token.0,
            settings,
            secret,
            hook.version,
            hook.created_at,
            hook.updated_at
        ];
        return session.insert(CREATE, values).await.map(is_new);
    };
    let values = values![
        provider,
        &hook.token.0,
        settings,
        secret,
        hook.version,
        hook.updated_at,
        tenant,
        account,
        expected
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

/// Deletes the hook of an account.
pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    key: &AccountKey,
) -> Result<ChangeResult, StoreError> {
    session.execute(DELETE, values![key.tenant.as_str(), key.account.as_str()]).await.map(was_there)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    key: &AccountKey,
) -> Result<Option<ProviderHook>, StoreError> {
    let values = values![key.tenant.as_str(), key.account.as_str()];
    session.rows(FIND, values).await?.first().map(read).transpose()
}

pub(crate) async fn by_token(
    session: &mut dyn SqlSession,
    token: &KeyDigest,
) -> Result<Option<ProviderHook>, StoreError> {
    session.rows(BY_TOKEN, values![&token.0]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<ProviderHook>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
        None => session.rows(ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<ProviderHook, StoreError> {
    Ok(ProviderHook {
        tenant: row.parsed(0)?,
        account: row.parsed(1)?,
        provider: provider(row.text(2)?)?,
        token: KeyDigest(row.id32(3)?),
        settings: row.json(4)?,
        secret: row.opt_bytes(5)?.map(|bytes| SealedSecret(bytes.to_vec())),
        version: row.int(6)?,
        created_at: row.time(7)?,
        updated_at: row.time(8)?,
    })
}

/// The provider that a stored word names.
pub(crate) fn provider(word: &str) -> Result<HookProvider, StoreError> {
    HookProvider::from_word(word)
        .ok_or_else(|| StoreError::Unexpected(format!("a stored hook of the unknown provider {word}")))
}
