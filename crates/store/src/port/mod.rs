//! The port: what every database must do. One small trait per way of using the store.
//!
//! Times are bound by the caller; the database's clock is asked for nothing but to compare. Every call is set-wise where its caller can
//! have many of the thing.

mod inbound;
mod report;
mod stream;

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountLimits, ApiKey, DkimKey, Incarnation, KeyDigest, KnownRecipient, MessageUid,
    RecipientId, RecipientKey, Span, Status, Template, TemplateName, Tenant, TenantId, Time,
    id::{AuditId, BatchCode, SessionId},
    oauth::{OAuthOwner, OAuthState},
};

pub use inbound::Inbound;
pub use report::{Report, Retain};
pub use stream::Streams;

use crate::{
    error::StoreError,
    record::{
        Acceptance, AccountGate, AccountKey, AuditEntry, BatchView, BlobName, Body, Change, Changed, Circuit,
        ClaimRequest, Claimed, DedupKind, DirectoryChange, DutyRecord, Filter, Link, MessageBrief,
        MessageCount, MessageKey, MessagePage, MessageRecord, MessageSummary, NewMessage, NodeBeat,
        NodeRecord, Pace, PreparationState, PrepareRequest, QueueState, Stalled, Stats, StoreSpace,
        Suppression, Suspension, ToPrepare, Used, WireCommit,
    },
    sql::durability::DurabilityRisk,
};

/// The door's side: taking messages in.
#[async_trait]
pub trait Intake: Send + Sync {
    /// Stores messages; each is durable, or refused as a repeat, when this returns. One answer per message, in
    /// order. A message whose account has a standing claim may be handed over in the same transaction.
    async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, StoreError>;

    /// What accepting something with these keys would find, without storing it: a repeat, a conflict, or nothing. The
    /// first key that is held decides.
    async fn seen_before(
        &self,
        tenant: &TenantId,
        keys: &[(DedupKind, String)],
        fingerprint: &[u8; 32],
        now: Time,
    ) -> Result<Option<Acceptance>, StoreError>;
}

/// The dispatcher's side: taking work, and writing back what became of it.
#[async_trait]
pub trait Work: Send + Sync {
    /// Leases due messages of the accounts named. Where less is due than wanted, the rest is parked as a standing
    /// claim: messages accepted later for that account are leased as they are stored and come through
    /// [`Work::handed_over`].
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError>;

    /// The next messages handed over to standing claims. Pends while there are none. One consumer at a time.
    async fn handed_over(&self) -> Vec<Claimed>;

    /// Withdraws every standing claim: nothing is handed over after this returns, but for what
    /// [`Work::handed_over`] has not yet given out.
    fn unpark(&self);

    /// Makes the permission to write the final dot durable. `true` where it holds; `false` where the lease is lost
    /// or the message has expired, and the dot must not be written.
    async fn wire_commit(&self, commits: Vec<WireCommit>) -> Result<Vec<bool>, StoreError>;

    /// The one fenced write: moves messages to their next state, with events, recipients and attempt, each in one
    /// transaction. `true` where the fence held, `false` where somebody else was faster and nothing was written.
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<bool>, StoreError>;

    /// A message's bytes, for work too large to come with its claim.
    async fn body(&self, uid: MessageUid) -> Result<Option<Body>, StoreError>;

    /// Messages whose worker is gone: leased to an incarnation other than those `alive`, or past the backstop.
    async fn stalled(&self, alive: &[Incarnation], now: Time, limit: u32)
    -> Result<Vec<Stalled>, StoreError>;

    /// Waiting messages whose `expires_at` has passed. Those in doubt are claimed, for whoever has them to hold.
    async fn overdue(&self, now: Time, limit: u32) -> Result<Vec<Stalled>, StoreError>;

    /// Accounts that have work due now, and when the next of the rest is due.
    async fn queue_state(&self, now: Time) -> Result<QueueState, StoreError>;

    /// Accounts that may have new work since the last call. A hint: polling [`Work::queue_state`] is the guarantee.
    async fn woken(&self) -> Vec<AccountKey>;
}

