//! One account's work in hand: claimed messages that wait for a courier.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use postway_domain::Priority;
use postway_store::record::Claimed;
use tokio::sync::Notify;

#[derive(Default)]
struct Inner {
    jobs: VecDeque<Claimed>,
    couriers: usize,
    idle: usize,
}

/// The queue between the runner and an account's couriers. Bounded by the room the runner claims for.
#[derive(Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    on_job: Notify,
    in_hand: AtomicUsize,
    /// What all accounts of its tenant have in hand.
    of_tenant: Arc<AtomicUsize>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue of an account whose tenant counts there.
    pub fn new(of_tenant: Arc<AtomicUsize>) -> Self {
        Self { of_tenant, ..Self::default() }
    }

    /// Adds a message. Returns whether another courier should be started, which then counts as one.
    pub fn push(&self, job: Claimed, couriers_max: usize) -> bool {
        self.in_hand.fetch_add(1, Ordering::Relaxed);
        self.of_tenant.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.lock();
        let urgent = job.lane.priority == Priority::Immediate;
        // Only immediate mail overtakes: what else is in hand was claimed in its order.
        let calm = |waiting: &Claimed| waiting.lane.priority != Priority::Immediate;
        match inner.jobs.iter().position(calm).filter(|_| urgent) {
            Some(place) => inner.jobs.insert(place, job),
            None => inner.jobs.push_back(job),
        }
        let starts = inner.jobs.len() > inner.idle && inner.couriers < couriers_max;
        inner.couriers += usize::from(starts);
        drop(inner);
        self.on_job.notify_one();
        starts
    }

    /// The next message at once, if there is one.
    pub fn take(&self) -> Option<Claimed> {
        self.lock().jobs.pop_front()
    }

    /// The next message, waiting at most `idle_max`.
    pub async fn next(&self, idle_max: Duration) -> Option<Claimed> {
        if let Some(job) = self.take() {
            return Some(job);
        }
        self.lock().idle += 1;
        let job = tokio::time::timeout(idle_max, async {
            loop {
                // Registered before the look, so that of two jobs that come now each wakes somebody.
                let mut notified = pin!(self.on_job.notified());
                notified.as_mut().enable();
                if let Some(job) = self.take() {
                    return job;
                }
                notified.await;
            }
        })
        .await;
        let mut inner = self.lock();
        inner.idle -= 1;
        job.ok().or_else(|| inner.jobs.pop_front())
    }

    /// A courier goes home. Returns false if work came in the meantime and it must stay.
    pub fn leave(&self) -> bool {
        let mut inner = self.lock();
        let free = inner.jobs.is_empty();
        inner.couriers -= usize::from(free);
        free
    }

    /// Takes everything that no courier has started.
    pub fn clear(&self) -> Vec<Claimed> {
        self.lock().jobs.drain(..).collect()
    }

    /// A message is settled, or given back.
    pub fn done(&self) {
        self.in_hand.fetch_sub(1, Ordering::Relaxed);
        self.of_tenant.fetch_sub(1, Ordering::Relaxed);
    }

    /// Messages taken and not settled.
    pub fn in_hand(&self) -> usize {
        self.in_hand.load(Ordering::Relaxed)
    }
}
