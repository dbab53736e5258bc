//! DKIM signing keys. Domains are stored and looked up in lower case.

use postway_domain::{DkimAlgorithm, DkimKey, TenantId, secret::SealedSecret};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, decode, is_new, values, was_there},
};

macro_rules! select {
    ($which:literal) => {
        SqlText::same(concat!(
            "SELECT tenant, domain, selector, algorithm, private, public, active, created_at FROM dkim_key ",
            $which,
            " ORDER BY tenant, domain, selector"
        ))
    };
}

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO dkim_key (tenant, domain, selector, algorithm, private, public, active, created_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO dkim_key (tenant, domain, selector, algorithm, private, public, active, created_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
);
const SWITCH: SqlText =
    SqlText::same("UPDATE dkim_key SET active = ? WHERE tenant = ? AND domain = ? AND selector = ?");
/// Only if the stored ciphertext is the one that was opened: a key that was created again under the same name
/// has another.
const RESEAL: SqlText = SqlText::same(
    "UPDATE dkim_key SET private = ? WHERE tenant = ? AND domain = ? AND selector = ? AND private = ?",
);
const DELETE: SqlText =
    SqlText::same("DELETE FROM dkim_key WHERE tenant = ? AND domain = ? AND selector = ?");
const OF_TENANT: SqlText = select!("WHERE tenant = ?");
pub(crate) const OF_TENANT_AND_DOMAIN: SqlText = select!("WHERE tenant = ? AND domain = ?");
const OF_DOMAIN: SqlText = select!("WHERE domain = ?");
const ALL: SqlText = select!("");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[CREATE, SWITCH, RESEAL, DELETE, OF_TENANT, OF_TENANT_AND_DOMAIN, OF_DOMAIN, ALL];

pub(crate) async fn create(session: &mut dyn SqlSession, key: &DkimKey) -> Result<ChangeResult, StoreError> {
    let values = values![
        key.tenant.as_str(),
        key.domain.to_ascii_lowercase(),
        key.selector.as_str(),
        key.algorithm.code(),
        key.private.0.clone(),
        key.public.as_str(),
        i64::from(key.active),
        key.created_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn switch(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    domain: &str,
    selector: &str,
    active: bool,
) -> Result<ChangeResult, StoreError> {
    let values = values![i64::from(active), tenant.as_str(), domain.to_ascii_lowercase(), selector];
    session.execute(SWITCH, values).await.map(was_there)
}

pub(crate) async fn reseal(
    session: &mut dyn SqlSession,
    key: &DkimKey,
    was: &SealedSecret,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        key.private.0.clone(),
        key.tenant.as_str(),
        key.domain.to_ascii_lowercase(),
        key.selector.as_str(),
        was.0.clone(),
    ];
    let written = session.execute(RESEAL, values).await?;
    Ok(if written == 0 { ChangeResult::Stale } else { ChangeResult::Done })
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    domain: &str,
    selector: &str,
) -> Result<ChangeResult, StoreError> {
    let values = values![tenant.as_str(), domain.to_ascii_lowercase(), selector];
    session.execute(DELETE, values).await.map(was_there)
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
    domain: Option<&str>,
) -> Result<Vec<DkimKey>, StoreError> {
    let domain = domain.map(str::to_ascii_lowercase);
    let rows = match (tenant, domain) {
        (Some(tenant), Some(domain)) => {
            session.rows(OF_TENANT_AND_DOMAIN, values![tenant.as_str(), domain]).await?
        }
        (Some(tenant), None) => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
        (None, Some(domain)) => session.rows(OF_DOMAIN, values![domain]).await?,
        (None, None) => session.rows(ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<DkimKey, StoreError> {
    let private =
        row.opt_bytes(4)?.ok_or_else(|| StoreError::Unexpected("a signing key without its key".into()))?;
    Ok(DkimKey {
        tenant: row.parsed(0)?,
        domain: row.text(1)?.to_owned(),
        selector: row.text(2)?.to_owned(),
        algorithm: decode::coded(row.int(3)?, DkimAlgorithm::from_code)?,
        private: SealedSecret(private.to_vec()),
        public: row.text(5)?.to_owned(),
        active: row.int(6)? != 0,
        created_at: row.time(7)?,
    })
}
