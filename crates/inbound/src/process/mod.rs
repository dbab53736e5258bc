//! The router: deals with mail that was registered, on every node.
//!
//! A loop on the store like every room: lease some mails, some of each tenant, deal with each, and have what came of
//! it written, fenced by the lease. A crash leaves leases that others take back; what was sent on by then is found again
//! by its key, so that each mail is sent on once by each rule.
//!
//! No tenant fills the room: while others have mail due, one has at most half of it in hand. What is to be done on a mail's own server is
//! done outside of it ([`imap_actions`]). A mail whose process died is a suspect: it is dealt with when nothing else is being dealt with, so
//! that the next death tells, and is set aside after that ([`mail`]).

mod conclusion;
mod imap_actions;
mod in_flight;
mod mail;
mod order;
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
    blob::Depot,
    record::{Lease, MailboxKey, RouteRequest, Routed, ToRoute},
};
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    conclusion::{given_back, put_off},
    imap_actions::{ERRAND_MAX, Errands, IDLE_MAX},
    in_flight::MailInHand,
    mail::{DealtMail, Desk, ErrandDue, LARGE_KIB_MAX, Means, deal},
    time_limit::{
        DEAL_MAX, THREAD_WAIT_MAX, THREADS_MAX, THREADS_PER_TENANT_MAX, WORK_STOP_MAX, queue_for_thread,
    },
    write::{Settled, settle},
};
use crate::{loop_guard::Marker, rules::RuleSet, source::Source, tenant_slots::TenantSeats};

/// Mails that are dealt with at the same time.
const IN_HAND_MAX: usize = 64;
/// Of one tenant, while another has mail due.
const PER_TENANT_MAX: usize = IN_HAND_MAX / 2;
/// Of one tenant, while no other has: whoever comes finds room.
const PER_TENANT_ALONE_MAX: usize = IN_HAND_MAX - ROOM_MIN;
/// Room that is worth a look: leasing mails one by one would cost a write each.
const ROOM_MIN: usize = 16;
/// Of one mailbox at once, with those that wait for its server.
const PER_MAILBOX_MAX: u32 = 32;
/// How long a lease lasts, and the backstop where a process hangs.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// Looks are at least this far apart.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// How long mails in hand may take once the room stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How often idle sessions are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);
/// How long a mail waits whose tenant has too many errands in hand.
const ERRAND_ROOM_WAIT: Duration = Duration::from_secs(30);

// No lease lapses under work: all that may be done under one ends before, with time to write it down.
const _: () = assert!(
    THREAD_WAIT_MAX.as_secs() + DEAL_MAX.as_secs() + WORK_STOP_MAX.as_secs() + ERRAND_MAX.as_secs() + 60
        < LEASE.as_secs()
);

/// What the router works with.
pub struct RouterParts {
    /// Where mail waits.
    pub store: Arc<dyn Store>,
    /// Where large mail is.
    pub depot: Arc<Depot>,
    /// The one way in, for mail that is sent on.
    pub door: Arc<Door>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Knows envelope senders that were signed with it, and marks forwarded mail.
    pub secret_key: Arc<SecretKey>,
    /// The way to the servers, to mark and move mail.
    pub source: Arc<dyn Source>,
    /// Whom signatures of certified mail must lead to.
    pub trust: TrustStore,
    /// This life of this process.
    pub incarnation: Incarnation,
    /// How often waiting mail is looked for: [`RouterParts::POLL`].
    pub poll: Duration,
}

impl RouterParts {
    /// How often to poll: a wake-up is a hint, polling is the guarantee.
    pub const POLL: Duration = Duration::from_secs(1);
}

/// See the module. One for the whole process.
pub struct Router {
    means: Arc<Means>,
    incarnation: Incarnation,
    poll: Duration,
}

impl Router {
    /// A router at rest.
    pub fn new(parts: RouterParts) -> Self {
        let RouterParts { store, depot, door, clock, secret_key, source, trust, incarnation, poll } = parts;
        let means = Means {
            store,
            depot,
            door,
            clock,
            verp_key: VerpKey::new(&secret_key),
            marker: Marker::new(&secret_key),
            trust,
            errands: Errands::new(source),
            threads: TenantSeats::new(THREADS_MAX, THREADS_PER_TENANT_MAX),
            large: Semaphore::new(LARGE_KIB_MAX),
            turns: Arc::default(),
        };
        Self { means: Arc::new(means), incarnation, poll }
    }

