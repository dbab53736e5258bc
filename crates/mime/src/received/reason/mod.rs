//! Decides why a mail did not arrive.
//!
//! [`decide`] uses, in this order: clear statements in the server's text, the meaning of the enhanced status,
//! hints in the text, and the meaning of the reply code. Text comes first because servers are careless with
//! codes: "mailbox full" is sent with 5.1.1, and nearly everything with 5.0.0 or 5.7.1.
//!
//! A bad address needs proof, because it suppresses a recipient: "no such user" counts if the status is about
//! the address or if it is the reply to RCPT. After the content, or from an unknown source, it may come from
//! a filter that pretends the user does not exist, as those of mobile carriers do; that is
//! [`ReportReason::Filtered`].

mod phrases;
mod status;

use super::diagnosis::SmtpPhase;
use phrases::PhraseHits;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a mail did not arrive, or what else a report is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ReportReason {
            $($(#[$doc])* $name,)*
        }

        impl ReportReason {
            /// The name in the API.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The reason of that name.
            fn named(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// There is no such user.
    UserUnknown = "user_unknown",
    /// There is no such domain, or it has no mail server.
    HostUnknown = "host_unknown",
    /// The user has moved.
    HasMoved = "has_moved",
    /// The domain takes no mail at all (RFC 7505, RFC 7504).
    NotAccepting = "not_accepting",
    /// The account is disabled, suspended or inactive.
    AccountDisabled = "account_disabled",
    /// The mailbox is full.
    MailboxFull = "mailbox_full",
    /// The mail is too big.
    MessageTooBig = "message_too_big",
    /// The recipient, or a filter of theirs, does not want the mail; or does not say whether they exist.
    Filtered = "filtered",
    /// The sender's address was refused.
    SenderRejected = "sender_rejected",
    /// The content was refused.
    ContentRejected = "content_rejected",
    /// The mail does not conform to the standards.
    NotCompliant = "not_compliant",
    /// The mail was taken for spam.
    Spam = "spam",
    /// The mail was taken for a virus.
    Virus = "virus",
    /// A policy of the recipient's server forbids the mail.
    Policy = "policy",
    /// The sending address or host is blocked.
    Blocked = "blocked",
    /// The sending address or host has a bad reputation.
    BadReputation = "bad_reputation",
    /// The sending host has no reverse name.
    MissingReverseDns = "missing_reverse_dns",
    /// SPF, DKIM or DMARC failed.
    AuthFailure = "auth_failure",
    /// The server asks for TLS, a login or other security.
    Security = "security",
    /// The server does not relay for the sender.
    RelayDenied = "relay_denied",
    /// Too much mail or too many connections in too short a time.
    RateLimited = "rate_limited",
    /// The server asks to try again later.
    Deferred = "deferred",
    /// The server could not be reached, or the mail ran in a circle.
    Network = "network",
    /// The delivery time expired.
    Expired = "expired",
    /// The server did not understand a command.
    SyntaxError = "syntax_error",
    /// The server has an internal error.
    SystemError = "system_error",
    /// The server's disk is full.
    SystemFull = "system_full",
    /// A program that was to take the mail failed.
    MailerError = "mailer_error",
    /// The provider's own suppression list contains the address.
    Suppressed = "suppressed",
    /// It was delivered.
    Delivered = "delivered",
    /// A complaint.
    Feedback = "feedback",
    /// An automatic answer.
    Vacation = "vacation",
    /// The report gives no reason that is known here.
    Undefined = "undefined",
}

impl ReportReason {
    /// Whether the address itself is bad. `is_transient` is the class of the failure.
    pub(super) fn is_hard(self, is_transient: bool) -> bool {
        match self {
            Self::UserUnknown | Self::HostUnknown | Self::HasMoved => true,
            Self::NotAccepting => !is_transient,
            _ => false,
        }
    }
}

/// What is known about a failure, as input of [`decide`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FailureEvidence<'a> {
    /// The text of the server.
    pub(super) text: &'a [u8],
    /// The enhanced status.
    pub(super) status: Option<&'a str>,
    /// The reply code.
    pub(super) code: Option<u16>,
    /// The command that was answered.
    pub(super) phase: Option<SmtpPhase>,
    /// Whether the text is from a local program (`X-Unix`), not from an SMTP server.
    pub(super) program: bool,
    /// Whether delivery is late rather than failed.
    pub(super) delayed: bool,
}

/// Decides the most likely reason.
pub(super) fn decide(evidence: FailureEvidence<'_>) -> ReportReason {
    let hits = phrases::find_phrases(evidence.text);
    let by_status = evidence.status.and_then(status::reason);
    if let Some(reason) = clear_reason(evidence, hits, by_status) {
        return reason;
    }
    if let Some(reason) = by_status
        && !status::is_vague(reason)
    {
        return reason;
    }
    hinted_reason(hits)
        .or(by_status)
        .or_else(|| evidence.program.then_some(ReportReason::MailerError))
        .or_else(|| reason_by_code(evidence.code))
        .or_else(|| evidence.delayed.then_some(ReportReason::Expired))
        .or_else(|| {
            matches!(evidence.phase, Some(SmtpPhase::Connect | SmtpPhase::Hello))
                .then_some(ReportReason::Blocked)
        })
        .unwrap_or(ReportReason::Undefined)
}

/// Whether a text has phrases of one of the reasons.
pub(super) fn speaks_for(text: &[u8], reasons: &[ReportReason]) -> bool {
    let hits = phrases::find_phrases(text);
    reasons.iter().any(|&reason| hits.has(reason))
}

/// The reason that the text states so clearly that the status does not matter.
fn clear_reason(
    evidence: FailureEvidence<'_>,
    hits: PhraseHits,
    by_status: Option<ReportReason>,
) -> Option<ReportReason> {
    if evidence.program {
        let said = [ReportReason::MailboxFull, ReportReason::MessageTooBig]
            .into_iter()
            .find(|&reason| hits.has(reason));
        return said.or(Some(ReportReason::MailerError));
    }
    let first = [
        ReportReason::MailboxFull,
        ReportReason::MessageTooBig,
        ReportReason::Suppressed,
        ReportReason::AccountDisabled,
        ReportReason::HasMoved,
        ReportReason::RelayDenied,
        ReportReason::AuthFailure,
    ];
    if let Some(reason) = first.into_iter().find(|&reason| hits.has(reason)) {
        return Some(reason);
    }
    if by_status == Some(ReportReason::MailboxFull) {
        return by_status;
    }
    let unknown = hits.has(ReportReason::UserUnknown);
    if let Some(reason) = hits.certain() {
        return Some(reason);
    }
    let about_us = matches!(by_status, Some(ReportReason::UserUnknown | ReportReason::HostUnknown))
        || unknown
        || hits.has(ReportReason::HostUnknown);
    match evidence.phase {
        // The unknown address is the sender's, not the recipient's.
        Some(SmtpPhase::Sender) if about_us => return Some(ReportReason::SenderRejected),
        Some(SmtpPhase::Hello) if about_us => return Some(ReportReason::Blocked),
        _ => {}
    }
    let refused = [
        ReportReason::Blocked,
        ReportReason::SenderRejected,
        ReportReason::BadReputation,
        ReportReason::Spam,
    ];
    match by_status {
        Some(ReportReason::UserUnknown) if !refused.iter().any(|&reason| hits.has(reason)) => {
            return Some(ReportReason::UserUnknown);
        }
        Some(ReportReason::AccountDisabled | ReportReason::HasMoved) => return by_status,
        _ if unknown && evidence.phase == Some(SmtpPhase::Recipient) => {
            return Some(ReportReason::UserUnknown);
        }
        _ => {}
    }
    let second = [ReportReason::BadReputation, ReportReason::MissingReverseDns, ReportReason::NotCompliant];
    if let Some(reason) = second.into_iter().find(|&reason| hits.has(reason)) {
        return Some(reason);
    }
    if hits.has(ReportReason::HostUnknown)
        && !matches!(evidence.status, Some(status) if status.starts_with('4'))
    {
        return Some(ReportReason::HostUnknown);
    }
    let early = matches!(
        evidence.phase,
        Some(SmtpPhase::Connect | SmtpPhase::Hello | SmtpPhase::Sender | SmtpPhase::Recipient)
    );
    if (hits.has(ReportReason::Filtered) && (!early || by_status == Some(ReportReason::Filtered)))
        || (unknown && !early)
    {
        return Some(ReportReason::Filtered);
    }
    let third = [
        ReportReason::SenderRejected,
        ReportReason::NotAccepting,
        ReportReason::Spam,
        ReportReason::RateLimited,
        ReportReason::Blocked,
        ReportReason::Virus,
    ];
    third.into_iter().find(|&reason| hits.has(reason))
}

/// The reason that the text hints at.
fn hinted_reason(hits: PhraseHits) -> Option<ReportReason> {
    let hints = [
        ReportReason::Policy,
        ReportReason::Security,
        ReportReason::Deferred,
        ReportReason::SystemFull,
        ReportReason::SystemError,
        ReportReason::Network,
        ReportReason::Expired,
        ReportReason::ContentRejected,
        ReportReason::SyntaxError,
        ReportReason::MailerError,
        ReportReason::Filtered,
    ];
    hints.into_iter().find(|&reason| hits.has(reason))
}

/// The reason that the reply code means (RFC 5321, RFC 5248, RFC 7504), if it is specific.
fn reason_by_code(code: Option<u16>) -> Option<ReportReason> {
    Some(match code? {
        421 | 450 => ReportReason::Deferred,
        451 => ReportReason::SystemError,
        452 => ReportReason::SystemFull,
        500..=504 | 555 => ReportReason::SyntaxError,
        521 | 556 => ReportReason::NotAccepting,
        523 | 524 | 530 | 534 | 535 | 538 => ReportReason::Security,
        525 => ReportReason::AccountDisabled,
        551 => ReportReason::HasMoved,
        552 => ReportReason::MailboxFull,
        _ => return None,
    })
}
