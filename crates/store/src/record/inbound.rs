//! Inbound mail: registering it, processing it, and what it says about mail that was sent.

use std::collections::HashMap;

use postway_domain::{
    InboundState, LeaseToken, MessageEvent, MessageUid, TenantId, Time,
    id::{MailboxId, RuleId},
    inbound::FolderCursor,
};

use super::{body::StoredBody, claim::LeaseGrant, domain_report::NewDomainReport, finding::MessageFinding};

/// One mailbox of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The mailbox.
    pub mailbox: MailboxId,
}

/// How far a mailbox has been read, and the result of the last poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxState {
    /// The mailbox.
    pub key: MailboxKey,
    /// The cursor; `None` before the first poll.
    pub cursor: Option<FolderCursor>,
    /// The UID that the next mail will get, as the server last said.
    pub uid_next: Option<u32>,
    /// When it was last read to its end without an error.
    pub scanned_at: Option<Time>,
    /// The error of the last poll.
    pub error: Option<String>,
    /// When the errors began.
    pub error_since: Option<Time>,
}

impl MailboxState {
    /// The number of UIDs that it is behind.
    pub fn lag(&self) -> Option<u32> {
        let (cursor, uid_next) = (self.cursor?, self.uid_next?);
        Some(uid_next.saturating_sub(1).saturating_sub(cursor.last_uid))
    }
}

/// A page of a folder: its mail, and the new cursor.
#[derive(Clone, Debug)]
pub struct MailboxPage {
    /// The mailbox.
    pub key: MailboxKey,
    /// The cursor as the reader knew it. If it has changed since, nothing is written.
    pub seen: Option<FolderCursor>,
    /// The new cursor.
    pub to: FolderCursor,
    /// The UID that the next mail will get.
    pub uid_next: u32,
    /// The current time.
    pub at: Time,
    /// The mail of the page.
    pub mails: Vec<NewInbound>,
}

/// A mail of a page.
#[derive(Clone, Debug)]
pub struct NewInbound {
    /// Its own id.
    pub uid: MessageUid,
    /// The folder that contains it.
    pub folder: String,
    /// Its UID there.
    pub imap_uid: u32,
    /// The digest of its bytes. Mail that this mailbox has had before is not written again. `None` if the
    /// mail was not read.
    pub digest: Option<[u8; 32]>,
    /// Its size in bytes.
    pub size: u64,
    /// When the server received it.
    pub arrived_at: Option<Time>,
    /// The date in its header.
    pub dated_at: Option<Time>,
    /// Its author, shortened, for lists.
    pub sender: Option<String>,
    /// Its recipients, shortened.
    pub recipients: Option<String>,
    /// Its subject, shortened.
    pub subject: Option<String>,
    /// Its Message-ID without brackets.
    pub message_id: Option<String>,
    /// Its bytes.
    pub body: Option<StoredBody>,
    /// Its state: `received`, or `gone` or `dead` if it could not be read.
    pub state: InboundState,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// The result of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationResult {
    /// The cursor moved.
    Done {
        /// The number of new mails.
        new: u32,
        /// The number of mails that had been registered before.
        known: u32,
    },
    /// Another node moved the cursor, or the mailbox was deleted; nothing was written.
    Stale,
}

/// The result of polling a mailbox.
#[derive(Clone, Debug)]
pub struct MailboxNote {
    /// The mailbox.
    pub key: MailboxKey,
    /// The current time.
    pub at: Time,
    /// The UID that the next mail will get, if the server said so.
    pub uid_next: Option<u32>,
    /// The error; `None` if the mailbox was read to its end.
    pub error: Option<String>,
}

/// A request for inbound mail to process.
#[derive(Clone, Debug)]
pub struct ProcessRequest {
    /// The lease to record.
    pub lease: LeaseGrant,
    /// The current time.
    pub now: Time,
    /// The most mails to lease.
    pub limit: u32,
    /// The most mails of one mailbox that the caller may have leased at a time, so that a flooded mailbox
    /// delays no other.
    pub per_mailbox: u32,
    /// The most mails of one tenant that the caller may have leased while another tenant has mail due.
    pub per_tenant: u32,
    /// The bound for one tenant while no other tenant has mail due.
    pub per_tenant_alone: u32,
    /// A tenant that is alone gets nothing if its free capacity is below this, because leasing mails one by
    /// one costs a write each.
    pub alone_room_min: u32,
    /// The mails that the caller has leased already, by mailbox.
    pub mailboxes_in_hand: HashMap<MailboxKey, u32>,
    /// The mails that the caller has leased already, by tenant.
    pub tenants_in_hand: HashMap<TenantId, u32>,
}

