//! A courier: one task that sends the messages of one account over one connection, one after the other.
//!
//! While the outcome of one message is being made durable, the courier already sends the envelope and body of
//! the next. The two writes meet in one commit, before the next message's dot. So a courier has at most one
//! unsettled message, and waits for the database once per message, not twice.

mod account_fault;
mod attempt_span;
mod message_body;
mod permit;
mod report_wishes;
mod wire_gate;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use postway_domain::{SendFailure, failure::FailurePhase};
use postway_store::record::{ClaimedMessage, SendingPermit};
use postway_trace::TraceContext;
use tokio::{task::JoinHandle, time::Instant};
use tracing::Instrument;

use self::{
    account_fault::{account_fault, is_before_the_request},
    message_body::{BodyError, panic_if_poisoned, read_body},
    report_wishes::report_wishes,
    wire_gate::{StoreGate, WireProgress},
};
use crate::{
    account::{
        AccountSender, ConnectionCount,
        circuit::store_circuit,
        config::{AccountConfig, AccountTransport},
        destinations::{DestinationSlots, domains_of, limited_lane},
        job_queue::QueuedJob,
    },
    context::DispatchContext,
    outcome::{self, AttemptFacts, AttemptVerdict, ReturnReason, settle},
    transport::{
        DeliveryEnd, DeliveryResult, HandshakeMilestones, MailEnvelope, RecipientReply, SandboxTransport,
        SmtpConnection, SmtpSettings,
    },
};

/// A connection without work for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// A connection is replaced at this age, so that a change of the relay's DNS or certificate takes effect.
const AGE_MAX: Duration = Duration::from_secs(300);
/// A connection is replaced after this many messages, because relays limit them.
const MESSAGES_MAX: u64 = 1_000;
/// A courier without a connection retires after this long without work.
const RETIRE_AFTER: Duration = Duration::from_secs(60);
/// How long a message waits when its connection was refused while other connections work.
const CROWDED_WAIT: Duration = Duration::from_secs(1);

/// Sends the messages of one account until there are none.
pub(crate) async fn run(context: Arc<DispatchContext>, sender: Arc<AccountSender>) {
    let mut courier = Courier { context, sender, connection: None, settling: None };
    loop {
        let idle_max = if courier.connection.is_some() { IDLE_MAX } else { RETIRE_AFTER };
        let job = tokio::select! {
            biased;
            () = courier.context.stop.cancelled() => None,
            job = courier.sender.queue.next(idle_max) => job,
        };
        match job {
            Some(job) => courier.send_and_settle(job).await,
            None if courier.context.stop.is_cancelled() => break,
            None => {
                courier.close_connection().await;
                if courier.sender.queue.retire_courier() {
                    break;
                }
            }
        }
    }
    courier.close_connection().await;
    courier.wait_for_settling().await;
}

struct Courier {
    context: Arc<DispatchContext>,
    sender: Arc<AccountSender>,
    connection: Option<OpenConnection>,
    settling: Option<JoinHandle<()>>,
}

/// A connection, with the version of the account that it was opened for.
struct OpenConnection {
    version: i64,
    connection: SmtpConnection,
    _count: ConnectionCount,
}

/// How far an attempt has come. Kept outside the attempt, so that it survives a panic in it.
#[derive(Default)]
struct AttemptProgress {
    wire: WireProgress,
    /// The permit of the claim, or its latest renewal.
    permit: Option<SendingPermit>,
    remote: Option<String>,
    /// Whether the relay offers DSN, so that the wishes about reports go with the mail; `None` if there are
    /// none.
    dsn_offered: Option<bool>,
    /// The span of the attempt.
    trace: Option<TraceContext>,
}

/// How an attempt to send ended.
enum SendResult {
    /// The transport has tried, with this result.
    Attempted(DeliveryResult),
    /// Nothing was sent; the message is returned.
    Returned(ReturnReason),
}

impl SendResult {
    /// The result of a delivery. A mail that this process did not let begin was not attempted, so it is
    /// returned.
    fn from_delivery(delivery: DeliveryResult, wire: &mut WireProgress) -> Self {
        match wire.return_reason.take() {
            Some(reason) if !wire.begun && !wire.committed => Self::Returned(reason),
            Some(_) | None => Self::Attempted(delivery),
        }
    }
}

