//! A courier: one task, one connection, one message after the other.
//!
//! While the outcome of one message is being made durable the next one is already on its way; the two meet in the same
//! commit, before the next message's dot. So a courier has at most one unsettled message, and never waits twice.

mod account_fault;
mod message_body;
mod permit;
mod wire_gate;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use postway_domain::{Failure, failure::Phase};
use postway_store::record::{Claimed, Permit};
use tokio::{task::JoinHandle, time::Instant};
use tracing::Instrument;

use self::{
    account_fault::{account_fault, is_before_the_request},
    message_body::{Lack, body, panic_if_poisoned},
    wire_gate::{StoreGate, Wire},
};
use crate::{
    account::{Held, Plan, Post, Route, circuit},
    context::Shared,
    outcome::{self, Attempt, Hold, Verdict, settle},
    transport::{Delivery, DeliveryEnd, Envelope, RecipientReply, Sandbox, SmtpConnection, SmtpSettings},
};

/// A connection without work for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// A connection is replaced at this age, so that a relay's DNS or certificate change is noticed.
const AGE_MAX: Duration = Duration::from_secs(300);
/// A connection is replaced after this many messages, as relays limit them.
const MESSAGES_MAX: u64 = 1_000;
/// How long a courier without a connection waits for work before it goes home.
const HOME_AFTER: Duration = Duration::from_secs(60);
/// How long a message waits whose connection was refused while others work.
const CROWDED_WAIT: Duration = Duration::from_secs(1);

/// Carries mail for one account until there is none.
pub(crate) async fn run(shared: Arc<Shared>, post: Arc<Post>) {
    let mut courier = Courier { shared, post, connection: None, settling: None };
    loop {
        let idle_max = if courier.connection.is_some() { IDLE_MAX } else { HOME_AFTER };
        let job = tokio::select! {
            biased;
            () = courier.shared.stop.cancelled() => None,
            job = courier.post.queue.next(idle_max) => job,
        };
        match job {
            Some(job) => courier.carry(job).await,
            None if courier.shared.stop.is_cancelled() => break,
            None => {
                courier.hang_up().await;
                if courier.post.queue.leave() {
                    break;
                }
            }
        }
    }
    courier.hang_up().await;
    courier.wait_for_settling().await;
}

struct Courier {
    shared: Arc<Shared>,
    post: Arc<Post>,
    connection: Option<Line>,
    settling: Option<JoinHandle<()>>,
}

/// A connection, the version of the account it was opened for, and its place in the count.
struct Line {
    version: i64,
    connection: SmtpConnection,
    _held: Held,
}

/// How far an attempt has come; lives outside it, so that it survives a panic.
#[derive(Default)]
struct Progress {
    wire: Wire,
    /// The permit that it was claimed with, or what that was renewed to.
    permit: Option<Permit>,
    remote: Option<String>,
    /// Whether the relay took the sender's wishes about reports.
    takes_dsn: bool,
}

/// What became of an attempt to send.
enum Sent {
    /// The transport has had it.
    Tried(Delivery),
    /// Nothing of it was sent, and it goes back.
    Held(Hold),
}

impl Sent {
    /// What a delivery came to. One that this process itself did not let begin has left nothing anywhere.
    fn of(delivery: Delivery, wire: &mut Wire) -> Self {
        match wire.held.take() {
            Some(why) if !wire.begun && !wire.committed => Self::Held(why),
            Some(_) | None => Self::Tried(delivery),
        }
    }
}

impl Courier {
    async fn carry(&mut self, job: Claimed) {
        let span = tracing::info_span!(
            "attempt",
            uid = %job.uid,
            tenant = %job.lane.tenant,
            account = %self.post.key.account,
            attempt = job.attempt,
            request_id = job.request_id.as_deref(),
        );
        let verdict = self.attempt(&job).instrument(span.clone()).await;
        self.wait_for_settling().await;
        let settling = settle::settle(self.shared.clone(), self.post.clone(), job, verdict);
        self.settling = Some(self.shared.tasks.spawn(settling.instrument(span)));
    }

