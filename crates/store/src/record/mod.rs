//! The types that cross the port.

mod accept;
mod body;
mod change;
mod claim;
mod directory;
mod disk_space;
mod inbound;
mod node;
mod outcome;
mod prepare;
mod report;
mod stream;
mod view;

pub(crate) use accept::foreign_id_label;
pub use accept::{
    Acceptance, BatchKey, Content, DedupKind, NewMessage, NewRecipient, external_label, message_id_label,
};
pub use body::{BlobName, BlobRef, Body, NoBlobName};
pub use change::{AttemptEnd, Change, Fence, NewEvent, RecipientChange, SmtpReply, WireCommit};
pub use claim::{
    AccountWant, ClaimRequest, Claimed, ClaimedRecipient, DueAccount, Lease, Permit, QueueState, Stalled,
};
pub use directory::{
    AccountGate, AuditEntry, BatchView, Changed, Circuit, DirectoryChange, Suppression, SuppressionReason,
    Suspension, SuspensionScope, Used,
};
pub use disk_space::StoreSpace;
pub use inbound::{
    Finding, InboundFilter, InboundRecord, InboundReplay, InboundView, MailboxKey, MailboxNote, MailboxState,
    NewInbound, NewReceipt, ReceiptPlace, ReceiptView, Registered, Registration, RouteRequest, RouteState,
    Routed, ToRoute, Traced,
};
pub(crate) use node::free_slot;
pub use node::{DutyRecord, NodeBeat, NodeRecord};
pub use outcome::{Fate, OutcomeView, Telling, Told};
pub use prepare::{Link, NewLink, Preparation, PreparationState, PrepareRequest, Prepared, ToPrepare};
pub use report::{
    BegunCall, Call, Counts, DeliveryPage, DueSubscriber, Erased, Expunge, FeedEvent, FeedPosition,
    LaneUpkeep, NotificationKey, NotificationState, NotificationView, Notified, ReportRequest, ReportState,
    ResendPage, ResendRequest, StatisticsRow, ToNotify, Tombstone,
};
pub use stream::{ReaderDecision, ScopeFilter, ScopedSuppression, SuppressionScope};
pub use view::{
    AttemptView, Filter, Kept, LaneHolders, MessageBrief, MessageCount, MessageKey, MessagePage,
    MessageRecord, MessageSummary, Pace, RecipientView, Stats,
};

use postway_domain::{AccountId, TenantId};

/// One account of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The account.
    pub account: AccountId,
}
