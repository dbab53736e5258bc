//! Serves one source: decides when a batch is imported, and when updates are written back.
//!
//! Rows are imported before anything is written back, and after an error all pending rows are imported first:
//! a row whose message was accepted but which was not marked, because of a crash or a lost connection, would
//! otherwise miss its updates. Updates that are missed anyway are found later (`maintenance.rs`).

use std::{sync::Arc, time::Duration};

use postway_domain::{Clock, TenantId, secret::SecretKey};
use postway_store::{Store, StoreError, record::FeedPosition};
use rand::Rng;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    OutboxNode, OutboxSource,
    database::{STEP_S_MAX, SourceDatabase, connect, within},
    error::OutboxError,
    import_batch::{BATCH_ROWS, RowImportResult},
    status::{OutboxStatusBoard, SourceState},
    token::TokenMailer,
    write_back,
};
use crate::accept::{crash_point::crash_point, door::Door};

/// How often to check for the duty.
const DUTY_EVERY: Duration = Duration::from_secs(1);
/// How often to read the feed.
const FEED_EVERY: Duration = Duration::from_millis(500);
/// How often maintenance runs.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// The longest time for maintenance.
const UPKEEP_S_MAX: u64 = 120;
/// How often an idle connection is checked.
const CHECK_EVERY: Duration = Duration::from_secs(270);
/// The first and the longest wait after an error.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// Where a pass over what is pending begins.
const FIRST: i64 = i64::MIN;
/// The most batches in which something waits that one import passes over; the next goes on after them.
const PASSED_BATCHES_MAX: usize = 10;
/// How long a batch may take to end after it is asked to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Serves one source, while this node has the duty.
pub struct OutboxRunner {
    pub(super) source: OutboxSource,
    pub(super) door: Arc<Door>,
    pub(super) mailer: Option<TokenMailer>,
    pub(super) board: OutboxStatusBoard,
    node: Arc<dyn OutboxNode>,
}

/// A connection that serves the source.
struct SourceSession<'a> {
    outbox: &'a OutboxRunner,
    db: Box<dyn SourceDatabase>,
    /// The feed position up to which rows are updated.
    position: FeedPosition,
    /// The most rows of the next batch: fewer if rows are large.
    most: u32,
    /// After which row and which token the next import begins: what waits for an account that sends holds up
    /// nothing behind it.
    rows: PendingPass,
    tokens: PendingPass,
}

/// A pass over what is pending, from the first to the last, in one import or in several.
struct PendingPass {
    after: i64,
    /// Why something that it passed over waits.
    waits: Option<String>,
}

impl PendingPass {
    fn begin() -> Self {
        Self { after: FIRST, waits: None }
    }

    /// Notes a batch; returns whether the pass is over, and if so why something waits.
    fn note(&mut self, round: RowImportResult) -> Option<Option<String>> {
        self.after = round.last;
        self.waits = self.waits.take().or(round.waits);
        (!round.has_more).then(|| std::mem::replace(self, Self::begin()).waits)
    }
}

impl OutboxRunner {
    /// A runner for this source and door.
    pub fn new(
        source: OutboxSource,
        door: Arc<Door>,
        node: Arc<dyn OutboxNode>,
        secret_key: &SecretKey,
    ) -> Result<Self, OutboxError> {
        let accounts = source.accounts.as_ref();
        let mailer = accounts.map(|accounts| TokenMailer::new(&source, accounts, secret_key)).transpose()?;
        Ok(Self { source, door, mailer, board: OutboxStatusBoard::default(), node })
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.door.store
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.door.clock
    }

    pub(super) fn tenant(&self) -> &TenantId {
        &self.source.tenant
    }

