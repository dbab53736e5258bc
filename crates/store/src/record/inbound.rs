//! Mail that came in: registering it, dealing with it, and what it says about mail that went out.

use std::collections::HashMap;

use postway_domain::{
    Event, EventKind, InboundState, LeaseToken, MessageUid, TenantId, Time,
    id::{MailboxId, RuleId},
    inbound::Cursor,
};

use serde_json::{Map, Value};

use super::{body::Body, claim::Lease, directory::Suppression};

/// One mailbox of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxKey {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub mailbox: MailboxId,
}

/// How far a mailbox has been read, and how the last look at it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxState {
    /// Which.
    pub key: MailboxKey,
    /// How far; none before the first look.
    pub cursor: Option<Cursor>,
    /// The UID that the next mail will get, as the server last said.
    pub uid_next: Option<u32>,
    /// When it was last read to its end without a fault.
    pub scanned_at: Option<Time>,
    /// What was wrong at the last look.
    pub error: Option<String>,
    /// Since when something has been wrong.
    pub error_since: Option<Time>,
}

impl MailboxState {
    /// How many UIDs it is behind.
    pub fn lag(&self) -> Option<u32> {
        let (cursor, uid_next) = (self.cursor?, self.uid_next?);
        Some(uid_next.saturating_sub(1).saturating_sub(cursor.last_uid))
    }
}

/// A page of a folder: its mail, and where the cursor goes with it.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The mailbox.
    pub key: MailboxKey,
    /// The cursor as the reader knew it; where it is another now, nothing is written.
    pub seen: Option<Cursor>,
    /// Where it goes.
    pub to: Cursor,
    /// The UID that the next mail will get.
    pub uid_next: u32,
    /// Now.
    pub at: Time,
    /// The mail of the page.
    pub mails: Vec<NewInbound>,
}

/// A mail of a page.
#[derive(Clone, Debug)]
pub struct NewInbound {
    /// Its own id.
    pub uid: MessageUid,
    /// The folder it is in.
    pub folder: String,
    /// Its UID there.
    pub imap_uid: u32,
    /// The digest of its bytes: of mail that this mailbox has had before, nothing is written. None where it was not read.
    pub digest: Option<[u8; 32]>,
    /// Its size in bytes.
    pub size: u64,
    /// When the server took it.
    pub arrived_at: Option<Time>,
    /// When it says that it was sent.
    pub dated_at: Option<Time>,
    /// Its author, bounded, for lists.
    pub sender: Option<String>,
    /// To whom, bounded.
    pub recipients: Option<String>,
    /// Its subject, bounded.
    pub subject: Option<String>,
    /// Its Message-ID without brackets.
    pub message_id: Option<String>,
    /// Its bytes.
    pub body: Option<Body>,
    /// `received`; `gone` or `dead` where it could not be read.
    pub state: InboundState,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// What came of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The cursor moved; so many mails were new, and so many had been here before.
    Done {
        /// New ones.
        new: u32,
        /// Known ones.
        known: u32,
    },
    /// Somebody else moved the cursor, or the mailbox is gone; nothing was written.
    Stale,
}

/// How a look at a mailbox went.
#[derive(Clone, Debug)]
pub struct MailboxNote {
    /// Which.
    pub key: MailboxKey,
    /// Now.
    pub at: Time,
    /// The UID that the next mail will get, where the server said it.
    pub uid_next: Option<u32>,
    /// What was wrong; none means that it was read to its end.
    pub error: Option<String>,
}

/// Asks for mail to deal with.
#[derive(Clone, Debug)]
pub struct RouteRequest {
    /// The lease to write.
    pub lease: Lease,
    /// Now.
    pub now: Time,
    /// How many to lease at most.
    pub limit: u32,
    /// How many mails of one mailbox the caller may have in hand, so that a flooded mailbox delays no other.
    pub per_mailbox: u32,
    /// How many mails of one tenant the caller may have in hand while another tenant has mail due.
    pub per_tenant: u32,
    /// The same bound while no other tenant has mail due.
    pub per_tenant_alone: u32,
    /// A tenant that is alone is given nothing where it has less room than this: leasing mails one by one costs a write each.
    pub alone_room_min: u32,
    /// What the caller has in hand already, by mailbox.
    pub mailboxes_in_hand: HashMap<MailboxKey, u32>,
    /// What the caller has in hand already, by tenant.
    pub tenants_in_hand: HashMap<TenantId, u32>,
}

