//! A connection that writes. It is replaced when it breaks, before the next transaction begins.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{MessageStatus, MessageUid, TenantId, Time};
use sqlx::MySqlConnection;
use tokio::time::timeout;

use super::{
    accept, accept_fence, change, failed,
    open::{self, MysqlServer},
};
use crate::{
    error::StoreError,
    nodes::{
        placement::NodePlacement,
        server_silence::{HeardSession, SilenceListener},
    },
    queue::{
        claim,
        hand_over::HandOver,
        lane_memory::LaneMemory,
        lease_conditions::LeaseConditions,
        packing::PackedMessage,
        transaction::{CommitEffects, WriteTransaction},
    },
    record::{Acceptance, AccountKey, ClaimRequest, ClaimedMessage, MessageChange, NewEvent, WireCommit},
    sql::{MysqlSession, SqlSession, multi_row::MultiRow},
};

/// A step of a transaction that takes longer than this has lost its server.
const STEP_LASTS_MAX: Duration = Duration::from_secs(60);
/// The same for a step without data.
const WORD_LASTS_MAX: Duration = Duration::from_secs(10);
/// On a cluster, how long mail waits for the node that serves its account first.
const OTHERS_FIRST: Duration = Duration::from_secs(2);
/// How often the server is asked for the result of a commit whose answer was lost, with a pause between.
const SETTLE_TRIES: u32 = 60;
const SETTLE_PAUSE: Duration = Duration::from_millis(250);
/// Fails at once where the server takes no writes.
const BEGIN: &str = "START TRANSACTION READ WRITE";

/// Which writer of which node this is.
pub(super) struct WriterSlot {
    pub peers: Arc<NodePlacement>,
    pub writer: i64,
    /// Whether the server is a node of a cluster.
    pub is_cluster: bool,
    pub silences: SilenceListener,
}

impl WriterSlot {
    fn shard(&self) -> i64 {
        self.peers.shard(self.writer)
    }

    /// How long an account's mail must have waited before this node takes it. On a cluster two nodes that
    /// claim the same rows both succeed until one of them commits, and the other has worked for nothing.
    pub fn patience(&self, key: &AccountKey) -> Duration {
        if self.is_cluster && !self.peers.serves_first(key) { OTHERS_FIRST } else { Duration::ZERO }
    }
}

/// The connection, and what is known of the transaction under way.
pub(super) struct WriteConnection {
    server: Arc<MysqlServer>,
    conn: Option<MySqlConnection>,
    pub seat: WriterSlot,
    pub packet_bytes_max: u64,
    pub handover: Arc<HandOver>,
    pub lanes: LaneMemory,
    pub after: CommitEffects,
    /// Events of what a claim has found and not yet leased.
    pub claim_events: Vec<(MessageUid, i64, Time, NewEvent)>,
    moved: BTreeMap<(TenantId, MessageStatus), i64>,
}

pub(super) const MARK: &str =
    "INSERT INTO writer_mark (shard, mark) VALUES (?, ?) ON DUPLICATE KEY UPDATE mark = VALUES(mark)";
/// Waits for whatever the lost connection still has under way.
pub(super) const MARKED: &str = "SELECT mark FROM writer_mark WHERE shard = ? FOR UPDATE";

pub(super) static COUNT: MultiRow = MultiRow::new(
    "INSERT INTO tally (tenant, status, shard, `count`) VALUES ",
    4,
    " ON DUPLICATE KEY UPDATE `count` = `count` + VALUES(`count`)",
);

impl WriteConnection {
    pub fn new(
        server: Arc<MysqlServer>,
        packet_bytes_max: u64,
        seat: WriterSlot,
        handover: Arc<HandOver>,
    ) -> Self {
        Self {
            server,
            conn: None,
            seat,
            packet_bytes_max,
            handover,
            lanes: LaneMemory::default(),
            after: CommitEffects::default(),
            claim_events: Vec::new(),
            moved: BTreeMap::new(),
        }
    }

    /// The connection of the transaction under way.
    pub fn conn(&mut self) -> Result<&mut MySqlConnection, StoreError> {
        self.conn.as_mut().ok_or_else(|| StoreError::Unavailable("the connection was lost".into()))
    }

