//! Gives events that share a row rows of their own, so that views can show them. New ones have their own from when a running server
//! has noticed the views; this is for those from before.

use postway_domain::{MessageUid, Time};
use sqlx::Connection;

use super::{Database, ViewsError, mysql, postgres, said, sqlite};
use crate::{
    error::StoreError,
    event_row,
    record::NewEvent,
    reports::insert_events,
    rows::Multi,
    sql::{MysqlSession, PostgresSession, Session, Sql, SqliteSession, Value, values},
};

/// Rows that are looked at and written in one transaction.
const ROWS_AT_ONCE: i64 = 256;

/// Only a message's first row tells of several events.
const SHARED: Sql = Sql::same(
    "SELECT uid, seq, at, kind, data, more FROM event WHERE uid > ? AND more IS NOT NULL ORDER BY uid LIMIT ?",
);
static CLEAR: Multi = Multi::new("UPDATE event SET more = NULL WHERE more IS NOT NULL AND uid IN (", 1, ")");

/// Spreads all of them, a bounded number in a transaction.
pub async fn spread_events(database: &Database) -> Result<(), ViewsError> {
    // The drivers' types differ, so this cannot be a function.
    macro_rules! spread {
        ($conn:expr, $session:ident) => {{
            let mut conn = $conn;
            let mut after = Some(MessageUid::from_bytes([0; 16]));
            while let Some(uid) = after {
                let mut txn = conn.begin().await?;
                after = spread_page(&mut $session { conn: &mut *txn, failed }, uid).await?;
                txn.commit().await?;
            }
            conn.close().await?;
        }};
    }
    match database {
        Database::Sqlite(path) => spread!(sqlite::connect(path).await?, SqliteSession),
        Database::Postgres(url) => spread!(postgres::connect(url).await?, PostgresSession),
        Database::Mysql(url) => spread!(mysql::connect(url).await?, MysqlSession),
    }
    Ok(())
}

/// Spreads the next few; the last of them, unless there were none.
async fn spread_page(session: &mut dyn Session, after: MessageUid) -> Result<Option<MessageUid>, StoreError> {
    let mut uids = Vec::new();
    let mut events: Vec<(MessageUid, i64, Time, NewEvent)> = Vec::new();
    for row in session.rows(SHARED, values![after.as_bytes(), ROWS_AT_ONCE]).await? {
        let uid = MessageUid::from_bytes(row.id16(0)?);
        let told = event_row::events_of(row.int(1)?, row.time(2)?, row.int(3)?, None, row.opt_text(5)?)?;
        let own = told.into_iter().skip(1);
        events.extend(
            own.map(|event| (uid, event.seq, event.at, NewEvent { kind: event.kind, data: event.data })),
        );
        uids.push(uid);
    }
    insert_events(session, &events).await?;
    for (sql, run) in CLEAR.runs(&uids) {
        session.execute(sql.into(), run.iter().map(|uid| Value::from(uid.as_bytes())).collect()).await?;
    }
    Ok(uids.last().copied())
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(said(&error))
}
