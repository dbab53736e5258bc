//! A connection that writes.
//!
//! A connection that fails before its commit has changed nothing: the transaction is tried again on a new
//! one. One that fails while it commits leaves a doubt, which is settled by a mark that the transaction
//! wrote. The server's own number of the transaction would not do: a standby that is promoted gives out again
//! what it has not seen.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{MessageStatus, MessageUid, TenantId, Time};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};

use super::{
    accept, change, column,
    connect::{self, WRITER_SETTINGS, within},
    failed, is_lost, undone,
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
    record::{Acceptance, ClaimRequest, ClaimedMessage, MessageChange, NewEvent, WireCommit},
    sql::{PostgresSession, SqlSession},
};

/// How often the database is asked for the result of a commit whose answer was lost, with a pause between: as
/// long as a failover usually takes.
const SETTLE_TRIES: u32 = 60;
const SETTLE_PAUSE: Duration = Duration::from_millis(250);

/// The isolation is part of the design, whatever the server's default.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// With the writer's mark, to spare a round trip.
pub(super) const COUNT: &str = "WITH marked AS (INSERT INTO writer_mark (shard, mark) VALUES ($4, $5) \
     ON CONFLICT (shard) DO UPDATE SET mark = excluded.mark) INSERT INTO tally AS t (tenant, status, shard, count) \
     SELECT v.tenant, v.status, $4, v.count FROM UNNEST($1::text[], $2::bigint[], $3::bigint[]) \
     AS v(tenant, status, count) \
     ON CONFLICT (tenant, status, shard) DO UPDATE SET count = t.count + excluded.count";
pub(super) const MARK: &str = "INSERT INTO writer_mark (shard, mark) VALUES ($1, $2) \
     ON CONFLICT (shard) DO UPDATE SET mark = excluded.mark";
/// Reads the mark, and waits for whatever the lost connection still has under way: for its first row, too.
pub(super) const MARKED: &str = "INSERT INTO writer_mark AS w (shard, mark) VALUES ($1, '') \
     ON CONFLICT (shard) DO UPDATE SET mark = w.mark RETURNING mark";

/// Which writer of which node this is.
pub(super) struct WriterSlot {
    pub peers: Arc<NodePlacement>,
    pub writer: i64,
    pub silences: SilenceListener,
}

/// The connection, and what is known of the transaction under way.
pub(super) struct WriteConnection {
    pub conn: PgConnection,
    pub handover: Arc<HandOver>,
    pub lanes: LaneMemory,
    pub after: CommitEffects,
    /// Events of what a claim has found and not yet leased.
    pub claim_events: Vec<(MessageUid, i64, Time, NewEvent)>,
    moved: HashMap<(TenantId, MessageStatus), i64>,
    seat: WriterSlot,
    options: PgConnectOptions,
    /// Whether the connection may be used again.
    sound: bool,
}

impl WriteConnection {
    pub fn new(
        conn: PgConnection,
        options: PgConnectOptions,
        seat: WriterSlot,
        handover: Arc<HandOver>,
    ) -> Self {
        Self {
            conn,
            handover,
            lanes: LaneMemory::default(),
            after: CommitEffects::default(),
            claim_events: Vec::new(),
            moved: HashMap::new(),
            seat,
            options,
            sound: true,
        }
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

    /// Writes the counters and this mark, if anything was written.
    async fn write_counts(&mut self, mark: &[u8; 16]) -> Result<(), StoreError> {
        let mut moved: Vec<_> = self.moved.drain().filter(|(_, by)| *by != 0).collect();
        let shard = self.shard();
        if moved.is_empty() {
            if self.after.wrote {
                let query = sqlx::query(MARK).bind(shard).bind(mark.as_slice());
                query.execute(&mut self.conn).await.map_err(undone)?;
            }
            return Ok(());
        }
        // In order, for the case that a node came back from the dead and shares a shard.
        moved.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.after.wrote = true;
        sqlx::query(COUNT)
            .bind(column(&moved, |((tenant, _), _)| tenant.as_str()))
            .bind(column(&moved, |((_, status), _)| status.code()))
            .bind(column(&moved, |(_, by)| *by))
            .bind(shard)
            .bind(mark.as_slice())
            .execute(&mut self.conn)
            .await
            .map_err(undone)?;
        Ok(())
    }

    fn shard(&self) -> i64 {
        self.seat.peers.shard(self.seat.writer)
    }

    fn forget(&mut self) {
        self.lanes.forget_new();
        self.claim_events.clear();
        self.moved.clear();
        self.after = CommitEffects::default();
    }

    async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.sound = false;
        self.conn = connect::connect(&self.options, WRITER_SETTINGS).await?;
        self.seat.silences.take_met();
        self.sound = true;
        Ok(())
    }

