//! The parts of a message: recipients, attempts, history and failures.

use postway_domain::{EventKind, MessageEvent, RecipientKind, RecipientStatus, Time};
use postway_store::record::{AttemptDialogue, AttemptView, RecipientRecord, SmtpReply};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::outcome::{self, BounceView};
use crate::http::address_spelling;

/// A failure.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = Failure)]
pub(crate) struct FailureView {
    /// A stable code, such as `smtp_550` or `connect_timeout`.
    #[serde(default)]
    code: Option<String>,
    /// The category of the failure.
    #[serde(default)]
    category: Option<String>,
    /// The category in the coarse terms that gateways share: `TRANSIENT_ERROR`, `PERMANENT_ERROR`,
    /// `CONFIGURATION_ERROR`, `QUOTA_ERROR` or `TIMEOUT_ERROR`.
    #[serde(default)]
    provider_category: Option<String>,
    /// The code as the provider wrote it.
    #[serde(default)]
    original_code: Option<String>,
    /// The phase of the conversation in which it happened.
    #[serde(default)]
    phase: Option<String>,
    /// The relay's three-digit code.
    #[serde(default)]
    smtp_code: Option<u16>,
    /// The relay's enhanced code.
    #[serde(default, alias = "enhanced")]
    enhanced_code: Option<String>,
    /// The text of the relay or the system.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// A recipient.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Recipient)]
pub(crate) struct MessageRecipientView {
    /// The address; a domain outside ASCII as A-labels (`xn--…`).
    address: String,
    /// The address in Unicode, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ada@exämple.net")]
    address_unicode: Option<String>,
    /// `to`, `cc` or `bcc`.
    #[schema(value_type = String, example = "to")]
    kind: RecipientKind,
    /// `pending`, `sent`, `failed`, `in_doubt`, `suppressed`, `cancelled` or `expired`.
    #[schema(value_type = String, example = "sent")]
    status: RecipientStatus,
    #[serde(flatten)]
    reply: RelayReplyView,
    /// The outcome after it was sent.
    #[schema(value_type = Option<String>, example = "delivered")]
    outcome: Option<EventKind>,
    /// The bounce that came back.
    bounce: Option<BounceView>,
}

/// An attempt to send.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(crate) struct MessageAttemptView {
    /// The number, from 1.
    number: i64,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    started_at: Time,
    /// How long it took.
    duration_ms: i64,
    /// The account.
    account: String,
    /// The server.
    remote: Option<String>,
    /// How it ended.
    outcome: String,
    #[serde(flatten)]
    reply: RelayReplyView,
    /// The relay's own id of the mail.
    provider_message_id: Option<String>,
}

/// What both sides said in the last attempt that failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Dialogue)]
pub(crate) struct MessageDialogueView {
    /// The number of the attempt.
    attempt: i64,
    /// The lines: `C:` is ours, `S:` the relay's, `--` a remark. Credentials and the mail itself are not in it,
    /// and the addresses of a sensitive message are hidden.
    #[schema(example = json!(["C: RCPT TO:<ada@example.net>", "S: 550 5.1.1 no such user"]))]
    lines: Vec<String>,
}

/// A relay's reply.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Reply)]
pub(crate) struct RelayReplyView {
    /// The relay's three-digit code.
    smtp_code: Option<u16>,
    /// The relay's enhanced code.
    enhanced_code: Option<String>,
    /// The relay's text.
    reply: Option<String>,
}

/// An event of a message's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
    /// The position, from 1.
    seq: i64,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "sent")]
    kind: EventKind,
    /// Further data; an empty object if absent.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    data: Option<Box<RawValue>>,
}

impl FailureView {
    /// Reads the JSON object that the store keeps.
    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text)
            .unwrap_or_else(|_| Self { message: Some(text.to_owned()), ..Self::default() })
    }

    /// The stable code.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The text for a sentence.
    pub(crate) fn words(&self) -> Option<&str> {
        self.message.as_deref().filter(|words| !words.is_empty()).or(self.code.as_deref())
    }
}

impl MessageRecipientView {
    /// The view of a recipient, whose bounce was completely reported at `bounce_reported_at`.
    pub(super) fn new(recipient: RecipientRecord, bounce_reported_at: Option<Time>) -> Self {
        let (outcome, bounce) = outcome::of_recipient(&recipient, bounce_reported_at);
        let RecipientRecord { address, kind, status, reply, .. } = recipient;
        let address = address_spelling::ascii(address);
        let address_unicode = address_spelling::unicode(&address);
        Self { address, address_unicode, kind, status, reply: reply.into(), outcome, bounce }
    }
}

impl From<Option<SmtpReply>> for RelayReplyView {
    fn from(reply: Option<SmtpReply>) -> Self {
        reply.map_or_else(Self::default, |SmtpReply { code, enhanced, text }| Self {
            smtp_code: code,
            enhanced_code: enhanced,
            reply: Some(text),
        })
    }
}

impl From<AttemptView> for MessageAttemptView {
    fn from(attempt: AttemptView) -> Self {
        Self {
            number: attempt.number,
            started_at: attempt.started_at,
            duration_ms: attempt.duration_ms,
            account: attempt.account,
            remote: attempt.remote,
            outcome: attempt.outcome,
            reply: attempt.reply.into(),
            provider_message_id: attempt.provider_message_id,
        }
    }
}

impl From<AttemptDialogue> for MessageDialogueView {
    fn from(AttemptDialogue { attempt, content }: AttemptDialogue) -> Self {
        Self { attempt, lines: content.lines().map(str::to_owned).collect() }
    }
}

impl From<MessageEvent> for EventView {
    fn from(MessageEvent { seq, at, kind, data }: MessageEvent) -> Self {
        Self { seq, at, kind, data: data.and_then(|text| RawValue::from_string(text).ok()) }
    }
}

/// Writes an empty object for absent data, so that readers always find an object.
pub(crate) fn object_or_empty<S: serde::Serializer>(
    data: &Option<Box<RawValue>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match data {
        Some(data) => data.serialize(serializer),
        None => serializer.collect_map(std::iter::empty::<((), ())>()),
    }
}
