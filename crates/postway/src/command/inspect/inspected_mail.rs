//! The JSON that `postway inspect` prints for one mail.

use postway_domain::{MessageUid, Time};
use postway_mime::{
    pec::{
        self, CertifiedReceipt, DaticertState, DelayNotice, PecEvent, ReceiptContradiction, ReceiptForm,
        SignatureCheck, TrustStore,
    },
    received::{
        self, BounceType, ReceivedReport, ReportFinding, ReportReason, ReportedAction, ReportedClass,
    },
};
use serde::Serialize;
use serde_json::Value;

/// The JSON line of one mail. Fields that the mail does not state are null.
#[derive(Debug, Serialize)]
pub(super) struct InspectedMail<'a> {
    file: &'a str,
    kind: &'static str,
    recipients: Vec<InspectedRecipient>,
    original: InspectedOriginal,
    feedback_type: Option<String>,
    pec: Option<InspectedReceipt>,
    /// The features behind the classification, if `--why` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Value>,
}

#[derive(Debug, Serialize)]
struct InspectedRecipient {
    address: String,
    action: Option<&'static str>,
    status: Option<String>,
    smtp_code: Option<u16>,
    class: Option<&'static str>,
    #[serde(rename = "type")]
    kind: Option<&'static str>,
    reason: &'static str,
    diagnostic: Option<String>,
}

#[derive(Debug, Serialize)]
struct InspectedOriginal {
    message_id: Option<String>,
    postway_id: Option<String>,
}

/// A receipt of certified mail (PEC), in the terms of its technical rules.
#[derive(Debug, Serialize)]
struct InspectedReceipt {
    kind: String,
    event: &'static str,
    form: Option<String>,
    reference: Option<String>,
    message_id: Option<String>,
    identifier: Option<String>,
    provider: Option<String>,
    at: Option<Time>,
    sender: Option<String>,
    recipients: Vec<InspectedReceiptRecipient>,
    delivered_to: Option<String>,
    subject: Option<String>,
    error: Option<String>,
    error_text: Option<String>,
    notice: Option<&'static str>,
    security_check: Option<String>,
    daticert: &'static str,
    contradictions: Vec<&'static str>,
    signature: &'static str,
    signer: Option<String>,
    signature_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct InspectedReceiptRecipient {
    address: String,
    kind: Option<String>,
}

impl<'a> InspectedMail<'a> {
    /// Classifies a mail as of `now`.
    pub(super) fn new(file: &'a str, mail: &[u8], trust: &TrustStore, now: Time) -> Self {
        match pec::read(mail) {
            Some(receipt) => Self::receipt(file, receipt, pec::verify(mail, trust, now)),
            None => Self::report(file, received::inspect(mail)),
        }
    }

    /// Classifies a mail and explains the result. Receipts of certified mail follow their own rules and have
    /// no weights.
    pub(super) fn with_reasons(file: &'a str, mail: &[u8], trust: &TrustStore, now: Time) -> Self {
        if pec::read(mail).is_some() {
            return Self::new(file, mail, trust, now);
        }
        let run_heavy = received::inspect_weighed(mail);
        let why = Some(run_heavy.why());
        Self { why, ..Self::report(file, run_heavy.report) }
    }

    fn report(file: &'a str, report: ReceivedReport) -> Self {
        Self {
            file,
            kind: report.kind.as_str(),
            recipients: report.recipients.into_iter().map(InspectedRecipient::from).collect(),
            original: InspectedOriginal {
                message_id: report.original.message_id,
                postway_id: report.original.postway_id,
            },
            feedback_type: report.feedback_type,
            pec: None,
            why: None,
        }
    }

