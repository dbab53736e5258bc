//! The register of nodes, and their duties.

use async_trait::async_trait;
use postway_domain::{Incarnation, Time};
use sqlx::{PgConnection, Row, postgres::PgRow};

use super::{PostgresStore, bytes16, code_of, column, connect::within, failed, migrate};
use crate::{
    error::StoreError,
    port::Nodes,
    record::{DutyRecord, NodeBeat, NodeRecord, free_slot},
};

pub(super) const BEAT: &str = "UPDATE node SET beat = beat + 1, beat_at = $2 WHERE incarnation = $1";
pub(super) const REGISTER: &str = "INSERT INTO node (incarnation, identity, slot, name, address, version, \
     started_at, beat, beat_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
pub(super) const NODES: &str = "SELECT incarnation, identity, slot, name, address, version, started_at, beat, \
     beat_at FROM node ORDER BY started_at, incarnation";
pub(super) const STRIKE: &str = "DELETE FROM node WHERE incarnation = ANY ($1::bytea[])";
pub(super) const DUTY: &str = "SELECT holder, term, since FROM duty WHERE name = $1";
pub(super) const FIRST_TERM: &str =
    "INSERT INTO duty (name, holder, term, since) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
pub(super) const NEXT_TERM: &str =
    "UPDATE duty SET holder = $2, term = $3, since = $4 WHERE name = $1 AND term = $3 - 1";

#[async_trait]
impl Nodes for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
        within(async {
            let mut conn = self.readers.acquire().await.map_err(failed)?;
            let writable = migrate::check_writable(&mut conn).await;
            let too_new = writable.as_ref().err().filter(|e| matches!(e, StoreError::SchemaTooNew { .. }));
            self.writers.refuse(too_new.cloned());
            writable?;
            let nodes = beat(&mut conn, node).await?;
            self.peers.update(node.incarnation, &nodes);
            Ok(nodes)
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let rows = sqlx::query(NODES).fetch_all(&self.readers).await.map_err(failed)?;
        rows.iter().map(read_node).collect()
    }

    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError> {
        let query = sqlx::query(STRIKE).bind(column(gone, |one| one.as_bytes().as_slice()));
        query.execute(&self.readers).await.map(drop).map_err(failed)
    }

    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError> {
        let row = sqlx::query(DUTY).bind(name).fetch_optional(&self.readers).await.map_err(failed)?;
        let read = |row: &PgRow| {
            Ok(DutyRecord {
                holder: Incarnation::from_bytes(bytes16(row, 0)?),
                term: row.try_get(1).map_err(failed)?,
                since: Time::from_millis(row.try_get(2).map_err(failed)?),
            })
        };
        row.as_ref().map(read).transpose()
    }

    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError> {
        let (sql, term) = match seen {
            None => (FIRST_TERM, 1),
            Some(duty) => (NEXT_TERM, duty.term + 1),
        };
        let query =
            sqlx::query(sql).bind(name).bind(by.as_bytes().as_slice()).bind(term).bind(at.as_millis());
        let done = query.execute(&self.readers).await.map_err(failed)?;
        Ok((done.rows_affected() == 1).then_some(term))
    }
}

async fn beat(conn: &mut PgConnection, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
    let query = sqlx::query(BEAT).bind(node.incarnation.as_bytes().as_slice()).bind(node.at.as_millis());
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
        Err(error) if code_of(&error).as_deref() == Some("23505") => {
            Err(StoreError::Conflict(error.to_string()))
        }
        Err(error) => Err(failed(error)),
    }
}

async fn read_nodes(conn: &mut PgConnection) -> Result<Vec<NodeRecord>, StoreError> {
    sqlx::query(NODES).fetch_all(conn).await.map_err(failed)?.iter().map(read_node).collect()
}

fn read_node(row: &PgRow) -> Result<NodeRecord, StoreError> {
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
