//! The claimed messages of one account that wait for a courier.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use postway_domain::MessagePriority;
use postway_store::record::ClaimedMessage;
use tokio::sync::Notify;

use super::destinations::DestinationSlots;

/// A claimed message that waits for a courier.
pub(crate) struct QueuedJob {
    pub message: ClaimedMessage,
    /// Its slots at the receiving domains, if they had room.
    pub slots: Option<DestinationSlots>,
}

#[derive(Default)]
struct JobQueueState {
    jobs: VecDeque<QueuedJob>,
    couriers: usize,
    idle: usize,
}

/// The queue between the runner and an account's couriers. It is bounded because the runner claims only for
/// free capacity.
#[derive(Default)]
pub(crate) struct AccountJobQueue {
    state: Mutex<JobQueueState>,
    job_added: Notify,
    in_flight: AtomicUsize,
    /// Messages in flight over all accounts of the tenant.
    tenant_in_flight: Arc<AtomicUsize>,
}

impl AccountJobQueue {
    fn lock(&self) -> MutexGuard<'_, JobQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty queue that also counts its messages in `tenant_in_flight`.
    pub fn new(tenant_in_flight: Arc<AtomicUsize>) -> Self {
        Self { tenant_in_flight, ..Self::default() }
    }

    /// Adds a message. Returns whether the caller must start another courier, which is already counted.
    pub fn push(&self, job: QueuedJob, couriers_max: usize) -> bool {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.tenant_in_flight.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        let urgent = job.message.lane.priority == MessagePriority::Immediate;
        // Only immediate mail overtakes; all other messages keep the order of their claims.
        let can_wait = |waiting: &QueuedJob| waiting.message.lane.priority != MessagePriority::Immediate;
        match state.jobs.iter().position(can_wait).filter(|_| urgent) {
            Some(at) => state.jobs.insert(at, job),
            None => state.jobs.push_back(job),
        }
        let starts = state.jobs.len() > state.idle && state.couriers < couriers_max;
        state.couriers += usize::from(starts);
        drop(state);
        self.job_added.notify_one();
        starts
    }

    /// The next message at once, if there is one.
    pub fn take(&self) -> Option<QueuedJob> {
        self.lock().jobs.pop_front()
    }

    /// The next message, waiting at most `idle_max`.
    pub async fn next(&self, idle_max: Duration) -> Option<QueuedJob> {
        if let Some(job) = self.take() {
            return Some(job);
        }
        self.lock().idle += 1;
        let job = tokio::time::timeout(idle_max, async {
            loop {
                // Registered before the queue is checked, so that a job added in between still wakes this
                // courier.
                let mut notified = pin!(self.job_added.notified());
                notified.as_mut().enable();
                if let Some(job) = self.take() {
                    return job;
                }
                notified.await;
            }
        })
        .await;
        let mut state = self.lock();
        state.idle -= 1;
        job.ok().or_else(|| state.jobs.pop_front())
    }

    /// Retires a courier. Returns false if a job came in the meantime, so that the courier must stay.
    pub fn retire_courier(&self) -> bool {
        let mut state = self.lock();
        let free = state.jobs.is_empty();
        state.couriers -= usize::from(free);
        free
    }

    /// Removes and returns every message that no courier has started.
    pub fn clear(&self) -> Vec<ClaimedMessage> {
        self.lock().jobs.drain(..).map(|job| job.message).collect()
    }

    /// Notes that a message is settled or returned.
    pub fn note_settled(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.tenant_in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Messages claimed for this account and not yet settled.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}
