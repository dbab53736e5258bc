//! Browser sessions of users. A session is a row: without it, no cookie opens anything on any node.

use postway_domain::{
    Time,
    id::{SessionId, UserId},
};

use crate::{
    error::StoreError,
    record::{ChangeResult, UserSession},
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

/// The most rows removed in one transaction; the rest waits for the next run.
const SLICE: u32 = 5_000;

macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT id, user_id, began_at, ends_at, seen_at, way, address, agent FROM user_session ",
            $end
        )
    };
}
const BEGIN: SqlText = SqlText::or_mysql(
    "INSERT INTO user_session (id, user_id, began_at, ends_at, seen_at, way, address, agent) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO user_session (id, user_id, began_at, ends_at, seen_at, way, address, agent) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
);
const TOUCH: SqlText = SqlText::same("UPDATE user_session SET seen_at = ? WHERE id = ? AND seen_at < ?");
const END: SqlText = SqlText::same("DELETE FROM user_session WHERE id = ?");
const END_OF_USER: SqlText = SqlText::same("DELETE FROM user_session WHERE user_id = ?");
const FIND: SqlText = SqlText::same(select!("WHERE id = ?"));
const OF_USER: SqlText = SqlText::same(select!("WHERE user_id = ? ORDER BY id DESC LIMIT ?"));
const FORGET: SqlText = SqlText::of_each(
    "DELETE FROM user_session WHERE id IN \
     (SELECT id FROM user_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?)",
    "DELETE FROM user_session WHERE id = ANY \
     (ARRAY(SELECT id FROM user_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?))",
    "DELETE FROM user_session WHERE ends_at <= ? ORDER BY ends_at LIMIT ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[BEGIN, TOUCH, END, END_OF_USER, FIND, OF_USER, FORGET];

pub(crate) async fn begin(
    session: &mut dyn SqlSession,
    begun: &UserSession,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        begun.id.as_bytes(),
        begun.user.as_bytes(),
        begun.began_at,
        begun.ends_at,
        begun.seen_at,
        begun.way.as_str(),
        begun.address.as_deref(),
        begun.agent.as_deref(),
    ];
    session.insert(BEGIN, values).await.map(is_new)
}

pub(crate) async fn touch(
    session: &mut dyn SqlSession,
    id: SessionId,
    at: Time,
) -> Result<ChangeResult, StoreError> {
    session.execute(TOUCH, values![at, id.as_bytes(), at]).await.map(was_there)
}

pub(crate) async fn end(session: &mut dyn SqlSession, id: SessionId) -> Result<ChangeResult, StoreError> {
    session.execute(END, values![id.as_bytes()]).await.map(was_there)
}

pub(crate) async fn end_of_user(
    session: &mut dyn SqlSession,
    user: UserId,
) -> Result<ChangeResult, StoreError> {
    session.execute(END_OF_USER, values![user.as_bytes()]).await.map(was_there)
}

/// Removes sessions whose time is over.
pub(crate) async fn forget(session: &mut dyn SqlSession, now: Time) -> Result<ChangeResult, StoreError> {
    session.execute(FORGET, values![now, SLICE]).await.map(|_| ChangeResult::Done)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    id: SessionId,
) -> Result<Option<UserSession>, StoreError> {
    session.rows(FIND, values![id.as_bytes()]).await?.first().map(read).transpose()
}

/// A user's sessions, the newest first.
pub(crate) async fn of_user(
    session: &mut dyn SqlSession,
    user: UserId,
    limit: u32,
) -> Result<Vec<UserSession>, StoreError> {
    session.rows(OF_USER, values![user.as_bytes(), limit]).await?.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<UserSession, StoreError> {
    Ok(UserSession {
        id: SessionId::from_bytes(row.id16(0)?),
        user: UserId::from_bytes(row.id16(1)?),
        began_at: row.time(2)?,
        ends_at: row.time(3)?,
        seen_at: row.time(4)?,
        way: row.text(5)?.to_owned(),
        address: row.opt_string(6)?,
        agent: row.opt_string(7)?,
    })
}
