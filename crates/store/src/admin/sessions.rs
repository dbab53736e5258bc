//! Browser sessions that were ended before their time. Those that run to their end leave nothing here.

use postway_domain::{Time, id::SessionId};

use crate::{
    error::StoreError,
    record::Changed,
    sql::{Session, Sql, values},
};

/// The most rows removed in one transaction; the rest waits for the next run.
const SLICE: u32 = 5_000;

const END: Sql = Sql::or_mysql(
    "INSERT INTO ended_session (id, ends_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO ended_session (id, ends_at) VALUES (?, ?)",
);
const FIND: Sql = Sql::same("SELECT ends_at FROM ended_session WHERE id = ?");
const FORGET: Sql = Sql::of_each(
    "DELETE FROM ended_session WHERE id IN \
     (SELECT id FROM ended_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?)",
    "DELETE FROM ended_session WHERE id = ANY \
     (ARRAY(SELECT id FROM ended_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?))",
    "DELETE FROM ended_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[Sql] = &[END, FIND, FORGET];

/// Ends a session. A second sign-out of the same session changes nothing.
pub(crate) async fn end(
    session: &mut dyn Session,
    id: SessionId,
    ends_at: Time,
) -> Result<Changed, StoreError> {
    let is_new = session.insert(END, values![id.as_bytes(), ends_at]).await?;
    Ok(if is_new { Changed::Done } else { Changed::Already })
}

pub(crate) async fn is_ended(session: &mut dyn Session, id: SessionId) -> Result<bool, StoreError> {
    session.rows(FIND, values![id.as_bytes()]).await.map(|rows| !rows.is_empty())
}

/// Removes sessions that would have ended by now anyway: their cookies are not valid any more.
pub(crate) async fn forget(session: &mut dyn Session, now: Time) -> Result<Changed, StoreError> {
    session.execute(FORGET, values![now, SLICE]).await.map(|_| Changed::Done)
}
