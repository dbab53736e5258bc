//! The loop of the subsystem: poll for due subscribers, lease notifications, deliver them, write the
//! outcomes.
//!
//! A crash leaves leases that other nodes reclaim; a notification that was delivered but not written is
//! delivered again, under the same id. On stop nothing new begins, calls under way have ten seconds, and all
//! other leases are given back.

mod poll;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use postway_domain::{Clock, Incarnation, Time, secret::SecretKey};
use postway_net::http::HttpClient;
use postway_store::{
    Store,
    blob::BlobStorage,
    record::{DueSubscriber, NotificationResult},
};
use tokio::{
    sync::{Notify, mpsc},
    task::{JoinError, JoinSet},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    poll::{DueSubscriberPoll, PollStepResult},
    write::write_outcomes,
};
use crate::{
    deliver::{DeliveryContext, ReceivedMailReader, deliver},
    notification::{
        batch::{FinishedBatch, NotificationBatch},
        call_limits::CALL_MAX,
        outcome::{LeasedNotification, NotificationVerdict},
    },
    scheduler::{CallScheduler, LEASED_MAX},
    sequencer::{FeedSequencer, NotifierNode},
};

/// The shortest time between two polls, and between two claims.
const POLL_MIN: Duration = Duration::from_millis(20);
/// How long calls under way may take after the stop.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Notifications that one write makes due when their subscriber is back.
const HASTEN_BATCH: u32 = 500;
/// Subscribers whose notifications are made due at the same time.
const HASTENING_MAX: usize = 4;
/// Polling may use at most 1/POLL_SHARE of the time.
const POLL_SHARE: u32 = 10;
/// The wait before the next claim, as a multiple of the last claim's duration. The busier the store is with
/// sending, the longer a claim takes and the longer notifications wait: they may be late, mail should not be.
const CLAIM_PAUSE_FACTOR: u32 = 3;

/// The dependencies of the notifier.
pub struct NotifierParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The blobs of large mails.
    pub depot: Arc<BlobStorage>,
    /// The HTTP client, which refuses forbidden addresses.
    pub http: HttpClient,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Opens stored secrets.
    pub secret_key: Arc<SecretKey>,
    /// This process as a node of its database.
    pub node: Arc<dyn NotifierNode>,
    /// This incarnation of the process.
    pub incarnation: Incarnation,
    /// How often the queue is polled: [`NotifierParts::POLL`].
    pub poll: Duration,
    /// The longest call, even if its form allows more: [`NotifierParts::PATIENCE`].
    pub patience: Duration,
    /// Reads received mail for the calls about it.
    pub received: ReceivedMailReader,
    /// Where receivers reach this gateway, for links to files.
    pub public_url: Option<String>,
}

impl NotifierParts {
    /// How often to poll: a wake-up is a hint, polling is the guarantee.
    pub const POLL: Duration = Duration::from_secs(1);
    /// The longest call of any form.
    pub const PATIENCE: Duration = CALL_MAX;
}

/// The notifier. There is one for each process.
pub struct Notifier {
    context: Arc<DeliveryContext>,
    node: Arc<dyn NotifierNode>,
    incarnation: Incarnation,
    poll: Duration,
    scheduler: CallScheduler,
    calls: JoinSet<FinishedBatch>,
    /// Tasks that make due what waits for a subscriber that is back: the subscriber, and whether the task
    /// succeeded.
    hastening: JoinSet<(DueSubscriber, bool)>,
    due_poll: DueSubscriberPoll,
    /// When to poll at the latest, and at the earliest if there may be something new.
    poll_at: Instant,
    poll_from: Instant,
    is_woken: bool,
    /// The earliest time of the next claim.
    claim_from: Instant,
    /// Whether the claims of this round are based on a poll.
    has_polled: bool,
}

impl Notifier {
    /// Creates a notifier that is not running yet.
    pub fn new(parts: NotifierParts) -> Self {
        let NotifierParts {
            store,
            depot,
            http,
            clock,
            secret_key,
            node,
            incarnation,
            poll,
            patience,
            received,
            public_url,
        } = parts;
        let context =
            DeliveryContext { store, depot, http, clock, secret_key, patience, received, public_url };
        Self {
            context: Arc::new(context),
            node,
            incarnation,
            poll,
            scheduler: CallScheduler::default(),
            calls: JoinSet::new(),
            hastening: JoinSet::new(),
            due_poll: DueSubscriberPoll::default(),
            poll_at: Instant::now(),
            poll_from: Instant::now(),
            is_woken: false,
            claim_from: Instant::now(),
            has_polled: false,
        }
    }

