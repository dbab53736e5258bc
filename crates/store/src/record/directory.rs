//! What operators change and look at: tenants, accounts, keys, pauses, suppressions, and the record of it.

use postway_domain::{
    Account, AccountId, ApiKey, Contact, DkimKey, KnownRecipient, Lane, MailStream, RecipientId, Rule,
    Subscriber, Template, TemplateName, Tenant, TenantId, Time, WatchedMailbox,
    id::{AuditId, BatchCode, ContactId, RuleId, SessionId, StreamId, SubscriberId},
    oauth::OAuthState,
    secret::Sealed,
};

use super::{
    AccountKey, Permit,
    inbound::MailboxKey,
    stream::{ScopedSuppression, SuppressionScope},
};

/// One change of the directory.
#[derive(Clone, Debug)]
pub enum DirectoryChange {
    /// Makes a tenant, with its first accounts.
    CreateTenant(Tenant, Vec<Account>),
    /// Replaces a tenant if its stored version is this one.
    UpdateTenant(Tenant, i64),
    /// Marks a tenant as deleted: nothing of it is served any more, and its data is removed bit by bit.
    DeleteTenant(TenantId, Time),
    /// Removes up to so many messages of a deleted tenant, and at last all the rest of it.
    PurgeTenant(TenantId, u32),
    /// Names the account a tenant's mail takes when it names none.
    SetDefaultAccount(TenantId, AccountId),
    /// Makes an account.
    CreateAccount(Account),
    /// Replaces an account if its stored version is this one.
    UpdateAccount(Account, i64),
    /// Deletes an account without waiting mail.
    DeleteAccount(AccountKey),
    /// Writes the tokens of an account or a mailbox: the first, `Exists` where there are some; or those after the version that is
    /// expected, `Stale` where it is another.
    PutOAuthState(OAuthState, Option<i64>),
    /// Makes an API key.
    CreateKey(ApiKey),
    /// Revokes a tenant's API key.
    RevokeKey(TenantId, String, Time),
    /// Notes when keys were last used.
    TouchKeys(Vec<(String, Time)>),
    /// Ends a browser's session before its time, which is given: `Already` where it was ended before.
    EndSession(SessionId, Time),
    /// Pauses something.
    Suspend(Suspension),
    /// Lets it go on.
    Activate(TenantId, SuspensionScope),
    /// Adds addresses to a suppression list, or renews them.
    Suppress(Vec<Suppression>),
    /// Takes addresses from a tenant's suppression list.
    Unsuppress(TenantId, Vec<String>),
    /// Adds suppressions of streams, patterns or the whole installation, or renews them.
    SuppressScoped(Vec<ScopedSuppression>),
    /// Takes such suppressions away.
    UnsuppressScoped(Vec<SuppressionScope>),
    /// Makes a stream: `Exists` where its id is taken.
    CreateStream(MailStream),
    /// Replaces a stream if its stored version is this one.
    UpdateStream(MailStream, i64),
    /// Deletes a stream. Who has left it gets no mail under its name all the same.
    DeleteStream(TenantId, StreamId),
    /// Leaves an account alone for a while.
    OpenCircuit(Circuit),
    /// An account works again.
    CloseCircuit(AccountKey),
    /// Makes a version of a template: `Exists` where the version is taken, `Stale` where it is not the next one.
    CreateTemplate(Template),
    /// Deletes a template with all its versions.
    DeleteTemplate(TenantId, TemplateName),
    /// Makes an entry of the directory of recipients: `Exists` where its external id is taken.
    CreateRecipient(KnownRecipient),
    /// Replaces an entry if its stored version is this one and it is not deleted.
    UpdateRecipient(KnownRecipient, i64),
    /// Marks an entry as deleted. Its external id becomes free.
    DeleteRecipient(TenantId, RecipientId, Time),
    /// Makes a signing key: `Exists` where domain and selector are taken.
    CreateDkimKey(DkimKey),
    /// Lets a signing key sign, or stops it: tenant, domain, selector.
    SwitchDkimKey(TenantId, String, String, bool),
    /// Seals a signing key anew, if it is still sealed like this: `Stale` where it is not.
    ResealDkimKey(DkimKey, Sealed),
    /// Deletes a signing key: tenant, domain, selector.
    DeleteDkimKey(TenantId, String, String),
    /// Makes a subscriber: `Exists` where its id is taken.
    CreateSubscriber(Subscriber),
    /// Replaces a subscriber if its stored version is this one.
    UpdateSubscriber(Subscriber, i64),
    /// Deletes a subscriber, with what it was to be told.
    DeleteSubscriber(TenantId, SubscriberId),
    /// Leaves a subscriber alone until this time.
    QuietSubscriber(TenantId, SubscriberId, Time),
    /// Makes a watched mailbox: `Exists` where its id, or its host, username and folder, are taken.
    CreateMailbox(WatchedMailbox),
    /// Replaces a mailbox if its stored version is this one; `Exists` where its host, username and folder are taken. Where
    /// one of these is another than before, its cursor is forgotten.
    UpdateMailbox(WatchedMailbox, i64),
    /// Deletes a mailbox, with its rules, its mail, and the memory of what it has had.
    DeleteMailbox(MailboxKey),
    /// Makes a rule: `Exists` where its id is taken, `Missing` where its mailbox is not there.
    CreateRule(Rule),
    /// Replaces a rule if its stored version is this one; `Missing` where its mailbox is not there.
    UpdateRule(Rule, i64),
    /// Deletes a rule.
    DeleteRule(TenantId, RuleId),
    /// Makes a contact: `Exists` where its id or its name is taken.
    CreateContact(Contact),
    /// Replaces a contact if its stored version is this one; `Exists` where its name is taken.
    UpdateContact(Contact, i64),
    /// Deletes a contact.
    DeleteContact(TenantId, ContactId),
    /// Puts a digest in the place of an address that entries of the audit log about suppressions have as their target.
    /// [`Changed::Done`] whether there are any or not.
    RedactAudit {
        /// Whose entries.
        tenant: TenantId,
        /// The address, in lower case.
        target: String,
        /// What is to stand there.
        digest: String,
    },
    /// Forgets suppressions that are over, ended sessions past their time, links that have ended, and what is left of
    /// deleted subscribers and mailboxes.
    Forget(Time),
    /// Forgets so many buckets of use of limits that count no more. [`Changed::Already`] where there are none left.
    ForgetUse(Time, u32),
    /// Makes so many ready messages due now that are due later, after the clock was set back. [`Changed::Already`] where
    /// there are none left.
    PullReady(Time, u32),
    /// Makes so many messages of each account due now that wait, or are held, until later than this time of it: by a clock
    /// that was ahead. [`Changed::Already`] where there are none left.
    PullBeyond(Vec<(AccountKey, Time)>, Time, u32),
    /// Makes so many messages due to be prepared now that wait for it until later although a clock that was ahead set their time:
    /// those not tried yet, and those whose next fetch is later than the given time. [`Changed::Already`] where there are none left.
    PullPreparation {
        /// The time by the clock that is right.
        now: Time,
        /// No fetch that was put off is due later.
        latest: Time,
        /// The most messages.
        limit: u32,
    },
    /// Moves what counts for limits at this time by so many milliseconds: the clock will be set forward by as much.
    ShiftUse(Time, i64),
    /// Counts what was used in times that are still to come as used now: the clock was set back.
    RedateUse(Time),
    /// Moves the debit of a permit that was not used yet to this time. [`Changed::Stale`] where it counts no more.
    RenewPermit(Permit, Time),
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was done.
    Done,
    /// It was so already.
    Already,
    /// There is no such thing.
    Missing,
    /// There is such a thing already.
    Exists,
    /// Somebody changed it meanwhile.
    Stale,
    /// Something else needs it.
    InUse,
}