impl Courier {
    async fn send_and_settle(&mut self, job: QueuedJob) {
        let QueuedJob { message: job, slots } = job;
        let span = tracing::info_span!(
            "attempt",
            uid = %job.uid,
            tenant = %job.lane.tenant,
            account = %self.sender.key.account,
            attempt = job.attempt,
            request_id = job.request_id.as_deref(),
            trace_id = attempt_span::trace_id(&job),
        );
        let traced = attempt_span::begin(&job, &self.sender.key.account);
        let verdict = self.attempt(&job, slots, traced.context()).instrument(span.clone()).await;
        attempt_span::end(traced, &verdict);
        self.wait_for_settling().await;
        let settling = settle::settle(self.context.clone(), self.sender.clone(), job, verdict);
        self.settling = Some(self.context.tasks.spawn(settling.instrument(span)));
    }

    async fn attempt(
        &mut self,
        job: &ClaimedMessage,
        slots: Option<DestinationSlots>,
        trace: Option<TraceContext>,
    ) -> AttemptVerdict {
        let started = Instant::now();
        let config = self.sender.config();
        let mut progress =
            AttemptProgress { permit: job.permit.clone(), trace, ..AttemptProgress::default() };
        let nobody_left = job.recipients.is_empty() && !job.suppressed.is_empty();
        let too_late = job.resend && job.expires_at.is_some_and(|at| at <= self.context.clock.now());
        let begins = !job.over_limit && !nobody_left && !job.recipient_deleted && !too_late;
        // A panic must not take the courier, its connection or the process with it.
        let sent = match begins {
            true => {
                Some(AssertUnwindSafe(self.send(job, slots, &config, &mut progress)).catch_unwind().await)
            }
            false => None,
        };
        let sender = self.sender.clone();
        let account_at_fault = match &sent {
            Some(Ok(SendResult::Attempted(delivery))) => self.note_circuit(delivery, &config),
            Some(Ok(SendResult::Returned(_)) | Err(_)) | None => None,
        };
        let converted = match &sent {
            Some(Ok(SendResult::Attempted(delivery))) => delivery.converted,
            Some(Ok(SendResult::Returned(_)) | Err(_)) | None => &[],
        };
        let attempt = AttemptFacts {
            job,
            account: &sender.key.account,
            committed: progress.wire.committed,
            offered: progress.wire.begun,
            permit: progress.permit.as_ref(),
            ended_at: self.context.clock.now(),
            duration: started.elapsed(),
            remote: progress.remote,
            policy: &config.settings.retry,
            account_at_fault,
            certified: config.settings.pec,
            converted,
            dsn_offered: progress.dsn_offered,
        };
        match sent {
            Some(Ok(SendResult::Attempted(delivery))) => {
                outcome::judge_attempt(&attempt, delivery, &mut rand::rng())
            }
            Some(Ok(SendResult::Returned(reason))) => outcome::return_message(&attempt, reason),
            // The panic's text is not repeated, because it may quote the mail; the panic hook has logged its
            // location.
            Some(Err(_)) => {
                self.connection = None;
                tracing::error!("a message broke its courier");
                let failure =
                    SendFailure::poison(FailurePhase::Compose, "sending it caused an internal error");
                outcome::quarantine(&attempt, progress.wire.marked, failure)
            }
            None if job.recipient_deleted => outcome::recipient_deleted(&attempt, &mut rand::rng()),
            None if nobody_left => outcome::all_suppressed(&attempt, &mut rand::rng()),
            None if too_late => outcome::too_late(&attempt, &mut rand::rng()),
            None => outcome::over_limit(&attempt, &mut rand::rng()),
        }
    }

