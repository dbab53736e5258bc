//! Work that is taken.

use bytes::Bytes;
use postway_domain::{
    AccountId, AccountLimits, EmailAddress, Incarnation, Lane, LeaseToken, MessageUid, RecipientKind,
    RecipientStatus, Span, State, Time,
    dsn::DsnWishes,
    message::{OnDoubt, Rest},
};

use super::AccountKey;

/// What a claim writes on what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The process that takes it.
    pub incarnation: Incarnation,
    /// The secret that later writes must show.
    pub token: LeaseToken,
    /// The backstop: taken back after this even if the process seems alive.
    pub until: Time,
}

/// Asks for due work.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The lease to write.
    pub lease: Lease,
    /// Now.
    pub now: Time,
    /// Which accounts have room, and how much.
    pub wants: Vec<AccountWant>,
    /// Bodies up to this size come with the claim; larger ones are read with [`crate::Work::body`].
    pub inline_bytes_max: u32,
}

/// Room of one account.
#[derive(Clone, Debug)]
pub struct AccountWant {
    /// The account.
    pub key: AccountKey,
    /// How many messages it can take.
    pub room: u32,
    /// Whether what is not filled now shall stand: replaces the account's standing claim with the remainder.
    pub park: bool,
    /// The limits of the account that sends it.
    pub limits: AccountLimits,
    /// The account that sends it, where another stands in for the one it was accepted for.
    pub via: Option<AccountId>,
}

impl AccountWant {
    /// Room without limits.
    pub fn unlimited(key: AccountKey, room: u32, park: bool) -> Self {
        Self { key, room, park, limits: AccountLimits::default(), via: None }
    }

    /// The account whose limits count.
    pub fn sender(&self) -> AccountKey {
        let account = self.via.clone().unwrap_or_else(|| self.key.account.clone());
        AccountKey { tenant: self.key.tenant.clone(), account }
    }
}

/// The right to send one message, debited from an account's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Whose limits.
    pub key: AccountKey,
    /// When it was debited.
    pub debited_at: Time,
    /// The attempt must begin before this; later the permit counts for a window in which it was not used.
    pub use_by: Time,
    /// The limited spans it was debited from.
    pub spans: Vec<Span>,
}

impl Permit {
    /// The same permit, debited now instead of then. That changes nothing in any window as long as it still counts in all of
    /// them; `None` where it does not.
    pub fn renewed(&self, now: Time) -> Option<Self> {
        let counts = |span: &Span| span.oldest_counted(now) <= span.bucket(self.debited_at);
        let use_by = self.spans.iter().map(|span| span.use_by(now)).min()?;
        let counts = self.debited_at <= now && self.spans.iter().all(counts);
        counts.then(|| Self { debited_at: now, use_by, ..self.clone() })
    }
}

/// A message leased to the caller.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Its id.
    pub uid: MessageUid,
    /// Its lane.
    pub lane: Lane,
    /// The token every later write must show.
    pub token: LeaseToken,
    /// Its version as leased.
    pub version: i64,
    /// The number of this attempt.
    pub attempt: i64,
    /// Retries used so far.
    pub retries: i64,
    /// Times in doubt so far.
    pub doubts: i64,
    /// Leases lost in a row so far.
    pub lost_leases: i64,
    /// What to do in doubt.
    pub on_doubt: OnDoubt,
    /// When it was accepted.
    pub created_at: Time,
    /// When this claim was made.
    pub claimed_at: Time,
    /// After which it must not be sent.
    pub expires_at: Option<Time>,
    /// The request that brought it.
    pub request_id: Option<String>,
    /// The envelope sender.
    pub sender: String,
    /// The recipients this attempt is for.
    pub recipients: Vec<ClaimedRecipient>,
    /// Whether those are in doubt already: this sends it again, and only the relay's yes settles that.
    pub resend: bool,
    /// How many recipients are settled as sent already.
    pub sent_before: u32,
    /// How many recipients are in doubt and not part of this attempt.
    pub doubtful_before: u32,
    /// Whether the bytes need 8BITMIME.
    pub eight_bit: bool,
    /// Whether SMTPUTF8 is needed.
    pub smtputf8: bool,
    /// The size of the bytes.
    pub size: u32,
    /// The bytes, when small enough to come along.
    pub raw: Option<Bytes>,
    /// The account that sends it, where another stands in for its own.
    pub via: Option<AccountId>,
    /// The permit that goes with it, where its account has limits.
    pub permit: Option<Permit>,
    /// Whether it is beyond a limit that rejects: it must not be sent.
    pub over_limit: bool,
    /// Recipients that are on the suppression list since it was accepted; they are not among `recipients`.
    pub suppressed: Vec<u32>,
    /// Whether its bodies go away once it is sent.
    pub sensitive: bool,
    /// Whether the entry of the tenant's directory that it is for was deleted: it must not be sent.
    pub recipient_deleted: bool,
    /// What its sender wishes to be told about delivery.
    pub dsn: Option<DsnWishes>,
}

/// One recipient of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRecipient {
    /// Its place in the message.
    pub position: u32,
    /// Where to.
    pub address: EmailAddress,
    /// As what.
    pub kind: RecipientKind,
}

/// A message that housekeeping must move, as much of it as the decision needs.
#[derive(Clone, Debug)]
pub struct Stalled {
    /// Its id.
    pub uid: MessageUid,
    /// Where it stands.
    pub state: State,
    /// Its version.
    pub version: i64,
    /// The attempt that was under way.
    pub attempt: i64,
    /// Times in doubt so far.
    pub doubts: i64,
    /// Leases lost in a row so far.
    pub lost_leases: i64,
    /// What to do in doubt.
    pub on_doubt: OnDoubt,
    /// After which it must not be sent.
    pub expires_at: Option<Time>,
    /// Retries used so far.
    pub retries: i64,
    /// Whether some recipient is still to be sent to.
    pub has_open: bool,
    /// Whether some recipient is marked as in doubt: then those still pending were not accepted by the relay.
    pub has_doubtful: bool,
    /// Whether some recipient is sent.
    pub has_sent: bool,
    /// Whether its bodies go away once it is sent.
    pub sensitive: bool,
    /// Its account, for the retry policy.
    pub key: AccountKey,
    /// Who holds it, if anyone does.
    pub holder: Option<Incarnation>,
}

impl Stalled {
    /// What there is beside the recipients that are still open.
    pub fn rest(&self) -> Rest {
        let stand = [(self.has_doubtful, RecipientStatus::InDoubt), (self.has_sent, RecipientStatus::Sent)];
        Rest::beside_open(stand.into_iter().filter_map(|(some, status)| some.then_some(status)))
    }
}

/// An account with work due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueAccount {
    /// The account.
    pub key: AccountKey,
    /// The version of its settings, so that holders of a copy notice.
    pub version: i64,
    /// Its tenant's weight.
    pub weight: u32,
}

/// What waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Accounts with work due now that nobody has suspended.
    pub due: Vec<DueAccount>,
    /// When the next of the rest is due.
    pub next_due_at: Option<Time>,
}
