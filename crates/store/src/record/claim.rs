//! Claims: requests for work, leases, and leased messages.

use bytes::Bytes;
use postway_domain::{
    AccountId, AccountLimits, DestinationRoom, EmailAddress, Incarnation, Lane, LeaseToken, LimitSpan,
    MessageState, MessageUid, RecipientKind, RecipientStatus, Time,
    dsn::DsnWishes,
    message::{OnDoubt, OtherRecipients},
};
use postway_trace::TraceContext;

use super::AccountKey;

/// The lease that a claim writes to the work it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The incarnation that takes the work.
    pub incarnation: Incarnation,
    /// The token that later writes must present.
    pub token: LeaseToken,
    /// The backstop: after this time the work is reclaimed even if the process seems alive.
    pub until: Time,
}

/// Asks for due work.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The lease to record.
    pub lease: LeaseGrant,
    /// The current time.
    pub now: Time,
    /// The accounts that have free capacity, and how much.
    pub wants: Vec<AccountWant>,
    /// Bodies up to this size come with the claim; larger ones are read with [`crate::WorkStore::body`].
    pub inline_bytes_max: u32,
}

/// The free capacity of one account.
#[derive(Clone, Debug)]
pub struct AccountWant {
    /// The account.
    pub key: AccountKey,
    /// The number of messages it can take.
    pub room: u32,
    /// Whether capacity that this claim cannot fill becomes the account's standing claim, in place of the one
    /// before.
    pub park: bool,
    /// The limits of the sending account.
    pub limits: AccountLimits,
    /// The sending account, if it is not the one that the messages were accepted for.
    pub via: Option<AccountId>,
    /// How much of it may be for each receiving domain that the sending account limits.
    pub destinations: DestinationRoom,
}

impl AccountWant {
    /// Capacity without limits.
    pub fn unlimited(key: AccountKey, room: u32, park: bool) -> Self {
        let (limits, destinations) = (AccountLimits::default(), DestinationRoom::default());
        Self { key, room, park, limits, via: None, destinations }
    }

    /// The account whose limits apply.
    pub fn sender(&self) -> AccountKey {
        let account = self.via.clone().unwrap_or_else(|| self.key.account.clone());
        AccountKey { tenant: self.key.tenant.clone(), account }
    }
}

/// The right to send one message, debited from an account's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendingPermit {
    /// The account whose limits were debited.
    pub key: AccountKey,
    /// When it was debited.
    pub debited_at: Time,
    /// The attempt must begin before this time; later the permit would count in a window in which it was not
    /// used.
    pub use_by: Time,
    /// The limited spans it was debited from.
    pub spans: Vec<LimitSpan>,
}

impl SendingPermit {
    /// The permit, debited at `now` instead of when it was. That changes no window as long as the permit
    /// still counts in all of them; `None` if it does not.
    pub fn renewed(&self, now: Time) -> Option<Self> {
        let counts = |span: &LimitSpan| span.oldest_counted(now) <= span.bucket(self.debited_at);
        let use_by = self.spans.iter().map(|span| span.use_by(now)).min()?;
        let counts = self.debited_at <= now && self.spans.iter().all(counts);
        counts.then(|| Self { debited_at: now, use_by, ..self.clone() })
    }
}

