//! The meaning of an enhanced status (RFC 3463 and the IANA registry), and of the codes of large providers.

use super::ReportReason;

/// The reason that a status such as `5.1.1` means; `None` if it says only that delivery failed.
pub(super) fn reason(status: &str) -> Option<ReportReason> {
    let mut numbers = status.split('.').map(|number| number.parse::<u16>().unwrap_or(0));
    let (Some(class), Some(subject), Some(detail)) = (numbers.next(), numbers.next(), numbers.next()) else {
        return None;
    };
    if class == 2 {
        return Some(ReportReason::Delivered);
    }
    Some(match (subject, detail) {
        (1, 0 | 1 | 3) => ReportReason::UserUnknown,
        (1, 4) => ReportReason::Filtered,
        (1, 2) => ReportReason::HostUnknown,
        (1, 6) => ReportReason::HasMoved,
        (1, 7 | 8) => ReportReason::SenderRejected,
        (1, 9) => ReportReason::SystemError,
        (1, 10) => ReportReason::NotAccepting,
        (1, 300..=399) => ReportReason::UserUnknown,
        (2, 0 | 1) => ReportReason::Filtered,
        (2, 2) => ReportReason::MailboxFull,
        (2, 3) => ReportReason::MessageTooBig,
        (2, 4) => ReportReason::Filtered,
        (2, 121 | 122) => ReportReason::RateLimited,
        (3, 0) => ReportReason::SystemError,
        (3, 1) => ReportReason::SystemFull,
        (3, 2) => ReportReason::NotAccepting,
        (3, 3 | 5) => ReportReason::SystemError,
        (3, 4) => ReportReason::MessageTooBig,
        (4, 0) => ReportReason::Network,
        (4, 1) => ReportReason::Expired,
        (4, 2..=4) => ReportReason::Network,
        (4, 5) => ReportReason::SystemError,
        (4, 6 | 14) => ReportReason::Network,
        (4, 7) => ReportReason::Expired,
        (4, 300 | 312 | 316 | 317) => ReportReason::Network,
        (4, 310) => ReportReason::HostUnknown,
        (5, 0) => ReportReason::SystemError,
        (5, 1..=2 | 4..=6) => ReportReason::SyntaxError,
        (5, 3) => ReportReason::RateLimited,
        (6, 0..=10) => ReportReason::ContentRejected,
        (7, 0..=12 | 14..=16 | 19) => ReportReason::Security,
        (7, 13) => ReportReason::AccountDisabled,
        // The mailbox or the domain has another owner than before.
        (7, 17 | 18) => ReportReason::HasMoved,
        (7, 20..=24 | 26 | 29..=32) => ReportReason::AuthFailure,
        (7, 25) => ReportReason::MissingReverseDns,
        // The sender's domain does not accept mail.
        (7, 27) => ReportReason::SenderRejected,
        (7, 28) => ReportReason::RateLimited,
        (7, 509) => ReportReason::AuthFailure,
        (7, 500 | 501 | 502 | 503 | 510..=513 | 606..=649 | 708) => ReportReason::Blocked,
        (7, 505) => ReportReason::Policy,
        (7, 506 | 507) => ReportReason::Blocked,
        (7, 508) => ReportReason::RateLimited,
        (7, 515 | 750) => ReportReason::AuthFailure,
        (7, 700..=704) => ReportReason::Blocked,
        _ => return None,
    })
}

/// Whether a reason from a status is so general that hints in the text are better.
pub(super) fn is_vague(reason: ReportReason) -> bool {
    matches!(
        reason,
        ReportReason::Security
            | ReportReason::SystemError
            | ReportReason::Network
            | ReportReason::Filtered
            | ReportReason::SyntaxError
            | ReportReason::ContentRejected
            | ReportReason::Expired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_the_registry_have_their_meaning() {
        assert_eq!(reason("5.1.1"), Some(ReportReason::UserUnknown));
        assert_eq!(reason("4.2.2"), Some(ReportReason::MailboxFull));
        assert_eq!(reason("5.7.26"), Some(ReportReason::AuthFailure));
        assert_eq!(reason("5.0.0"), None);
        assert_eq!(reason("5"), None);
        assert_eq!(reason("2.1.5"), Some(ReportReason::Delivered));
    }
}