    /// Works until it is stopped, then gives back what has not begun and lets calls end, within bounds.
    pub async fn run(self, stop: CancellationToken) {
        let made = Arc::new(Notify::new());
        let sequencer = FeedSequencer {
            store: self.context.store.clone(),
            clock: self.context.clock.clone(),
            node: self.node.clone(),
            made: made.clone(),
            poll: self.poll,
        };
        tokio::join!(sequencer.run(stop.clone()), self.deliver(made, stop));
    }

    async fn deliver(mut self, made: Arc<Notify>, stop: CancellationToken) {
        let (outcomes, received) = mpsc::channel(LEASED_MAX);
        let (written, mut settled) = mpsc::unbounded_channel();
        let writing =
            tokio::spawn(write_outcomes(self.context.store.clone(), received, written, stop.clone()));
        while !stop.is_cancelled() {
            self.poll_store();
            self.start(&outcomes).await;
            self.hasten();
            let wake_at = self.wake_at();
            tokio::select! {
                () = stop.cancelled() => {}
                () = made.notified() => self.is_woken = true,
                Some(step) = self.due_poll.next_step() => self.take_step(step),
                Some(done) = self.calls.join_next() => self.finish(done, &outcomes).await,
                Some(done) = self.hastening.join_next() => self.hastened(done),
                Some(subscribers) = settled.recv() => self.settled(subscribers),
                () = tokio::time::sleep_until(wake_at) => {}
            }
            self.is_woken |= self.scheduler.is_asked_again();
        }
        // What is not made due now is made due after the next start, with the subscriber's first answer.
        self.hastening.shutdown().await;
        self.end_poll(&outcomes).await;
        let waiting = self.scheduler.clear();
        self.give_back(waiting, &outcomes).await;
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
        if let Err(error) = writing.await {
            tracing::error!(%error, "writing the outcomes of notifications broke off; they are delivered again later");
        }
    }

    fn now(&self) -> Time {
        self.context.clock.now()
    }

    /// When to poll for due subscribers.
    fn next_poll_at(&self) -> Instant {
        if self.is_woken { self.poll_at.min(self.poll_from) } else { self.poll_at }
    }

    /// When the loop must wake by itself. A poll step under way wakes it when it ends.
    fn wake_at(&self) -> Instant {
        match (self.due_poll.is_busy(), self.scheduler.wants_claim()) {
            (true, _) => Instant::now() + self.poll,
            (false, true) => self.next_poll_at().min(self.claim_from),
            (false, false) => self.next_poll_at(),
        }
    }

    /// Begins the next poll step, if it is time for one.
    fn poll_store(&mut self) {
        let now = Instant::now();
        if self.due_poll.is_busy() {
            return;
        }
        if self.next_poll_at() <= now {
            (self.poll_at, self.is_woken) = (now + self.poll, false);
            self.due_poll.read_due(self.context.clone(), self.now());
        } else if self.scheduler.wants_claim() && self.claim_from <= now {
            self.read_targets();
        }
    }

    /// Reads the targets of the subscribers to claim for; if there are none, the round is over.
    fn read_targets(&mut self) {
        let now = self.now();
        self.claim_from = Instant::now() + POLL_MIN;
        match self.scheduler.choose_claims(now) {
            chosen if chosen.is_empty() => self.close_round(),
            chosen => self.due_poll.read_targets(self.context.clone(), chosen, now),
        }
    }

    /// Takes the result of a poll step and begins the next one.
    fn take_step(&mut self, step: PollStepResult) {
        let now = self.now();
        match step {
            PollStepResult::Due(state, took) => {
                self.poll_from = Instant::now() + POLL_MIN.max(took * POLL_SHARE);
                let next = state.as_ref().and_then(|state| state.next_due_at).map(|due| due.since(now));
                let wait = next.unwrap_or(self.poll).clamp(POLL_MIN, self.poll.max(POLL_MIN));
                self.poll_at = Instant::now() + wait;
                self.has_polled = state.is_some();
                self.scheduler.set_due(state.map(|state| state.due).unwrap_or_default());
                if !self.scheduler.wants_claim() {
                    self.close_round();
                }
            }
            PollStepResult::Targets(targets) => {
                let mut reachable = Vec::with_capacity(targets.len());
                for (key, target) in targets {
                    match target {
                        Some(target) => {
                            self.scheduler.set_target(&key, target);
                            reachable.push(key);
                        }
                        None => self.scheduler.forget(&key),
                    }
                }
                match self.scheduler.claim_sizes(reachable, now) {
                    wants if wants.is_empty() => self.close_round(),
                    wants => self.due_poll.lease(self.context.clone(), self.incarnation, wants, now),
                }
            }
            PollStepResult::Leased(queues, took) => {
                self.claim_from = Instant::now() + POLL_MIN.max(took * CLAIM_PAUSE_FACTOR);
                for (key, leased, is_all) in queues {
                    self.scheduler.take(key, leased, is_all);
                }
                self.close_round();
            }
        }
    }

