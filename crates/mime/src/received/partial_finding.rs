//! What a recogniser found about one recipient, before codes and reason are derived from it.

use super::bytes::{contains, squeeze};
use super::diagnosis::{self, DiagnosticCodes, EnhancedStatus, SmtpPhase};
use super::reason::{self, FailureEvidence, ReportReason};
use super::report::{BounceType, ReportFinding, ReportedAction, ReportedClass};

/// The longest diagnostic that is kept.
pub(super) const DIAGNOSTIC_OCTETS_MAX: usize = 2_000;

/// A finding about one recipient, before it is completed.
#[derive(Debug, Clone, Default)]
pub(super) struct PartialFinding {
    pub(super) address: String,
    pub(super) original_address: Option<String>,
    pub(super) action: Option<ReportedAction>,
    /// The status that a field states.
    pub(super) status: Option<EnhancedStatus>,
    /// The server's text, as it is in the mail.
    pub(super) words: Vec<u8>,
    /// Whether the text is from a local program, not from an SMTP server.
    pub(super) program: bool,
    pub(super) remote_mta: Option<String>,
    pub(super) phase: Option<SmtpPhase>,
    /// The reason, if the recogniser knows it.
    pub(super) reason: Option<ReportReason>,
}

impl PartialFinding {
    /// A finding about an address, with the text about it.
    pub(super) fn new(address: String, words: &[u8]) -> Self {
        Self { address, words: words.to_vec(), ..Self::default() }
    }

    /// Adds a line of text.
    pub(super) fn add(&mut self, line: &[u8]) {
        if self.words.len() < 4 * DIAGNOSTIC_OCTETS_MAX {
            if !self.words.is_empty() {
                self.words.push(b' ');
            }
            self.words.extend_from_slice(line);
        }
    }

    /// Derives codes and reason from the text. `context` is the text of the whole report that concerns the
    /// recipient.
    pub(super) fn finish(self, context: &[u8]) -> ReportFinding {
        let diagnostic = squeeze(&self.words, DIAGNOSTIC_OCTETS_MAX);
        let (status, smtp_code) = self.codes(diagnostic.as_bytes(), context);
        let delivered = matches!(
            self.action,
            Some(ReportedAction::Delivered | ReportedAction::Relayed | ReportedAction::Expanded)
        ) || status.is_some_and(|status| status.class == 2);
        let class = match status.map(|status| u16::from(status.class)).or(smtp_code.map(|code| code / 100)) {
            _ if delivered => None,
            Some(5) => Some(ReportedClass::Permanent),
            Some(4) => Some(ReportedClass::Transient),
            Some(_) => None,
            None => Some(self.class_by_words(diagnostic.as_bytes(), context)),
        };
        let status = status.map(|status| status.to_string());
        let reason = match self.reason {
            Some(reason) => reason,
            None if delivered => ReportReason::Delivered,
            None => self.reason_by_words(&diagnostic, status.as_deref(), smtp_code, context),
        };
        // While the server still retries, the failure is not certain.
        let is_hard = reason.is_hard(class == Some(ReportedClass::Transient))
            && self.action != Some(ReportedAction::Delayed);
        let kind = (!delivered).then_some(if is_hard { BounceType::Hard } else { BounceType::Soft });
        ReportFinding {
            address: self.address,
            original_address: self.original_address,
            action: self.action,
            status,
            smtp_code,
            class,
            kind,
            reason,
            diagnostic: Some(diagnostic).filter(|text| !text.is_empty()),
            remote_mta: self.remote_mta,
        }
    }

    /// The status and the reply code of the text, or else of the context. A reply code of another class than
    /// the status is ignored.
    fn codes(&self, diagnostic: &[u8], context: &[u8]) -> (Option<EnhancedStatus>, Option<u16>) {
        let own = diagnosis::codes(diagnostic);
        let around = match own.reply {
            Some(_) => DiagnosticCodes::default(),
            None => diagnosis::codes(context),
        };
        let mut status = choose(self.status, own.status);
        if status.is_none_or(EnhancedStatus::is_general)
            && let Some(found) = around.status
            && !found.is_general()
            && status.is_none_or(|status| status.class == found.class)
        {
            status = Some(found);
        }
        let agrees = |code: &u16| status.is_none_or(|status| u16::from(status.class) == code / 100);
        (status, own.reply.or(around.reply).filter(agrees))
    }

    /// The class of a failure without a code: permanent, unless the text says otherwise.
    fn class_by_words(&self, diagnostic: &[u8], context: &[u8]) -> ReportedClass {
        let passing: [&[u8]; 5] = [
            b"temporar",
            b"persistent transient",
            b"retry timeout exceeded",
            b"for a long time",
            b"will be retried",
        ];
        let words = if diagnostic.is_empty() { context } else { diagnostic };
        let is_passing =
            self.action == Some(ReportedAction::Delayed) || passing.iter().any(|word| contains(words, word));
        if is_passing { ReportedClass::Transient } else { ReportedClass::Permanent }
    }

    /// The reason by the text, or by the context if the text says little.
    fn reason_by_words(
        &self,
        diagnostic: &str,
        status: Option<&str>,
        code: Option<u16>,
        context: &[u8],
    ) -> ReportReason {
        let text = diagnostic.as_bytes();
        let phase = self.phase.or_else(|| diagnosis::phase(text)).or_else(|| diagnosis::phase(context));
        let delayed = self.action == Some(ReportedAction::Delayed);
        let evidence = FailureEvidence { text, status, code, phase, program: self.program, delayed };
        let reason = reason::decide(evidence);
        let says_little = match reason {
            ReportReason::Undefined => true,
            ReportReason::SystemError | ReportReason::Expired => text.is_empty(),
            _ => false,
        };
        if !says_little {
            return reason;
        }
        let context = squeeze(context, 2 * DIAGNOSTIC_OCTETS_MAX);
        reason::decide(FailureEvidence { text: context.as_bytes(), ..evidence })
    }
}

/// The more specific status: that of the text, unless it contains only its class, only its subject, or an
/// expiry.
fn choose(stated: Option<EnhancedStatus>, found: Option<EnhancedStatus>) -> Option<EnhancedStatus> {
    match (stated, found) {
        (Some(stated), Some(found))
            if found.is_general()
                || (found.is_expiry() && !stated.is_general())
                || found.is_outline_of(stated) =>
        {
            Some(stated)
        }
        (stated, found) => found.or(stated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Option<EnhancedStatus> {
        EnhancedStatus::leading(text.as_bytes())
    }

    #[test]
    fn the_status_that_says_more_is_chosen() {
        assert_eq!(choose(status("5.0.0"), status("5.7.1")), status("5.7.1"));
        assert_eq!(choose(status("5.1.1"), status("5.1.0")), status("5.1.1"));
        assert_eq!(choose(status("5.1.1"), status("5.7.0")), status("5.7.0"));
        assert_eq!(choose(status("4.4.1"), status("4.4.7")), status("4.4.1"));
        assert_eq!(choose(status("5.9.8"), None).unwrap().to_string(), "5.9.8");
    }
}
