//! The state table: everything that can happen to a message, and what follows.
//!
//! ```text
//!               send_at          retry (from either sending)
//!  accepted ──► scheduled ◄─────────────────────────────────────┐
//!     │             │ claim                                      │
//!     │             ▼                                            │
//!     └──► ready ──► sending ─── wire commit ──► sending, dot allowed ──► sent
//!           ▲  claim   │                          │          │
//!           │          │ returned, lease lost     │ returned ├──► failed ── replay ──► ready
//!           └──────────┴──────────────────────────┘          │
//!                                                            └──► in_doubt  (no answer, or lease lost)
//!                                                                    ├── claim ──► sending
//!  cancelled, expired, suppressed:                                   └── resolved ──► sent, failed,
//!  from accepted, validating, ready, scheduled                              ready, scheduled (some open)
//! ```
//!
//! [`transition`] takes a state and an [`TransitionInput`] and returns the next state with its
//! [`TransitionEffects`]: the events to append, what happens to the lease, whether a retry is used, and how
//! open recipients end. It is total: every pair of state and input has an answer, which may be
//! [`InvalidTransition`]. A test prints the complete table, and `ARCHITECTURE.md` shows that print.
//!
//! Every subsystem asks this table before it writes. The answer is computed outside the transaction, so the
//! store's fence checks at the write that the message is still in the state that was asked about.
//!
//! Four rules hold for every walk through the table, and tests check them:
//!
//! - A message becomes `sent` by an attempt, or `in_doubt`, only after its wire commit is durable.
//! - While a message is `sending`, only its attempt or the loss of its lease moves it on. It cannot be
//!   cancelled, expired or suppressed, because a mail on the wire cannot be recalled.
//! - What may have been sent is never called anything else: a cancellation that finds recipients in doubt
//!   leaves the message in doubt, and one that finds some sent ends it as sent.
//! - A doubt ends only by the relay's answer or by an operator's word. A resend does not end it; its answer
//!   does.

mod all_inputs;

use super::{MessageState, OtherRecipients, RecipientStatus, ScheduleReason};
use crate::message::event::EventKind;

/// Something that happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransitionInput {
    /// A preparer claims it.
    Validate,
    /// All checks passed; it can be sent now.
    Pass,
    /// All checks passed; its sender asked for a later time.
    PassForLater,
    /// A file that it needs could not be fetched yet.
    FetchLater,
    /// A check failed.
    Refuse,
    /// Dispatch claims it for an attempt.
    Claim,
    /// The wire commit: the attempt may write the final dot.
    CommitWire,
    /// The wire commit of a resend. Only from here on can recipients get the mail twice.
    CommitResend,
    /// The attempt ended.
    Settle(AttemptOutcome),
    /// The process that had leased it is gone.
    LoseLease,
    /// A newer message replaced one that is in doubt. It is not resent any more, and waits on hold for an
    /// operator.
    PutOnHold,
    /// An operator settles the doubt. The other recipients decide the next state.
    Resolve(DoubtResolution, OtherRecipients),
    /// An operator puts it back into the queue, or asks for the next attempt now.
    Replay,
    /// Its sender asks for another `send_at`.
    Reschedule,
    /// Its sender cancels it: open recipients are not sent to. The other recipients decide the next state.
    Cancel(OtherRecipients),
    /// Its `expires_at` has passed; open recipients are not sent to. The other recipients decide the next
    /// state.
    Expire(OtherRecipients),
    /// Every recipient is on the suppression list.
    Suppress,
}

