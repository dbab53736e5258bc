//! The store on PostgreSQL 15 and later: several writers, READ COMMITTED, set-wise statements with array
//! parameters.
//!
//! A statement takes its rows as arrays, so that it is the same statement for one row and for a thousand.
//! Rows are locked in the order of their ids; what still ends in a deadlock or a lock timeout is tried again.
//! Claims skip what another writer has locked.
//!
//! Any number of processes share a database; they find each other in the table of nodes and wake each other
//! with NOTIFY. A lost connection is replaced; a lost answer to a commit is settled by asking the server.

mod accept;
mod change;
mod claim;
mod connect;
mod dedup;
mod engine;
mod hints;
mod migrate;
mod nodes;
mod open;
mod read;
mod summaries;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Incarnation, MessageState, MessageUid, TenantId, Time, message::OnDoubt};
use sqlx::{
    Connection, PgConnection, PgPool, Row,
    postgres::{PgConnectOptions, PgRow},
};
use tokio::time::timeout;

use self::{connect::within, hints::Hints};
use crate::{
    engine::Writers,
    error::StoreError,
    nodes::{placement::NodePlacement, registry::Registrar},
    port::{IntakeStore, OperationStore, Read, WorkStore},
    queue::{hand_over::HandOver, packing::PackingPolicy, queue_state},
    reading::{queue_stats, search},
    record::{
        Acceptance, AccountKey, ClaimRequest, ClaimedMessage, DedupKind, MessageBrief, MessageChange,
        MessageCount, MessageFilter, MessageKey, MessagePage, MessageRecord, NewMessage, QueueState,
        QueueStats, SendingRate, StalledMessage, StoredBody, WireCommit,
    },
    reporting,
    retention::RetentionScans,
    sql::{
        PostgresSession, SqlSession, decode,
        durability::{DurabilityRisk, DurabilityWatch},
        in_time,
    },
    sql_store::SqlStore,
    sql_store::are_installed,
};

pub use crate::sql::schema::{Migration, MigrationState};

/// How long taking leave may take.
const CLOSE_LASTS_MAX: Duration = Duration::from_secs(5);

/// A store in one PostgreSQL database.
pub struct PostgresStore {
    writers: Writers,
    packing: PackingPolicy,
    readers: PgPool,
    handover: Arc<HandOver>,
    walks: RetentionScans,
    durability: DurabilityWatch,
    peers: Arc<NodePlacement>,
    hints: Hints,
    registrar: Registrar<PgConnection>,
    options: PgConnectOptions,
}

#[async_trait]
impl IntakeStore for PostgresStore {
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
impl WorkStore for PostgresStore {
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
        within(read::raw(&self.readers, None, uid)).await
    }

    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<StalledMessage>, StoreError> {
        within(read::stalled(&self.readers, alive, now, limit)).await
    }

    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError> {
        within(read::overdue(&self.readers, now, limit)).await
    }

    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError> {
        queue_state::queue_state(&mut *self.reader().await?, now).await
    }

    async fn woken(&self) -> Vec<AccountKey> {
        self.handover.woken().await
    }
}

#[async_trait]
impl Read for PostgresStore {
    async fn message(
        &self,
        tenant: &TenantId,
        key: &MessageKey,
    ) -> Result<Option<MessageRecord>, StoreError> {
        within(read::message(&self.readers, tenant, key)).await
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
        within(read::raw(&self.readers, Some(tenant), uid)).await
    }

    async fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        within(read::payload(&self.readers, tenant, uid)).await
    }

    async fn pace(&self, tenant: &TenantId, since: Time) -> Result<Vec<SendingRate>, StoreError> {
        reporting::pace(&mut *self.reader().await?, tenant, since).await
    }

    async fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Result<QueueStats, StoreError> {
        queue_stats::stats(&mut *self.reader().await?, tenant, now).await
    }
}

#[async_trait]
impl SqlStore for PostgresStore {
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
        Ok(Box::new(PostgresSession { conn, failed }))
    }
}