    /// Ends a round of claims. Clients that asked to be called again are called now, if a poll has happened
    /// since.
    fn close_round(&mut self) {
        if std::mem::take(&mut self.has_polled) {
            self.scheduler.close_round();
        }
    }

    /// Waits for the poll step under way, and gives back what it leases.
    async fn end_poll(&mut self, outcomes: &mpsc::Sender<NotificationResult>) {
        if let Ok(Some(PollStepResult::Leased(queues, _))) =
            timeout(STOP_WITHIN, self.due_poll.next_step()).await
        {
            let leased = queues.into_iter().flat_map(|(_, leased, _)| leased).collect();
            self.give_back(leased, outcomes).await;
        }
    }

    /// Begins all calls that there are slots for.
    async fn start(&mut self, outcomes: &mpsc::Sender<NotificationResult>) {
        let mut back = Vec::new();
        while let Some(batch) = self.scheduler.next(self.now(), &mut back) {
            self.calls.spawn(deliver_batch(self.context.clone(), batch, outcomes.clone()));
        }
        self.give_back(back, outcomes).await;
    }

    async fn finish(
        &mut self,
        done: Result<FinishedBatch, JoinError>,
        outcomes: &mpsc::Sender<NotificationResult>,
    ) {
        match done {
            Ok(finished) => {
                let mut back = Vec::new();
                self.scheduler.finish(finished, self.now(), &mut back);
                self.give_back(back, outcomes).await;
            }
            // Panics of a delivery are caught inside it: this is a fault of the loop itself.
            Err(error) => {
                tracing::error!(%error, "a delivery broke off; its notifications are reclaimed later")
            }
        }
    }

    /// Makes due what waits for subscribers that are back.
    fn hasten(&mut self) {
        while self.hastening.len() < HASTENING_MAX
            && let Some(subscriber) = self.scheduler.next_returned()
        {
            self.hastening.spawn(hasten(self.context.clone(), subscriber));
        }
    }

    fn hastened(&mut self, done: Result<(DueSubscriber, bool), JoinError>) {
        match done {
            Ok((_, true)) => self.is_woken = true,
            Ok((subscriber, false)) => self.scheduler.return_not_served(&subscriber),
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
        counts.iter().for_each(|(key, count)| self.scheduler.settled(key, *count, now));
    }

    /// Gives these notifications back to the store without a call.
    async fn give_back(
        &mut self,
        leased: Vec<LeasedNotification>,
        outcomes: &mpsc::Sender<NotificationResult>,
    ) {
        let now = self.now();
        for one in leased {
            let back = one.notified(NotificationVerdict::GivenBack, None, false, now, &mut rand::rng());
            // The channel is closed only if the writing task died, which is logged on stop; leases end by
            // themselves.
            let _ = outcomes.send(back).await;
        }
    }
}

async fn deliver_batch(
    context: Arc<DeliveryContext>,
    batch: NotificationBatch,
    outcomes: mpsc::Sender<NotificationResult>,
) -> FinishedBatch {
    let outcome = deliver(&context, &batch).await;
    for one in outcome.notified {
        // As above, the channel is closed only if the writing task died.
        let _ = outcomes.send(one).await;
    }
    batch.finished(outcome.conduct, outcome.quiet_until, outcome.comes_again)
}

/// Makes everything that waits for a subscriber due, one write after the other.
async fn hasten(context: Arc<DeliveryContext>, subscriber: DueSubscriber) -> (DueSubscriber, bool) {
    let now = context.clock.now();
    let mut count = 0;
    loop {
        match context.store.hasten_notifications(&subscriber, now, HASTEN_BATCH).await {
            Ok(hastened) => {
                count += hastened;
                if hastened < HASTEN_BATCH {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!(%error, tenant = %subscriber.tenant, subscriber = %subscriber.subscriber, "what waits for a subscriber that is back could not be made due");
                return (subscriber, false);
            }
        }
    }
    if count > 0 {
        tracing::info!(tenant = %subscriber.tenant, subscriber = %subscriber.subscriber, notifications = count, "a subscriber is back: what waited for it is due");
    }
    (subscriber, true)
}