/// How an attempt ended, for the message as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// At least one recipient was sent to, and none is open.
    Sent,
    /// The sandbox captured it; nothing was sent.
    Captured,
    /// Some recipient is open, and a retry is left.
    Retry,
    /// Refused permanently.
    Failed,
    /// Some recipient is open, and no retry is left.
    Exhausted,
    /// The dot was written, and no answer came.
    InDoubt,
    /// No recipient is open any more, and an earlier attempt sent to some.
    SentEarlier,
    /// No recipient is open any more, and an earlier attempt left some in doubt.
    InDoubtEarlier,
    /// Returned to `ready` without using a retry: the account is at fault, a permit or a body is missing, or
    /// the process stops.
    Returned,
    /// Too many leases were lost in a row, or sending it panicked.
    Quarantined,
}

/// An operator's decision about a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoubtResolution {
    /// The mail arrived.
    Sent,
    /// The mail did not arrive, and is not to be sent again.
    Failed,
    /// The mail is to be sent again.
    Resend,
}

/// What a transition does to the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseEffect {
    /// A new lease is written.
    Take,
    /// The lease stays; in doubt, only its token.
    Keep,
    /// The lease is cleared.
    Drop,
}

/// What is written together with the new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransitionEffects {
    /// The event to append. A wire commit appends none, because it is part of its attempt, except for a
    /// resend.
    pub event: Option<EventKind>,
    /// A second event, if the first says what was done and not which state the message is in.
    pub then: Option<EventKind>,
    /// What happens to the lease.
    pub lease: LeaseEffect,
    /// Whether a retry is used.
    pub uses_retry: bool,
    /// The status in which open recipients end, if they do. Recipients in doubt are not open; a change names
    /// them.
    pub ends_open_recipients: Option<RecipientStatus>,
}

impl TransitionEffects {
    /// The events to append, in order.
    pub fn events(self) -> impl Iterator<Item = EventKind> {
        self.event.into_iter().chain(self.then)
    }
}

/// The input is not possible in that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message that is {} cannot do this: {input:?}", state.status().as_str())]
pub struct InvalidTransition {
    /// The state of the message.
    pub state: MessageState,
    /// The refused input.
    pub input: TransitionInput,
}

fn with_event(event: EventKind, lease: LeaseEffect) -> TransitionEffects {
    TransitionEffects { event: Some(event), ..without_event(lease) }
}

/// The next state of a message in `state` after `input`, with its effects.
pub fn transition(
    state: MessageState,
    input: TransitionInput,
) -> Result<(MessageState, TransitionEffects), InvalidTransition> {
    let next = match state {
        MessageState::Accepted => from_accepted(input),
        MessageState::Validating => from_validating(input),
        MessageState::Ready => from_ready(input),
        MessageState::Scheduled(wait) => from_scheduled(wait, input),
        MessageState::Sending { wire_committed } => from_sending(wire_committed, input),
        MessageState::InDoubt => from_doubt(input),
        MessageState::Failed => from_failed(input),
        MessageState::Invalid => from_invalid(input),
        MessageState::Sent
        | MessageState::Suppressed
        | MessageState::Cancelled
        | MessageState::Expired
        | MessageState::Captured => None,
    };
    next.ok_or(InvalidTransition { state, input })
}

/// One entry of the table; `None` if the input is not possible.
type TableEntry = Option<(MessageState, TransitionEffects)>;

fn without_event(lease: LeaseEffect) -> TransitionEffects {
    TransitionEffects { event: None, then: None, lease, uses_retry: false, ends_open_recipients: None }
}

/// Cancellation, expiry and suppression, which end a message that waits.
fn end_waiting(input: TransitionInput) -> TableEntry {
    match input {
        TransitionInput::Cancel(rest) => end_open(
            MessageState::Cancelled,
            rest,
            with_end(EventKind::Cancelled, RecipientStatus::Cancelled),
        ),
        TransitionInput::Expire(rest) => {
            end_open(MessageState::Expired, rest, with_end(EventKind::Expired, RecipientStatus::Expired))
        }
        TransitionInput::Suppress => {
            Some((MessageState::Suppressed, with_end(EventKind::Suppressed, RecipientStatus::Suppressed)))
        }
        TransitionInput::Validate
        | TransitionInput::Pass
        | TransitionInput::PassForLater
        | TransitionInput::FetchLater
        | TransitionInput::Refuse
        | TransitionInput::Claim
        | TransitionInput::CommitWire
        | TransitionInput::CommitResend
        | TransitionInput::Settle(_)
        | TransitionInput::LoseLease
        | TransitionInput::PutOnHold
        | TransitionInput::Resolve(..)
        | TransitionInput::Replay
        | TransitionInput::Reschedule => None,
    }
}