    async fn attempt(&mut self, job: &Claimed) -> Verdict {
        let started = Instant::now();
        let plan = self.post.plan();
        let mut progress = Progress { permit: job.permit.clone(), ..Progress::default() };
        let nobody_left = job.recipients.is_empty() && !job.suppressed.is_empty();
        let too_late = job.resend && job.expires_at.is_some_and(|at| at <= self.shared.clock.now());
        let begins = !job.over_limit && !nobody_left && !job.recipient_deleted && !too_late;
        // A panic must not take the courier, its connection or the process with it.
        let sent = match begins {
            true => Some(AssertUnwindSafe(self.send(job, &plan, &mut progress)).catch_unwind().await),
            false => None,
        };
        let post = self.post.clone();
        let account_at_fault = match &sent {
            Some(Ok(Sent::Tried(delivery))) => self.note_circuit(delivery, &plan),
            Some(Ok(Sent::Held(_)) | Err(_)) | None => None,
        };
        let converted = match &sent {
            Some(Ok(Sent::Tried(delivery))) => delivery.converted,
            Some(Ok(Sent::Held(_)) | Err(_)) | None => &[],
        };
        let attempt = Attempt {
            job,
            account: &post.key.account,
            committed: progress.wire.committed,
            offered: progress.wire.begun,
            permit: progress.permit.as_ref(),
            ended_at: self.shared.clock.now(),
            duration: started.elapsed(),
            remote: progress.remote,
            policy: &plan.settings.retry,
            account_at_fault,
            certified: plan.settings.pec,
            converted,
            takes_dsn: progress.takes_dsn,
        };
        match sent {
            Some(Ok(Sent::Tried(delivery))) => outcome::judge(&attempt, delivery, &mut rand::rng()),
            Some(Ok(Sent::Held(why))) => outcome::hold(&attempt, why),
            // Its text stays here: it may quote the mail. The process's panic hook has told where it was.
            Some(Err(_)) => {
                self.connection = None;
                tracing::error!("a message broke its courier");
                let failure = Failure::poison(Phase::Compose, "sending it caused an internal error");
                outcome::quarantine(&attempt, progress.wire.marked, failure)
            }
            None if job.recipient_deleted => outcome::recipient_deleted(&attempt, &mut rand::rng()),
            None if nobody_left => outcome::all_suppressed(&attempt, &mut rand::rng()),
            None if too_late => outcome::too_late(&attempt, &mut rand::rng()),
            None => outcome::over_limit(&attempt, &mut rand::rng()),
        }
    }

    /// One attempt, with one more try on a fresh connection if a pooled one turned out to be dead.
    async fn send(&mut self, job: &Claimed, plan: &Plan, progress: &mut Progress) -> Sent {
        let shared = self.shared.clone();
        if !may_begin(&shared).await {
            return Sent::Held(Hold::Isolated);
        }
        if let Some(wait) = self.post.circuit().pause_left(Instant::now()) {
            return Sent::Held(Hold::Paused(wait));
        }
        let domains = job.recipients.iter().map(|recipient| recipient.address.domain());
        let asked = self.post.destinations.ask(&plan.settings.destinations, domains, shared.clock.now());
        let _leave = match asked {
            Ok(leave) => leave,
            Err(wait) => return Sent::Held(Hold::Destination(wait)),
        };
        let fetched = permit::keep(&shared, &mut progress.permit, body(&shared, job));
        let (body, _memory) = match fetched.await {
            Ok(body) => body,
            Err(Lack::Broken(failure)) => return Sent::Tried(not_sent(job, failure)),
            Err(Lack::Away(failure)) => {
                tracing::warn!(code = %failure.code, error = failure.message, "its body cannot be read; the mail waits");
                return Sent::Held(Hold::Body(failure));
            }
        };
        panic_if_poisoned(&body);
        if !permit::refresh(&shared, &mut progress.permit).await {
            return Sent::Held(Hold::PermitExpired);
        }
        let recipients: Vec<&str> =
            job.recipients.iter().map(|recipient| recipient.address.as_str()).collect();
        let envelope = Envelope {
            sender: &job.sender,
            recipients: &recipients,
            size: body.len(),
            eight_bit: job.eight_bit,
            smtputf8: job.smtputf8,
            dsn: job.dsn.as_ref(),
        };
        match &plan.route {
            Route::Sandbox => {
                let sandbox = Sandbox { plays_relay: self.post.is_of_test_tenant(&shared).await };
                let mut gate = gate(&shared, job, &mut self.settling, progress);
                let delivery = sandbox.deliver(&envelope, &mut gate).await;
                Sent::of(delivery, &mut progress.wire)
            }
            Route::Broken(failure) => Sent::Tried(not_sent(job, failure.clone())),
            Route::Ses(client) => {
                progress.remote = Some(client.remote());
                let mut gate = gate(&shared, job, &mut self.settling, progress);
                let delivery = client.deliver(&envelope, &body, &mut gate).await;
                progress.wire.begun &= !is_before_the_request(&delivery.end);
                Sent::of(delivery, &mut progress.wire)
            }
            Route::Provider(client) => {
                progress.remote = Some(client.remote());
                let mut gate = gate(&shared, job, &mut self.settling, progress);
                let delivery = client.deliver(&envelope, job.uid, &body, &mut gate).await;
                progress.wire.begun &= !is_before_the_request(&delivery.end);
                Sent::of(delivery, &mut progress.wire)
            }
            Route::Smtp(settings) => {
                progress.remote = Some(format!("{}:{}", settings.host, settings.port));
                self.relay(job, plan, settings, &envelope, &body, progress).await
            }
        }
    }

