//! Messages that need something from elsewhere before they can be composed.

use postway_domain::{ClientId, Lane, LeaseToken, MessageUid, TenantId, Time};

use super::{
    body::{BlobRef, StoredBody},
    claim::LeaseGrant,
};

/// Asks for messages to prepare.
#[derive(Clone, Debug)]
pub struct PrepareRequest {
    /// The lease to record.
    pub lease: LeaseGrant,
    /// The current time.
    pub now: Time,
    /// The tenants to serve, with the number of messages wanted of each.
    pub wants: Vec<(TenantId, u32)>,
}

/// Which messages wait to be prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparationState {
    /// Tenants with messages to prepare now.
    pub due: Vec<TenantId>,
    /// When the next message that is not due yet becomes due.
    pub next_due_at: Option<Time>,
}

/// A message leased to be prepared.
#[derive(Clone, Debug)]
pub struct ToPrepare {
    /// Its id.
    pub uid: MessageUid,
    /// Its lane.
    pub lane: Lane,
    /// The id that the client gave it.
    pub client_id: Option<ClientId>,
    /// The lease token that every later write must present.
    pub token: LeaseToken,
    /// Its version as leased.
    pub version: i64,
    /// The number of tries that failed for now.
    pub tries: i64,
    /// The number of leases lost in a row.
    pub lost_leases: i64,
    /// When it was accepted.
    pub created_at: Time,
    /// The time after which it must not be sent.
    pub expires_at: Option<Time>,
    /// The id of the request that brought it.
    pub request_id: Option<String>,
    /// Its Message-ID without brackets.
    pub message_id: String,
    /// What the intake decided when it was accepted, as a JSON object.
    pub settled: Option<String>,
    /// The request as it was submitted.
    pub payload: Option<StoredBody>,
}

/// The result of a preparation; it goes with the [`super::MessageChange`] that changes the message's state.
#[derive(Clone, Debug)]
pub enum PreparationResult {
    /// The message is composed.
    Done(PreparedMessage),
    /// The message is refused until an operator has it prepared again.
    Refused,
    /// A refused message is prepared again from this time on.
    Again(Time),
    /// The preparation is tried again at this time.
    Later(Time),
}

/// A composed message.
#[derive(Clone, Debug)]
pub struct PreparedMessage {
    /// The subject as rendered.
    pub subject: String,
    /// The RFC 5322 bytes.
    pub raw: StoredBody,
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
    /// The blob that has its bytes.
    pub blob: BlobRef,
    /// The file name that readers see.
    pub filename: String,
    /// Its content type.
    pub content_type: String,
    /// When the link ends.
    pub expires_at: Time,
}

/// A stored link to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLink {
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The message that links to it.
    pub uid: MessageUid,
    /// The file.
    pub file: NewLink,
}
