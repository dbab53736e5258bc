//! A message as reference 001 shows it, which tells states by their times.

use postway_domain::{
    EventKind, MessageEvent, MessageState, Time,
    message::reason::{pec_error, pec_error_code},
    reference::{Bounce001, Status001Basis, status_001},
};
use serde_json::{Value, json};

use crate::{compat::lookup::MessageWithStatus, message::view::bounce_reported_at};

/// Whether it ended without being sent.
fn is_error(state: MessageState) -> bool {
    state.status().is_final() && state != MessageState::Sent
}

/// A message as this API shows it at `now`. Times are whole seconds since 1970, except `created_at` and
/// `updated_at`.
pub(super) fn view(entry: &MessageWithStatus, now: Time) -> Value {
    let message = &entry.record.summary;
    let happened =
        |kinds: &[EventKind]| entry.record.events.iter().rev().find(|event| kinds.contains(&event.kind));
    let at = |kinds: &[EventKind]| happened(kinds).map(|event| seconds(event.at));
    let bounced = happened(&[EventKind::Bounced]);
    let bounce = bounced.map(|event| Bounce001::of(&particulars(event)));
    let bounce = bounce.as_ref();
    let reported_at = entry.acknowledged_at();
    let deferred_until = message.due_at.filter(|due_at| message.state.wait().is_some() && *due_at > now);
    let standing = presented_state(entry, bounced.is_some(), reported_at.is_some(), now);
    let errored = is_error(message.state);
    let pec_failure = happened(&[EventKind::PecFailed, EventKind::PecTimeout]);
    let pec_said = pec_failure.map(|event| (event.kind, particulars(event)));
    let pec_said = pec_said.as_ref();
    let named = |kind| {
        let those = entry.record.recipients.iter().filter(move |recipient| recipient.kind == kind);
        those.map(|recipient| recipient.address.as_str()).collect::<Vec<_>>()
    };
    use postway_domain::RecipientKind::{Bcc, Cc, To};
    json!({
        "id": entry.id(),
        "tenant_id": message.lane.tenant,
        "account_id": message.lane.account,
        "priority": message.lane.priority.code(),
        "batch_code": message.lane.batch.as_ref().map(ToString::to_string),
        "status": status_001(message.state, standing),
        "created_at": message.created_at,
        "updated_at": message.updated_at,
        "deferred_ts": deferred_until.map(seconds),
        "sent_ts": message.sent_at.map(seconds),
        "error_ts": errored.then(|| seconds(message.failed_at.unwrap_or(message.updated_at))),
        "error": if errored { entry.reason() } else { None },
        "reported_ts": reported_at.map(seconds),
        "bounce_type": bounce.map(|bounce| &bounce.kind),
        "bounce_code": bounce.and_then(|bounce| bounce.code.as_ref()),
        "bounce_reason": bounce.map(|bounce| &bounce.reason),
        "bounce_status": bounce.and_then(|bounce| bounce.status.as_ref()),
        "bounce_kind": bounce.and_then(|bounce| bounce.word.as_ref()),
        "bounce_ts": bounced.map(|event| seconds(event.at)),
        "bounce_reported_ts": bounce_reported_at(&entry.notifications).map(seconds),
        "pec_rda_ts": at(&[EventKind::PecAccepted]),
        "pec_rdc_ts": at(&[EventKind::PecDelivered]),
        "pec_error": pec_said.and_then(|(kind, said)| pec_error(*kind, said)),
        "pec_error_code": pec_said.and_then(|(kind, said)| pec_error_code(*kind, said)),
        "pec_error_ts": pec_failure.map(|event| seconds(event.at)),
        "message": {"to": named(To), "cc": named(Cc), "bcc": named(Bcc), "subject": entry.subject()},
    })
}

/// Whole seconds since 1970.
pub(super) fn seconds(time: Time) -> i64 {
    time.as_millis().div_euclid(1_000)
}

/// The state beside its status. This API knows suspensions of batches and tenants only; a suspended message
/// stays suspended when its scheduled time has passed.
fn presented_state(entry: &MessageWithStatus, bounced: bool, reported: bool, now: Time) -> Status001Basis {
    let message = &entry.record.summary;
    let is_held = entry.held_by.iter().any(|held| held == "tenant" || held.starts_with("batch:"));
    let is_due = message.due_at.is_some_and(|due_at| due_at <= now);
    match message.state {
        MessageState::Ready if is_held => Status001Basis::Suspended,
        MessageState::Scheduled(_) if is_due && is_held => Status001Basis::Suspended,
        MessageState::Scheduled(_) if is_due => Status001Basis::Due,
        _ if reported => Status001Basis::Reported,
        MessageState::Sent if bounced => Status001Basis::Bounced,
        _ => Status001Basis::Plain,
    }
}

fn particulars(event: &MessageEvent) -> Value {
    event.data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default()
}
