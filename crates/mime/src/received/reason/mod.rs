//! Decides why a mail did not arrive.
//!
//! [`decide`] uses, in this order: clear statements in the server's text, the meaning of the enhanced status,
//! hints in the text, and the meaning of the reply code. Text comes first because servers are careless with
//! codes: "mailbox full" is sent with 5.1.1, and nearly everything with 5.0.0 or 5.7.1.
//!
//! A bad address needs proof, because it suppresses a recipient: "no such user" counts if the status is about
//! the address or if it is the reply to RCPT. After the content, or from an unknown source, it may come from
//! a filter that pretends the user does not exist, as those of mobile carriers do; that is
//! [`Reason::Filtered`].

mod phrases;
mod status;

use super::diagnosis::SmtpPhase;
use phrases::PhraseHits;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a mail did not arrive, or what else a report is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
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

impl Reason {
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
pub(super) fn decide(evidence: FailureEvidence<'_>) -> Reason {
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
        .or_else(|| evidence.program.then_some(Reason::MailerError))
        .or_else(|| reason_by_code(evidence.code))
        .or_else(|| evidence.delayed.then_some(Reason::Expired))
        .or_else(|| {
            matches!(evidence.phase, Some(SmtpPhase::Connect | SmtpPhase::Hello)).then_some(Reason::Blocked)
        })
        .unwrap_or(Reason::Undefined)
}

/// Whether a text has phrases of one of the reasons.
pub(super) fn speaks_for(text: &[u8], reasons: &[Reason]) -> bool {
    let hits = phrases::find_phrases(text);
    reasons.iter().any(|&reason| hits.has(reason))
}

/// The reason that the text states so clearly that the status does not matter.
fn clear_reason(
    evidence: FailureEvidence<'_>,
    hits: PhraseHits,
    by_status: Option<Reason>,
) -> Option<Reason> {
    if evidence.program {
        let said = [Reason::MailboxFull, Reason::MessageTooBig].into_iter().find(|&reason| hits.has(reason));
        return said.or(Some(Reason::MailerError));
    }
    let first = [
        Reason::MailboxFull,
        Reason::MessageTooBig,
        Reason::Suppressed,
        Reason::AccountDisabled,
        Reason::HasMoved,
        Reason::RelayDenied,
        Reason::AuthFailure,
    ];
    if let Some(reason) = first.into_iter().find(|&reason| hits.has(reason)) {
        return Some(reason);
    }
    if by_status == Some(Reason::MailboxFull) {
        return by_status;
    }
    let unknown = hits.has(Reason::UserUnknown);
    if let Some(reason) = hits.certain() {
        return Some(reason);
    }
    let about_us = matches!(by_status, Some(Reason::UserUnknown | Reason::HostUnknown))
        || unknown
        || hits.has(Reason::HostUnknown);
    match evidence.phase {
        // The unknown address is the sender's, not the recipient's.
        Some(SmtpPhase::Sender) if about_us => return Some(Reason::SenderRejected),
        Some(SmtpPhase::Hello) if about_us => return Some(Reason::Blocked),
        _ => {}
    }
    let refused = [Reason::Blocked, Reason::SenderRejected, Reason::BadReputation, Reason::Spam];
    match by_status {
        Some(Reason::UserUnknown) if !refused.iter().any(|&reason| hits.has(reason)) => {
            return Some(Reason::UserUnknown);
        }
        Some(Reason::AccountDisabled | Reason::HasMoved) => return by_status,
        _ if unknown && evidence.phase == Some(SmtpPhase::Recipient) => return Some(Reason::UserUnknown),
        _ => {}
    }
    let second = [Reason::BadReputation, Reason::MissingReverseDns, Reason::NotCompliant];
    if let Some(reason) = second.into_iter().find(|&reason| hits.has(reason)) {
        return Some(reason);
    }
    if hits.has(Reason::HostUnknown) && !matches!(evidence.status, Some(status) if status.starts_with('4')) {
        return Some(Reason::HostUnknown);
    }
    let early = matches!(
        evidence.phase,
        Some(SmtpPhase::Connect | SmtpPhase::Hello | SmtpPhase::Sender | SmtpPhase::Recipient)
    );
    if (hits.has(Reason::Filtered) && (!early || by_status == Some(Reason::Filtered))) || (unknown && !early)
    {
        return Some(Reason::Filtered);
    }
    let third = [
        Reason::SenderRejected,
        Reason::NotAccepting,
        Reason::Spam,
        Reason::RateLimited,
        Reason::Blocked,
        Reason::Virus,
    ];
    third.into_iter().find(|&reason| hits.has(reason))
}

/// The reason that the text hints at.
fn hinted_reason(hits: PhraseHits) -> Option<Reason> {
    let hints = [
        Reason::Policy,
        Reason::Security,
        Reason::Deferred,
        Reason::SystemFull,
        Reason::SystemError,
        Reason::Network,
        Reason::Expired,
        Reason::ContentRejected,
        Reason::SyntaxError,
        Reason::MailerError,
        Reason::Filtered,
    ];
    hints.into_iter().find(|&reason| hits.has(reason))
}

/// The reason that the reply code means (RFC 5321, RFC 5248, RFC 7504), if it is specific.
fn reason_by_code(code: Option<u16>) -> Option<Reason> {
    Some(match code? {
        421 | 450 => Reason::Deferred,
        451 => Reason::SystemError,
        452 => Reason::SystemFull,
        500..=504 | 555 => Reason::SyntaxError,
        521 | 556 => Reason::NotAccepting,
        523 | 524 | 530 | 534 | 535 | 538 => Reason::Security,
        525 => Reason::AccountDisabled,
        551 => Reason::HasMoved,
        552 => Reason::MailboxFull,
        _ => return None,
    })
}