impl ProcessRequest {
    /// A request for up to `limit` mails of any tenant, by a caller that has none leased.
    pub fn new(lease: LeaseGrant, now: Time, limit: u32) -> Self {
        Self {
            lease,
            now,
            limit,
            per_mailbox: limit,
            per_tenant: limit,
            per_tenant_alone: limit,
            alone_room_min: 0,
            mailboxes_in_hand: HashMap::new(),
            tenants_in_hand: HashMap::new(),
        }
    }
}

/// Which inbound mail waits to be processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessingState {
    /// The number of mails due now, counted up to 10,000.
    pub due: u32,
    /// When the next mail that is not due yet becomes due.
    pub next_due_at: Option<Time>,
}

/// A mail that is leased to the caller.
#[derive(Clone, Debug)]
pub struct MailToProcess {
    /// Its id.
    pub uid: MessageUid,
    /// Its mailbox.
    pub key: MailboxKey,
    /// The folder that contained it.
    pub folder: String,
    /// The folder's UIDVALIDITY at that time.
    pub uid_validity: u32,
    /// Its UID there.
    pub imap_uid: u32,
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// Its bytes.
    pub body: StoredBody,
    /// Its state before: `received`, `waiting`, or `routed` if a reminder is due.
    pub before: InboundState,
    /// The number of tries that failed or outlived their lease.
    pub tries: i64,
    /// How often in a row the process that handled it died.
    pub lost_leases: i64,
    /// When the server received it.
    pub arrived_at: Option<Time>,
    /// When it was registered.
    pub created_at: Time,
    /// The messages sent because of it, by rule.
    pub messages: Vec<(RuleId, MessageUid)>,
    /// The rule whose follow-up is active.
    pub follow_up: Option<RuleId>,
    /// The number of reminders sent.
    pub reminders: i64,
}

/// The result of processing a mail. All of it is written in one transaction, and nothing is written if the
/// lease is lost.
#[derive(Clone, Debug)]
pub struct InboundMailResult {
    /// The mail.
    pub uid: MessageUid,
    /// The claim's token.
    pub token: LeaseToken,
    /// The current time.
    pub at: Time,
    /// The new state.
    pub to: InboundState,
    /// When it is processed again: for the next try, or the next reminder.
    pub due_at: Option<Time>,
    /// The new number of tries used.
    pub tries: i64,
    /// Whether it was processed, with whatever result; `false` if it was returned unprocessed.
    pub was_tried: bool,
    /// The new number of leases lost with their process.
    pub lost_leases: i64,
    /// The error, or why no rule matched.
    pub error: Option<String>,
    /// The kind of mail, in the words of `postway inspect`; always set if there are findings.
    pub kind: Option<&'static str>,
    /// The findings and actions, as a JSON object.
    pub result: Option<String>,
    /// The labels to add.
    pub tags: Vec<String>,
    /// The sent messages to add.
    pub messages: Vec<(RuleId, MessageUid)>,
    /// The rule whose follow-up is active from now on.
    pub follow_up: Option<RuleId>,
    /// The new number of reminders.
    pub reminders: i64,
    /// Its findings about sent messages.
    pub findings: Vec<MessageFinding>,
    /// The data of a `received` event, if subscribers are notified. The event belongs to the mail's own id.
    pub received: Option<String>,
    /// The reports about domains that it brings.
    pub domain_reports: Vec<NewDomainReport>,
}

/// A PEC receipt to store with its message.
#[derive(Clone, Debug)]
pub struct NewReceipt {
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// Its type, in the words of the PEC rules: `accettazione`, `avvenuta-consegna`, …
    pub kind: String,
    /// The recipient it is about.
    pub address: Option<String>,
    /// The time that it states.
    pub at: Time,
    /// The state of its signature: `verified`, `unverified` or `absent`.
    pub signature: &'static str,
    /// Its details as a JSON object.
    pub detail: String,
    /// Its bytes.
    pub body: StoredBody,
}

impl NewReceipt {
    /// Whether it proves more than the stored copy of the same receipt: a mail that is processed again may
    /// find an authority that was not trusted before.
    pub(crate) fn improves_on(&self, kept_signature: &str) -> bool {
        self.signature == VERIFIED && kept_signature != VERIFIED
    }
}

/// The state of a signature that proves its receipt.
const VERIFIED: &str = "verified";

