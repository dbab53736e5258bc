//! The embedded store: SQLite in WAL mode with `synchronous=FULL`, one writer, several readers.
//!
//! One process per file, held by an OS lock beside it: a second one is refused with a sentence that says so.
//! Because of that, whatever an earlier life of the process had leased is known to be stale as soon as this
//! one starts.

mod accept;
pub mod backup;
mod change;
mod claim;
mod connection;
mod dedup;
mod engine;
mod file_presence;
mod migrate;
mod open;
mod read;
mod space;
mod summaries;
#[cfg(test)]
mod tests;
mod wal_checkpoint;

use std::{fs::File, sync::Arc};

use async_trait::async_trait;
use postway_domain::{Incarnation, MessageState, MessageUid, TenantId, Time, message::OnDoubt};
use sqlx::{Row, SqlitePool, sqlite::SqliteRow};

use self::{connection::WriterConnection, space::SpaceKeeper};
use crate::{
    engine::Writers,
    error::StoreError,
    journal::event_row::EventRow,
    nodes::single::LocalNodes,
    port::{IntakeStore, NodeStore, OperationStore, Read, WorkStore},
    queue::{dialogue, hand_over::HandOver, packing::PackingPolicy, queue_state},
    reading::{queue_stats, search},
    record::{
        Acceptance, AccountKey, AttemptDialogue, ClaimRequest, ClaimedMessage, DedupKind, DutyRecord,
        MessageBrief, MessageChange, MessageCount, MessageFilter, MessageKey, MessagePage, MessageRecord,
        NewEvent, NewMessage, NodeBeat, NodeRecord, QueueState, QueueStats, SendingRate, StalledMessage,
        StoreSpace, StoredBody, WireCommit,
    },
    reporting,
    retention::RetentionScans,
    sql::{SqlSession, SqliteSession, decode},
    sql_store::SqlStore,
    sql_store::are_installed,
};

pub(crate) use self::open::take_lock;
pub use crate::sql::schema::{Migration, MigrationState};

/// A store in one SQLite file.
pub struct SqliteStore {
    writers: Writers,
    packing: PackingPolicy,
    readers: SqlitePool,
    space: SpaceKeeper,
    handover: Arc<HandOver>,
    walks: RetentionScans,
    nodes: LocalNodes,
    _lock: File,
}

#[async_trait]
impl IntakeStore for SqliteStore {
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
impl WorkStore for SqliteStore {
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
        read::raw(&self.readers, None, uid).await
    }

    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<StalledMessage>, StoreError> {
        read::stalled(&self.readers, alive, now, limit).await
    }

    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError> {
        read::overdue(&self.readers, now, limit).await
    }

    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError> {
        queue_state::queue_state(&mut *self.reader().await?, now).await
    }

    async fn woken(&self) -> Vec<AccountKey> {
        self.handover.woken().await
    }
}

#[async_trait]
impl Read for SqliteStore {
    async fn message(
        &self,
        tenant: &TenantId,
        key: &MessageKey,
    ) -> Result<Option<MessageRecord>, StoreError> {
        read::message(&self.readers, tenant, key).await
    }

    async fn search(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<MessagePage, StoreError> {
        let found = search::find(&mut *self.reader().await?, tenant, filter, before, limit).await?;
        let messages = summaries::summaries(&self.readers, tenant, &found.uids).await?;
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
        summaries::briefs(&self.readers, tenant, uids).await
    }

    async fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        read::raw(&self.readers, Some(tenant), uid).await
    }

