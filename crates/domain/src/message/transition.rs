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
//! [`transition`] takes a state and an [`Input`] and returns the next state with its [`TransitionEffects`]:
//! the events to append, what happens to the lease, whether a retry is used, and how open recipients end. It
//! is total: every pair of state and input has an answer, which may be [`InvalidTransition`]. A test prints
//! the complete table, and `ARCHITECTURE.md` shows that print.
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

use super::{RecipientStatus, Rest, State, Wait};
use crate::message::event::EventKind;

/// Something that happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
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
    Settle(Outcome),
    /// The process that had leased it is gone.
    LoseLease,
    /// A newer message replaced one that is in doubt. It is not resent any more, and waits on hold for an
    /// operator.
    Hold,
    /// An operator settles the doubt. The other recipients decide the next state.
    Resolve(Resolution, Rest),
    /// An operator puts it back into the queue, or asks for the next attempt now.
    Replay,
    /// Its sender asks for another `send_at`.
    Reschedule,
    /// Its sender cancels it: open recipients are not sent to. The other recipients decide the next state.
    Cancel(Rest),
    /// Its `expires_at` has passed; open recipients are not sent to. The other recipients decide the next
    /// state.
    Expire(Rest),
    /// Every recipient is on the suppression list.
    Suppress,
}

/// How an attempt ended, for the message as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
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
    Doubt,
    /// No recipient is open any more, and an earlier attempt sent to some.
    SentEarlier,
    /// No recipient is open any more, and an earlier attempt left some in doubt.
    DoubtEarlier,
    /// Returned to `ready` without using a retry: the account is at fault, a permit or a body is missing, or
    /// the process stops.
    Held,
    /// Too many leases were lost in a row, or sending it panicked.
    Quarantined,
}

/// An operator's decision about a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
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
    pub state: State,
    /// The refused input.
    pub input: Input,
}

impl Input {
    /// Every input, for the printed table and tests.
    pub const ALL: &'static [Input] = &[
        Input::Validate,
        Input::Pass,
        Input::PassForLater,
        Input::FetchLater,
        Input::Refuse,
        Input::Claim,
        Input::CommitWire,
        Input::CommitResend,
        Input::Settle(Outcome::Sent),
        Input::Settle(Outcome::Captured),
        Input::Settle(Outcome::Retry),
        Input::Settle(Outcome::Failed),
        Input::Settle(Outcome::Exhausted),
        Input::Settle(Outcome::Doubt),
        Input::Settle(Outcome::SentEarlier),
        Input::Settle(Outcome::DoubtEarlier),
        Input::Settle(Outcome::Held),
        Input::Settle(Outcome::Quarantined),
        Input::LoseLease,
        Input::Hold,
        Input::Resolve(Resolution::Sent, Rest::Nothing),
        Input::Resolve(Resolution::Sent, Rest::Sent),
        Input::Resolve(Resolution::Sent, Rest::Doubt),
        Input::Resolve(Resolution::Sent, Rest::Open),
        Input::Resolve(Resolution::Failed, Rest::Nothing),
        Input::Resolve(Resolution::Failed, Rest::Sent),
        Input::Resolve(Resolution::Failed, Rest::Doubt),
        Input::Resolve(Resolution::Failed, Rest::Open),
        Input::Resolve(Resolution::Resend, Rest::Nothing),
        Input::Resolve(Resolution::Resend, Rest::Sent),
        Input::Resolve(Resolution::Resend, Rest::Doubt),
        Input::Resolve(Resolution::Resend, Rest::Open),
        Input::Replay,
        Input::Reschedule,
        Input::Cancel(Rest::Nothing),
        Input::Cancel(Rest::Sent),
        Input::Cancel(Rest::Doubt),
        Input::Cancel(Rest::Open),
        Input::Expire(Rest::Nothing),
        Input::Expire(Rest::Sent),
        Input::Expire(Rest::Doubt),
        Input::Expire(Rest::Open),
        Input::Suppress,
    ];
}

fn with_event(event: EventKind, lease: LeaseEffect) -> TransitionEffects {
    TransitionEffects { event: Some(event), ..without_event(lease) }
}

/// The next state of a message in `state` after `input`, with its effects.
pub fn transition(state: State, input: Input) -> Result<(State, TransitionEffects), InvalidTransition> {
    let next = match state {
        State::Accepted => from_accepted(input),
        State::Validating => from_validating(input),
        State::Ready => from_ready(input),
        State::Scheduled(wait) => from_scheduled(wait, input),
        State::Sending { wire_committed } => from_sending(wire_committed, input),
        State::InDoubt => from_doubt(input),
        State::Failed => from_failed(input),
        State::Invalid => from_invalid(input),
        State::Sent | State::Suppressed | State::Cancelled | State::Expired | State::Captured => None,
    };
    next.ok_or(InvalidTransition { state, input })
}

/// One entry of the table; `None` if the input is not possible.
type TableEntry = Option<(State, TransitionEffects)>;

fn without_event(lease: LeaseEffect) -> TransitionEffects {
    TransitionEffects { event: None, then: None, lease, uses_retry: false, ends_open_recipients: None }
}