/// A message leased to the caller.
#[derive(Clone, Debug)]
pub struct ClaimedMessage {
    /// Its id.
    pub uid: MessageUid,
    /// Its lane.
    pub lane: Lane,
    /// The lease token that every later write must present.
    pub token: LeaseToken,
    /// Its version as leased.
    pub version: i64,
    /// The number of this attempt.
    pub attempt: i64,
    /// The number of retries used.
    pub retries: i64,
    /// How often it has been in doubt.
    pub doubts: i64,
    /// The number of leases lost in a row.
    pub lost_leases: i64,
    /// What to do if its outcome is unknown.
    pub on_doubt: OnDoubt,
    /// When it was accepted.
    pub created_at: Time,
    /// When this claim was made.
    pub claimed_at: Time,
    /// The time after which it must not be sent.
    pub expires_at: Option<Time>,
    /// The id of the request that brought it.
    pub request_id: Option<String>,
    /// The envelope sender.
    pub sender: String,
    /// The recipients this attempt is for.
    pub recipients: Vec<ClaimedRecipient>,
    /// Whether these recipients are in doubt already. The attempt then sends the mail again, and only a
    /// positive answer of the relay settles the doubt.
    pub resend: bool,
    /// The number of recipients that are already settled as sent.
    pub sent_before: u32,
    /// The number of recipients that are in doubt and not part of this attempt.
    pub doubtful_before: u32,
    /// Whether the bytes need 8BITMIME.
    pub eight_bit: bool,
    /// Whether SMTPUTF8 is needed.
    pub smtputf8: bool,
    /// The size of the bytes.
    pub size: u32,
    /// The bytes, if they are small enough to come with the claim.
    pub raw: Option<Bytes>,
    /// The sending account, if it is not the message's own.
    pub via: Option<AccountId>,
    /// The permit that was debited for it, if the account has limits.
    pub permit: Option<SendingPermit>,
    /// Whether it exceeds a limit that rejects mail: it must not be sent.
    pub over_limit: bool,
    /// Positions of recipients that were put on the suppression list after it was accepted; they are not in
    /// `recipients`.
    pub suppressed: Vec<u32>,
    /// Whether its bodies are removed once it is sent.
    pub sensitive: bool,
    /// Whether the directory entry that it is addressed to was deleted: it must not be sent.
    pub recipient_deleted: bool,
    /// The delivery status notifications that the sender asked for.
    pub dsn: Option<DsnWishes>,
    /// Its place in a trace, if it is part of one.
    pub trace: Option<TraceContext>,
}

/// One recipient of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRecipient {
    /// Its position in the message.
    pub position: u32,
    /// The address.
    pub address: EmailAddress,
    /// Whether it is a `to`, `cc` or `bcc` recipient.
    pub kind: RecipientKind,
}

/// A message whose state housekeeping must change, with what that decision needs.
#[derive(Clone, Debug)]
pub struct StalledMessage {
    /// Its id.
    pub uid: MessageUid,
    /// Its state.
    pub state: MessageState,
    /// Its version.
    pub version: i64,
    /// The attempt that was under way.
    pub attempt: i64,
    /// How often it has been in doubt.
    pub doubts: i64,
    /// The number of leases lost in a row.
    pub lost_leases: i64,
    /// What to do if its outcome is unknown.
    pub on_doubt: OnDoubt,
    /// The time after which it must not be sent.
    pub expires_at: Option<Time>,
    /// The number of retries used.
    pub retries: i64,
    /// Whether some recipient is still to be sent to.
    pub has_open: bool,
    /// Whether some recipient is in doubt. The relay then did not accept those that are still pending.
    pub has_doubtful: bool,
    /// Whether some recipient is sent.
    pub has_sent: bool,
    /// Whether its bodies are removed once it is sent.
    pub sensitive: bool,
    /// Its account, for the retry policy.
    pub key: AccountKey,
    /// The incarnation that has leased it, if any.
    pub holder: Option<Incarnation>,
}

impl StalledMessage {
    /// The state of the recipients that are not open.
    pub fn rest(&self) -> OtherRecipients {
        let stand = [(self.has_doubtful, RecipientStatus::InDoubt), (self.has_sent, RecipientStatus::Sent)];
        OtherRecipients::beside_open(stand.into_iter().filter_map(|(some, status)| some.then_some(status)))
    }
}

/// An account with work due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueAccount {
    /// The account.
    pub key: AccountKey,
    /// The version of its settings, so that a node notices that its copy is old.
    pub version: i64,
    /// Its tenant's weight.
    pub weight: u32,
}

/// Which work is due, and when the next will be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// The accounts with work due now that are not suspended.
    pub due: Vec<DueAccount>,
    /// When the next message that is not due yet becomes due.
    pub next_due_at: Option<Time>,
}