    /// Serves until it is stopped.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let stopped = async {
            stop.cancelled().await;
            sleep(STOP_WITHIN).await;
        };
        tokio::select! {
            () = self.serve_with_backoff(&stop) => {}
            () = stopped => {}
        }
        self.board.write(|live| live.standing = SourceState::Stopped);
    }

    async fn serve_with_backoff(&self, stop: &CancellationToken) {
        let mut backoff = BACKOFF.0;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let pause = match self.serve(stop).await {
                Ok(()) => DUTY_EVERY,
                Err(error) => {
                    // A source that worked for a while is retried soon.
                    backoff = if began.elapsed() > BACKOFF.1 { BACKOFF.0 } else { backoff };
                    self.failed(&error);
                    let pause = backoff.mul_f64(rand::rng().random_range(0.75..1.25));
                    backoff = (backoff * 2).min(BACKOFF.1);
                    pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Serves as long as this node has the duty.
    async fn serve(&self, stop: &CancellationToken) -> Result<(), OutboxError> {
        if !self.is_on_duty().await? {
            return Ok(());
        }
        let mut serving = SourceSession::begin(self).await?;
        self.board.write(|live| live.standing = SourceState::Serving);
        serving.drain(stop).await?;
        tracing::info!(source = self.source.name, database = %self.source.url, "the outbox is served");
        serving.run_loop(stop).await
    }

    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        let has = self.node.is_on_duty(&self.source.duty()).await?;
        if !has {
            self.board.write(|live| {
                (live.standing, live.error) = (SourceState::Elsewhere, None);
                (live.waiting, live.lag_seconds) = (None, None);
            });
            metrics::gauge!("postway_outbox_lag_seconds", "source" => self.source.name.clone()).set(0.0);
        }
        Ok(has)
    }

    /// Reports why rows wait for an account that sends, if some do: once in the log, and in the status as
    /// long as it lasts.
    fn report_waiting(&self, why: Option<String>) {
        if let Some(why) = &why
            && self.board.read().error.as_ref() != Some(why)
        {
            tracing::warn!(source = self.source.name, error = why, "rows of the outbox wait");
        }
        self.board.write(|live| live.error = why);
    }

    /// Reports an error: as a warning once, not at each try.
    fn failed(&self, error: &OutboxError) {
        let (source, error) = (self.source.name.clone(), error.to_string());
        metrics::counter!("postway_outbox_errors_total", "source" => source.clone()).increment(1);
        let is_news = self.board.read().error.as_deref() != Some(&error);
        match is_news {
            true => tracing::warn!(source, error, "the outbox is not served now; it will be tried again"),
            false => tracing::debug!(source, error, "the outbox is still not served"),
        }
        self.board.write(|live| {
            (live.standing, live.error) = (SourceState::Away, Some(error));
            (live.waiting, live.lag_seconds) = (None, None);
        });
    }
}

impl<'a> SourceSession<'a> {
    async fn begin(outbox: &'a OutboxRunner) -> Result<Self, OutboxError> {
        let tenant = outbox.store().tenant(outbox.tenant()).await?;
        if tenant.is_none_or(|tenant| tenant.deleted_at.is_some()) {
            return Err(OutboxError::NoTenant(outbox.tenant().to_string()));
        }
        let mut db = connect(&outbox.source).await?;
        let end = outbox.store().feed_end(outbox.tenant()).await?;
        let name = &outbox.source.name;
        let position = match within(STEP_S_MAX, db.progress(name)).await? {
            // A position beyond the end of our feed was written by another gateway.
            Some(position) if position.page <= end.page => position,
            Some(_) | None => {
                within(STEP_S_MAX, db.set_progress(name, end, outbox.clock().now())).await?;
                end
            }
        };
        let (rows, tokens) = (PendingPass::begin(), PendingPass::begin());
        Ok(Self { outbox, db, position, most: BATCH_ROWS, rows, tokens })
    }

    /// Runs until the duty or the connection is lost, or it is stopped.
    async fn run_loop(&mut self, stop: &CancellationToken) -> Result<(), OutboxError> {
        let source = &self.outbox.source;
        let mut poll = Instant::now() + source.poll;
        let mut check = Instant::now() + CHECK_EVERY;
        let (mut feed, mut duty, mut upkeep) = (Instant::now(), Instant::now() + DUTY_EVERY, Instant::now());
        // When pending rows are imported at the latest after a notification.
        let mut batch: Option<Instant> = None;
        while !stop.is_cancelled() {
            let wake = [poll, check, feed, duty, upkeep].into_iter().chain(batch).min().unwrap_or(poll);
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                heard = self.db.hint(), if batch.is_none() || source.batch_limit > 1 => {
                    heard?;
                    batch = Some(self.batch_due_at(batch).await?);
                }
                () = sleep_until(wake) => {}
            }
            let now = Instant::now();
            if batch.is_some_and(|at| at <= now) || poll <= now {
                (batch, poll) = (None, now + source.poll);
                self.drain(stop).await?;
            }
            if feed <= now {
                let has_more = self.write_back().await?;
                feed = if has_more { now } else { Instant::now() + FEED_EVERY };
            }
            if duty <= now {
                duty = Instant::now() + DUTY_EVERY;
                if !self.outbox.is_on_duty().await? {
                    tracing::info!(source = source.name, "another node serves the outbox now");
                    return Ok(());
                }
            }
            if upkeep <= now {
                within(UPKEEP_S_MAX, self.outbox.maintain(&mut *self.db)).await?;
                upkeep = Instant::now() + UPKEEP_EVERY;
            }
            if check <= now {
                self.db.check().await?;
                check = Instant::now() + CHECK_EVERY;
            }
        }
        Ok(())
    }

    /// When to import after a notification: at once if enough rows are pending, else when the first has
    /// waited long enough.
    async fn batch_due_at(&mut self, first: Option<Instant>) -> Result<Instant, OutboxError> {
        let (source, now) = (&self.outbox.source, Instant::now());
        if source.batch_timeout.is_zero() || source.batch_limit <= 1 {
            return Ok(now);
        }
        let waiting = within(STEP_S_MAX, self.db.waiting(source.batch_limit)).await?;
        Ok(if waiting >= source.batch_limit { now } else { first.unwrap_or(now + source.batch_timeout) })
    }

    /// Imports all pending rows and tokens.
    async fn drain(&mut self, stop: &CancellationToken) -> Result<(), OutboxError> {
        if stop.is_cancelled() {
            return Ok(());
        }
        let rows = self.import_rows(stop).await?;
        let tokens = self.import_tokens(stop).await?;
        if let (Some(rows), Some(tokens)) = (rows, tokens) {
            self.outbox.report_waiting(rows.or(tokens));
        }
        within(UPKEEP_S_MAX, self.outbox.withdraw_mails(&mut *self.db)).await
    }

    /// Imports rows. If the pass over all of them is over, returns why some wait, if some do.
    async fn import_rows(&mut self, stop: &CancellationToken) -> Result<Option<Option<String>>, OutboxError> {
        let mut passed = 0;
        loop {
            let round = self.outbox.import_rows(&mut *self.db, self.rows.after, &mut self.most).await?;
            passed += usize::from(round.waits.is_some());
            if let Some(waits) = self.rows.note(round) {
                return Ok(Some(waits));
            }
            if passed >= PASSED_BATCHES_MAX || stop.is_cancelled() {
                return Ok(None);
            }
        }
    }

    /// Imports tokens, as `import_rows` does rows.
    async fn import_tokens(
        &mut self,
        stop: &CancellationToken,
    ) -> Result<Option<Option<String>>, OutboxError> {
        let mut passed = 0;
        loop {
            let round = self.outbox.import_tokens(&mut *self.db, self.tokens.after).await?;
            passed += usize::from(round.waits.is_some());
            if let Some(waits) = self.tokens.note(round) {
                return Ok(Some(waits));
            }
            if passed >= PASSED_BATCHES_MAX || stop.is_cancelled() {
                return Ok(None);
            }
        }
    }

    /// Writes updates back to rows; returns whether there are more.
    async fn write_back(&mut self) -> Result<bool, OutboxError> {
        let outbox = self.outbox;
        let updates = write_back::read_feed(outbox.store(), outbox.tenant(), self.position).await?;
        let Some(updates) = updates else { return Ok(false) };
        crash_point("outbox_before_write_back");
        let now = outbox.clock().now();
        let written = self
            .db
            .write_back(&outbox.source.name, self.position, updates.next, &updates.updates, now)
            .await?;
        if !written {
            return Err(OutboxError::Overtaken);
        }
        self.position = updates.next;
        Ok(updates.has_more)
    }
}