/// Like [`end_waiting`], for a message without an attempt: none of its recipients can be sent or in doubt.
fn end_untried(input: TransitionInput) -> TableEntry {
    match input {
        TransitionInput::Cancel(OtherRecipients::Sent | OtherRecipients::InDoubt)
        | TransitionInput::Expire(OtherRecipients::Sent | OtherRecipients::InDoubt) => None,
        input => end_waiting(input),
    }
}

/// Ends the open recipients. If others were sent to, the message ends as sent; if others are in doubt, it
/// stays in doubt.
fn end_open(state: MessageState, rest: OtherRecipients, effects: TransitionEffects) -> TableEntry {
    match rest {
        OtherRecipients::Nothing => Some((state, effects)),
        OtherRecipients::Sent => {
            Some((MessageState::Sent, TransitionEffects { then: Some(EventKind::Sent), ..effects }))
        }
        OtherRecipients::InDoubt => {
            Some((MessageState::InDoubt, TransitionEffects { then: Some(EventKind::InDoubt), ..effects }))
        }
        OtherRecipients::Open => None,
    }
}

fn after_checks(input: TransitionInput) -> TableEntry {
    match input {
        TransitionInput::Pass => Some((MessageState::Ready, with_event(EventKind::Ready, LeaseEffect::Drop))),
        TransitionInput::PassForLater => Some((
            MessageState::Scheduled(ScheduleReason::SendAt),
            with_event(EventKind::Scheduled, LeaseEffect::Drop),
        )),
        TransitionInput::Refuse => {
            Some((MessageState::Invalid, with_end(EventKind::Invalid, RecipientStatus::Failed)))
        }
        TransitionInput::Validate
        | TransitionInput::FetchLater
        | TransitionInput::Claim
        | TransitionInput::CommitWire
        | TransitionInput::CommitResend
        | TransitionInput::Settle(_)
        | TransitionInput::LoseLease
        | TransitionInput::PutOnHold
        | TransitionInput::Resolve(..)
        | TransitionInput::Replay
        | TransitionInput::Reschedule
        | TransitionInput::Cancel(_)
        | TransitionInput::Expire(_)
        | TransitionInput::Suppress => end_untried(input),
    }
}

fn from_accepted(input: TransitionInput) -> TableEntry {
    if input == TransitionInput::Validate {
        return Some((MessageState::Validating, with_event(EventKind::Validating, LeaseEffect::Take)));
    }
    after_checks(input)
}

fn from_validating(input: TransitionInput) -> TableEntry {
    if input == TransitionInput::FetchLater {
        return Some((
            MessageState::Scheduled(ScheduleReason::Fetch),
            with_event(EventKind::Scheduled, LeaseEffect::Drop),
        ));
    }
    if input == TransitionInput::LoseLease {
        return Some((MessageState::Accepted, without_event(LeaseEffect::Drop)));
    }
    after_checks(input)
}

fn from_ready(input: TransitionInput) -> TableEntry {
    if input == TransitionInput::Claim {
        return Some((
            MessageState::Sending { wire_committed: false },
            with_event(EventKind::Sending, LeaseEffect::Take),
        ));
    }
    end_waiting(input)
}

