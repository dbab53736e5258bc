//! How far telling of messages has come.

use std::collections::HashMap;

use postway_domain::{MessageUid, Time};

use super::rules::Told;
use crate::{
    error::StoreError,
    record::NotificationState,
    rows::Multi,
    sql::{Session, Sql, Value},
};

static OF_MESSAGES: Multi = Multi::new(
    "SELECT uid, MIN(state), MAX(state), MAX(settled_at) FROM notification WHERE uid IN (",
    1,
    ") GROUP BY uid",
);
/// The first page of the journal that has its place, and of which no notifications were made.
pub(super) const NOT_FANNED_OUT: Sql = Sql::same(
    "SELECT at FROM journal WHERE position > \
     COALESCE((SELECT p.position FROM progress p WHERE p.name = 'fan_out'), -1) ORDER BY position LIMIT 1",
);
/// The first that has none.
pub(super) const NOT_SEQUENCED: Sql =
    Sql::same("SELECT at FROM journal WHERE position IS NULL ORDER BY id LIMIT 1");
#[cfg(test)]
pub(super) const STATEMENTS: &[Sql] = &[NOT_FANNED_OUT, NOT_SEQUENCED];

/// A text that finds by an index of its own, for the test of plans.
#[cfg(test)]
pub(super) fn of_messages_sample() -> Sql {
    OF_MESSAGES.sample().into()
}

#[cfg(test)]
pub(super) fn multi() -> Vec<&'static Multi> {
    vec![&OF_MESSAGES]
}

/// The oldest page of the journal of which no notifications were made yet.
pub(crate) async fn pending_since(session: &mut dyn Session) -> Result<Option<Time>, StoreError> {
    let mut oldest: Option<Time> = None;
    for sql in [NOT_FANNED_OUT, NOT_SEQUENCED] {
        let rows = session.rows(sql, Vec::new()).await?;
        let at = rows.first().map(|row| row.time(0)).transpose()?;
        oldest = [oldest, at].into_iter().flatten().min();
    }
    Ok(oldest)
}

/// How far it has come with each of these that somebody asked to hear of.
pub(crate) async fn of_messages(
    session: &mut dyn Session,
    uids: &[MessageUid],
) -> Result<HashMap<MessageUid, Told>, StoreError> {
    let mut told = HashMap::new();
    for (sql, run) in OF_MESSAGES.runs(uids) {
        let values = run.iter().map(|uid| Value::from(uid.as_bytes())).collect();
        for row in session.rows(sql.into(), values).await? {
            let (least, most) = (row.int(1)?, row.int(2)?);
            let of_message = Told {
                is_open: least < NotificationState::Acknowledged.code(),
                is_dead: most == NotificationState::Dead.code(),
                settled_at: row.opt_time(3)?,
            };
            told.insert(MessageUid::from_bytes(row.id16(0)?), of_message);
        }
    }
    Ok(told)
}

// Open states are those below the first settled one.
const _: () = assert!((NotificationState::Waiting as i64) < NotificationState::Acknowledged as i64);
const _: () = assert!(NotificationState::Acknowledged as i64 == 3 && NotificationState::Dead as i64 == 4);
