//! This database's nodes.

use async_trait::async_trait;
use postway_domain::{Incarnation, Time};

use super::{PostgresStore, connect::within, failed, migrate};
use crate::{
    directory::Portable,
    error::StoreError,
    port::Nodes,
    record::{DutyRecord, NodeBeat, NodeRecord},
    register,
};

#[async_trait]
impl Nodes for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
        let mut conn = within(async { self.readers.acquire().await.map_err(failed) }).await?;
        let writable = within(migrate::check_writable(&mut conn)).await;
        drop(conn);
        self.writers.refuse_if_too_new(writable)?;
        let nodes = register::beat(&mut *self.reader().await?, node).await?;
        self.peers.update(node.incarnation, &nodes);
        Ok(nodes)
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        register::nodes(&mut *self.reader().await?).await
    }

    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError> {
        register::strike(&mut *self.reader().await?, gone).await
    }

    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError> {
        register::duty(&mut *self.reader().await?, name).await
    }

    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError> {
        register::take_duty(&mut *self.reader().await?, name, seen, by, at).await
    }
}
