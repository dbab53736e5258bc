//! Webhooks: one call for each event, signed as Standard Webhooks asks, or signed in where it goes to a tenant's own.
//!
//! A 2xx acknowledges, whatever its body. A 410 disables the subscriber; what it was to be told waits until somebody
//! switches it on again. A redirect is a failure: an address that has moved must be given anew.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{Clock, EventKind, MessageUid, Subscriber, Time, WebhookForm, secret::SecretKey};
use postway_net::http::{Answer, HttpClient};
use postway_store::{
    StoreError,
    record::{Changed, DirectoryChange},
};
use serde_json::json;

use super::{
    Means,
    http_call::{self, Called, LOGGED_BYTES_MAX},
    look_up,
    payload::{Envelope, MessageView, received},
    resend_form, verdict,
};
use crate::{
    notification::{
        outcome::{Conduct, Leased, Told, Verdict},
        target::{self, Reach},
    },
    scheduler::Batch,
    signature::signatures,
};

/// How long a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(15);
/// How long this process leaves a subscriber alone that it has just disabled. Short, since somebody may switch it on again
/// at once; as long as it is off the store gives out nothing for it.
const DISABLED_FOR: Duration = Duration::from_secs(5);
/// Under which names a call carries its id, its time and its signature: those of Standard Webhooks, and those that it took over
/// from Svix, which receivers written for Resend and others read.
const HEADER_PREFIXES: [&str; 2] = ["webhook", "svix"];

/// Tells the one notification of the batch.
pub(crate) async fn tell(means: &Means, batch: &Batch, reach: &Reach) -> Result<Told, StoreError> {
    let Some(leased) = batch.leased.first() else { return Ok(Told::uncalled(Vec::new(), None)) };
    let form = batch.target.kind().form().unwrap_or(WebhookForm::Postway);
    let body = match body(means, leased, form).await? {
        Ok(body) => body,
        Err(reached) => return Ok(Told::uncalled(vec![verdict(means, leased, reached, None)], None)),
    };
    let id = id_of(leased.job.key.uid, leased.job.key.seq);
    let called = post(&means.http, &*means.clock, reach, (&id, &body), TIMEOUT.min(means.patience)).await;

    let is_taken = called.heard.as_ref().is_ok_and(Answer::is_success);
    let mut quiet_until = called.asked_for_quiet().map(|wait| called.at.plus(wait));
    let reached = match called.status() {
        _ if is_taken => Verdict::Acknowledged,
        Some(410) => {
            disable(means, &batch.target.subscriber).await;
            quiet_until = Some(called.at.plus(DISABLED_FOR));
            Verdict::Unwanted
        }
        _ => Verdict::Failed { asked: called.asked() },
    };
    let logged = called.logged(&body, LOGGED_BYTES_MAX);
    Ok(Told {
        notified: vec![verdict(means, leased, reached, Some(logged))],
        conduct: if is_taken { Conduct::Answered } else { Conduct::Failed },
        quiet_until,
        comes_again: false,
    })
}

/// What is told, or why nothing is. Of mail that came in the event has all there is to tell.
async fn body(
    means: &Means,
    leased: &Leased,
    form: WebhookForm,
) -> Result<Result<String, Verdict>, StoreError> {
    let Some(event) = &leased.job.event else { return Ok(Err(Verdict::Gone)) };
    let deferred = leased.job.deferred;
    let Some(name) = form.event_name(event.kind, deferred) else { return Ok(Err(Verdict::Pointless)) };
    if form == WebhookForm::Resend {
        let body = match event.kind {
            EventKind::Received => resend_form::of_received(event),
            _ => match look_up(means, leased).await? {
                Some((standing, event)) => resend_form::of_message(means, &standing, event, deferred).await?,
                None => return Ok(Err(Verdict::Gone)),
            },
        };
        return Ok(body.map(|body| body.to_string()).ok_or(Verdict::Pointless));
    }
    let (timestamp, sequence) = (event.at, event.seq);
    let body = match event.kind {
        EventKind::Received => {
            serde_json::to_string(&Envelope { name, timestamp, sequence, data: received(event) })
        }
        _ => match look_up(means, leased).await? {
            Some((standing, event)) => {
                let data = MessageView::new(&standing, event);
                serde_json::to_string(&Envelope { name, timestamp, sequence, data })
            }
            None => return Ok(Err(Verdict::Gone)),
        },
    };
    body.map(Ok).map_err(unwritable)
}