impl RouteRequest {
    /// Asks for up to `limit` mails, whosever they are, with nothing in hand.
    pub fn new(lease: Lease, now: Time, limit: u32) -> Self {
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

/// What waits to be dealt with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteState {
    /// How many are due now, as far as was counted (at most 10,000).
    pub due: u32,
    /// When the next of the rest is due.
    pub next_due_at: Option<Time>,
}

/// A mail that is leased to the caller.
#[derive(Clone, Debug)]
pub struct ToRoute {
    /// Its id.
    pub uid: MessageUid,
    /// Its mailbox.
    pub key: MailboxKey,
    /// The folder it was in.
    pub folder: String,
    /// What UIDs were good for then.
    pub uid_validity: u32,
    /// Its UID there.
    pub imap_uid: u32,
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// Its bytes.
    pub body: Body,
    /// How it stood: `received`, `waiting`, or `routed` where a reminder is due.
    pub before: InboundState,
    /// Tries so far that failed, or did not end before their lease did.
    pub tries: i64,
    /// How often in a row the process that dealt with it died.
    pub lost_leases: i64,
    /// When the server took it.
    pub arrived_at: Option<Time>,
    /// When it was registered.
    pub created_at: Time,
    /// What was sent because of it, by rule.
    pub messages: Vec<(RuleId, MessageUid)>,
    /// The rule whose follow-up is under way.
    pub follow_up: Option<RuleId>,
    /// Reminders so far.
    pub reminders: i64,
}

/// What came of dealing with a mail. All of it is one transaction, and nothing is written where the lease is lost.
#[derive(Clone, Debug)]
pub struct Routed {
    /// Which.
    pub uid: MessageUid,
    /// The claim's token.
    pub token: LeaseToken,
    /// Now.
    pub at: Time,
    /// What it becomes.
    pub to: InboundState,
    /// When it is taken again: the next try, or the next reminder.
    pub due_at: Option<Time>,
    /// Tries used, from now on.
    pub tries: i64,
    /// Whether it was dealt with, whatever came of it; not where nobody got to it.
    pub was_tried: bool,
    /// Leases lost with their process, from now on.
    pub lost_leases: i64,
    /// What went wrong, or why nothing matched.
    pub error: Option<String>,
    /// What kind of mail it is, as `postway inspect` calls it; whoever has findings knows it.
    pub kind: Option<&'static str>,
    /// What was found and done, as a JSON object.
    pub result: Option<String>,
    /// Labels to add.
    pub tags: Vec<String>,
    /// What was sent because of it, to add.
    pub messages: Vec<(RuleId, MessageUid)>,
    /// The rule whose follow-up is under way, from now on.
    pub follow_up: Option<RuleId>,
    /// Reminders, from now on.
    pub reminders: i64,
    /// What it says about mail that went out.
    pub findings: Vec<Finding>,
    /// The data of a `received` event, where subscribers are to be told; it stands under the mail's own id.
    pub received: Option<String>,
}

/// What a mail says about a message that went out. Of a message that is gone only the suppression is written, and of what
/// the same mail has said already, because it is dealt with once more, nothing.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The message.
    pub message: MessageUid,
    /// The recipient's place in it, where it is about one.
    pub position: Option<u32>,
    /// What happened.
    pub kind: EventKind,
    /// Particulars for its history, as a JSON object; the mail that says so is added as `inbound`.
    pub data: Option<String>,
    /// The bounce to show, as a JSON object `{type, code, reason, at}`.
    pub bounce: Option<String>,
    /// The address that gets no more mail because of it.
    pub suppress: Option<Suppression>,
    /// The receipt of certified mail that says so. Where the message has it already, nothing is written, unless its signature is
    /// verified only now.
    pub receipt: Option<NewReceipt>,
}

impl Finding {
    /// The particulars, with the mail that says so.
    pub(crate) fn said_by(&self, mail: MessageUid) -> String {
        let mut told = object(self.data.as_deref());
        told.insert(BY.to_owned(), mail.to_string().into());
        Value::Object(told).to_string()
    }

    /// Whether this is an event of its message that says so: by the same mail, of the same recipient.
    pub(crate) fn is_told(&self, mail: MessageUid, kind: EventKind, data: Option<&str>) -> bool {
        let (told, new) = (object(data), object(self.data.as_deref()));
        kind == self.kind
            && told.get(BY).and_then(Value::as_str) == Some(&mail.to_string())
            && told.get("recipient") == new.get("recipient")
    }
}

/// The name under which an event has the mail that said so.
const BY: &str = "inbound";

fn object(data: Option<&str>) -> Map<String, Value> {
    data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default()
}

/// A receipt of certified mail, kept with its message.
#[derive(Clone, Debug)]
pub struct NewReceipt {
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// What it is, in the words of the rules: `accettazione`, `avvenuta-consegna`, …
    pub kind: String,
    /// The recipient it is about.
    pub address: Option<String>,
    /// When it says that it happened.
    pub at: Time,
    /// `verified`, `unverified` or `absent`.
    pub signature: &'static str,
    /// Its particulars, as a JSON object.
    pub detail: String,
    /// Its bytes.
    pub body: Body,
}

