//! Serving one source: when a round begins, and what follows what.
//!
//! Rows are taken before anything is written back, and whenever something went wrong all that wait are taken first: a row
//! whose message was accepted and which was not marked, because of a crash or a lost connection, would otherwise miss what
//! became of it. What is missed all the same is found later, by looking (`keep.rs`).

use std::{sync::Arc, time::Duration};

use postway_domain::{Clock, TenantId, secret::SecretKey};
use postway_store::{Store, StoreError, record::FeedPosition};
use rand::Rng;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    OutboxNode, Source,
    database::{STEP_S_MAX, SourceDb, connect, within},
    error::OutboxError,
    import_batch::{ROUND_ROWS, Round},
    status::{Board, Standing},
    token::Mailer,
    write_back,
};
use crate::accept::{crash_point::crash_point, door::Door};

/// How often the duty is asked for.
const DUTY_EVERY: Duration = Duration::from_secs(1);
/// How often the feed is looked at.
const FEED_EVERY: Duration = Duration::from_millis(500);
/// How often counts are made, and what has ended is tidied up.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// The longest that this may take.
const UPKEEP_S_MAX: u64 = 120;
/// How often an idle connection is asked whether it is there.
const CHECK_EVERY: Duration = Duration::from_secs(270);
/// The first and the longest wait after an error.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// How long a round may take to end once it is told to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Serves one source, while this node has the duty.
pub struct Outbox {
    pub(super) source: Source,
    pub(super) door: Arc<Door>,
    pub(super) mailer: Option<Mailer>,
    pub(super) board: Board,
    node: Arc<dyn OutboxNode>,
}

/// What was begun on a connection.
struct Serving<'a> {
    outbox: &'a Outbox,
    db: Box<dyn SourceDb>,
    /// How far is told what became of rows.
    told: FeedPosition,
    /// How many rows are taken at once: fewer where they are large.
    most: u32,
}