    async fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError> {
        read::payload(&self.readers, tenant, uid).await
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
impl SqlStore for SqliteStore {
    fn writers(&self) -> &Writers {
        &self.writers
    }

    fn handover(&self) -> &HandOver {
        &self.handover
    }

    fn walks(&self) -> &RetentionScans {
        &self.walks
    }

    fn has_other_processes(&self) -> bool {
        false
    }

    async fn reader(&self) -> Result<Box<dyn SqlSession + '_>, StoreError> {
        let conn = self.readers.acquire().await.map_err(failed)?;
        Ok(Box::new(SqliteSession { conn, failed }))
    }
}

#[async_trait]
impl NodeStore for SqliteStore {
    fn is_shared(&self) -> bool {
        false
    }

    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
        Ok(self.nodes.beat(node))
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        Ok(self.nodes.all())
    }

    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError> {
        self.nodes.strike(gone);
        Ok(())
    }

    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError> {
        Ok(self.nodes.duty(name))
    }

    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError> {
        Ok(self.nodes.take_duty(name, seen, by, at))
    }
}

#[async_trait]
impl OperationStore for SqliteStore {
    async fn ping(&self) -> Result<(), StoreError> {
        self.writers.ping().await
    }

    fn commits(&self) -> u64 {
        self.writers.commits()
    }

    async fn tend_space(&self) -> Result<Option<StoreSpace>, StoreError> {
        self.space.tend().await.map(Some)
    }

    async fn close(&self) {
        // Readers first: the last connection to go folds the WAL back into the file.
        self.readers.close().await;
        self.space.close().await;
        self.writers.close().await;
    }
}

/// A driver's error in the port's words. Its text may hold values, so the log sees only its kind.
fn failed(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => match database.code().and_then(|code| code.parse().ok()) {
            Some(code) => failed_with(code, error.to_string()),
            None => StoreError::Unexpected(error.to_string()),
        },
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreError::Unavailable(error.to_string()),
        _ => StoreError::Unexpected(error.to_string()),
    }
}

/// What an extended result code of SQLite means to the port.
fn failed_with(code: u32, text: String) -> StoreError {
    match code & 0xff {
        // SQLITE_INTERRUPT: a read that lasted too long.
        9 => StoreError::TooSlow(text),
        // SQLITE_BUSY, _LOCKED, _NOMEM, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB. When the disk
        // dies under it, a file looks damaged that is whole once the disk is back.
        5 | 6 | 7 | 8 | 10 | 11 | 13 | 14 | 26 => StoreError::Unavailable(text),
        _ => StoreError::Unexpected(text),
    }
}

/// Whether another connection holds the file (SQLITE_BUSY).
fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|database| database.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

fn insert_events(
    conn: &WriterConnection,
    events: &[(MessageUid, i64, Time, NewEvent)],
) -> Result<(), StoreError> {
    let single = events.iter().map(|(uid, seq, at, event)| EventRow::single(*uid, *seq, *at, event));
    insert_event_rows(conn, single)
}

fn insert_event_rows<'e>(
    conn: &WriterConnection,
    rows: impl IntoIterator<Item = EventRow<'e>>,
) -> Result<(), StoreError> {
    let mut query = conn.query(accept::INSERT_EVENT)?;
    for row in rows {
        query = query
            .bind(row.uid.as_bytes().as_slice())
            .bind(row.seq)
            .bind(row.at.as_millis())
            .bind(row.kind.code())
            .bind(row.data)
            .bind(row.more);
        query.execute_row()?;
    }
    Ok(())
}

fn bytes16(row: &SqliteRow, index: usize) -> Result<[u8; 16], StoreError> {
    decode::id16(row.try_get(index).map_err(failed)?)
}

fn coded<T>(row: &SqliteRow, index: usize, from_code: fn(i64) -> Option<T>) -> Result<T, StoreError> {
    decode::coded(row.try_get(index).map_err(failed)?, from_code)
}

fn on_doubt(row: &SqliteRow, index: usize) -> Result<OnDoubt, StoreError> {
    Ok(decode::on_doubt(row.try_get(index).map_err(failed)?))
}

/// A state from three columns in a row: status, wait, wire_committed.
fn state(row: &SqliteRow, first: usize) -> Result<MessageState, StoreError> {
    decode::state(
        row.try_get(first).map_err(failed)?,
        row.try_get(first + 1).map_err(failed)?,
        row.try_get(first + 2).map_err(failed)?,
    )
}