fn from_scheduled(wait: ScheduleReason, input: TransitionInput) -> TableEntry {
    match (wait, input) {
        (ScheduleReason::Fetch, TransitionInput::Validate) => from_accepted(input),
        (ScheduleReason::SendAt | ScheduleReason::Retry, TransitionInput::Claim) => from_ready(input),
        (ScheduleReason::SendAt | ScheduleReason::Retry, TransitionInput::Replay) => {
            Some((MessageState::Ready, with_event(EventKind::Replayed, LeaseEffect::Drop)))
        }
        // Only a time that the sender chose can be changed; a retry follows its schedule.
        (ScheduleReason::SendAt, TransitionInput::Reschedule) => Some((
            MessageState::Scheduled(ScheduleReason::SendAt),
            with_event(EventKind::Scheduled, LeaseEffect::Drop),
        )),
        (ScheduleReason::SendAt | ScheduleReason::Fetch, input) => end_untried(input),
        (ScheduleReason::Retry, input) => end_waiting(input),
    }
}

fn from_sending(wire_committed: bool, input: TransitionInput) -> TableEntry {
    match input {
        TransitionInput::CommitWire if !wire_committed => {
            Some((MessageState::Sending { wire_committed: true }, without_event(LeaseEffect::Keep)))
        }
        TransitionInput::CommitResend if !wire_committed => Some((
            MessageState::Sending { wire_committed: true },
            with_event(EventKind::Resent, LeaseEffect::Keep),
        )),
        TransitionInput::Settle(outcome) => settle(MessageState::Sending { wire_committed }, outcome),
        TransitionInput::LoseLease if wire_committed => {
            settle(MessageState::Sending { wire_committed }, AttemptOutcome::InDoubt)
        }
        TransitionInput::LoseLease => {
            settle(MessageState::Sending { wire_committed }, AttemptOutcome::Returned)
        }
        TransitionInput::Validate
        | TransitionInput::Pass
        | TransitionInput::PassForLater
        | TransitionInput::FetchLater
        | TransitionInput::Refuse
        | TransitionInput::Claim
        | TransitionInput::CommitWire
        | TransitionInput::CommitResend
        | TransitionInput::PutOnHold
        | TransitionInput::Resolve(..)
        | TransitionInput::Replay
        | TransitionInput::Reschedule
        | TransitionInput::Cancel(_)
        | TransitionInput::Expire(_)
        | TransitionInput::Suppress => None,
    }
}

fn from_doubt(input: TransitionInput) -> TableEntry {
    match input {
        TransitionInput::Claim => from_ready(input),
        TransitionInput::Settle(outcome) => settle(MessageState::InDoubt, outcome),
        TransitionInput::PutOnHold => {
            Some((MessageState::InDoubt, with_event(EventKind::InDoubt, LeaseEffect::Keep)))
        }
        TransitionInput::Resolve(resolution, rest) => resolve(resolution, rest),
        TransitionInput::Validate
        | TransitionInput::Pass
        | TransitionInput::PassForLater
        | TransitionInput::FetchLater
        | TransitionInput::Refuse
        | TransitionInput::CommitWire
        | TransitionInput::CommitResend
        | TransitionInput::LoseLease
        | TransitionInput::Replay
        | TransitionInput::Reschedule
        | TransitionInput::Cancel(_)
        | TransitionInput::Expire(_)
        | TransitionInput::Suppress => None,
    }
}

/// An operator's decision covers only recipients in doubt; open recipients are still to be sent to.
fn resolve(resolution: DoubtResolution, rest: OtherRecipients) -> TableEntry {
    let resolved = with_event(EventKind::Resolved, LeaseEffect::Drop);
    match (resolution, rest) {
        (
            DoubtResolution::Sent | DoubtResolution::Failed | DoubtResolution::Resend,
            OtherRecipients::InDoubt,
        ) => None,
        (
            DoubtResolution::Resend,
            OtherRecipients::Nothing | OtherRecipients::Sent | OtherRecipients::Open,
        ) => Some((MessageState::Ready, resolved)),
        (DoubtResolution::Sent | DoubtResolution::Failed, OtherRecipients::Open) => Some((
            MessageState::Scheduled(ScheduleReason::Retry),
            TransitionEffects { then: Some(EventKind::Scheduled), ..resolved },
        )),
        (DoubtResolution::Sent, OtherRecipients::Nothing | OtherRecipients::Sent)
        | (DoubtResolution::Failed, OtherRecipients::Sent) => Some((MessageState::Sent, resolved)),
        (DoubtResolution::Failed, OtherRecipients::Nothing) => Some((MessageState::Failed, resolved)),
    }
}

