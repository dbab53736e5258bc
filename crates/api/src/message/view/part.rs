//! What belongs to a message: recipients, attempts, history, and what went wrong.

use postway_domain::{Event, EventKind, RecipientKind, RecipientStatus, Time};
use postway_store::record::{AttemptView, RecipientView, SmtpReply};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::outcome::{self, BounceView};
use crate::http::address_spelling;

/// A failure.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = Failure)]
pub(crate) struct FailureView {
    /// A stable word, such as `smtp_550` or `connect_timeout`.
    #[serde(default)]
    code: Option<String>,
    /// What kind of trouble it is.
    #[serde(default)]
    category: Option<String>,
    /// The same in the coarse words that gateways share: `TRANSIENT_ERROR`, `PERMANENT_ERROR`, `CONFIGURATION_ERROR`,
    /// `QUOTA_ERROR` or `TIMEOUT_ERROR`.
    #[serde(default)]
    provider_category: Option<String>,
    /// The code as the provider wrote it.
    #[serde(default)]
    original_code: Option<String>,
    /// Where in the conversation it happened.
    #[serde(default)]
    phase: Option<String>,
    /// The relay's three digits.
    #[serde(default)]
    smtp_code: Option<u16>,
    /// The relay's enhanced code.
    #[serde(default, alias = "enhanced")]
    enhanced_code: Option<String>,
    /// What the relay or the system said.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// A recipient.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Recipient {
    /// Where to; a domain outside ASCII as A-labels (`xn--…`).
    address: String,
    /// The address as people write it, where that is another spelling.
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
    reply: Reply,
    /// What became of it after it was sent.
    #[schema(value_type = Option<String>, example = "delivered")]
    outcome: Option<EventKind>,
    /// The bounce that came back.
    bounce: Option<BounceView>,
}

/// An attempt to send.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Attempt {
    /// Its number, from 1.
    number: i64,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    started_at: Time,
    /// How long it took.
    duration_ms: i64,
    /// By which account.
    account: String,
    /// To which server.
    remote: Option<String>,
    /// How it ended.
    outcome: String,
    #[serde(flatten)]
    reply: Reply,
    /// The relay's own id of the mail.
    provider_message_id: Option<String>,
}

/// What a relay said.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Reply {
    /// The relay's three digits.
    smtp_code: Option<u16>,
    /// The relay's enhanced code.
    enhanced_code: Option<String>,
    /// The relay's words.
    reply: Option<String>,
}

/// An entry of a message's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
    /// Its place, from 1.
    seq: i64,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "sent")]
    kind: EventKind,
    /// Particulars; empty where there are none.
    #[serde(serialize_with = "object_or_empty")]
    #[schema(value_type = Object)]
    data: Option<Box<RawValue>>,
}

impl FailureView {
    /// From the JSON object that the store keeps.
    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text)
            .unwrap_or_else(|_| Self { message: Some(text.to_owned()), ..Self::default() })
    }

    /// The stable word.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// What was said, for a sentence.
    pub(crate) fn words(&self) -> Option<&str> {
        self.message.as_deref().filter(|words| !words.is_empty()).or(self.code.as_deref())
    }
}

impl Recipient {
    /// A recipient, whose bounce everybody had been told of at `bounce_reported_at`.
    pub(super) fn new(recipient: RecipientView, bounce_reported_at: Option<Time>) -> Self {
        let (outcome, bounce) = outcome::of_recipient(&recipient, bounce_reported_at);
        let RecipientView { address, kind, status, reply, .. } = recipient;
        let address = address_spelling::ascii(address);
        let address_unicode = address_spelling::unicode(&address);
        Self { address, address_unicode, kind, status, reply: reply.into(), outcome, bounce }
    }
}

impl From<Option<SmtpReply>> for Reply {
    fn from(reply: Option<SmtpReply>) -> Self {
        reply.map_or_else(Self::default, |SmtpReply { code, enhanced, text }| Self {
            smtp_code: code,
            enhanced_code: enhanced,
            reply: Some(text),
        })
    }
}

impl From<AttemptView> for Attempt {
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

impl From<Event> for EventView {
    fn from(Event { seq, at, kind, data }: Event) -> Self {
        Self { seq, at, kind, data: data.and_then(|text| RawValue::from_string(text).ok()) }
    }
}

/// Readers of particulars find an object always.
pub(crate) fn object_or_empty<S: serde::Serializer>(
    data: &Option<Box<RawValue>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match data {
        Some(data) => data.serialize(serializer),
        None => serializer.collect_map(std::iter::empty::<((), ())>()),
    }
}
