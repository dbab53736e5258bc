//! Messages that need something from elsewhere before they can be composed.

use postway_domain::{ClientId, Lane, LeaseToken, MessageUid, TenantId, Time};

use super::{
    body::{BlobRef, Body},
    claim::Lease,
};

/// Asks for messages to prepare.
#[derive(Clone, Debug)]
pub struct PrepareRequest {
    /// The lease to write.
    pub lease: Lease,
    /// Now.
    pub now: Time,
    /// How many of which tenants.
    pub wants: Vec<(TenantId, u32)>,
}

/// What waits to be prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparationState {
    /// Tenants with messages to prepare now.
    pub due: Vec<TenantId>,
    /// When the next of the rest is due.
    pub next_due_at: Option<Time>,
}

/// A message leased to be prepared.
#[derive(Clone, Debug)]
pub struct ToPrepare {
    /// Its id.
    pub uid: MessageUid,
    /// Its lane.
    pub lane: Lane,
    /// The client's id of it.
    pub client_id: Option<ClientId>,
    /// The token every later write must show.
    pub token: LeaseToken,
    /// Its version as leased.
    pub version: i64,
    /// Tries that failed for now.
    pub tries: i64,
    /// Leases lost in a row so far.
    pub lost_leases: i64,
    /// When it was accepted.
    pub created_at: Time,
    /// After which it must not be sent.
    pub expires_at: Option<Time>,
    /// The request that brought it.
    pub request_id: Option<String>,
    /// Its Message-ID without brackets.
    pub message_id: String,
    /// What intake settled when it was accepted, as a JSON object.
    pub settled: Option<String>,
    /// The request as it was submitted.
    pub payload: Option<Body>,
}

/// What came of a preparation; goes with the [`super::Change`] that moves the message.
#[derive(Clone, Debug)]
pub enum Preparation {
    /// It is composed.
    Done(Prepared),
    /// It is refused, until somebody has it prepared once more.
    Refused,
    /// A refused one is prepared once more, from then on.
    Again(Time),
    /// It is tried again then.
    Later(Time),
}

/// A composed message.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The subject as rendered.
    pub subject: String,
    /// The RFC 5322 bytes.
    pub raw: Body,
    /// Whether they need 8BITMIME.
    pub eight_bit: bool,
    /// Whether the headers or addresses need SMTPUTF8.
    pub smtputf8: bool,
    /// Files that the mail links to instead of carrying them.
    pub links: Vec<NewLink>,
}

/// A file behind a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// Where it is.
    pub blob: BlobRef,
    /// Its name for the reader.
    pub filename: String,
    /// What it is.
    pub content_type: String,
    /// When the link ends.
    pub expires_at: Time,
}

/// A file behind a link, as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whose.
    pub tenant: TenantId,
    /// The message that links to it.
    pub uid: MessageUid,
    /// The rest.
    pub file: NewLink,
}