    fn receipt(file: &'a str, receipt: CertifiedReceipt, signature: SignatureCheck) -> Self {
        Self {
            file,
            kind: "pec",
            recipients: receipt
                .concerned()
                .into_iter()
                .map(|to| InspectedRecipient::of_receipt(&receipt, to))
                .collect(),
            original: InspectedOriginal {
                message_id: receipt.reference.clone(),
                postway_id: receipt.postway_uid.as_ref().map(MessageUid::to_string),
            },
            feedback_type: None,
            pec: Some(InspectedReceipt::new(receipt, signature)),
            why: None,
        }
    }
}

impl From<ReportFinding> for InspectedRecipient {
    fn from(finding: ReportFinding) -> Self {
        Self {
            address: finding.address,
            action: finding.action.map(ReportedAction::as_str),
            status: finding.status,
            smtp_code: finding.smtp_code,
            class: finding.class.map(ReportedClass::as_str),
            kind: finding.kind.map(BounceType::as_str),
            reason: finding.reason.as_str(),
            diagnostic: finding.diagnostic,
        }
    }
}

impl InspectedRecipient {
    /// A recipient of a receipt. Certified mail has its own terms for failures; some providers put a status
    /// code before the explanation.
    fn of_receipt(receipt: &CertifiedReceipt, address: &str) -> Self {
        let (action, class) = match receipt.event() {
            PecEvent::Delivered => (Some(ReportedAction::Delivered), None),
            PecEvent::Failed => (Some(ReportedAction::Failed), Some(ReportedClass::Permanent)),
            PecEvent::Warning => (Some(ReportedAction::Delayed), Some(ReportedClass::Transient)),
            PecEvent::Accepted | PecEvent::TakenOver | PecEvent::Unknown => (None, None),
        };
        let reason = match receipt.error.as_deref() {
            Some("no-dest") => ReportReason::UserUnknown,
            Some("no-dominio") => ReportReason::HostUnknown,
            Some("virus") => ReportReason::Virus,
            _ => ReportReason::Undefined,
        };
        let is_address_bad = matches!(reason, ReportReason::UserUnknown | ReportReason::HostUnknown);
        let kind = match action {
            Some(ReportedAction::Failed) if is_address_bad => Some(BounceType::Hard),
            Some(ReportedAction::Failed | ReportedAction::Delayed) => Some(BounceType::Soft),
            _ => None,
        };
        Self {
            address: address.to_owned(),
            action: action.map(ReportedAction::as_str),
            status: receipt.error_text.as_deref().and_then(leading_status),
            smtp_code: None,
            class: class.map(ReportedClass::as_str),
            kind: kind.map(BounceType::as_str),
            reason: reason.as_str(),
            diagnostic: receipt.error_text.clone(),
        }
    }
}

impl InspectedReceipt {
    fn new(receipt: CertifiedReceipt, signature: SignatureCheck) -> Self {
        let event = event(receipt.event());
        let (signature, signer, signature_error) = match signature {
            SignatureCheck::Verified { signer } => match receipt.unconfirmed() {
                Some(why) => ("unverified", Some(signer), Some(why.to_owned())),
                None => ("verified", Some(signer), None),
            },
            SignatureCheck::Unverified { why } => ("unverified", None, Some(why)),
            SignatureCheck::Absent => ("absent", None, None),
        };
        let recipients = receipt.recipients.into_iter();
        Self {
            event,
            kind: receipt.kind_text,
            form: receipt.form.map(form),
            reference: receipt.reference,
            message_id: receipt.message_id,
            identifier: receipt.identifier,
            provider: receipt.provider,
            at: receipt.at,
            sender: receipt.sender,
            recipients: recipients
                .map(|to| InspectedReceiptRecipient { address: to.address, kind: to.kind })
                .collect(),
            delivered_to: receipt.delivered_to,
            subject: receipt.subject,
            error: receipt.error,
            error_text: receipt.error_text,
            notice: receipt.notice.map(|notice| match notice {
                DelayNotice::First => "first",
                DelayNotice::Final => "final",
                DelayNotice::Undecided => "undecided",
            }),
            security_check: receipt.security_check,
            daticert: match receipt.daticert {
                DaticertState::Absent => "absent",
                DaticertState::Refused(_) => "refused",
                DaticertState::Read => "read",
            },
            contradictions: receipt.contradictions.into_iter().map(contradiction).collect(),
            signature,
            signer,
            signature_error,
        }
    }
}

/// The enhanced status (RFC 3463) that a text begins with.
fn leading_status(text: &str) -> Option<String> {
    let word = text.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = word.split('.');
    let is_class = parts.next().is_some_and(|class| matches!(class, "2" | "4" | "5"));
    let is_number = |part: &str| (1..=3).contains(&part.len());
    let is_status = is_class && parts.clone().count() == 2 && parts.all(is_number);
    is_status.then(|| word.to_owned())
}

fn event(event: PecEvent) -> &'static str {
    match event {
        PecEvent::Accepted => "accepted",
        PecEvent::TakenOver => "taken_over",
        PecEvent::Delivered => "delivered",
        PecEvent::Failed => "failed",
        PecEvent::Warning => "warning",
        PecEvent::Unknown => "unknown",
    }
}

fn form(form: ReceiptForm) -> String {
    match form {
        ReceiptForm::Complete => "completa".to_owned(),
        ReceiptForm::Short => "breve".to_owned(),
        ReceiptForm::Synthetic => "sintetica".to_owned(),
        ReceiptForm::Unknown(given) => given,
    }
}

fn contradiction(contradiction: ReceiptContradiction) -> &'static str {
    match contradiction {
        ReceiptContradiction::Kind => "kind",
        ReceiptContradiction::Reference => "reference",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_enhanced_status_at_the_beginning_is_one() {
        assert_eq!(leading_status("5.1.1 - Example PEC - no such mailbox"), Some("5.1.1".to_owned()));
        for text in ["", "no 5.1.1", "5.1", "3.1.1 x", "5.1.1.1", "5..1", "5.1111.1"] {
            assert_eq!(leading_status(text), None, "{text}");
        }
    }
}
