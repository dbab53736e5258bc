//! The room's loop: look who has notifications due, lease some, tell them, have the outcomes written.
//!
//! A crash leaves leases that others take back: what was told and not written is told again, under the same id. On stop
//! nothing new begins, calls under way have ten seconds, and the rest is given back.

mod poll;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use postway_domain::{Clock, Incarnation, Time, secret::SecretKey};
use postway_net::http::HttpClient;
use postway_store::{
    Store,
    blob::Depot,
    record::{DueSubscriber, NotificationKey, Notified},
};
use tokio::{
    sync::{Notify, mpsc},
    task::{JoinError, JoinSet},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    poll::{Found, Look},
    write::settle,
};
use crate::{
    deliver::{Means, client_sync, tell},
    notification::outcome::{Leased, Verdict},
    scheduler::{Batch, Desk, Finished, LEASED_MAX},
    sequencer::{Node, Sequencer},
};

/// Looks at the queue are at least this far apart, and so are claims.
const LOOK_MIN: Duration = Duration::from_millis(20);
/// How long calls under way may take once the room stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Notifications made due in one write, where their subscriber is back.
const HASTENED_AT_ONCE: u32 = 500;
/// Subscribers at once for which that is done.
const HASTENING_MAX: usize = 4;
/// Asking who has something due takes at most one part in so many of the time.
const LOOK_PART: u32 = 10;
/// Between claims is at least so many times what the last one took. The busier the store is with sending, the longer a claim
/// takes, and the more telling keeps back: it may come later, and mail should not.
const CLAIM_PART: u32 = 3;

/// What the room works with.
pub struct NotifierParts {
    /// Where everything is.
    pub store: Arc<dyn Store>,
    /// Where large mails are.
    pub depot: Arc<Depot>,
    /// The guarded way out.
    pub http: HttpClient,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What opens secrets.
    pub secret_key: Arc<SecretKey>,
    /// This process among the others.
    pub node: Arc<dyn Node>,
    /// This life of this process.
    pub incarnation: Incarnation,
    /// How often the queue is polled: [`NotifierParts::POLL`].
    pub poll: Duration,
    /// The longest that a call may take, where its form allows more: [`NotifierParts::PATIENCE`].
    pub patience: Duration,
}

impl NotifierParts {
    /// How often to poll: a wake-up is a hint, polling is the guarantee.
    pub const POLL: Duration = Duration::from_secs(1);
    /// As long as any form allows.
    pub const PATIENCE: Duration = client_sync::TIMEOUT;
}

/// The room. One for the whole process.
pub struct Notifier {
    means: Arc<Means>,
    node: Arc<dyn Node>,
    incarnation: Incarnation,
    poll: Duration,
    desk: Desk,
    calls: JoinSet<Finished>,
    /// Making due what waits for those that are back: for whom, and whether it is done.
    hastening: JoinSet<(DueSubscriber, bool)>,
    look: Look,
    /// When to ask who has something due at the latest; and at the earliest, where there may be something new.
    look_at: Instant,
    look_from: Instant,
    is_woken: bool,
    /// Not before when to claim again.
    claim_from: Instant,
    /// Whether the claims of this round know what is due now.
    is_surveyed: bool,
}

impl Notifier {
    /// A room at rest.
    pub fn new(parts: NotifierParts) -> Self {
        let NotifierParts { store, depot, http, clock, secret_key, node, incarnation, poll, patience } =
            parts;
        Self {
            means: Arc::new(Means { store, depot, http, clock, secret_key, patience }),
            node,
            incarnation,
            poll,
            desk: Desk::default(),
            calls: JoinSet::new(),
            hastening: JoinSet::new(),
            look: Look::default(),
            look_at: Instant::now(),
            look_from: Instant::now(),
            is_woken: false,
            claim_from: Instant::now(),
            is_surveyed: false,
        }
    }

    /// Works until it is stopped, then gives back what was not begun and lets calls end, within bounds.
    pub async fn run(self, stop: CancellationToken) {
        let made = Arc::new(Notify::new());
        let sequencer = Sequencer {
            store: self.means.store.clone(),
            clock: self.means.clock.clone(),
            node: self.node.clone(),
            made: made.clone(),
            poll: self.poll,
        };
        tokio::join!(sequencer.run(stop.clone()), self.tell(made, stop));
    }

