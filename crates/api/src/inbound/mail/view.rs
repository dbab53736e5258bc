//! Inbound mail, as JSON.

use postway_domain::{MessageStatus, MessageUid, Time};
use postway_store::record::{InboundRecord, InboundView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{http::hex_digest::hex, message::view::EventView};

/// An inbound mail, as in lists.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboundSummary {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: MessageUid,
    /// The mailbox.
    #[schema(example = "support")]
    mailbox: String,
    /// `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`.
    #[schema(example = "routed")]
    status: &'static str,
    /// The kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary`;
    /// null before it was processed.
    kind: Option<String>,
    /// The author.
    from: Option<String>,
    /// The recipient.
    to: Option<String>,
    /// The subject.
    subject: Option<String>,
    /// The Message-ID, without brackets.
    message_id: Option<String>,
    /// The size in bytes.
    size: u64,
    /// When it was sent, according to its Date.
    #[schema(value_type = Option<String>, format = DateTime)]
    date: Option<Time>,
    /// When its server received it.
    #[schema(value_type = Option<String>, format = DateTime)]
    arrived_at: Option<Time>,
    /// When it was registered here.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was settled.
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Time>,
    /// When it is processed next: another try, or a reminder.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// Tries used; starts again once it is settled.
    tries: i64,
    /// How often it was processed in all.
    attempts: i64,
    /// What went wrong, or why nothing matched.
    error: Option<String>,
    /// The labels.
    tags: Vec<String>,
    /// The rule that sends reminders.
    follow_up: Option<String>,
    /// Reminders so far.
    reminders: i64,
    /// When it was resolved.
    #[schema(value_type = Option<String>, format = DateTime)]
    resolved_at: Option<Time>,
    /// The folder it was in.
    folder: String,
    /// The folder's UIDVALIDITY at that time.
    uid_validity: u32,
    /// The UID in the folder.
    imap_uid: u32,
    /// The SHA-256 digest of its bytes; null if they were not read.
    digest: Option<String>,
}

/// An inbound mail, with what it contained and what was done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Inbound)]
pub(crate) struct InboundMailView {
    #[serde(flatten)]
    summary: InboundSummary,
    /// What it contained, and what was done with it.
    #[schema(value_type = Option<Object>)]
    result: Option<Box<RawValue>>,
    /// The messages that were sent because of it.
    messages: Vec<ForwardedMessageView>,
    /// The events that subscribers got about it.
    events: Vec<EventView>,
}

/// A message that was sent because of an inbound mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SentOn)]
pub(crate) struct ForwardedMessageView {
    /// The rule that sent it.
    rule: String,
    /// The message.
    #[schema(value_type = String, format = "uuid")]
    uid: MessageUid,
    /// The message's status; null if it was removed.
    #[schema(value_type = Option<String>, example = "sent")]
    status: Option<MessageStatus>,
}

/// A page of inbound mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboundList {
    /// The mails, newest first.
    pub(super) data: Vec<InboundSummary>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<InboundView> for InboundSummary {
    fn from(mail: InboundView) -> Self {
        Self {
            id: mail.uid,
            mailbox: mail.key.mailbox.to_string(),
            status: mail.state.as_str(),
            kind: mail.kind,
            from: mail.sender,
            to: mail.recipients,
            subject: mail.subject,
            message_id: mail.message_id,
            size: mail.size,
            date: mail.dated_at,
            arrived_at: mail.arrived_at,
            created_at: mail.created_at,
            settled_at: mail.settled_at,
            due_at: mail.due_at,
            tries: mail.tries,
            attempts: mail.attempts,
            error: mail.error,
            tags: mail.tags,
            follow_up: mail.follow_up.map(|rule| rule.to_string()),
            reminders: mail.reminders,
            resolved_at: mail.resolved_at,
            folder: mail.folder,
            uid_validity: mail.uid_validity,
            imap_uid: mail.imap_uid,
            digest: mail.digest.as_ref().map(hex),
        }
    }
}

impl From<InboundRecord> for InboundMailView {
    fn from(InboundRecord { mut mail, messages, events }: InboundRecord) -> Self {
        let result = mail.result.take().and_then(|text| RawValue::from_string(text).ok());
        let sent_on =
            |(rule, uid, status): (postway_domain::id::RuleId, MessageUid, Option<MessageStatus>)| {
                ForwardedMessageView { rule: rule.to_string(), uid, status }
            };
        Self {
            summary: mail.into(),
            result,
            messages: messages.into_iter().map(sent_on).collect(),
            events: events.into_iter().map(EventView::from).collect(),
        }
    }
}
