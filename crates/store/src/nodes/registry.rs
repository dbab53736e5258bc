//! The register of nodes, and their duties: the same for every server.

use std::{sync::Arc, time::Duration};

use postway_domain::{Incarnation, Time};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    error::StoreError,
    nodes::server_silence::SilenceAnnouncer,
    record::{DutyRecord, NodeBeat, NodeRecord, free_slot},
    sql::{Row, SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

const BEAT: SqlText = SqlText::same("UPDATE node SET beat = beat + 1, beat_at = ? WHERE incarnation = ?");
const REGISTER: SqlText = SqlText::or_mysql(
    "INSERT INTO node (incarnation, identity, slot, name, address, version, started_at, beat, beat_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO node (incarnation, identity, slot, name, address, version, started_at, beat, beat_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const NODES: SqlText = SqlText::same(
    "SELECT incarnation, identity, slot, name, address, version, started_at, beat, beat_at FROM node \
     ORDER BY started_at, incarnation",
);
static STRIKE: MultiRow = MultiRow::new("DELETE FROM node WHERE incarnation IN (", 1, ")");
static GIVE_UP: MultiRow =
    MultiRow::new("UPDATE duty SET term = term + 1, holder = ? WHERE holder IN (", 1, ")");
const DUTY: SqlText = SqlText::same("SELECT holder, term, since FROM duty WHERE name = ?");
const FIRST_TERM: SqlText = SqlText::or_mysql(
    "INSERT INTO duty (holder, since, name, term) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO duty (holder, since, name, term) VALUES (?, ?, ?, ?)",
);
const NEXT_TERM: SqlText =
    SqlText::same("UPDATE duty SET holder = ?, since = ?, term = term + 1 WHERE name = ? AND term = ?");
const SERVER_TIME: SqlText = SqlText::of_each(
    "SELECT 0",
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[BEAT, REGISTER, NODES, DUTY, FIRST_TERM, NEXT_TERM, SERVER_TIME];

/// The longest a call to the register may take. A silent connection must be noticed and replaced before other
/// nodes consider this one dead.
const WORD_LASTS_MAX: Duration = Duration::from_secs(3);

/// A connection used by the register alone: a heartbeat must wait neither for writers nor for readers.
pub(crate) struct Registrar<C> {
    conn: Mutex<RegisterConnection<C>>,
    silence: Arc<SilenceAnnouncer>,
}

struct RegisterConnection<C> {
    conn: Option<C>,
    /// Whether the server did not answer the last time, without an error that says it is gone.
    is_silent: bool,
}

impl<C> Registrar<C> {
    /// Wraps a connection; ends of silences are announced through `silence`.
    pub fn new(conn: C, silence: Arc<SilenceAnnouncer>) -> Self {
        let conn = RegisterConnection { conn: Some(conn), is_silent: false };
        Self { conn: Mutex::new(conn), silence }
    }

    /// Runs a call on the connection; a connection that fails is replaced at the next call.
    pub async fn with<T>(
        &self,
        connect: impl AsyncFnOnce() -> Result<C, StoreError>,
        work: impl AsyncFnOnce(&mut C) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // The current user returns the connection within that time. If many wait, a heartbeat that waits for
        // all of them comes too late.
        let Ok(mut held) = timeout(WORD_LASTS_MAX, self.conn.lock()).await else {
            return Err(unanswered());
        };
        let mut conn = held.conn.take();
        let done = timeout(WORD_LASTS_MAX, async {
            let conn = match conn.take() {
                Some(known) => conn.insert(known),
                None => conn.insert(connect().await?),
            };
            work(conn).await
        });
        match done.await {
            Ok(Ok(done)) => {
                held.conn = conn;
                if std::mem::take(&mut held.is_silent) {
                    self.silence.tell();
                }
                Ok(done)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                held.is_silent = true;
                Err(unanswered())
            }
        }
    }

    /// The connection, to close it properly; `None` if another caller does not return it in time.
    pub async fn take(&self) -> Option<C> {
        timeout(WORD_LASTS_MAX, self.conn.lock()).await.ok()?.conn.take()
    }
}

fn unanswered() -> StoreError {
    StoreError::Unavailable("the database did not answer in time".to_owned())
}

/// Moves a node's counter, or registers it, and reads the register.
pub(crate) async fn beat(
    session: &mut dyn SqlSession,
    node: &NodeBeat,
) -> Result<Vec<NodeRecord>, StoreError> {
    let is_known = session.execute(BEAT, values![node.at, node.incarnation.as_bytes()]).await? == 1;
    let registered = nodes(session).await?;
    if is_known {
        return Ok(registered);
    }
    let own = node.clone().registered(free_slot(&registered));
    let values = values![
        own.incarnation.as_bytes(),
        &own.identity,
        own.slot,
        own.name,
        own.address,
        own.version,
        own.started_at,
        own.beat,
        own.beat_at,
    ];
    if session.insert(REGISTER, values).await? {
        return nodes(session).await;
    }
    Err(StoreError::Conflict("another node took the same slot in this moment".into()))
}

/// The time by the server's clock.
pub(crate) async fn server_time(session: &mut dyn SqlSession) -> Result<Option<Time>, StoreError> {
    session.rows(SERVER_TIME, Vec::new()).await?.first().map(|row| row.time(0)).transpose()
}

/// Every registered node, the oldest first.
pub(crate) async fn nodes(session: &mut dyn SqlSession) -> Result<Vec<NodeRecord>, StoreError> {
    session.rows(NODES, Vec::new()).await?.iter().map(read_node).collect()
}

/// Removes nodes from the register. Their duties are freed first, so that a node that finds such a node
/// missing need not wait.
pub(crate) async fn strike(session: &mut dyn SqlSession, gone: &[Incarnation]) -> Result<(), StoreError> {
    let ids = |run: &[Incarnation]| run.iter().map(|one| Value::from(one.as_bytes())).collect::<Vec<_>>();
    for (sql, run) in GIVE_UP.runs(gone) {
        session.execute(sql.into(), [values![DutyRecord::NOBODY.as_bytes()], ids(run)].concat()).await?;
    }
    for (sql, run) in STRIKE.runs(gone) {
        session.execute(sql.into(), ids(run)).await?;
    }
    Ok(())
}

/// The record of a duty.
pub(crate) async fn duty(session: &mut dyn SqlSession, name: &str) -> Result<Option<DutyRecord>, StoreError> {
    let read = |row: &Row| {
        Ok(DutyRecord {
            holder: Incarnation::from_bytes(row.id16(0)?),
            term: row.int(1)?,
            since: row.time(2)?,
        })
    };
    session.rows(DUTY, values![name]).await?.first().map(read).transpose()
}

/// Takes a duty that is still as it was `seen`.
pub(crate) async fn take_duty(
    session: &mut dyn SqlSession,
    name: &str,
    seen: Option<DutyRecord>,
    by: Incarnation,
    at: Time,
) -> Result<Option<i64>, StoreError> {
    let taken = |term: i64| values![by.as_bytes(), at, name, term];
    Ok(match seen {
        None => session.insert(FIRST_TERM, taken(1)).await?.then_some(1),
        Some(duty) => (session.execute(NEXT_TERM, taken(duty.term)).await? == 1).then_some(duty.term + 1),
    })
}

fn read_node(row: &Row) -> Result<NodeRecord, StoreError> {
    Ok(NodeRecord {
        incarnation: Incarnation::from_bytes(row.id16(0)?),
        identity: row.id16(1)?,
        slot: row.int(2)?,
        name: row.text(3)?.to_owned(),
        address: row.text(4)?.to_owned(),
        version: row.text(5)?.to_owned(),
        started_at: row.time(6)?,
        beat: row.int(7)?,
        beat_at: row.time(8)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_all_who_came_before() {
        let registrar = Arc::new(Registrar::new((), Arc::default()));
        let began = tokio::time::Instant::now();
        let words = (0..10).map(|_| {
            let registrar = registrar.clone();
            async move {
                let silent = async |_: &mut ()| std::future::pending::<Result<(), StoreError>>().await;
                let hung = registrar.with(async || Ok(()), silent).await;
                (matches!(hung, Err(StoreError::Unavailable(_))), began.elapsed())
            }
        });
        for (is_refused, after) in futures::future::join_all(words).await {
            assert!(is_refused && after <= WORD_LASTS_MAX * 2, "after {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_went_silent_is_given_up_in_time_and_replaced() {
        let registrar = Registrar::new("silent", Arc::default());
        let began = tokio::time::Instant::now();
        let word = |conn: &mut &'static str| {
            let conn = *conn;
            async move {
                if conn == "silent" {
                    std::future::pending::<()>().await;
                }
                Ok(conn)
            }
        };
        let unused = async || unreachable!("there is a connection");
        let hung = registrar.with(unused, async |conn| word(conn).await).await;
        assert!(matches!(hung, Err(StoreError::Unavailable(_))), "{hung:?}");
        assert!(began.elapsed() <= WORD_LASTS_MAX);
        let heard = registrar.with(async || Ok("new"), async |conn| word(conn).await).await;
        assert_eq!(heard.unwrap(), "new");
        assert_eq!(registrar.take().await, Some("new"));
    }
}