    /// Works until it is stopped, then lets what is in hand end, within bounds, and gives the rest back.
    pub async fn run(self, stop: CancellationToken) {
        let (outcomes, received) = mpsc::channel(IN_HAND_MAX);
        let settling = tokio::spawn(settle(self.means.store.clone(), received, stop.clone()));
        let mut shift = RouterShift {
            router: &self,
            outcomes,
            in_hand: MailInHand::default(),
            suspect: None,
            careful: false,
        };
        let (mut is_well, mut tidy_at) = (true, Instant::now() + TIDY_EVERY);
        // Whether the last look found something, so that nobody needs to ask; and when to look where it did not.
        let (mut has_more, mut look_at) = (false, Instant::now());
        while !stop.is_cancelled() {
            let began = Instant::now();
            let room = shift.room();
            if room > 0 && (has_more || began >= look_at || shift.in_hand.dealing() <= PER_TENANT_MAX) {
                let wait = match shift.look(room, has_more).await {
                    Ok(looked) => {
                        (is_well, has_more) = (true, looked.has_more);
                        looked.wait
                    }
                    Err(error) => {
                        // Told once, not at each try.
                        if is_well {
                            tracing::warn!(%error, "mail that waits to be dealt with could not be read");
                        }
                        (is_well, has_more) = (false, false);
                        self.poll
                    }
                };
                look_at = Instant::now() + wait;
            }
            if tidy_at <= Instant::now() {
                self.means.errands.close_idle(IDLE_MAX, None).await;
                tidy_at = Instant::now() + TIDY_EVERY;
            }
            shift.start_suspect();
            let has_room = shift.room() > 0;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                left = shift.in_hand.next() => {
                    shift.ended(left).await;
                    while let Some(left) = shift.in_hand.try_next() {
                        shift.ended(left).await;
                    }
                }
                () = self.means.store.inbound_woken(), if has_room => look_at = Instant::now(),
                () = tokio::time::sleep_until(look_at), if has_room => {}
            }
            tokio::time::sleep_until(began + LOOK_MIN).await;
        }
        let left = shift.end().await;
        if let Err(error) = settling.await {
            tracing::error!(%error, "writing what came of mails broke off; they are dealt with again later");
        }
        // Behind all outcomes: of what was written by then, the lease is gone.
        if !left.is_empty()
            && let Err(error) = self.means.store.settle_inbound(left).await
        {
            tracing::warn!(%error, "mail in hand at the stop could not be given back; it is taken back later");
        }
        self.means.errands.close_idle(Duration::ZERO, None).await;
    }

    /// The mailboxes of these mails, with their rules.
    async fn desks(&self, jobs: &[ToRoute]) -> Result<HashMap<MailboxKey, Arc<Desk>>, StoreError> {
        let mut desks = HashMap::new();
        for job in jobs {
            if desks.contains_key(&job.key) {
                continue;
            }
            let Some((mailbox, _)) = self.means.store.mailbox(&job.key).await? else { continue };
            let rules = self.means.store.rules(&job.key.tenant, Some(&job.key.mailbox)).await?;
            let desk = Desk { mailbox, rules: RuleSet::new(rules), marks: self.means.marker.marks(&job.key) };
            desks.insert(job.key.clone(), Arc::new(desk));
        }
        Ok(desks)
    }
}

/// What a look found.
struct Looked {
    /// How long there is nothing more to look for.
    wait: Duration,
    has_more: bool,
}

/// A mail that is leased, with its mailbox; or why that is not known.
struct LeasedJob {
    job: Arc<ToRoute>,
    token: LeaseToken,
    desk: Result<Option<Arc<Desk>>, StoreError>,
}

/// The router while it runs.
struct RouterShift<'r> {
    router: &'r Router,
    outcomes: mpsc::Sender<Settled>,
    in_hand: MailInHand,
    /// A mail whose process died: it may be what killed it.
    suspect: Option<LeasedJob>,
    /// While suspects are about, one mail is claimed at a time.
    careful: bool,
}

