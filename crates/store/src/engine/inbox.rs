//! The jobs that wait for a writer, and which of them a writer takes.
//!
//! Three kinds of jobs wait apart. Sending has a connection open, so wire commits and outcomes go first. Then
//! come internal jobs: claims, reporting, the directory and the like, some of each. New mail comes last,
//! tenants in turns, so that one tenant's batches delay no other mail. Neither of the last two is left out of
//! two transactions in a row.
//!
//! A writer takes what fits into one transaction and leaves the rest to another writer, which may be idle.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use postway_domain::TenantId;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{Job, Request, turns::JobTurns};
use crate::hook::HookJob;

/// The most messages in one transaction; a larger job runs alone. This bounds the memory and time of a group.
pub(super) const GROUP_MESSAGES_MAX: usize = 1_024;
/// The most body bytes in one transaction.
pub(super) const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a message costs at least when tenants take turns, in bytes.
const MESSAGE_COST: usize = GROUP_BYTES_MAX / GROUP_MESSAGES_MAX;
/// The most jobs of one kind that may wait for a writer; further callers wait outside. Urgent jobs are
/// bounded by the mail in flight.
const QUEUE_JOBS_MAX: usize = 8_192;
/// The most jobs of one tenant's new mail, so that other tenants find a slot.
const TENANT_JOBS_MAX: usize = 1_024;

/// The size of a job.
#[derive(Clone, Copy, Default)]
pub(super) struct JobSize {
    pub messages: usize,
    pub bytes: usize,
}

impl JobSize {
    fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_add(other.messages),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Whether it is at most this fraction of a group, given as a divisor.
    fn fits(self, parts: usize) -> bool {
        self.messages <= GROUP_MESSAGES_MAX / parts && self.bytes <= GROUP_BYTES_MAX / parts
    }

    fn cost(self) -> u64 {
        self.bytes.max(self.messages.saturating_mul(MESSAGE_COST)) as u64
    }
}

/// The queue that a job waits in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum JobQueue {
    Urgent,
    House(JobOwner),
    Mail(TenantId),
}

/// The owner of an internal job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum JobOwner {
    Dispatch,
    Preparation,
    Housekeeping,
    Reports,
    Inbound,
    /// Events that a provider reports about mail of this tenant.
    Hook(TenantId),
    Events,
    /// A change requested with a key of this tenant.
    Tenant(TenantId),
}

fn queue_of(job: &Job) -> JobQueue {
    match job {
        Job::WireCommit(_) | Job::Apply(_) | Job::Ping => JobQueue::Urgent,
        Job::Accept(messages) => {
            messages.first().map_or(JobQueue::Urgent, |message| JobQueue::Mail(message.lane.tenant.clone()))
        }
        Job::Claim(_) => JobQueue::House(JobOwner::Dispatch),
        Job::Prepare(_) => JobQueue::House(JobOwner::Preparation),
        Job::Report(_) => JobQueue::House(JobOwner::Reports),
        Job::Inbound(_) => JobQueue::House(JobOwner::Inbound),
        Job::Hook(HookJob::Add(batch)) => JobQueue::House(JobOwner::Hook(batch.key.tenant.clone())),
        Job::Hook(_) => JobQueue::House(JobOwner::Events),
        Job::BulkStep(step) => JobQueue::House(JobOwner::Tenant(step.tenant.clone())),
        Job::Blobs(_) | Job::Retain(_) => JobQueue::House(JobOwner::Housekeeping),
        Job::Directory(job) => {
            let tenant = job.1.as_ref().and_then(|entry| entry.tenant.clone());
            JobQueue::House(tenant.map_or(JobOwner::Housekeeping, JobOwner::Tenant))
        }
    }
}

