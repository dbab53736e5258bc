//! Nodes that share a database: their heartbeats, and the duties that one of them has at a time.

use async_trait::async_trait;
use postway_domain::{Incarnation, Time};

use crate::{
    error::StoreError,
    record::{DutyRecord, NodeBeat, NodeRecord},
};

/// The nodes that share a database, and their duties.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// Whether other processes may use this store at the same time.
    fn is_shared(&self) -> bool;

    /// Registers this process or moves its heartbeat counter, and returns every registered node. If the
    /// schema has become one that this program must not write, it fails, and all later writes are refused.
    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError>;

    /// The clock of the database server that nodes share, if there is one. It is evidence only; no decision
    /// uses it as the time.
    async fn server_time(&self) -> Result<Option<Time>, StoreError> {
        Ok(None)
    }

    /// Every registered node, the oldest first.
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError>;

    /// Removes nodes from the register, stopping ones and dead ones. Their duties are free from then on.
    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError>;

    /// The holder of a duty, if it ever had one.
    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError>;

    /// Takes a duty if it is still as it was `seen`. Returns its new term, or `None` if another node was
    /// faster.
    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError>;
}