#[async_trait]
impl OperationStore for PostgresStore {
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
        self.hints.stop();
        self.writers.close().await;
        // A connection that went silent cannot be taken leave of.
        let registrar = async {
            if let Some(conn) = self.registrar.take().await
                && let Err(error) = conn.close().await
            {
                tracing::debug!(%error, "the registrar's connection was gone already");
            }
        };
        if timeout(CLOSE_LASTS_MAX, async { tokio::join!(self.readers.close(), registrar) }).await.is_err() {
            tracing::debug!("connections were gone already");
        }
    }
}

/// PostgreSQL's code of an error, where it has one.
fn code_of(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(|database| database.code())
}

/// Whether the connection is gone, and with it what was not committed.
fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        // Class 08 is the connection, 57P01 to 57P05 its end by the server.
        sqlx::Error::Database(_) => {
            code_of(error).is_some_and(|code| code.starts_with("08") || code.starts_with("57P"))
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// A driver's error in the port's words.
fn failed(error: sqlx::Error) -> StoreError {
    if is_lost(&error) {
        return StoreError::Unavailable(error.to_string());
    }
    match &error {
        sqlx::Error::Database(_) => match code_of(&error).as_deref() {
            // Serialization failure, deadlock, lock timeout.
            Some("40001" | "40P01" | "55P03") => StoreError::Conflict(error.to_string()),
            // A statement that took too long.
            Some("57014") => StoreError::TooSlow(error.to_string()),
            // A read-only server; 53 is lack of disk, memory or connections, 58 the system below.
            Some("25006") => StoreError::Unavailable(error.to_string()),
            Some(code) if code.starts_with("53") || code.starts_with("58") => {
                StoreError::Unavailable(error.to_string())
            }
            _ => StoreError::Unexpected(error.to_string()),
        },
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => StoreError::Unavailable(error.to_string()),
        _ => StoreError::Unexpected(error.to_string()),
    }
}

/// The same inside a transaction, before its commit: a lost connection has undone it, so it can be tried
/// again.
fn undone(error: sqlx::Error) -> StoreError {
    if is_lost(&error) { StoreError::Conflict(error.to_string()) } else { failed(error) }
}

/// One column of many rows, as an array parameter.
fn column<'r, T, U>(rows: &'r [T], value: impl Fn(&'r T) -> U) -> Vec<U> {
    rows.iter().map(value).collect()
}

/// Text of strangers (a relay's reply, a client's label) may hold NUL, which PostgreSQL's text cannot: the
/// outcome of an attempt must not be lost for that.
fn text(value: &str) -> Cow<'_, str> {
    if value.contains('\0') { value.replace('\0', "\u{fffd}").into() } else { value.into() }
}

fn bytes16(row: &PgRow, index: usize) -> Result<[u8; 16], StoreError> {
    decode::id16(row.try_get(index).map_err(failed)?)
}

/// PostgreSQL has no unsigned integers.
fn unsigned<T: TryFrom<i64>>(row: &PgRow, index: usize) -> Result<T, StoreError> {
    let number: i64 = row.try_get(index).map_err(failed)?;
    T::try_from(number).map_err(|_| StoreError::Unexpected(format!("a stored number out of range: {number}")))
}

fn coded<T>(row: &PgRow, index: usize, from_code: fn(i64) -> Option<T>) -> Result<T, StoreError> {
    decode::coded(row.try_get(index).map_err(failed)?, from_code)
}

fn on_doubt(row: &PgRow, index: usize) -> Result<OnDoubt, StoreError> {
    Ok(decode::on_doubt(row.try_get(index).map_err(failed)?))
}

/// A state from three columns in a row: status, wait, wire_committed.
fn state(row: &PgRow, first: usize) -> Result<MessageState, StoreError> {
    decode::state(
        row.try_get(first).map_err(failed)?,
        row.try_get(first + 1).map_err(failed)?,
        row.try_get(first + 2).map_err(failed)?,
    )
}
