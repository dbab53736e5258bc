//! What waits for a writer, and what a writer takes of it.
//!
//! Three kinds wait apart. Whoever sends has a connection open, so permissions and outcomes go first. Then come the jobs of the
//! house: claims, reports, the directory and the like, some of each. New mail comes last, tenant by tenant in turns, so that one
//! tenant's batches delay nobody else's mail. Neither of the two is left out of two transactions in a row.
//!
//! A writer takes what fits into one transaction and leaves the rest, which another may be idle for.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use postway_domain::TenantId;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{Job, Request, turns::JobTurns};

/// Messages in one transaction; a job that brings more than that goes alone. Keeps a group's memory and time bounded.
pub(super) const GROUP_MESSAGES_MAX: usize = 1_024;
/// The same in bytes that go into rows.
pub(super) const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a message costs at least when tenants take turns, in bytes.
const MESSAGE_COST: usize = GROUP_BYTES_MAX / GROUP_MESSAGES_MAX;
/// Jobs of one kind that may wait for a writer; who brings more waits outside. What is urgent is bounded by the mail in flight.
const QUEUE_JOBS_MAX: usize = 8_192;
/// The same of one tenant's new mail, so that others find a place.
const TENANT_JOBS_MAX: usize = 1_024;

/// How large a job is.
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

    /// Whether it is no more than one in so many parts of a group.
    fn fits(self, parts: usize) -> bool {
        self.messages <= GROUP_MESSAGES_MAX / parts && self.bytes <= GROUP_BYTES_MAX / parts
    }

    fn cost(self) -> u64 {
        self.bytes.max(self.messages.saturating_mul(MESSAGE_COST)) as u64
    }
}

/// Which of the three it waits with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum JobQueue {
    Urgent,
    House(JobOwner),
    Mail(TenantId),
}

/// Whose job of the house it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum JobOwner {
    Dispatch,
    Preparation,
    Housekeeping,
    Reports,
    Inbound,
    /// A change that a key of this tenant asked for.
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
        Job::Blobs(_) | Job::Retain(_) => JobQueue::House(JobOwner::Housekeeping),
        Job::Directory(job) => {
            let tenant = job.1.as_ref().and_then(|entry| entry.tenant.clone());
            JobQueue::House(tenant.map_or(JobOwner::Housekeeping, JobOwner::Tenant))
        }
    }
}

/// What waits, by kind.
#[derive(Default)]
struct WaitingJobs {
    urgent: VecDeque<Request>,
    house: JobTurns<JobOwner, Request>,
    mail: JobTurns<TenantId, Request>,
    /// Who was left out of the last transaction.
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
    /// Whether a job has room in it; one that is larger than a group has it alone.
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
            // A job each, whatever it is about: a claim for many is not asked to wait for as many changes.
            JobQueue::House(owner) => self.house.push(owner, 1, request),
            JobQueue::Mail(tenant) => self.mail.push(tenant, request.size.cost(), request),
        }
    }

    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.house.is_empty() && self.mail.is_empty()
    }

    /// Takes a transaction's worth. Where somebody else is idle, what is urgent is left alone with nothing that it would wait for.
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
        // Beside what is urgent new mail has half of the room, so that a large batch goes apart from it.
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

/// Takes jobs as long as they fit, and are no more than one in so many parts of a group; how many. The first that an empty group
/// is offered fits anyway.
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
    /// Writers that are there, and those of them that have nothing to do.
    writers: usize,
    idle: usize,
}

/// Shared by the writers and by all who ask them.
pub(super) struct Inbox {
    inner: Mutex<InboxState>,
    arrived: Notify,
    places: QueuePlaces,
}

/// No writer is there any more.
pub(super) struct Closed;

impl Inbox {
    /// For so many writers.
    pub fn new(writers: usize) -> Self {
        Self {
            inner: Mutex::new(InboxState { writers, ..InboxState::default() }),
            arrived: Notify::new(),
            places: QueuePlaces::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        // Every critical section leaves the queues whole, so a poisoned lock is still good.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a job to the writers, as soon as there is a place for it.
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

    /// A transaction's worth of jobs, as soon as there are any; none once it is closed and empty.
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
                    // Two who came here together may have been told by one notification.
                    self.arrived.notify_one();
                    return None;
                }
                inner.idle += 1;
            }
            // A job that arrived since is not missed: its notification waits for whoever comes next.
            self.arrived.notified().await;
            self.lock().idle -= 1;
        }
    }

    /// Takes nothing more; the writers end when they have done what is there.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
        self.places.close();
    }

    /// One writer less. What waits when the last one goes will not be done, and those who wait for it are told.
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
        // Whoever has nothing waiting is forgotten some time.
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
