//! Amazon SES over SNS by mail: the notification is JSON, alone or as a string inside the JSON of SNS.

use serde_json::Value;

use super::super::bytes::find;
use super::super::diagnosis::EnhancedStatus;
use super::super::dsn::RECIPIENTS_MAX;
use super::super::partial_finding::PartialFinding;
use super::super::reason::ReportReason;
use super::super::report::{ReportKind, ReportedAction};
use super::{RecognisedReport, ReportText};

/// Reads a notification; `None` if the mail is not one.
pub(super) fn recognise(text: &ReportText<'_>) -> Option<RecognisedReport> {
    if !text.mail.header().has(b"x-amz-sns-message-id") {
        return None;
    }
    let value = read(text.report)?;
    let event = value.get("notificationType").or_else(|| value.get("eventType"))?.as_str()?;
    let (kind, list) = match event {
        "Bounce" => (ReportKind::Bounce, "/bounce/bouncedRecipients"),
        "Complaint" => (ReportKind::Complaint, "/complaint/complainedRecipients"),
        "Delivery" => (ReportKind::Success, "/delivery/recipients"),
        "DeliveryDelay" => (ReportKind::Delay, "/deliveryDelay/delayedRecipients"),
        _ => return None,
    };
    let string = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let id = string("/mail/commonHeaders/messageId");
    let complaint = string("/complaint/complaintFeedbackType");
    Some(RecognisedReport {
        name: "notification_service",
        findings: recipients(value.pointer(list)?, &value),
        kind: Some(kind),
        feedback_type: complaint.map(str::to_owned),
        message_id: id.map(|id| id.trim_matches(['<', '>']).to_owned()),
    })
}

/// The JSON of the notification. Lines that were folded in transit are joined first.
fn read(report: &[u8]) -> Option<Value> {
    let begin = memchr::memchr(b'{', report)?;
    // A mail from SNS ends with a signature line and a text about unsubscribing.
    let end = find(&report[begin..], b"\n--\n").map_or(report.len(), |at| begin + at);
    let joined =
        report[begin..end].split(|&b| b == b'\n').map(|line| line.strip_prefix(b" ").unwrap_or(line));
    let joined: Vec<u8> = joined.flatten().copied().collect();
    let value: Value = serde_json::Deserializer::from_slice(&joined).into_iter().next()?.ok()?;
    match value.get("Message").and_then(Value::as_str) {
        Some(inner) => serde_json::from_str(inner).ok(),
        None => Some(value),
    }
}

fn recipients(list: &Value, whole: &Value) -> Vec<PartialFinding> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().take(RECIPIENTS_MAX).filter_map(|entry| recipient(entry, whole)).collect()
}

fn recipient(entry: &Value, whole: &Value) -> Option<PartialFinding> {
    let address = entry.as_str().or_else(|| entry.get("emailAddress")?.as_str())?;
    let mut finding = PartialFinding::new(address.to_owned(), b"");
    let words = entry.get("diagnosticCode").or_else(|| whole.pointer("/delivery/smtpResponse"));
    if let Some(words) = words.and_then(Value::as_str) {
        finding.add(words.strip_prefix("smtp; ").unwrap_or(words).as_bytes());
    }
    finding.status = entry
        .get("status")
        .and_then(Value::as_str)
        .and_then(|status| EnhancedStatus::leading(status.as_bytes()));
    finding.action = match entry.get("action").and_then(Value::as_str) {
        Some("delayed") => Some(ReportedAction::Delayed),
        Some(_) => Some(ReportedAction::Failed),
        None if whole.get("delivery").is_some() => Some(ReportedAction::Delivered),
        None if whole.get("deliveryDelay").is_some() => Some(ReportedAction::Delayed),
        None => None,
    };
    let subtype = whole.pointer("/bounce/bounceSubType").and_then(Value::as_str);
    finding.reason = match subtype {
        Some("Suppressed" | "OnAccountSuppressionList") => Some(ReportReason::Suppressed),
        Some("MailboxFull") => Some(ReportReason::MailboxFull),
        Some("MessageTooLarge") => Some(ReportReason::MessageTooBig),
        Some("NoEmail") => Some(ReportReason::UserUnknown),
        _ => None,
    };
    Some(finding)
}