/// The waiting jobs, by kind.
#[derive(Default)]
struct WaitingJobs {
    urgent: VecDeque<Request>,
    house: JobTurns<JobOwner, Request>,
    mail: JobTurns<TenantId, Request>,
    /// The kind that was left out of the last transaction.
    owed: Option<Owed>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owed {
    House,
    Mail,
}

/// A transaction's jobs.
#[derive(Default)]
struct JobGroup {
    requests: Vec<Request>,
    size: JobSize,
}

impl JobGroup {
    /// Whether a job fits into the group; one that is larger than a group fits only alone.
    fn has_room(&self, request: &Request) -> bool {
        self.requests.is_empty() || self.size.plus(request.size).fits(1)
    }

    fn add(&mut self, request: Option<Request>) {
        if let Some(request) = request {
            self.size = self.size.plus(request.size);
            self.requests.push(request);
        }
    }
}

impl WaitingJobs {
    fn push(&mut self, queue: JobQueue, request: Request) {
        match queue {
            JobQueue::Urgent => self.urgent.push_back(request),
            // Each job counts as one, whatever its size: a claim for many messages does not wait for as many
            // changes.
            JobQueue::House(owner) => self.house.push(owner, 1, request),
            JobQueue::Mail(tenant) => self.mail.push(tenant, request.size.cost(), request),
        }
    }

    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.house.is_empty() && self.mail.is_empty()
    }

    /// Takes the jobs of one transaction. If another writer is idle, urgent jobs go without others that would
    /// delay them.
    fn take(&mut self, is_other_idle: bool) -> Vec<Request> {
        let mut group = JobGroup::default();
        if is_other_idle && !self.urgent.is_empty() {
            self.take_urgent(&mut group);
            return group.requests;
        }
        let owed = self.owed.take();
        let (mut house, mut mail) = (0, 0);
        match owed {
            Some(Owed::House) => house += self.take_house(&mut group, 2),
            Some(Owed::Mail) => mail += self.take_mail(&mut group, 2),
            None => {}
        }
        let is_urgent = !self.urgent.is_empty();
        self.take_urgent(&mut group);
        house += self.take_house(&mut group, 1);
        // Beside urgent jobs new mail gets half of the capacity, so that a large batch goes in another
        // transaction.
        if owed.is_some() || !is_urgent {
            mail += self.take_mail(&mut group, 1);
        } else {
            mail += self.take_mail(&mut group, 2);
        }
        let is_left = |taken: usize, is_empty: bool| taken == 0 && !is_empty;
        self.owed = match (is_left(house, self.house.is_empty()), is_left(mail, self.mail.is_empty())) {
            (_, true) => Some(Owed::Mail),
            (true, false) => Some(Owed::House),
            (false, false) => None,
        };
        group.requests
    }

    fn take_urgent(&mut self, group: &mut JobGroup) {
        while self.urgent.front().is_some_and(|next| group.has_room(next)) {
            group.add(self.urgent.pop_front());
        }
    }

    fn take_house(&mut self, group: &mut JobGroup, parts: usize) -> usize {
        take_turns(&mut self.house, group, parts)
    }

    fn take_mail(&mut self, group: &mut JobGroup, parts: usize) -> usize {
        take_turns(&mut self.mail, group, parts)
    }
}

/// Takes jobs as long as they fit, and are at most the given fraction of a group. Returns their number. The
/// first job offered to an empty group always fits.
fn take_turns<W: Eq + std::hash::Hash>(
    turns: &mut JobTurns<W, Request>,
    group: &mut JobGroup,
    parts: usize,
) -> usize {
    let (mut count, mut taken) = (0, JobSize::default());
    while let Some(next) = turns.next() {
        let is_first = group.requests.is_empty();
        if !group.has_room(next) || !(is_first || taken.plus(next.size).fits(parts)) {
            break;
        }
        taken = taken.plus(next.size);
        count += 1;
        group.add(turns.pop());
    }
    count
}

#[derive(Default)]
struct InboxState {
    waiting: WaitingJobs,
    is_closed: bool,
    /// The number of writers, and of idle ones.
    writers: usize,
    idle: usize,
}

