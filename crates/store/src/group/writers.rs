//! The way to the writers: what the rest of the store asks, and how it is told.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::{sync::oneshot, task::JoinSet};

use super::{Answer, Engine, Inbox, Job, Request, Writer};
use crate::{
    blob::BlobJob,
    error::StoreError,
    handover::HandOver,
    inbound::{Handled, InboundJob},
    pulse::Pulse,
    record::{
        Acceptance, AuditEntry, BlobName, Change, Changed, ClaimRequest, Claimed, DirectoryChange, Erased,
        NewMessage, PrepareRequest, ToPrepare, WireCommit,
    },
    reports::{ReportJob, Reported},
    retention::RetainJob,
};

/// The way to the writers.
pub(crate) struct Writers {
    inbox: Arc<Inbox>,
    tasks: tokio::sync::Mutex<JoinSet<()>>,
    commits: Arc<AtomicU64>,
    generation: Arc<AtomicU64>,
    refusal: Mutex<Option<StoreError>>,
    pulse: Pulse,
}

impl Writers {
    /// Starts one writer per engine.
    pub fn start(engines: Vec<impl Engine>, handover: &Arc<HandOver>) -> Self {
        let inbox = Arc::new(Inbox::new(engines.len()));
        let (commits, generation) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for engine in engines {
            let (commits, generation) = (commits.clone(), generation.clone());
            let writer = Writer { engine, handover: handover.clone(), commits, generation };
            tasks.spawn(writer.run(inbox.clone()));
        }
        Self {
            inbox,
            tasks: tokio::sync::Mutex::new(tasks),
            commits,
            generation,
            refusal: Mutex::default(),
            pulse: Pulse::default(),
        }
    }

    /// Refuses all that comes from now on where the schema has left this program behind, or takes that back.
    pub fn refuse_if_too_new(&self, writable: Result<(), StoreError>) -> Result<(), StoreError> {
        let too_new =
            writable.as_ref().err().filter(|error| matches!(error, StoreError::SchemaTooNew { .. }));
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = too_new.cloned();
        writable
    }

    /// Transactions committed with writes in them.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Finishes what was sent and lets the engines close.
    pub async fn close(&self) {
        self.inbox.close();
        while let Some(ended) = self.tasks.lock().await.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a writer of the store ended badly");
            }
        }
    }

    async fn ask(&self, job: Job) -> Result<Answer, StoreError> {
        if let Some(refusal) = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(refusal);
        }
        let gone = || StoreError::Unavailable("the store is closed".into());
        let (answer, answered) = oneshot::channel();
        self.inbox.push(Request::new(job, answer)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    pub async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError> {
        match self.ask(Job::Accept(messages)).await? {
            Answer::Accepted(acceptances) => Ok(acceptances),
            _ => Err(mismatched()),
        }
    }

    pub async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        match self.ask(Job::Claim(request)).await? {
            Answer::Claimed(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    pub async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError> {
        match self.ask(Job::WireCommit(commits)).await? {
            Answer::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    pub async fn apply(&self, changes: Vec<Change>) -> Result<Vec<bool>, StoreError> {
        match self.ask(Job::Apply(changes)).await? {
            Answer::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    /// Whether something can be written now, or could a moment ago.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let write = async {
            match self.ask(Job::Ping).await? {
                Answer::Pinged => Ok(()),
                _ => Err(mismatched()),
            }
        };
        self.pulse.feel(write).await
    }

    pub async fn claim_preparation(&self, request: PrepareRequest) -> Result<Vec<ToPrepare>, StoreError> {
        match self.ask(Job::Prepare(request)).await? {
            Answer::ToPrepare(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    pub async fn write_blobs(&self, job: BlobJob) -> Result<Vec<BlobName>, StoreError> {
        match self.ask(Job::Blobs(job)).await? {
            Answer::Blobs(names) => Ok(names),
            _ => Err(mismatched()),
        }
    }

    pub async fn retain(&self, job: RetainJob) -> Result<Erased, StoreError> {
        match self.ask(Job::Retain(job)).await? {
            Answer::Retained(done) => Ok(done),
            _ => Err(mismatched()),
        }
    }

    pub async fn report(&self, job: ReportJob) -> Result<Reported, StoreError> {
        match self.ask(Job::Report(job)).await? {
            Answer::Reported(reported) => Ok(reported),
            _ => Err(mismatched()),
        }
    }

    pub async fn inbound(&self, job: InboundJob) -> Result<Handled, StoreError> {
        match self.ask(Job::Inbound(job)).await? {
            Answer::Inbound(handled) => Ok(handled),
            _ => Err(mismatched()),
        }
    }

    pub async fn change(
        &self,
        change: DirectoryChange,
        audit: Option<AuditEntry>,
    ) -> Result<Changed, StoreError> {
        let changed = self.ask(Job::Directory(Box::new((change, audit)))).await;
        // Also where it failed: the answer to a commit may have been lost. What wakes an account has risen before.
        self.generation.fetch_add(1, Ordering::AcqRel);
        match changed? {
            Answer::Changed(changed) => Ok(changed),
            _ => Err(mismatched()),
        }
    }

    /// How often the directory was changed through here.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question".into())
}
