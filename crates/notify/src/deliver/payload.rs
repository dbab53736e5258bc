//! The view of a message that webhooks carry, and the reasons why a message ended.

use postway_domain::{
    EventKind, MessageEvent, MessageStatus, MessageUid, RecipientKind, RecipientStatus, Time,
    inbound::outcome_rank,
    message::reason::{self, ALL_SUPPRESSED, CANCELLED_BY_SENDER, CAPTURED, EXPIRED, NO_REASON, pec_error},
    reference::BOUNCED,
};
use postway_store::{
    StoreError,
    record::{MessageBrief, MessageSummary, RecipientRecord, SmtpReply},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::notification::message_state::MessageSnapshot;

/// Replaces the subject of a sensitive message.
pub(crate) const HIDDEN: &str = "[hidden]";

/// The body of a webhook.
#[derive(Debug, Serialize)]
pub(crate) struct WebhookEnvelope<T> {
    /// The event's name, as in `email.sent`.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// When it happened.
    pub timestamp: Time,
    /// The event's sequence number in the message's history.
    pub sequence: i64,
    /// The message.
    pub data: T,
}

/// A message in its current state, and the event. The view leaves out attempts, events and notifications, so
/// that a call stays small; a receiver that wants them reads the message by its id.
#[derive(Debug, Serialize)]
pub(crate) struct WebhookMessage<'a> {
    id: String,
    uid: MessageUid,
    tenant: &'a str,
    account: &'a str,
    status: MessageStatus,
    held_by: &'a [String],
    priority: i64,
    batch: Option<&'a str>,
    subject: &'a str,
    created_at: Time,
    updated_at: Time,
    due_at: Option<Time>,
    sent_at: Option<Time>,
    failed_at: Option<Time>,
    /// Always null: a message is reported once every subscriber has acknowledged, and this call is still
    /// pending.
    reported_at: Option<Time>,
    attempt: i64,
    version: i64,
    exhausted: bool,
    request_id: Option<&'a str>,
    tags: &'a [String],
    metadata: Option<Json<'a>>,
    external_id: Option<&'a str>,
    message_id: &'a str,
    provider_message_id: Option<&'a str>,
    recipients: Vec<WebhookRecipient<'a>>,
    event: WebhookEvent<'a>,
    /// Why the message is in its state, in the vocabulary of the API.
    reason: Option<String>,
    error: Option<Json<'a>>,
    /// The worst outcome of a recipient since the message was sent.
    outcome: Option<EventKind>,
    bounce: Option<Json<'a>>,
}

/// Stored JSON. A text that is not JSON becomes null, so that it does not break the whole body.
type Json<'a> = &'a RawValue;

fn json(text: Option<&str>) -> Option<Json<'_>> {
    serde_json::from_str(text?).ok()
}

#[derive(Debug, Serialize)]
struct WebhookRecipient<'a> {
    address: &'a str,
    kind: RecipientKind,
    status: RecipientStatus,
    smtp_code: Option<u16>,
    enhanced_code: Option<&'a str>,
    reply: Option<&'a str>,
    outcome: Option<EventKind>,
    bounce: Option<Json<'a>>,
}

#[derive(Debug, Serialize)]
struct WebhookEvent<'a> {
    #[serde(rename = "type")]
    kind: EventKind,
    seq: i64,
    at: Time,
    data: Option<Json<'a>>,
}

/// The client's id of a message, or else its uid.
pub(crate) fn id_of(message: &MessageSummary) -> String {
    message.client_id.as_ref().map_or_else(|| message.uid.to_string(), ToString::to_string)
}

