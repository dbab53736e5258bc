//! Callbacks in the vocabulary of an outbox: `TRAVELING` when a message was sent, `DISPATCH-ERROR` with the
//! reason when it will not arrive.
//!
//! Messages with the same code and the same reason share a call. Any 2xx acknowledges; a 409, like every
//! other status, means that the call is tried again. Each call is recorded in the messages' histories before
//! it is made, so that a process that dies during a call leaves a trace. That costs one write for each call,
//! however many messages it carries.

use bytes::Bytes;
use postway_domain::{EventKind, MessageEvent, MessageStatus, Time};
use postway_store::{
    StoreError,
    record::{BegunCall, MessageBrief, NotificationResult},
};
use postway_trace::{Span, TraceContext};
use serde::Serialize;

use super::{
    call_span,
    context::{DeliveryContext, STORE_AWAY, read_message, verdict, verdict_without_message},
    http_call::{self, LOGGED_BYTES_MAX, LOGGED_SHARED_BYTES_MAX},
    payload::{id_of, reason, unwritable},
};
use crate::notification::{
    batch::NotificationBatch,
    call_limits::CALLBACK_TIMEOUT,
    outcome::{BatchOutcome, LeasedNotification, NotificationVerdict, SubscriberConduct},
    target::SubscriberAccess,
};

/// The code of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum CallbackCode {
    /// The relay took the message.
    #[serde(rename = "TRAVELING")]
    Traveling,
    /// The message will not arrive.
    #[serde(rename = "DISPATCH-ERROR")]
    DispatchError,
}

#[derive(Serialize)]
struct CallbackBody<'a> {
    code: CallbackCode,
    /// When the last of these messages reached its end.
    reached_at: Time,
    message_ids: &'a [String],
    reason: Option<&'a str>,
}

/// Messages that share a call.
struct CallbackGroup<'l> {
    code: CallbackCode,
    reason: Option<String>,
    reached_at: Time,
    ids: Vec<String>,
    leased: Vec<&'l LeasedNotification>,
    /// The places of the messages in traces.
    places: Vec<Option<TraceContext>>,
}

/// Delivers the batch, one call for each group. After a call fails, the remaining groups are not called: they
/// would fail too.
pub(crate) async fn deliver(
    context: &DeliveryContext,
    batch: &NotificationBatch,
    access: &SubscriberAccess,
) -> Result<BatchOutcome, StoreError> {
    let mut outcome = BatchOutcome::uncalled(Vec::with_capacity(batch.leased.len()), None);
    let mut groups: Vec<CallbackGroup<'_>> = Vec::new();
    for leased in &batch.leased {
        let Some((snapshot, event)) = read_message(context, leased).await? else {
            outcome.notified.push(verdict(context, leased, verdict_without_message(leased), None));
            continue;
        };
        let record = &snapshot.brief;
        match callback_code(record, event) {
            Some(code) => add_to_group(&mut groups, leased, code, record, event),
            None => outcome.notified.push(verdict(context, leased, NotificationVerdict::Pointless, None)),
        }
    }
    for group in groups {
        let is_late =
            group.leased.iter().any(|leased| leased.until < context.clock.now().plus(CALLBACK_TIMEOUT));
        if outcome.conduct == SubscriberConduct::Failed || is_late {
            let back =
                |leased: &&LeasedNotification| verdict(context, leased, NotificationVerdict::GivenBack, None);
            outcome.notified.extend(group.leased.iter().map(back));
            continue;
        }
        if let Some(group) = record_begun_calls(context, group, &mut outcome).await {
            let span = call_span::begin(&batch.target.subscriber, group.places.iter().copied());
            call_group(context, access, (&group, span), &mut outcome).await?;
        }
    }
    Ok(outcome)
}

