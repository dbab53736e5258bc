//! The one table of what may happen to a message.
//!
//! [`transition`] is total: every pair of state and input has an answer, and the tests print the whole table. Rooms
//! ask it before they write; the store's fence makes sure that the state they asked about is still the state.

use super::{RecipientStatus, Rest, State, Wait};
use crate::message::event::EventKind;

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A worker takes it for its checks.
    Validate,
    /// All checks passed, it can go now.
    Pass,
    /// All checks passed, but its sender asked for a later time.
    PassForLater,
    /// Something it needs could not be fetched yet.
    FetchLater,
    /// A check failed.
    Refuse,
    /// A worker takes it for an attempt.
    Claim,
    /// The worker may write the final dot.
    CommitWire,
    /// The same, of a mail that those it is for may have already: only from here on it may be there twice.
    CommitResend,
    /// The attempt ended.
    Settle(Outcome),
    /// The worker that held it is gone.
    LoseLease,
    /// A doubt is no longer settled by sending it again: a newer message took its place. It waits for somebody's word.
    Hold,
    /// An operator settles the doubt about some recipients; the rest decides where the message goes.
    Resolve(Resolution, Rest),
    /// An operator puts it back in the queue, or asks for the next attempt now.
    Replay,
    /// Its sender asks for another time.
    Reschedule,
    /// Its sender withdraws it: those still open are not sent to, and the rest decides what became of it.
    Cancel(Rest),
    /// Its time ran out, with the same effect.
    Expire(Rest),
    /// Every recipient is on the suppression list.
    Suppress,
}

/// How an attempt ended, for the message as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// At least one recipient sent, none open.
    Sent,
    /// The sandbox took it, and nothing of it was sent.
    Captured,
    /// Some recipient is open and there is a retry left.
    Retry,
    /// Refused for good.
    Failed,
    /// Some recipient is open and no retry is left.
    Exhausted,
    /// The dot went out, no answer came.
    Doubt,
    /// Nothing is open any more, and an earlier attempt sent to some recipient.
    SentEarlier,
    /// Nothing is open any more, and an earlier attempt left some recipient in doubt.
    DoubtEarlier,
    /// The account's fault, or the lease was given back: it waits, and no retry is used.
    Held,
    /// It broke its workers too often, or its composing or sending panicked.
    Quarantined,
}

/// An operator's word on a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// It did arrive.
    Sent,
    /// It did not, and shall not.
    Failed,
    /// Send it again.
    Resend,
}

/// What a transition does to the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseEffect {
    /// A new lease is written.
    Take,
    /// The lease, or in doubt its token alone, stays.
    Keep,
    /// The lease is cleared.
    Drop,
}

/// What must be written together with the new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effects {
    /// The entry in the history; a wire commit has none, it belongs to its attempt, unless it is a resend's.
    pub event: Option<EventKind>,
    /// The entry after it, where the first tells what was done and not where the message went.
    pub then: Option<EventKind>,
    /// What becomes of the lease.
    pub lease: LeaseEffect,
    /// Whether a retry is used up.
    pub uses_retry: bool,
    /// How recipients still open end, if they do. Those in doubt are not open: whoever settles them names them.
    pub ends_open_recipients: Option<RecipientStatus>,
}

impl Effects {
    /// The entries in the history, in order.
    pub fn events(self) -> impl Iterator<Item = EventKind> {
        self.event.into_iter().chain(self.then)
    }
}

/// This cannot happen to a message in that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message that is {} cannot do this: {input:?}", state.status().as_str())]
pub struct InvalidTransition {
    /// Where the message stood.
    pub state: State,
    /// What was asked.
    pub input: Input,
}

