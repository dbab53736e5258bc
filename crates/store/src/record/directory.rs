//! What operators change and read: tenants, accounts, keys, suspensions, suppressions, and the audit log.

use postway_domain::{
    Account, AccountId, ApiKey, Contact, DkimKey, InboundRule, KnownRecipient, Lane, MailRoute, MailStream,
    ProviderHook, RecipientId, Subscriber, Template, TemplateName, Tenant, TenantId, Time, User,
    WatchedMailbox,
    id::{
        AuditId, BatchCode, BulkActionId, ContactId, RouteId, RuleId, SessionId, StreamId, SubscriberId,
        UserId,
    },
    oauth::OAuthState,
    quota::{DailyQuota, MailAmount, QuotaDay},
    secret::SealedSecret,
};

use super::{
    AccountKey, SendingPermit,
    bulk_action::BulkAction,
    inbound::MailboxKey,
    people::UserSession,
    stream::{ScopedSuppression, SuppressionScope},
};

/// What the last check of a sending domain's DNS found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCheckRecord {
    /// The tenant that sends from it.
    pub tenant: TenantId,
    /// The domain, in lower case and ASCII.
    pub domain: String,
    /// The findings as JSON. The store does not read them.
    pub findings: String,
    /// When it was checked.
    pub checked_at: Time,
    /// Since when every check found it right; `None` if the last one did not.
    pub right_since: Option<Time>,
}

impl DomainCheckRecord {
    /// The most domains of a tenant that are listed.
    pub const DOMAINS_MAX: u32 = 500;
}

