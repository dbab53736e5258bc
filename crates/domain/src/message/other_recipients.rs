//! The state of the recipients that an input does *not* apply to.
//!
//! A cancellation ends the open recipients; an operator's decision settles those in doubt. The others decide
//! the next state of the message: one that may have been sent is never called cancelled, and one that is
//! still to be sent to is not called sent.

use super::RecipientStatus;

/// The state of the other recipients: the one that decides the most, in the order below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OtherRecipients {
    /// There are no others, or nothing was sent to them and nothing will be.
    Nothing,
    /// Some were sent to.
    Sent,
    /// Some are in doubt.
    InDoubt,
    /// Some are still to be sent to.
    Open,
}

impl OtherRecipients {
    /// Every value, for tables and tests.
    pub const ALL: &'static [OtherRecipients] =
        &[OtherRecipients::Nothing, OtherRecipients::Sent, OtherRecipients::InDoubt, OtherRecipients::Open];

    /// The state of all recipients but the open ones.
    pub fn beside_open(recipients: impl IntoIterator<Item = RecipientStatus>) -> Self {
        Self::beside(RecipientStatus::Pending, recipients)
    }

    /// The state of all recipients but those in doubt.
    pub fn beside_doubtful(recipients: impl IntoIterator<Item = RecipientStatus>) -> Self {
        Self::beside(RecipientStatus::InDoubt, recipients)
    }

    fn beside(concerned: RecipientStatus, recipients: impl IntoIterator<Item = RecipientStatus>) -> Self {
        let others = recipients.into_iter().filter(|status| *status != concerned);
        others.map(Self::from).max().unwrap_or(OtherRecipients::Nothing)
    }
}

impl From<RecipientStatus> for OtherRecipients {
    fn from(status: RecipientStatus) -> Self {
        match status {
            RecipientStatus::Pending => OtherRecipients::Open,
            RecipientStatus::InDoubt => OtherRecipients::InDoubt,
            RecipientStatus::Sent => OtherRecipients::Sent,
            RecipientStatus::Failed
            | RecipientStatus::Suppressed
            | RecipientStatus::Cancelled
            | RecipientStatus::Expired
            | RecipientStatus::Captured => OtherRecipients::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        RecipientStatus::{Failed, InDoubt, Pending, Sent, Suppressed},
        *,
    };

    #[test]
    fn the_weightiest_of_the_others_decides() {
        assert_eq!(OtherRecipients::beside_open([]), OtherRecipients::Nothing);
        assert_eq!(OtherRecipients::beside_open([Pending, Failed, Suppressed]), OtherRecipients::Nothing);
        assert_eq!(OtherRecipients::beside_open([Pending, Sent, Failed]), OtherRecipients::Sent);
        assert_eq!(OtherRecipients::beside_open([Sent, InDoubt, Pending]), OtherRecipients::InDoubt);
        assert_eq!(OtherRecipients::beside_doubtful([InDoubt, Failed]), OtherRecipients::Nothing);
        assert_eq!(OtherRecipients::beside_doubtful([InDoubt, Sent]), OtherRecipients::Sent);
        assert_eq!(OtherRecipients::beside_doubtful([InDoubt, Sent, Pending]), OtherRecipients::Open);
    }
}
