//! Mail that came in, as JSON.

use std::fmt::Write;

use postway_domain::{MessageUid, Status, Time};
use postway_store::record::{InboundRecord, InboundView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::message::view::EventView;

/// A mail that came in, as in lists.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboundSummary {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: MessageUid,
    /// Its mailbox.
    #[schema(example = "support")]
    mailbox: String,
    /// `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`.
    #[schema(example = "routed")]
    status: &'static str,
    /// What it is: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply` or `ordinary`; null before it was looked
    /// at.
    kind: Option<String>,
    /// Its author.
    from: Option<String>,
    /// To whom.
    to: Option<String>,
    /// Its subject.
    subject: Option<String>,
    /// Its Message-ID, without brackets.
    message_id: Option<String>,
    /// Its size in bytes.
    size: u64,
    /// When it says that it was sent: its Date.
    #[schema(value_type = Option<String>, format = DateTime)]
    date: Option<Time>,
    /// When its server took it.
    #[schema(value_type = Option<String>, format = DateTime)]
    arrived_at: Option<Time>,
    /// When it was registered here.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was settled.
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Time>,
    /// When it is looked at next: another try, or a reminder.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// Tries used; begins anew once it is settled.
    tries: i64,
    /// How often it was dealt with in all, whatever came of it.
    attempts: i64,
    /// What went wrong, or why nothing matched.
    error: Option<String>,
    /// Its labels.
    tags: Vec<String>,
    /// The rule that reminds of it.
    follow_up: Option<String>,
    /// Reminders so far.
    reminders: i64,
    /// When somebody said that it is resolved.
    #[schema(value_type = Option<String>, format = DateTime)]
    resolved_at: Option<Time>,
    /// The folder it was in.
    folder: String,
    /// What UIDs were good for then.
    uid_validity: u32,
    /// Its UID there.
    imap_uid: u32,
    /// The SHA-256 digest of its bytes; null where they were not read.
    digest: Option<String>,
}

/// A mail that came in, with what was found and done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Inbound {
    #[serde(flatten)]
    summary: InboundSummary,
    /// What was found in it and done with it.
    #[schema(value_type = Option<Object>)]
    result: Option<Box<RawValue>>,
    /// What was sent because of it.
    messages: Vec<SentOn>,
    /// Its history: what subscribers were told of it.
    events: Vec<EventView>,
}

/// A message that was sent because of a mail that came in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SentOn {
    /// The rule that asked for it.
    rule: String,
    /// The message.
    #[schema(value_type = String, format = "uuid")]
    uid: MessageUid,
    /// Where it stands; null where it was removed.
    #[schema(value_type = Option<String>, example = "sent")]
    status: Option<Status>,
}

/// Some mail that came in, and where to go on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboundList {
    /// Newest first.
    pub(super) data: Vec<InboundSummary>,
    /// Give this as `cursor` for the next; null at the end.
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

impl From<InboundRecord> for Inbound {
    fn from(InboundRecord { mut mail, messages, events }: InboundRecord) -> Self {
        let result = mail.result.take().and_then(|text| RawValue::from_string(text).ok());
        let sent_on = |(rule, uid, status): (postway_domain::id::RuleId, MessageUid, Option<Status>)| {
            SentOn { rule: rule.to_string(), uid, status }
        };
        Self {
            summary: mail.into(),
            result,
            messages: messages.into_iter().map(sent_on).collect(),
            events: events.into_iter().map(EventView::from).collect(),
        }
    }
}

/// A digest as people compare it.
pub(crate) fn hex(digest: &[u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}
