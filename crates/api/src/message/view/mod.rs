//! A message and its parts, as JSON.

mod notification;
mod outcome;
mod part;
mod route;

use postway_domain::{
    EventKind, MessageState, MessageStatus, MessageUid, RecipientStatus, Subscriber, Time,
    message::{self, OnDoubt},
};
use postway_store::record::{AttemptDialogue, BodyLocation, MessageRecord, MessageSummary, NotificationView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::message::read::search_text::SearchTermView;

pub(super) use notification::since_when;
pub(crate) use notification::{SubscriberNotification, notified_event, reported_at};
pub(crate) use outcome::{BounceView, bounce_reported_at, of_message};
pub(super) use outcome::{bounces_notified_at, of_outcomes};
pub(crate) use part::{
    EventView, FailureView, MessageAttemptView, MessageDialogueView, MessageRecipientView, object_or_empty,
};
pub(crate) use route::MessageRouteView;

/// Shown instead of a sensitive message's subject.
pub(crate) const HIDDEN: &str = "[hidden]";

/// A message, as in lists.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageSummary)]
pub(crate) struct MessageSummaryView {
    /// Your id of the message, or its uid.
    #[schema(example = "order-1")]
    id: String,
    /// The message's own id, a UUID v7.
    #[schema(value_type = String, format = "uuid")]
    pub(super) uid: MessageUid,
    /// The tenant it belongs to.
    tenant: String,
    /// The account that sends it.
    account: String,
    /// `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`,
    /// `suppressed`, `cancelled` or `expired`.
    #[schema(value_type = String, example = "sent")]
    pub(super) status: MessageStatus,
    /// What blocks it besides its own schedule: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up
    /// limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until
    /// when.
    held_by: Vec<String>,
    /// 0 (immediate) to 3 (low).
    priority: i64,
    /// The batch it belongs to.
    batch: Option<String>,
    /// Whether its content is hidden: `subject` and `metadata` are not shown, and the bodies are removed once
    /// it is sent.
    sensitive: bool,
    /// The subject; `[hidden]` if the message is sensitive.
    subject: String,
    /// The first recipient.
    #[schema(example = "ada@example.net")]
    to: Option<String>,
    /// How many recipients it has.
    recipient_count: i64,
    /// How many of several recipients were permanently refused.
    refused_count: i64,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// When it expires unsent.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// When the relay accepted it.
    #[schema(value_type = Option<String>, format = DateTime)]
    sent_at: Option<Time>,
    /// When it failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    failed_at: Option<Time>,
    /// When it had ended and every notification was acknowledged or given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    reported_at: Option<Time>,
    /// The number of the latest attempt; 0 before the first.
    attempt: i64,
    /// Increases with each change.
    version: i64,
    /// Whether it failed because its retries were exhausted.
    exhausted: bool,
    /// The id of the request that created it.
    request_id: Option<String>,
    /// Its Message-ID, without brackets.
    message_id: String,
    /// The relay's own id of the mail.
    provider_message_id: Option<String>,
    /// Why it is where it is, as a sentence.
    reason: Option<String>,
    /// The latest failure.
    error: Option<FailureView>,
    /// The outcome after it was sent: the worst one known of its recipients.
    #[schema(value_type = Option<String>, example = "bounced")]
    outcome: Option<EventKind>,
    /// The bounce that came back.
    bounce: Option<BounceView>,
    /// What to do if the relay's final answer is lost: `resend` or `hold`.
    #[schema(value_type = String, example = "resend")]
    on_doubt: OnDoubt,
    /// Your reference.
    external_id: Option<String>,
    /// Your labels.
    tags: Vec<String>,
    /// Your own JSON object; null if the message is sensitive.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
}

/// A message with its parts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageDetailView {
    #[serde(flatten)]
    summary: MessageSummaryView,
    /// The entry of your recipient directory that it is for.
    #[schema(example = json!(null))]
    recipient_id: Option<String>,
    /// The location of the submitted request: `inline` in the database, the name of an object, or null if it
    /// was removed.
    #[schema(example = "inline")]
    payload_file_path: Option<String>,
    /// The location of the mail: `inline` in the database, the name of an object, or null before it is
    /// composed and once it was removed.
    #[schema(example = "9f/86/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    eml_file_path: Option<String>,
    /// How routes chose its account; null if it named one, or no route matched.
    #[schema(example = json!(null))]
    route: Option<MessageRouteView>,
    /// The recipients.
    recipients: Vec<MessageRecipientView>,
    /// The attempts.
    attempts: Vec<MessageAttemptView>,
    /// What both sides said in the last attempt that failed; null if none failed, or it was no SMTP.
    #[schema(example = json!(null))]
    dialogue: Option<MessageDialogueView>,
    /// The events, in order.
    events: Vec<EventView>,
    /// The notifications, in order.
    notifications: Vec<SubscriberNotification>,
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageList {
    /// The messages, newest first.
    pub(crate) data: Vec<MessageSummaryView>,
    /// Pass this as `cursor` to read the next page; null on the last page. It may follow a page with fewer
    /// messages than requested, or none.
    pub(crate) next_cursor: Option<String>,
    /// Only where a page is not full and not the last: the search has seen all messages accepted since this
    /// time, and continues with those before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) searched_since: Option<Time>,
    /// How many messages match in all, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<MatchCountView>,
    /// How `q` was interpreted, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) understood: Option<Vec<SearchTermView>>,
}

/// How many messages match.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageCount)]
pub(crate) struct MatchCountView {
    /// The number of messages.
    pub(crate) messages: u64,
    /// Whether there may be more: counting stops at 100,000, and earlier if too many messages would have to
    /// be examined.
    pub(crate) or_more: bool,
}

/// A message's history.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    /// The events, in order.
    pub(crate) data: Vec<EventView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// What is known about a message beyond its own row.
#[derive(Debug, Default)]
pub(super) struct MessageReport {
    pub(super) reported_at: Option<Time>,
    pub(super) outcome: Option<EventKind>,
    pub(super) bounce: Option<BounceView>,
    /// How many of several recipients were permanently refused.
    pub(super) refused: i64,
}

impl MessageSummaryView {
    /// The view of a message, what blocks it, and what is known beyond its own row.
    pub(super) fn new(message: MessageSummary, held_by: Vec<String>, report: MessageReport) -> Self {
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

/// Why the message is where it is: the failure's text, what it waits for, or who ended it.
pub(crate) fn reason(state: MessageState, error: Option<&FailureView>) -> Option<String> {
    let said = error.and_then(|error| error.message.as_deref());
    message::reason(state, error.and_then(FailureView::code), said).map(str::to_owned)
}

/// The location of bytes: the path below the blob folder.
pub(crate) fn path(kept: &BodyLocation) -> Option<String> {
    match kept {
        BodyLocation::Nowhere => None,
        BodyLocation::Inline(_) => Some("inline".to_owned()),
        BodyLocation::Blob(blob) => {
            let [first, second, ..] = blob.name.digest;
            Some(format!("{first:02x}/{second:02x}/{}", blob.name))
        }
    }
}

impl MessageDetailView {
    /// The view of a message, what blocks it, and the notifications of its tenant's subscribers.
    pub(crate) fn new(
        (record, dialogue): (MessageRecord, Option<AttemptDialogue>),
        held_by: Vec<String>,
        notifications: Vec<NotificationView>,
        subscribers: &[Subscriber],
    ) -> Self {
        let reported_at = reported_at(&record, &notifications, subscribers);
        let bounce_reported_at = bounce_reported_at(&notifications);
        let (outcome, bounce) = of_message(&record.recipients, bounce_reported_at);
        let refused = record.recipients.iter().filter(|one| one.status == RecipientStatus::Failed).count();
        let refused = if record.recipients.len() > 1 { refused as i64 } else { 0 };
        Self {
            summary: MessageSummaryView::new(
                record.summary,
                held_by,
                MessageReport { reported_at, outcome, bounce, refused },
            ),
            recipient_id: record.recipient.map(|id| id.to_string()),
            payload_file_path: path(&record.payload),
            eml_file_path: path(&record.raw),
            route: MessageRouteView::of(&record.events),
            recipients: record
                .recipients
                .into_iter()
                .map(|recipient| MessageRecipientView::new(recipient, bounce_reported_at))
                .collect(),
            attempts: record.attempts.into_iter().map(MessageAttemptView::from).collect(),
            dialogue: dialogue.map(MessageDialogueView::from),
            events: record.events.into_iter().map(EventView::from).collect(),
            notifications: notifications.into_iter().map(SubscriberNotification::from).collect(),
        }
    }
}
