//! A courier: one task, one connection, one message after the other.
//!
//! While the outcome of one message is being made durable the next one is already on its way; the two meet in the same
//! commit, before the next message's dot. So a courier has at most one unsettled message, and never waits twice.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::FutureExt;
use postway_domain::{
    Failure,
    failure::{Category, Phase, Severity},
};
use postway_store::record::Claimed;
use tokio::{sync::SemaphorePermit, task::JoinHandle, time::Instant};
use tracing::Instrument;

use crate::{
    Shared,
    account::{Plan, Post, Route},
    gate::StoreGate,
    outcome::{self, Attempt, Verdict},
    settle,
    transport::{Delivery, DeliveryEnd, Envelope, RecipientReply, Sandbox, SmtpConnection},
};

/// A connection without work for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// A connection is replaced at this age, so that a relay's DNS or certificate change is noticed.
const AGE_MAX: Duration = Duration::from_secs(300);
/// A connection is replaced after this many messages, as relays limit them.
const MESSAGES_MAX: u64 = 1_000;
/// How long a courier without a connection waits for work before it goes home.
const HOME_AFTER: Duration = Duration::from_secs(60);

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
    connection: Option<(i64, SmtpConnection)>,
    settling: Option<JoinHandle<()>>,
}

impl Courier {
    async fn carry(&mut self, job: Claimed) {
        let span = tracing::info_span!(
            "attempt",
            uid = %job.uid,
            tenant = %job.lane.tenant,
            account = %job.lane.account,
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
        let mut committed = false;
        let mut remote = None;
        // A panic must not take the courier, its connection or the process with it.
        let sent = AssertUnwindSafe(self.send(job, &plan, &mut committed, &mut remote)).catch_unwind().await;
        let account_at_fault = sent.as_ref().is_ok_and(|delivery| self.note_circuit(delivery));
        let attempt = Attempt {
            job,
            committed,
            ended_at: self.shared.clock.now(),
            duration: started.elapsed(),
            remote,
            policy: &plan.retry,
            account_at_fault,
        };
        match sent {
            Ok(delivery) => outcome::judge(&attempt, delivery, &mut rand::rng()),
            // Its text stays here: it may quote the mail. The process's panic hook has told where it was.
            Err(_) => {
                self.connection = None;
                tracing::error!("a message broke its courier");
                outcome::quarantine(
                    &attempt,
                    Failure::poison(Phase::Compose, "sending it caused an internal error"),
                )
            }
        }
    }

    /// One attempt, with one more try on a fresh connection if a pooled one turned out to be dead.
    async fn send(
        &mut self,
        job: &Claimed,
        plan: &Plan,
        committed: &mut bool,
        remote: &mut Option<String>,
    ) -> Delivery {
        let shared = self.shared.clone();
        let (body, _memory) = match body(&shared, job).await {
            Ok(body) => body,
            Err(failure) => return not_sent(job, failure),
        };
        panic_if_poisoned(&body);
        let recipients: Vec<&str> =
            job.recipients.iter().map(|recipient| recipient.address.as_str()).collect();
        let envelope = Envelope {
            sender: &job.sender,
            recipients: &recipients,
            size: body.len(),
            eight_bit: job.eight_bit,
            smtputf8: job.smtputf8,
        };
        let settings = match &plan.route {
            Route::Sandbox => {
                let mut gate = gate(&self.shared, job, &mut self.settling, committed);
                return Sandbox.deliver(&envelope, &mut gate).await;
            }
            Route::Broken(failure) => return not_sent(job, failure.clone()),
            Route::Smtp(settings) => settings,
        };
        *remote = Some(format!("{}:{}", settings.host, settings.port));
        loop {
            let mut pooled = self.connection.take().filter(|(version, _)| *version == plan.version);
            pooled = pooled.and_then(|(version, mut connection)| {
                is_good(&mut connection).then_some((version, connection))
            });
            let was_reused = pooled.is_some();
            let mut connection = match pooled {
                Some((_, connection)) => connection,
                None => match SmtpConnection::open(settings, &self.shared.tls).await {
                    Ok(connection) => connection,
                    Err(failure) => return not_sent(job, failure),
                },
            };
            let mut gate = gate(&self.shared, job, &mut self.settling, committed);
            let delivery = connection.deliver(&envelope, &body, &mut gate).await;
            if connection.is_reusable() {
                self.connection = Some((plan.version, connection));
            }
            match &delivery.end {
                DeliveryEnd::NotSent(failure) if was_reused && failure.is_stale() && !*committed => {}
                _ => return delivery,
            }
        }
    }

    /// Opens or closes the account's circuit; returns whether the account is at fault.
    fn note_circuit(&self, delivery: &Delivery) -> bool {
        if let Some(failure) = account_fault(delivery) {
            let wait = self.post.circuit().fault(Instant::now());
            tracing::warn!(code = %failure.code, wait_s = wait.as_secs(), "the account is at fault; its mail waits");
            return true;
        }
        if matches!(delivery.end, DeliveryEnd::Accepted { .. }) && self.post.circuit().success() {
            tracing::info!("the account works again");
        }
        false
    }

    async fn wait_for_settling(&mut self) {
        if let Some(settling) = self.settling.take()
            && let Err(error) = settling.await
        {
            tracing::error!(%error, "settling a message ended badly");
        }
    }

    async fn hang_up(&mut self) {
        if let Some((_, connection)) = self.connection.take() {
            connection.quit().await;
        }
    }
}

/// The bytes to send, and for large ones the memory they count against.
async fn body<'s>(
    shared: &'s Shared,
    job: &Claimed,
) -> Result<(Bytes, Option<SemaphorePermit<'s>>), Failure> {
    if let Some(raw) = &job.raw {
        return Ok((raw.clone(), None));
    }
    let unreadable = |message: String| {
        Failure::new("body_unavailable", Category::Unknown, Phase::Compose, Severity::Transient, message)
    };
    let mib = job.size.div_ceil(1024 * 1024).clamp(1, crate::LARGE_BODIES_MIB as u32);
    let memory =
        shared.large_bodies.acquire_many(mib).await.map_err(|error| unreadable(error.to_string()))?;
    match shared.store.body(job.uid).await {
        Ok(Some(body)) => Ok((body, Some(memory))),
        Ok(None) => {
            let message = "the stored message has no body";
            Err(Failure::new("body_missing", Category::Unknown, Phase::Compose, Severity::Permanent, message))
        }
        Err(error) => Err(unreadable(error.to_string())),
    }
}

