//! What is left of a message beside the recipients that something happens to.
//!
//! A withdrawal ends those still open, an operator's word settles those in doubt. Where the message goes then is decided
//! by the others: what may have been sent is never called withdrawn, and who is still to be sent to is not called sent.

use super::RecipientStatus;

/// Where the recipients stand that an input is not about: the weightiest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rest {
    /// There is nobody else, or nothing was sent to them and nothing will be.
    Nothing,
    /// Some are sent.
    Sent,
    /// Some are in doubt.
    Doubt,
    /// Some are still to be sent to.
    Open,
}

impl Rest {
    /// Every one, for tables and tests.
    pub const ALL: &'static [Rest] = &[Rest::Nothing, Rest::Sent, Rest::Doubt, Rest::Open];

    /// Of a message whose recipients stand so, beside those that are still open.
    pub fn beside_open(recipients: impl IntoIterator<Item = RecipientStatus>) -> Self {
        Self::beside(RecipientStatus::Pending, recipients)
    }

    /// Of a message whose recipients stand so, beside those in doubt.
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