/// What is paused.
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
    /// The word users see.
    pub fn as_str(&self) -> &'static str {
        match self {
            SuspensionScope::Tenant => "tenant",
            SuspensionScope::Batch(_) => "batch",
            SuspensionScope::Account(_) => "account",
        }
    }

    /// As a store keeps it: a kind and a code.
    pub(crate) fn parts(&self) -> (i64, &str) {
        match self {
            SuspensionScope::Tenant => (0, ""),
            SuspensionScope::Batch(code) => (1, code.as_str()),
            SuspensionScope::Account(id) => (2, id.as_str()),
        }
    }

    /// Whether it holds this lane of the same tenant.
    pub fn holds(&self, lane: &Lane) -> bool {
        match self {
            SuspensionScope::Tenant => true,
            SuspensionScope::Batch(code) => lane.batch.as_ref() == Some(code),
            SuspensionScope::Account(id) => lane.account == *id,
        }
    }
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Whose.
    pub tenant: TenantId,
    /// Of what.
    pub scope: SuspensionScope,
    /// Since when.
    pub since: Time,
}

impl Suspension {
    /// Messages held back that are counted, at most.
    pub const HELD_MAX: i64 = 100_000;
}

/// What shuts an account's way out, besides a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountGate {
    /// A limit beyond which mail waits is used up.
    Limit,
    /// It is at fault; when its time is up, one message at a time tries.
    Circuit,
}