impl Outbox {
    /// A source of rows for this door.
    pub fn new(
        source: Source,
        door: Arc<Door>,
        node: Arc<dyn OutboxNode>,
        secret_key: &SecretKey,
    ) -> Result<Self, OutboxError> {
        let accounts = source.accounts.as_ref();
        let mailer = accounts.map(|accounts| Mailer::new(&source, accounts, secret_key)).transpose()?;
        Ok(Self { source, door, mailer, board: Board::default(), node })
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
            () = self.serve_on(&stop) => {}
            () = stopped => {}
        }
        self.board.write(|live| live.standing = Standing::Stopped);
    }

    async fn serve_on(&self, stop: &CancellationToken) {
        let mut backoff = BACKOFF.0;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let pause = match self.serve(stop).await {
                Ok(()) => DUTY_EVERY,
                Err(error) => {
                    // Whoever was well for a while is tried again soon.
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
        let mut serving = Serving::begin(self).await?;
        self.board.write(|live| live.standing = Standing::Serving);
        serving.drain(stop).await?;
        tracing::info!(source = self.source.name, database = %self.source.url, "the outbox is served");
        serving.go_on(stop).await
    }

    async fn is_on_duty(&self) -> Result<bool, StoreError> {
        let has = self.node.is_on_duty(&self.source.duty()).await?;
        if !has {
            self.board.write(|live| {
                (live.standing, live.error) = (Standing::Elsewhere, None);
                (live.waiting, live.lag_seconds) = (None, None);
            });
            metrics::gauge!("postway_outbox_lag_seconds", "source" => self.source.name.clone()).set(0.0);
        }
        Ok(has)
    }

    /// Says whether rows wait for an account that sends; once in the log, and as long as it is so to whoever asks.
    fn told_waiting(&self, holds: bool) {
        let why = holds.then(|| OutboxError::WouldCapture.to_string());
        if let Some(why) = &why
            && self.board.read().error.as_ref() != Some(why)
        {
            tracing::warn!(source = self.source.name, error = why, "rows of the outbox wait");
        }
        self.board.write(|live| live.error = why);
    }

    /// Told once, not at each try.
    fn failed(&self, error: &OutboxError) {
        let (source, error) = (self.source.name.clone(), error.to_string());
        metrics::counter!("postway_outbox_errors_total", "source" => source.clone()).increment(1);
        let is_news = self.board.read().error.as_deref() != Some(&error);
        match is_news {
            true => tracing::warn!(source, error, "the outbox is not served now; it will be tried again"),
            false => tracing::debug!(source, error, "the outbox is still not served"),
        }
        self.board.write(|live| {
            (live.standing, live.error) = (Standing::Away, Some(error));
            (live.waiting, live.lag_seconds) = (None, None);
        });
    }
}

impl<'a> Serving<'a> {
    async fn begin(outbox: &'a Outbox) -> Result<Self, OutboxError> {
        let tenant = outbox.store().tenant(outbox.tenant()).await?;
        if tenant.is_none_or(|tenant| tenant.deleted_at.is_some()) {
            return Err(OutboxError::NoTenant(outbox.tenant().to_string()));
        }
        let mut db = connect(&outbox.source).await?;
        let end = outbox.store().feed_end(outbox.tenant()).await?;
        let name = &outbox.source.name;
        let told = match within(STEP_S_MAX, db.progress(name)).await? {
            // A place that is not reached yet is one of another gateway.
            Some(told) if told.page <= end.page => told,
            Some(_) | None => {
                within(STEP_S_MAX, db.set_progress(name, end, outbox.clock().now())).await?;
                end
            }
        };
        Ok(Self { outbox, db, told, most: ROUND_ROWS })
    }

    /// Goes on until the duty or the connection is lost, or it is stopped.
    async fn go_on(&mut self, stop: &CancellationToken) -> Result<(), OutboxError> {
        let source = &self.outbox.source;
        let mut poll = Instant::now() + source.poll;
        let mut check = Instant::now() + CHECK_EVERY;
        let (mut feed, mut duty, mut upkeep) = (Instant::now(), Instant::now() + DUTY_EVERY, Instant::now());
        // When what was heard of is taken at the latest.
        let mut batch: Option<Instant> = None;
        while !stop.is_cancelled() {
            let wake = [poll, check, feed, duty, upkeep].into_iter().chain(batch).min().unwrap_or(poll);
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                heard = self.db.hint(), if batch.is_none() || source.batch_limit > 1 => {
                    heard?;
                    batch = Some(self.gathered(batch).await?);
                }
                () = sleep_until(wake) => {}
            }
            let now = Instant::now();
            if batch.is_some_and(|at| at <= now) || poll <= now {
                (batch, poll) = (None, now + source.poll);
                self.drain(stop).await?;
            }
            if feed <= now {
                let has_more = self.follow().await?;
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
                within(UPKEEP_S_MAX, self.outbox.keep_up(&mut *self.db)).await?;
                upkeep = Instant::now() + UPKEEP_EVERY;
            }
            if check <= now {
                self.db.check().await?;
                check = Instant::now() + CHECK_EVERY;
            }
        }
        Ok(())
    }

    /// When what was heard of is to be taken: at once where enough rows wait, else when the first has waited long enough.
    async fn gathered(&mut self, first: Option<Instant>) -> Result<Instant, OutboxError> {
        let (source, now) = (&self.outbox.source, Instant::now());
        if source.batch_timeout.is_zero() || source.batch_limit <= 1 {
            return Ok(now);
        }
        let waiting = within(STEP_S_MAX, self.db.waiting(source.batch_limit)).await?;
        Ok(if waiting >= source.batch_limit { now } else { first.unwrap_or(now + source.batch_timeout) })
    }

    /// Takes all that wait.
    async fn drain(&mut self, stop: &CancellationToken) -> Result<(), OutboxError> {
        if stop.is_cancelled() {
            return Ok(());
        }
        let mut holds = false;
        let mut goes_on = |round: Round| {
            holds |= round.holds;
            round.has_more && !stop.is_cancelled()
        };
        while goes_on(self.outbox.round(&mut *self.db, &mut self.most).await?) {}
        while goes_on(self.outbox.token_round(&mut *self.db).await?) {}
        self.outbox.told_waiting(holds);
        within(UPKEEP_S_MAX, self.outbox.call_back(&mut *self.db)).await
    }

    /// Writes back what became of rows; whether there is more.
    async fn follow(&mut self) -> Result<bool, OutboxError> {
        let outbox = self.outbox;
        let told = write_back::read(outbox.store(), outbox.tenant(), self.told).await?;
        let Some(told) = told else { return Ok(false) };
        crash_point("outbox_before_write_back");
        let now = outbox.clock().now();
        let written = self.db.write_back(&outbox.source.name, self.told, told.next, &told.news, now).await?;
        if !written {
            return Err(OutboxError::Overtaken);
        }
        self.told = told.next;
        Ok(told.has_more)
    }
}
