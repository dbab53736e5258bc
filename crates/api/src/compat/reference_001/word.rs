//! A message in the words of reference 001, which knows states by their times.

use postway_domain::{
    EventKind, State, Time,
    reference::{Standing, status_001},
};
use serde_json::{Value, json};

use crate::{
    compat::read::Whole,
    message::view::{bounce_reported_at, of_message},
};

/// Whether it ended without being sent.
fn is_error(state: State) -> bool {
    state.status().is_final() && state != State::Sent
}

/// A message in its words. Times are whole seconds since 1970, but for `created_at` and `updated_at`.
pub(super) fn view(whole: &Whole) -> Value {
    let message = &whole.record.summary;
    let (outcome, bounce) = of_message(&whole.record.recipients, bounce_reported_at(&whole.told));
    let bounced = bounce.is_some() || outcome == Some(EventKind::Bounced);
    let bounce = bounce.unwrap_or_default();
    let reported_at = whole.acknowledged_at();
    // It knows suspensions of batches and of tenants, and no other.
    let is_held = whole.held_by.iter().any(|held| held == "tenant" || held.starts_with("batch:"));
    let standing = match message.state {
        State::Ready if is_held => Standing::Suspended,
        _ if reported_at.is_some() => Standing::Reported,
        State::Sent if bounced => Standing::Bounced,
        _ => Standing::Plain,
    };
    let errored = is_error(message.state);
    let happened =
        |kinds: &[EventKind]| whole.record.events.iter().rev().find(|event| kinds.contains(&event.kind));
    let at = |kinds: &[EventKind]| happened(kinds).map(|event| seconds(event.at));
    let pec_error = happened(&[EventKind::PecFailed, EventKind::PecTimeout]);
    let named = |kind| {
        let those = whole.record.recipients.iter().filter(move |recipient| recipient.kind == kind);
        those.map(|recipient| recipient.address.as_str()).collect::<Vec<_>>()
    };
    use postway_domain::RecipientKind::{Bcc, Cc, To};
    json!({
        "id": whole.id(),
        "tenant_id": message.lane.tenant,
        "account_id": message.lane.account,
        "priority": message.lane.priority.code(),
        "batch_code": message.lane.batch.as_ref().map(ToString::to_string),
        "status": status_001(message.state, standing),
        "created_at": message.created_at,
        "updated_at": message.updated_at,
        "deferred_ts": message.due_at.filter(|_| message.state.wait().is_some()).map(seconds),
        "sent_ts": message.sent_at.map(seconds),
        "error_ts": errored.then(|| seconds(message.failed_at.unwrap_or(message.updated_at))),
        "error": if errored { whole.reason() } else { None },
        "reported_ts": reported_at.map(seconds),
        "bounce_type": bounce.kind,
        "bounce_code": bounce.code,
        "bounce_reason": bounce.reason,
        "bounce_ts": bounce.at.map(seconds),
        "bounce_reported_ts": bounce.reported_at.map(seconds),
        "pec_rda_ts": at(&[EventKind::PecAccepted]),
        "pec_rdc_ts": at(&[EventKind::PecDelivered]),
        "pec_error": pec_error.map(|event| said(event.data.as_deref(), event.kind)),
        "pec_error_ts": pec_error.map(|event| seconds(event.at)),
        "message": {"to": named(To), "cc": named(Cc), "bcc": named(Bcc), "subject": whole.subject()},
    })
}

/// Whole seconds since 1970.
pub(super) fn seconds(time: Time) -> i64 {
    time.as_millis().div_euclid(1_000)
}

/// Why, as the receipt said it, or at least what kind of receipt it was.
fn said(data: Option<&str>, kind: EventKind) -> String {
    let data: Option<Value> = data.and_then(|data| serde_json::from_str(data).ok());
    let words = ["reason", "error", "message"]
        .into_iter()
        .find_map(|name| data.as_ref()?.get(name)?.as_str().map(str::to_owned));
    words.unwrap_or_else(|| kind.as_str().to_owned())
}