/// Something of ours that JSON cannot write: a fault of this program, met like one of the store.
pub(crate) fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::Unexpected(format!("a report cannot be written as JSON: {error}"))
}

/// The id of a call: the same for every try, so that a receiver knows what it has.
fn id_of(uid: MessageUid, seq: i64) -> String {
    format!("evt_{}_{seq}", uid.to_string().replace('-', ""))
}

async fn post(
    http: &HttpClient,
    clock: &dyn Clock,
    reach: &Reach,
    (id, body): (&str, &str),
    timeout: Duration,
) -> Called {
    let now_s = clock.now().as_seconds();
    let mut proof = vec![("id", id.to_owned()), ("timestamp", now_s.to_string())];
    if !reach.secrets.is_empty() {
        proof.push(("signature", signatures(&reach.secrets, id, now_s, body.as_bytes())));
    }
    let named = |prefix: &'static str| {
        proof.iter().map(move |(name, value)| (format!("{prefix}-{name}"), value.clone()))
    };
    let headers = HEADER_PREFIXES.into_iter().flat_map(named).collect();
    let body = Bytes::copy_from_slice(body.as_bytes());
    http_call::post(http, clock, (&reach.url, &reach.auth), headers, body, timeout).await
}

/// Switches a subscriber off that said 410. If somebody has changed it meanwhile, that says more than the answer; if it
/// cannot be stored, the next call will hear the same.
async fn disable(means: &Means, subscriber: &Subscriber) {
    let off = Subscriber {
        active: false,
        disabled_reason: Some("it answered 410: gone".to_owned()),
        version: subscriber.version + 1,
        updated_at: means.clock.now(),
        ..subscriber.clone()
    };
    let (tenant, id) = (&subscriber.tenant, &subscriber.id);
    let change = DirectoryChange::UpdateSubscriber(off, subscriber.version);
    match means.store.change(change, None).await {
        Ok(Changed::Done) => {
            tracing::warn!(%tenant, subscriber = %id, "a webhook answered 410 and is disabled")
        }
        Ok(_) => {
            tracing::info!(%tenant, subscriber = %id, "a webhook answered 410, but was changed meanwhile")
        }
        Err(error) => tracing::warn!(%tenant, subscriber = %id, %error, "a webhook could not be disabled"),
    }
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The status, if an answer came.
    pub status: Option<u16>,
    /// How long it took.
    pub latency: Duration,
    /// What was answered, shortened, or what went wrong.
    pub answer: String,
}

impl Tested {
    /// Whether the receiver would have had it.
    pub fn is_taken(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Calls a webhook with a test event (`webhook.test`), signed like all others. Nothing is stored, and nothing is repeated.
pub async fn call_test(
    http: &HttpClient,
    clock: &dyn Clock,
    secret_key: &SecretKey,
    subscriber: &Subscriber,
) -> Tested {
    let now = clock.now();
    let refused = |answer: String| Tested { status: None, latency: Duration::ZERO, answer };
    let Some(form) = subscriber.kind.form() else {
        return refused("only a webhook takes a test event".to_owned());
    };
    let reach = match target::webhook(subscriber, secret_key, now) {
        Ok(reach) => reach,
        Err(reason) => return refused(reason),
    };
    let body = test_body(subscriber, form, now);
    let id = id_of(MessageUid::new(now, &mut rand::rng()), 0);
    let called = post(http, clock, &reach, (&id, &body), TIMEOUT).await;
    let logged = called.logged("", LOGGED_BYTES_MAX);
    Tested { status: logged.status, latency: called.latency, answer: logged.answer }
}

fn test_body(subscriber: &Subscriber, form: WebhookForm, now: Time) -> String {
    let data = json!({ "tenant": subscriber.tenant, "webhook": subscriber.id });
    let body = match form {
        WebhookForm::Postway => {
            json!({ "type": "webhook.test", "timestamp": now, "sequence": 0, "data": data })
        }
        WebhookForm::Resend => resend_form::of_test(data, now),
    };
    body.to_string()
}
