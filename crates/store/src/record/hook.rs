//! Events that providers report to hooks.

use bytes::Bytes;
use postway_domain::{AccountId, HookProvider, LeaseToken, MessageUid, ProviderEventState, TenantId, Time};

use super::{AccountKey, claim::LeaseGrant, finding::MessageFinding};

/// The events of one call of a provider.
#[derive(Clone, Debug)]
pub struct ProviderEventBatch {
    /// The account whose hook was called.
    pub key: AccountKey,
    /// The provider.
    pub provider: HookProvider,
    /// The current time.
    pub at: Time,
    /// The events.
    pub events: Vec<NewProviderEvent>,
}

/// An event of a call.
#[derive(Clone, Debug)]
pub struct NewProviderEvent {
    /// Its own id.
    pub uid: MessageUid,
    /// The digest of tenant, account and the event's identity. An event that came before is not stored again.
    pub digest: [u8; 32],
    /// The digest of what the call may use once, such as a signed token. A second event with it is not
    /// stored.
    pub once: Option<[u8; 32]>,
    /// Its JSON as the provider wrote it.
    pub raw: Bytes,
}

/// A request for events to process.
#[derive(Clone, Debug)]
pub struct ProviderEventClaim {
    /// The lease to record.
    pub lease: LeaseGrant,
    /// The current time.
    pub now: Time,
    /// The most events to lease.
    pub limit: u32,
    /// The most bytes of JSON that they may have together. The first event is leased whatever its size.
    pub bytes_max: u32,
}

/// An event that is leased to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEventToProcess {
    /// Its id.
    pub uid: MessageUid,
    /// The account that reports it.
    pub key: AccountKey,
    /// The provider.
    pub provider: HookProvider,
    /// Its JSON.
    pub raw: Vec<u8>,
    /// How often it was processed without a result.
    pub tries: i64,
    /// How often the process that handled it died.
    pub lost_leases: i64,
    /// When it came.
    pub created_at: Time,
}

/// The result of processing an event. All of it is written in one transaction, and nothing is written if the
/// lease is lost.
#[derive(Clone, Debug)]
pub struct ProviderEventResult {
    /// The event.
    pub uid: MessageUid,
    /// The claim's token.
    pub token: LeaseToken,
    /// The current time.
    pub at: Time,
    /// The new state.
    pub to: ProviderEventState,
    /// When it is processed again, if it waits.
    pub due_at: Option<Time>,
    /// The new number of tries.
    pub tries: i64,
    /// What it says, in the word of a message's event.
    pub kind: Option<&'static str>,
    /// The message that it is about.
    pub message: Option<MessageUid>,
    /// Why it was not applied.
    pub error: Option<String>,
    /// What it says about the message.
    pub findings: Vec<MessageFinding>,
}

/// An attempt of a message through an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentThrough {
    /// The message.
    pub uid: MessageUid,
    /// The account.
    pub account: AccountId,
    /// The provider's id of the mail, if it gave one.
    pub provider_message_id: Option<String>,
}

/// A filter for reported events. All given conditions must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEventFilter {
    /// The account.
    pub key: AccountKey,
    /// Their state.
    pub state: Option<ProviderEventState>,
}

/// The longest JSON of an event that a list has: a page of the longest events would be a gigabyte.
pub const SHOWN_EVENT_BYTES_MAX: usize = 16 * 1024;

/// A reported event as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEventView {
    /// Its id.
    pub uid: MessageUid,
    /// The tenant.
    pub tenant: TenantId,
    /// The account that reported it.
    pub account: AccountId,
    /// The provider.
    pub provider: HookProvider,
    /// Its state.
    pub state: ProviderEventState,
    /// When it is processed, if it waits.
    pub due_at: Option<Time>,
    /// How often it was processed without a result.
    pub tries: i64,
    /// What it says, in the word of a message's event.
    pub kind: Option<String>,
    /// The message that it is about.
    pub message: Option<MessageUid>,
    /// Why it was not applied.
    pub error: Option<String>,
    /// Its JSON; empty if it has more than [`SHOWN_EVENT_BYTES_MAX`] bytes.
    pub raw: Vec<u8>,
    /// When it came.
    pub created_at: Time,
    /// When it was settled.
    pub settled_at: Option<Time>,
}
