//! The one table of what may happen to a message.
//!
//! [`transition`] is total: every pair of state and input has an answer, and the tests print the whole table. Rooms
//! ask it before they write; the store's fence makes sure that the state they asked about is still the state.

use super::{RecipientStatus, State, Wait};
use crate::event::EventKind;

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
    /// The attempt ended.
    Settle(Outcome),
    /// The worker that held it is gone.
    LoseLease,
    /// An operator settles a doubt.
    Resolve(Resolution),
    /// An operator puts it back in the queue, or asks for the next attempt now.
    Replay,
    /// Its sender asks for another time.
    Reschedule,
    /// Its sender withdraws it.
    Cancel,
    /// Its time ran out.
    Expire,
    /// Every recipient is on the suppression list.
    Suppress,
}

/// How an attempt ended, for the message as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// At least one recipient sent, none open.
    Sent,
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
    /// The entry in the history; a wire commit has none, it belongs to its attempt.
    pub event: Option<EventKind>,
    /// What becomes of the lease.
    pub lease: LeaseEffect,
    /// Whether a retry is used up.
    pub uses_retry: bool,
    /// How recipients still open end, if they do.
    pub ends_open_recipients: Option<RecipientStatus>,
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
        Input::Settle(Outcome::Sent),
        Input::Settle(Outcome::Retry),
        Input::Settle(Outcome::Failed),
        Input::Settle(Outcome::Exhausted),
        Input::Settle(Outcome::Doubt),
        Input::Settle(Outcome::SentEarlier),
        Input::Settle(Outcome::DoubtEarlier),
        Input::Settle(Outcome::Held),
        Input::Settle(Outcome::Quarantined),
        Input::LoseLease,
        Input::Resolve(Resolution::Sent),
        Input::Resolve(Resolution::Failed),
        Input::Resolve(Resolution::Resend),
        Input::Replay,
        Input::Reschedule,
        Input::Cancel,
        Input::Expire,
        Input::Suppress,
    ];
}

fn effects(event: EventKind, lease: LeaseEffect) -> Effects {
    Effects { event: Some(event), lease, uses_retry: false, ends_open_recipients: None }
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
        State::Sent | State::Invalid | State::Suppressed | State::Cancelled | State::Expired => None,
    };
    next.ok_or(InvalidTransition { state, input })
}

type Next = Option<(State, Effects)>;

fn silent(lease: LeaseEffect) -> Effects {
    Effects { event: None, lease, uses_retry: false, ends_open_recipients: None }
}

/// Withdrawal, expiry and suppression end whatever still waits.
fn end_waiting(input: Input) -> Next {
    match input {
        Input::Cancel => Some((State::Cancelled, ending(EventKind::Cancelled, RecipientStatus::Cancelled))),
        Input::Expire => Some((State::Expired, ending(EventKind::Expired, RecipientStatus::Expired))),
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
        | Input::Settle(_)
        | Input::LoseLease
        | Input::Resolve(_)
        | Input::Replay
        | Input::Reschedule => None,
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
        | Input::Settle(_)
        | Input::LoseLease
        | Input::Resolve(_)
        | Input::Replay
        | Input::Reschedule
        | Input::Cancel
        | Input::Expire
        | Input::Suppress => end_waiting(input),
    }
}

fn from_accepted(input: Input) -> Next {
    if input == Input::Validate {
        return Some((State::Validating, silent(LeaseEffect::Take)));
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
        (Wait::Fetch, Input::Validate) => Some((State::Validating, silent(LeaseEffect::Take))),
        (Wait::SendAt | Wait::Retry, Input::Claim) => from_ready(input),
        (Wait::SendAt | Wait::Retry, Input::Replay) => {
            Some((State::Ready, effects(EventKind::Replayed, LeaseEffect::Drop)))
        }
        // A retry is due when the schedule says; only a time that was asked for can be asked for anew.
        (Wait::SendAt, Input::Reschedule) => {
            Some((State::Scheduled(Wait::SendAt), effects(EventKind::Scheduled, LeaseEffect::Drop)))
        }
        (Wait::SendAt | Wait::Retry | Wait::Fetch, input) => end_waiting(input),
    }
}

