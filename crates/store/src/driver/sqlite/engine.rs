//! The one connection that writes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{MessageStatus, MessageUid, TenantId, Time};

use super::{
    accept, change,
    connection::{WriterConnection, failed, is_locked},
    file_presence::DatabaseFiles,
    open::BUSY_MAX,
    wal_checkpoint::LogFolder,
};
use crate::{
    error::StoreError,
    queue::{
        claim,
        hand_over::HandOver,
        lane_memory::LaneMemory,
        lease_conditions::LeaseConditions,
        packing::PackedMessage,
        transaction::{CommitEffects, WriteTransaction},
    },
    record::{Acceptance, ClaimRequest, ClaimedMessage, MessageChange, NewEvent, WireCommit},
    sql::{SqlSession, multi_row::MultiRow},
};

/// How long a transaction waits for a file that the last one found locked: those that came meanwhile have
/// waited for long enough.
const BUSY_AGAIN_MAX: Duration = Duration::from_millis(100);

/// The connection, and what is known of the transaction under way.
pub(super) struct WriteConnection {
    pub conn: WriterConnection,
    log: LogFolder,
    files: DatabaseFiles,
    /// Whether another process held the file, for as long as is waited for it, when the last transaction was
    /// to begin.
    is_locked_out: bool,
    pub handover: Arc<HandOver>,
    pub lanes: LaneMemory,
    pub after: CommitEffects,
    /// Events of what a claim has found and not yet leased.
    pub claim_events: Vec<(MessageUid, i64, Time, NewEvent)>,
    moved: HashMap<(TenantId, MessageStatus), i64>,
}

pub(super) static COUNT: MultiRow = MultiRow::new(
    "INSERT INTO tally (tenant, status, count) VALUES ",
    3,
    " ON CONFLICT (tenant, status) DO UPDATE SET count = count + excluded.count",
);

impl WriteConnection {
    pub fn new(
        conn: WriterConnection,
        log: LogFolder,
        files: DatabaseFiles,
        handover: Arc<HandOver>,
    ) -> Self {
        Self {
            conn,
            log,
            files,
            is_locked_out: false,
            handover,
            lanes: LaneMemory::default(),
            after: CommitEffects::default(),
            claim_events: Vec::new(),
            moved: HashMap::new(),
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

    fn write_counts(&mut self) -> Result<(), StoreError> {
        let moved: Vec<_> = self.moved.drain().filter(|(_, by)| *by != 0).collect();
        for (sql, run) in COUNT.runs(&moved) {
            let mut query = self.conn.query(sql)?;
            for ((tenant, status), by) in run {
                query = query.bind(tenant.as_str()).bind(status.code()).bind(*by);
            }
            query.execute()?;
        }
        Ok(())
    }

    /// Waits less for a file that stays locked, and as long as ever once it was free again.
    fn note_lock(&mut self, is_locked_out: bool) {
        if is_locked_out == self.is_locked_out {
            return;
        }
        self.is_locked_out = is_locked_out;
        let wait = if is_locked_out { BUSY_AGAIN_MAX } else { BUSY_MAX };
        if let Err(error) = self.conn.set_busy_timeout(wait) {
            tracing::debug!(%error, "the wait for the file stays what it was");
        }
    }

    fn forget(&mut self) {
        self.lanes.forget_new();
        self.claim_events.clear();
        self.moved.clear();
        self.after = CommitEffects::default();
    }
}

#[async_trait]
impl WriteTransaction for WriteConnection {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.forget();
        self.files.check()?;
        // Now, and not at the last commit, whose callers have their answers.
        if let Err(error) = self.log.tend(&self.conn) {
            tracing::debug!(%error, "the log is folded back later");
        }
        let begun = self.conn.begin();
        self.note_lock(begun.as_ref().is_err_and(is_locked));
        begun.map_err(failed)
    }

    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        terms: &mut LeaseConditions,
    ) -> Result<Vec<Acceptance>, StoreError> {
        accept::accept(self, messages, terms).await
    }

    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError> {
        change::wire_commit(self, commits)
    }

    async fn apply(&mut self, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError> {
        change::apply(self, changes)
    }

    async fn claim(
        &mut self,
        request: &ClaimRequest,
        terms: &mut LeaseConditions,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        claim::claim(self, request, terms).await
    }

    fn count(&mut self, tenant: &TenantId, from: Option<MessageStatus>, to: MessageStatus) {
        WriteConnection::count(self, tenant, from, to);
    }

    fn count_out(&mut self, tenant: &TenantId, from: MessageStatus) {
        *self.moved.entry((tenant.clone(), from)).or_default() -= 1;
    }

    fn session(&mut self) -> Result<Box<dyn SqlSession + '_>, StoreError> {
        Ok(Box::new(&mut self.conn))
    }

    fn after(&mut self) -> &mut CommitEffects {
        &mut self.after
    }

    async fn commit(&mut self) -> Result<CommitEffects, StoreError> {
        self.write_counts()?;
        self.conn.commit()?;
        // Durable in the file that was opened, which need not be the one that the next start finds.
        self.files.check().map_err(|gone| StoreError::Unsettled(gone.to_string()))?;
        self.lanes.keep_new();
        Ok(std::mem::take(&mut self.after))
    }

    async fn rollback(&mut self) {
        if let Err(error) = self.conn.roll_back() {
            tracing::debug!(%error, "nothing to roll back");
        }
        // Slots taken for messages that were not stored come back with the dispatcher's next claim.
        self.forget();
    }

    async fn close(self) {
        // The last connection to close checkpoints the log, and closing the store waits for that.
        self.log.close();
        if let Err(error) = self.conn.close() {
            tracing::warn!(%error, "the database did not close cleanly");
        }
    }
}
