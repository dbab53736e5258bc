//! OAuth tokens of accounts and mailboxes. A write names the version that was read: if two nodes renew the
//! same tokens, the second gets `Stale`.

use postway_domain::{
    oauth::{OAuthOwner, OAuthState},
    secret::SealedSecret,
};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values},
};

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO oauth_state (tenant, owner, tokens, renewing_until, version, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO oauth_state (tenant, owner, tokens, renewing_until, version, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
);
const UPDATE: SqlText = SqlText::same(
    "UPDATE oauth_state SET tokens = ?, renewing_until = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND owner = ? AND version = ?",
);
const FIND: SqlText = SqlText::same(
    "SELECT tenant, owner, tokens, renewing_until, version, updated_at FROM oauth_state WHERE tenant = ? AND owner = ?",
);
const LIST: SqlText = SqlText::same(
    "SELECT tenant, owner, tokens, renewing_until, version, updated_at FROM oauth_state ORDER BY tenant, owner",
);
const DELETE: SqlText = SqlText::same("DELETE FROM oauth_state WHERE tenant = ? AND owner = ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, UPDATE, FIND, LIST, DELETE];

/// Writes the first state, or the one after the expected version.
pub(crate) async fn put(
    session: &mut dyn SqlSession,
    state: &OAuthState,
    expected: Option<i64>,
) -> Result<ChangeResult, StoreError> {
    let (tenant, owner) = (state.owner.tenant.as_str(), state.owner.name.as_str());
    let tokens = state.tokens.as_ref().map(|sealed| sealed.0.clone());
    let Some(expected) = expected else {
        let values = values![tenant, owner, tokens, state.renewing_until, state.version, state.updated_at];
        return session.insert(CREATE, values).await.map(is_new);
    };
    let values =
        values![tokens, state.renewing_until, state.version, state.updated_at, tenant, owner, expected];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

/// Deletes the tokens of a deleted account or mailbox.
pub(crate) async fn delete(session: &mut dyn SqlSession, owner: &OAuthOwner) -> Result<(), StoreError> {
    session.execute(DELETE, values![owner.tenant.as_str(), owner.name.as_str()]).await.map(|_| ())
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    owner: &OAuthOwner,
) -> Result<Option<OAuthState>, StoreError> {
    let values = values![owner.tenant.as_str(), owner.name.as_str()];
    session.rows(FIND, values).await?.first().map(read).transpose()
}

pub(crate) async fn list(session: &mut dyn SqlSession) -> Result<Vec<OAuthState>, StoreError> {
    session.rows(LIST, Vec::new()).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<OAuthState, StoreError> {
    Ok(OAuthState {
        owner: OAuthOwner { tenant: row.parsed(0)?, name: row.text(1)?.to_owned() },
        tokens: row.opt_bytes(2)?.map(|bytes| SealedSecret(bytes.to_vec())),
        renewing_until: row.opt_time(3)?,
        version: row.int(4)?,
        updated_at: row.time(5)?,
    })
}
