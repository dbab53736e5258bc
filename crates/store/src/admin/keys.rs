//! API keys.

use std::sync::Arc;

use postway_domain::{ApiKey, KeyDigest, KeyScope, TenantId, Time, scram::ScramVerifier};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO api_key (id, tenant, name, digest, scopes, networks, created_at, expires_at, scram, restrictions, created_by) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO api_key (id, tenant, name, digest, scopes, networks, created_at, expires_at, scram, restrictions, created_by) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const REVOKE: SqlText =
    SqlText::same("UPDATE api_key SET revoked_at = ? WHERE tenant = ? AND id = ? AND revoked_at IS NULL");
const TOUCH: SqlText = SqlText::same(
    "UPDATE api_key SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
);
const FIND: SqlText = SqlText::same(
    "SELECT id, tenant, name, digest, scopes, networks, created_at, expires_at, last_used_at, revoked_at, scram, restrictions, \
     created_by \
     FROM api_key WHERE digest = ?",
);
const FIND_BY_ID: SqlText = SqlText::same(
    "SELECT id, tenant, name, digest, scopes, networks, created_at, expires_at, last_used_at, revoked_at, scram, restrictions, \
     created_by \
     FROM api_key WHERE id = ?",
);
const LIST: SqlText = SqlText::same(
    "SELECT id, tenant, name, digest, scopes, networks, created_at, expires_at, last_used_at, revoked_at, scram, restrictions, \
     created_by \
     FROM api_key WHERE tenant = ? ORDER BY created_at, id",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, REVOKE, TOUCH, FIND, FIND_BY_ID, LIST];

pub(crate) async fn create(session: &mut dyn SqlSession, key: &ApiKey) -> Result<ChangeResult, StoreError> {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let networks: Vec<String> = key.networks.iter().map(ToString::to_string).collect();
    // Serializing plain lists of texts does not fail.
    let restrictions = key.restrictions.as_deref().and_then(|bound| serde_json::to_string(bound).ok());
    let values = values![
        key.id.as_str(),
        key.tenant.as_str(),
        key.name.as_str(),
        &key.digest.0,
        scopes.join(" "),
        networks.join(" "),
        key.created_at,
        key.expires_at,
        key.scram.as_ref().map(ScramVerifier::to_bytes),
        restrictions,
        key.created_by.as_deref(),
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn revoke(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &str,
    at: Time,
) -> Result<ChangeResult, StoreError> {
    session.execute(REVOKE, values![at, tenant.as_str(), id]).await.map(was_there)
}

pub(crate) async fn touch(
    session: &mut dyn SqlSession,
    used: &[(String, Time)],
) -> Result<ChangeResult, StoreError> {
    for (id, at) in used {
        session.execute(TOUCH, values![*at, id.as_str(), *at]).await?;
    }
    Ok(ChangeResult::Done)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    digest: &KeyDigest,
) -> Result<Option<ApiKey>, StoreError> {
    session.rows(FIND, values![&digest.0]).await?.first().map(read).transpose()
}

pub(crate) async fn find_by_id(session: &mut dyn SqlSession, id: &str) -> Result<Option<ApiKey>, StoreError> {
    session.rows(FIND_BY_ID, values![id]).await?.first().map(read).transpose()
}

pub(crate) async fn list(session: &mut dyn SqlSession, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
    session.rows(LIST, values![tenant.as_str()]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<ApiKey, StoreError> {
    let wrong = || StoreError::Unexpected("a stored API key that does not read".into());
    let scopes = row
        .text(4)?
        .split_whitespace()
        .map(|word| KeyScope::ALL.into_iter().find(|scope| scope.as_str() == word).ok_or_else(wrong));
    let networks = row.text(5)?.split_whitespace().map(|text| text.parse().map_err(|_| wrong()));
    // A key whose restrictions cannot be read must not pass for an unrestricted one.
    let restrictions = row.opt_text(11)?.map(|text| serde_json::from_str(text).map_err(|_| wrong()));
    Ok(ApiKey {
        restrictions: restrictions.transpose()?.map(Arc::new),
        id: row.text(0)?.to_owned(),
        tenant: row.parsed(1)?,
        name: row.text(2)?.to_owned(),
        digest: KeyDigest(row.opt_bytes(3)?.and_then(|bytes| bytes.try_into().ok()).ok_or_else(wrong)?),
        scopes: scopes.collect::<Result<_, _>>()?,
        networks: networks.collect::<Result<_, _>>()?,
        created_at: row.time(6)?,
        expires_at: row.opt_time(7)?,
        last_used_at: row.opt_time(8)?,
        revoked_at: row.opt_time(9)?,
        scram: row
            .opt_bytes(10)?
            .map(|bytes| ScramVerifier::from_bytes(bytes).ok_or_else(wrong))
            .transpose()?,
        created_by: row.opt_string(12)?,
    })
}