    /// After a failure that is not about the work, the connection is not trusted: it may lead to a server
    /// that is shutting down, read-only or gone.
    fn noted<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        self.sound &= !matches!(done, Err(StoreError::Unavailable(_) | StoreError::Unsettled(_)));
        done
    }

    /// Whether the connection may be used: a step that was given up leaves half an answer on its way.
    fn is_sound(&mut self) -> bool {
        self.sound &= !self.seat.silences.take_met();
        self.sound
    }

    async fn finish(&mut self) -> Result<(), StoreError> {
        let (shard, mark, silences) = (self.shard(), rand::random(), self.seat.silences.clone());
        silences.hear(within(self.write_counts(&mark))).await?;
        let commit = async { Ok(sqlx::raw_sql("COMMIT").execute(&mut self.conn).await) };
        let lost = match silences.hear(within(commit)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) if !is_lost(&error) => return Err(failed(error)),
            Ok(Err(error)) => undone(error),
            Err(late) => late,
        };
        self.sound = false;
        if self.after.wrote { self.settle(shard, &mark).await } else { Err(lost) }
    }

    /// Finds out whether a transaction whose commit was not answered is durable.
    async fn settle(&mut self, shard: i64, mark: &[u8; 16]) -> Result<(), StoreError> {
        for _ in 0..SETTLE_TRIES {
            if self.reconnect().await.is_ok() {
                let query = sqlx::query_scalar(MARKED).bind(shard);
                let asked = within(async { query.fetch_one(&mut self.conn).await.map_err(failed) }).await;
                match self.noted::<Vec<u8>>(asked) {
                    Ok(found) if found == mark => return Ok(()),
                    Ok(_) => {
                        return Err(StoreError::Conflict("the connection was lost before the commit".into()));
                    }
                    Err(error) => tracing::debug!(%error, "what became of a commit is not known yet"),
                }
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
        Err(StoreError::Unsettled("the connection was lost with the answer to its commit".into()))
    }
}

#[async_trait]
impl WriteTransaction for WriteConnection {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.forget();
        if self.is_sound() {
            let silences = self.seat.silences.clone();
            let begun = within(async { sqlx::raw_sql(BEGIN).execute(&mut self.conn).await.map_err(failed) });
            match silences.hear(begun).await {
                Ok(_) => return Ok(()),
                Err(error) => tracing::debug!(%error, "a writer's connection was lost; it reconnects"),
            }
        }
        self.reconnect().await?;
        let begun = sqlx::raw_sql(BEGIN).execute(&mut self.conn).await.map(drop).map_err(failed);
        self.noted(begun)
    }

    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        terms: &mut LeaseConditions,
    ) -> Result<Vec<Acceptance>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = silences.hear(within(accept::accept(self, messages, terms))).await;
        self.noted(done)
    }

    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = silences.hear(within(change::wire_commit(self, commits))).await;
        self.noted(done)
    }

    async fn apply(&mut self, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = silences.hear(within(change::apply(self, changes))).await;
        self.noted(done)
    }

    async fn claim(
        &mut self,
        request: &ClaimRequest,
        terms: &mut LeaseConditions,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        let silences = self.seat.silences.clone();
        let done = silences.hear(within(claim::claim(self, request, terms))).await;
        self.noted(done)
    }

    fn count(&mut self, tenant: &TenantId, from: Option<MessageStatus>, to: MessageStatus) {
        WriteConnection::count(self, tenant, from, to);
    }

    fn count_out(&mut self, tenant: &TenantId, from: MessageStatus) {
        *self.moved.entry((tenant.clone(), from)).or_default() -= 1;
    }

    fn session(&mut self) -> Result<Box<dyn SqlSession + '_>, StoreError> {
        let silences = self.seat.silences.clone();
        let session = PostgresSession { conn: &mut self.conn, failed: undone };
        Ok(Box::new(HeardSession { session, silences }))
    }

    fn after(&mut self) -> &mut CommitEffects {
        &mut self.after
    }

    async fn commit(&mut self) -> Result<CommitEffects, StoreError> {
        let done = self.finish().await;
        self.noted(done)?;
        self.lanes.keep_new();
        Ok(std::mem::take(&mut self.after))
    }

    async fn rollback(&mut self) {
        if self.is_sound() {
            let undo = async { sqlx::raw_sql("ROLLBACK").execute(&mut self.conn).await.map_err(failed) };
            if let Err(error) = within(undo).await {
                tracing::debug!(%error, "nothing to roll back");
                self.sound = false;
            }
        }
        // Slots taken for messages that were not stored come back with the dispatcher's next claim.
        self.forget();
    }

    async fn close(self) {
        let closed = within(async { self.conn.close().await.map_err(failed) }).await;
        if let Err(error) = closed {
            tracing::debug!(%error, "a writer's connection was gone already");
        }
    }
}
