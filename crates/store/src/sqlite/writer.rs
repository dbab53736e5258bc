//! The one writer, and group commit.
//!
//! Every write of the process goes through one task with one connection. It takes all that has arrived while the last
//! commit ran, does it in one transaction, and answers after the commit: so an fsync is shared by whoever came in
//! time, and nobody waits on a timer. If a group fails, its jobs rerun one by one and only the guilty one is told.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use postway_domain::{Account, AccountId, LaneId, Status, TenantId};
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use super::{accept, accounts, change, claim, failed, rows::Multi};
use crate::{
    error::StoreError,
    handover::HandOver,
    port::DeleteAccount,
    record::{Acceptance, AccountKey, Change, ClaimRequest, Claimed, NewMessage, Tenant, WireCommit},
};

/// Jobs that may wait for the writer; senders wait beyond that.
const QUEUE_JOBS_MAX: usize = 8_192;
/// Messages in one transaction; a job that brings more than that goes alone. Keeps a group's memory and time bounded.
const GROUP_MESSAGES_MAX: usize = 1_024;

/// Something to write.
pub(super) enum Job {
    Accept(Vec<NewMessage>),
    WireCommit(Vec<WireCommit>),
    Apply(Vec<Change>),
    Claim(ClaimRequest),
    CreateTenant(Tenant),
    SetDefaultAccount(TenantId, AccountId),
    CreateAccount(Account),
    UpdateAccount(Account, i64),
    DeleteAccount(TenantId, AccountId),
}

impl Job {
    /// How many messages it is about, about.
    fn messages(&self) -> usize {
        match self {
            Job::Accept(messages) => messages.len(),
            Job::WireCommit(commits) => commits.len(),
            Job::Apply(changes) => changes.len(),
            Job::Claim(request) => request.wants.iter().map(|want| want.room as usize).sum(),
            Job::CreateTenant(_)
            | Job::SetDefaultAccount(..)
            | Job::CreateAccount(_)
            | Job::UpdateAccount(..)
            | Job::DeleteAccount(..) => 1,
        }
    }
}

/// What came of it.
pub(super) enum Answer {
    Accepted(Vec<Acceptance>),
    Held(Vec<bool>),
    Claimed(Vec<Claimed>),
    Done(bool),
    Deleted(DeleteAccount),
}

struct Request {
    job: Job,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// The way to the writer.
#[derive(Clone)]
pub(super) struct Writer {
    requests: mpsc::Sender<Request>,
    commits: Arc<AtomicU64>,
}

/// A transaction under way, and what is to be done once it is durable.
pub(super) struct Txn<'c> {
    pub conn: &'c mut SqliteConnection,
    pub handover: &'c HandOver,
    pub known_lanes: &'c mut BTreeSet<LaneId>,
    pub new_lanes: Vec<LaneId>,
    pub delivered: Vec<Claimed>,
    pub woken: BTreeSet<AccountKey>,
    pub parked: Vec<claim::Parking>,
    moved: HashMap<(TenantId, Status), i64>,
    pub wrote: bool,
}

static COUNT: Multi = Multi::new(
    "INSERT INTO tally (tenant, status, count) VALUES ",
    3,
    " ON CONFLICT (tenant, status) DO UPDATE SET count = count + excluded.count",
);

impl Txn<'_> {
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
        let moved: Vec<_> = self.moved.drain().filter(|(_, by)| *by != 0).collect();
        for (sql, run) in COUNT.runs(&moved) {
            let mut query = sqlx::query(sql);
            for ((tenant, status), by) in run {
                query = query.bind(tenant.as_str()).bind(status.code()).bind(*by);
            }
            query.execute(&mut *self.conn).await.map_err(failed)?;
        }
        Ok(())
    }
}

impl Writer {
    /// Starts the writer on its connection.
    pub fn start(conn: SqliteConnection, handover: Arc<HandOver>) -> (Self, tokio::task::JoinHandle<()>) {
        let (requests, inbox) = mpsc::channel(QUEUE_JOBS_MAX);
        let commits = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(run(conn, handover, inbox, commits.clone()));
        (Self { requests, commits }, task)
    }