/// The preparers' side: messages that need something from elsewhere before they can be composed. They start as
/// `accepted`; what came of it is written with [`Work::apply`].
#[async_trait]
pub trait Prepare: Send + Sync {
    /// Whose messages wait to be prepared.
    async fn preparation_state(&self, now: Time) -> Result<PreparationState, StoreError>;

    /// Leases messages that wait to be prepared, the longest waiting first; they become `validating`.
    async fn claim_preparation(&self, request: PrepareRequest) -> Result<Vec<ToPrepare>, StoreError>;

    /// Pends until there may be something new to prepare. A hint.
    async fn preparation_woken(&self);
}

/// Names for bytes that are kept outside the database. The bytes themselves are [`crate::blob::Depot`]'s.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// The name under which such a blob is to be kept: it is safe from deletion for an hour from `now`, and from then on
    /// while something refers to it. Called before the bytes are written.
    async fn reserve_blob(&self, digest: [u8; 32], size: u64, now: Time) -> Result<BlobName, StoreError>;

    /// Blobs that nothing refers to, reserved before `before`. From now on they are to be deleted: nobody gets their
    /// names any more.
    async fn condemn_blobs(&self, before: Time, limit: u32) -> Result<Vec<BlobName>, StoreError>;

    /// Forgets blobs whose bytes are gone.
    async fn forget_blobs(&self, gone: &[BlobName]) -> Result<(), StoreError>;
}

/// What content is made with: templates, known recipients, signing keys, links.
#[async_trait]
pub trait Catalogue: Send + Sync {
    /// A template in this version, or in its latest.
    async fn template(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
    ) -> Result<Option<Template>, StoreError>;

