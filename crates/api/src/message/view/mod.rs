//! What comes back: a message and its parts, as JSON.

mod notification;
mod outcome;
mod part;

use postway_domain::{
    EventKind, MessageUid, RecipientStatus, State, Status, Subscriber, Time,
    message::{self, OnDoubt},
};
use postway_store::record::{Kept, MessageRecord, MessageSummary, NotificationView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::understood::TermView;

pub(super) use notification::since_when;
pub(crate) use notification::{Notification, event_told, reported_at};
pub(crate) use outcome::{BounceView, bounce_reported_at, of_message};
pub(super) use outcome::{bounces_told_at, of_outcomes};
pub(crate) use part::{Attempt, EventView, FailureView, Recipient, object_or_empty};

/// What is shown in the place of a sensitive message's subject.
pub(crate) const HIDDEN: &str = "[hidden]";

/// A message, as in lists.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageSummary)]
pub(crate) struct Summary {
    /// Your id of it, or its uid.
    #[schema(example = "order-1")]
    id: String,
    /// Its own id, a UUID v7.
    #[schema(value_type = String, format = "uuid")]
    pub(super) uid: MessageUid,
    /// Whose it is.
    tenant: String,
    /// The account that sends it.
    account: String,
    /// `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`,
    /// `suppressed`, `cancelled` or `expired`.
    #[schema(value_type = String, example = "sent")]
    pub(super) status: Status,
    /// What holds it back besides its own time: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit
    /// (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when.
    held_by: Vec<String>,
    /// 0 (immediate) to 3 (low).
    priority: i64,
    /// The batch it belongs to.
    batch: Option<String>,
    /// Whether nobody may read it: `subject` and `metadata` are hidden, and its bodies are removed once it is sent.
    sensitive: bool,
    /// The subject; `[hidden]` where the message is sensitive.
    subject: String,
    /// The first recipient.
    #[schema(example = "ada@example.net")]
    to: Option<String>,
    /// How many recipients it has.
    recipient_count: i64,
    /// How many of several recipients were refused for good.
    refused_count: i64,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// After which it is not sent.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// When the relay took it.
    #[schema(value_type = Option<String>, format = DateTime)]
    sent_at: Option<Time>,
    /// When it failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    failed_at: Option<Time>,
    /// When it had ended and everybody had been told, or was given up on.
    #[schema(value_type = Option<String>, format = DateTime)]
    reported_at: Option<Time>,
    /// The number of the latest attempt; 0 before the first.
    attempt: i64,
    /// Rises with each change.
    version: i64,
    /// Whether it failed because retries ran out.
    exhausted: bool,
    /// The request that brought it.
    request_id: Option<String>,
    /// Its Message-ID, without brackets.
    message_id: String,
    /// The relay's own id of it.
    provider_message_id: Option<String>,
    /// Why it is where it is, for people.
    reason: Option<String>,
    /// The latest failure.
    error: Option<FailureView>,
    /// What became of it after it was sent: the worst that is known of a recipient.
    #[schema(value_type = Option<String>, example = "bounced")]
    outcome: Option<EventKind>,
    /// The bounce that came back.
    bounce: Option<BounceView>,
    /// What to do when the relay's last answer is lost: `resend` or `hold`.
    #[schema(value_type = String, example = "resend")]
    on_doubt: OnDoubt,
    /// Your reference.
    external_id: Option<String>,
    /// Your labels.
    tags: Vec<String>,
    /// Your own JSON object; null where the message is sensitive.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
}

/// A message with its parts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
    #[serde(flatten)]
    summary: Summary,
    /// The entry of your directory of recipients that it is for.
    #[schema(example = json!(null))]
    recipient_id: Option<String>,
    /// Where the submitted request is: `inline` in the database, the name of an object, or null where it was removed.
    #[schema(example = "inline")]
    payload_file_path: Option<String>,
    /// Where the mail is: `inline` in the database, the name of an object, or null before it is composed and once it was
    /// removed.
    #[schema(example = "9f/86/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    eml_file_path: Option<String>,
    /// To whom.
    recipients: Vec<Recipient>,
    /// What was tried.
    attempts: Vec<Attempt>,
    /// What happened, in order.
    events: Vec<EventView>,
    /// Who was told what, in order.
    notifications: Vec<Notification>,
}

/// Some messages, and where to go on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageList {
    /// Newest first.
    pub(crate) data: Vec<Summary>,
    /// Give this as `cursor` for the next; null at the end. It may follow a page with fewer messages than asked for, or none.
    pub(crate) next_cursor: Option<String>,
    /// How many match in all, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<CountView>,
    /// What `q` was taken for, where it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) understood: Option<Vec<TermView>>,
}

