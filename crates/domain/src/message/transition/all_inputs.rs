//! The list of all inputs, by which the printed table and the tests go through the whole of [`super::transition`].

use super::{AttemptOutcome, DoubtResolution, TransitionInput};
use crate::message::OtherRecipients;

impl TransitionInput {
    /// Every input, for the printed table and tests.
    pub const ALL: &'static [TransitionInput] = &[
        TransitionInput::Validate,
        TransitionInput::Pass,
        TransitionInput::PassForLater,
        TransitionInput::FetchLater,
        TransitionInput::Refuse,
        TransitionInput::Claim,
        TransitionInput::CommitWire,
        TransitionInput::CommitResend,
        TransitionInput::Settle(AttemptOutcome::Sent),
        TransitionInput::Settle(AttemptOutcome::Captured),
        TransitionInput::Settle(AttemptOutcome::Retry),
        TransitionInput::Settle(AttemptOutcome::Failed),
        TransitionInput::Settle(AttemptOutcome::Exhausted),
        TransitionInput::Settle(AttemptOutcome::InDoubt),
        TransitionInput::Settle(AttemptOutcome::SentEarlier),
        TransitionInput::Settle(AttemptOutcome::InDoubtEarlier),
        TransitionInput::Settle(AttemptOutcome::Returned),
        TransitionInput::Settle(AttemptOutcome::Quarantined),
        TransitionInput::LoseLease,
        TransitionInput::PutOnHold,
        TransitionInput::Resolve(DoubtResolution::Sent, OtherRecipients::Nothing),
        TransitionInput::Resolve(DoubtResolution::Sent, OtherRecipients::Sent),
        TransitionInput::Resolve(DoubtResolution::Sent, OtherRecipients::InDoubt),
        TransitionInput::Resolve(DoubtResolution::Sent, OtherRecipients::Open),
        TransitionInput::Resolve(DoubtResolution::Failed, OtherRecipients::Nothing),
        TransitionInput::Resolve(DoubtResolution::Failed, OtherRecipients::Sent),
        TransitionInput::Resolve(DoubtResolution::Failed, OtherRecipients::InDoubt),
        TransitionInput::Resolve(DoubtResolution::Failed, OtherRecipients::Open),
        TransitionInput::Resolve(DoubtResolution::Resend, OtherRecipients::Nothing),
        TransitionInput::Resolve(DoubtResolution::Resend, OtherRecipients::Sent),
        TransitionInput::Resolve(DoubtResolution::Resend, OtherRecipients::InDoubt),
        TransitionInput::Resolve(DoubtResolution::Resend, OtherRecipients::Open),
        TransitionInput::Replay,
        TransitionInput::Reschedule,
        TransitionInput::Cancel(OtherRecipients::Nothing),
        TransitionInput::Cancel(OtherRecipients::Sent),
        TransitionInput::Cancel(OtherRecipients::InDoubt),
        TransitionInput::Cancel(OtherRecipients::Open),
        TransitionInput::Expire(OtherRecipients::Nothing),
        TransitionInput::Expire(OtherRecipients::Sent),
        TransitionInput::Expire(OtherRecipients::InDoubt),
        TransitionInput::Expire(OtherRecipients::Open),
        TransitionInput::Suppress,
    ];
}
