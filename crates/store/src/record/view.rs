//! What readers see.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{
    AccountId, ClientId, Event, EventKind, Lane, MessageUid, RecipientId, RecipientKind, RecipientStatus,
    State, Status, Time, message::OnDoubt,
};

use super::{body::BlobRef, change::SmtpReply};

/// How a message is named from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKey {
    /// By its own id.
    Uid(MessageUid),
    /// By the client's id.
    Client(ClientId),
}

/// A message with what is told of it: enough for a report, and little enough to hold many.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageBrief {
    /// The message.
    pub summary: MessageSummary,
    /// Its recipients, in order.
    pub recipients: Vec<RecipientView>,
}

impl MessageBrief {
    /// A message with more recipients is read alone: a thousand of a thousand each would not fit.
    pub const RECIPIENTS_MAX: usize = 32;

    /// Puts recipients to their messages; those that have too many go.
    pub(crate) fn gather(
        summaries: Vec<MessageSummary>,
        recipients: impl IntoIterator<Item = (MessageUid, RecipientView)>,
    ) -> Vec<Self> {
        let mut of: HashMap<MessageUid, Vec<RecipientView>> = HashMap::with_capacity(summaries.len());
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
    /// Where it stands.
    pub state: State,
    /// Its version.
    pub version: i64,
    /// The latest attempt's number.
    pub attempt: i64,
    /// Retries used.
    pub retries: i64,
    /// Times in doubt.
    pub doubts: i64,
    /// What to do in doubt.
    pub on_doubt: OnDoubt,
    /// When it was accepted.
    pub created_at: Time,
    /// When it changed last.
    pub updated_at: Time,
    /// When it is due.
    pub due_at: Option<Time>,
    /// After which it must not be sent.
    pub expires_at: Option<Time>,
    /// When the relay took it.
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
    /// The request that brought it.
    pub request_id: Option<String>,
    /// The client's reference.
    pub external_id: Option<String>,
    /// The client's labels.
    pub tags: Vec<String>,
    /// The client's own JSON object.
    pub metadata: Option<String>,
    /// The relay's id of it, from the latest attempt that has one.
    pub provider_message_id: Option<String>,
    /// Whether nobody may read its bodies.
    pub sensitive: bool,
    /// The first of its recipients.
    pub recipient: Option<String>,
    /// How many recipients it has.
    pub recipient_count: i64,
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
    /// Before which message the next page begins, where there may be one. Only so many are looked at for a page, so one with
    /// fewer messages than were asked for, or none, may have a next.
    pub next: Option<MessageUid>,
}

/// Where bytes of a message are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nowhere: not made yet, or removed.
    Nowhere,
    /// In the database, so many.
    Inline(u64),
    /// In a blob.
    Blob(BlobRef),
}

/// A message with its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRecord {
    /// The message.
    pub summary: MessageSummary,
    /// To whom.
    pub recipients: Vec<RecipientView>,
    /// What was tried.
    pub attempts: Vec<AttemptView>,
    /// What happened.
    pub events: Vec<Event>,
    /// Where its RFC 5322 bytes are.
    pub raw: Kept,
    /// Where the request is that brought it.
    pub payload: Kept,
    /// The entry of the tenant's directory of recipients that it is for.
    pub recipient: Option<RecipientId>,
}

/// A recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientView {
    /// Where to.
    pub address: String,
    /// As what.
    pub kind: RecipientKind,
    /// What became of it.
    pub status: RecipientStatus,
    /// The relay's word on it.
    pub reply: Option<SmtpReply>,
    /// What became of it after it was sent, as far as anybody said: the worst that is final, or else the latest.
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
    /// By which account.
    pub account: String,
    /// To which server.
    pub remote: Option<String>,
    /// How it ended.
    pub outcome: String,
    /// The relay's last word.
    pub reply: Option<SmtpReply>,
    /// The relay's own id of the mail.
    pub provider_message_id: Option<String>,
}

/// Which messages to list. Every condition given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Their status.
    pub status: Option<Status>,
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
    /// What their subject contains, in any case.
    pub subject: Option<String>,
    /// What their subject or one of their recipients' addresses contains, in any case.
    pub text: Option<String>,
    /// The domain of one of their recipients.
    pub domain: Option<String>,
    /// The code of their failure.
    pub error_code: Option<String>,
    /// Accepted at or after.
    pub since: Option<Time>,
    /// Accepted before.
    pub until: Option<Time>,
    /// Failed because retries ran out.
    pub exhausted: bool,
    /// What became of one of their recipients after it was sent.
    pub outcome: Option<EventKind>,
    /// Waiting to be claimed, now or at a time of their own.
    pub waits: bool,
    /// In doubt, and not sent again by themselves.
    pub unresolved: bool,
    /// Of one of these accounts or batches.
    pub behind: Option<LaneHolders>,
}

/// Accounts and batches that hold mail back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneHolders {
    /// Accounts that are suspended, at fault, or have used up a limit.
    pub accounts: BTreeSet<AccountId>,
    /// Batches that are suspended.
    pub batches: BTreeSet<String>,
}

impl LaneHolders {
    /// Whether they hold nothing.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.batches.is_empty()
    }

    /// Whether one of them holds mail of this account and batch.
    pub fn hold(&self, account: &str, batch: Option<&str>) -> bool {
        self.accounts.iter().any(|id| id.as_str() == account)
            || batch.is_some_and(|batch| self.batches.contains(batch))
    }
}

/// How many messages match, as far as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCount {
    /// How many.
    pub messages: u64,
    /// Whether there may be more.
    pub is_more: bool,
}

/// What happened in ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// When they began.
    pub at: Time,
    /// Accepted.
    pub accepted: i64,
    /// Sent.
    pub sent: i64,
    /// Failed.
    pub failed: i64,
}

impl Pace {
    /// How long one lasts.
    pub const LASTS_MS: i64 = 10_000;

    /// Nothing, in the ten seconds from here.
    pub fn empty(at: Time) -> Self {
        Self { at, accepted: 0, sent: 0, failed: 0 }
    }

    /// When the one began that this time is in.
    pub fn begin_of(at: Time) -> Time {
        Time::from_millis(at.as_millis().div_euclid(Self::LASTS_MS) * Self::LASTS_MS)
    }

    /// Adds another of the same time; a later one takes its place, and an earlier one is left out.
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

/// How the queue stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many messages stand where.
    pub by_status: BTreeMap<Status, i64>,
    /// When the longest-waiting message that may go became due: one that no suspension, limit or circuit holds.
    pub oldest_due_at: Option<Time>,
    /// When the longest-waiting message that one of them holds became due.
    pub oldest_held_at: Option<Time>,
    /// How many in doubt wait for somebody's word and not for a resend, among the newest [`Stats::DOUBTS_MAX`] in doubt.
    pub doubts_held: i64,
}

impl Stats {
    /// Messages in doubt that are looked at, at most.
    pub const DOUBTS_MAX: i64 = 10_000;

    pub(crate) fn note_due(&mut self, due_at: Option<Time>) {
        self.oldest_due_at = [self.oldest_due_at, due_at].into_iter().flatten().min();
    }

    pub(crate) fn note_held(&mut self, due_at: Option<Time>) {
        self.oldest_held_at = [self.oldest_held_at, due_at].into_iter().flatten().min();
    }
}
