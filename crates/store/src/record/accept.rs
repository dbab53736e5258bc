//! What the intake hands to the store.

use std::{borrow::Cow, sync::Arc};

use postway_domain::{
    ClientId, EmailAddress, Lane, MessageState, MessageUid, RecipientId, RecipientKind, Time, dsn::DsnWishes,
    message::OnDoubt,
};
use postway_trace::TraceContext;

use super::{body::StoredBody, change::NewEvent};

/// A checked message, ready to be stored. A message that starts as `accepted` is not composed yet: it waits
/// to be prepared.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its own id.
    pub uid: MessageUid,
    /// Its tenant, account, priority and batch.
    pub lane: Lane,
    /// The id that the client gave it.
    pub client_id: Option<ClientId>,
    /// The request's idempotency key, and what kind of request it names.
    pub idempotency: Option<(DedupKind, String)>,
    /// A digest of the request's body: the same key with another digest is a conflict.
    pub fingerprint: [u8; 32],
    /// The idempotency key of the call that brought it among others.
    pub batch_key: Option<Arc<BatchKey>>,
    /// The state it starts in.
    pub state: MessageState,
    /// When it is due, if it waits to be claimed.
    pub due_at: Option<Time>,
    /// When it was accepted.
    pub created_at: Time,
    /// The time after which it must not be sent.
    pub expires_at: Option<Time>,
    /// What to do if its outcome is unknown.
    pub on_doubt: OnDoubt,
    /// All recipients in order: to, cc and bcc.
    pub recipients: Vec<NewRecipient>,
    /// Everything that the queue itself does not need.
    pub content: MessageContent,
    /// Its first events.
    pub events: Vec<NewEvent>,
    /// Why it was refused, as a JSON object, if it starts in a final state.
    pub error: Option<String>,
    /// A newer message with the same key supersedes this one as long as this one has not left.
    pub collapse_key: Option<String>,
    /// The entry of the tenant's directory of recipients that it is addressed to. If that entry is deleted
    /// before the message has left, the message is not sent.
    pub recipient: Option<RecipientId>,
    /// What the intake has decided already about a message that waits to be prepared, as a JSON object.
    pub settled: Option<String>,
    /// Its place in a trace, if it is part of one.
    pub trace: Option<TraceContext>,
}

/// One envelope recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecipient {
    /// The address.
    pub address: EmailAddress,
    /// Whether it is a `to`, `cc` or `bcc` recipient.
    pub kind: RecipientKind,
}

/// A message's bytes and their properties.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageContent {
    /// The envelope sender; empty for the null sender.
    pub sender: String,
    /// The Message-ID without its brackets.
    pub message_id: String,
    /// The subject.
    pub subject: String,
    /// The id of the request that brought it.
    pub request_id: Option<String>,
    /// The client's reference to something of its own.
    pub external_id: Option<String>,
    /// The client's labels.
    pub tags: Vec<String>,
    /// The client's own JSON object.
    pub metadata: Option<String>,
    /// Whether the bytes need 8BITMIME.
    pub eight_bit: bool,
    /// Whether the headers or addresses need SMTPUTF8.
    pub smtputf8: bool,
    /// The RFC 5322 bytes; empty while the message waits to be prepared.
    pub raw: StoredBody,
    /// The request as it was submitted.
    pub payload: Option<StoredBody>,
    /// Whether the bodies must not be shown to anybody; they are removed once the message is sent.
    pub sensitive: bool,
    /// The delivery status notifications that the sender asked for over SMTP.
    pub dsn: Option<DsnWishes>,
}

impl MessageContent {
    /// The requested delivery status notifications as they are stored.
    pub(crate) fn dsn_json(&self) -> Option<String> {
        self.dsn.as_ref().and_then(|wishes| serde_json::to_string(wishes).ok())
    }

    /// The client's labels, with the external id as one more.
    fn labels(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let tags = self.tags.iter().map(|tag| Cow::Borrowed(tag.as_str()));
        tags.chain(self.external_id.as_deref().map(|id| Cow::Owned(external_label(id))))
    }
}

impl NewMessage {
    /// The labels that the index of tags finds it by: those of its content, and a Message-ID that is not made
    /// of its uid.
    pub(crate) fn labels(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let foreign = foreign_id_label(self.uid, &self.content.message_id).map(Cow::Owned);
        self.content.labels().chain(foreign)
    }
}

/// The longest Message-ID that is looked up.
const MESSAGE_ID_BYTES_MAX: usize = 512;

/// The label of a Message-ID that somebody else made. It begins with a character that no tag has.
pub fn message_id_label(message_id: &str) -> String {
    format!("\u{1e}{message_id}")
}

/// The Message-ID label of a message, unless its Message-ID is made of its uid, which already finds it.
pub(crate) fn foreign_id_label(uid: MessageUid, message_id: &str) -> Option<String> {
    let (local, _) = message_id.split_once('@')?;
    let is_foreign = local != uid.to_string() && message_id.len() <= MESSAGE_ID_BYTES_MAX;
    is_foreign.then(|| message_id_label(message_id))
}

/// The longest part of an external id that is looked up.
const EXTERNAL_BYTES_MAX: usize = 1_000;

/// The label of an external id. It begins with a character that no tag has. Only the beginning of a very long
/// id goes into the label, so a reader that finds a message by it compares the full id.
pub fn external_label(external_id: &str) -> String {
    let mut end = external_id.len().min(EXTERNAL_BYTES_MAX);
    while !external_id.is_char_boundary(end) {
        end -= 1;
    }
    format!("\u{1f}{}", &external_id[..end])
}

/// What a deduplication key identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DedupKind {
    /// The client's own id of a message.
    ClientId = 1,
    /// The idempotency key of a single request.
    Request = 2,
    /// The idempotency key of a batch, with the item's position.
    BatchItem = 3,
    /// The idempotency key of a batch.
    Batch = 4,
}

/// The idempotency key of a call that brings many messages. If it was used for other messages before, none of
/// these is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchKey {
    /// The key.
    pub key: String,
    /// A digest of all the messages.
    pub fingerprint: [u8; 32],
}

/// The store's answer to one new message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The message is durable.
    Accepted {
        /// Whether a standing claim took it in the same transaction.
        handed_over: bool,
    },
    /// The message is durable and final: every recipient is on the suppression list.
    Suppressed,
    /// The same request was accepted before.
    Repeat {
        /// The message that was accepted then.
        uid: MessageUid,
    },
    /// The key or id was used before for another body; nothing was stored.
    Conflict {
        /// The kind of the key that was used before.
        kind: DedupKind,
    },
    /// The account was deleted in the meantime; nothing was stored.
    AccountGone,
}

impl Acceptance {
    /// Whether the message is new and stored.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Acceptance::Accepted { .. } | Acceptance::Suppressed)
    }
}