/// Cancellation, expiry and suppression, which end a message that waits.
fn end_waiting(input: Input) -> TableEntry {
    match input {
        Input::Cancel(rest) => {
            end_open(State::Cancelled, rest, with_end(EventKind::Cancelled, RecipientStatus::Cancelled))
        }
        Input::Expire(rest) => {
            end_open(State::Expired, rest, with_end(EventKind::Expired, RecipientStatus::Expired))
        }
        Input::Suppress => {
            Some((State::Suppressed, with_end(EventKind::Suppressed, RecipientStatus::Suppressed)))
        }
        Input::Validate
        | Input::Pass
        | Input::PassForLater
        | Input::FetchLater
        | Input::Refuse
        | Input::Claim
        | Input::CommitWire
        | Input::CommitResend
        | Input::Settle(_)
        | Input::LoseLease
        | Input::Hold
        | Input::Resolve(..)
        | Input::Replay
        | Input::Reschedule => None,
    }
}

/// Like [`end_waiting`], for a message without an attempt: none of its recipients can be sent or in doubt.
fn end_untried(input: Input) -> TableEntry {
    match input {
        Input::Cancel(Rest::Sent | Rest::Doubt) | Input::Expire(Rest::Sent | Rest::Doubt) => None,
        input => end_waiting(input),
    }
}

/// Ends the open recipients. If others were sent to, the message ends as sent; if others are in doubt, it
/// stays in doubt.
fn end_open(state: State, rest: Rest, effects: TransitionEffects) -> TableEntry {
    match rest {
        Rest::Nothing => Some((state, effects)),
        Rest::Sent => Some((State::Sent, TransitionEffects { then: Some(EventKind::Sent), ..effects })),
        Rest::Doubt => {
            Some((State::InDoubt, TransitionEffects { then: Some(EventKind::InDoubt), ..effects }))
        }
        Rest::Open => None,
    }
}

fn after_checks(input: Input) -> TableEntry {
    match input {
        Input::Pass => Some((State::Ready, with_event(EventKind::Ready, LeaseEffect::Drop))),
        Input::PassForLater => {
            Some((State::Scheduled(Wait::SendAt), with_event(EventKind::Scheduled, LeaseEffect::Drop)))
        }
        Input::Refuse => Some((State::Invalid, with_end(EventKind::Invalid, RecipientStatus::Failed))),
        Input::Validate
        | Input::FetchLater
        | Input::Claim
        | Input::CommitWire
        | Input::CommitResend
        | Input::Settle(_)
        | Input::LoseLease
        | Input::Hold
        | Input::Resolve(..)
        | Input::Replay
        | Input::Reschedule
        | Input::Cancel(_)
        | Input::Expire(_)
        | Input::Suppress => end_untried(input),
    }
}

fn from_accepted(input: Input) -> TableEntry {
    if input == Input::Validate {
        return Some((State::Validating, with_event(EventKind::Validating, LeaseEffect::Take)));
    }
    after_checks(input)
}

fn from_validating(input: Input) -> TableEntry {
    if input == Input::FetchLater {
        return Some((State::Scheduled(Wait::Fetch), with_event(EventKind::Scheduled, LeaseEffect::Drop)));
    }
    if input == Input::LoseLease {
        return Some((State::Accepted, without_event(LeaseEffect::Drop)));
    }
    after_checks(input)
}

fn from_ready(input: Input) -> TableEntry {
    if input == Input::Claim {
        return Some((
            State::Sending { wire_committed: false },
            with_event(EventKind::Sending, LeaseEffect::Take),
        ));
    }
    end_waiting(input)
}

fn from_scheduled(wait: Wait, input: Input) -> TableEntry {
    match (wait, input) {
        (Wait::Fetch, Input::Validate) => from_accepted(input),
        (Wait::SendAt | Wait::Retry, Input::Claim) => from_ready(input),
        (Wait::SendAt | Wait::Retry, Input::Replay) => {
            Some((State::Ready, with_event(EventKind::Replayed, LeaseEffect::Drop)))
        }
        // Only a time that the sender chose can be changed; a retry follows its schedule.
        (Wait::SendAt, Input::Reschedule) => {
            Some((State::Scheduled(Wait::SendAt), with_event(EventKind::Scheduled, LeaseEffect::Drop)))
        }
        (Wait::SendAt | Wait::Fetch, input) => end_untried(input),
        (Wait::Retry, input) => end_waiting(input),
    }
}

fn from_sending(wire_committed: bool, input: Input) -> TableEntry {
    match input {
        Input::CommitWire if !wire_committed => {
            Some((State::Sending { wire_committed: true }, without_event(LeaseEffect::Keep)))
        }
        Input::CommitResend if !wire_committed => {
            Some((State::Sending { wire_committed: true }, with_event(EventKind::Resent, LeaseEffect::Keep)))
        }
        Input::Settle(outcome) => settle(State::Sending { wire_committed }, outcome),
        Input::LoseLease if wire_committed => settle(State::Sending { wire_committed }, Outcome::Doubt),
        Input::LoseLease => settle(State::Sending { wire_committed }, Outcome::Held),
        Input::Validate
        | Input::Pass
        | Input::PassForLater
        | Input::FetchLater
        | Input::Refuse
        | Input::Claim
        | Input::CommitWire
        | Input::CommitResend
        | Input::Hold
        | Input::Resolve(..)
        | Input::Replay
        | Input::Reschedule
        | Input::Cancel(_)
        | Input::Expire(_)
        | Input::Suppress => None,
    }
}