impl NewReceipt {
    /// Whether it proves more than the same receipt did when it was kept: a mail that is replayed may find an authority that was
    /// not trusted before.
    pub(crate) fn improves_on(&self, kept_signature: &str) -> bool {
        self.signature == VERIFIED && kept_signature != VERIFIED
    }
}

/// What is kept of a signature that proves its receipt.
const VERIFIED: &str = "verified";

/// A receipt as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptView {
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// The mail that brought it.
    pub inbound: MessageUid,
    /// What it is.
    pub kind: String,
    /// The recipient it is about.
    pub address: Option<String>,
    /// When it says that it happened.
    pub at: Time,
    /// How its signature was judged.
    pub signature: String,
    /// Its particulars, as a JSON object.
    pub detail: String,
    /// How many bytes it has.
    pub size: u64,
}

impl ReceiptView {
    /// Its place among those of its message: the mail that brought it, and its digest.
    pub fn place(&self) -> ReceiptPlace {
        (self.inbound, self.digest)
    }
}

/// A place among the receipts of a message.
pub type ReceiptPlace = (MessageUid, [u8; 32]);

/// A message that a report may be about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The message.
    pub uid: MessageUid,
    /// Whose.
    pub tenant: TenantId,
    /// When it was accepted.
    pub created_at: Time,
    /// Its recipients' addresses, in order; empty where the message is gone and only a trace is left.
    pub recipients: Vec<String>,
    /// Its envelope sender; empty where that was the null sender, and where only a trace is left.
    pub sender: String,
    /// Whether only a trace is left.
    pub gone: bool,
}

/// Which inbound mail to list. Every condition given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboundFilter {
    /// Its mailbox.
    pub mailbox: Option<MailboxId>,
    /// How it stands.
    pub state: Option<InboundState>,
    /// What kind it is.
    pub kind: Option<String>,
}

/// Which settled mail to deal with once more.
#[derive(Clone, Debug)]
pub struct InboundReplay {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub filter: InboundFilter,
    /// Only what was registered at this time or later.
    pub since: Option<Time>,
    /// Only what was registered before this time.
    pub until: Option<Time>,
    /// Only what was settled before this time: what an earlier call replayed, and what was settled as before, is not found again.
    pub settled_before: Option<Time>,
    /// Now.
    pub at: Time,
    /// How many at most, the newest first.
    pub limit: u32,
}

impl InboundReplay {
    /// The lowest id it is about.
    pub(crate) fn first(&self) -> MessageUid {
        self.since.map_or(MessageUid::from_bytes([0; 16]), MessageUid::first_at)
    }

    /// Whether one of these states can be replayed, and was settled early enough.
    pub(crate) fn takes(&self, mail: &InboundView) -> bool {
        let is_early = |settled_at| self.settled_before.is_none_or(|before| settled_at < before);
        mail.digest.is_some() && mail.state.can_be_replayed() && mail.settled_at.is_some_and(is_early)
    }

    /// The id that all it is about are below.
    pub(crate) fn end(&self) -> Option<MessageUid> {
        self.until.map(MessageUid::first_at)
    }
}

/// A mail that came in, as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundView {
    /// Its id.
    pub uid: MessageUid,
    /// Its mailbox.
    pub key: MailboxKey,
    /// The folder it was in.
    pub folder: String,
    /// What UIDs were good for then.
    pub uid_validity: u32,
    /// Its UID there.
    pub imap_uid: u32,
    /// The digest of its bytes.
    pub digest: Option<[u8; 32]>,
    /// Its size in bytes.
    pub size: u64,
    /// When the server took it.
    pub arrived_at: Option<Time>,
    /// When it says that it was sent.
    pub dated_at: Option<Time>,
    /// Its author.
    pub sender: Option<String>,
    /// To whom.
    pub recipients: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// How it stands.
    pub state: InboundState,
    /// When it is taken next.
    pub due_at: Option<Time>,
    /// Tries used.
    pub tries: i64,
    /// How often it was dealt with in all, whatever came of it.
    pub attempts: i64,
    /// What went wrong, or why nothing matched.
    pub error: Option<String>,
    /// What kind it is.
    pub kind: Option<String>,
    /// What was found and done, as a JSON object.
    pub result: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// The rule whose follow-up is under way.
    pub follow_up: Option<RuleId>,
    /// Reminders so far.
    pub reminders: i64,
    /// When somebody said that it is resolved.
    pub resolved_at: Option<Time>,
    /// When it was registered.
    pub created_at: Time,
    /// When it was settled.
    pub settled_at: Option<Time>,
}

/// A mail that came in, with what was sent because of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundRecord {
    /// The mail.
    pub mail: InboundView,
    /// What was sent because of it: by which rule, which message, and how that stands; none where it is gone.
    pub messages: Vec<(RuleId, MessageUid, Option<postway_domain::Status>)>,
    /// Its history: `received`, where subscribers were told.
    pub events: Vec<Event>,
}