/// One change of the directory.
#[derive(Clone, Debug)]
pub enum DirectoryChange {
    /// Creates a tenant with its first accounts.
    CreateTenant(Tenant, Vec<Account>),
    /// Replaces a tenant if its stored version is this one.
    UpdateTenant(Tenant, i64),
    /// Marks a tenant as deleted: it is not served any more, and its data is removed step by step.
    DeleteTenant(TenantId, Time),
    /// Removes up to the given number of messages of a deleted tenant, and finally everything else it has.
    PurgeTenant(TenantId, u32),
    /// Sets the account that a tenant's mail uses if it names none.
    SetDefaultAccount(TenantId, AccountId),
    /// Creates an account.
    CreateAccount(Account),
    /// Replaces an account if its stored version is this one.
    UpdateAccount(Account, i64),
    /// Deletes an account that has no waiting mail.
    DeleteAccount(AccountKey),
    /// Writes the tokens of an account or a mailbox. Without an expected version they are the first (`Exists`
    /// if there are some); with one they replace that version (`Stale` if it is another).
    PutOAuthState(OAuthState, Option<i64>),
    /// Writes an account's hook. Without an expected version it is the first (`Exists` if there is one,
    /// `Missing` if there is no such account); with one it replaces that version (`Stale` if it is another).
    PutProviderHook(ProviderHook, Option<i64>),
    /// Deletes an account's hook. What it reported stays until retention removes it.
    DeleteProviderHook(AccountKey),
    /// Creates an API key.
    CreateKey(ApiKey),
    /// Revokes a tenant's API key.
    RevokeKey(TenantId, String, Time),
    /// Records when keys were last used.
    TouchKeys(Vec<(String, Time)>),
    /// Ends a browser session before the time at which it would end by itself, which is given; `Already` if
    /// it was ended before.
    EndSession(SessionId, Time),
    /// Creates a user; `Exists` if its name or its identity is taken.
    CreateUser(User),
    /// Replaces a user if its stored version is this one; `InUse` if nobody would be left who may do
    /// everything. The sessions of a user who is disabled end.
    UpdateUser(User, i64),
    /// Deletes a user with its sessions; `InUse` if it is the last who may do everything.
    DeleteUser(UserId),
    /// Begins a session of a user.
    BeginUserSession(UserSession),
    /// Records when a session was last used.
    TouchUserSession(SessionId, Time),
    /// Ends a session of a user, on every node.
    EndUserSession(SessionId),
    /// Ends all sessions of a user; `Missing` if it has no session.
    EndUserSessions(UserId),
    /// Suspends a tenant, an account or a batch.
    Suspend(SuspensionRecord),
    /// Lifts a suspension.
    Activate(TenantId, SuspensionScope),
    /// Adds addresses to a suppression list, or renews their entries.
    Suppress(Vec<SuppressionRecord>),
    /// Removes addresses from a tenant's suppression list.
    Unsuppress(TenantId, Vec<String>),
    /// Adds suppressions of streams, patterns or the whole installation, or renews them.
    SuppressScoped(Vec<ScopedSuppression>),
    /// Removes scoped suppressions.
    UnsuppressScoped(Vec<SuppressionScope>),
    /// Creates a stream; `Exists` if its id is taken.
    CreateStream(MailStream),
    /// Replaces a stream if its stored version is this one.
    UpdateStream(MailStream, i64),
    /// Deletes a stream. Readers who left it still get no mail under its name.
    DeleteStream(TenantId, StreamId),
    /// Creates a route; `Exists` if its id is taken.
    CreateRoute(MailRoute),
    /// Replaces a route if its stored version is this one.
    UpdateRoute(MailRoute, i64),
    /// Deletes a route.
    DeleteRoute(TenantId, RouteId),
    /// Gives a tenant's routes the positions 1, 2, … in this order, at this time; `Stale` if these are not
    /// all of its routes, each once.
    OrderRoutes(TenantId, Vec<RouteId>, Time),
    /// Creates a bulk action; `InUse` if too many of the tenant are running.
    CreateBulkAction(BulkAction),
    /// Ends a running bulk action; `Already` if it has ended.
    StopBulkAction(TenantId, BulkActionId, Time),
    /// Writes what the check of a domain found, in place of the check before.
    PutDomainCheck(DomainCheckRecord),
    /// Forgets the check of a domain.
    DeleteDomainCheck(TenantId, String),
    /// Opens an account's circuit.
    OpenCircuit(OpenCircuit),
    /// Closes an account's circuit.
    CloseCircuit(AccountKey),
    /// Creates a version of a template; `Exists` if the version is taken, `Stale` if it is not the next one.
    CreateTemplate(Template),
    /// Deletes a template with all its versions.
    DeleteTemplate(TenantId, TemplateName),
    /// Creates an entry of the directory of recipients; `Exists` if its external id is taken.
    CreateRecipient(KnownRecipient),
    /// Replaces an entry if its stored version is this one and it is not deleted.
    UpdateRecipient(KnownRecipient, i64),
    /// Marks an entry as deleted. Its external id becomes free.
    DeleteRecipient(TenantId, RecipientId, Time),
    /// Creates a signing key; `Exists` if domain and selector are taken.
    CreateDkimKey(DkimKey),
    /// Activates or deactivates a signing key, given by tenant, domain and selector.
    SwitchDkimKey(TenantId, String, String, bool),
    /// Encrypts a signing key again, if it is still encrypted like this; `Stale` if it is not.
    ResealDkimKey(DkimKey, SealedSecret),
    /// Deletes a signing key, given by tenant, domain and selector.
    DeleteDkimKey(TenantId, String, String),
    /// Creates a subscriber; `Exists` if its id is taken.
    CreateSubscriber(Subscriber),
    /// Replaces a subscriber if its stored version is this one.
    UpdateSubscriber(Subscriber, i64),
    /// Deletes a subscriber with its open notifications.
    DeleteSubscriber(TenantId, SubscriberId),
    /// Sends a subscriber nothing until this time.
    QuietSubscriber(TenantId, SubscriberId, Time),
    /// Creates a watched mailbox; `Exists` if its id, or its host, username and folder, are taken.
    CreateMailbox(WatchedMailbox),
    /// Replaces a mailbox if its stored version is this one; `Exists` if its host, username and folder are
    /// taken. If one of these changes, the cursor is reset.
    UpdateMailbox(WatchedMailbox, i64),
    /// Deletes a mailbox with its rules, its mail, and the record of which mail it has had.
    DeleteMailbox(MailboxKey),
    /// Creates a rule; `Exists` if its id is taken, `Missing` if its mailbox does not exist.
    CreateRule(InboundRule),
    /// Replaces a rule if its stored version is this one; `Missing` if its mailbox does not exist.
    UpdateRule(InboundRule, i64),
    /// Deletes a rule.
    DeleteRule(TenantId, RuleId),
    /// Creates a contact; `Exists` if its id or its name is taken.
    CreateContact(Contact),
    /// Replaces a contact if its stored version is this one; `Exists` if its name is taken.
    UpdateContact(Contact, i64),
    /// Deletes a contact.
    DeleteContact(TenantId, ContactId),
    /// Replaces an address by a digest in the audit entries about suppressions that have it as their target.
    /// [`ChangeResult::Done`] whether there are such entries or not.
    RedactAudit {
        /// The tenant whose entries are changed.
        tenant: TenantId,
        /// The address, in lower case.
        target: String,
        /// The digest to write instead.
        digest: String,
    },
    /// Removes expired suppressions, ended sessions past their time, expired links, old bulk actions, and the remaining rows of
    /// deleted subscribers and mailboxes.
    Forget(Time),
    /// Removes up to the given number of limit-use buckets that do not count any more.
    /// [`ChangeResult::Already`] if none is left.
    ForgetUse(Time, u32),
    /// After the clock went back: makes up to the given number of `ready` messages due immediately.
    /// [`ChangeResult::Already`] if none is left.
    PullReady(Time, u32),
    /// Makes up to the given number of messages of each account due immediately that are scheduled later than
    /// the account's given time, because a clock was ahead. [`ChangeResult::Already`] if none is left.
    PullBeyond(Vec<(AccountKey, Time)>, Time, u32),
    /// Makes messages due for preparation immediately whose time a clock that was ahead has set: those not
    /// tried yet, and those whose next fetch is later than `latest`. [`ChangeResult::Already`] if none is
    /// left.
    PullPreparation {
        /// The correct current time.
        now: Time,
        /// The latest time at which a deferred fetch can be due.
        latest: Time,
        /// The most messages.
        limit: u32,
    },
    /// Moves the limit use that counts at this time by the given number of milliseconds, because the clock
    /// will be set forward by as much. From now on no limit is debited by the time before.
    ShiftUse(Time, i64),
    /// As [`Self::RedateUse`], by the clock that all others follow, which shows this time after it was set
    /// back by the given number of milliseconds. For a while no limit is debited by the time that was left.
    SetUseBack(Time, i64),
    /// Counts limit use that is dated in the future as used now, because the clock was set back.
    /// [`ChangeResult::Stale`] if this clock has not heard of the present time.
    RedateUse(Time),
    /// Moves the debit of an unused permit to this time. [`ChangeResult::Stale`] if it does not count any
    /// more.
    RenewPermit(SendingPermit, Time),
    /// Leases a part of a tenant's daily quota; [`ChangeResult::Stale`] if there is not that much left.
    LeaseQuota(QuotaLease),
    /// Records that a tenant's use of its quota on this day has reached a level, in per cent;
    /// [`ChangeResult::Already`] if that was recorded.
    WarnOfQuota(TenantId, QuotaDay, u8),
}

