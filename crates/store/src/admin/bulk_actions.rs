//! Bulk actions: their rows.

use postway_domain::{MessageUid, TenantId, Time, id::BulkActionId};

use crate::{
    error::StoreError,
    record::{BulkAction, BulkActionState, ChangeResult},
    sql::{Row, SqlSession, SqlText, decode, is_new, values},
};

macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO bulk_action (tenant, id, state, task, selected, actor, reached, again, expected, expected_more, ",
            "changed, skipped, version, created_at, updated_at, ended_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, id, state, task, selected, actor, reached, again, expected, expected_more, changed, skipped, ",
            "version, created_at, updated_at, ended_at FROM bulk_action ",
            $end
        )
    };
}

const CREATE: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND id = ?"));
const LIST: SqlText = SqlText::same(select!("WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?"));
const RUNNING: SqlText = SqlText::same(select!(
    "WHERE state = 1 AND tenant > ? AND NOT EXISTS (SELECT 1 FROM bulk_action o WHERE o.state = 1 \
     AND o.tenant = bulk_action.tenant AND o.id < bulk_action.id) ORDER BY tenant LIMIT ?"
));
const RUNNING_OF: SqlText =
    SqlText::same("SELECT id FROM bulk_action WHERE state = 1 AND tenant = ? LIMIT ?");
/// Also the fence of a slice: whoever updates the row first goes on.
const TAKE: SqlText = SqlText::same(
    "UPDATE bulk_action SET version = version + 1, updated_at = ? WHERE tenant = ? AND id = ? AND version = ? \
     AND state = 1",
);
const ADVANCE: SqlText = SqlText::same(
    "UPDATE bulk_action SET reached = ?, again = ?, changed = changed + ?, skipped = skipped + ?, state = ?, \
     ended_at = ? WHERE tenant = ? AND id = ?",
);
const STOP: SqlText = SqlText::same(
    "UPDATE bulk_action SET state = 3, version = version + 1, updated_at = ?, ended_at = ? WHERE tenant = ? AND id = ? \
     AND state = 1",
);
/// The most rows removed in one transaction; the rest waits for the next run.
const FORGOTTEN_MAX: u32 = 500;
const ENDED: SqlText =
    SqlText::same("SELECT tenant, id FROM bulk_action WHERE ended_at <= ? ORDER BY ended_at LIMIT ?");
const REMOVE: SqlText = SqlText::same("DELETE FROM bulk_action WHERE tenant = ? AND id = ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[CREATE, FIND, LIST, RUNNING, RUNNING_OF, TAKE, ADVANCE, STOP, ENDED, REMOVE];

/// How far a slice brought a bulk action.
pub(crate) struct BulkProgress<'a> {
    pub reached: Option<MessageUid>,
    pub again: &'a [MessageUid],
    pub changed: i64,
    pub skipped: i64,
    pub is_finished: bool,
    pub at: Time,
}

/// [`ChangeResult::InUse`] if too many of the tenant are running.
pub(crate) async fn create(
    session: &mut dyn SqlSession,
    action: &BulkAction,
) -> Result<ChangeResult, StoreError> {
    let most = BulkAction::RUNNING_MAX;
    let running = session.rows(RUNNING_OF, values![action.tenant.as_str(), most]).await?;
    if running.len() >= most as usize {
        return Ok(ChangeResult::InUse);
    }
    let values = values![
        action.tenant.as_str(),
        action.id.as_bytes(),
        action.state.code(),
        action.task.as_str(),
        joined(&action.selected),
        action.actor.as_str(),
        action.reached.map(|uid| uid.as_bytes().to_vec()),
        joined(&action.again),
        action.expected,
        i64::from(action.expected_more),
        action.changed,
        action.skipped,
        action.version,
        action.created_at,
        action.updated_at,
        action.ended_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn stop(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: BulkActionId,
    at: Time,
) -> Result<ChangeResult, StoreError> {
    let place = values![at, at, tenant.as_str(), id.as_bytes()];
    if session.execute(STOP, place).await? == 1 {
        return Ok(ChangeResult::Done);
    }
    let found = session.rows(FIND, values![tenant.as_str(), id.as_bytes()]).await?;
    Ok(if found.is_empty() { ChangeResult::Missing } else { ChangeResult::Already })
}

/// Whether this version was still to be continued; it is the caller's until the transaction ends.
pub(crate) async fn take(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: BulkActionId,
    version: i64,
    at: Time,
) -> Result<bool, StoreError> {
    Ok(session.execute(TAKE, values![at, tenant.as_str(), id.as_bytes(), version]).await? == 1)
}

pub(crate) async fn advance(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: BulkActionId,
    progress: &BulkProgress<'_>,
) -> Result<(), StoreError> {
    let state =
        if progress.is_finished { BulkActionState::Finished } else { BulkActionState::Running }.code();
    let values = values![
        progress.reached.map(|uid| uid.as_bytes().to_vec()),
        joined(progress.again),
        progress.changed,
        progress.skipped,
        state,
        progress.is_finished.then_some(progress.at),
        tenant.as_str(),
        id.as_bytes(),
    ];
    session.execute(ADVANCE, values).await.map(drop)
}

/// Removes those that ended long ago.
pub(crate) async fn forget(session: &mut dyn SqlSession, now: Time) -> Result<(), StoreError> {
    let rows = session.rows(ENDED, values![kept_until(now), FORGOTTEN_MAX]).await?;
    for row in rows {
        session.execute(REMOVE, values![row.text(0)?, &row.id16(1)?]).await?;
    }
    Ok(())
}

/// What ended before this is removed.
pub(crate) fn kept_until(now: Time) -> Time {
    Time::from_millis(now.as_millis() - i64::from(BulkAction::KEPT_DAYS) * 24 * 60 * 60 * 1_000)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: BulkActionId,
) -> Result<Option<BulkAction>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_bytes()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    before: Option<BulkActionId>,
    limit: u32,
) -> Result<Vec<BulkAction>, StoreError> {
    let before = before.unwrap_or(BulkActionId::from_bytes([0xff; 16]));
    let values = values![tenant.as_str(), before.as_bytes(), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

pub(crate) async fn running(
    session: &mut dyn SqlSession,
    after: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<BulkAction>, StoreError> {
    let values = values![after.map_or("", |id| id.as_str()), limit];
    session.rows(RUNNING, values).await?.iter().map(read).collect()
}

fn joined(uids: &[MessageUid]) -> Vec<u8> {
    uids.iter().flat_map(|uid| *uid.as_bytes()).collect()
}

fn split(bytes: &[u8]) -> Vec<MessageUid> {
    bytes.as_chunks::<16>().0.iter().map(|bytes| MessageUid::from_bytes(*bytes)).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<BulkAction, StoreError> {
    Ok(BulkAction {
        tenant: row.parsed(0)?,
        id: BulkActionId::from_bytes(row.id16(1)?),
        state: decode::coded(row.int(2)?, BulkActionState::from_code)?,
        task: row.text(3)?.to_owned(),
        selected: split(row.opt_bytes(4)?.unwrap_or_default()),
        actor: row.text(5)?.to_owned(),
        reached: row.opt_bytes(6)?.map(|_| row.id16(6)).transpose()?.map(MessageUid::from_bytes),
        again: split(row.opt_bytes(7)?.unwrap_or_default()),
        expected: row.int(8)?,
        expected_more: row.int(9)? != 0,
        changed: row.int(10)?,
        skipped: row.int(11)?,
        version: row.int(12)?,
        created_at: row.time(13)?,
        updated_at: row.time(14)?,
        ended_at: row.opt_time(15)?,
    })
}