    /// Makes one attempt, with one more try on a fresh connection if a pooled one turns out to be dead.
    async fn send(
        &mut self,
        job: &ClaimedMessage,
        slots: Option<DestinationSlots>,
        config: &AccountConfig,
        progress: &mut AttemptProgress,
    ) -> SendResult {
        let context = self.context.clone();
        if !may_begin(&context).await {
            return SendResult::Returned(ReturnReason::Isolated);
        }
        if let Some(wait) = self.sender.circuit().pause_left(Instant::now()) {
            return SendResult::Returned(ReturnReason::Paused(wait));
        }
        let now = context.clock.now();
        let reserved = match slots {
            Some(slots) => Ok(slots),
            None => self.sender.destinations.reserve(&config.destinations, domains_of(job), now),
        };
        let _slots = match reserved {
            Ok(slots) => slots.begin(now),
            Err(wait) => {
                let lane = limited_lane(job, &config.destinations);
                return SendResult::Returned(ReturnReason::Destination { wait, lane });
            }
        };
        let fetched = permit::renew_during(&context, &mut progress.permit, read_body(&context, job));
        let (body, _memory) = match fetched.await {
            Ok(body) => body,
            Err(BodyError::Damaged(failure)) => return SendResult::Attempted(not_sent(job, failure)),
            Err(BodyError::Unreadable(failure)) => {
                tracing::warn!(code = %failure.code, error = failure.message, "its body cannot be read; the mail waits");
                return SendResult::Returned(ReturnReason::Body(failure));
            }
        };
        panic_if_poisoned(&body);
        if !permit::refresh(&context, &mut progress.permit).await {
            return SendResult::Returned(ReturnReason::PermitExpired);
        }
        let recipients: Vec<&str> =
            job.recipients.iter().map(|recipient| recipient.address.as_str()).collect();
        let wishes = report_wishes(job, config.settings.dsn);
        progress.dsn_offered = wishes.is_some().then_some(false);
        let envelope = MailEnvelope {
            sender: &job.sender,
            recipients: &recipients,
            size: body.len(),
            eight_bit: job.eight_bit,
            smtputf8: job.smtputf8,
            dsn: wishes.as_deref(),
            trace: progress.trace,
        };
        match &config.transport {
            AccountTransport::Sandbox => {
                let sandbox =
                    SandboxTransport { plays_relay: self.sender.belongs_to_test_tenant(&context).await };
                let mut gate = gate(&context, job, &mut self.settling, progress);
                let delivery = sandbox.deliver(&envelope, &mut gate).await;
                SendResult::from_delivery(delivery, &mut progress.wire)
            }
            AccountTransport::Unusable(failure) => SendResult::Attempted(not_sent(job, failure.clone())),
            AccountTransport::Ses(client) => {
                progress.remote = Some(client.remote());
                let mut gate = gate(&context, job, &mut self.settling, progress);
                let delivery = client.deliver(&envelope, &body, &mut gate).await;
                progress.wire.begun &= !is_before_the_request(&delivery.end);
                SendResult::from_delivery(delivery, &mut progress.wire)
            }
            AccountTransport::Provider(client) => {
                progress.remote = Some(client.remote());
                let mut gate = gate(&context, job, &mut self.settling, progress);
                let delivery = client.deliver(&envelope, job.uid, &body, &mut gate).await;
                progress.wire.begun &= !is_before_the_request(&delivery.end);
                SendResult::from_delivery(delivery, &mut progress.wire)
            }
            AccountTransport::Smtp(settings) => {
                progress.remote = Some(format!("{}:{}", settings.host, settings.port));
                self.relay(job, config, settings, &envelope, &body, progress).await
            }
        }
    }

    async fn relay(
        &mut self,
        job: &ClaimedMessage,
        config: &AccountConfig,
        settings: &SmtpSettings,
        envelope: &MailEnvelope<'_>,
        body: &[u8],
        progress: &mut AttemptProgress,
    ) -> SendResult {
        loop {
            let pooled = self.connection.take().filter(|open| open.version == config.version);
            let pooled = pooled.and_then(|mut open| is_fresh(&mut open.connection).then_some(open));
            let was_reused = pooled.is_some();
            let mut reached = HandshakeMilestones::default();
            let mut open = match pooled {
                Some(open) => open,
                None => {
                    match attempt_span::connect(envelope, settings, &self.context.tls, &mut reached).await {
                        Ok(connection) => OpenConnection {
                            version: config.version,
                            connection,
                            _count: self.sender.count_connection(),
                        },
                        Err(failure) => {
                            let dialogue = Some(reached.opening.ended_by(&failure));
                            return SendResult::Attempted(DeliveryResult {
                                dialogue,
                                ..not_sent(job, failure)
                            });
                        }
                    }
                }
            };
            // Connecting may have taken longer than the permit is valid.
            if !permit::refresh(&self.context, &mut progress.permit).await {
                self.connection = Some(open);
                return SendResult::Returned(ReturnReason::PermitExpired);
            }
            progress.dsn_offered = envelope.dsn.map(|_| open.connection.offers_dsn());
            let mut gate = gate(&self.context, job, &mut self.settling, progress);
            let delivery = open.connection.deliver(envelope, body, &mut gate).await;
            if open.connection.is_reusable() {
                self.connection = Some(open);
            }
            match &delivery.end {
                // The dead connection carried nothing of the mail, so it begins once more on a new one.
                DeliveryEnd::NotSent(failure)
                    if was_reused && failure.is_stale() && !progress.wire.committed =>
                {
                    progress.wire.begun = false;
                }
                DeliveryEnd::NotSent(_)
                | DeliveryEnd::Accepted { .. }
                | DeliveryEnd::Captured { .. }
                | DeliveryEnd::InDoubt(_)
                | DeliveryEnd::GateRefused
                | DeliveryEnd::NoRecipients => {
                    return SendResult::from_delivery(delivery, &mut progress.wire);
                }
            }
        }
    }