    async fn tell(mut self, made: Arc<Notify>, stop: CancellationToken) {
        let (outcomes, received) = mpsc::channel(LEASED_MAX);
        let (written, mut settled) = mpsc::unbounded_channel();
        let settling = tokio::spawn(settle(self.means.store.clone(), received, written, stop.clone()));
        while !stop.is_cancelled() {
            self.look();
            self.start(&outcomes).await;
            self.hasten();
            let wake_at = self.wake_at();
            tokio::select! {
                () = stop.cancelled() => {}
                () = made.notified() => self.is_woken = true,
                Some(found) = self.look.found() => self.keep(found),
                Some(done) = self.calls.join_next() => self.finish(done, &outcomes).await,
                Some(done) = self.hastening.join_next() => self.hastened(done),
                Some(subscribers) = settled.recv() => self.settled(subscribers),
                () = tokio::time::sleep_until(wake_at) => {}
            }
            self.is_woken |= self.desk.is_asked_again();
        }
        // What is not made due now is after the next start, with its subscriber's first answer.
        self.hastening.shutdown().await;
        self.end_look(&outcomes).await;
        let rest = self.desk.clear();
        self.give_back(rest, &outcomes).await;
        let ending = async {
            while let Some(done) = self.calls.join_next().await {
                self.finish(done, &outcomes).await;
            }
        };
        if timeout(STOP_WITHIN, ending).await.is_err() {
            tracing::warn!("some receivers did not answer before the stop; they are called again");
            self.calls.shutdown().await;
        }
        drop(outcomes);
        if let Err(error) = settling.await {
            tracing::error!(%error, "writing what came of notifications broke off; they are told again later");
        }
    }

    fn now(&self) -> Time {
        self.means.clock.now()
    }

    /// When to ask who has something due.
    fn survey_at(&self) -> Instant {
        if self.is_woken { self.look_at.min(self.look_from) } else { self.look_at }
    }

    /// When there is something to do that nothing else wakes the loop for. A step under way does.
    fn wake_at(&self) -> Instant {
        match (self.look.is_busy(), self.desk.is_hungry()) {
            (true, _) => Instant::now() + self.poll,
            (false, true) => self.survey_at().min(self.claim_from),
            (false, false) => self.survey_at(),
        }
    }

    /// Begins the next step of looking for work, if it is time for one.
    fn look(&mut self) {
        let now = Instant::now();
        if self.look.is_busy() {
            return;
        }
        if self.survey_at() <= now {
            (self.look_at, self.is_woken) = (now + self.poll, false);
            self.look.survey(self.means.clone(), self.now());
        } else if self.desk.is_hungry() && self.claim_from <= now {
            self.reach();
        }
    }

    /// Looks up those to claim for; where there are none the round is over.
    fn reach(&mut self) {
        let now = self.now();
        self.claim_from = Instant::now() + LOOK_MIN;
        match self.desk.hungry(now) {
            hungry if hungry.is_empty() => self.close_round(),
            hungry => self.look.reach(self.means.clone(), hungry, now),
        }
    }

    /// Takes in what a step found, and goes on to the next.
    fn keep(&mut self, found: Found) {
        let now = self.now();
        match found {
            Found::Due(state, took) => {
                self.look_from = Instant::now() + LOOK_MIN.max(took * LOOK_PART);
                let next = state.as_ref().and_then(|state| state.next_due_at).map(|due| due.since(now));
                let wait = next.unwrap_or(self.poll).clamp(LOOK_MIN, self.poll.max(LOOK_MIN));
                self.look_at = Instant::now() + wait;
                self.is_surveyed = state.is_some();
                self.desk.learn(state.map(|state| state.due).unwrap_or_default());
                if !self.desk.is_hungry() {
                    self.close_round();
                }
            }
            Found::Reached(targets) => {
                let mut met = Vec::with_capacity(targets.len());
                for (key, target) in targets {
                    match target {
                        Some(target) => {
                            self.desk.meet(&key, target);
                            met.push(key);
                        }
                        None => self.desk.forget(&key),
                    }
                }
                match self.desk.wants(met, now) {
                    wants if wants.is_empty() => self.close_round(),
                    wants => self.look.lease(self.means.clone(), self.incarnation, wants, now),
                }
            }
            Found::Leased(lines, took) => {
                self.claim_from = Instant::now() + LOOK_MIN.max(took * CLAIM_PART);
                for (key, leased, is_all) in lines {
                    self.desk.take(key, leased, is_all);
                }
                self.close_round();
            }
        }
    }

