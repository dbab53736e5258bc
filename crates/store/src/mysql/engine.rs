//! A connection that writes. It is replaced when it breaks, before the next transaction begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use postway_domain::{LaneId, Status, TenantId};
use sqlx::{Connection, MySqlConnection};
use tokio::time::timeout;

use super::{accept, accounts, change, failed, open::Server};
use crate::{
    claiming,
    error::StoreError,
    group::{After, Answer, DirectoryJob, Engine},
    handover::HandOver,
    record::{Acceptance, Change, ClaimRequest, Claimed, NewMessage, WireCommit},
    rows::Multi,
};

/// A step of a transaction that takes longer than this has lost its server.
const STEP_LASTS_MAX: Duration = Duration::from_secs(60);
/// The same for a step without data.
const WORD_LASTS_MAX: Duration = Duration::from_secs(10);
/// Fails at once where the server takes no writes.
const BEGIN: &str = "START TRANSACTION READ WRITE";

/// The connection, and what is known of the transaction under way.
pub(super) struct Txn {
    server: Arc<Server>,
    conn: Option<MySqlConnection>,
    shard: i64,
    pub packet_bytes_max: u64,
    pub handover: Arc<HandOver>,
    pub known_lanes: BTreeSet<LaneId>,
    pub new_lanes: Vec<LaneId>,
    pub after: After,
    moved: BTreeMap<(TenantId, Status), i64>,
}

pub(super) static COUNT: Multi = Multi::new(
    "INSERT INTO tally (tenant, status, shard, `count`) VALUES ",
    4,
    " ON DUPLICATE KEY UPDATE `count` = `count` + VALUES(`count`)",
);

impl Txn {
    /// `shard` is where it counts; no other writer should count there.
    pub fn new(server: Arc<Server>, packet_bytes_max: u64, shard: i64, handover: Arc<HandOver>) -> Self {
        Self {
            server,
            conn: None,
            shard,
            packet_bytes_max,
            handover,
            known_lanes: BTreeSet::new(),
            new_lanes: Vec::new(),
            after: After::default(),
            moved: BTreeMap::new(),
        }
    }

    /// The connection of the transaction under way.
    pub fn conn(&mut self) -> Result<&mut MySqlConnection, StoreError> {
        self.conn.as_mut().ok_or_else(|| StoreError::Unavailable("the connection was lost".into()))
    }

    /// Counts a message in at `to`, and out at `from`.
    pub fn count(&mut self, tenant: &TenantId, from: Option<Status>, to: Status) {
        if from == Some(to) {
            return;
        }
        for (status, by) in [(from, -1), (Some(to), 1)] {
            if let Some(status) = status {
                *self.moved.entry((tenant.clone(), status)).or_default() += by;
            }
        }
    }

    async fn write_counts(&mut self) -> Result<(), StoreError> {
        let moved: Vec<_> = std::mem::take(&mut self.moved).into_iter().filter(|(_, by)| *by != 0).collect();
        for (sql, run) in COUNT.runs(&moved) {
            let mut query = sqlx::query(sql);
            for ((tenant, status), by) in run {
                query = query.bind(tenant.as_str()).bind(status.code()).bind(self.shard).bind(*by);
            }
            query.execute(self.conn()?).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Says a word of transaction control. A connection that does not take it is given up.
    async fn say(&mut self, word: &'static str) -> Result<(), StoreError> {
        let conn = self.conn()?;
        let error = match timeout(WORD_LASTS_MAX, sqlx::raw_sql(word).execute(conn)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => failed(error),
            Err(_) => timed_out(),
        };
        self.conn = None;
        Err(error)
    }

    /// What came of a step; the connection is given up if it took too long, because half an answer may be on its way.
    fn in_time<T>(
        &mut self,
        done: Result<Result<T, StoreError>, tokio::time::error::Elapsed>,
    ) -> Result<T, StoreError> {
        done.unwrap_or_else(|_| {
            self.conn = None;
            Err(timed_out())
        })
    }

    fn forget(&mut self) {
        self.new_lanes.clear();
        self.moved.clear();
        self.after = After::default();
    }
}

fn timed_out() -> StoreError {
    StoreError::Unavailable("the server did not answer in time".into())
}

#[async_trait]
impl Engine for Txn {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.forget();
        if self.conn.is_some() && self.say(BEGIN).await.is_ok() {
            return Ok(());
        }
        self.conn = Some(self.server.writer().await?);
        self.say(BEGIN).await
    }

    async fn accept(&mut self, messages: &[&NewMessage]) -> Result<Vec<Acceptance>, StoreError> {
        let done = timeout(STEP_LASTS_MAX, accept::accept(self, messages)).await;
        self.in_time(done)
    }

    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError> {
        let done = timeout(STEP_LASTS_MAX, change::wire_commit(self, commits)).await;
        self.in_time(done)
    }

    async fn apply(&mut self, changes: &[&Change]) -> Result<Vec<bool>, StoreError> {
        let done = timeout(STEP_LASTS_MAX, change::apply(self, changes)).await;
        self.in_time(done)
    }

    async fn claim(&mut self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let done = timeout(STEP_LASTS_MAX, claiming::claim(self, request)).await;
        self.in_time(done)
    }

    async fn directory(&mut self, job: &DirectoryJob) -> Result<Answer, StoreError> {
        let done = timeout(STEP_LASTS_MAX, direct(self, job)).await;
        self.in_time(done)
    }

    async fn commit(&mut self) -> Result<After, StoreError> {
        let done = timeout(STEP_LASTS_MAX, self.write_counts()).await;
        self.in_time(done)?;
        self.say("COMMIT").await?;
        self.known_lanes.extend(self.new_lanes.drain(..));
        Ok(std::mem::take(&mut self.after))
    }

    async fn rollback(&mut self) {
        if self.conn.is_some()
            && let Err(error) = self.say("ROLLBACK").await
        {
            tracing::debug!(%error, "a broken connection is given up");
        }
        // Slots taken for messages that were not stored come back with the dispatcher's next claim.
        self.forget();
    }

    async fn close(self) {
        if let Some(conn) = self.conn
            && let Err(error) = conn.close().await
        {
            tracing::warn!(%error, "a connection to the database did not close cleanly");
        }
    }
}

async fn direct(txn: &mut Txn, job: &DirectoryJob) -> Result<Answer, StoreError> {
    Ok(match job {
        DirectoryJob::CreateTenant(tenant) => Answer::Done(accounts::create_tenant(txn, tenant).await?),
        DirectoryJob::SetDefaultAccount(tenant, account) => {
            accounts::set_default(txn, tenant, account).await?;
            Answer::Done(true)
        }
        DirectoryJob::CreateAccount(account) => Answer::Done(accounts::create(txn, account).await?),
        DirectoryJob::UpdateAccount(account, expected) => {
            Answer::Done(accounts::update(txn, account, *expected).await?)
        }
        DirectoryJob::DeleteAccount(tenant, id) => Answer::Deleted(accounts::delete(txn, tenant, id).await?),
    })
}
