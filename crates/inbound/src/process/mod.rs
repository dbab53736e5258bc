//! The processor: processes registered mail, on every node.
//!
//! A loop on the store: lease mails in turns of their tenants, process each, and write the outcome, fenced by
//! the lease. A crash leaves leases that other nodes reclaim. Mail that was forwarded by then is recognised
//! by its key, so that each rule forwards each mail once.
//!
//! No tenant takes all capacity: while others have mail due, a tenant has at most half of it in flight.
//! Actions on a mail's server run outside of this capacity ([`imap_actions`]). A mail whose process died is a
//! suspect: it is processed while nothing else is, so that the next crash proves its guilt, and after that it
//! is set aside ([`mail`]).

mod conclusion;
mod content;
mod context;
mod domain_reports;
mod imap_actions;
mod in_flight;
mod mail;
mod order;
mod received;
mod replies;
mod rules;
mod time_limit;
mod write;

use std::{collections::HashMap, sync::Arc, time::Duration};

use postway_domain::{
    Clock, Incarnation, LeaseToken, inbound::LOST_LEASES_MAX, secret::SecretKey, verp::VerpKey,
};
use postway_intake::Door;
use postway_mime::pec::TrustStore;
use postway_store::{
    Store, StoreError,
    blob::BlobStorage,
    record::{InboundMailResult, LeaseGrant, MailToProcess, MailboxKey, ProcessRequest},
};
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    conclusion::{given_back, put_off},
    context::{LARGE_KIB_MAX, MailboxContext, ProcessContext},
    imap_actions::{ACTIONS_TIMEOUT, IDLE_MAX, ImapActionRunner},
    in_flight::MailInFlight,
    mail::{PendingImapActions, ProcessedMail, process_mail},
    time_limit::{
        PROCESS_MAX, THREAD_WAIT_MAX, THREADS_MAX, THREADS_PER_TENANT_MAX, WORK_STOP_MAX, queue_for_thread,
    },
    write::{MailOutcome, write_outcomes},
};
use crate::{loop_guard::LoopMarker, rules::MailboxRuleSet, source::FolderSource, tenant_slots::TenantSlots};

/// The most mails that are processed at the same time.
const IN_FLIGHT_MAX: usize = 64;
/// The most mails of one tenant, while another has mail due.
const PER_TENANT_MAX: usize = IN_FLIGHT_MAX / 2;
/// The most mails of one tenant, while no other has mail due: capacity is left for the next tenant.
const PER_TENANT_ALONE_MAX: usize = IN_FLIGHT_MAX - CAPACITY_MIN;
/// The least capacity that is worth a claim: leasing mails one by one would cost a write each.
const CAPACITY_MIN: usize = 16;
/// The most mails of one mailbox in flight, including those that wait for its server.
const PER_MAILBOX_MAX: u32 = 32;
/// The duration of a lease, and the limit if a process hangs.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// The shortest time between two polls.
const POLL_MIN: Duration = Duration::from_millis(10);
/// How long mails in flight may take after the stop.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How often idle sessions are closed.
const TIDY_EVERY: Duration = Duration::from_secs(10);
/// How long a mail waits whose tenant has too many actions in flight.
const ACTIONS_WAIT: Duration = Duration::from_secs(30);

// No lease expires during work: all work under a lease ends before, with time to write the outcome.
const _: () = assert!(
    THREAD_WAIT_MAX.as_secs()
        + PROCESS_MAX.as_secs()
        + WORK_STOP_MAX.as_secs()
        + ACTIONS_TIMEOUT.as_secs()
        + 60
        < LEASE.as_secs()
);

/// The dependencies of the processor.
pub struct MailProcessorParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The blobs of large mails.
    pub depot: Arc<BlobStorage>,
    /// The intake, for forwarded mail.
    pub door: Arc<Door>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Verifies signed envelope senders, and marks forwarded mail.
    pub secret_key: Arc<SecretKey>,
    /// Opens folders, to mark and move mail.
    pub source: Arc<dyn FolderSource>,
    /// The certificates that signatures of certified mail must lead to.
    pub trust: TrustStore,
    /// This incarnation of the process.
    pub incarnation: Incarnation,
    /// How often to poll for waiting mail: [`MailProcessorParts::POLL`].
    pub poll: Duration,
}