fn from_doubt(input: Input) -> TableEntry {
    match input {
        Input::Claim => from_ready(input),
        Input::Settle(outcome) => settle(State::InDoubt, outcome),
        Input::Hold => Some((State::InDoubt, with_event(EventKind::InDoubt, LeaseEffect::Keep))),
        Input::Resolve(resolution, rest) => resolve(resolution, rest),
        Input::Validate
        | Input::Pass
        | Input::PassForLater
        | Input::FetchLater
        | Input::Refuse
        | Input::CommitWire
        | Input::CommitResend
        | Input::LoseLease
        | Input::Replay
        | Input::Reschedule
        | Input::Cancel(_)
        | Input::Expire(_)
        | Input::Suppress => None,
    }
}

/// An operator's decision covers only recipients in doubt; open recipients are still to be sent to.
fn resolve(resolution: Resolution, rest: Rest) -> TableEntry {
    let resolved = with_event(EventKind::Resolved, LeaseEffect::Drop);
    match (resolution, rest) {
        (Resolution::Sent | Resolution::Failed | Resolution::Resend, Rest::Doubt) => None,
        (Resolution::Resend, Rest::Nothing | Rest::Sent | Rest::Open) => Some((State::Ready, resolved)),
        (Resolution::Sent | Resolution::Failed, Rest::Open) => Some((
            State::Scheduled(Wait::Retry),
            TransitionEffects { then: Some(EventKind::Scheduled), ..resolved },
        )),
        (Resolution::Sent, Rest::Nothing | Rest::Sent) | (Resolution::Failed, Rest::Sent) => {
            Some((State::Sent, resolved))
        }
        (Resolution::Failed, Rest::Nothing) => Some((State::Failed, resolved)),
    }
}

fn from_failed(input: Input) -> TableEntry {
    (input == Input::Replay).then(|| (State::Ready, with_event(EventKind::Replayed, LeaseEffect::Drop)))
}

/// An invalid message is checked again, because what it lacked may exist by now.
fn from_invalid(input: Input) -> TableEntry {
    (input == Input::Replay).then(|| (State::Accepted, with_event(EventKind::Replayed, LeaseEffect::Drop)))
}

fn with_end(event: EventKind, open_recipients: RecipientStatus) -> TransitionEffects {
    TransitionEffects { ends_open_recipients: Some(open_recipients), ..with_event(event, LeaseEffect::Drop) }
}

/// The end of an attempt that has the lease, or the late answer of one that left a doubt. `Sent`, `Captured`
/// and `Doubt` need a durable wire commit. A late answer is definite: it cannot leave the message in doubt or
/// return it.
fn settle(state: State, outcome: Outcome) -> TableEntry {
    let late = state == State::InDoubt;
    let dot_allowed = late || state == State::Sending { wire_committed: true };
    match outcome {
        Outcome::Sent if late => Some((State::Sent, with_event(EventKind::Resolved, LeaseEffect::Drop))),
        Outcome::Sent if dot_allowed => Some((State::Sent, with_event(EventKind::Sent, LeaseEffect::Drop))),
        Outcome::Captured if dot_allowed => {
            Some((State::Captured, with_event(EventKind::Captured, LeaseEffect::Drop)))
        }
        Outcome::SentEarlier => Some((State::Sent, with_event(EventKind::Sent, LeaseEffect::Drop))),
        Outcome::Retry => Some((
            State::Scheduled(Wait::Retry),
            TransitionEffects { uses_retry: true, ..with_event(EventKind::Scheduled, LeaseEffect::Drop) },
        )),
        Outcome::Failed | Outcome::Exhausted => {
            Some((State::Failed, with_end(EventKind::Failed, RecipientStatus::Failed)))
        }
        Outcome::Doubt if dot_allowed && !late => Some((
            State::InDoubt,
            TransitionEffects {
                ends_open_recipients: Some(RecipientStatus::InDoubt),
                ..with_event(EventKind::InDoubt, LeaseEffect::Keep)
            },
        )),
        // This attempt has its answer, so the lease is dropped: no late answer can come.
        Outcome::DoubtEarlier if !late => {
            Some((State::InDoubt, with_event(EventKind::InDoubt, LeaseEffect::Drop)))
        }
        Outcome::Held if !late => Some((State::Ready, with_event(EventKind::Ready, LeaseEffect::Drop))),
        Outcome::Quarantined if !late => {
            Some((State::Failed, with_end(EventKind::Failed, RecipientStatus::Failed)))
        }
        Outcome::Sent
        | Outcome::Captured
        | Outcome::Doubt
        | Outcome::DoubtEarlier
        | Outcome::Held
        | Outcome::Quarantined => None,
    }
}

#[cfg(test)]
mod tests;
