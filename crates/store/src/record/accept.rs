//! What intake hands over.

use std::{borrow::Cow, sync::Arc};

use postway_domain::{
    ClientId, EmailAddress, Lane, MessageUid, RecipientId, RecipientKind, State, Time, dsn::DsnWishes,
    message::OnDoubt,
};

use super::{body::Body, change::NewEvent};

/// A checked message, ready to be stored. One that starts as accepted is not composed yet: it waits to be prepared.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its own id.
    pub uid: MessageUid,
    /// Whose mail, by which account, how urgent, in which batch.
    pub lane: Lane,
    /// The client's id of it.
    pub client_id: Option<ClientId>,
    /// The request's idempotency key, and what kind of request it names.
    pub idempotency: Option<(DedupKind, String)>,
    /// A digest of the request's body: the same key with another digest is a conflict.
    pub fingerprint: [u8; 32],
    /// The idempotency key of the call that brought it among others.
    pub batch_key: Option<Arc<BatchKey>>,
    /// Where it starts.
    pub state: State,
    /// When it is due, if it waits to be claimed.
    pub due_at: Option<Time>,
    /// When it was accepted.
    pub created_at: Time,
    /// After which it must not be sent.
    pub expires_at: Option<Time>,
    /// What to do when its outcome is unknown.
    pub on_doubt: OnDoubt,
    /// To whom, in order; all of to, cc and bcc.
    pub recipients: Vec<NewRecipient>,
    /// Everything that the queue does not need to know.
    pub content: Content,
    /// The beginning of its history.
    pub events: Vec<NewEvent>,
    /// Why it was refused, as a JSON object, where it starts at its end.
    pub error: Option<String>,
    /// A newer message with the same key supersedes this one as long as it has not left.
    pub collapse_key: Option<String>,
    /// The entry of the tenant's directory of recipients that it is for. If that is deleted before it left, it is not
    /// sent.
    pub recipient: Option<RecipientId>,
    /// What intake settled already of a message that waits to be prepared, as a JSON object.
    pub settled: Option<String>,
}

/// One envelope recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecipient {
    /// Where to.
    pub address: EmailAddress,
    /// As what.
    pub kind: RecipientKind,
}

/// A message's bytes and what is known of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The envelope sender; empty for the null sender.
    pub sender: String,
    /// The Message-ID without its brackets.
    pub message_id: String,
    /// The subject as given.
    pub subject: String,
    /// The request that brought it.
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
    pub raw: Body,
    /// The request as it was submitted.
    pub payload: Option<Body>,
    /// Whether nobody may read the bodies, which go away once it is sent.
    pub sensitive: bool,
    /// What its sender wishes to be told about delivery, where it came by SMTP and said so.
    pub dsn: Option<DsnWishes>,
}

impl Content {
    /// What its sender wishes to be told, as it is stored.
    pub(crate) fn dsn_json(&self) -> Option<String> {
        self.dsn.as_ref().and_then(|wishes| serde_json::to_string(wishes).ok())
    }

    /// The client's labels, and its external id as one.
    fn labels(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let tags = self.tags.iter().map(|tag| Cow::Borrowed(tag.as_str()));
        tags.chain(self.external_id.as_deref().map(|id| Cow::Owned(external_label(id))))
    }
}

impl NewMessage {
    /// What it is found by in the index of tags: its content's labels, and a Message-ID that is not made of its uid.
    pub(crate) fn labels(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let foreign = foreign_id_label(self.uid, &self.content.message_id).map(Cow::Owned);
        self.content.labels().chain(foreign)
    }
}

/// The longest Message-ID that is looked up.
const MESSAGE_ID_BYTES_MAX: usize = 512;

/// How a Message-ID that somebody else made stands among the tags: behind a character that no tag has.
pub fn message_id_label(message_id: &str) -> String {
    format!("\u{1e}{message_id}")
}

/// The same of a message, unless its Message-ID is made of its uid, by which it is found anyway.
pub(crate) fn foreign_id_label(uid: MessageUid, message_id: &str) -> Option<String> {
    let (local, _) = message_id.split_once('@')?;
    let is_foreign = local != uid.to_string() && message_id.len() <= MESSAGE_ID_BYTES_MAX;
    is_foreign.then(|| message_id_label(message_id))
}

/// The longest part of an external id that is looked up.
const EXTERNAL_BYTES_MAX: usize = 1_000;

/// How an external id stands among the tags: behind a character that no tag has. Of a very long one the beginning stands for
/// all of it, so whoever finds by it compares the rest.
pub fn external_label(external_id: &str) -> String {
    let mut end = external_id.len().min(EXTERNAL_BYTES_MAX);
    while !external_id.is_char_boundary(end) {
        end -= 1;
    }
    format!("\u{1f}{}", &external_id[..end])
}

/// What a deduplication key names.
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

/// The idempotency key of a call that brings many messages. Where it was used for other messages, none of these is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchKey {
    /// The key.
    pub key: String,
    /// A digest of all the messages.
    pub fingerprint: [u8; 32],
}

/// What became of one message at the store's door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Durable.
    Accepted {
        /// Whether it was handed straight to a standing claim.
        handed_over: bool,
    },
    /// Durable, and at its end: every recipient is on the suppression list.
    Suppressed,
    /// The same request was accepted before, as this message.
    Repeat {
        /// The message that was accepted then.
        uid: MessageUid,
    },
    /// The key or id was used before for another body; nothing was stored.
    Conflict {
        /// Which key.
        kind: DedupKind,
    },
    /// Its account was deleted meanwhile; nothing was stored.
    AccountGone,
}

impl Acceptance {
    /// Whether the message is new and stored.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Acceptance::Accepted { .. } | Acceptance::Suppressed)
    }
}
