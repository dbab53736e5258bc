//! The table that turns an SMTP reply into a category and a severity.
//!
//! The first rule that matches decides. Wording comes first, because it is all there is when providers
//! disagree about codes (a daily quota is 454 at one and 550 at another); then the enhanced code; then the
//! bare reply code. A rule sets the category. The severity follows the reply (4xx transient, 5xx permanent)
//! unless the rule says otherwise. The class of the enhanced code is not trusted over that of the reply: RFC
//! 5321 tells clients to act on the reply code.

mod wording;

use super::{
    EnhancedCode,
    FailureCategory::{self, *},
    FailurePhase::{self, Auth, Data, Dot, Greeting, Mail, Rcpt},
    FailureSeverity,
};
use wording::*;

/// A rule: which replies it matches, and what they mean. An empty list matches any.
struct ReplyRule {
    phases: &'static [FailurePhase],
    codes: ReplyCodes,
    enhanced: &'static [EnhancedStatus],
    says: &'static [&'static str],
    category: FailureCategory,
    severity: Option<FailureSeverity>,
}

/// Reply codes a rule matches.
enum ReplyCodes {
    Any,
    /// 4 or 5.
    Class(u16),
    One(&'static [u16]),
}

/// Subject and detail of an enhanced code; no detail means every detail of that subject.
type EnhancedStatus = (u16, Option<u16>);

const ANY: ReplyRule = ReplyRule {
    phases: &[],
    codes: ReplyCodes::Any,
    enhanced: &[],
    says: &[],
    category: Unknown,
    severity: None,
};
const SENDING: &[FailurePhase] = &[Greeting, Auth, Mail, Data, Dot];
const TRANSACTION: &[FailurePhase] = &[Mail, Rcpt, Data, Dot];
/// Microsoft's "banned sender" family.
#[rustfmt::skip]
const SUSPENDED_STATUS: &[EnhancedStatus] =
    &[(7, Some(501)), (7, Some(502)), (7, Some(503)), (7, Some(705)), (7, Some(708)), (7, Some(750))];

/// A rule on wording.
const fn says(
    phases: &'static [FailurePhase],
    says: &'static [&'static str],
    category: FailureCategory,
) -> ReplyRule {
    ReplyRule { phases, says, category, ..ANY }
}

/// A rule on enhanced codes.
const fn enhanced(
    phases: &'static [FailurePhase],
    enhanced: &'static [EnhancedStatus],
    category: FailureCategory,
) -> ReplyRule {
    ReplyRule { phases, enhanced, category, ..ANY }
}

/// A rule on reply codes.
const fn code(
    phases: &'static [FailurePhase],
    codes: &'static [u16],
    category: FailureCategory,
) -> ReplyRule {
    ReplyRule { phases, codes: ReplyCodes::One(codes), category, ..ANY }
}

/// A rule on all 4xx or 5xx.
const fn class(phases: &'static [FailurePhase], class: u16, category: FailureCategory) -> ReplyRule {
    ReplyRule { phases, codes: ReplyCodes::Class(class), category, ..ANY }
}