/// Records in the histories that a group is about to be called. Notifications that another process has
/// claimed since are left to it. If the record cannot be written, the whole group is left for later.
async fn record_begun_calls<'l>(
    context: &DeliveryContext,
    group: CallbackGroup<'l>,
    outcome: &mut BatchOutcome,
) -> Option<CallbackGroup<'l>> {
    let at = context.clock.now();
    let begun =
        |leased: &&LeasedNotification| BegunCall { key: leased.job.key.clone(), token: leased.token, at };
    let held = match context.store.begin_calls(group.leased.iter().map(begun).collect()).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "a callback could not be written to the histories, so it is made later");
            outcome.quiet_until = outcome.quiet_until.max(Some(at.plus(STORE_AWAY)));
            vec![false; group.leased.len()]
        }
    };
    let (mut ids, mut leased) = (Vec::with_capacity(group.ids.len()), Vec::with_capacity(group.leased.len()));
    for ((id, one), held) in group.ids.into_iter().zip(group.leased).zip(held) {
        match held {
            true => {
                ids.push(id);
                leased.push(one);
            }
            false => outcome.notified.push(verdict(context, one, NotificationVerdict::GivenBack, None)),
        }
    }
    (!leased.is_empty()).then_some(CallbackGroup { ids, leased, ..group })
}

fn add_to_group<'l>(
    groups: &mut Vec<CallbackGroup<'l>>,
    leased: &'l LeasedNotification,
    code: CallbackCode,
    record: &MessageBrief,
    event: &MessageEvent,
) {
    let reason = (code == CallbackCode::DispatchError).then(|| reason(record, event));
    let id = id_of(&record.summary);
    match groups.iter_mut().find(|group| group.code == code && group.reason == reason) {
        Some(group) => {
            group.reached_at = group.reached_at.max(event.at);
            group.ids.push(id);
            group.leased.push(leased);
            group.places.push(record.summary.trace);
        }
        None => groups.push(CallbackGroup {
            code,
            reason,
            reached_at: event.at,
            ids: vec![id],
            leased: vec![leased],
            places: vec![record.summary.trace],
        }),
    }
}

async fn call_group(
    context: &DeliveryContext,
    access: &SubscriberAccess,
    (group, span): (&CallbackGroup<'_>, Span),
    outcome: &mut BatchOutcome,
) -> Result<(), StoreError> {
    let body = CallbackBody {
        code: group.code,
        reached_at: group.reached_at,
        message_ids: &group.ids,
        reason: group.reason.as_deref(),
    };
    let body = serde_json::to_string(&body).map_err(unwritable)?;
    let to = (&access.url, &access.auth);
    let sent = Bytes::copy_from_slice(body.as_bytes());
    let timeout = CALLBACK_TIMEOUT.min(context.patience);
    let headers = Vec::from_iter(call_span::header(&span));
    let called = http_call::post(&context.http, &*context.clock, to, headers, sent, timeout).await;
    call_span::end(span, &called);
    let is_taken = called.status().is_some_and(|status| (200..300).contains(&status));
    let reached = match is_taken {
        true => NotificationVerdict::Acknowledged,
        false => NotificationVerdict::Failed { asked: called.retry_after() },
    };
    let kept = if group.leased.len() > 1 { LOGGED_SHARED_BYTES_MAX } else { LOGGED_BYTES_MAX };
    let logged = called.logged(&body, kept);
    let now = context.clock.now();
    let write = |leased: &&LeasedNotification| -> NotificationResult {
        leased.notified(reached, Some(logged.clone()), true, now, &mut rand::rng())
    };
    outcome.notified.extend(group.leased.iter().map(write));
    outcome.conduct = if is_taken { SubscriberConduct::Answered } else { SubscriberConduct::Failed };
    outcome.quiet_until = outcome.quiet_until.max(called.requested_quiet().map(|wait| called.at.plus(wait)));
    Ok(())
}

/// The callback code of an event; `None` if the event means nothing to the client.
fn callback_code(record: &MessageBrief, event: &MessageEvent) -> Option<CallbackCode> {
    match event.kind {
        EventKind::Sent => Some(CallbackCode::Traveling),
        EventKind::Failed
        | EventKind::Invalid
        | EventKind::Expired
        | EventKind::Cancelled
        | EventKind::Suppressed
        | EventKind::Captured
        | EventKind::Bounced => Some(CallbackCode::DispatchError),
        EventKind::Resolved => match record.summary.state.status() {
            MessageStatus::Sent => Some(CallbackCode::Traveling),
            MessageStatus::Failed => Some(CallbackCode::DispatchError),
            _ => None,
        },
        _ => None,
    }
}