    /// The latest versions of a tenant's templates by name, after this one.
    async fn templates(
        &self,
        tenant: &TenantId,
        after: Option<&TemplateName>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError>;

    /// The versions of a template, the latest first, before this one.
    async fn template_versions(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Template>, StoreError>;

    /// An entry of the directory of recipients. A deleted one is found by its id, and by its external id as long as no
    /// other has it.
    async fn recipient(
        &self,
        tenant: &TenantId,
        key: &RecipientKey,
    ) -> Result<Option<KnownRecipient>, StoreError>;

    /// A tenant's known recipients that are not deleted, by id, after this one; with this address where one is given.
    async fn recipients(
        &self,
        tenant: &TenantId,
        address: Option<&str>,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Result<Vec<KnownRecipient>, StoreError>;

    /// A tenant's signing keys by domain and selector, of all tenants where none is named; of one domain where one is.
    async fn dkim_keys(
        &self,
        tenant: Option<&TenantId>,
        domain: Option<&str>,
    ) -> Result<Vec<DkimKey>, StoreError>;

    /// A file that this message links to, by its blob; also if the link has ended.
    async fn link(&self, uid: MessageUid, blob: &BlobName) -> Result<Option<Link>, StoreError>;
}

/// Messages that are read at once.
const PAGE_MAX: u32 = 500;

/// The readers' side: API, command line, dashboard. Every read is confined to one tenant.
#[async_trait]
pub trait Read: Send + Sync {
    /// One message with all that belongs to it.
    async fn message(&self, tenant: &TenantId, key: &MessageKey)
    -> Result<Option<MessageRecord>, StoreError>;

    /// A page of messages that match, newest first, after the cursor. It costs about the same whatever lies in the store, so
    /// only so many messages are looked at: see [`MessagePage::next`].
    async fn search(
        &self,
        tenant: &TenantId,
        filter: &Filter,
        before: Option<MessageUid>,
        limit: u32,
    ) -> Result<MessagePage, StoreError>;

    /// How many messages match, counted up to `most`, and only while it costs little.
    async fn count(&self, tenant: &TenantId, filter: &Filter, most: u32) -> Result<MessageCount, StoreError>;

    /// Messages that match, newest first, after the cursor: `limit` of them, or all, however long it takes.
    async fn messages(
        &self,
        tenant: &TenantId,
        filter: &Filter,
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

    /// These messages with their recipients, in no order, for whoever tells of many at once. Left out are those that are
    /// gone or of others, and those with more recipients than [`MessageBrief::RECIPIENTS_MAX`], which [`Read::message`] has.
    async fn briefs(&self, tenant: &TenantId, uids: &[MessageUid]) -> Result<Vec<MessageBrief>, StoreError>;

    /// The RFC 5322 bytes; none while it waits to be prepared, and once they were removed.
    async fn raw(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<Body>, StoreError>;

    /// The request as it was submitted, unless it was removed.
    async fn payload(&self, tenant: &TenantId, uid: MessageUid) -> Result<Option<Body>, StoreError>;

    /// What happened to a tenant's messages lately, from this time on, in order: of the last hour, as far as it was fanned out.
    async fn pace(&self, tenant: &TenantId, since: Time) -> Result<Vec<Pace>, StoreError>;

    /// Counts by status, how long messages wait that may go and that are held, and doubts that wait for a word: for one tenant or
    /// for all.
    async fn stats(&self, tenant: Option<&TenantId>, now: Time) -> Result<Stats, StoreError>;
}

/// Tenants, accounts, keys, pauses, suppressions: what operators change, and the record of it.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Makes one change and writes its audit entry, in one transaction. The entry is written only where something
    /// changed.
    async fn change(&self, change: DirectoryChange, audit: Option<AuditEntry>)
    -> Result<Changed, StoreError>;

    /// Rises with each change that was made through this process, before the change is answered and before the account is
    /// woken that changed: what was read under another generation may be old. Others' changes do not show.
    fn generation(&self) -> u64;

    /// One tenant, deleted or not.
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError>;

    /// Tenants by id, after this one; the deleted are among them.
    async fn tenants(&self, after: Option<&TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError>;

    /// A tenant's accounts, by id; of all tenants when none is named.
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

    /// The tokens that an account or a mailbox has been given.
    async fn oauth_state(&self, owner: &OAuthOwner) -> Result<Option<OAuthState>, StoreError>;

    /// All tokens of all tenants, for whoever seals them anew: one entry for each account and mailbox that has a grant.
    async fn oauth_states(&self) -> Result<Vec<OAuthState>, StoreError>;

    /// What of a tenant is paused.
    async fn suspensions(&self, tenant: &TenantId) -> Result<Vec<Suspension>, StoreError>;

    /// A tenant's batches by code, after this one: those of the lanes that there are, and those suspended before.
    async fn batches(
        &self,
        tenant: &TenantId,
        after: Option<&BatchCode>,
        limit: u32,
    ) -> Result<Vec<BatchView>, StoreError>;

    /// How many of a batch's messages stand where: of all, or of [`BatchView::COUNTED_MAX`].
    async fn batch_states(
        &self,
        tenant: &TenantId,
        code: &BatchCode,
    ) -> Result<BTreeMap<Status, i64>, StoreError>;

    /// What shuts these accounts now, by account; read for all of them together.
    async fn account_gates(
        &self,
        tenant: &TenantId,
        accounts: &[AccountId],
        now: Time,
    ) -> Result<Vec<(AccountId, AccountGate)>, StoreError>;

    /// How many of a tenant's messages wait behind a suspension, a used-up limit or an open circuit;
    /// [`Suspension::HELD_MAX`] are so many or more.
    async fn held(&self, tenant: &TenantId, now: Time) -> Result<i64, StoreError>;

    /// A tenant's suppressed addresses, in order, after this one.
    async fn suppressions(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Suppression>, StoreError>;

    /// One suppressed address, given in lower case; also if it is over.
    async fn suppression(&self, tenant: &TenantId, address: &str) -> Result<Option<Suppression>, StoreError>;

    /// The audit log, newest first, before this entry; of one tenant or of all.
    async fn audit(
        &self,
        tenant: Option<&TenantId>,
        before: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;

    /// Whether and why an account is left alone.
    async fn circuit(&self, key: &AccountKey) -> Result<Option<Circuit>, StoreError>;

    /// Every account that is left alone, of one tenant or of all; by tenant and account.
    async fn circuits(&self, tenant: Option<&TenantId>) -> Result<Vec<Circuit>, StoreError>;

    /// What an account has used of its limits, for each limited span.
    async fn used(
        &self,
        key: &AccountKey,
        limits: &AccountLimits,
        now: Time,
    ) -> Result<Vec<(Span, Used)>, StoreError>;

    /// Creates a tenant; `false` if it exists.
    async fn create_tenant(&self, tenant: Tenant) -> Result<bool, StoreError> {
        Ok(self.change(DirectoryChange::CreateTenant(tenant, Vec::new()), None).await? == Changed::Done)
    }

    /// Names the account a tenant's mail takes when it names none.
    async fn set_default_account(&self, tenant: &TenantId, account: &AccountId) -> Result<(), StoreError> {
        let change = DirectoryChange::SetDefaultAccount(tenant.clone(), account.clone());
        self.change(change, None).await.map(drop)
    }

    /// Creates an account; `false` if its id is taken.
    async fn create_account(&self, account: Account) -> Result<bool, StoreError> {
        Ok(self.change(DirectoryChange::CreateAccount(account), None).await? == Changed::Done)
    }

    /// Replaces an account if its stored version is `expected_version`; `false` otherwise.
    async fn update_account(&self, account: Account, expected_version: i64) -> Result<bool, StoreError> {
        let change = DirectoryChange::UpdateAccount(account, expected_version);
        Ok(self.change(change, None).await? == Changed::Done)
    }

    /// Deletes an account without waiting mail.
    async fn delete_account(&self, tenant: &TenantId, id: &AccountId) -> Result<Changed, StoreError> {
        let key = AccountKey { tenant: tenant.clone(), account: id.clone() };
        self.change(DirectoryChange::DeleteAccount(key), None).await
    }
}

/// The processes that share a database, and what only one of them does at a time.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Whether other processes may use this store at the same time.
    fn is_shared(&self) -> bool;

    /// Registers this process, or moves its counter, and returns every registered node. Refuses, and lets nothing be
    /// written any more, where the schema has meanwhile become one that this program must not write.
    async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError>;

    /// The time by the clock of the server that nodes share, where there is one: a witness, and not what anybody goes by.
    async fn server_time(&self) -> Result<Option<Time>, StoreError> {
        Ok(None)
    }

    /// Every registered node, the oldest first.
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError>;

    /// Strikes nodes from the register, those that stop and the dead. Their duties are free from then on.
    async fn strike(&self, gone: &[Incarnation]) -> Result<(), StoreError>;

    /// Who has a duty, if anyone had it yet.
    async fn duty(&self, name: &str) -> Result<Option<DutyRecord>, StoreError>;

    /// Takes a duty, if it still is as it was `seen`. Its new term, or `None` where somebody was faster.
    async fn take_duty(
        &self,
        name: &str,
        seen: Option<DutyRecord>,
        by: Incarnation,
        at: Time,
    ) -> Result<Option<i64>, StoreError>;
}

/// The operator's side.
#[async_trait]
pub trait Operate: Send + Sync {
    /// Settings of the database, at the last review, with which what it acknowledged can be lost.
    fn durability_risks(&self) -> Vec<DurabilityRisk> {
        Vec::new()
    }

    /// Reads these settings again, and logs those that were not known: another server may have taken over.
    async fn review_durability(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether the store can write, by writing: a full disk or a server that only reads shows here as in an accept. Asked
    /// more often than once a second it gives its last answer again.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Transactions committed with writes in them since the start.
    fn commits(&self) -> u64;

    /// Keeps the log short and gives some of what is free back to the disk, where the database is a file of this process; what
    /// it takes of the disk then. A server does that itself, and answers nothing.
    async fn tend_space(&self) -> Result<Option<StoreSpace>, StoreError> {
        Ok(None)
    }

    /// Finishes what was begun and lets go of the database.
    async fn close(&self);
}

/// All of it.
pub trait Store:
    Intake
    + Work
    + Prepare
    + Blobs
    + Catalogue
    + Read
    + Directory
    + Nodes
    + Report
    + Retain
    + Inbound
    + Streams
    + Operate
{
}

impl<T> Store for T where
    T: Intake
        + Work
        + Prepare
        + Blobs
        + Catalogue
        + Read
        + Directory
        + Nodes
        + Report
        + Retain
        + Inbound
        + Streams
        + Operate
{
}
