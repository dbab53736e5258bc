//! Webhooks: one call for each event, signed as Standard Webhooks asks, or signed in where it goes to a tenant's own.
//!
//! A 2xx acknowledges, whatever its body. A 410 disables the subscriber; what it was to be told waits until somebody
//! switches it on again. A redirect is a failure: an address that has moved must be given anew.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{
    Clock, EventKind, MessageUid, Subscriber, SubscriberKind, Time, secret::SecretKey, subscriber::event_name,
};
use postway_net::http::{Answer, HttpClient};
use postway_store::{
    StoreError,
    record::{Changed, DirectoryChange},
};
use serde_json::json;

use crate::{
    call::{self, Called, LOGGED_BYTES_MAX},
    desk::Batch,
    outcome::{Conduct, Leased, Told, Verdict},
    signature::signatures,
    target::{self, Reach},
    tell::{Means, look_up, verdict},
    view::{Envelope, MessageView, received},
};

/// How long a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(15);
/// How long this process leaves a subscriber alone that it has just disabled. Short, since somebody may switch it on again
/// at once; as long as it is off the store gives out nothing for it.
const DISABLED_FOR: Duration = Duration::from_secs(5);

/// Tells the one notification of the batch.
pub(crate) async fn tell(means: &Means, batch: &Batch, reach: &Reach) -> Result<Told, StoreError> {
    let Some(leased) = batch.leased.first() else { return Ok(Told::uncalled(Vec::new(), None)) };
    let body = match body(means, leased).await? {
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
async fn body(means: &Means, leased: &Leased) -> Result<Result<String, Verdict>, StoreError> {
    let Some(event) = &leased.job.event else { return Ok(Err(Verdict::Gone)) };
    let Some(name) = event_name(event.kind, leased.job.deferred) else { return Ok(Err(Verdict::Pointless)) };
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
    let mut headers =
        vec![("webhook-id".to_owned(), id.to_owned()), ("webhook-timestamp".to_owned(), now_s.to_string())];
    if !reach.secrets.is_empty() {
        let signed = signatures(&reach.secrets, id, now_s, body.as_bytes());
        headers.push(("webhook-signature".to_owned(), signed));
    }
    let body = Bytes::copy_from_slice(body.as_bytes());
    call::post(http, clock, (&reach.url, &reach.auth), headers, body, timeout).await
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
    if subscriber.kind != SubscriberKind::Webhook {
        return refused("only a webhook takes a test event".to_owned());
    }
    let reach = match target::webhook(subscriber, secret_key, now) {
        Ok(reach) => reach,
        Err(reason) => return refused(reason),
    };
    let body = test_body(subscriber, now);
    let id = id_of(MessageUid::new(now, &mut rand::rng()), 0);
    let called = post(http, clock, &reach, (&id, &body), TIMEOUT).await;
    let logged = called.logged("", LOGGED_BYTES_MAX);
    Tested { status: logged.status, latency: called.latency, answer: logged.answer }
}

fn test_body(subscriber: &Subscriber, now: Time) -> String {
    json!({
        "type": "webhook.test",
        "timestamp": now,
        "sequence": 0,
        "data": { "tenant": subscriber.tenant, "webhook": subscriber.id },
    })
    .to_string()
}
