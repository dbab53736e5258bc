//! Messages as readers see them, filters, and statistics.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{
    AccountId, ClientId, EventKind, Lane, MessageEvent, MessageState, MessageStatus, MessageUid, RecipientId,
    RecipientKind, RecipientStatus, Time, message::OnDoubt,
};
use postway_trace::TraceContext;

use super::{body::BlobRef, change::SmtpReply};

/// How a caller identifies a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKey {
    /// By its own id.
    Uid(MessageUid),
    /// By the client's id.
    Client(ClientId),
}

/// A message with its recipients: enough for a notification, and small enough to hold many in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageBrief {
    /// The message.
    pub summary: MessageSummary,
    /// Its recipients, in order.
    pub recipients: Vec<RecipientRecord>,
}

impl MessageBrief {
    /// A message with more recipients is read alone: a thousand messages with a thousand recipients each
    /// would not fit into memory.
    pub const RECIPIENTS_MAX: usize = 32;

    /// Groups recipients by message, and drops messages that have too many.
    pub(crate) fn gather(
        summaries: Vec<MessageSummary>,
        recipients: impl IntoIterator<Item = (MessageUid, RecipientRecord)>,
    ) -> Vec<Self> {
        let mut of: HashMap<MessageUid, Vec<RecipientRecord>> = HashMap::with_capacity(summaries.len());
        for (uid, recipient) in recipients {
            of.entry(uid).or_default().push(recipient);
        }
        let brief = |summary: MessageSummary| {
            let recipients = of.remove(&summary.uid).unwrap_or_default();
            (recipients.len() <= Self::RECIPIENTS_MAX).then_some(Self { summary, recipients })
        };
        summaries.into_iter().filter_map(brief).collect()
    }
}

impl From<MessageRecord> for MessageBrief {
    fn from(record: MessageRecord) -> Self {
        Self { summary: record.summary, recipients: record.recipients }
    }
}

/// A message without its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageSummary {
    /// Its own id.
    pub uid: MessageUid,
    /// The client's id.
    pub client_id: Option<ClientId>,
    /// Its lane.
    pub lane: Lane,
    /// Its state.
    pub state: MessageState,
    /// Its version.
    pub version: i64,
    /// The latest attempt's number.
    pub attempt: i64,
    /// Retries used.
    pub retries: i64,
    /// Times in doubt.
    pub doubts: i64,
    /// What to do if its outcome is unknown.
    pub on_doubt: OnDoubt,
    /// When it was accepted.
    pub created_at: Time,
    /// When it changed last.
    pub updated_at: Time,
    /// When it is due.
    pub due_at: Option<Time>,
    /// The time after which it must not be sent.
    pub expires_at: Option<Time>,
    /// When the relay accepted it.
    pub sent_at: Option<Time>,
    /// When it failed.
    pub failed_at: Option<Time>,
    /// Whether retries ran out.
    pub exhausted: bool,
    /// The failure, as a JSON object.
    pub error: Option<String>,
    /// The subject.
    pub subject: String,
    /// The Message-ID without brackets.
    pub message_id: String,
    /// The id of the request that brought it.
    pub request_id: Option<String>,
    /// The client's reference.
    pub external_id: Option<String>,
    /// The client's labels.
    pub tags: Vec<String>,
    /// The client's own JSON object.
    pub metadata: Option<String>,
    /// The relay's id of it, from the latest attempt that has one.
    pub provider_message_id: Option<String>,
    /// Whether its bodies must not be shown to anybody.
    pub sensitive: bool,
    /// The first of its recipients.
    pub recipient: Option<String>,
    /// How many recipients it has.
    pub recipient_count: i64,
    /// Its place in a trace, if it is part of one.
    pub trace: Option<TraceContext>,
}

impl MessageSummary {
    /// Whether it waits for anything.
    pub fn waits(&self) -> bool {
        self.due_at.is_some() && !self.state.status().is_final()
    }
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessagePage {
    /// The messages, newest first.
    pub messages: Vec<MessageSummary>,
    /// The message before which the next page begins, if there may be one. The number of messages that one
    /// call examines is bounded, so a page may be short or empty and still have a next one.
    pub next: Option<MessageUid>,
}

/// Where the bytes of a message are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyLocation {
    /// Nowhere: they do not exist yet, or were removed.
    Nowhere,
    /// In the database; this is their number.
    Inline(u64),
    /// In a blob.
    Blob(BlobRef),
}

/// A message with its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRecord {
    /// The message.
    pub summary: MessageSummary,
    /// Its recipients.
    pub recipients: Vec<RecipientRecord>,
    /// Its attempts.
    pub attempts: Vec<AttemptView>,
    /// Its history.
    pub events: Vec<MessageEvent>,
    /// Where its RFC 5322 bytes are stored.
    pub raw: BodyLocation,
    /// Where the request that brought it is stored.
    pub payload: BodyLocation,
    /// The entry of the tenant's directory of recipients that it is addressed to.
    pub recipient: Option<RecipientId>,
}

/// A recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientRecord {
    /// The address.
    pub address: String,
    /// Whether it is a `to`, `cc` or `bcc` recipient.
    pub kind: RecipientKind,
    /// Its status.
    pub status: RecipientStatus,
    /// The relay's reply about it.
    pub reply: Option<SmtpReply>,
    /// Its outcome after sending, if one was reported: the worst final one, or else the latest.
    pub outcome: Option<EventKind>,
    /// Its bounce, as a JSON object `{type, code, reason, at}`.
    pub bounce: Option<String>,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptView {
    /// Its number.
    pub number: i64,
    /// When it began.
    pub started_at: Time,
    /// How long it took.
    pub duration_ms: i64,
    /// The account that was used.
    pub account: String,
    /// The server.
    pub remote: Option<String>,
    /// Its outcome.
    pub outcome: String,
    /// The relay's last reply.
    pub reply: Option<SmtpReply>,
    /// The relay's own id of the mail.
    pub provider_message_id: Option<String>,
}