    /// What was due is claimed. Those who asked to be called again are, if it was looked for since.
    fn close_round(&mut self) {
        if std::mem::take(&mut self.is_surveyed) {
            self.desk.close_round();
        }
    }

    /// Waits for the step under way: what it leases is to be given back.
    async fn end_look(&mut self, outcomes: &mpsc::Sender<Notified>) {
        if let Ok(Some(Found::Leased(lines, _))) = timeout(STOP_WITHIN, self.look.found()).await {
            let leased = lines.into_iter().flat_map(|(_, leased, _)| leased).collect();
            self.give_back(leased, outcomes).await;
        }
    }

    /// Begins all calls there is a place for.
    async fn start(&mut self, outcomes: &mpsc::Sender<Notified>) {
        let mut back = Vec::new();
        while let Some(batch) = self.desk.next(self.now(), &mut back) {
            self.calls.spawn(call(self.means.clone(), batch, outcomes.clone()));
        }
        self.give_back(back, outcomes).await;
    }

    async fn finish(&mut self, done: Result<Finished, JoinError>, outcomes: &mpsc::Sender<Notified>) {
        match done {
            Ok(finished) => {
                let mut back = Vec::new();
                self.desk.finish(finished, self.now(), &mut back);
                self.give_back(back, outcomes).await;
            }
            // Panics of a call are caught within it: this is a fault of the loop itself.
            Err(error) => tracing::error!(%error, "a call broke off; its notifications are taken back later"),
        }
    }

    /// Makes due what waits for those that are back.
    fn hasten(&mut self) {
        while self.hastening.len() < HASTENING_MAX
            && let Some(who) = self.desk.next_returned()
        {
            self.hastening.spawn(hasten(self.means.clone(), who));
        }
    }

    fn hastened(&mut self, done: Result<(DueSubscriber, bool), JoinError>) {
        match done {
            Ok((_, true)) => self.is_woken = true,
            Ok((who, false)) => self.desk.still_owes(&who),
            Err(error) => {
                tracing::error!(%error, "what waits for a subscriber that is back stays on its schedule")
            }
        }
    }

    fn settled(&mut self, subscribers: Vec<DueSubscriber>) {
        let now = self.now();
        let mut counts: BTreeMap<DueSubscriber, usize> = BTreeMap::new();
        for key in subscribers {
            *counts.entry(key).or_default() += 1;
        }
        counts.iter().for_each(|(key, count)| self.desk.settled(key, *count, now));
    }

    /// Has the store take these back without a call.
    async fn give_back(&mut self, leased: Vec<Leased>, outcomes: &mpsc::Sender<Notified>) {
        let now = self.now();
        for one in leased {
            let back = one.notified(Verdict::GivenBack, None, false, now, &mut rand::rng());
            // Closed only if the settling task died, which is told when the room stops; leases end by themselves.
            let _ = outcomes.send(back).await;
        }
    }
}

async fn call(means: Arc<Means>, batch: Batch, outcomes: mpsc::Sender<Notified>) -> Finished {
    let told = tell(&means, &batch).await;
    for one in told.notified {
        // As above.
        let _ = outcomes.send(one).await;
    }
    batch.finished(told.conduct, told.quiet_until, told.comes_again)
}

/// Makes all that waits for a subscriber due, write by write.
async fn hasten(means: Arc<Means>, who: DueSubscriber) -> (DueSubscriber, bool) {
    let now = means.clock.now();
    let mut count = 0;
    loop {
        match means.store.hasten_notifications(&who, now, HASTENED_AT_ONCE).await {
            Ok(hastened) => {
                count += hastened;
                if hastened < HASTENED_AT_ONCE {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!(%error, tenant = %who.tenant, subscriber = %who.subscriber, "what waits for a subscriber that is back could not be made due");
                return (who, false);
            }
        }
    }
    if count > 0 {
        tracing::info!(tenant = %who.tenant, subscriber = %who.subscriber, notifications = count, "a subscriber is back: what waited for it is due");
    }
    (who, true)
}

/// Who is told of a notification.
pub(crate) fn subscriber_of(key: &NotificationKey) -> DueSubscriber {
    DueSubscriber { tenant: key.tenant.clone(), subscriber: key.subscriber.clone() }
}