impl AccountGate {
    /// The word users see.
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
    /// Somebody put it there.
    Manual = 3,
    /// Its owner left a stream.
    Unsubscribe = 4,
}

impl SuppressionReason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::HardBounce, Self::Complaint, Self::Manual, Self::Unsubscribe];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HardBounce => "hard_bounce",
            Self::Complaint => "complaint",
            Self::Manual => "manual",
            Self::Unsubscribe => "unsubscribe",
        }
    }

    /// As a store keeps it.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// From a store.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// An address that gets no mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Whose list.
    pub tenant: TenantId,
    /// The address in lower case.
    pub address: String,
    /// Why.
    pub reason: SuppressionReason,
    /// More about it.
    pub note: Option<String>,
    /// Since when.
    pub created_at: Time,
    /// Until when; for ever when absent.
    pub expires_at: Option<Time>,
}

impl Suppression {
    /// Whether one that a report asks for takes the place of this one. It must last as long or longer: a lesser proof never
    /// shortens what a better one, or a person, has made.
    pub(crate) fn yields_to(&self, reported: &Self) -> bool {
        match (self.expires_at, reported.expires_at) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(until), Some(reported_until)) => reported_until >= until,
        }
    }
}

/// An account at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// The account.
    pub key: AccountKey,
    /// The failure's code.
    pub code: String,
    /// What was said.
    pub reason: String,
    /// Since when.
    pub opened_at: Time,
    /// When it is tried again.
    pub open_until: Time,
    /// How often in a row.
    pub faults: u32,
}

/// A management call, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id; later ones are greater.
    pub id: AuditId,
    /// When.
    pub at: Time,
    /// Who: `admin`, the id of a key, or the command of the operator (`serve --hold`).
    pub actor: String,
    /// About which tenant, if one.
    pub tenant: Option<TenantId>,
    /// What was done, as in `account.create`.
    pub action: String,
    /// To what.
    pub target: String,
    /// The request that asked for it.
    pub request_id: Option<String>,
    /// Particulars as a JSON object; never a secret.
    pub detail: Option<String>,
}

/// A batch and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchView {
    /// Its code.
    pub code: BatchCode,
    /// Since when it is suspended, if it is.
    pub suspended_since: Option<Time>,
    /// How many of its messages wait to be sent; [`BatchView::WAITING_MAX`] are so many or more.
    pub waiting: i64,
}

impl BatchView {
    /// Waiting messages of a batch that are counted, at most.
    pub const WAITING_MAX: i64 = 10_000;
    /// Messages of a batch that are counted by state, at most.
    pub const COUNTED_MAX: i64 = 10_000;
}

/// What an account has used of one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// How much counts now.
    pub count: i64,
    /// When the oldest of it stops counting.
    pub frees_at: Option<Time>,
}
