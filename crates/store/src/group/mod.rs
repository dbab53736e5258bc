//! Group commit, the same for every database.
//!
//! Every write of the process goes through here. A writer takes what has arrived while its last commit ran, as far as it
//! fits into one transaction ([`inbox`] says in which order), does it, and answers after the commit: so an fsync is shared by
//! whoever came in time, and nobody waits on a timer. A transaction that others' locks undid is tried again. If a group fails for another reason, its jobs rerun
//! one by one and only the guilty one is told; if the database is away, or may have done it, all are told.
//!
//! What a database brings is an [`Engine`]: a connection that can do each kind of job set-wise inside a transaction.

mod inbox;
mod jobs;
mod turns;
mod writers;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use postway_domain::{MessageUid, Status, TenantId, Time};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use inbox::{Inbox, JobSize};
pub(crate) use writers::Writers;

use crate::{
    blob::BlobJob,
    collapse,
    crash::crash_point,
    error::StoreError,
    handover::HandOver,
    inbound::{Handled, InboundJob},
    journal::Journal,
    packing::PackedMessage,
    record::{
        Acceptance, AccountKey, AccountWant, AuditEntry, BlobName, Change, Changed, ClaimRequest, Claimed,
        DirectoryChange, Erased, Lease, PrepareRequest, ToPrepare, WireCommit,
    },
    reports::{ReportJob, Reported},
    retention::RetainJob,
    sql::Session,
    terms::Terms,
};

/// How often a transaction is tried that other transactions are in the way of.
const CONFLICT_TRIES: u32 = 8;
/// The longest pause before the second try; it doubles for each one after.
const CONFLICT_PAUSE_MS: u64 = 30;
/// The longest pause of all.
const CONFLICT_PAUSE_MS_MAX: u64 = 1_000;

/// Something to write.
pub(crate) enum Job {
    Accept(Vec<PackedMessage>),
    WireCommit(Vec<WireCommit>),
    Apply(Vec<Change>),
    Claim(ClaimRequest),
    Prepare(PrepareRequest),
    /// Rare, and done one by one.
    Directory(Box<(DirectoryChange, Option<AuditEntry>)>),
    /// The same.
    Blobs(BlobJob),
    /// The same.
    Retain(RetainJob),
    Report(ReportJob),
    Inbound(InboundJob),
    /// Nothing but the writing itself.
    Ping,
}

/// What came of a job.
pub(crate) enum Answer {
    Accepted(Vec<Acceptance>),
    Held(Vec<bool>),
    Claimed(Vec<Claimed>),
    ToPrepare(Vec<ToPrepare>),
    Changed(Changed),
    Blobs(Vec<BlobName>),
    Retained(Erased),
    Reported(Reported),
    Inbound(Handled),
    Pinged,
}

/// What is to be done once a transaction is durable.
#[derive(Default)]
pub(crate) struct After {
    /// Messages handed over to standing claims.
    pub delivered: Vec<Claimed>,
    /// Accounts that have new work, or have changed.
    pub woken: BTreeSet<AccountKey>,
    /// Accounts that have changed: their standing claims were made for what they were before.
    pub changed: BTreeSet<AccountKey>,
    /// Room to leave standing.
    pub parked: Vec<Parking>,
    /// Whether there is something new to prepare.
    pub prepares: bool,
    /// What is told of what was written; it goes into the journal before the commit.
    pub journal: Journal,
    /// Whether there is something new to tell.
    pub reports: bool,
    /// Whether there is mail to deal with.
    pub inbound: bool,
    /// Where messages stand now whose place a newer one took.
    pub superseded: Vec<Status>,
    /// Whether anything was written at all.
    pub wrote: bool,
}

/// Room of one account that a claim could not fill.
pub(crate) struct Parking {
    pub want: AccountWant,
    pub lease: Lease,
    pub now: Time,
}