fn from_failed(input: TransitionInput) -> TableEntry {
    (input == TransitionInput::Replay)
        .then(|| (MessageState::Ready, with_event(EventKind::Replayed, LeaseEffect::Drop)))
}

/// An invalid message is checked again, because what it lacked may exist by now.
fn from_invalid(input: TransitionInput) -> TableEntry {
    (input == TransitionInput::Replay)
        .then(|| (MessageState::Accepted, with_event(EventKind::Replayed, LeaseEffect::Drop)))
}

fn with_end(event: EventKind, open_recipients: RecipientStatus) -> TransitionEffects {
    TransitionEffects { ends_open_recipients: Some(open_recipients), ..with_event(event, LeaseEffect::Drop) }
}

/// The end of an attempt that has the lease, or the late answer of one that left a doubt. `Sent`, `Captured`
/// and `Doubt` need a durable wire commit. A late answer is definite: it cannot leave the message in doubt or
/// return it.
fn settle(state: MessageState, outcome: AttemptOutcome) -> TableEntry {
    let late = state == MessageState::InDoubt;
    let dot_allowed = late || state == MessageState::Sending { wire_committed: true };
    match outcome {
        AttemptOutcome::Sent if late => {
            Some((MessageState::Sent, with_event(EventKind::Resolved, LeaseEffect::Drop)))
        }
        AttemptOutcome::Sent if dot_allowed => {
            Some((MessageState::Sent, with_event(EventKind::Sent, LeaseEffect::Drop)))
        }
        AttemptOutcome::Captured if dot_allowed => {
            Some((MessageState::Captured, with_event(EventKind::Captured, LeaseEffect::Drop)))
        }
        AttemptOutcome::SentEarlier => {
            Some((MessageState::Sent, with_event(EventKind::Sent, LeaseEffect::Drop)))
        }
        AttemptOutcome::Retry => Some((
            MessageState::Scheduled(ScheduleReason::Retry),
            TransitionEffects { uses_retry: true, ..with_event(EventKind::Scheduled, LeaseEffect::Drop) },
        )),
        AttemptOutcome::Failed | AttemptOutcome::Exhausted => {
            Some((MessageState::Failed, with_end(EventKind::Failed, RecipientStatus::Failed)))
        }
        AttemptOutcome::InDoubt if dot_allowed && !late => Some((
            MessageState::InDoubt,
            TransitionEffects {
                ends_open_recipients: Some(RecipientStatus::InDoubt),
                ..with_event(EventKind::InDoubt, LeaseEffect::Keep)
            },
        )),
        // This attempt has its answer, so the lease is dropped: no late answer can come.
        AttemptOutcome::InDoubtEarlier if !late => {
            Some((MessageState::InDoubt, with_event(EventKind::InDoubt, LeaseEffect::Drop)))
        }
        AttemptOutcome::Returned if !late => {
            Some((MessageState::Ready, with_event(EventKind::Ready, LeaseEffect::Drop)))
        }
        AttemptOutcome::Quarantined if !late => {
            Some((MessageState::Failed, with_end(EventKind::Failed, RecipientStatus::Failed)))
        }
        AttemptOutcome::Sent
        | AttemptOutcome::Captured
        | AttemptOutcome::InDoubt
        | AttemptOutcome::InDoubtEarlier
        | AttemptOutcome::Returned
        | AttemptOutcome::Quarantined => None,
    }
}

#[cfg(test)]
mod tests;