impl<'a> WebhookMessage<'a> {
    pub(crate) fn new(snapshot: &'a MessageSnapshot, event: &'a MessageEvent) -> Self {
        let record = &snapshot.brief;
        let message = &record.summary;
        let is_open = !message.sensitive;
        let bounced = record.recipients.iter().filter(|recipient| recipient.bounce.is_some());
        Self {
            id: id_of(message),
            uid: message.uid,
            tenant: message.lane.tenant.as_str(),
            account: message.lane.account.as_str(),
            status: message.state.status(),
            held_by: &snapshot.held_by,
            priority: message.lane.priority.code(),
            batch: message.lane.batch.as_ref().map(|batch| batch.as_str()),
            subject: if is_open { &message.subject } else { HIDDEN },
            created_at: message.created_at,
            updated_at: message.updated_at,
            due_at: message.due_at,
            sent_at: message.sent_at,
            failed_at: message.failed_at,
            reported_at: None,
            attempt: message.attempt,
            version: message.version,
            exhausted: message.exhausted,
            request_id: message.request_id.as_deref(),
            tags: &message.tags,
            metadata: json(message.metadata.as_deref().filter(|_| is_open)),
            external_id: message.external_id.as_deref(),
            message_id: &message.message_id,
            provider_message_id: message.provider_message_id.as_deref(),
            recipients: record.recipients.iter().map(WebhookRecipient::new).collect(),
            event: WebhookEvent {
                kind: event.kind,
                seq: event.seq,
                at: event.at,
                data: json(event.data.as_deref()),
            },
            reason: message_reason(message),
            error: json(message.error.as_deref()),
            outcome: worst_recipient(&record.recipients).and_then(|recipient| recipient.outcome),
            bounce: json(worst_recipient(bounced).and_then(|recipient| recipient.bounce.as_deref())),
        }
    }
}

impl<'a> WebhookRecipient<'a> {
    fn new(recipient: &'a RecipientRecord) -> Self {
        let RecipientRecord { address, kind, status, reply, outcome, bounce } = recipient;
        let (smtp_code, enhanced_code, reply) = match reply {
            Some(SmtpReply { code, enhanced, text }) => (*code, enhanced.as_deref(), Some(text.as_str())),
            None => (None, None, None),
        };
        let (outcome, bounce) = (*outcome, json(bounce.as_deref()));
        Self { address, kind: *kind, status: *status, smtp_code, enhanced_code, reply, outcome, bounce }
    }
}

/// Why a message is in its state.
fn message_reason(message: &MessageSummary) -> Option<String> {
    #[derive(Default, Deserialize)]
    struct StoredFailure {
        code: Option<String>,
        message: Option<String>,
    }
    let read = |text: &str| {
        serde_json::from_str(text)
            .unwrap_or_else(|_| StoredFailure { message: Some(text.to_owned()), ..StoredFailure::default() })
    };
    let StoredFailure { code, message: said } = message.error.as_deref().map(read).unwrap_or_default();
    reason::reason(message.state, code.as_deref(), said.as_deref()).map(str::to_owned)
}

/// The recipient with the worst outcome.
fn worst_recipient<'a>(
    recipients: impl IntoIterator<Item = &'a RecipientRecord>,
) -> Option<&'a RecipientRecord> {
    recipients.into_iter().max_by_key(|recipient| recipient.outcome.and_then(outcome_rank))
}

/// The data of an event, as an object.
pub(crate) fn particulars(event: &MessageEvent) -> Value {
    event.data.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
}

/// Why a message ended, for people: the event's own text, the failure's text, or the general text for this
/// kind of event.
pub(crate) fn reason(record: &MessageBrief, event: &MessageEvent) -> String {
    let said = |value: &Value| {
        let names = ["message", "diagnostic", "reason", "error_text", "error"];
        let mut words = names.iter().filter_map(|name| value.get(name)?.as_str());
        words.find(|words| !words.is_empty()).map(str::to_owned)
    };
    let failure = || said(&serde_json::from_str(record.summary.error.as_deref()?).ok()?);
    let particulars = particulars(event);
    if let Some(words) = pec_error(event.kind, &particulars) {
        return words.to_owned();
    }
    said(&particulars).or_else(failure).unwrap_or_else(|| {
        match event.kind {
            EventKind::Invalid => "refused by a check",
            EventKind::Cancelled => CANCELLED_BY_SENDER,
            EventKind::Expired => EXPIRED,
            EventKind::Suppressed => ALL_SUPPRESSED,
            EventKind::Captured => CAPTURED,
            EventKind::Bounced => BOUNCED,
            _ => NO_REASON,
        }
        .to_owned()
    })
}

/// A value that cannot be written as JSON is a fault of this program, and is handled like a fault of the
/// store.
pub(crate) fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::Unexpected(format!("a report cannot be written as JSON: {error}"))
}
