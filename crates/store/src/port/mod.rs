//! The port: what every database must do, in one trait for each way of using the store.
//!
//! The caller passes the time; the database's own clock is only ever compared. A method takes many items at
//! once if its callers can have many.

mod archive;
mod bulk_action;
mod domain_report;
mod hook;
mod inbound;
mod node;
mod people;
mod preparation;
mod report;
mod route;
mod stream;

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountLimits, ApiKey, DkimKey, Incarnation, KeyDigest, KnownRecipient, LimitSpan,
    MessageStatus, MessageUid, RecipientId, RecipientKey, Template, TemplateName, Tenant, TenantId, Time,
    id::{AuditId, BatchCode, SessionId},
    oauth::{OAuthOwner, OAuthState},
    quota::QuotaDay,
};

pub use archive::ArchiveStore;
pub use bulk_action::BulkActionStore;
pub use domain_report::DomainReportStore;
pub use hook::HookStore;
pub use inbound::InboundStore;
pub use node::NodeStore;
pub use people::PeopleStore;
pub use preparation::{BlobNameStore, PreparationStore};
pub use report::{ReportStore, RetentionStore};
pub use route::RouteStore;
pub use stream::StreamStore;

use crate::{
    error::StoreError,
    record::{
        Acceptance, AccountGate, AccountKey, AttemptDialogue, AuditEntry, BatchRecord, BlobName,
        ChangeResult, ClaimRequest, ClaimedMessage, DedupKind, DirectoryChange, DomainCheckRecord, FileLink,
        LimitUse, MessageBrief, MessageChange, MessageCount, MessageFilter, MessageKey, MessagePage,
        MessageRecord, MessageSummary, NewMessage, OpenCircuit, QueueState, QueueStats, QuotaUse,
        SendingRate, StalledMessage, StoreSpace, StoredBody, SuppressionRecord, SuspensionRecord, WireCommit,
    },
    sql::durability::DurabilityRisk,
};

/// What the intake uses: accepting messages.
#[async_trait]
pub trait IntakeStore: Send + Sync {
    /// Stores messages. When this returns, each is durable or refused as a repeat; there is one answer per
    /// message, in order. A message whose account has a standing claim may be handed over in the same
    /// transaction.
    async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError>;

    /// What accepting a message with these keys would find, without storing it: a repeat, a conflict, or
    /// nothing. The first key that is taken decides.
    async fn seen_before(
        &self,
        tenant: &TenantId,
        keys: &[(DedupKind, String)],
        fingerprint: &[u8; 32],
        now: Time,
    ) -> Result<Option<Acceptance>, StoreError>;
}

/// What the dispatcher uses: claiming work, and writing the results.
#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Leases due messages of the accounts in the request. If less is due than wanted, the remaining capacity
    /// may become a standing claim: messages accepted later for that account are leased as they are stored,
    /// and come through [`WorkStore::handed_over`].
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedMessage>, StoreError>;

    /// The next messages handed over to standing claims. Waits while there are none. One consumer at a time.
    async fn handed_over(&self) -> Vec<ClaimedMessage>;

    /// Withdraws every standing claim. Nothing is handed over after this returns, except what
    /// [`WorkStore::handed_over`] has not yet returned.
    fn unpark(&self);

    /// Makes the permission to write the final dot durable. `true` if it is granted; `false` if the lease is
    /// lost or the message has expired, and the dot must not be written.
    async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError>;

    /// The fenced write: moves messages to their next state, with events, recipients and attempt, each in one
    /// transaction. `true` if it was applied, `false` if the fence did not match and nothing was written.
    async fn apply(&self, changes: Vec<MessageChange>) -> Result<Vec<bool>, StoreError>;

    /// A message's bytes, for work too large to come with its claim.
    async fn body(&self, uid: MessageUid) -> Result<Option<StoredBody>, StoreError>;

    /// Messages whose worker is gone: leased to an incarnation that is not in `alive`, or past the backstop.
    async fn stalled(
        &self,
        alive: &[Incarnation],
        now: Time,
        limit: u32,
    ) -> Result<Vec<StalledMessage>, StoreError>;

    /// Waiting messages whose `expires_at` has passed. Messages in doubt are not among them: they are
    /// claimed, and their worker puts them on hold.
    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError>;

    /// The accounts that have work due now, and when the next message after that is due.
    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError>;

    /// The accounts that may have new work since the last call. A hint: polling [`WorkStore::queue_state`] is
    /// the guarantee.
    async fn woken(&self) -> Vec<AccountKey>;
}