/// One connection that writes. Between `begin` and `commit` the other methods share a transaction.
#[async_trait]
pub(crate) trait Engine: Send + 'static {
    async fn begin(&mut self) -> Result<(), StoreError>;
    async fn accept(
        &mut self,
        messages: &[&PackedMessage],
        terms: &mut Terms,
    ) -> Result<Vec<Acceptance>, StoreError>;
    async fn wire_commit(&mut self, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError>;
    async fn apply(&mut self, changes: &[&Change]) -> Result<Vec<bool>, StoreError>;
    async fn claim(&mut self, request: &ClaimRequest, terms: &mut Terms) -> Result<Vec<Claimed>, StoreError>;
    /// Counts a message in at `to`, and out at `from`.
    fn count(&mut self, tenant: &TenantId, from: Option<Status>, to: Status);
    /// Counts a message out that is gone.
    fn count_out(&mut self, tenant: &TenantId, from: Status);
    /// The transaction's connection, for SQL that is written once.
    fn session(&mut self) -> Result<Box<dyn Session + '_>, StoreError>;
    /// What is to be done after the commit, so far.
    fn after(&mut self) -> &mut After;
    /// Makes it durable, and tells what to do then.
    async fn commit(&mut self) -> Result<After, StoreError>;
    /// Forgets it. Must leave the engine fit for the next transaction, whatever went wrong.
    async fn rollback(&mut self);
    async fn close(self);
}

/// A job, and whom to tell what came of it.
struct Request {
    job: Job,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
    size: JobSize,
    /// Given up when it is answered: what a writer has in hand counts as waiting.
    places: Vec<OwnedSemaphorePermit>,
}

impl Request {
    fn new(job: Job, answer: oneshot::Sender<Result<Answer, StoreError>>) -> Self {
        let size = JobSize { messages: job.messages(), bytes: job.bytes() };
        Self { job, answer, size, places: Vec::new() }
    }
}

impl Job {
    /// How many messages it is about, about.
    fn messages(&self) -> usize {
        match self {
            Job::Accept(messages) => messages.len(),
            Job::WireCommit(commits) => commits.len(),
            Job::Apply(changes) => changes.len(),
            Job::Claim(request) => request.wants.iter().map(|want| want.room as usize).sum(),
            Job::Prepare(request) => request.wants.iter().map(|(_, room)| *room as usize).sum(),
            Job::Retain(job) => job.messages(),
            Job::Report(job) => job.messages(),
            Job::Inbound(job) => job.messages(),
            Job::Directory(..) | Job::Blobs(..) | Job::Ping => 1,
        }
    }

    /// How many bytes of bodies it writes into rows.
    fn bytes(&self) -> usize {
        match self {
            Job::Accept(messages) => messages.iter().map(PackedMessage::row_bytes).sum(),
            Job::Apply(changes) => changes.iter().map(Change::inline_bytes).sum(),
            Job::Inbound(job) => job.bytes(),
            Job::WireCommit(_)
            | Job::Claim(_)
            | Job::Prepare(_)
            | Job::Directory(..)
            | Job::Blobs(..)
            | Job::Retain(_)
            | Job::Report(_)
            | Job::Ping => 0,
        }
    }
}

struct Writer<E> {
    engine: E,
    handover: Arc<HandOver>,
    commits: Arc<AtomicU64>,
    generation: Arc<AtomicU64>,
}

/// Leaves the inbox however the writer ends.
struct WriterSeat(Arc<Inbox>);

impl Drop for WriterSeat {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl<E: Engine> Writer<E> {
    async fn run(mut self, inbox: Arc<Inbox>) {
        let seat = WriterSeat(inbox);
        while let Some(group) = seat.0.take().await {
            self.answer(group).await;
        }
        self.engine.close().await;
    }