    async fn relay(
        &mut self,
        job: &Claimed,
        plan: &Plan,
        settings: &SmtpSettings,
        envelope: &Envelope<'_>,
        body: &[u8],
        progress: &mut Progress,
    ) -> Sent {
        loop {
            let pooled = self.connection.take().filter(|line| line.version == plan.version);
            let pooled = pooled.and_then(|mut line| is_good(&mut line.connection).then_some(line));
            let was_reused = pooled.is_some();
            let mut line = match pooled {
                Some(line) => line,
                None => match SmtpConnection::open(settings, &self.shared.tls).await {
                    Ok(connection) => {
                        Line { version: plan.version, connection, _held: self.post.hold_connection() }
                    }
                    Err(failure) => return Sent::Tried(not_sent(job, failure)),
                },
            };
            // Connecting may have taken longer than the permit lasts.
            if !permit::refresh(&self.shared, &mut progress.permit).await {
                self.connection = Some(line);
                return Sent::Held(Hold::PermitExpired);
            }
            progress.takes_dsn = line.connection.offers_dsn();
            let mut gate = gate(&self.shared, job, &mut self.settling, progress);
            let delivery = line.connection.deliver(envelope, body, &mut gate).await;
            if line.connection.is_reusable() {
                self.connection = Some(line);
            }
            match &delivery.end {
                // Nothing of it was answered: it begins once more, with a permit that is good then.
                DeliveryEnd::NotSent(failure)
                    if was_reused && failure.is_stale() && !progress.wire.committed =>
                {
                    progress.wire.begun = false;
                }
                _ => return Sent::of(delivery, &mut progress.wire),
            }
        }
    }

    /// Opens or closes the account's circuit; returns how long the mail waits if the account is at fault.
    fn note_circuit(&self, delivery: &Delivery, plan: &Plan) -> Option<Duration> {
        if let Some(failure) = account_fault(delivery, &plan.route) {
            // Where another connection works, the relay has enough of them and is not gone.
            if !failure.is_account() && self.post.is_connected() {
                return Some(CROWDED_WAIT);
            }
            // A fault of settings that have been replaced meanwhile says nothing about the new ones.
            if plan.version == self.post.plan().version {
                let (wait, is_news) = self.post.circuit().fault(failure, self.shared.now());
                tracing::warn!(code = %failure.code, wait_s = wait.as_secs(), "the account is at fault; its mail waits");
                if is_news {
                    circuit::tell(&self.shared, &self.post);
                }
            }
            // Due at once: it is the circuit that holds the lane, and it may close any moment.
            return Some(Duration::ZERO);
        }
        if matches!(delivery.end, DeliveryEnd::Accepted { .. } | DeliveryEnd::Captured { .. })
            && self.post.circuit().success(Instant::now())
        {
            tracing::info!("the account works again");
            circuit::tell(&self.shared, &self.post);
        }
        let pause = delivery.pause?;
        self.post.circuit().pause(pause, Instant::now());
        // Waiting because the peer asks for it uses no retry.
        match &delivery.end {
            DeliveryEnd::NotSent(failure) if failure.is_transient() => Some(pause),
            _ => None,
        }
    }

    async fn wait_for_settling(&mut self) {
        if let Some(settling) = self.settling.take()
            && let Err(error) = settling.await
        {
            tracing::error!(%error, "settling a message ended badly");
        }
    }

    async fn hang_up(&mut self) {
        if let Some(Line { connection, .. }) = self.connection.take() {
            connection.quit().await;
        }
    }
}

/// Waits until this process is not isolated. Returns false when the process is to stop before that.
async fn may_begin(shared: &Shared) -> bool {
    tokio::select! {
        biased;
        () = shared.config.roster.rejoined() => true,
        () = shared.stop.cancelled() => false,
    }
}

fn gate<'a>(
    shared: &'a Shared,
    job: &'a Claimed,
    settling: &'a mut Option<JoinHandle<()>>,
    progress: &'a mut Progress,
) -> StoreGate<'a> {
    StoreGate { shared, job, permit: &mut progress.permit, settling, wire: &mut progress.wire }
}

fn is_good(connection: &mut SmtpConnection) -> bool {
    connection.is_reusable() && connection.age() < AGE_MAX && connection.messages_sent() < MESSAGES_MAX
}

fn not_sent(job: &Claimed, failure: Failure) -> Delivery {
    let recipients = job.recipients.iter().map(|_| RecipientReply::NotTried).collect();
    Delivery::new(recipients, DeliveryEnd::NotSent(failure))
}