/// Shared by the writers and their callers.
pub(super) struct Inbox {
    inner: Mutex<InboxState>,
    arrived: Notify,
    places: QueuePlaces,
}

/// All writers have ended.
pub(super) struct Closed;

impl Inbox {
    /// An inbox for this number of writers.
    pub fn new(writers: usize) -> Self {
        Self {
            inner: Mutex::new(InboxState { writers, ..InboxState::default() }),
            arrived: Notify::new(),
            places: QueuePlaces::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        // Every critical section leaves the queues consistent, so a poisoned lock is still usable.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job for the writers, as soon as there is a slot for it.
    pub async fn push(&self, mut request: Request) -> Result<(), Closed> {
        let queue = queue_of(&request.job);
        request.places = self.places.take(&queue).await?;
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(Closed);
        }
        inner.waiting.push(queue, request);
        drop(inner);
        self.arrived.notify_one();
        Ok(())
    }

    /// Whether anything waits that no writer has begun.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// The jobs of one transaction, as soon as there are any; `None` once the inbox is closed and empty.
    pub async fn take(&self) -> Option<Vec<Request>> {
        loop {
            {
                let mut inner = self.lock();
                let is_other_idle = inner.idle > 0;
                if !inner.waiting.is_empty() {
                    let group = inner.waiting.take(is_other_idle);
                    if !inner.waiting.is_empty() {
                        self.arrived.notify_one();
                    }
                    return Some(group);
                }
                if inner.is_closed {
                    // Two waiting writers may have been woken by one notification.
                    self.arrived.notify_one();
                    return None;
                }
                inner.idle += 1;
            }
            // A job that arrived since is not missed: its notification waits for the next writer.
            self.arrived.notified().await;
            self.lock().idle -= 1;
        }
    }

    /// Accepts no more jobs; the writers end when they have done the queued ones.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
        self.places.close();
    }

    /// Removes a writer. Jobs that wait when the last writer ends are not done, and their callers get an
    /// error.
    pub fn leave(&self) {
        let mut inner = self.lock();
        inner.writers -= 1;
        let is_last = inner.writers == 0;
        let left = if is_last { std::mem::take(&mut inner.waiting) } else { WaitingJobs::default() };
        drop(inner);
        if is_last {
            self.close();
        }
        drop(left);
    }
}

/// QueuePlaces in the queues.
struct QueuePlaces {
    house: Arc<Semaphore>,
    mail: Arc<Semaphore>,
    of_tenants: Mutex<HashMap<TenantId, Weak<Semaphore>>>,
}

impl Default for QueuePlaces {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(QUEUE_JOBS_MAX));
        Self { house: places(), mail: places(), of_tenants: Mutex::default() }
    }
}

impl QueuePlaces {
    async fn take(&self, queue: &JobQueue) -> Result<Vec<OwnedSemaphorePermit>, Closed> {
        let taken = match queue {
            JobQueue::Urgent => return Ok(Vec::new()),
            JobQueue::House(_) => vec![self.house.clone().acquire_owned().await],
            JobQueue::Mail(tenant) => {
                let of_tenant = self.of_tenant(tenant).acquire_owned().await;
                vec![of_tenant, self.mail.clone().acquire_owned().await]
            }
        };
        taken.into_iter().collect::<Result<_, _>>().map_err(|_| Closed)
    }

    fn of_tenant(&self, tenant: &TenantId) -> Arc<Semaphore> {
        let mut tenants = self.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = tenants.get(tenant).and_then(Weak::upgrade) {
            return places;
        }
        // Owners without waiting jobs are forgotten after some time.
        if tenants.len() >= 2 * QUEUE_JOBS_MAX {
            tenants.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::new(Semaphore::new(TENANT_JOBS_MAX));
        tenants.insert(tenant.clone(), Arc::downgrade(&places));
        places
    }

    fn close(&self) {
        self.house.close();
        self.mail.close();
    }
}