    /// Has a job done, and returns when it is durable.
    pub async fn ask(&self, job: Job) -> Result<Answer, StoreError> {
        let gone = || StoreError::Unavailable("the store is closed".into());
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request { job, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Counts transactions committed with writes in them.
    pub fn commit_counter(&self) -> Arc<AtomicU64> {
        self.commits.clone()
    }
}

async fn run(
    mut conn: SqliteConnection,
    handover: Arc<HandOver>,
    mut inbox: mpsc::Receiver<Request>,
    commits: Arc<AtomicU64>,
) {
    let mut known_lanes = BTreeSet::new();
    let mut arrived = Vec::new();
    let mut group = Vec::new();
    while !arrived.is_empty() || inbox.recv_many(&mut arrived, GROUP_MESSAGES_MAX).await > 0 {
        take_group(&mut arrived, &mut group);
        let jobs: Vec<&Job> = group.iter().map(|request| &request.job).collect();
        match commit_group(&mut conn, &handover, &mut known_lanes, &jobs, &commits).await {
            Ok(answers) => {
                for (request, answer) in group.drain(..).zip(answers) {
                    // A caller that went away does not need its answer.
                    let _ = request.answer.send(Ok(answer));
                }
            }
            Err(error) if group.len() == 1 => {
                for request in group.drain(..) {
                    let _ = request.answer.send(Err(error.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(jobs = group.len(), %error, "a group commit failed; its jobs rerun one by one");
                for request in group.drain(..) {
                    let alone = [&request.job];
                    let answers =
                        commit_group(&mut conn, &handover, &mut known_lanes, &alone, &commits).await;
                    let answer = answers.and_then(|mut answers| {
                        answers.pop().ok_or_else(|| StoreError::Unexpected("no answer to a job".into()))
                    });
                    let _ = request.answer.send(answer);
                }
            }
        }
    }
    if let Err(error) = conn.close().await {
        tracing::warn!(%error, "the database did not close cleanly");
    }
}

/// Moves as many requests as fit into one transaction, at least one, in the order of their arrival.
fn take_group(arrived: &mut Vec<Request>, group: &mut Vec<Request>) {
    let mut messages = 0;
    let mut fits = |request: &Request| {
        messages += request.job.messages();
        messages <= GROUP_MESSAGES_MAX
    };
    let count = arrived.iter().take_while(|request| fits(request)).count().max(1);
    group.extend(arrived.drain(..count));
}

async fn commit_group(
    conn: &mut SqliteConnection,
    handover: &HandOver,
    known_lanes: &mut BTreeSet<LaneId>,
    jobs: &[&Job],
    commits: &AtomicU64,
) -> Result<Vec<Answer>, StoreError> {
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(failed)?;
    let mut txn = Txn {
        conn: &mut *conn,
        handover,
        known_lanes: &mut *known_lanes,
        new_lanes: Vec::new(),
        delivered: Vec::new(),
        woken: BTreeSet::new(),
        parked: Vec::new(),
        moved: HashMap::new(),
        wrote: false,
    };
    let done = do_jobs(&mut txn, jobs).await;
    let Txn { new_lanes, delivered, woken, parked, wrote, .. } = txn;
    let committed = match done {
        Ok(answers) => {
            crate::crash::crash_point("store_before_commit");
            sqlx::query("COMMIT").execute(&mut *conn).await.map(|_| answers).map_err(failed)
        }
        Err(error) => Err(error),
    };
    let answers = match committed {
        Ok(answers) => answers,
        Err(error) => {
            if let Err(rollback) = sqlx::query("ROLLBACK").execute(&mut *conn).await {
                tracing::debug!(error = %rollback, "nothing to roll back");
            }
            // Slots taken for messages that were not stored come back with the dispatcher's next claim.
            handover.wake(delivered.iter().map(|claimed| AccountKey {
                tenant: claimed.lane.tenant.clone(),
                account: claimed.lane.account.clone(),
            }));
            return Err(error);
        }
    };
    crate::crash::crash_point("store_after_commit");
    if wrote {
        commits.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("postway_store_commits_total").increment(1);
        metrics::histogram!("postway_store_group_size").record(jobs.len() as f64);
    }
    known_lanes.extend(new_lanes);
    for parking in parked {
        handover.park(&parking.key, &parking.lease, parking.now, parking.room);
    }
    handover.deliver(delivered);
    handover.wake(woken);
    Ok(answers)
}

/// Runs the jobs of a group kind by kind, so that each kind is one set of statements: what is new first, then what
/// became of older work, and claims last, so that they see both.
async fn do_jobs(txn: &mut Txn<'_>, jobs: &[&Job]) -> Result<Vec<Answer>, StoreError> {
    let mut answers: Vec<Option<Answer>> = jobs.iter().map(|_| None).collect();

    let mut accepts = Vec::new();
    let mut wire_commits = Vec::new();
    let mut changes = Vec::new();
    for job in jobs {
        match job {
            Job::Accept(messages) => accepts.extend(messages.iter()),
            Job::WireCommit(commits) => wire_commits.extend(commits.iter()),
            Job::Apply(set) => changes.extend(set.iter()),
            Job::Claim(_)
            | Job::CreateTenant(_)
            | Job::SetDefaultAccount(..)
            | Job::CreateAccount(_)
            | Job::UpdateAccount(..)
            | Job::DeleteAccount(..) => {}
        }
    }
    txn.wrote |= !(accepts.is_empty() && wire_commits.is_empty() && changes.is_empty());
    let mut accepted = accept::accept(txn, &accepts).await?.into_iter();
    let mut committed = change::wire_commit(txn, &wire_commits).await?.into_iter();
    let mut applied = change::apply(txn, &changes).await?.into_iter();
    for (job, answer) in jobs.iter().zip(&mut answers) {
        *answer = match job {
            Job::Accept(messages) => Some(Answer::Accepted(accepted.by_ref().take(messages.len()).collect())),
            Job::WireCommit(set) => Some(Answer::Held(committed.by_ref().take(set.len()).collect())),
            Job::Apply(set) => Some(Answer::Held(applied.by_ref().take(set.len()).collect())),
            Job::Claim(request) => Some(Answer::Claimed(claim::claim(txn, request).await?)),
            Job::CreateTenant(tenant) => Some(Answer::Done(accounts::create_tenant(txn, tenant).await?)),
            Job::SetDefaultAccount(tenant, account) => {
                accounts::set_default(txn, tenant, account).await?;
                Some(Answer::Done(true))
            }
            Job::CreateAccount(account) => Some(Answer::Done(accounts::create(txn, account).await?)),
            Job::UpdateAccount(account, expected) => {
                Some(Answer::Done(accounts::update(txn, account, *expected).await?))
            }
            Job::DeleteAccount(tenant, id) => Some(Answer::Deleted(accounts::delete(txn, tenant, id).await?)),
        };
    }
    txn.write_counts().await?;
    answers
        .into_iter()
        .map(|answer| answer.ok_or_else(|| StoreError::Unexpected("a job without an answer".into())))
        .collect()
}