/// What both sides said in an attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptDialogue {
    /// The attempt's number.
    pub attempt: i64,
    /// The lines, each with the side that wrote it.
    pub content: String,
}

/// A filter for messages. All given conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Their status.
    pub status: Option<MessageStatus>,
    /// Their account.
    pub account: Option<AccountId>,
    /// Their batch.
    pub batch: Option<String>,
    /// One of their recipients.
    pub recipient: Option<String>,
    /// One of their tags.
    pub tag: Option<String>,
    /// The request that brought them.
    pub request_id: Option<String>,
    /// The relay's id of them.
    pub provider_message_id: Option<String>,
    /// A text that their subject contains, ignoring case.
    pub subject: Option<String>,
    /// A text that their subject or one of their recipients' addresses contains, ignoring case.
    pub text: Option<String>,
    /// The domain of one of their recipients.
    pub domain: Option<String>,
    /// A field of their metadata.
    pub metadata: Option<MetadataField>,
    /// The code of their failure.
    pub error_code: Option<String>,
    /// Only messages accepted at this time or later.
    pub since: Option<Time>,
    /// Only messages accepted before this time.
    pub until: Option<Time>,
    /// Only messages that failed because retries ran out.
    pub exhausted: bool,
    /// The outcome of one of their recipients after sending.
    pub outcome: Option<EventKind>,
    /// Only messages that wait to be claimed, now or later.
    pub waits: bool,
    /// Only messages in doubt that are not sent again automatically.
    pub unresolved: bool,
    /// Only messages of one of these accounts or batches.
    pub behind: Option<BlockedLanes>,
}

/// A field of a message's metadata with a plain value, as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataField {
    /// Its name.
    pub key: String,
    /// Its value: that of a string, or how JSON writes a number, `true` or `false`.
    pub value: String,
}

impl MetadataField {
    /// Whether this metadata, a JSON object, has the field.
    pub(crate) fn is_in(&self, metadata: Option<&str>) -> bool {
        let fields = metadata.and_then(|metadata| serde_json::from_str::<serde_json::Value>(metadata).ok());
        let value = fields.as_ref().and_then(|fields| fields.get(&self.key));
        value.and_then(Self::text_of).is_some_and(|value| value == self.value)
    }

    /// A plain value as a text; `None` for lists, objects and null.
    pub(crate) fn text_of(value: &serde_json::Value) -> Option<String> {
        match value {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            serde_json::Value::Bool(flag) => Some(flag.to_string()),
            serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
        }
    }
}

/// Accounts and batches whose mail is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockedLanes {
    /// Accounts that are suspended, have an open circuit, or have used up a limit.
    pub accounts: BTreeSet<AccountId>,
    /// Batches that are suspended.
    pub batches: BTreeSet<String>,
}

impl BlockedLanes {
    /// Whether no account and no batch is blocked.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.batches.is_empty()
    }

    /// Whether mail of this account and batch is blocked.
    pub fn hold(&self, account: &str, batch: Option<&str>) -> bool {
        self.accounts.iter().any(|id| id.as_str() == account)
            || batch.is_some_and(|batch| self.batches.contains(batch))
    }
}

/// The number of messages that match, as far as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCount {
    /// The number counted.
    pub messages: u64,
    /// Whether there may be more.
    pub is_more: bool,
}

/// The counts of a ten-second interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendingRate {
    /// The beginning of the interval.
    pub at: Time,
    /// Messages accepted.
    pub accepted: i64,
    /// Messages sent.
    pub sent: i64,
    /// Messages failed.
    pub failed: i64,
}

impl SendingRate {
    /// The length of an interval in milliseconds.
    pub const LASTS_MS: i64 = 10_000;

    /// An interval without messages that begins at `at`.
    pub fn empty(at: Time) -> Self {
        Self { at, accepted: 0, sent: 0, failed: 0 }
    }

    /// The beginning of the interval that contains `at`.
    pub fn begin_of(at: Time) -> Time {
        Time::from_millis(at.as_millis().div_euclid(Self::LASTS_MS) * Self::LASTS_MS)
    }

    /// Adds the counts of the same interval. A later interval replaces this one, and an earlier one is
    /// ignored.
    pub(crate) fn add(&mut self, other: Self) {
        if other.at > self.at {
            *self = other;
        } else if other.at == self.at {
            self.accepted += other.accepted;
            self.sent += other.sent;
            self.failed += other.failed;
        }
    }
}

/// The state of the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// The number of messages in each status.
    pub by_status: BTreeMap<MessageStatus, i64>,
    /// When the longest-waiting message became due that no suspension, limit or circuit blocks.
    pub oldest_due_at: Option<Time>,
    /// When the longest-waiting blocked message became due.
    pub oldest_held_at: Option<Time>,
    /// The number of messages in doubt that are on hold instead of waiting for a resend, among the newest
    /// [`QueueStats::DOUBTS_MAX`] in doubt.
    pub doubts_held: i64,
}

impl QueueStats {
    /// The most messages in doubt that are examined.
    pub const DOUBTS_MAX: i64 = 10_000;

    pub(crate) fn note_due(&mut self, due_at: Option<Time>) {
        self.oldest_due_at = [self.oldest_due_at, due_at].into_iter().flatten().min();
    }

    pub(crate) fn note_held(&mut self, due_at: Option<Time>) {
        self.oldest_held_at = [self.oldest_held_at, due_at].into_iter().flatten().min();
    }
}
