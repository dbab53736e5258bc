//! An entry of a `delivery_report`: one outcome of one message, in the fields that clients of such queues
//! know.

use postway_domain::{
    AccountId, EventKind, MessageEvent, MessageStatus, Time, message::reason::pec_error_code,
    reference::Bounce001,
};
use postway_store::record::MessageBrief;
use serde::Serialize;
use serde_json::Value;

use crate::deliver::payload::{id_of, particulars, reason};

/// The outcome of a message. Times are Unix seconds; fields that do not apply are left out.
#[derive(Debug, Serialize)]
pub(super) struct SyncEntry<'a> {
    id: String,
    status: &'static str,
    account: &'a AccountId,
    attempt: i64,
    #[serde(flatten)]
    outcome: SyncOutcome,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct SyncOutcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deferred_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pec_rda_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pec_rdc_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pec_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pec_error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pec_error_ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    says: Option<String>,
}

impl<'a> SyncEntry<'a> {
    /// The entry of an event; `None` if the event means nothing to such clients.
    pub(super) fn new(record: &'a MessageBrief, event: &MessageEvent, deferred: bool) -> Option<Self> {
        let at = Some(event.at.as_seconds());
        let sent = || ("sent", SyncOutcome { sent_ts: at, ..SyncOutcome::default() });
        let failed = || {
            (
                "error",
                SyncOutcome { error_ts: at, error: Some(reason(record, event)), ..SyncOutcome::default() },
            )
        };
        let (status, outcome) = match event.kind {
            EventKind::Sent => sent(),
            EventKind::Failed
            | EventKind::Invalid
            | EventKind::Expired
            | EventKind::Cancelled
            | EventKind::Suppressed => failed(),
            EventKind::Captured => ("captured", failed().1),
            EventKind::Resolved => match record.summary.state.status() {
                MessageStatus::Sent => sent(),
                MessageStatus::Failed => failed(),
                _ => return None,
            },
            EventKind::Scheduled if deferred => ("deferred", deferred_outcome(record, event)),
            EventKind::Bounced => ("bounced", bounced_outcome(event)),
            EventKind::Delivered | EventKind::Complained | EventKind::PecTakenOver => {
                (event.kind.as_str(), SyncOutcome::default())
            }
            EventKind::PecAccepted => {
                ("pec_accepted", SyncOutcome { pec_rda_ts: at, ..SyncOutcome::default() })
            }
            EventKind::PecDelivered => {
                ("pec_delivered", SyncOutcome { pec_rdc_ts: at, ..SyncOutcome::default() })
            }
            EventKind::PecFailed | EventKind::PecTimeout => {
                let code = pec_error_code(event.kind, &particulars(event)).map(str::to_owned);
                let pec_error = Some(reason(record, event));
                let outcome = SyncOutcome {
                    pec_error_ts: at,
                    pec_error,
                    pec_error_code: code,
                    ..SyncOutcome::default()
                };
                (event.kind.as_str(), outcome)
            }
            EventKind::UnprovenReport => (event.kind.as_str(), unproven_outcome(event)),
            _ => return None,
        };
        let message = &record.summary;
        let attempt = particulars(event).get("attempt").and_then(Value::as_i64).unwrap_or(message.attempt);
        Some(Self { id: id_of(message), status, account: &message.lane.account, attempt, outcome })
    }
}

/// When the message is tried again, and why it was put off.
fn deferred_outcome(record: &MessageBrief, event: &MessageEvent) -> SyncOutcome {
    let due = particulars(event).get("due_at").and_then(|due| due.as_str()?.parse::<Time>().ok());
    SyncOutcome {
        deferred_ts: Some(due.unwrap_or(event.at).as_seconds()),
        error: Some(reason(record, event)),
        ..SyncOutcome::default()
    }
}

/// An unproven report: it sets none of the fields that state an outcome.
fn unproven_outcome(event: &MessageEvent) -> SyncOutcome {
    let said = particulars(event);
    let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
    SyncOutcome { proof: text("proof"), says: text("says"), ..SyncOutcome::default() }
}

fn bounced_outcome(event: &MessageEvent) -> SyncOutcome {
    let Bounce001 { kind, code, reason, status, word } = Bounce001::of(&particulars(event));
    SyncOutcome {
        bounce_ts: Some(event.at.as_seconds()),
        bounce_type: Some(kind),
        bounce_code: code,
        bounce_reason: Some(reason),
        bounce_status: status,
        bounce_kind: word,
        ..SyncOutcome::default()
    }
}
