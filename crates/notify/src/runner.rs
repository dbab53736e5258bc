//! The room's loop: look who has notifications due, lease some, tell them, have the outcomes written.
//!
//! A crash leaves leases that others take back: what was told and not written is told again, under the same id. On stop
//! nothing new begins, calls under way have ten seconds, and the rest is given back.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use postway_domain::{Clock, Incarnation, LeaseToken, Time, secret::SecretKey};
use postway_net::http::HttpClient;
use postway_store::{
    Store,
    record::{DueSubscriber, Lease, NotificationKey, Notified, ReportRequest},
};
use tokio::{
    sync::{Notify, mpsc},
    task::{JoinError, JoinSet},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client_sync,
    desk::{Batch, Desk, Finished, LEASED_MAX},
    outcome::{Leased, Verdict},
    sequencer::{Node, Sequencer},
    settle::settle,
    target::Target,
    tell::{Means, tell},
};

/// How long a lease lasts: longer than any call, and the backstop where a process hangs.
const LEASE: Duration = Duration::from_secs(120);
/// Looks at the queue are at least this far apart.
const LOOK_MIN: Duration = Duration::from_millis(20);
/// How long calls under way may take once the room stops.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Looks take at most one part in so many of the time.
const LOOK_PART: u32 = 10;

/// What the room works with.
pub struct NotifierParts {
    /// Where everything is.
    pub store: Arc<dyn Store>,
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
}

impl Notifier {
    /// A room at rest.
    pub fn new(parts: NotifierParts) -> Self {
        let NotifierParts { store, http, clock, secret_key, node, incarnation, poll, patience } = parts;
        Self {
            means: Arc::new(Means { store, http, clock, secret_key, patience }),
            node,
            incarnation,
            poll,
            desk: Desk::default(),
            calls: JoinSet::new(),
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
        let (mut look_at, mut not_before) = (Instant::now(), Instant::now());
        while !stop.is_cancelled() {
            if look_at <= Instant::now() {
                let began = Instant::now();
                look_at = began + self.look().await;
                not_before = Instant::now() + LOOK_MIN.max(began.elapsed() * LOOK_PART);
            }
            self.start(&outcomes).await;
            tokio::select! {
                () = stop.cancelled() => {}
                () = made.notified() => look_at = look_at.min(not_before),
                Some(done) = self.calls.join_next() => self.finish(done, &outcomes).await,
                Some(subscribers) = settled.recv() => self.settled(subscribers),
                () = tokio::time::sleep_until(look_at) => {}
            }
            if self.desk.is_hungry() {
                look_at = look_at.min(not_before);
            }
        }
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

    /// Leases what there is room for; returns how long there is nothing more to look for.
    async fn look(&mut self) -> Duration {
        let now = self.now();
        let state = match self.means.store.report_state(now).await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(%error, "notifications that are due could not be read");
                return self.poll;
            }
        };
        let hungry = self.desk.hungry(state.due, now);
        let met = self.meet(hungry, now).await;
        let wants = self.desk.wants(met, now);
        if !wants.is_empty() {
            self.claim(wants, now).await;
        }
        self.desk.close_round();
        let next = state.next_due_at.map_or(self.poll, |due| due.since(now));
        next.clamp(LOOK_MIN, self.poll.max(LOOK_MIN))
    }

    /// Reads how to reach these; those that are gone are left out.
    async fn meet(&mut self, hungry: Vec<DueSubscriber>, now: Time) -> Vec<DueSubscriber> {
        let means = self.means.clone();
        let read = |key: DueSubscriber| {
            let means = &means;
            async move {
                let target = Target::read(&*means.store, &means.secret_key, &key, now).await;
                (key, target)
            }
        };
        let mut met = Vec::with_capacity(hungry.len());
        for (key, target) in join_all(hungry.into_iter().map(read)).await {
            match target {
                Ok(Some(target)) => {
                    self.desk.meet(&key, target);
                    met.push(key);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, tenant = %key.tenant, subscriber = %key.subscriber, "a subscriber could not be read");
                }
            }
        }
        met
    }

    async fn claim(&mut self, wants: Vec<(DueSubscriber, u32)>, now: Time) {
        let token = LeaseToken::new(&mut rand::rng());
        let lease = Lease { incarnation: self.incarnation, token, until: now.plus(LEASE) };
        let mut lines: BTreeMap<DueSubscriber, (u32, Vec<Leased>)> =
            wants.iter().map(|(key, count)| (key.clone(), (*count, Vec::new()))).collect();
        match self.means.store.claim_notifications(ReportRequest { lease, now, wants }).await {
            Ok(claimed) => {
                for job in claimed {
                    let (_, leased) = lines.entry(subscriber_of(&job.key)).or_default();
                    leased.push(Leased { job, token, until: lease.until });
                }
            }
            Err(error) => tracing::warn!(%error, "notifications could not be claimed"),
        }
        for (key, (asked, leased)) in lines {
            let is_all = leased.len() < asked as usize;
            self.desk.take(key, leased, is_all);
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

/// Who is told of a notification.
pub(crate) fn subscriber_of(key: &NotificationKey) -> DueSubscriber {
    DueSubscriber { tenant: key.tenant.clone(), subscriber: key.subscriber.clone() }
}
