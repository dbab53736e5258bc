//! The meaning of an enhanced status (RFC 3463 and the IANA registry), and of the codes of large providers.

use super::Reason;

/// The reason that a status such as `5.1.1` means; `None` if it says only that delivery failed.
pub(super) fn reason(status: &str) -> Option<Reason> {
    let mut numbers = status.split('.').map(|number| number.parse::<u16>().unwrap_or(0));
    let (Some(class), Some(subject), Some(detail)) = (numbers.next(), numbers.next(), numbers.next()) else {
        return None;
    };
    if class == 2 {
        return Some(Reason::Delivered);
    }
    Some(match (subject, detail) {
        (1, 0 | 1 | 3) => Reason::UserUnknown,
        (1, 4) => Reason::Filtered,
        (1, 2) => Reason::HostUnknown,
        (1, 6) => Reason::HasMoved,
        (1, 7 | 8) => Reason::SenderRejected,
        (1, 9) => Reason::SystemError,
        (1, 10) => Reason::NotAccepting,
        (1, 300..=399) => Reason::UserUnknown,
        (2, 0 | 1) => Reason::Filtered,
        (2, 2) => Reason::MailboxFull,
        (2, 3) => Reason::MessageTooBig,
        (2, 4) => Reason::Filtered,
        (2, 121 | 122) => Reason::RateLimited,
        (3, 0) => Reason::SystemError,
        (3, 1) => Reason::SystemFull,
        (3, 2) => Reason::NotAccepting,
        (3, 3 | 5) => Reason::SystemError,
        (3, 4) => Reason::MessageTooBig,
        (4, 0) => Reason::Network,
        (4, 1) => Reason::Expired,
        (4, 2..=4) => Reason::Network,
        (4, 5) => Reason::SystemError,
        (4, 6 | 14) => Reason::Network,
        (4, 7) => Reason::Expired,
        (4, 300 | 312 | 316 | 317) => Reason::Network,
        (4, 310) => Reason::HostUnknown,
        (5, 0) => Reason::SystemError,
        (5, 1..=2 | 4..=6) => Reason::SyntaxError,
        (5, 3) => Reason::RateLimited,
        (6, 0..=10) => Reason::ContentRejected,
        (7, 0..=12 | 14..=16 | 19) => Reason::Security,
        (7, 13) => Reason::AccountDisabled,
        // The mailbox or the domain has another owner than before.
        (7, 17 | 18) => Reason::HasMoved,
        (7, 20..=24 | 26 | 29..=32) => Reason::AuthFailure,
        (7, 25) => Reason::MissingReverseDns,
        // The sender's domain does not accept mail.
        (7, 27) => Reason::SenderRejected,
        (7, 28) => Reason::RateLimited,
        (7, 509) => Reason::AuthFailure,
        (7, 500 | 501 | 502 | 503 | 510..=513 | 606..=649 | 708) => Reason::Blocked,
        (7, 505) => Reason::Policy,
        (7, 506 | 507) => Reason::Blocked,
        (7, 508) => Reason::RateLimited,
        (7, 515 | 750) => Reason::AuthFailure,
        (7, 700..=704) => Reason::Blocked,
        _ => return None,
    })
}

/// Whether a reason from a status is so general that hints in the text are better.
pub(super) fn is_vague(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Security
            | Reason::SystemError
            | Reason::Network
            | Reason::Filtered
            | Reason::SyntaxError
            | Reason::ContentRejected
            | Reason::Expired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_the_registry_have_their_meaning() {
        assert_eq!(reason("5.1.1"), Some(Reason::UserUnknown));
        assert_eq!(reason("4.2.2"), Some(Reason::MailboxFull));
        assert_eq!(reason("5.7.26"), Some(Reason::AuthFailure));
        assert_eq!(reason("5.0.0"), None);
        assert_eq!(reason("5"), None);
        assert_eq!(reason("2.1.5"), Some(Reason::Delivered));
    }
}
