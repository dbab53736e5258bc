//! The types that cross the port.

mod accept;
mod archive;
mod body;
mod bulk_action;
mod change;
mod claim;
mod directory;
mod disk_space;
mod domain_report;
mod finding;
mod hook;
mod inbound;
mod node;
mod outcome;
mod people;
mod prepare;
mod report;
mod stream;
mod suppression_change;
mod view;

pub(crate) use accept::foreign_id_label;
pub use accept::{
    Acceptance, BatchKey, DedupKind, MessageContent, NewMessage, NewRecipient, external_label,
    message_id_label,
};
pub use archive::{ArchiveBacklog, ArchiveFilter, ArchivedMail};
pub use body::{BlobName, BlobRef, NoBlobName, StoredBody};
pub use bulk_action::{BulkAction, BulkActionState, BulkStep};
pub use change::{AttemptEnd, MessageChange, NewEvent, RecipientChange, SmtpReply, WireCommit, WriteFence};
pub use claim::{
    AccountWant, ClaimRequest, ClaimedMessage, ClaimedRecipient, DueAccount, LeaseGrant, QueueState,
    SendingPermit, StalledMessage,
};
pub use directory::{
    AccountGate, AuditEntry, BatchRecord, ChangeResult, DirectoryChange, DomainCheckRecord, LimitUse,
    OpenCircuit, QuotaLease, QuotaUse, SuppressionReason, SuppressionRecord, SuspensionRecord,
    SuspensionScope,
};
pub use disk_space::StoreSpace;
pub use domain_report::{
    DomainReportDay, DomainReportPlace, DomainReportQuestion, DomainReportSource, DomainReportView,
    NewDomainReport, ReportedDomain,
};
pub(crate) use finding::FindingOrigin;
pub use finding::MessageFinding;
pub use hook::{
    NewProviderEvent, ProviderEventBatch, ProviderEventClaim, ProviderEventFilter, ProviderEventResult,
    ProviderEventToProcess, ProviderEventView, SHOWN_EVENT_BYTES_MAX, SentThrough,
};
pub use inbound::{
    InboundFilter, InboundMailResult, InboundRecord, InboundReplay, InboundView, MailToProcess, MailboxKey,
    MailboxNote, MailboxPage, MailboxState, NewInbound, NewReceipt, ProcessRequest, ProcessingState,
    ReceiptPlace, RegistrationResult, StoredReceipt, TracedMessage,
};
pub(crate) use node::free_slot;
pub use node::{DutyRecord, NodeBeat, NodeRecord};
pub use outcome::{MessageOutcomes, NotificationProgress, OutcomeView, SubscriberProgress};
pub use people::{AuditDigest, AuditHead, AuditLine, UserKey, UserSession};
pub use prepare::{
    FileLink, NewLink, PreparationResult, PreparationState, PrepareRequest, PreparedMessage, ToPrepare,
};
pub use report::{
    BegunCall, DeliveryPage, DueSubscriber, ErasureCounts, ExpungeRequest, ExpungeSlice, FeedEvent,
    FeedPosition, HourlyCounts, LaneUpkeep, MessageTombstone, NotificationCall, NotificationKey,
    NotificationResult, NotificationState, NotificationView, OldestMail, ReportRequest, ReportState,
    ResendPage, ResendRequest, StatisticsRow, ToNotify,
};
pub use stream::{
    ReaderDecision, ScopeFilter, ScopedSuppression, StreamCounts, StreamStatisticsRow, SuppressionScope,
};
pub(crate) use suppression_change::SuppressionListChange;
pub use suppression_change::SuppressionOrigin;
pub use view::{
    AttemptDialogue, AttemptView, BlockedLanes, BodyLocation, MessageBrief, MessageCount, MessageFilter,
    MessageKey, MessagePage, MessageRecord, MessageSummary, MetadataField, QueueStats, RecipientRecord,
    SendingRate,
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
