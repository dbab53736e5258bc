//! Gives events that share a row their own rows, and their data in full, so that views can show them. New
//! events have that once a running server has noticed the views; this is for earlier ones.

use postway_domain::{MessageUid, Time};
use sqlx::Connection;

use super::{ViewsDatabase, ViewsError};
use crate::{
    error::StoreError,
    journal::{
        event_row::{events_of, is_plain},
        history::insert_events,
    },
    record::NewEvent,
    sql::{
        MysqlSession, PostgresSession, SqlSession, SqlText, SqliteSession, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
    view_definitions::{error_text, mysql, postgres, sqlite},
};

/// The number of rows read and written in one transaction.
const ROWS_AT_ONCE: i64 = 256;

/// Only a message's first row can have several events, and only its last one short data, which begins with a
/// mark instead of as JSON does.
const SHARED: SqlText = SqlText::same(
    "SELECT DISTINCT uid FROM event WHERE uid > ? AND (more IS NOT NULL OR data NOT LIKE '{%') \
     ORDER BY uid LIMIT ?",
);
/// Removing or erasing a message locks it first, so its history does not change until the transaction ends.
const MESSAGES: &str = "SELECT uid FROM message WHERE uid IN (";
static LOCK: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(MESSAGES, 1, ")"),
    postgres: MultiRow::new(MESSAGES, 1, ") ORDER BY uid FOR UPDATE"),
    mysql: MultiRow::new(MESSAGES, 1, ") ORDER BY uid FOR UPDATE"),
};
/// MySQL would read these as they were when the transaction began, if it did not lock them.
const ROWS: &str = "SELECT uid, seq, at, kind, data, more FROM event \
     WHERE (more IS NOT NULL OR data NOT LIKE '{%') AND uid IN (";
static READ: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(ROWS, 1, ")"),
    postgres: MultiRow::new(ROWS, 1, ") FOR UPDATE"),
    mysql: MultiRow::new(ROWS, 1, ") FOR UPDATE"),
};
static CLEAR: MultiRow =
    MultiRow::new("UPDATE event SET more = NULL WHERE more IS NOT NULL AND uid IN (", 1, ")");

const WRITE_DATA: SqlText = SqlText::same("UPDATE event SET data = ? WHERE uid = ? AND seq = ?");

/// Spreads all such events, a bounded number in a transaction. A process that dies leaves the rest to the
/// next call.
pub async fn spread_events(database: &ViewsDatabase) -> Result<(), ViewsError> {
    // The drivers' types differ, so this cannot be a function.
    macro_rules! spread {
        ($conn:expr, $begin:literal, $session:ident) => {{
            let mut conn = $conn;
            let mut after = Some(MessageUid::from_bytes([0; 16]));
            while let Some(uid) = after {
                let mut txn = conn.begin_with($begin).await?;
                after = spread_page(&mut $session { conn: &mut *txn, failed }, uid).await?;
                txn.commit().await?;
            }
            conn.close().await?;
        }};
    }
    match database {
        // A transaction that reads before it writes is refused as soon as a server has written in between.
        ViewsDatabase::Sqlite(path) => {
            spread!(sqlite::connect(path).await?, "BEGIN IMMEDIATE", SqliteSession)
        }
        ViewsDatabase::Postgres(url) => spread!(postgres::connect(url).await?, "BEGIN", PostgresSession),
        ViewsDatabase::Mysql(url) => spread!(mysql::connect(url).await?, "START TRANSACTION", MysqlSession),
    }
    Ok(())
}

/// Spreads the events of the next few messages. Returns the last of these, if there were any.
async fn spread_page(
    session: &mut dyn SqlSession,
    after: MessageUid,
) -> Result<Option<MessageUid>, StoreError> {
    let shared = session.rows(SHARED, values![after.as_bytes(), ROWS_AT_ONCE]).await?;
    let shared: Vec<MessageUid> =
        shared.iter().map(|row| row.id16(0).map(MessageUid::from_bytes)).collect::<Result<_, _>>()?;
    let mut held = Vec::with_capacity(shared.len());
    for (sql, run) in LOCK.runs(&shared) {
        for row in session.rows(sql, ids(run)).await? {
            held.push(MessageUid::from_bytes(row.id16(0)?));
        }
    }
    let mut events: Vec<(MessageUid, i64, Time, NewEvent)> = Vec::new();
    let mut long: Vec<(MessageUid, i64, String)> = Vec::new();
    for (sql, run) in READ.runs(&held) {
        for row in session.rows(sql, ids(run)).await? {
            let uid = MessageUid::from_bytes(row.id16(0)?);
            let (seq, data) = (row.int(1)?, row.opt_text(4)?.map(str::to_owned));
            let is_short = data.as_deref().is_some_and(|data| !is_plain(data));
            let mut of_row = events_of(seq, row.time(2)?, row.int(3)?, data, row.opt_text(5)?)?.into_iter();
            let first = of_row.next().filter(|_| is_short);
            long.extend(first.and_then(|first| Some((uid, seq, first.data?))));
            events
                .extend(of_row.map(|event| {
                    (uid, event.seq, event.at, NewEvent { kind: event.kind, data: event.data })
                }));
        }
    }
    insert_events(session, &events).await?;
    for (uid, seq, data) in long {
        session.execute(WRITE_DATA, values![data, uid.as_bytes(), seq]).await?;
    }
    for (sql, run) in CLEAR.runs(&held) {
        session.execute(sql.into(), ids(run)).await?;
    }
    Ok(shared.last().copied())
}

fn ids(uids: &[MessageUid]) -> Vec<Value> {
    uids.iter().map(|uid| Value::from(uid.as_bytes())).collect()
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(error_text(&error))
}
