//! A store in MySQL 8 or MariaDB 10.6 and later, shared with whatever else its server does.
//!
//! Every statement is one that both have; tests run on MariaDB, and on MySQL where one is named
//! (CONTRIBUTING.md). Transactions are READ COMMITTED, several connections write at once, rows are locked in
//! the order of their ids, and what is being leased by another is skipped.
//!
//! Any number of processes share a database; they find each other in the table of nodes. On a Galera cluster,
//! where rows are locked on one node only and the second to commit loses, each account is served by one
//! process first, and by the others when its mail has waited. A message must fit into the server's
//! `max_allowed_packet`.
//!
//! A lost connection is replaced; the result of a commit whose answer was lost is read back. Deadlocks, lock
//! timeouts and failed certifications are [`StoreError::Conflict`].

mod accept;
mod accept_fence;
mod change;
mod claim;
mod dedup;
mod due_work;
mod engine;
mod error;
mod migrate;
mod nodes;
mod open;
mod read;
mod recipients_and_attempts;
mod row_values;
mod summaries;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use postway_domain::{Incarnation, MessageUid, TenantId, Time};
use sqlx::{MySqlConnection, MySqlPool};
use tokio::time::timeout;

use self::{
    accept::insert_events,
    error::failed,
    open::MysqlServer,
    row_values::{bytes16, coded, on_doubt, state, text, time, unsigned},
};
use crate::{
    engine::Writers,
    error::StoreError,
    nodes::{placement::NodePlacement, registry::Registrar},
    port::{IntakeStore, OperationStore, Read, WorkStore},
    queue::{dialogue, hand_over::HandOver, packing::PackingPolicy, queue_state},
    reading::{queue_stats, search},
    record::{
        Acceptance, AccountKey, AttemptDialogue, ClaimRequest, ClaimedMessage, DedupKind, MessageBrief,
        MessageChange, MessageCount, MessageFilter, MessageKey, MessagePage, MessageRecord, NewMessage,
        QueueState, QueueStats, SendingRate, StalledMessage, StoredBody, WireCommit,
    },
    reporting,
    retention::RetentionScans,
    sql::{
        MysqlSession, SqlSession,
        durability::{DurabilityRisk, DurabilityWatch},
        in_time,
    },
    sql_store::SqlStore,
    sql_store::are_installed,
};

pub use crate::sql::schema::{Migration, MigrationState};

/// A store in one MySQL or MariaDB database.
pub struct MysqlStore {
    writers: Writers,
    packing: PackingPolicy,
    readers: MySqlPool,
    handover: Arc<HandOver>,
    walks: RetentionScans,
    durability: DurabilityWatch,
    server: Arc<MysqlServer>,
    peers: Arc<NodePlacement>,
    /// For the register of nodes: a heartbeat must not wait for the writers.
    registrar: Registrar<MySqlConnection>,
}

#[async_trait]
impl IntakeStore for MysqlStore {
    async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError> {
        let packing = self.packing.most(are_installed(self)).await;
        self.writers.accept(messages, packing).await
    }

    async fn seen_before(
        &self,
        tenant: &TenantId,
        keys: &[(DedupKind, String)],
        fingerprint: &[u8; 32],
        now: Time,
    ) -> Result<Option<Acceptance>, StoreError> {
        crate::queue::dedup::seen_before(&mut *self.reader().await?, tenant, keys, fingerprint, now).await
    }
}

#[async_trait]
impl WorkStore for MysqlStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedMessage>, StoreError> {
        self.writers.claim(request).await
    }

    async fn handed_over(&self) -> Vec<ClaimedMessage> {
        self.handover.delivered().await
    }

    fn unpark(&self) {
        self.handover.unpark();
    }

    async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError> {
        self.writers.wire_commit(commits).await
    }

    async fn apply(&self, changes: Vec<MessageChange>) -> Result<Vec<bool>, StoreError> {
        let packing = self.packing.most(are_installed(self)).await;
        self.writers.apply(changes, packing).await
    }

    async fn body(&self, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        in_time(read::raw(&self.readers, None, uid)).await?
    }

    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<StalledMessage>, StoreError> {
        in_time(due_work::stalled(&self.readers, alive, now, limit)).await?
    }

    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError> {
        in_time(due_work::overdue(&self.readers, now, limit)).await?
    }

    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError> {
        queue_state::queue_state(&mut *self.reader().await?, now).await
    }

    async fn woken(&self) -> Vec<AccountKey> {
        self.handover.woken().await
    }
}

#[async_trait]
impl Read for MysqlStore {
    async fn message(
        &self,
        tenant: &TenantId,
        key: &MessageKey,
    ) -> Result<Option<MessageRecord>, StoreError> {
        in_time(read::message(&self.readers, tenant, key)).await?
    }

    async fn search(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<MessagePage, StoreError> {
        let found = search::find(&mut *self.reader().await?, tenant, filter, before, limit).await?;
        let messages = in_time(summaries::summaries(&self.readers, tenant, &found.uids)).await??;
        Ok(found.page(filter, messages))
    }

    async fn count(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        most: u32,
    ) -> Result<MessageCount, StoreError> {
        search::count(&mut *self.reader().await?, tenant, filter, most).await
    }

    async fn briefs(&self, tenant: &TenantId, uids: &[MessageUid]) -> Result<Vec<MessageBrief>, StoreError> {
        in_time(summaries::briefs(&self.readers, tenant, uids)).await?
    }

    async fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        in_time(read::raw(&self.readers, Some(tenant), uid)).await?
    }

    async fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        in_time(read::payload(&self.readers, tenant, uid)).await?
    }

    async fn dialogue(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<AttemptDialogue>, StoreError> {
        dialogue::find(&mut *self.reader().await?, tenant, uid).await
    }

    async fn pace(&self, tenant: &TenantId, since: Time) -> Result<Vec<SendingRate>, StoreError> {
        reporting::pace(&mut *self.reader().await?, tenant, since).await
    }

    async fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Result<QueueStats, StoreError> {
        queue_stats::stats(&mut *self.reader().await?, tenant, now).await
    }
}

#[async_trait]
impl SqlStore for MysqlStore {
    fn writers(&self) -> &Writers {
        &self.writers
    }

    fn handover(&self) -> &HandOver {
        &self.handover
    }

    fn walks(&self) -> &RetentionScans {
        &self.walks
    }

    async fn reader(&self) -> Result<Box<dyn SqlSession + '_>, StoreError> {
        let conn = self.readers.acquire().await.map_err(failed)?;
        Ok(Box::new(MysqlSession { conn, failed }))
    }
}

#[async_trait]
impl OperationStore for MysqlStore {
    fn durability_risks(&self) -> Vec<DurabilityRisk> {
        self.durability.risks()
    }

    async fn review_durability(&self) -> Result<(), StoreError> {
        self.durability.note(self.register(open::risks).await?);
        Ok(())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.writers.ping().await
    }

    fn commits(&self) -> u64 {
        self.writers.commits()
    }

    async fn close(&self) {
        self.writers.close().await;
        if timeout(open::CLOSE_LASTS_MAX, self.readers.close()).await.is_err() {
            tracing::debug!("readers' connections were gone already");
        }
        if let Some(conn) = self.registrar.take().await {
            open::close(conn).await;
        }
    }
}
