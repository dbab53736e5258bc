//! Decides from the end of a delivery whether the account is at fault, and whether anything was written.

use postway_domain::{SendFailure, failure::FailurePhase};

use crate::{
    account::config::AccountTransport,
    transport::{DeliveryEnd, DeliveryResult, RecipientReply},
};

/// Whether a call of an API ended before any part of it was written.
pub(super) fn is_before_the_request(end: &DeliveryEnd) -> bool {
    match end {
        DeliveryEnd::NotSent(failure) => failure.phase != FailurePhase::Request,
        DeliveryEnd::GateRefused | DeliveryEnd::NoRecipients => true,
        DeliveryEnd::Accepted { .. } | DeliveryEnd::Captured { .. } | DeliveryEnd::InDoubt(_) => false,
    }
}

/// The failure that is the account's fault rather than the mail's: one of the transaction, or of any
/// recipient. A relay that cannot be reached counts as a fault of the account.
pub(super) fn account_fault<'d>(
    delivery: &'d DeliveryResult,
    transport: &AccountTransport,
) -> Option<&'d SendFailure> {
    if let DeliveryEnd::NotSent(failure) = &delivery.end {
        let unreachable =
            failure.phase == FailurePhase::Connect && matches!(transport, AccountTransport::Smtp(_));
        if failure.is_account() || unreachable {
            return Some(failure);
        }
    }
    delivery.recipients.iter().find_map(|reply| match reply {
        RecipientReply::Refused(failure) if failure.is_account() => Some(failure),
        RecipientReply::Refused(_)
        | RecipientReply::Accepted(_)
        | RecipientReply::Deferred(_)
        | RecipientReply::NotTried
        | RecipientReply::Taken(_)
        | RecipientReply::Doubtful(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use postway_domain::{
        RelayTlsMode,
        failure::{FailureCategory, FailureSeverity},
    };

    use super::*;
    use crate::transport::SmtpSettings;

    fn not_sent(failure: SendFailure) -> DeliveryResult {
        DeliveryResult::new(vec![RecipientReply::NotTried], DeliveryEnd::NotSent(failure))
    }

    #[test]
    fn a_relay_that_cannot_be_reached_is_the_accounts_fault_and_a_lost_connection_is_not() {
        let relay =
            AccountTransport::Smtp(Box::new(SmtpSettings::new("relay.example", 25, RelayTlsMode::None)));
        let io = |phase| not_sent(SendFailure::io(phase, io::ErrorKind::ConnectionRefused, "no"));
        assert!(account_fault(&io(FailurePhase::Connect), &relay).is_some());
        assert!(account_fault(&io(FailurePhase::Data), &relay).is_none());
        assert!(
            account_fault(&io(FailurePhase::Connect), &AccountTransport::Sandbox).is_none(),
            "an API is tried again"
        );
    }

    #[test]
    fn one_recipient_refused_for_the_accounts_sake_is_enough() {
        let quota = SendFailure::new(
            "smtp_452",
            FailureCategory::Quota,
            FailurePhase::Rcpt,
            FailureSeverity::Account,
            "used up",
        );
        let recipients = vec![RecipientReply::NotTried, RecipientReply::Refused(quota)];
        let delivery = DeliveryResult::new(recipients, DeliveryEnd::NoRecipients);
        assert_eq!(
            account_fault(&delivery, &AccountTransport::Sandbox).map(|failure| failure.category),
            Some(FailureCategory::Quota)
        );
    }

    #[test]
    fn only_what_was_never_written_is_before_the_request() {
        let failure = |phase| SendFailure::timeout(phase);
        assert!(is_before_the_request(&DeliveryEnd::NotSent(failure(FailurePhase::Connect))));
        assert!(is_before_the_request(&DeliveryEnd::GateRefused));
        assert!(!is_before_the_request(&DeliveryEnd::NotSent(failure(FailurePhase::Request))));
        assert!(!is_before_the_request(&DeliveryEnd::InDoubt(failure(FailurePhase::Request))));
    }
}
