//! The router: deals with mail that was registered, on every node.
//!
//! A loop on the store like every room: lease some mails, not too many of one mailbox, deal with each, and have what came of
//! it written, fenced by the lease. A crash leaves leases that others take back; what was sent on by then is found again
//! by its key, so that each mail is sent on once by each rule.

mod apply;
mod deal;
mod errands;
mod outcome;
mod settle;

use std::{collections::HashMap, sync::Arc, time::Duration};

use postway_domain::{Clock, Incarnation, LeaseToken, secret::SecretKey, verp::VerpKey};
use postway_intake::Door;
use postway_mime::pec::TrustStore;
use postway_store::{
    Store, StoreError,
    blob::Depot,
    record::{Lease, MailboxKey, RouteRequest, ToRoute},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    deal::{Desk, LARGE_KIB_MAX, Means, deal},
    errands::Errands,
    outcome::given_back,
    settle::{Settled, settle},
};
use crate::{forward::guard::Marker, monitor::Source, rules::RuleSet};

/// Mails in hand at the same time.
const IN_HAND_MAX: usize = 64;
/// Room that is worth a look: leasing mails one by one would cost a write each.
const ROOM_MIN: usize = 16;
/// Of one mailbox at once.
const PER_MAILBOX_MAX: u32 = 32;
/// How long a lease lasts: longer than dealing may take, and the backstop where a process hangs.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// Looks are at least this far apart.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// How long mails in hand may take once the room stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How often idle sessions are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);

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
            large: Semaphore::new(LARGE_KIB_MAX),
        };
        Self { means: Arc::new(means), incarnation, poll }
    }

    /// Works until it is stopped, then lets what is in hand end, within bounds.
    pub async fn run(self, stop: CancellationToken) {
        let (outcomes, received) = mpsc::channel(IN_HAND_MAX);
        let settling = tokio::spawn(settle(self.means.store.clone(), received, stop.clone()));
        let mut tasks: JoinSet<()> = JoinSet::new();
        let (mut is_well, mut tidy_at) = (true, Instant::now() + TIDY_EVERY);
        // Whether there was more than could be taken at the last look, so that nobody needs to ask.
        let mut has_more = false;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let room = IN_HAND_MAX - tasks.len();
            let mut wait = self.poll;
            if room >= ROOM_MIN {
                match self.look(room, has_more, &mut tasks, &outcomes).await {
                    Ok(looked) => {
                        is_well = true;
                        (wait, has_more) = (looked.wait, looked.has_more);
                    }
                    Err(error) => {
                        // Told once, not at each try.
                        if is_well {
                            tracing::warn!(%error, "mail that waits to be dealt with could not be read");
                        }
                        (is_well, has_more) = (false, false);
                    }
                }
            }
            if tidy_at <= Instant::now() {
                self.means.errands.close_idle(false).await;
                tidy_at = Instant::now() + TIDY_EVERY;
            }
            let has_room = IN_HAND_MAX - tasks.len() >= ROOM_MIN;
            tokio::select! {
                () = stop.cancelled() => {}
                Some(done) = tasks.join_next() => {
                    ended(done);
                    while let Some(done) = tasks.try_join_next() {
                        ended(done);
                    }
                }
                () = self.means.store.inbound_woken(), if has_room => {}
                () = tokio::time::sleep(wait), if has_room => {}
            }
            tokio::time::sleep_until(began + LOOK_MIN).await;
        }
        let ending = async {
            while let Some(done) = tasks.join_next().await {
                ended(done);
            }
        };
        if timeout(STOP_WITHIN, ending).await.is_err() {
            tracing::warn!("some mail was still being dealt with at the stop; it is taken back later");
            tasks.shutdown().await;
        }
        drop(outcomes);
        if let Err(error) = settling.await {
            tracing::error!(%error, "writing what came of mails broke off; they are dealt with again later");
        }
        self.means.errands.close_idle(true).await;
    }

    /// Leases what there is room for and begins with it.
    async fn look(
        &self,
        room: usize,
        had_more: bool,
        tasks: &mut JoinSet<()>,
        outcomes: &mpsc::Sender<Settled>,
    ) -> Result<Looked, StoreError> {
        let means = &self.means;
        let now = means.clock.now();
        if !had_more {
            let state = means.store.route_state(now).await?;
            if state.due == 0 {
                let next = state.next_due_at.map_or(self.poll, |due| due.since(now));
                let wait = next.clamp(LOOK_MIN, self.poll.max(LOOK_MIN));
                return Ok(Looked { wait, has_more: false });
            }
        }
        let token = LeaseToken::new(&mut rand::rng());
        let lease = Lease { incarnation: self.incarnation, token, until: now.plus(LEASE) };
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        let request = RouteRequest { lease, now, limit, per_mailbox: PER_MAILBOX_MAX };
        let jobs = means.store.claim_inbound(request).await?;
        // A mailbox gives out a part of its mail at a time: less than wanted is not all there is.
        let has_more = !jobs.is_empty();
        let desks = self.desks(&jobs).await;
        for job in jobs {
            let desk = match &desks {
                Ok(desks) => Ok(desks.get(&job.key).cloned()),
                Err(error) => Err(given_back(&job, token, error.clone(), now)),
            };
            let (means, outcomes) = (means.clone(), outcomes.clone());
            tasks.spawn(async move {
                let routed = match desk {
                    Ok(Some(desk)) => deal(&means, &desk, &job, token).await,
                    // Its mailbox is gone, and it goes with it.
                    Ok(None) => return,
                    Err(back) => back,
                };
                // Closed only if the settling task died, which is told when the room stops; leases end by themselves.
                let _ = outcomes.send((job.key, routed)).await;
            });
        }
        Ok(Looked { wait: if has_more { LOOK_MIN } else { self.poll }, has_more })
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

fn ended(done: Result<(), tokio::task::JoinError>) {
    // Panics of dealing are caught within it: this is a fault of the loop itself.
    if let Err(error) = done {
        tracing::error!(%error, "dealing with a mail broke off; it is taken back later");
    }
}
