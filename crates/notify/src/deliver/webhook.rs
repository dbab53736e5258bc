//! Webhooks: one call for each event, with a Standard Webhooks signature, or with credentials if it goes to a
//! tenant's own client.
//!
//! A 2xx acknowledges, whatever its body. A 410 disables the subscriber; its notifications wait until the
//! subscriber is enabled again. A redirect is a failure: the new address must be configured.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{
    Clock, EventKind, MessageEvent, MessageUid, Subscriber, Time, WebhookForm, secret::SecretKey,
};
use postway_net::http::{HttpAnswer, HttpClient};
use postway_store::{
    StoreError,
    record::{ChangeResult, DirectoryChange},
};
use postway_trace::{Span, TraceContext};
use serde_json::{json, value::RawValue};

use super::{
    call_span,
    context::{DeliveryContext, read_message, verdict},
    http_call::{self, FinishedCall, LOGGED_BYTES_MAX},
    payload::{WebhookEnvelope, WebhookMessage, unwritable},
    postmark_form,
    received_mail::{self, ReceivedLinks},
    resend_form,
};
use crate::{
    notification::{
        batch::NotificationBatch,
        call_limits::WEBHOOK_TIMEOUT,
        outcome::{BatchOutcome, LeasedNotification, NotificationVerdict, SubscriberConduct},
        target::{self, SubscriberAccess},
    },
    signature::signatures,
};

/// How long this process leaves a subscriber alone that it has just disabled. The time is short, because the
/// subscriber may be enabled again at once; while it is disabled the store gives out none of its
/// notifications.
const DISABLED_FOR: Duration = Duration::from_secs(5);
/// The prefixes of the headers with a call's id, time and signature: those of Standard Webhooks, and those of
/// Svix, from which the specification comes and which receivers written for Resend and others read.
const HEADER_PREFIXES: [&str; 2] = ["webhook", "svix"];

/// Delivers the one notification of the batch.
pub(crate) async fn deliver(
    context: &DeliveryContext,
    batch: &NotificationBatch,
    access: &SubscriberAccess,
) -> Result<BatchOutcome, StoreError> {
    let Some(leased) = batch.leased.first() else { return Ok(BatchOutcome::uncalled(Vec::new(), None)) };
    let form = batch.target.kind().form().unwrap_or(WebhookForm::Postway);
    let (body, place) = match body(context, leased, form).await? {
        Ok(made) => made,
        Err(reached) => {
            return Ok(BatchOutcome::uncalled(vec![verdict(context, leased, reached, None)], None));
        }
    };
    let id = id_of(leased.job.key.uid, leased.job.key.seq);
    let span = call_span::begin(&batch.target.subscriber, [place]);
    let timeout = WEBHOOK_TIMEOUT.min(context.patience);
    let called = post(&context.http, &*context.clock, access, (&id, &body, &span), timeout).await;
    call_span::end(span, &called);

    let is_taken = called.answer.as_ref().is_ok_and(HttpAnswer::is_success);
    let mut quiet_until = called.requested_quiet().map(|wait| called.at.plus(wait));
    let reached = match called.status() {
        _ if is_taken => NotificationVerdict::Acknowledged,
        Some(410) => {
            disable(context, &batch.target.subscriber).await;
            quiet_until = Some(called.at.plus(DISABLED_FOR));
            NotificationVerdict::Unwanted
        }
        _ => NotificationVerdict::Failed { asked: called.retry_after() },
    };
    let logged = called.logged(&body, LOGGED_BYTES_MAX);
    Ok(BatchOutcome {
        notified: vec![verdict(context, leased, reached, Some(logged))],
        conduct: if is_taken { SubscriberConduct::Answered } else { SubscriberConduct::Failed },
        quiet_until,
        comes_again: false,
    })
}

/// The body of a call and the place of its message in a trace, or the verdict if there is nothing to call.
async fn body(
    context: &DeliveryContext,
    leased: &LeasedNotification,
    form: WebhookForm,
) -> Result<Result<(String, Option<TraceContext>), NotificationVerdict>, StoreError> {
    let Some(event) = &leased.job.event else { return Ok(Err(NotificationVerdict::Gone)) };
    let deferred = leased.job.deferred;
    let Some(name) = form.event_name(event.kind, deferred) else {
        return Ok(Err(NotificationVerdict::Pointless));
    };
    if event.kind == EventKind::Received {
        let body = received_body(context, leased, event, form, name).await?;
        return Ok(body.map(|body| (body, None)));
    }
    if !event.kind.is_of_message() {
        // Only our own form has a name for these.
        let data = event.data.as_deref().unwrap_or("{}");
        let data: &RawValue = serde_json::from_str(data).map_err(unwritable)?;
        let (timestamp, sequence) = (event.at, event.seq);
        return serde_json::to_string(&WebhookEnvelope { name, timestamp, sequence, data })
            .map(|body| Ok((body, None)))
            .map_err(unwritable);
    }
    let Some((snapshot, event)) = read_message(context, leased).await? else {
        return Ok(Err(NotificationVerdict::Gone));
    };
    let body = match form {
        WebhookForm::Postway => {
            let (timestamp, sequence) = (event.at, event.seq);
            let data = WebhookMessage::new(&snapshot, event);
            let body = serde_json::to_string(&WebhookEnvelope { name, timestamp, sequence, data });
            Ok(body.map_err(unwritable)?)
        }
        WebhookForm::Resend => {
            let body = resend_form::message_body(context, &snapshot, event, deferred).await?;
            body.map(|body| body.to_string()).ok_or(NotificationVerdict::Pointless)
        }
        WebhookForm::Postmark => {
            let body = postmark_form::message_body(&snapshot, event);
            body.map(|body| body.to_string()).ok_or(NotificationVerdict::Pointless)
        }
    };
    Ok(body.map(|body| (body, snapshot.brief.summary.trace)))
}