impl RouterShift<'_> {
    /// How many mails may be leased now. None as long as a suspect waits to be alone, or is.
    fn room(&self) -> usize {
        let room = IN_HAND_MAX - self.in_hand.dealing();
        match (self.suspect.is_some(), self.careful) {
            (true, _) => 0,
            (false, true) => usize::from(self.in_hand.dealing() == 0),
            (false, false) => Some(room).filter(|room| *room >= ROOM_MIN).unwrap_or(0),
        }
    }

    /// Deals with the suspect once nothing else is being dealt with.
    fn start_suspect(&mut self) {
        if self.in_hand.dealing() > 0 {
            return;
        }
        if let Some(suspect) = self.suspect.take() {
            let (job, tenant) = (&suspect.job, &suspect.job.key.tenant);
            tracing::warn!(uid = %job.uid, %tenant, "dealing alone with a mail whose process died");
            self.start(suspect);
        }
    }

    /// Leases what there is room for and begins with it.
    async fn look(&mut self, room: usize, had_more: bool) -> Result<Looked, StoreError> {
        let (means, poll) = (self.router.means.clone(), self.router.poll);
        let now = means.clock.now();
        if !had_more {
            let state = means.store.route_state(now).await?;
            if state.due == 0 {
                self.careful = false;
                let next = state.next_due_at.map_or(poll, |due| due.since(now));
                let wait = next.clamp(LOOK_MIN, poll.max(LOOK_MIN));
                return Ok(Looked { wait, has_more: false });
            }
        }
        let token = LeaseToken::new(&mut rand::rng());
        let lease = Lease { incarnation: self.router.incarnation, token, until: now.plus(LEASE) };
        let jobs = means.store.claim_inbound(self.request(lease, now, room)).await?;
        // A mailbox gives out a part of its mail at a time: less than wanted is not all there is.
        let has_more = !jobs.is_empty();
        let desks = self.router.desks(&jobs).await;
        let mut suspects = Vec::new();
        self.careful = false;
        for job in jobs {
            let desk = match &desks {
                Ok(desks) => Ok(desks.get(&job.key).cloned()),
                Err(error) => Err(error.clone()),
            };
            let leased = LeasedJob { job: Arc::new(job), token, desk };
            if is_suspect(&leased.job) { suspects.push(leased) } else { self.start(leased) }
        }
        if !suspects.is_empty() {
            self.examine(suspects).await;
        }
        Ok(Looked { wait: if has_more { LOOK_MIN } else { poll }, has_more })
    }

    fn request(&self, lease: Lease, now: postway_domain::Time, room: usize) -> RouteRequest {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        RouteRequest {
            per_mailbox: PER_MAILBOX_MAX,
            per_tenant: count(PER_TENANT_MAX),
            per_tenant_alone: count(PER_TENANT_ALONE_MAX),
            alone_room_min: count(ROOM_MIN.min(room)),
            mailboxes_in_hand: self.in_hand.by_mailbox(),
            tenants_in_hand: self.in_hand.by_tenant(),
            ..RouteRequest::new(lease, now, count(room))
        }
    }

    /// Keeps one suspect and gives the others back before it is dealt with: what is leased when it kills the process is
    /// counted as lost with it.
    async fn examine(&mut self, mut suspects: Vec<LeasedJob>) {
        self.careful = true;
        let first = suspects.remove(0);
        let now = self.router.means.clock.now();
        let others: Vec<Routed> =
            suspects.iter().map(|other| given_back(&other.job, other.token, now)).collect();
        self.suspect = Some(first);
        if others.is_empty() {
            return;
        }
        if let Err(error) = self.router.means.store.settle_inbound(others).await {
            tracing::warn!(%error, "mail could not be given back; it is taken back later");
        }
    }

    /// Begins to deal with a mail.
    fn start(&mut self, leased: LeasedJob) {
        let LeasedJob { job, token, desk } = leased;
        let (means, outcomes) = (self.router.means.clone(), self.outcomes.clone());
        let turn = means.turns.join(&job);
        let known = desk.as_ref().ok().and_then(Option::as_ref);
        let place = known.and_then(|desk| queue_for_thread(&means, desk, &job));
        let task = {
            let job = job.clone();
            async move {
                // Until it is dealt with; what is left to do on its server holds up nobody.
                let _turn = turn;
                let dealt = match desk {
                    Ok(Some(desk)) => deal(&means, &desk, &job, token, place).await,
                    // Its mailbox is gone, and it goes with it.
                    Ok(None) => return None,
                    Err(error) => DealtMail::Over(put_off(&job, token, error, means.clock.now()).into()),
                };
                match dealt {
                    DealtMail::Errand(due) => Some(due),
                    DealtMail::Over(routed) => {
                        let (outcome, written) = Settled::new(job.key.clone(), *routed);
                        // Closed only if the settling task died, which is told when the room stops; leases end by themselves.
                        let _ = outcomes.send(outcome).await;
                        // A suspect that has lived must not be leased any more when the next one kills the process.
                        if is_suspect(&job) {
                            let _ = written.await;
                        }
                        None
                    }
                }
            }
        };
        self.in_hand.deal(job, token, task);
    }

    /// Goes on with a mail that was dealt with: an errand on its server is left, or nothing.
    async fn ended(&mut self, left: Option<Box<ErrandDue>>) {
        let Some(due) = left else { return };
        let (means, outcomes) = (self.router.means.clone(), self.outcomes.clone());
        let key = due.job.key.clone();
        if !self.in_hand.has_room_for_errand(&key.tenant) {
            let (outcome, _) = Settled::new(key, due.postpone(&means, ERRAND_ROOM_WAIT));
            let _ = outcomes.send(outcome).await;
            return;
        }
        let (job, token) = (Arc::new(due.job.clone()), due.token);
        self.in_hand.run_errand(job, token, async move {
            let (outcome, _) = Settled::new(key, due.run(&means).await);
            let _ = outcomes.send(outcome).await;
            None
        });
    }

    /// Lets what is in hand end, within bounds; what gives back the rest.
    async fn end(mut self) -> Vec<Routed> {
        let ending = async {
            while !self.in_hand.is_empty() {
                let left = self.in_hand.next().await;
                self.ended(left).await;
            }
        };
        if timeout(STOP_WITHIN, ending).await.is_err() {
            tracing::warn!("some mail was still being dealt with at the stop; it is given back");
        }
        let now = self.router.means.clock.now();
        let suspect = self.suspect.map(|suspect| given_back(&suspect.job, suspect.token, now));
        self.in_hand.abort(now).await.into_iter().chain(suspect).collect()
    }
}

/// Whether a mail must be dealt with alone. One that is to be set aside harms nobody.
fn is_suspect(job: &ToRoute) -> bool {
    (1..LOST_LEASES_MAX).contains(&job.lost_leases)
}
