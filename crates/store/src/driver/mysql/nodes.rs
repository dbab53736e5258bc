//! This database's nodes.

use async_trait::async_trait;
use postway_domain::{Incarnation, Time};
use sqlx::MySqlConnection;

use super::{MysqlStore, failed};
use crate::{
    error::StoreError,
    nodes::registry,
    port::NodeStore,
    record::{DutyRecord, NodeBeat, NodeRecord},
    sql::{MysqlSession, schema},
};

impl MysqlStore {
    /// Does something on the registrar's connection.
    pub(super) async fn register<T>(
        &self,
        work: impl AsyncFnOnce(&mut MySqlConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.registrar.with(async || self.server.writer().await, work).await
    }
}

fn session(conn: &mut MySqlConnection) -> MysqlSession<&mut MySqlConnection> {
    MysqlSession { conn, failed }
}

#[async_trait]
impl NodeStore for MysqlStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
        self.register(async |conn| {
            self.writers.refuse_if_too_new(schema::check_writable(conn).await)?;
            let nodes = registry::beat(&mut session(conn), node).await?;
            self.peers.update(node.incarnation, &nodes);
            Ok(nodes)
        })
        .await
    }

    async fn server_time(&self) -> Result<Option<Time>, StoreError> {
        self.register(async |conn| registry::server_time(&mut session(conn)).await).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.register(async |conn| registry::nodes(&mut session(conn)).await).await
    }

    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError> {
        self.register(async |conn| registry::strike(&mut session(conn), gone).await).await
    }

    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError> {
        self.register(async |conn| registry::duty(&mut session(conn), name).await).await
    }

    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError> {
        self.register(async |conn| registry::take_duty(&mut session(conn), name, seen, by, at).await).await
    }
}