/// A stored PEC receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceipt {
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// The mail that brought it.
    pub inbound: MessageUid,
    /// Its type.
    pub kind: String,
    /// The recipient it is about.
    pub address: Option<String>,
    /// The time that it states.
    pub at: Time,
    /// The state of its signature.
    pub signature: String,
    /// Its details as a JSON object.
    pub detail: String,
    /// Its size in bytes.
    pub size: u64,
}

impl StoredReceipt {
    /// Its position among the receipts of its message: the mail that brought it, and its digest.
    pub fn place(&self) -> ReceiptPlace {
        (self.inbound, self.digest)
    }
}

/// A position among the receipts of a message.
pub type ReceiptPlace = (MessageUid, [u8; 32]);

/// A message that a report may be about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedMessage {
    /// The message.
    pub uid: MessageUid,
    /// The tenant.
    pub tenant: TenantId,
    /// When it was accepted.
    pub created_at: Time,
    /// Its recipients' addresses in order; empty if the message was removed and only its tombstone is left.
    pub recipients: Vec<String>,
    /// Its envelope sender; empty for the null sender, and if only a tombstone is left.
    pub sender: String,
    /// Whether only a tombstone is left.
    pub gone: bool,
}

/// A filter for inbound mail. All given conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboundFilter {
    /// Its mailbox.
    pub mailbox: Option<MailboxId>,
    /// Its state.
    pub state: Option<InboundState>,
    /// Its kind.
    pub kind: Option<String>,
}

/// A request to process settled mail again.
#[derive(Clone, Debug)]
pub struct InboundReplay {
    /// The tenant.
    pub tenant: TenantId,
    /// A filter for the mail.
    pub filter: InboundFilter,
    /// Only mail registered at this time or later.
    pub since: Option<Time>,
    /// Only mail registered before this time.
    pub until: Option<Time>,
    /// Only mail settled before this time, so that mail that an earlier call replayed and that has been
    /// settled since is not found again.
    pub settled_before: Option<Time>,
    /// The current time.
    pub at: Time,
    /// The most mails to replay, the newest first.
    pub limit: u32,
}

impl InboundReplay {
    /// The lowest id that it applies to.
    pub(crate) fn first(&self) -> MessageUid {
        self.since.map_or(MessageUid::from_bytes([0; 16]), MessageUid::first_at)
    }

    /// Whether this mail can be replayed and was settled early enough.
    pub(crate) fn takes(&self, mail: &InboundView) -> bool {
        let is_early = |settled_at| self.settled_before.is_none_or(|before| settled_at < before);
        mail.digest.is_some() && mail.state.can_be_replayed() && mail.settled_at.is_some_and(is_early)
    }

    /// The id below which all mail lies that it applies to.
    pub(crate) fn end(&self) -> Option<MessageUid> {
        self.until.map(MessageUid::first_at)
    }
}

/// An inbound mail as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundView {
    /// Its id.
    pub uid: MessageUid,
    /// Its mailbox.
    pub key: MailboxKey,
    /// The folder that contained it.
    pub folder: String,
    /// The folder's UIDVALIDITY at that time.
    pub uid_validity: u32,
    /// Its UID there.
    pub imap_uid: u32,
    /// The digest of its bytes.
    pub digest: Option<[u8; 32]>,
    /// Its size in bytes.
    pub size: u64,
    /// When the server received it.
    pub arrived_at: Option<Time>,
    /// The date in its header.
    pub dated_at: Option<Time>,
    /// Its author.
    pub sender: Option<String>,
    /// Its recipients.
    pub recipients: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// Its state.
    pub state: InboundState,
    /// When it is processed next.
    pub due_at: Option<Time>,
    /// The number of tries used.
    pub tries: i64,
    /// How often it has been processed in all.
    pub attempts: i64,
    /// The error, or why no rule matched.
    pub error: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// The findings and actions, as a JSON object.
    pub result: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// The rule whose follow-up is active.
    pub follow_up: Option<RuleId>,
    /// The number of reminders sent.
    pub reminders: i64,
    /// When it was marked as resolved.
    pub resolved_at: Option<Time>,
    /// When it was registered.
    pub created_at: Time,
    /// When it was settled.
    pub settled_at: Option<Time>,
}

/// An inbound mail with the messages that were sent because of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundRecord {
    /// The mail.
    pub mail: InboundView,
    /// The messages sent because of it: the rule, the message, and its state; `None` if the message was
    /// removed.
    pub messages: Vec<(RuleId, MessageUid, Option<postway_domain::MessageStatus>)>,
    /// Its history: `received`, if subscribers were notified.
    pub events: Vec<MessageEvent>,
}