impl Input {
    /// Every input, for tables and tests.
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

fn effects(event: EventKind, lease: LeaseEffect) -> Effects {
    Effects { event: Some(event), ..silent(lease) }
}

/// What `input` makes of `state`, or why it cannot.
pub fn transition(state: State, input: Input) -> Result<(State, Effects), InvalidTransition> {
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

type Next = Option<(State, Effects)>;

fn silent(lease: LeaseEffect) -> Effects {
    Effects { event: None, then: None, lease, uses_retry: false, ends_open_recipients: None }
}

/// Withdrawal, expiry and suppression end whatever still waits.
fn end_waiting(input: Input) -> Next {
    match input {
        Input::Cancel(rest) => {
            end_open(State::Cancelled, rest, ending(EventKind::Cancelled, RecipientStatus::Cancelled))
        }
        Input::Expire(rest) => {
            end_open(State::Expired, rest, ending(EventKind::Expired, RecipientStatus::Expired))
        }
        Input::Suppress => {
            Some((State::Suppressed, ending(EventKind::Suppressed, RecipientStatus::Suppressed)))
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

/// The same of a message that no worker has had for an attempt: there is nothing of it that could have been sent.
fn end_untried(input: Input) -> Next {
    match input {
        Input::Cancel(Rest::Sent | Rest::Doubt) | Input::Expire(Rest::Sent | Rest::Doubt) => None,
        input => end_waiting(input),
    }
}

/// Nobody is open any more. What was sent is sent, and what is in doubt stays so, whatever happened to the others.
fn end_open(state: State, rest: Rest, effects: Effects) -> Next {
    match rest {
        Rest::Nothing => Some((state, effects)),
        Rest::Sent => Some((State::Sent, Effects { then: Some(EventKind::Sent), ..effects })),
        Rest::Doubt => Some((State::InDoubt, Effects { then: Some(EventKind::InDoubt), ..effects })),
        Rest::Open => None,
    }
}

fn pass(input: Input) -> Next {
    match input {
        Input::Pass => Some((State::Ready, effects(EventKind::Ready, LeaseEffect::Drop))),
        Input::PassForLater => {
            Some((State::Scheduled(Wait::SendAt), effects(EventKind::Scheduled, LeaseEffect::Drop)))
        }
        Input::Refuse => Some((State::Invalid, ending(EventKind::Invalid, RecipientStatus::Failed))),
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

fn from_accepted(input: Input) -> Next {
    if input == Input::Validate {
        return Some((State::Validating, effects(EventKind::Validating, LeaseEffect::Take)));
    }
    pass(input)
}

fn from_validating(input: Input) -> Next {
    if input == Input::FetchLater {
        return Some((State::Scheduled(Wait::Fetch), effects(EventKind::Scheduled, LeaseEffect::Drop)));
    }
    if input == Input::LoseLease {
        return Some((State::Accepted, silent(LeaseEffect::Drop)));
    }
    pass(input)
}

fn from_ready(input: Input) -> Next {
    if input == Input::Claim {
        return Some((
            State::Sending { wire_committed: false },
            effects(EventKind::Sending, LeaseEffect::Take),
        ));
    }
    end_waiting(input)
}

fn from_scheduled(wait: Wait, input: Input) -> Next {
    match (wait, input) {
        (Wait::Fetch, Input::Validate) => from_accepted(input),
        (Wait::SendAt | Wait::Retry, Input::Claim) => from_ready(input),
        (Wait::SendAt | Wait::Retry, Input::Replay) => {
            Some((State::Ready, effects(EventKind::Replayed, LeaseEffect::Drop)))
        }
        // A retry is due when the schedule says; only a time that was asked for can be asked for anew.
        (Wait::SendAt, Input::Reschedule) => {
            Some((State::Scheduled(Wait::SendAt), effects(EventKind::Scheduled, LeaseEffect::Drop)))
        }
        (Wait::SendAt | Wait::Fetch, input) => end_untried(input),
        (Wait::Retry, input) => end_waiting(input),
    }
}

fn from_sending(wire_committed: bool, input: Input) -> Next {
    match input {
        Input::CommitWire if !wire_committed => {
            Some((State::Sending { wire_committed: true }, silent(LeaseEffect::Keep)))
        }
        Input::CommitResend if !wire_committed => {
            Some((State::Sending { wire_committed: true }, effects(EventKind::Resent, LeaseEffect::Keep)))
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

fn from_doubt(input: Input) -> Next {
    match input {
        Input::Claim => from_ready(input),
        Input::Settle(outcome) => settle(State::InDoubt, outcome),
        Input::Hold => Some((State::InDoubt, effects(EventKind::InDoubt, LeaseEffect::Keep))),
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

/// The word is about those in doubt alone: whoever is still open is sent to as if there had been no doubt.
fn resolve(resolution: Resolution, rest: Rest) -> Next {
    let resolved = effects(EventKind::Resolved, LeaseEffect::Drop);
    match (resolution, rest) {
        (Resolution::Sent | Resolution::Failed | Resolution::Resend, Rest::Doubt) => None,
        (Resolution::Resend, Rest::Nothing | Rest::Sent | Rest::Open) => Some((State::Ready, resolved)),
        (Resolution::Sent | Resolution::Failed, Rest::Open) => {
            Some((State::Scheduled(Wait::Retry), Effects { then: Some(EventKind::Scheduled), ..resolved }))
        }
        (Resolution::Sent, Rest::Nothing | Rest::Sent) | (Resolution::Failed, Rest::Sent) => {
            Some((State::Sent, resolved))
        }
        (Resolution::Failed, Rest::Nothing) => Some((State::Failed, resolved)),
    }
}

fn from_failed(input: Input) -> Next {
    (input == Input::Replay).then(|| (State::Ready, effects(EventKind::Replayed, LeaseEffect::Drop)))
}

/// What it lacked may be there by now: it is checked anew.
fn from_invalid(input: Input) -> Next {
    (input == Input::Replay).then(|| (State::Accepted, effects(EventKind::Replayed, LeaseEffect::Drop)))
}

fn ending(event: EventKind, open_recipients: RecipientStatus) -> Effects {
    Effects { ends_open_recipients: Some(open_recipients), ..effects(event, LeaseEffect::Drop) }
}

/// The end of an attempt that holds the message, or whose late answer settles the doubt it left. Sent and in doubt
/// need the permission for the dot to be durable; a late answer cannot make a doubt of a doubt.
fn settle(state: State, outcome: Outcome) -> Next {
    let late = state == State::InDoubt;
    let dot_allowed = late || state == State::Sending { wire_committed: true };
    match outcome {
        Outcome::Sent if late => Some((State::Sent, effects(EventKind::Resolved, LeaseEffect::Drop))),
        Outcome::Sent if dot_allowed => Some((State::Sent, effects(EventKind::Sent, LeaseEffect::Drop))),
        Outcome::Captured if dot_allowed => {
            Some((State::Captured, effects(EventKind::Captured, LeaseEffect::Drop)))
        }
        Outcome::SentEarlier => Some((State::Sent, effects(EventKind::Sent, LeaseEffect::Drop))),
        Outcome::Retry => Some((
            State::Scheduled(Wait::Retry),
            Effects { uses_retry: true, ..effects(EventKind::Scheduled, LeaseEffect::Drop) },
        )),
        Outcome::Failed | Outcome::Exhausted => {
            Some((State::Failed, ending(EventKind::Failed, RecipientStatus::Failed)))
        }
        Outcome::Doubt if dot_allowed && !late => Some((
            State::InDoubt,
            Effects {
                ends_open_recipients: Some(RecipientStatus::InDoubt),
                ..effects(EventKind::InDoubt, LeaseEffect::Keep)
            },
        )),
        // This attempt has had its answer: no late one can come for the earlier doubt.
        Outcome::DoubtEarlier if !late => {
            Some((State::InDoubt, effects(EventKind::InDoubt, LeaseEffect::Drop)))
        }
        Outcome::Held if !late => Some((State::Ready, effects(EventKind::Ready, LeaseEffect::Drop))),
        Outcome::Quarantined if !late => {
            Some((State::Failed, ending(EventKind::Failed, RecipientStatus::Failed)))
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
