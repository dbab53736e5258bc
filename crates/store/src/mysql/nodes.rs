//! The register of nodes, and their duties.

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{Incarnation, Time};
use sqlx::{MySqlConnection, Row, mysql::MySqlRow};
use tokio::time::timeout;

use super::{MysqlStore, bytes16, failed, migrate};
use crate::{
    error::StoreError,
    port::Nodes,
    record::{DutyRecord, NodeBeat, NodeRecord, free_slot},
    rows::Multi,
};

pub(super) const BEAT: &str = "UPDATE node SET beat = beat + 1, beat_at = ? WHERE incarnation = ?";
pub(super) const REGISTER: &str = "INSERT INTO node (incarnation, identity, slot, name, address, version, \
     started_at, beat, beat_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
pub(super) const NODES: &str = "SELECT incarnation, identity, slot, name, address, version, started_at, beat, \
     beat_at FROM node ORDER BY started_at, incarnation";
pub(super) static STRIKE: Multi = Multi::new("DELETE FROM node WHERE incarnation IN (", 1, ")");
pub(super) const DUTY: &str = "SELECT holder, term, since FROM duty WHERE name = ?";
pub(super) const FIRST_TERM: &str = "INSERT IGNORE INTO duty (holder, since, name, term) VALUES (?, ?, ?, ?)";
pub(super) const NEXT_TERM: &str =
    "UPDATE duty SET term = term + 1, holder = ?, since = ? WHERE name = ? AND term = ?";

/// How long a word with the register may take.
const LASTS_MAX: Duration = Duration::from_secs(5);

impl MysqlStore {
    /// Does something on the registrar's connection; a connection that fails is replaced at the next call.
    async fn register<T>(
        &self,
        work: impl AsyncFnOnce(&mut MySqlConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut held = self.registrar.lock().await;
        let done = timeout(LASTS_MAX, async {
            let conn = match held.take() {
                Some(conn) => held.insert(conn),
                None => held.insert(self.server.writer().await?),
            };
            work(conn).await
        });
        let done = done
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the server did not answer in time".to_owned())));
        if done.is_err() {
            *held = None;
        }
        done
    }
}

#[async_trait]
impl Nodes for MysqlStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
        self.register(async |conn| {
            let writable = migrate::check_writable(conn).await;
            let too_new = writable.as_ref().err().filter(|e| matches!(e, StoreError::SchemaTooNew { .. }));
            self.writers.refuse(too_new.cloned());
            writable?;
            let nodes = beat(conn, node).await?;
            self.peers.update(node.incarnation, &nodes);
            Ok(nodes)
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.register(read_nodes).await
    }

    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError> {
        self.register(async |conn| {
            for (sql, run) in STRIKE.runs(gone) {
                let mut query = sqlx::query(sql);
                for one in run {
                    query = query.bind(one.as_bytes().as_slice());
                }
                query.execute(&mut *conn).await.map_err(failed)?;
            }
            Ok(())
        })
        .await
    }

    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError> {
        self.register(async |conn| {
            let row = sqlx::query(DUTY).bind(name).fetch_optional(conn).await.map_err(failed)?;
            let read = |row: &MySqlRow| {
                Ok(DutyRecord {
                    holder: Incarnation::from_bytes(bytes16(row, 0)?),
                    term: row.try_get(1).map_err(failed)?,
                    since: Time::from_millis(row.try_get(2).map_err(failed)?),
                })
            };
            row.as_ref().map(read).transpose()
        })
        .await
    }

    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError> {
        self.register(async |conn| {
            // The last parameter is the first term, or the one that was seen.
            let (sql, last, term) = match seen {
                None => (FIRST_TERM, 1, 1),
                Some(duty) => (NEXT_TERM, duty.term, duty.term + 1),
            };
            let query = sqlx::query(sql).bind(by.as_bytes().as_slice()).bind(at.as_millis());
            let done = query.bind(name).bind(last).execute(conn).await.map_err(failed)?;
            Ok((done.rows_affected() == 1).then_some(term))
        })
        .await
    }
}

async fn beat(conn: &mut MySqlConnection, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
    let query = sqlx::query(BEAT).bind(node.at.as_millis()).bind(node.incarnation.as_bytes().as_slice());
    let is_known = query.execute(&mut *conn).await.map_err(failed)?.rows_affected() == 1;
    let nodes = read_nodes(conn).await?;
    if is_known {
        return Ok(nodes);
    }
    let own = node.clone().registered(free_slot(&nodes));
    let registered = sqlx::query(REGISTER)
        .bind(own.incarnation.as_bytes().as_slice())
        .bind(own.identity.as_slice())
        .bind(own.slot)
        .bind(&own.name)
        .bind(&own.address)
        .bind(&own.version)
        .bind(own.started_at.as_millis())
        .bind(own.beat)
        .bind(own.beat_at.as_millis())
        .execute(&mut *conn)
        .await;
    match registered {
        Ok(_) => read_nodes(conn).await,
        // Another node took the same slot in this moment.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            Err(StoreError::Conflict(error.to_string()))
        }
        Err(error) => Err(failed(error)),
    }
}

async fn read_nodes(conn: &mut MySqlConnection) -> Result<Vec<NodeRecord>, StoreError> {
    sqlx::query(NODES).fetch_all(conn).await.map_err(failed)?.iter().map(read_node).collect()
}

fn read_node(row: &MySqlRow) -> Result<NodeRecord, StoreError> {
    Ok(NodeRecord {
        incarnation: Incarnation::from_bytes(bytes16(row, 0)?),
        identity: bytes16(row, 1)?,
        slot: row.try_get(2).map_err(failed)?,
        name: row.try_get(3).map_err(failed)?,
        address: row.try_get(4).map_err(failed)?,
        version: row.try_get(5).map_err(failed)?,
        started_at: Time::from_millis(row.try_get(6).map_err(failed)?),
        beat: row.try_get(7).map_err(failed)?,
        beat_at: Time::from_millis(row.try_get(8).map_err(failed)?),
    })
}
