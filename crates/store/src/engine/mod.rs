//! Group commit, the same for every database.
//!
//! Every write of the process goes through here. A writer takes the jobs that arrived while its last commit
//! ran, as far as they fit into one transaction ([`inbox`] says in which order), does them, and answers after
//! the commit: jobs thus share an fsync, and no job waits for a timer. A transaction that a conflict undid is
//! tried again. If a group fails for another reason, its jobs run again one by one, and only the failing one
//! gets the error; if the database is unreachable, or may have committed, all of them do.
//!
//! What a database brings is an [`WriteTransaction`]: a connection that can do each kind of job set-wise
//! inside a transaction.

mod commit_span;
mod directory_change;
mod inbox;
mod jobs;
mod turns;
pub(crate) mod write_probe;
mod writers;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use postway_domain::MessageUid;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

pub(crate) use directory_change::{wakes_reports, woken_by};
use inbox::{Inbox, JobSize};
pub(crate) use writers::Writers;

use crate::{
    blob::BlobJob,
    error::StoreError,
    failpoint::crash_point,
    hook::{HookAnswer, HookJob},
    inbound::{InboundAnswer, InboundJob},
    queue::{collapse, hand_over::HandOver, packing::PackedMessage, transaction::WriteTransaction},
    record::{
        Acceptance, AuditEntry, BlobName, BulkStep, ChangeResult, ClaimRequest, ClaimedMessage,
        DirectoryChange, ErasureCounts, MessageChange, PrepareRequest, ToPrepare, WireCommit,
    },
    reporting::{ReportAnswer, ReportJob},
    retention::RetainJob,
};

/// How often a transaction is tried if conflicts undo it.
const CONFLICT_TRIES: u32 = 8;
/// The longest pause before the second try; it doubles for each one after.
const CONFLICT_PAUSE_MS: u64 = 30;
/// The longest pause of all.
const CONFLICT_PAUSE_MS_MAX: u64 = 1_000;

/// A write job.
pub(crate) enum Job {
    Accept(Vec<PackedMessage>),
    WireCommit(Vec<WireCommit>),
    Apply(Vec<MessageChange>),
    Claim(ClaimRequest),
    Prepare(PrepareRequest),
    /// Rare, and done one by one.
    Directory(Box<(DirectoryChange, Option<AuditEntry>)>),
    /// Rare, and done one by one, too.
    Blobs(BlobJob),
    /// Rare, and done one by one, too.
    Retain(RetainJob),
    Report(ReportJob),
    Inbound(InboundJob),
    Hook(HookJob),
    /// One by one, because each has messages of its own.
    BulkStep(Box<BulkStep>),
    /// Writes nothing but a probe.
    Ping,
}

/// The answer to a job.
pub(crate) enum JobAnswer {
    Accepted(Vec<Acceptance>),
    Held(Vec<bool>),
    Claimed(Vec<ClaimedMessage>),
    ToPrepare(Vec<ToPrepare>),
    Changed(ChangeResult),
    Blobs(Vec<BlobName>),
    Retained(ErasureCounts),
    Reported(ReportAnswer),
    Inbound(InboundAnswer),
    Hook(HookAnswer),
    Advanced(Option<Vec<bool>>),
    Pinged,
}

/// A job, and where to send its answer.
struct Request {
    job: Job,
    answer: oneshot::Sender<Result<JobAnswer, StoreError>>,
    size: JobSize,
    /// Released when the job is answered: jobs that a writer has taken count as waiting.
    places: Vec<OwnedSemaphorePermit>,
}

impl Request {
    fn new(job: Job, answer: oneshot::Sender<Result<JobAnswer, StoreError>>) -> Self {
        let size = JobSize { messages: job.messages(), bytes: job.bytes() };
        Self { job, answer, size, places: Vec::new() }
    }
}

impl Job {
    /// Roughly how many messages this job touches.
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
            Job::Hook(job) => job.messages(),
            Job::BulkStep(step) => step.changes.len() + step.suppressed.len() + 1,
            Job::Directory(..) | Job::Blobs(..) | Job::Ping => 1,
        }
    }

    /// The number of body bytes that it writes into rows.
    fn bytes(&self) -> usize {
        match self {
            Job::Accept(messages) => messages.iter().map(PackedMessage::row_bytes).sum(),
            Job::Apply(changes) => changes.iter().map(MessageChange::inline_bytes).sum(),
            Job::Inbound(job) => job.bytes(),
            Job::Hook(job) => job.bytes(),
            Job::WireCommit(_)
            | Job::Claim(_)
            | Job::Prepare(_)
            | Job::Directory(..)
            | Job::Blobs(..)
            | Job::Retain(_)
            | Job::Report(_)
            | Job::BulkStep(_)
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

impl<E: WriteTransaction> Writer<E> {
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
            // Jobs that may be durable are not run again: each would find its own rows.
            Err(error) if group.len() == 1 || matches!(error, StoreError::Unsettled(_)) => {
                for request in group {
                    let _ = request.answer.send(Err(error.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(jobs = group.len(), %error, "a group commit failed; its jobs rerun one by one");
                let mut away = None;
                for request in group {
                    // The other jobs would fail the same way, and each might wait long for it.
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

    /// Commits, and tries again after a conflict.
    async fn commit(&mut self, jobs: &[&Job]) -> Result<Vec<JobAnswer>, StoreError> {
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

    async fn try_commit(&mut self, jobs: &[&Job]) -> Result<Vec<JobAnswer>, StoreError> {
        let mut span = commit_span::begin(jobs);
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
                span.fail("rolled_back");
                return Err(error);
            }
        };
        drop(span);
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
            // Before the hint, so that a woken reader knows that its copy may be stale.
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
        if after.provider_events {
            self.handover.wake_provider_events();
        }
        Ok(answers)
    }
}

fn is_away(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_))
}

/// Full jitter, so that transactions that conflicted once do not conflict again: anything up to a bound that
/// doubles. `dice` is random.
fn conflict_pause(tries: u32, dice: u64) -> Duration {
    let bound_ms = (CONFLICT_PAUSE_MS << (tries - 1).min(16)).min(CONFLICT_PAUSE_MS_MAX);
    Duration::from_millis(dice % (bound_ms + 1))
}

/// Splits writes into rounds of different messages: a set-wise update takes each message once, so a second
/// write of the same message waits for the next round and sees the first. Returns the rounds as indexes.
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
