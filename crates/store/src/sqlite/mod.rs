//! The embedded store: SQLite in WAL mode with `synchronous=FULL`, one writer, several readers.
//!
//! One process per file, held by an OS lock beside it: a second one is refused with a sentence that says so. Because
//! of that, whatever an earlier life of the process had leased is known to be stale as soon as this one starts.

mod accept;
mod accounts;
mod change;
mod claim;
mod dedup;
mod migrate;
mod open;
mod read;
mod rows;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    fs::File,
    str::FromStr,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{
    Account, AccountId, Incarnation, MessageUid, Priority, RecipientKind, RecipientStatus, State, Status,
    TenantId, Time,
    message::{OnDoubt, Wait},
};
use sqlx::{Row, SqlitePool, sqlite::SqliteRow};
use tokio::{sync::Mutex, task::JoinHandle};

use self::writer::{Answer, Job, Txn, Writer};
use crate::{
    error::StoreError,
    handover::HandOver,
    port::{Accounts, DeleteAccount, Intake, Operate, Read, Work},
    record::{
        Acceptance, AccountKey, Change, ClaimRequest, Claimed, Filter, MessageKey, MessageRecord,
        MessageSummary, NewEvent, NewMessage, QueueState, Stalled, Stats, Tenant, WireCommit,
    },
};

pub use migrate::{Migration, MigrationState};

/// The particulars of a first attempt's `sending` event.
const ATTEMPT_ONE: &str = "{\"attempt\":1}";

/// A store in one SQLite file.
pub struct SqliteStore {
    writer: std::sync::Mutex<Option<Writer>>,
    writer_task: Mutex<Option<JoinHandle<()>>>,
    readers: SqlitePool,
    handover: Arc<HandOver>,
    commits: Arc<AtomicU64>,
    _lock: File,
}

impl SqliteStore {
    async fn ask(&self, job: Job) -> Result<Answer, StoreError> {
        let writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        writer.ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?.ask(job).await
    }

