//! The interface of the writers: requests from the rest of the store, and their answers.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tokio::{runtime::Handle, sync::oneshot, task::JoinSet};

use super::{Inbox, Job, JobAnswer, Request, Writer, write_probe::WriteProbe};
use crate::{
    blob::BlobJob,
    error::StoreError,
    hook::{HookAnswer, HookJob},
    inbound::{InboundAnswer, InboundJob},
    journal::event_row::shorten_data,
    queue::{
        hand_over::HandOver,
        packing::{PackedMessage, Packing},
        transaction::WriteTransaction,
    },
    record::{
        Acceptance, AuditEntry, BlobName, BulkStep, ChangeResult, ClaimRequest, ClaimedMessage,
        DirectoryChange, ErasureCounts, MessageChange, NewMessage, PrepareRequest, ToPrepare, WireCommit,
    },
    reporting::{ReportAnswer, ReportJob},
    retention::RetainJob,
};

/// The writers of a store.
pub(crate) struct Writers {
    inbox: Arc<Inbox>,
    tasks: tokio::sync::Mutex<JoinSet<()>>,
    commits: Arc<AtomicU64>,
    generation: Arc<AtomicU64>,
    refusal: Mutex<Option<StoreError>>,
    pulse: WriteProbe,
}

impl Writers {
    /// Starts one writer per engine, each a task of the runtime.
    pub fn start(engines: Vec<impl WriteTransaction>, handover: &Arc<HandOver>) -> Self {
        let mut writers = Self::of(engines.len());
        for engine in engines {
            let writer = writers.writer(engine, handover);
            writers.tasks.get_mut().spawn(writer.run(writers.inbox.clone()));
        }
        writers
    }

    /// Starts one writer on its own thread, for an engine that blocks. Between two groups it waits for the
    /// inbox only, so it neither delays the runtime's other work nor is delayed by it.
    pub fn start_on_thread(
        engine: impl WriteTransaction,
        handover: &Arc<HandOver>,
    ) -> Result<Self, StoreError> {
        let mut writers = Self::of(1);
        let writer = writers.writer(engine, handover);
        let (inbox, runtime) = (writers.inbox.clone(), Handle::current());
        let (ended, has_ended) = oneshot::channel::<()>();
        let run = move || {
            // Dropped when the writer ends, also by a panic.
            let _ended = ended;
            runtime.block_on(writer.run(inbox));
        };
        let thread = thread::Builder::new().name("store-writer".into()).spawn(run);
        thread
            .map_err(|error| StoreError::Unavailable(format!("cannot start the writer's thread: {error}")))?;
        writers.tasks.get_mut().spawn(async move {
            let _ = has_ended.await;
        });
        Ok(writers)
    }

    /// The interface for this number of writers, none of which has started.
    fn of(count: usize) -> Self {
        Self {
            inbox: Arc::new(Inbox::new(count)),
            tasks: tokio::sync::Mutex::default(),
            commits: Arc::default(),
            generation: Arc::default(),
            refusal: Mutex::default(),
            pulse: WriteProbe::default(),
        }
    }

    fn writer<E: WriteTransaction>(&self, engine: E, handover: &Arc<HandOver>) -> Writer<E> {
        let (commits, generation) = (self.commits.clone(), self.generation.clone());
        Writer { engine, handover: handover.clone(), commits, generation }
    }

    /// Refuses all later jobs if the schema is too new for this program, or ends the refusal.
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

