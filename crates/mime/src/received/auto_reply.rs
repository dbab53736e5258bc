//! Recognises automatic answers (RFC 3834): vacation notices, "we have received your mail", and the like.
//!
//! A mail is an automatic answer if its header says so: `Auto-Submitted: auto-replied`, or one of the fields
//! and values that programs used before the standard. The subject alone counts only if it begins with the
//! words that widely used programs put before the original subject.

use super::address;
use super::bytes::{contains, starts_with};
use super::header_field::{decoded_lowercase, field_contains};
use super::mail::ReportMail;
use super::original_message;
use super::reason::ReportReason;
use super::report::{OriginalMessage, ReceivedReport, ReportFinding, ReportKind};
use crate::reader::unfold;

/// How widely used programs begin the subject of an automatic answer, in lower case.
const SUBJECTS: &[&str] = &[
    "automatic reply:",
    "automatic reply from ",
    "auto reply:",
    "auto-reply:",
    "autoreply:",
    "auto response:",
    "auto-response:",
    "autoresponse:",
    "[auto-reply]",
    "[auto reply]",
    "[autoreply]",
    "out of office:",
    "out of office autoreply:",
    "out of the office:",
    "out of office auto-reply",
    "out of office reply",
    "away from my mail",
    "vacation reply",
    "risposta automatica:",
    "fuori sede:",
    "fuori ufficio:",
    "automatische antwort:",
    "abwesenheitsnotiz:",
    "abwesenheit:",
    "réponse automatique",
    "reponse automatique",
    "absence du bureau",
    "respuesta automática:",
    "respuesta automatica:",
    "fuera de la oficina:",
    "resposta automática:",
    "automatisch antwoord:",
    "autosvar:",
    "automaattinen vastaus:",
    "automatyczna odpowiedź:",
    "自动回复",
    "自動応答",
    "自動返信",
];

/// Reads an automatic answer; `None` if the mail is not one.
pub(super) fn recognise(mail: &ReportMail<'_>) -> Option<ReceivedReport> {
    if !is_auto_reply(mail) {
        return None;
    }
    let from = mail.header().get(b"from").or_else(|| mail.header().get(b"reply-to"));
    let recipients = from.and_then(|from| address::first(&unfold(from)));
    let id =
        |name: &[u8]| mail.header().get(name).and_then(|value| original_message::bare_id(&unfold(value)));
    let original = OriginalMessage {
        message_id: id(b"in-reply-to").or_else(|| id(b"references")),
        ..OriginalMessage::default()
    };
    Some(ReceivedReport {
        kind: ReportKind::AutoReply,
        recipients: recipients
            .into_iter()
            .map(|address| ReportFinding::with_reason(address, ReportReason::Vacation))
            .collect(),
        original,
        feedback_type: None,
        reporter: None,
    })
}

/// Whether the header says that a program answered.
pub(super) fn is_auto_reply(mail: &ReportMail<'_>) -> bool {
    let head = mail.header();
    if let Some(value) = head.get(b"auto-submitted")
        && (starts_with(value, b"auto-replied") || contains(value, b"vacation"))
    {
        return true;
    }
    let present: [&[u8]; 7] = [
        b"x-autoreply",
        b"x-autorespond",
        b"x-autoresponder",
        b"x-auto-reply",
        b"x-mail-autoreply",
        b"x-vacation",
        b"x-autoreply-from",
    ];
    if present.iter().any(|name| head.get(name).is_some_and(|value| !starts_with(value, b"no"))) {
        return true;
    }
    let said: [(&[u8], &[u8]); 8] = [
        (b"x-apple-action", b"vacation"),
        (b"precedence", b"auto_reply"),
        (b"precedence", b"auto-reply"),
        (b"x-precedence", b"auto_reply"),
        (b"delivered-to", b"autoresponder"),
        (b"preference", b"auto_reply"),
        (b"x-mailer", b"vacation"),
        (b"x-post-messageclass", b"autoresponder"),
    ];
    if said.iter().any(|(name, word)| field_contains(head, name, word)) {
        return true;
    }
    let Some(subject) = head.get(b"subject") else { return false };
    is_subject_of_answer(&decoded_lowercase(subject))
}

/// Whether a subject, in lower case, begins like that of an automatic answer.
pub(super) fn is_subject_of_answer(subject: &str) -> bool {
    SUBJECTS.iter().any(|beginning| subject.starts_with(beginning))
}