fn gate<'a>(
    shared: &'a Shared,
    job: &'a Claimed,
    settling: &'a mut Option<JoinHandle<()>>,
    committed: &'a mut bool,
) -> StoreGate<'a> {
    StoreGate { store: &shared.store, clock: &shared.clock, job, settling, committed }
}

fn is_good(connection: &mut SmtpConnection) -> bool {
    connection.is_reusable() && connection.age() < AGE_MAX && connection.messages_sent() < MESSAGES_MAX
}

/// The failure that is the account's fault rather than the mail's: of the transaction, or of any recipient.
fn account_fault(delivery: &Delivery) -> Option<&Failure> {
    if let DeliveryEnd::NotSent(failure) = &delivery.end
        && failure.is_account()
    {
        return Some(failure);
    }
    delivery.recipients.iter().find_map(|reply| match reply {
        RecipientReply::Refused(failure) if failure.is_account() => Some(failure),
        RecipientReply::Refused(_)
        | RecipientReply::Accepted(_)
        | RecipientReply::Deferred(_)
        | RecipientReply::NotTried => None,
    })
}

fn not_sent(job: &Claimed, failure: Failure) -> Delivery {
    let recipients = job.recipients.iter().map(|_| RecipientReply::NotTried).collect();
    Delivery { recipients, end: DeliveryEnd::NotSent(failure) }
}

/// Lets a test send a message that breaks its courier.
fn panic_if_poisoned(body: &[u8]) {
    #[cfg(feature = "failpoints")]
    if body.windows(23).take(4_096).any(|window| window == b"X-Poison: break courier") {
        panic!("a poisoned message");
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = body;
}