/// The body of a call about received mail. Postmark's form is nothing without the mail.
async fn received_body(
    context: &DeliveryContext,
    leased: &LeasedNotification,
    event: &MessageEvent,
    form: WebhookForm,
    name: &'static str,
) -> Result<Result<String, NotificationVerdict>, StoreError> {
    let (tenant, uid) = (&leased.job.key.tenant, leased.job.key.uid);
    let mail = received_mail::read(context, tenant, uid).await?;
    let links = ReceivedLinks::new(context, tenant, uid);
    let body = match (form, mail) {
        (WebhookForm::Postway, mail) => {
            let data = received_mail::own_data(event, mail.as_ref(), &links);
            let (timestamp, sequence) = (event.at, event.seq);
            return serde_json::to_string(&WebhookEnvelope { name, timestamp, sequence, data })
                .map(Ok)
                .map_err(unwritable);
        }
        (WebhookForm::Resend, mail) => resend_form::received_body(event, mail.as_ref(), &links),
        (WebhookForm::Postmark, Some(mail)) => Some(received_mail::postmark_body(event, &mail, &links)),
        (WebhookForm::Postmark, None) => None,
    };
    Ok(body.map(|body| body.to_string()).ok_or(NotificationVerdict::Pointless))
}

/// The id of a call. It is the same for every try, so that a receiver recognises a repetition.
fn id_of(uid: MessageUid, seq: i64) -> String {
    format!("evt_{}_{seq}", uid.to_string().replace('-', ""))
}

async fn post(
    http: &HttpClient,
    clock: &dyn Clock,
    access: &SubscriberAccess,
    (id, body, span): (&str, &str, &Span),
    timeout: Duration,
) -> FinishedCall {
    let now_s = clock.now().as_seconds();
    let mut proof = vec![("id", id.to_owned()), ("timestamp", now_s.to_string())];
    if !access.secrets.is_empty() {
        proof.push(("signature", signatures(&access.secrets, id, now_s, body.as_bytes())));
    }
    let named = |prefix: &'static str| {
        proof.iter().map(move |(name, value)| (format!("{prefix}-{name}"), value.clone()))
    };
    let headers = HEADER_PREFIXES.into_iter().flat_map(named).chain(call_span::header(span)).collect();
    let body = Bytes::copy_from_slice(body.as_bytes());
    http_call::post(http, clock, (&access.url, &access.auth), headers, body, timeout).await
}

/// Disables a subscriber that answered 410. If it was changed meanwhile, the change wins; if the store fails,
/// the next call will get the same answer.
async fn disable(context: &DeliveryContext, subscriber: &Subscriber) {
    let off = Subscriber {
        active: false,
        disabled_reason: Some("it answered 410: gone".to_owned()),
        version: subscriber.version + 1,
        updated_at: context.clock.now(),
        ..subscriber.clone()
    };
    let (tenant, id) = (&subscriber.tenant, &subscriber.id);
    let change = DirectoryChange::UpdateSubscriber(off, subscriber.version);
    match context.store.change(change, None).await {
        Ok(ChangeResult::Done) => {
            tracing::warn!(%tenant, subscriber = %id, "a webhook answered 410 and is disabled")
        }
        Ok(_) => {
            tracing::info!(%tenant, subscriber = %id, "a webhook answered 410, but was changed meanwhile")
        }
        Err(error) => tracing::warn!(%tenant, subscriber = %id, %error, "a webhook could not be disabled"),
    }
}

/// The result of a test call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookTestResult {
    /// The status of the answer, if there is one.
    pub status: Option<u16>,
    /// How long the call took.
    pub latency: Duration,
    /// The shortened answer, or what went wrong.
    pub answer: String,
}

impl WebhookTestResult {
    /// Whether the receiver would have acknowledged a notification.
    pub fn is_taken(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Calls a webhook with a test event (`webhook.test`), signed like all others. Nothing is stored, and the
/// call is not repeated.
pub async fn call_test(
    http: &HttpClient,
    clock: &dyn Clock,
    secret_key: &SecretKey,
    subscriber: &Subscriber,
) -> WebhookTestResult {
    let now = clock.now();
    let refused = |answer: String| WebhookTestResult { status: None, latency: Duration::ZERO, answer };
    let Some(form) = subscriber.kind.form() else {
        return refused("only a webhook takes a test event".to_owned());
    };
    let access = match target::webhook(subscriber, secret_key, now) {
        Ok(access) => access,
        Err(reason) => return refused(reason),
    };
    let body = test_body(subscriber, form, now);
    let id = id_of(MessageUid::new(now, &mut rand::rng()), 0);
    let called = post(http, clock, &access, (&id, &body, &Span::default()), WEBHOOK_TIMEOUT).await;
    let logged = called.logged("", LOGGED_BYTES_MAX);
    WebhookTestResult { status: logged.status, latency: called.latency, answer: logged.answer }
}

fn test_body(subscriber: &Subscriber, form: WebhookForm, now: Time) -> String {
    let data = json!({ "tenant": subscriber.tenant, "webhook": subscriber.id });
    let body = match form {
        WebhookForm::Postway => {
            json!({ "type": "webhook.test", "timestamp": now, "sequence": 0, "data": data })
        }
        WebhookForm::Resend => resend_form::test_body(data, now),
        WebhookForm::Postmark => postmark_form::test_body(now),
    };
    body.to_string()
}