impl MailProcessorParts {
    /// How often to poll: a wake-up is a hint, polling is the guarantee.
    pub const POLL: Duration = Duration::from_secs(1);
}

/// The processor. There is one for each process.
pub struct MailProcessor {
    context: Arc<ProcessContext>,
    incarnation: Incarnation,
    poll: Duration,
}

impl MailProcessor {
    /// Creates a processor that is not running yet.
    pub fn new(parts: MailProcessorParts) -> Self {
        let MailProcessorParts { store, depot, door, clock, secret_key, source, trust, incarnation, poll } =
            parts;
        let context = ProcessContext {
            store,
            depot,
            door,
            clock,
            verp_key: VerpKey::new(&secret_key),
            marker: LoopMarker::new(&secret_key),
            trust,
            imap_actions: ImapActionRunner::new(source),
            threads: TenantSlots::new(THREADS_MAX, THREADS_PER_TENANT_MAX),
            large: Semaphore::new(LARGE_KIB_MAX),
            turns: Arc::default(),
        };
        Self { context: Arc::new(context), incarnation, poll }
    }

    /// Works until it is stopped, then lets mail in flight end, within bounds, and gives back all other mail.
    pub async fn run(self, stop: CancellationToken) {
        let (outcomes, received) = mpsc::channel(IN_FLIGHT_MAX);
        let writing = tokio::spawn(write_outcomes(self.context.store.clone(), received, stop.clone()));
        let mut run = ProcessorRun {
            processor: &self,
            outcomes,
            in_flight: MailInFlight::default(),
            suspect: None,
            careful: false,
        };
        let (mut is_well, mut tidy_at) = (true, Instant::now() + TIDY_EVERY);
        // Whether the last claim got mail, so that no poll is needed; and otherwise when to poll next.
        let (mut has_more, mut poll_at) = (false, Instant::now());
        while !stop.is_cancelled() {
            let began = Instant::now();
            let capacity = run.capacity();
            if capacity > 0 && (has_more || began >= poll_at || run.in_flight.processing() <= PER_TENANT_MAX)
            {
                let wait = match run.poll(capacity, has_more).await {
                    Ok(polled) => {
                        (is_well, has_more) = (true, polled.has_more);
                        polled.wait
                    }
                    Err(error) => {
                        // Logged once, not at each try.
                        if is_well {
                            tracing::warn!(%error, "mail that waits to be processed could not be read");
                        }
                        (is_well, has_more) = (false, false);
                        self.poll
                    }
                };
                poll_at = Instant::now() + wait;
            }
            if tidy_at <= Instant::now() {
                self.context.imap_actions.close_idle(IDLE_MAX, None).await;
                tidy_at = Instant::now() + TIDY_EVERY;
            }
            run.start_suspect();
            let has_capacity = run.capacity() > 0;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                left = run.in_flight.next() => {
                    run.take_result(left).await;
                    while let Some(left) = run.in_flight.try_next() {
                        run.take_result(left).await;
                    }
                }
                () = self.context.store.inbound_woken(), if has_capacity => poll_at = Instant::now(),
                () = tokio::time::sleep_until(poll_at), if has_capacity => {}
            }
            tokio::time::sleep_until(began + POLL_MIN).await;
        }
        let left = run.end().await;
        if let Err(error) = writing.await {
            tracing::error!(%error, "writing the outcomes of mails broke off; they are processed again later");
        }
        // After all outcomes: a mail whose outcome was written has no lease any more.
        if !left.is_empty()
            && let Err(error) = self.context.store.settle_inbound(left).await
        {
            tracing::warn!(%error, "mail in flight at the stop could not be given back; it is reclaimed later");
        }
        self.context.imap_actions.close_idle(Duration::ZERO, None).await;
    }

    /// The mailboxes of these mails, with their rules.
    async fn mailboxes(
        &self,
        jobs: &[MailToProcess],
    ) -> Result<HashMap<MailboxKey, Arc<MailboxContext>>, StoreError> {
        let mut mailboxes = HashMap::new();
        for job in jobs {
            if mailboxes.contains_key(&job.key) {
                continue;
            }
            let Some((mailbox, _)) = self.context.store.mailbox(&job.key).await? else { continue };
            let rules = self.context.store.rules(&job.key.tenant, Some(&job.key.mailbox)).await?;
            let mailbox_context = MailboxContext {
                mailbox,
                rules: MailboxRuleSet::new(rules),
                marks: self.context.marker.marks(&job.key),
            };
            mailboxes.insert(job.key.clone(), Arc::new(mailbox_context));
        }
        Ok(mailboxes)
    }
}