    /// Finishes the queued jobs and closes the engines.
    pub async fn close(&self) {
        self.inbox.close();
        while let Some(ended) = self.tasks.lock().await.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a writer of the store ended badly");
            }
        }
    }

    async fn ask(&self, job: Job) -> Result<JobAnswer, StoreError> {
        if let Some(refusal) = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(refusal);
        }
        let gone = || StoreError::Unavailable("the store is closed".into());
        let (answer, answered) = oneshot::channel();
        self.inbox.push(Request::new(job, answer)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Stores new messages. Their bodies are packed here and not by a writer, at most as `packing` says.
    pub async fn accept(
        &self,
        messages: Vec<NewMessage>,
        packing: Packing,
    ) -> Result<Vec<Acceptance>, StoreError> {
        let messages = messages.into_iter().map(|message| PackedMessage::new(message, packing)).collect();
        match self.ask(Job::Accept(messages)).await? {
            JobAnswer::Accepted(acceptances) => Ok(acceptances),
            _ => Err(mismatched()),
        }
    }

    pub async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedMessage>, StoreError> {
        match self.ask(Job::Claim(request)).await? {
            JobAnswer::Claimed(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    pub async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError> {
        match self.ask(Job::WireCommit(commits)).await? {
            JobAnswer::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    pub async fn apply(
        &self,
        mut changes: Vec<MessageChange>,
        packing: Packing,
    ) -> Result<Vec<bool>, StoreError> {
        if packing == Packing::Together {
            changes.iter_mut().flat_map(|change| &mut change.events).for_each(shorten_data);
        }
        match self.ask(Job::Apply(changes)).await? {
            JobAnswer::Held(held) => Ok(held),
            _ => Err(mismatched()),
        }
    }

    /// Whether something can be written now, or could a moment ago.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let write = async {
            match self.ask(Job::Ping).await? {
                JobAnswer::Pinged => Ok(()),
                _ => Err(mismatched()),
            }
        };
        self.pulse.feel(write).await
    }

    pub async fn claim_preparation(&self, request: PrepareRequest) -> Result<Vec<ToPrepare>, StoreError> {
        match self.ask(Job::Prepare(request)).await? {
            JobAnswer::ToPrepare(claimed) => Ok(claimed),
            _ => Err(mismatched()),
        }
    }

    pub async fn write_blobs(&self, job: BlobJob) -> Result<Vec<BlobName>, StoreError> {
        match self.ask(Job::Blobs(job)).await? {
            JobAnswer::Blobs(names) => Ok(names),
            _ => Err(mismatched()),
        }
    }

    pub async fn retain(&self, job: RetainJob) -> Result<ErasureCounts, StoreError> {
        match self.ask(Job::Retain(job)).await? {
            JobAnswer::Retained(done) => Ok(done),
            _ => Err(mismatched()),
        }
    }

    pub async fn report(&self, job: ReportJob) -> Result<ReportAnswer, StoreError> {
        match self.ask(Job::Report(job)).await? {
            JobAnswer::Reported(reported) => Ok(reported),
            _ => Err(mismatched()),
        }
    }

    pub async fn inbound(&self, job: InboundJob) -> Result<InboundAnswer, StoreError> {
        match self.ask(Job::Inbound(job)).await? {
            JobAnswer::Inbound(handled) => Ok(handled),
            _ => Err(mismatched()),
        }
    }

    pub async fn hook(&self, job: HookJob) -> Result<HookAnswer, StoreError> {
        match self.ask(Job::Hook(job)).await? {
            JobAnswer::Hook(handled) => Ok(handled),
            _ => Err(mismatched()),
        }
    }

    pub async fn advance_bulk_action(&self, step: BulkStep) -> Result<Option<Vec<bool>>, StoreError> {
        match self.ask(Job::BulkStep(Box::new(step))).await? {
            JobAnswer::Advanced(applied) => Ok(applied),
            _ => Err(mismatched()),
        }
    }

    pub async fn change(
        &self,
        change: DirectoryChange,
        audit: Option<AuditEntry>,
    ) -> Result<ChangeResult, StoreError> {
        // A lease of a quota changes nothing that is remembered, and comes often.
        let is_remembered = !matches!(change, DirectoryChange::LeaseQuota(_));
        let changed = self.ask(Job::Directory(Box::new((change, audit)))).await;
        // Also after a failure: the answer to a commit may have been lost. What wakes an account has risen
        // before.
        if is_remembered {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        match changed? {
            JobAnswer::Changed(changed) => Ok(changed),
            _ => Err(mismatched()),
        }
    }

    /// The number of directory changes through these writers.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

impl Drop for Writers {
    /// A writer with its own thread does not end with the runtime's tasks.
    fn drop(&mut self) {
        self.inbox.close();
    }
}

fn mismatched() -> StoreError {
    StoreError::Unexpected("the writer answered another question".into())
}
