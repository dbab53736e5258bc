//! Routes: the rules by which a tenant's mail chooses its account.

use std::collections::BTreeSet;

use postway_domain::{MailRoute, TenantId, Time, id::RouteId};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO route (tenant, id, position, active, content, version, created_at, updated_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, id, position, active, content, version, created_at, updated_at FROM route ",
            $end
        )
    };
}

const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const UPDATE: SqlText = SqlText::same(
    "UPDATE route SET position = ?, active = ?, content = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
const DELETE: SqlText = SqlText::same("DELETE FROM route WHERE tenant = ? AND id = ?");
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND id = ?"));
const LIST: SqlText = SqlText::same(select!("WHERE tenant = ? ORDER BY position, id"));
/// Locked, so that two orders do not mix.
const NAMES: SqlText = SqlText::of_each(
    "SELECT id FROM route WHERE tenant = ?",
    "SELECT id FROM route WHERE tenant = ? ORDER BY id FOR UPDATE",
    "SELECT id FROM route WHERE tenant = ? ORDER BY id FOR UPDATE",
);
/// A route that keeps its position keeps its version.
const PLACE: SqlText = SqlText::same(
    "UPDATE route SET position = ?, version = version + 1, updated_at = ? \
     WHERE tenant = ? AND id = ? AND position <> ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[CREATE, UPDATE, DELETE, FIND, LIST, NAMES, PLACE];

fn content_json(route: &MailRoute) -> Result<String, StoreError> {
    serde_json::to_string(&route.content).map_err(|error| StoreError::Unexpected(error.to_string()))
}

pub(crate) async fn create(
    session: &mut dyn SqlSession,
    route: &MailRoute,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        route.tenant.as_str(),
        route.id.as_str(),
        route.position,
        i64::from(route.active),
        content_json(route)?,
        route.version,
        route.created_at,
        route.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn update(
    session: &mut dyn SqlSession,
    route: &MailRoute,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        route.position,
        i64::from(route.active),
        content_json(route)?,
        route.version,
        route.updated_at,
        route.tenant.as_str(),
        route.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &RouteId,
) -> Result<ChangeResult, StoreError> {
    session.execute(DELETE, values![tenant.as_str(), id.as_str()]).await.map(was_there)
}

/// Gives a tenant's routes the positions 1, 2, … in this order. [`ChangeResult::Stale`] if these are not all
/// of its routes, each once.
pub(crate) async fn order(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    order: &[RouteId],
    now: Time,
) -> Result<ChangeResult, StoreError> {
    let rows = session.rows(NAMES, values![tenant.as_str()]).await?;
    let stored: BTreeSet<&str> = rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?;
    let given: BTreeSet<&str> = order.iter().map(RouteId::as_str).collect();
    if given.len() != order.len() || given != stored {
        return Ok(ChangeResult::Stale);
    }
    let mut moved = 0;
    for (place, id) in order.iter().enumerate() {
        let position = place as i64 + 1;
        let values = values![position, now, tenant.as_str(), id.as_str(), position];
        moved += session.execute(PLACE, values).await?;
    }
    Ok(if moved > 0 { ChangeResult::Done } else { ChangeResult::Already })
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &RouteId,
) -> Result<Option<MailRoute>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

/// A tenant's routes in the order in which they apply.
pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
) -> Result<Vec<MailRoute>, StoreError> {
    session.rows(LIST, values![tenant.as_str()]).await?.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<MailRoute, StoreError> {
    Ok(MailRoute {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        position: row.int(2)?,
        active: row.int(3)? != 0,
        content: row.json(4)?,
        version: row.int(5)?,
        created_at: row.time(6)?,
        updated_at: row.time(7)?,
    })
}