    async fn answer(&mut self, group: Vec<Request>) {
        let jobs: Vec<&Job> = group.iter().map(|request| &request.job).collect();
        // A caller that went away does not need its answer.
        match self.commit(&jobs).await {
            Ok(answers) => {
                for (request, answer) in group.into_iter().zip(answers) {
                    let _ = request.answer.send(Ok(answer));
                }
            }
            // What may be durable is not done again: each would meet its own rows.
            Err(error) if group.len() == 1 || matches!(error, StoreError::Unsettled(_)) => {
                for request in group {
                    let _ = request.answer.send(Err(error.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(jobs = group.len(), %error, "a group commit failed; its jobs rerun one by one");
                let mut away = None;
                for request in group {
                    // Each would find the same, and each might wait long for it.
                    if let Some(away) = &away {
                        let _ = request.answer.send(Err(StoreError::clone(away)));
                        continue;
                    }
                    let answers = self.commit(&[&request.job]).await;
                    let answer = answers.and_then(|mut answers| {
                        answers.pop().ok_or_else(|| StoreError::Unexpected("no answer to a job".into()))
                    });
                    away = answer.as_ref().err().filter(|_| is_away(&error)).filter(|e| is_away(e)).cloned();
                    let _ = request.answer.send(answer);
                }
            }
        }
    }

    /// Commits, again where other transactions were in the way.
    async fn commit(&mut self, jobs: &[&Job]) -> Result<Vec<Answer>, StoreError> {
        let mut tries = 1;
        loop {
            match self.try_commit(jobs).await {
                Err(StoreError::Conflict(reason)) if tries < CONFLICT_TRIES => {
                    metrics::counter!("postway_store_conflicts_total").increment(1);
                    tracing::debug!(
                        jobs = jobs.len(),
                        tries,
                        reason,
                        "a transaction was undone; it is tried again"
                    );
                    tokio::time::sleep(conflict_pause(tries, rand::random())).await;
                    tries += 1;
                }
                settled => return settled,
            }
        }
    }

    async fn try_commit(&mut self, jobs: &[&Job]) -> Result<Vec<Answer>, StoreError> {
        let committed = match jobs::do_jobs(&mut self.engine, &self.handover, jobs).await {
            Ok(answers) => {
                crash_point("store_before_commit");
                self.engine.commit().await.map(|after| (answers, after))
            }
            Err(error) => Err(error),
        };
        let (answers, after) = match committed {
            Ok(committed) => committed,
            Err(error) => {
                self.engine.rollback().await;
                return Err(error);
            }
        };
        crash_point("store_after_commit");
        if after.wrote {
            self.commits.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("postway_store_commits_total").increment(1);
            metrics::histogram!("postway_store_group_size").record(jobs.len() as f64);
        }
        after.superseded.into_iter().for_each(collapse::count_entered);
        for parking in after.parked {
            self.handover.park(parking.want, &parking.lease, parking.now);
        }
        if !after.changed.is_empty() {
            // Before the hint, so that who hears it knows that what he has just read may be old.
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        after.changed.iter().for_each(|key| self.handover.withdraw(key));
        self.handover.deliver(after.delivered);
        self.handover.wake(after.woken);
        if after.prepares {
            self.handover.wake_preparation();
        }
        if after.reports {
            self.handover.wake_reports();
        }
        if after.inbound {
            self.handover.wake_inbound();
        }
        Ok(answers)
    }
}

fn is_away(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_))
}

/// Full jitter, so that those who met once do not meet again: anything up to a bound that doubles. `dice` is random.
fn conflict_pause(tries: u32, dice: u64) -> Duration {
    let bound_ms = (CONFLICT_PAUSE_MS << (tries - 1).min(16)).min(CONFLICT_PAUSE_MS_MAX);
    Duration::from_millis(dice % (bound_ms + 1))
}

/// Splits writes into rounds of different messages: a set-wise update takes each message once, so a second write of the
/// same message waits for the next round and sees the first. Gives the rounds as indexes.
pub(crate) fn rounds(uids: impl ExactSizeIterator<Item = MessageUid>) -> Vec<Vec<usize>> {
    let mut nth: HashMap<MessageUid, usize> = HashMap::with_capacity(uids.len());
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (index, uid) in uids.enumerate() {
        let round = nth.entry(uid).or_default();
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*round].push(index);
        *round += 1;
    }
    rounds
}

#[cfg(test)]
mod tests;