/// What messages are composed with: templates, known recipients, signing keys, links.
#[async_trait]
pub trait CatalogueStore: Send + Sync {
    /// A template in this version, or in its latest if `version` is `None`.
    async fn template(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
    ) -> Result<Option<Template>, StoreError>;

    /// The latest versions of a tenant's templates by name, after `after`.
    async fn templates(
        &self,
        tenant: &TenantId,
        after: Option<&TemplateName>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError>;

    /// The versions of a template, the latest first, before `before`.
    async fn template_versions(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError>;

    /// An entry of the directory of recipients. A deleted entry is found by its id, and by its external id as
    /// long as no other entry has it.
    async fn recipient(
        &self,
        tenant: &TenantId,
        key: &RecipientKey,
    ) -> Result<Option<KnownRecipient>, StoreError>;

    /// A tenant's known recipients that are not deleted, by id, after `after`; only those with `address` if
    /// it is given.
    async fn recipients(
        &self,
        tenant: &TenantId,
        address: Option<&str>,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Result<Vec<KnownRecipient>, StoreError>;

    /// A tenant's signing keys by domain and selector; those of all tenants if `tenant` is `None`, of one
    /// domain if `domain` is given.
    async fn dkim_keys(
        &self,
        tenant: Option<&TenantId>,
        domain: Option<&str>,
    ) -> Result<Vec<DkimKey>, StoreError>;

    /// What the last checks of a tenant's domains found, by domain.
    async fn domain_checks(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<DomainCheckRecord>, StoreError>;

    /// The domains of all tenants whose last check is not later than `before`, the longest ago first.
    async fn stale_domain_checks(
        &self,
        before: Time,
        limit: u32,
    ) -> Result<Vec<DomainCheckRecord>, StoreError>;

    /// A file that this message links to, found by its blob, even if the link has expired.
    async fn link(&self, uid: MessageUid, blob: &BlobName) -> Result<Option<FileLink>, StoreError>;
}

/// The most messages that are read at once.
const PAGE_MAX: u32 = 500;

/// What readers use: API, command line, dashboard. Every read is confined to one tenant, except
/// [`Read::stats`].
#[async_trait]
pub trait Read: Send + Sync {
    /// One message with all that belongs to it.
    async fn message(&self, tenant: &TenantId, key: &MessageKey)
    -> Result<Option<MessageRecord>, StoreError>;

    /// A page of messages that match, newest first, before the cursor. The cost of a call is bounded however
    /// much the store contains, so a page may be short: see [`MessagePage::next`].
    async fn search(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<MessagePage, StoreError>;

    /// The number of messages that match, counted up to `most`, and only while it costs little.
    async fn count(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        most: u32,
    ) -> Result<MessageCount, StoreError>;

    /// Messages that match, newest first, before the cursor: `limit` of them or all, however long it takes.
    async fn messages(
        &self,
        tenant: &TenantId,
        filter: &MessageFilter,
        mut before: Option<MessageUid>,
        limit: u32,
    ) -> Result<Vec<MessageSummary>, StoreError> {
        let mut found: Vec<MessageSummary> = Vec::new();
        loop {
            let room = limit - u32::try_from(found.len()).unwrap_or(limit).min(limit);
            let page = self.search(tenant, filter, before, room.min(PAGE_MAX)).await?;
            found.extend(page.messages);
            match page.next {
                Some(next) if found.len() < limit as usize => before = Some(next),
                _ => return Ok(found),
            }
        }
    }

    /// These messages with their recipients, in no order, for callers that report many at once. Left out are
    /// removed messages, those of other tenants, and those with more than [`MessageBrief::RECIPIENTS_MAX`]
    /// recipients, for which there is [`Read::message`].
    async fn briefs(&self, tenant: &TenantId, uids: &[MessageUid]) -> Result<Vec<MessageBrief>, StoreError>;

    /// The RFC 5322 bytes; `None` while the message waits to be prepared, and after they were removed.
    async fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError>;

    /// The request as it was submitted, unless it was removed.
    async fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<StoredBody>, StoreError>;

    /// The dialogue with the relay of a message's last failed attempt, if one was kept.
    async fn dialogue(
        &self,
        tenant: &TenantId,
        uid: MessageUid,
    ) -> Result<Option<AttemptDialogue>, StoreError>;

    /// A tenant's counts in ten-second intervals from `since` on, in order: at most the last hour, as far as
    /// it was fanned out.
    async fn pace(&self, tenant: &TenantId, since: Time) -> Result<Vec<SendingRate>, StoreError>;

    /// Counts by status, how long due and blocked messages have waited, and the doubts on hold; for one
    /// tenant, or for all if `tenant` is `None`.
    async fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Result<QueueStats, StoreError>;
}

/// What operators use: tenants, accounts, keys, suspensions, suppressions, and the audit log.
#[async_trait]
pub trait DirectoryStore: Send + Sync {
    /// Makes one change and writes its audit entry in one transaction. The entry is written only if something
    /// changed.
    async fn change(
        &self,
        change: DirectoryChange,
        audit: Option<AuditEntry>,
    ) -> Result<ChangeResult, StoreError>;

    /// A number that rises with each change made through this process, before the change is answered and
    /// before the changed account is woken: what was read under another generation may be stale. Changes made
    /// by other nodes do not show.
    fn generation(&self) -> u64;

    /// One tenant, deleted or not.
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError>;

    /// Tenants by id, after `after`, including deleted ones.
    async fn tenants(&self, after: Option<&TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError>;

    /// A tenant's accounts by id; those of all tenants if `tenant` is `None`.
    async fn accounts(&self, tenant: Option<&TenantId>) -> Result<Vec<Account>, StoreError>;

    /// One account.
    async fn account(&self, tenant: &TenantId, id: &AccountId) -> Result<Option<Account>, StoreError>;

    /// The API key with this digest, valid or not.
    async fn key(&self, digest: &KeyDigest) -> Result<Option<ApiKey>, StoreError>;

    /// The API key with this id, valid or not.
    async fn key_by_id(&self, id: &str) -> Result<Option<ApiKey>, StoreError>;

    /// A tenant's API keys, the oldest first.
    async fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError>;

    /// Whether this session was ended before its time.
    async fn is_session_ended(&self, id: SessionId) -> Result<bool, StoreError>;

    /// What is leased of a tenant's daily quota.
    async fn quota_use(&self, tenant: &TenantId, day: QuotaDay) -> Result<QuotaUse, StoreError>;

    /// The OAuth tokens of an account or a mailbox.
    async fn oauth_state(&self, owner: &OAuthOwner) -> Result<Option<OAuthState>, StoreError>;

    /// All tokens of all tenants, for encrypting them with a new key: one entry for each account and mailbox
    /// that has a grant.
    async fn oauth_states(&self) -> Result<Vec<OAuthState>, StoreError>;

    /// A tenant's suspensions.
    async fn suspensions(&self, tenant: &TenantId) -> Result<Vec<SuspensionRecord>, StoreError>;

    /// A tenant's batches by code, after `after`: those of existing lanes, and those that are suspended.
    async fn batches(
        &self,
        tenant: &TenantId,
        after: Option<&BatchCode>,
        limit: u32,
    ) -> Result<Vec<BatchRecord>, StoreError>;

    /// The number of a batch's messages in each status, counted over at most [`BatchRecord::COUNTED_MAX`]
    /// messages.
    async fn batch_states(
        &self,
        tenant: &TenantId,
        code: &BatchCode,
    ) -> Result<BTreeMap<MessageStatus, i64>, StoreError>;

    /// What blocks these accounts now, by account; read for all of them together.
    async fn account_gates(
        &self,
        tenant: &TenantId,
        accounts: &[AccountId],
        now: Time,
    ) -> Result<Vec<(AccountId, AccountGate)>, StoreError>;

    /// The number of a tenant's messages that a suspension, a used-up limit or an open circuit blocks, capped
    /// at [`SuspensionRecord::HELD_MAX`]: that value means "at least".
    async fn held(&self, tenant: &TenantId, now: Time) -> Result<i64, StoreError>;

    /// A tenant's suppressed addresses in order, after `after`.
    async fn suppressions(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SuppressionRecord>, StoreError>;

    /// One suppressed address, given in lower case, even if the suppression has expired.
    async fn suppression(
        &self,
        tenant: &TenantId,
        address: &str,
    ) -> Result<Option<SuppressionRecord>, StoreError>;

    /// The audit log, newest first, before `before`; of one tenant, or of all if `tenant` is `None`.
    async fn audit(
        &self,
        tenant: Option<&TenantId>,
        before: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;

    /// The open circuit of an account, if it is open.
    async fn circuit(&self, key: &AccountKey) -> Result<Option<OpenCircuit>, StoreError>;

    /// Every open circuit by tenant and account; of one tenant, or of all if `tenant` is `None`.
    async fn circuits(&self, tenant: Option<&TenantId>) -> Result<Vec<OpenCircuit>, StoreError>;

    /// An account's use of its limits, for each limited span.
    async fn used(
        &self,
        key: &AccountKey,
        limits: &AccountLimits,
        now: Time,
    ) -> Result<Vec<(LimitSpan, LimitUse)>, StoreError>;

    /// Creates a tenant; `false` if it exists.
    async fn create_tenant(&self, tenant: Tenant) -> Result<bool, StoreError> {
        Ok(self.change(DirectoryChange::CreateTenant(tenant, Vec::new()), None).await? == ChangeResult::Done)
    }

    /// Sets the account that a tenant's mail uses if it names none.
    async fn set_default_account(&self, tenant: &TenantId, account: &AccountId) -> Result<(), StoreError> {
        let change = DirectoryChange::SetDefaultAccount(tenant.clone(), account.clone());
        self.change(change, None).await.map(drop)
    }

    /// Creates an account; `false` if its id is taken.
    async fn create_account(&self, account: Account) -> Result<bool, StoreError> {
        Ok(self.change(DirectoryChange::CreateAccount(account), None).await? == ChangeResult::Done)
    }

    /// Replaces an account if its stored version is `expected_version`; `false` otherwise.
    async fn update_account(&self, account: Account, expected_version: i64) -> Result<bool, StoreError> {
        let change = DirectoryChange::UpdateAccount(account, expected_version);
        Ok(self.change(change, None).await? == ChangeResult::Done)
    }

    /// Deletes an account that has no waiting mail.
    async fn delete_account(&self, tenant: &TenantId, id: &AccountId) -> Result<ChangeResult, StoreError> {
        let key = AccountKey { tenant: tenant.clone(), account: id.clone() };
        self.change(DirectoryChange::DeleteAccount(key), None).await
    }
}

/// What the process itself uses to operate the store.
#[async_trait]
pub trait OperationStore: Send + Sync {
    /// The database settings found at the last review that can lose acknowledged writes.
    fn durability_risks(&self) -> Vec<DurabilityRisk> {
        Vec::new()
    }

    /// Reads these settings again and logs newly found ones: another server may have taken over.
    async fn review_durability(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Checks that the store can write, by writing: a full disk or a read-only server fails here as in an
    /// accept. Called more often than once a second, it repeats its last answer.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Transactions committed with writes in them since the start.
    fn commits(&self) -> u64;

    /// If the database is a file of this process: keeps the log short, returns some free space to the disk,
    /// and returns the space used. A server does that itself, and the answer is `None`.
    async fn tend_space(&self) -> Result<Option<StoreSpace>, StoreError> {
        Ok(None)
    }

    /// Finishes pending work and closes the database.
    async fn close(&self);
}

/// The complete port.
pub trait Store:
    IntakeStore
    + WorkStore
    + PreparationStore
    + BlobNameStore
    + CatalogueStore
    + Read
    + DirectoryStore
    + NodeStore
    + ReportStore
    + RetentionStore
    + InboundStore
    + HookStore
    + StreamStore
    + RouteStore
    + BulkActionStore
    + DomainReportStore
    + ArchiveStore
    + PeopleStore
    + OperationStore
{
}

impl<T> Store for T where
    T: IntakeStore
        + WorkStore
        + PreparationStore
        + BlobNameStore
        + CatalogueStore
        + Read
        + DirectoryStore
        + NodeStore
        + ReportStore
        + RetentionStore
        + InboundStore
        + HookStore
        + StreamStore
        + RouteStore
        + BulkActionStore
        + DomainReportStore
        + ArchiveStore
        + PeopleStore
        + OperationStore
{
}