/// A part of a daily quota that a node wants for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLease {
    /// The tenant.
    pub tenant: TenantId,
    /// The day.
    pub day: QuotaDay,
    /// How much.
    pub amount: MailAmount,
    /// The whole quota.
    pub quota: DailyQuota,
}

/// What is leased of a tenant's daily quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// By all nodes together.
    pub used: MailAmount,
    /// The highest level that was warned of, in per cent.
    pub warned: u8,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeResult {
    /// The change was made.
    Done,
    /// Nothing had to be changed.
    Already,
    /// The object does not exist.
    Missing,
    /// The object exists already.
    Exists,
    /// It was changed in the meantime.
    Stale,
    /// Something else still needs it.
    InUse,
}

/// What a suspension applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuspensionScope {
    /// All of a tenant's mail.
    Tenant,
    /// One of its batches.
    Batch(BatchCode),
    /// One of its accounts.
    Account(AccountId),
}

impl SuspensionScope {
    /// The word that users see.
    pub fn as_str(&self) -> &'static str {
        match self {
            SuspensionScope::Tenant => "tenant",
            SuspensionScope::Batch(_) => "batch",
            SuspensionScope::Account(_) => "account",
        }
    }

    /// The stored form: a kind and a code.
    pub(crate) fn parts(&self) -> (i64, &str) {
        match self {
            SuspensionScope::Tenant => (0, ""),
            SuspensionScope::Batch(code) => (1, code.as_str()),
            SuspensionScope::Account(id) => (2, id.as_str()),
        }
    }

    /// Whether it applies to this lane of the same tenant.
    pub fn holds(&self, lane: &Lane) -> bool {
        match self {
            SuspensionScope::Tenant => true,
            SuspensionScope::Batch(code) => lane.batch.as_ref() == Some(code),
            SuspensionScope::Account(id) => lane.account == *id,
        }
    }
}