    /// Opens or closes the account's circuit after a delivery. Returns how long the mail waits if the account
    /// is at fault.
    fn note_circuit(&self, delivery: &DeliveryResult, config: &AccountConfig) -> Option<Duration> {
        if let Some(failure) = account_fault(delivery, &config.transport) {
            // If another connection works, the relay is reachable and merely limits connections.
            if !failure.is_account() && self.sender.is_connected() {
                return Some(CROWDED_WAIT);
            }
            // A fault of settings that were replaced meanwhile says nothing about the new ones.
            if config.version == self.sender.config().version {
                let (wait, is_news) = self.sender.circuit().note_fault(failure, self.context.now());
                tracing::warn!(code = %failure.code, wait_s = wait.as_secs(), "the account is at fault; its mail waits");
                if is_news {
                    store_circuit(&self.context, &self.sender);
                }
            }
            // Due at once: the open circuit blocks the lane, and it may close at any moment.
            return Some(Duration::ZERO);
        }
        if matches!(delivery.end, DeliveryEnd::Accepted { .. } | DeliveryEnd::Captured { .. })
            && self.sender.circuit().note_success(Instant::now())
        {
            tracing::info!("the account works again");
            store_circuit(&self.context, &self.sender);
        }
        let pause = delivery.pause?;
        self.sender.circuit().pause(pause, Instant::now());
        // A wait that the peer asked for uses no retry.
        match &delivery.end {
            DeliveryEnd::NotSent(failure) => failure.is_transient().then_some(pause),
            DeliveryEnd::Accepted { .. }
            | DeliveryEnd::Captured { .. }
            | DeliveryEnd::InDoubt(_)
            | DeliveryEnd::GateRefused
            | DeliveryEnd::NoRecipients => None,
        }
    }

    async fn wait_for_settling(&mut self) {
        if let Some(settling) = self.settling.take()
            && let Err(error) = settling.await
        {
            tracing::error!(%error, "settling a message ended badly");
        }
    }

    async fn close_connection(&mut self) {
        if let Some(OpenConnection { connection, .. }) = self.connection.take() {
            connection.quit().await;
        }
    }
}

/// Waits until this process is not isolated. Returns false if the process is to stop before that.
async fn may_begin(context: &DispatchContext) -> bool {
    tokio::select! {
        biased;
        () = context.config.roster.rejoined() => true,
        () = context.stop.cancelled() => false,
    }
}

fn gate<'a>(
    context: &'a DispatchContext,
    job: &'a ClaimedMessage,
    settling: &'a mut Option<JoinHandle<()>>,
    progress: &'a mut AttemptProgress,
) -> StoreGate<'a> {
    let AttemptProgress { permit, wire, trace, .. } = progress;
    StoreGate { context, job, permit, settling, wire, trace: *trace }
}

fn is_fresh(connection: &mut SmtpConnection) -> bool {
    connection.is_reusable() && connection.age() < AGE_MAX && connection.messages_sent() < MESSAGES_MAX
}

fn not_sent(job: &ClaimedMessage, failure: SendFailure) -> DeliveryResult {
    let recipients = job.recipients.iter().map(|_| RecipientReply::NotTried).collect();
    DeliveryResult::new(recipients, DeliveryEnd::NotSent(failure))
}