fn from_sending(wire_committed: bool, input: Input) -> Next {
    match input {
        Input::CommitWire if !wire_committed => {
            Some((State::Sending { wire_committed: true }, silent(LeaseEffect::Keep)))
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
        | Input::Resolve(_)
        | Input::Replay
        | Input::Reschedule
        | Input::Cancel
        | Input::Expire
        | Input::Suppress => None,
    }
}

fn from_doubt(input: Input) -> Next {
    match input {
        Input::Claim => {
            Some((State::Sending { wire_committed: false }, effects(EventKind::Resent, LeaseEffect::Take)))
        }
        Input::Settle(outcome) => settle(State::InDoubt, outcome),
        Input::Resolve(Resolution::Sent) => {
            Some((State::Sent, ending(EventKind::Resolved, RecipientStatus::Sent)))
        }
        Input::Resolve(Resolution::Failed) => {
            Some((State::Failed, ending(EventKind::Resolved, RecipientStatus::Failed)))
        }
        Input::Resolve(Resolution::Resend) => {
            Some((State::Ready, effects(EventKind::Resolved, LeaseEffect::Drop)))
        }
        Input::Validate
        | Input::Pass
        | Input::PassForLater
        | Input::FetchLater
        | Input::Refuse
        | Input::CommitWire
        | Input::LoseLease
        | Input::Replay
        | Input::Reschedule
        | Input::Cancel
        | Input::Expire
        | Input::Suppress => None,
    }
}

fn from_failed(input: Input) -> Next {
    (input == Input::Replay).then(|| (State::Ready, effects(EventKind::Replayed, LeaseEffect::Drop)))
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
        Outcome::Sent | Outcome::Doubt | Outcome::DoubtEarlier | Outcome::Held | Outcome::Quarantined => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_whole_table() {
        let mut table = String::new();
        for &state in State::ALL {
            for &input in Input::ALL {
                if let Ok((next, effects)) = transition(state, input) {
                    let event = effects.event.map_or("-", EventKind::as_str);
                    table += &format!("{state:?} + {input:?} -> {next:?} [{event}, {:?}]\n", effects.lease);
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    proptest! {
        #[test]
        fn any_walk_keeps_the_rules(inputs in prop::collection::vec(0..Input::ALL.len(), 0..60)) {
            let mut state = State::Accepted;
            let mut dot_allowed = false;
            let mut token = false;
            for index in inputs {
                let input = Input::ALL[index];
                // The store's fence lets an attempt settle only while its token stands.
                if matches!(input, Input::Settle(_)) && !token {
                    continue;
                }
                let Ok((next, effects)) = transition(state, input) else { continue };
                token = match effects.lease {
                    LeaseEffect::Take => true,
                    LeaseEffect::Keep => token,
                    LeaseEffect::Drop => false,
                };
                if input == Input::CommitWire {
                    dot_allowed = true;
                }
                if next == (State::Sending { wire_committed: false }) {
                    dot_allowed = false;
                }
                // Sent by an attempt, or in doubt, only after the permission for the dot was durable.
                if matches!(input, Input::Settle(Outcome::Sent | Outcome::Doubt) | Input::LoseLease)
                    && matches!(next, State::Sent | State::InDoubt)
                {
                    prop_assert!(dot_allowed);
                }
                // A lease is taken only by taking work, and kept only while the work or its doubt lasts.
                if effects.lease == LeaseEffect::Keep {
                    let lasts = matches!(next, State::Sending { .. } | State::InDoubt);
                    prop_assert!(lasts, "{next:?}");
                }
                // What is on the wire can only be ended by its attempt or its loss.
                if matches!(state, State::Sending { .. }) {
                    let ends = matches!(input, Input::Cancel | Input::Expire | Input::Suppress);
                    prop_assert!(!ends);
                }
                if state.status().is_final() {
                    prop_assert!(state == State::Failed && input == Input::Replay);
                }
                state = next;
            }
        }
    }
}