const RULES: &[ReplyRule] = &[
    // Faults of the account, whatever the code.
    says(&[], SENDER_QUOTA, Quota).account(),
    enhanced(TRANSACTION, &[(4, Some(5)), (1, Some(90))], Quota).account(),
    says(&[], RATE, RateLimited).transient(),
    says(SENDING, SUSPENDED, AccountSuspended).account(),
    enhanced(SENDING, SUSPENDED_STATUS, AccountSuspended).account(),
    // Signing in. A 4xx is a fault of the server, except that 432 asks for a new password.
    code(&[Auth], &[432], Authentication).account(),
    code(&[Auth], &[525], AccountSuspended).account(),
    class(&[Auth], 5, Authentication).account(),
    code(&[Auth], &[454], Authentication),
    code(TRANSACTION, &[530, 538], Authentication).account(),
    says(&[Mail, Rcpt, Data], NO_AUTH, Authentication).only(5).account(),
    // The relay refuses the connection or the client: no message could change that.
    class(&[FailurePhase::Tls], 5, Tls).account(),
    class(&[FailurePhase::Tls], 4, Tls),
    class(&[Greeting], 5, Policy).account(),
    says(&[Mail, Rcpt], CLIENT_REFUSED, Policy).only(5).account(),
    // Wording that is clear everywhere.
    says(TRANSACTION, GREYLIST, Greylisted),
    says(&[Rcpt], TOO_MANY_RECIPIENTS, TooManyRecipients),
    says(&[Mail, Rcpt], RELAY, RelayDenied),
    says(&[Rcpt, Data, Dot], MAILBOX_FULL, MailboxFull).transient(),
    says(TRANSACTION, TOO_LARGE, MessageTooLarge),
    says(&[Mail, Data, Dot], SENDER, SenderRejected),
    says(&[Rcpt], SENDER_AT_RCPT, SenderRejected),
    says(&[Rcpt], UNKNOWN_DOMAIN, UnknownDomain),
    says(&[Rcpt], UNKNOWN_USER, UnknownRecipient),
    says(TRANSACTION, SPAM, Spam),
    says(&[Data, Dot], VIRUS, ContentRejected),
    // Enhanced codes (RFC 3463 and its registry), addressing first.
    enhanced(&[Rcpt], &[(2, Some(0))], Greylisted).only(4),
    code(&[Rcpt], &[556], UnknownDomain),
    enhanced(&[], &[(6, Some(7))], Smtputf8Unsupported),
    enhanced(&[], &[(1, Some(7)), (1, Some(8))], SenderRejected),
    enhanced(&[Mail], &[(1, None)], SenderRejected),
    enhanced(&[], &[(1, Some(2)), (4, Some(4))], UnknownDomain),
    enhanced(&[], &[(1, None)], UnknownRecipient),
    enhanced(&[Rcpt], &[(4, Some(1))], UnknownRecipient).only(5),
    enhanced(&[], &[(2, Some(2))], MailboxFull).transient(),
    enhanced(&[], &[(2, Some(3)), (3, Some(4))], MessageTooLarge),
    enhanced(&[], &[(2, None)], MailboxUnavailable),
    enhanced(&[], &[(3, None)], ServerBusy),
    enhanced(&[], &[(4, Some(2)), (4, Some(3))], ServerBusy).only(4),
    enhanced(&[], &[(4, None)], Routing),
    enhanced(&[Rcpt], &[(5, Some(3))], TooManyRecipients),
    enhanced(&[], &[(5, None)], Protocol),
    enhanced(&[], &[(6, None)], ContentRejected),
    enhanced(&[Mail], &[(7, Some(60))], SenderRejected),
    enhanced(&[], &[(7, Some(28))], RateLimited).only(4),
    // 421 closes the channel whatever the policy behind it.
    code(&[], &[421], ServerBusy),
    enhanced(&[], &[(7, None)], Policy),
    // Bare reply codes, read as RFC 5321 gives them for each command.
    code(&[Rcpt], &[422], MailboxFull),
    code(&[Rcpt, Dot], &[450], MailboxUnavailable),
    code(&[], &[432, 450, 451, 452, 454, 458], ServerBusy),
    code(&[], &[500, 501, 502, 503, 504, 555], Protocol),
    code(&[], &[521], UnknownDomain),
    code(&[], &[541], Spam),
    code(&[Rcpt], &[552], MailboxFull).transient(),
    code(&[], &[523, 552], MessageTooLarge),
    code(&[Mail], &[550, 551, 553], SenderRejected),
    code(&[Rcpt], &[550], MailboxUnavailable),
    code(&[Rcpt], &[551, 553], UnknownRecipient),
    code(&[Dot], &[550, 551, 553, 554], ContentRejected),
    code(&[], &[550, 551, 553, 554], Policy),
];

impl ReplyRule {
    const fn account(mut self) -> Self {
        self.severity = Some(FailureSeverity::Account);
        self
    }

    const fn transient(mut self) -> Self {
        self.severity = Some(FailureSeverity::Transient);
        self
    }

    /// Only for 4xx or only for 5xx.
    const fn only(mut self, class: u16) -> Self {
        self.codes = ReplyCodes::Class(class);
        self
    }

    fn matches(&self, phase: FailurePhase, code: u16, enhanced: Option<EnhancedCode>, lower: &str) -> bool {
        let code_matches = match self.codes {
            ReplyCodes::Any => true,
            ReplyCodes::Class(class) => code / 100 == class,
            ReplyCodes::One(codes) => codes.contains(&code),
        };
        let status_matches = self.enhanced.is_empty()
            || enhanced.is_some_and(|EnhancedCode(_, subject, detail)| {
                self.enhanced.iter().any(|&(s, d)| s == subject && d.is_none_or(|d| d == detail))
            });
        code_matches
            && (self.phases.is_empty() || self.phases.contains(&phase))
            && status_matches
            && (self.says.is_empty() || self.says.iter().any(|phrase| lower.contains(phrase)))
    }
}

/// The category and severity of a reply that is not a success. A 2xx or 3xx here is a protocol error.
pub(super) fn classify(
    phase: FailurePhase,
    code: u16,
    enhanced: Option<EnhancedCode>,
    text: &str,
) -> (FailureCategory, FailureSeverity) {
    let by_reply = match code {
        400..=499 => FailureSeverity::Transient,
        500..=599 => FailureSeverity::Permanent,
        _ => return (Protocol, FailureSeverity::Transient),
    };
    let lower = text.to_ascii_lowercase();
    RULES
        .iter()
        .find(|rule| rule.matches(phase, code, enhanced, &lower))
        .map_or((Unknown, by_reply), |rule| (rule.category, rule.severity.unwrap_or(by_reply)))
}

/// True for a reply to RCPT that means "enough for this transaction" and not "never this recipient": the
/// others can go in the next transaction. RFC 5321 4.5.3.1.10 asks for 452, and has clients read an old 552
/// in the same way.
pub fn is_too_many_recipients(code: u16, enhanced: Option<EnhancedCode>, text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let says_so = TOO_MANY_RECIPIENTS.iter().any(|phrase| lower.contains(phrase));
    match enhanced {
        Some(EnhancedCode(_, 5, 3)) => (400..600).contains(&code),
        _ => matches!(code, 452 | 552) && says_so,
    }
}

/// qmail writes its enhanced code at the end, as `(#5.1.1)`.
pub(super) fn enhanced_in_text(text: &str) -> Option<EnhancedCode> {
    let (_, rest) = text.rsplit_once("(#")?;
    rest.split_once(')')?.0.parse().ok()
}

#[cfg(test)]
mod tests;