/// The result of a claim.
struct ClaimResult {
    /// How long to wait before the next poll.
    wait: Duration,
    has_more: bool,
}

/// A leased mail with its mailbox, or the error of reading the mailbox.
struct LeasedInboundJob {
    job: Arc<MailToProcess>,
    token: LeaseToken,
    mailbox_context: Result<Option<Arc<MailboxContext>>, StoreError>,
}

/// The processor while it runs.
struct ProcessorRun<'r> {
    processor: &'r MailProcessor,
    outcomes: mpsc::Sender<MailOutcome>,
    in_flight: MailInFlight,
    /// A mail whose process died, and which may have killed it.
    suspect: Option<LeasedInboundJob>,
    /// While there are suspects, one mail is claimed at a time.
    careful: bool,
}

impl ProcessorRun<'_> {
    /// How many mails may be leased now; zero while a suspect is processed or waits for that.
    fn capacity(&self) -> usize {
        let capacity = IN_FLIGHT_MAX - self.in_flight.processing();
        match (self.suspect.is_some(), self.careful) {
            (true, _) => 0,
            (false, true) => usize::from(self.in_flight.processing() == 0),
            (false, false) => Some(capacity).filter(|capacity| *capacity >= CAPACITY_MIN).unwrap_or(0),
        }
    }

    /// Processes the suspect once nothing else is being processed.
    fn start_suspect(&mut self) {
        if self.in_flight.processing() > 0 {
            return;
        }
        if let Some(suspect) = self.suspect.take() {
            let (job, tenant) = (&suspect.job, &suspect.job.key.tenant);
            tracing::warn!(uid = %job.uid, %tenant, "processing a mail whose process died, alone");
            self.start(suspect);
        }
    }

    /// Leases as many mails as there is capacity for, and begins to process them.
    async fn poll(&mut self, capacity: usize, had_more: bool) -> Result<ClaimResult, StoreError> {
        let (context, poll) = (self.processor.context.clone(), self.processor.poll);
        let now = context.clock.now();
        if !had_more {
            let state = context.store.route_state(now).await?;
            if state.due == 0 {
                self.careful = false;
                let next = state.next_due_at.map_or(poll, |due| due.since(now));
                let wait = next.clamp(POLL_MIN, poll.max(POLL_MIN));
                return Ok(ClaimResult { wait, has_more: false });
            }
        }
        let token = LeaseToken::new(&mut rand::rng());
        let lease = LeaseGrant { incarnation: self.processor.incarnation, token, until: now.plus(LEASE) };
        let jobs = context.store.claim_inbound(self.request(lease, now, capacity)).await?;
        // A mailbox gives out its mail in parts: fewer mails than wanted need not be all.
        let has_more = !jobs.is_empty();
        let mailboxes = self.processor.mailboxes(&jobs).await;
        let mut suspects = Vec::new();
        self.careful = false;
        for job in jobs {
            let mailbox_context = match &mailboxes {
                Ok(mailboxes) => Ok(mailboxes.get(&job.key).cloned()),
                Err(error) => Err(error.clone()),
            };
            let leased = LeasedInboundJob { job: Arc::new(job), token, mailbox_context };
            if is_suspect(&leased.job) { suspects.push(leased) } else { self.start(leased) }
        }
        if !suspects.is_empty() {
            self.isolate_suspect(suspects).await;
        }
        Ok(ClaimResult { wait: if has_more { POLL_MIN } else { poll }, has_more })
    }

    fn request(&self, lease: LeaseGrant, now: postway_domain::Time, capacity: usize) -> ProcessRequest {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        ProcessRequest {
            per_mailbox: PER_MAILBOX_MAX,
            per_tenant: count(PER_TENANT_MAX),
            per_tenant_alone: count(PER_TENANT_ALONE_MAX),
            alone_room_min: count(CAPACITY_MIN.min(capacity)),
            mailboxes_in_hand: self.in_flight.by_mailbox(),
            tenants_in_hand: self.in_flight.by_tenant(),
            ..ProcessRequest::new(lease, now, count(capacity))
        }
    }

    /// Keeps one suspect and gives the others back before it is processed: if it kills the process,
    /// everything leased counts as lost with it.
    async fn isolate_suspect(&mut self, mut suspects: Vec<LeasedInboundJob>) {
        self.careful = true;
        let first = suspects.remove(0);
        let now = self.processor.context.clock.now();
        let others: Vec<InboundMailResult> =
            suspects.iter().map(|other| given_back(&other.job, other.token, now)).collect();
        self.suspect = Some(first);
        if others.is_empty() {
            return;
        }
        if let Err(error) = self.processor.context.store.settle_inbound(others).await {
            tracing::warn!(%error, "mail could not be given back; it is reclaimed later");
        }
    }

    /// Begins to process a mail.
    fn start(&mut self, leased: LeasedInboundJob) {
        let LeasedInboundJob { job, token, mailbox_context } = leased;
        let (context, outcomes) = (self.processor.context.clone(), self.outcomes.clone());
        let turn = context.turns.join(&job);
        let known = mailbox_context.as_ref().ok().and_then(Option::as_ref);
        let thread_wait = known.and_then(|mailbox_context| queue_for_thread(&context, mailbox_context, &job));
        let task = {
            let job = job.clone();
            async move {
                // The turn lasts until the mail is processed; actions on its server hold up no other mail.
                let _turn = turn;
                let processed = match mailbox_context {
                    Ok(Some(mailbox_context)) => {
                        process_mail(&context, &mailbox_context, &job, token, thread_wait).await
                    }
                    // The mailbox was deleted, and its mail with it.
                    Ok(None) => return None,
                    Err(error) => {
                        ProcessedMail::Over(put_off(&job, token, error, context.clock.now()).into())
                    }
                };
                match processed {
                    ProcessedMail::ImapActions(due) => Some(due),
                    ProcessedMail::Over(routed) => {
                        let (outcome, written) = MailOutcome::new(job.key.clone(), *routed);
                        // The channel is closed only if the writing task died, which is logged on stop;
                        // leases end by themselves.
                        let _ = outcomes.send(outcome).await;
                        // A suspect that survived must not be leased any more when the next one kills the
                        // process.
                        if is_suspect(&job) {
                            let _ = written.await;
                        }
                        None
                    }
                }
            }
        };
        self.in_flight.process_mail(job, token, task);
    }

    /// Takes the result of a task: begins the actions that are left, if any.
    async fn take_result(&mut self, left: Option<Box<PendingImapActions>>) {
        let Some(due) = left else { return };
        let (context, outcomes) = (self.processor.context.clone(), self.outcomes.clone());
        let key = due.job.key.clone();
        if !self.in_flight.has_capacity_for_actions(&key.tenant) {
            let (outcome, _) = MailOutcome::new(key, due.postpone(&context, ACTIONS_WAIT));
            let _ = outcomes.send(outcome).await;
            return;
        }
        let (job, token) = (Arc::new(due.job.clone()), due.token);
        self.in_flight.run_actions(job, token, async move {
            let (outcome, _) = MailOutcome::new(key, due.run(&context).await);
            let _ = outcomes.send(outcome).await;
            None
        });
    }

    /// Lets mail in flight end, within bounds; returns the records that give back the rest.
    async fn end(mut self) -> Vec<InboundMailResult> {
        let ending = async {
            while !self.in_flight.is_empty() {
                let left = self.in_flight.next().await;
                self.take_result(left).await;
            }
        };
        if timeout(STOP_WITHIN, ending).await.is_err() {
            tracing::warn!("some mail was still being processed at the stop; it is given back");
        }
        let now = self.processor.context.clock.now();
        let suspect = self.suspect.map(|suspect| given_back(&suspect.job, suspect.token, now));
        self.in_flight.abort(now).await.into_iter().chain(suspect).collect()
    }
}

/// Whether a mail must be processed alone. A mail that is about to be set aside is not processed at all.
fn is_suspect(job: &MailToProcess) -> bool {
    (1..LOST_LEASES_MAX).contains(&job.lost_leases)
}