    async fn ask_held(&self, job: Job) -> Result<Vec<bool>, StoreError> {
        match self.ask(job).await? {
            Answer::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    async fn ask_done(&self, job: Job) -> Result<bool, StoreError> {
        match self.ask(job).await? {
            Answer::Done(done) => Ok(done),
            _ => Err(mismatched()),
        }
    }
}

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question".into())
}

#[async_trait]
impl Intake for SqliteStore {
    async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError> {
        match self.ask(Job::Accept(messages)).await? {
            Answer::Accepted(acceptances) => Ok(acceptances),
            _ => Err(mismatched()),
        }
    }
}

#[async_trait]
impl Work for SqliteStore {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        match self.ask(Job::Claim(request)).await? {
            Answer::Claimed(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    async fn handed_over(&self) -> Vec<Claimed> {
        self.handover.delivered().await
    }

    fn unpark(&self) {
        self.handover.unpark();
    }

    async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError> {
        self.ask_held(Job::WireCommit(commits)).await
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<bool>, StoreError> {
        self.ask_held(Job::Apply(changes)).await
    }

    async fn body(&self, uid: MessageUid) -> Result<Option<Bytes>, StoreError> {
        read::raw(&self.readers, None, uid).await
    }

    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<Stalled>, StoreError> {
        read::stalled(&self.readers, alive, now, limit).await
    }

    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<Stalled>, StoreError> {
        read::overdue(&self.readers, now, limit).await
    }

    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError> {
        read::queue_state(&self.readers, now).await
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

    async fn messages(
        &self,
        tenant: &TenantId,
        filter: &Filter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<MessageSummary>, StoreError> {
        read::messages(&self.readers, tenant, filter, before, limit).await
    }

    async fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<Bytes>, StoreError> {
        read::raw(&self.readers, Some(tenant), uid).await
    }

    async fn latest(
        &self,
        tenant: &TenantId,
        state: Option<Status>,
        since: Time,
        limit: u32,
    ) -> Result<Vec<Time>, StoreError> {
        read::latest(&self.readers, tenant, state, since, limit).await
    }

    async fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Result<Stats, StoreError> {
        read::stats(&self.readers, tenant, now).await
    }
}

#[async_trait]
impl Accounts for SqliteStore {
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
        let query = sqlx::query(accounts::TENANT).bind(id.as_str());
        let row = query.fetch_optional(&self.readers).await.map_err(failed)?;
        row.as_ref().map(accounts::read_tenant).transpose()
    }

    async fn create_tenant(&self, tenant: Tenant) -> Result<bool, StoreError> {
        self.ask_done(Job::CreateTenant(tenant)).await
    }

    async fn set_default_account(&self, tenant: &TenantId, account: &AccountId) -> Result<(), StoreError> {
        self.ask_done(Job::SetDefaultAccount(tenant.clone(), account.clone())).await.map(drop)
    }

    async fn accounts(&self, tenant: Option<&TenantId>) -> Result<Vec<Account>, StoreError> {
        let query = sqlx::query(accounts::ACCOUNTS).bind(tenant.map(|id| id.as_str())).bind(None::<&str>);
        let rows = query.fetch_all(&self.readers).await.map_err(failed)?;
        rows.iter().map(accounts::read_account).collect()
    }

    async fn account(&self, tenant: &TenantId, id: &AccountId) -> Result<Option<Account>, StoreError> {
        let query = sqlx::query(accounts::ACCOUNTS).bind(Some(tenant.as_str())).bind(Some(id.as_str()));
        let row = query.fetch_optional(&self.readers).await.map_err(failed)?;
        row.as_ref().map(accounts::read_account).transpose()
    }

    async fn create_account(&self, account: Account) -> Result<bool, StoreError> {
        self.ask_done(Job::CreateAccount(account)).await
    }

    async fn update_account(&self, account: Account, expected_version: i64) -> Result<bool, StoreError> {
        self.ask_done(Job::UpdateAccount(account, expected_version)).await
    }

    async fn delete_account(&self, tenant: &TenantId, id: &AccountId) -> Result<DeleteAccount, StoreError> {
        match self.ask(Job::DeleteAccount(tenant.clone(), id.clone())).await? {
            Answer::Deleted(deleted) => Ok(deleted),
            _ => Err(mismatched()),
        }
    }
}

#[async_trait]
impl Operate for SqliteStore {
    async fn ping(&self) -> Result<(), StoreError> {
        // Through the writer, because a store that can only read is not ready.
        self.apply(Vec::new()).await.map(drop)
    }

    fn commits(&self) -> u64 {
        self.commits.load(std::sync::atomic::Ordering::Relaxed)
    }

    async fn close(&self) {
        // Readers first: the last connection to go folds the WAL back into the file.
        self.readers.close().await;
        let writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        // The writer ends when its last sender is gone, after finishing what was sent.
        drop(writer);
        if let Some(task) = self.writer_task.lock().await.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the store's writer ended badly");
        }
    }
}

/// A driver's error in the port's words. Its text may hold values, so the log sees only its kind.
fn failed(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => match database.code().as_deref() {
            // SQLITE_BUSY, _LOCKED, _NOMEM, _READONLY, _IOERR, _FULL, _CANTOPEN in their primary codes.
            Some(code)
                if code
                    .parse::<u32>()
                    .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 7 | 8 | 10 | 13 | 14)) =>
            {
                StoreError::Unavailable(error.to_string())
            }
            _ => StoreError::Unexpected(error.to_string()),
        },
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreError::Unavailable(error.to_string()),
        _ => StoreError::Unexpected(error.to_string()),
    }
}

async fn insert_events(
    txn: &mut Txn<'_>,
    events: &[(MessageUid, i64, Time, &NewEvent)],
) -> Result<(), StoreError> {
    for (sql, run) in accept::INSERT_EVENT.runs(events) {
        let mut query = sqlx::query(sql);
        for (uid, seq, at, event) in run {
            query = query
                .bind(uid.as_bytes().as_slice())
                .bind(*seq)
                .bind(at.as_millis())
                .bind(event.kind.code())
                .bind(event.data.as_deref());
        }
        query.execute(&mut *txn.conn).await.map_err(failed)?;
    }
    Ok(())
}

fn bytes16(row: &SqliteRow, index: usize) -> Result<[u8; 16], StoreError> {
    let bytes: &[u8] = row.try_get(index).map_err(failed)?;
    bytes.try_into().map_err(|_| StoreError::Unexpected("an id that is not 16 bytes".into()))
}

fn parsed<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| {
        StoreError::Unexpected(format!("a stored {} that does not parse", std::any::type_name::<T>()))
    })
}

fn coded<T>(row: &SqliteRow, index: usize, from_code: fn(i64) -> Option<T>) -> Result<T, StoreError> {
    let code = row.try_get(index).map_err(failed)?;
    from_code(code).ok_or_else(|| {
        StoreError::Unexpected(format!(
            "a stored {} with the unknown code {code}",
            std::any::type_name::<T>()
        ))
    })
}

fn priority(row: &SqliteRow, index: usize) -> Result<Priority, StoreError> {
    coded(row, index, Priority::from_code)
}

fn recipient_kind(row: &SqliteRow, index: usize) -> Result<RecipientKind, StoreError> {
    coded(row, index, RecipientKind::from_code)
}

fn recipient_status(row: &SqliteRow, index: usize) -> Result<RecipientStatus, StoreError> {
    coded(row, index, RecipientStatus::from_code)
}

fn on_doubt(row: &SqliteRow, index: usize) -> Result<OnDoubt, StoreError> {
    let code: i64 = row.try_get(index).map_err(failed)?;
    Ok(if code == OnDoubt::Hold as i64 { OnDoubt::Hold } else { OnDoubt::Resend })
}

/// A state from three columns in a row: status, wait, wire_committed.
fn state(row: &SqliteRow, first: usize) -> Result<State, StoreError> {
    let status = coded(row, first, Status::from_code)?;
    let wait: Option<i64> = row.try_get(first + 1).map_err(failed)?;
    Ok(State::from_parts(status, wait.and_then(Wait::from_code), row.try_get(first + 2).map_err(failed)?))
}