    /// Counts a message in at `to`, and out at `from`.
    pub fn count(&mut self, tenant: &TenantId, from: Option<MessageStatus>, to: MessageStatus) {
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
        let shard = self.seat.shard();
        for (sql, run) in COUNT.runs(&moved) {
            let mut query = sqlx::query(sql);
            for ((tenant, status), by) in run {
                query = query.bind(tenant.as_str()).bind(status.code()).bind(shard).bind(*by);
            }
            query.execute(self.conn()?).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Says a word of transaction control. A connection that does not take it is given up.
    async fn say(&mut self, word: &'static str) -> Result<(), StoreError> {
        let silences = self.seat.silences.clone();
        let said = timeout(WORD_LASTS_MAX, sqlx::raw_sql(word).execute(self.conn()?));
        let error = match silences.unless_silent(said).await {
            Some(Ok(Ok(_))) => return Ok(()),
            Some(Ok(Err(error))) => failed(error),
            Some(Err(_)) | None => timed_out(),
        };
        silences.take_met();
        self.conn = None;
        Err(error)
    }

    /// What came of a step; the connection is given up if it took too long, because half an answer may be on
    /// its way.
    fn in_time<T>(
        &mut self,
        done: Result<Result<T, StoreError>, tokio::time::error::Elapsed>,
    ) -> Result<T, StoreError> {
        done.unwrap_or_else(|_| {
            self.conn = None;
            Err(timed_out())
        })
    }

    /// Gives the connection up where a step on it was: half an answer may be on its way.
    fn drop_if_silent(&mut self) {
        if self.seat.silences.take_met() {
            self.conn = None;
        }
    }

    /// Commits. What writes leaves a mark, by which a lost answer is settled.
    async fn finish(&mut self) -> Result<(), StoreError> {
        if !self.after.wrote {
            return self.say("COMMIT").await;
        }
        let (shard, mark) = (self.seat.shard(), rand::random::<[u8; 16]>());
        let silences = self.seat.silences.clone();
        let query = sqlx::query(MARK).bind(shard).bind(mark.as_slice()).execute(self.conn()?);
        let marked = silences.hear(async { query.await.map_err(failed) });
        let marked = timeout(WORD_LASTS_MAX, marked).await;
        self.in_time(marked)?;
        match self.say("COMMIT").await {
            Err(StoreError::Unavailable(reason)) => {
                tracing::debug!(reason, "a commit was not answered");
                self.settle(shard, mark).await
            }
            told => told,
        }
    }

    /// Finds out whether a transaction whose commit was not answered is durable.
    async fn settle(&mut self, shard: i64, mark: [u8; 16]) -> Result<(), StoreError> {
        for _ in 0..SETTLE_TRIES {
            match self.last_mark(shard).await {
                Ok(found) if found.as_deref() == Some(&mark) => return Ok(()),
                Ok(_) => {
                    return Err(StoreError::Conflict("the connection was lost before the commit".into()));
                }
                Err(error) => tracing::debug!(%error, "what became of a commit is not known yet"),
            }
            self.conn = None;
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
        Err(StoreError::Unsettled("the connection was lost with the answer to its commit".into()))
    }

    /// On a new connection, with a transaction of its own.
    async fn last_mark(&mut self, shard: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.conn = Some(self.server.writer().await?);
        if self.seat.is_cluster {
            // This may be another node than the one that committed.
            self.say("SET SESSION wsrep_sync_wait = 1").await?;
        }
        self.say(BEGIN).await?;
        let query = sqlx::query_scalar(MARKED).bind(shard).fetch_optional(self.conn()?);
        let mark = timeout(WORD_LASTS_MAX, query).await.map_err(|_| timed_out())?.map_err(failed)?;
        self.say("COMMIT").await?;
        if self.seat.is_cluster {
            self.say("SET SESSION wsrep_sync_wait = 0").await?;
        }
        Ok(mark)
    }

    fn forget(&mut self) {
        self.lanes.forget_new();
        self.claim_events.clear();
        self.moved.clear();
        self.after = CommitEffects::default();
    }
}

fn timed_out() -> StoreError {
    StoreError::Unavailable("the server did not answer in time".into())
}

#[async_trait]
impl WriteTransaction for WriteConnection {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.forget();
        self.drop_if_silent();
        if self.conn.is_some() && self.say(BEGIN).await.is_ok() {
            return Ok(());
        }
        self.conn = Some(self.server.writer().await?);
        self.say(BEGIN).await
    }

    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        terms: &mut LeaseConditions,
    ) -> Result<Vec<Acceptance>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = timeout(STEP_LASTS_MAX, silences.hear(accept::accept(self, messages, terms))).await;
        self.in_time(done)
    }

    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = timeout(STEP_LASTS_MAX, silences.hear(change::wire_commit(self, commits))).await;
        self.in_time(done)
    }

    async fn apply(&mut self, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = timeout(STEP_LASTS_MAX, silences.hear(change::apply(self, changes))).await;
        self.in_time(done)
    }

    async fn claim(
        &mut self,
        request: &ClaimRequest,
        terms: &mut LeaseConditions,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = timeout(STEP_LASTS_MAX, silences.hear(claim::claim(self, request, terms))).await;
        self.in_time(done)
    }

    fn count(&mut self, tenant: &TenantId, from: Option<MessageStatus>, to: MessageStatus) {
        WriteConnection::count(self, tenant, from, to);
    }

    fn count_out(&mut self, tenant: &TenantId, from: MessageStatus) {
        *self.moved.entry((tenant.clone(), from)).or_default() -= 1;
    }

    async fn exclude_accepts(&mut self, account: &AccountKey) -> Result<(), StoreError> {
        if !self.seat.is_cluster {
            return Ok(());
        }
        let silences = self.seat.silences.clone();
        let done = timeout(STEP_LASTS_MAX, silences.hear(accept_fence::write(self, account))).await;
        self.in_time(done)
    }

    fn session(&mut self) -> Result<Box<dyn SqlSession + '_>, StoreError> {
        let silences = self.seat.silences.clone();
        Ok(Box::new(HeardSession { session: MysqlSession { conn: self.conn()?, failed }, silences }))
    }

    fn after(&mut self) -> &mut CommitEffects {
        &mut self.after
    }

    async fn commit(&mut self) -> Result<CommitEffects, StoreError> {
        let silences = self.seat.silences.clone();
        let done = timeout(STEP_LASTS_MAX, silences.hear(self.write_counts())).await;
        self.in_time(done)?;
        self.finish().await?;
        self.lanes.keep_new();
        Ok(std::mem::take(&mut self.after))
    }

    async fn rollback(&mut self) {
        self.drop_if_silent();
        if self.conn.is_some()
            && let Err(error) = self.say("ROLLBACK").await
        {
            tracing::debug!(%error, "a broken connection is given up");
        }
        // Slots taken for messages that were not stored come back with the dispatcher's next claim.
        self.forget();
    }

    async fn close(self) {
        if let Some(conn) = self.conn {
            open::close(conn).await;
        }
    }
}
