//! The state of the recipients that an input does *not* apply to.
//!
//! A cancellation ends the open recipients; an operator's decision settles those in doubt. The others decide
//! the next state of the message: one that may have been sent is never called cancelled, and one that is
//! still to be sent to is not called sent.

use super::RecipientStatus;

/// The state of the other recipients: the one that decides the most, in the order below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rest {
    /// There are no others, or nothing was sent to them and nothing will be.
    Nothing,
    /// Some were sent to.
    Sent,
    /// Some are in doubt.
    Doubt,
    /// Some are still to be sent to.
    Open,
}

impl Rest {
    /// Every value, for tables and tests.
    pub const ALL: &'static [Rest] = &[Rest::Nothing, Rest::Sent, Rest::Doubt, Rest::Open];

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
        others.map(Self::from).max().unwrap_or(Rest::Nothing)
    }
}

impl From<RecipientStatus> for Rest {
    fn from(status: RecipientStatus) -> Self {
        match status {
            RecipientStatus::Pending => Rest::Open,
            RecipientStatus::InDoubt => Rest::Doubt,
            RecipientStatus::Sent => Rest::Sent,
            RecipientStatus::Failed
            | RecipientStatus::Suppressed
            | RecipientStatus::Cancelled
            | RecipientStatus::Expired
            | RecipientStatus::Captured => Rest::Nothing,
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
        assert_eq!(Rest::beside_open([]), Rest::Nothing);
        assert_eq!(Rest::beside_open([Pending, Failed, Suppressed]), Rest::Nothing);
        assert_eq!(Rest::beside_open([Pending, Sent, Failed]), Rest::Sent);
        assert_eq!(Rest::beside_open([Sent, InDoubt, Pending]), Rest::Doubt);
        assert_eq!(Rest::beside_doubtful([InDoubt, Failed]), Rest::Nothing);
        assert_eq!(Rest::beside_doubtful([InDoubt, Sent]), Rest::Sent);
        assert_eq!(Rest::beside_doubtful([InDoubt, Sent, Pending]), Rest::Open);
    }
}
