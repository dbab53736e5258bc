//! Recognises complaints: abuse reports (RFC 5965, RFC 6591), and the formats of providers that do not use
//! them.
//!
//! The recipient is the person who complained: `Original-Rcpt-To`, `Removal-Recipient`, or, if the
//! provider hides it, the `To` of the reported mail. An opt-out that a mail program sends automatically
//! counts as a complaint of type `opt-out`.

use super::address;
use super::bytes::{lines, squeeze, starts_with, trim};
use super::header_field::field_contains;
use super::mail::{ReportMail, ReportPartKind};
use super::original_message;
use super::reason::ReportReason;
use super::report::{OriginalMessage, ReceivedReport, ReportFinding, ReportKind};
use crate::reader::{ContentLabel, HeaderBlock, HeaderField, unfold};

/// Reads a complaint; `None` if the mail is not one.
pub(super) fn recognise(mail: &ReportMail<'_>) -> Option<ReceivedReport> {
    if let Some(part) = mail.part(ReportPartKind::FeedbackReport) {
        let content = part.content();
        return Some(report(mail, FeedbackFields::read(&content)));
    }
    let label = mail.header().get(b"content-type").and_then(ContentLabel::new);
    let report_type = label.and_then(|label| label.parameter("report-type"));
    if mail.is_report && report_type.is_some_and(|kind| starts_with(&kind, b"feedback-report")) {
        let text = mail.report_text();
        return Some(report(mail, FeedbackFields::read(&text)));
    }
    if field_contains(mail.header(), b"x-apple-unsubscribe", b"true") {
        let fields = FeedbackFields { kind: Some("opt-out".to_owned()), ..FeedbackFields::default() };
        let mut report = report(mail, fields);
        if let Some(address) = mail.header().get(b"from").and_then(|from| address::first(&unfold(from))) {
            report.recipients = vec![ReportFinding::with_reason(address, ReportReason::Feedback)];
        }
        return Some(report);
    }
    about_message(mail)
}

/// Reads Microsoft's format: the reported mail is a part, and its header names the recipient.
fn about_message(mail: &ReportMail<'_>) -> Option<ReceivedReport> {
    let subject = mail.header().get(b"subject")?;
    let part = mail.part(ReportPartKind::Returned).filter(|_| !mail.is_report)?;
    let content = part.content();
    let block = HeaderBlock::read(&content);
    let hidden =
        block.fields().get(b"x-hmxmroriginalrecipient").and_then(|value| address::first(&unfold(value)));
    if hidden.is_none() && !starts_with(subject, b"complaint about message from") {
        return None;
    }
    let fields = FeedbackFields {
        kind: Some("abuse".to_owned()),
        recipients: hidden.into_iter().collect(),
        ..FeedbackFields::default()
    };
    Some(report(mail, fields))
}

/// The fields of a feedback report that we use.
#[derive(Debug, Default)]
struct FeedbackFields {
    kind: Option<String>,
    recipients: Vec<String>,
    reporter: Option<String>,
    message_id: Option<String>,
    /// The envelope sender of the mail that was complained about.
    mail_from: Option<String>,
}

impl FeedbackFields {
    fn read(content: &[u8]) -> Self {
        let mut fields = Self::default();
        for line in lines(content) {
            let Some(field) = HeaderField::from_line(line) else { continue };
            let value = trim(field.value);
            if field.name.eq_ignore_ascii_case(b"feedback-type") {
                fields.kind = Some(squeeze(value, 64).to_ascii_lowercase()).filter(|kind| !kind.is_empty());
            } else if field.name.eq_ignore_ascii_case(b"user-agent") {
                fields.reporter = Some(squeeze(value, 255)).filter(|name| !name.is_empty());
            } else if field.name.eq_ignore_ascii_case(b"message-id") {
                fields.message_id = original_message::bare_id(value);
            } else if field.name.eq_ignore_ascii_case(b"original-mail-from") {
                fields.mail_from = original_message::bare_id(value);
            } else if (field.name.eq_ignore_ascii_case(b"original-rcpt-to")
                || field.name.eq_ignore_ascii_case(b"removal-recipient")
                || field.name.eq_ignore_ascii_case(b"x-original-rcpt-to"))
                && fields.recipients.len() < super::dsn::RECIPIENTS_MAX
            {
                fields
                    .recipients
                    .extend(address::in_field(value).filter(|address| !fields.recipients.contains(address)));
            }
        }
        fields
    }
}

fn report(mail: &ReportMail<'_>, fields: FeedbackFields) -> ReceivedReport {
    let text = mail.report_text();
    let (words, below) = original_message::split_text(&text);
    let mut original: OriginalMessage = original_message::read_original(mail, words, below);
    original.message_id = original.message_id.or(fields.message_id);
    original.return_path = original.return_path.or(fields.mail_from);
    let mut recipients = fields.recipients;
    if recipients.is_empty() {
        recipients.extend(original.to.clone());
    }
    ReceivedReport {
        kind: ReportKind::Complaint,
        recipients: recipients
            .into_iter()
            .map(|address| ReportFinding::with_reason(address, ReportReason::Feedback))
            .collect(),
        original,
        feedback_type: Some(fields.kind.unwrap_or_else(|| "abuse".to_owned())),
        reporter: fields.reporter,
    }
}