/// A suspension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspensionRecord {
    /// The tenant.
    pub tenant: TenantId,
    /// What is suspended.
    pub scope: SuspensionScope,
    /// When it began.
    pub since: Time,
}

impl SuspensionRecord {
    /// The most blocked messages that are counted.
    pub const HELD_MAX: i64 = 100_000;
}

/// What blocks an account, besides a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountGate {
    /// A sending limit is used up, and mail waits for it.
    Limit,
    /// Its circuit is open; when the time is up, one message at a time is tried.
    Circuit,
}

impl AccountGate {
    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            AccountGate::Limit => "limit",
            AccountGate::Circuit => "circuit",
        }
    }
}

/// Why an address gets no mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuppressionReason {
    /// The address does not exist.
    HardBounce = 1,
    /// Its owner complained.
    Complaint = 2,
    /// An operator added it.
    Manual = 3,
    /// Its owner left a stream.
    Unsubscribe = 4,
}

impl SuppressionReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::HardBounce, Self::Complaint, Self::Manual, Self::Unsubscribe];

    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HardBounce => "hard_bounce",
            Self::Complaint => "complaint",
            Self::Manual => "manual",
            Self::Unsubscribe => "unsubscribe",
        }
    }

    /// The code that is stored.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The reason with this stored code.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// An address that gets no mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressionRecord {
    /// The tenant whose list it is on.
    pub tenant: TenantId,
    /// The address in lower case.
    pub address: String,
    /// The reason.
    pub reason: SuppressionReason,
    /// A note.
    pub note: Option<String>,
    /// When it began.
    pub created_at: Time,
    /// When it ends; `None` if it never does.
    pub expires_at: Option<Time>,
}

impl SuppressionRecord {
    /// Whether a suppression that a report asks for replaces this one. It must last as long or longer: weaker
    /// evidence never shortens what stronger evidence, or a person, has set.
    pub(crate) fn yields_to(&self, reported: &Self) -> bool {
        match (self.expires_at, reported.expires_at) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(until), Some(reported_until)) => reported_until >= until,
        }
    }
}

/// An account whose circuit is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuit {
    /// The account.
    pub key: AccountKey,
    /// The failure's code.
    pub code: String,
    /// The text of the failure.
    pub reason: String,
    /// When it began.
    pub opened_at: Time,
    /// When the account is tried again.
    pub open_until: Time,
    /// The number of failures in a row.
    pub faults: u32,
}

/// A management call in the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id; later ones are greater.
    pub id: AuditId,
    /// When it happened.
    pub at: Time,
    /// The actor: `admin`, `user:` and a name, `key:` and an id, or the operator's command (`serve --hold`).
    pub actor: String,
    /// The tenant it concerns, if any.
    pub tenant: Option<TenantId>,
    /// The action, as in `account.create`.
    pub action: String,
    /// The object it applies to.
    pub target: String,
    /// The id of the request.
    pub request_id: Option<String>,
    /// Details as a JSON object; never a secret.
    pub detail: Option<String>,
    /// Random bytes that are digested with the target, so that the digest of an erased address tells nothing.
    /// Absent once the target was erased, and for entries of older versions.
    pub salt: Option<[u8; 16]>,
}

/// A batch and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRecord {
    /// Its code.
    pub code: BatchCode,
    /// When it was suspended, if it is.
    pub suspended_since: Option<Time>,
    /// The number of its messages that wait to be sent, capped at [`BatchRecord::WAITING_MAX`]: that value
    /// means "at least".
    pub waiting: i64,
}

impl BatchRecord {
    /// The most waiting messages of a batch that are counted.
    pub const WAITING_MAX: i64 = 10_000;
    /// The most messages of a batch that are counted by state.
    pub const COUNTED_MAX: i64 = 10_000;
}

/// An account's use of one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitUse {
    /// The use that counts now.
    pub count: i64,
    /// When the oldest use stops counting.
    pub frees_at: Option<Time>,
}