/// How many messages match.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageCount)]
pub(crate) struct CountView {
    /// How many.
    pub(crate) messages: u64,
    /// Whether there may be more: counting ends at 100,000, and earlier where too many would have to be looked at.
    pub(crate) or_more: bool,
}

/// A message's history.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    /// In order.
    pub(crate) data: Vec<EventView>,
    /// Give this as `cursor` for the next; null at the end.
    pub(crate) next_cursor: Option<String>,
}

/// What is known of a message beyond itself.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) reported_at: Option<Time>,
    pub(super) outcome: Option<EventKind>,
    pub(super) bounce: Option<BounceView>,
    /// How many of several recipients were refused for good.
    pub(super) refused: i64,
}

impl Summary {
    /// A message, what holds it, and what is known of it beyond itself.
    pub(super) fn of(message: MessageSummary, held_by: Vec<String>, report: Report) -> Self {
        let error = message.error.as_deref().map(FailureView::read);
        let id = message.client_id.as_ref().map_or_else(|| message.uid.to_string(), ToString::to_string);
        Self {
            id,
            uid: message.uid,
            tenant: message.lane.tenant.to_string(),
            account: message.lane.account.to_string(),
            status: message.state.status(),
            held_by,
            priority: message.lane.priority.code(),
            batch: message.lane.batch.as_ref().map(ToString::to_string),
            sensitive: message.sensitive,
            subject: if message.sensitive { HIDDEN.to_owned() } else { message.subject },
            to: message.recipient,
            recipient_count: message.recipient_count,
            refused_count: report.refused,
            created_at: message.created_at,
            updated_at: message.updated_at,
            due_at: message.due_at,
            expires_at: message.expires_at,
            sent_at: message.sent_at,
            failed_at: message.failed_at,
            reported_at: report.reported_at,
            attempt: message.attempt,
            version: message.version,
            exhausted: message.exhausted,
            request_id: message.request_id,
            message_id: message.message_id,
            provider_message_id: message.provider_message_id,
            reason: reason(message.state, error.as_ref()),
            error,
            outcome: report.outcome,
            bounce: report.bounce,
            on_doubt: message.on_doubt,
            external_id: message.external_id,
            tags: message.tags,
            metadata: message
                .metadata
                .filter(|_| !message.sensitive)
                .and_then(|text| RawValue::from_string(text).ok()),
        }
    }
}

/// Why it is where it is: the failure's words, or what it waits for, or who ended it.
pub(crate) fn reason(state: State, error: Option<&FailureView>) -> Option<String> {
    let said = error.and_then(|error| error.message.as_deref());
    message::reason(state, error.and_then(FailureView::code), said).map(str::to_owned)
}

/// Where bytes are: below the place for blobs, as the depot lays them out.
pub(crate) fn path(kept: &Kept) -> Option<String> {
    match kept {
        Kept::Nowhere => None,
        Kept::Inline(_) => Some("inline".to_owned()),
        Kept::Blob(blob) => {
            let [first, second, ..] = blob.name.digest;
            Some(format!("{first:02x}/{second:02x}/{}", blob.name))
        }
    }
}

impl Message {
    /// A message, what holds it, and what its tenant's subscribers were told of it.
    pub(crate) fn new(
        record: MessageRecord,
        held_by: Vec<String>,
        told: Vec<NotificationView>,
        subscribers: &[Subscriber],
    ) -> Self {
        let reported_at = reported_at(&record, &told, subscribers);
        let bounce_reported_at = bounce_reported_at(&told);
        let (outcome, bounce) = of_message(&record.recipients, bounce_reported_at);
        let refused = record.recipients.iter().filter(|one| one.status == RecipientStatus::Failed).count();
        let refused = if record.recipients.len() > 1 { refused as i64 } else { 0 };
        Self {
            summary: Summary::of(record.summary, held_by, Report { reported_at, outcome, bounce, refused }),
            recipient_id: record.recipient.map(|id| id.to_string()),
            payload_file_path: path(&record.payload),
            eml_file_path: path(&record.raw),
            recipients: record
                .recipients
                .into_iter()
                .map(|recipient| Recipient::new(recipient, bounce_reported_at))
                .collect(),
            attempts: record.attempts.into_iter().map(Attempt::from).collect(),
            events: record.events.into_iter().map(EventView::from).collect(),
            notifications: told.into_iter().map(Notification::from).collect(),
        }
    }
}
