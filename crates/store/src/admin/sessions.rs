//! Browser sessions that were ended before their time. Those that run to their end leave nothing here.

use postway_domain::{Time, id::SessionId};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{SqlSession, SqlText, values},
};

/// The most rows removed in one transaction; the rest waits for the next run.
const SLICE: u32 = 5_000;

const END: SqlText = SqlText::or_mysql(
    "INSERT INTO ended_session (id, ends_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO ended_session (id, ends_at) VALUES (?, ?)",
);
const FIND: SqlText = SqlText::same("SELECT ends_at FROM ended_session WHERE id = ?");
const FORGET: SqlText = SqlText::of_each(
    "DELETE FROM ended_session WHERE id IN \
     (SELECT id FROM ended_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?)",
    "DELETE FROM ended_session WHERE id = ANY \
     (ARRAY(SELECT id FROM ended_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?))",
    "DELETE FROM ended_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[END, FIND, FORGET];

/// Ends a session. A second sign-out of the same session changes nothing.
pub(crate) async fn end(
    session: &mut dyn SqlSession,
    id: SessionId,
    ends_at: Time,
) -> Result<ChangeResult, StoreError> {
    let is_new = session.insert(END, values![id.as_bytes(), ends_at]).await?;
    Ok(if is_new { ChangeResult::Done } else { ChangeResult::Already })
}

pub(crate) async fn is_ended(session: &mut dyn SqlSession, id: SessionId) -> Result<bool, StoreError> {
    session.rows(FIND, values![id.as_bytes()]).await.map(|rows| !rows.is_empty())
}

/// Removes sessions that would have ended by now anyway: their cookies are not valid any more.
pub(crate) async fn forget(session: &mut dyn SqlSession, now: Time) -> Result<ChangeResult, StoreError> {
    session.execute(FORGET, values![now, SLICE]).await.map(|_| ChangeResult::Done)
}
