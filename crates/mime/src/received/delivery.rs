//! Recognises reports about delivery: failures, delays and successes.
//!
//! The machine-readable part is read first, then a report that is wrapped in this one, then fields in the
//! text, and the prose last. Whichever names the recipients, the text adds what the fields leave out: the
//! reply code, the command that was answered, the reason.

use std::collections::HashSet;

use super::bytes::{contains, lines};
use super::dsn::{self, StatusNotification};
use super::mail::{ReportMail, ReportPart, ReportPartKind};
use super::partial_finding::{DIAGNOSTIC_OCTETS_MAX, PartialFinding};
use super::reason::ReportReason;
use super::recogniser::{self, ReportText};
use super::report::{ReceivedReport, ReportFinding, ReportKind, ReportedAction};
use super::sender::SenderTraits;
use super::weighing::ReportWeighing;
use super::{address, original_message};
use crate::reader::unfold;

/// The maximum depth of reports inside reports.
const WRAPPED_MAX: usize = 2;

/// The maximum number of recipients for which the text is searched individually.
const CONTEXT_RECIPIENTS_MAX: usize = 32;

/// Reads a report about delivery; `None` if the mail is not one.
pub(super) fn recognise(mail: &ReportMail<'_>, weighing: &mut ReportWeighing) -> Option<ReceivedReport> {
    read(mail, WRAPPED_MAX, weighing)
}

fn read(mail: &ReportMail<'_>, wrapped_max: usize, weighing: &mut ReportWeighing) -> Option<ReceivedReport> {
    let sender = SenderTraits::read(mail.header());
    weighing.begin(sender);
    let status = mail.part(ReportPartKind::DeliveryStatus).or_else(|| rejection(mail));
    let may_report = weighing.judgement.may_be_from_machine() || sender.may_return();
    if status.is_none() && !mail.is_report && !may_report {
        return None;
    }
    let whole = mail.report_text();
    let (words, below) = original_message::split_text(&whole);
    let mut fields = status.map(|part| dsn::parse(&part.content())).unwrap_or_default();
    let is_machine = sender.is_machine();
    if fields.findings.is_empty() && is_machine && wrapped_max > 0 {
        let wrapped = wrapped_report(mail, below, wrapped_max - 1, weighing);
        if wrapped.is_some() {
            return wrapped;
        }
        weighing.begin(sender);
    }
    if fields.findings.is_empty() && (mail.is_report || is_machine) && dsn::looks_like(&whole) {
        fields = dsn::parse(&whole);
    }
    let mut original = original_message::read_original(mail, words, below);
    original.message_id = original.message_id.or(fields.message_id.take());
    original.envelope_id = fields.envelope_id.take();
    let text = ReportText::new(mail, sender, (words, below), &original);
    name_unnamed(&mut fields, mail, words);
    if !fields.findings.is_empty() {
        add_words(&mut fields.findings, &text);
        let recipients = finish(fields.findings, words);
        let kind = kind_of(&recipients);
        weighing.read_by = Some("fields");
        return Some(ReceivedReport {
            kind,
            recipients,
            original,
            feedback_type: None,
            reporter: fields.reporter,
        });
    }
    weighing.weigh(mail, &text);
    let mut recognised = recogniser::recognise(&text, &mut weighing.judgement, &mut weighing.candidates)?;
    if !weighing.judgement.is_report() {
        return None;
    }
    weighing.read_by = Some(recognised.name);
    let delayed = is_delay(mail, &text);
    for finding in recognised.findings.iter_mut().filter(|finding| finding.action.is_none()) {
        finding.action = Some(if delayed { ReportedAction::Delayed } else { ReportedAction::Failed });
    }
    let recipients = match recognised.kind {
        Some(ReportKind::Complaint) => recognised
            .findings
            .into_iter()
            .map(|finding| ReportFinding::with_reason(finding.address, ReportReason::Feedback))
            .collect(),
        _ => finish(recognised.findings, words),
    };
    original.message_id = original.message_id.or(recognised.message_id);
    Some(ReceivedReport {
        kind: recognised.kind.unwrap_or_else(|| kind_of(&recipients)),
        recipients,
        original,
        feedback_type: recognised.feedback_type,
        reporter: fields.reporter.or_else(|| Some(recognised.name.to_owned())),
    })
}

/// Completes the findings, each address once.
fn finish(findings: Vec<PartialFinding>, words: &[u8]) -> Vec<ReportFinding> {
    let count = findings.len();
    let finish = |finding: PartialFinding| match count {
        1 => finding.finish(words),
        2..=CONTEXT_RECIPIENTS_MAX => {
            let about = about(words, &finding.address);
            finding.finish(&about)
        }
        _ => finding.finish(b""),
    };
    unique(findings).into_iter().map(finish).collect()
}

/// The part of a disposition notification that says that a filter rule of the recipient refused the mail (RFC
/// 5429, 2.1.3).
pub(super) fn rejection<'m, 'a>(mail: &'m ReportMail<'a>) -> Option<&'m ReportPart<'a>> {
    let part = mail.part(ReportPartKind::Disposition)?;
    let content = part.content();
    let refused = contains(&content, b"automatic-action") && contains(&content, b"; deleted");
    (refused && contains(&mail.report_text(), b"reject")).then_some(part)
}

/// Reads a report that a mail system forwards inside its own mail.
fn wrapped_report(
    mail: &ReportMail<'_>,
    below: Option<&[u8]>,
    wrapped_max: usize,
    weighing: &mut ReportWeighing,
) -> Option<ReceivedReport> {
    let part = mail.part(ReportPartKind::Returned).map(ReportPart::content);
    let inner = part.as_deref().or(below)?;
    let inner = ReportMail::parse(inner);
    let is_report = inner.is_report && inner.part(ReportPartKind::DeliveryStatus).is_some();
    if is_report { read(&inner, wrapped_max, weighing) } else { None }
}

/// Adds the text to recipients whose fields contain none.
fn add_words(findings: &mut [PartialFinding], text: &ReportText<'_>) {
    if findings.iter().all(|finding| !finding.words.is_empty()) {
        return;
    }
    let Some(recognised) = recogniser::recognise_form(text) else { return };
    for finding in findings.iter_mut().filter(|finding| finding.words.is_empty()) {
        let same =
            recognised.findings.iter().find(|other| other.address.eq_ignore_ascii_case(&finding.address));
        if let Some(same) = same {
            finding.words.clone_from(&same.words);
            finding.phase = finding.phase.or(same.phase);
            finding.reason = finding.reason.or(same.reason);
        }
    }
}

/// Finds the address of recipients whose field contains a path or a program: the header or the text may name
/// it.
fn name_unnamed(fields: &mut StatusNotification, mail: &ReportMail<'_>, words: &[u8]) {
    fields.findings.retain_mut(|finding| {
        if finding.address.is_empty() {
            let failed =
                mail.header().get(b"x-failed-recipients").and_then(|value| address::first(&unfold(value)));
            finding.address = failed.or_else(|| address::first(words)).unwrap_or_default();
        }
        !finding.address.is_empty()
    });
}

/// Keeps the first finding of each address.
fn unique(findings: Vec<PartialFinding>) -> Vec<PartialFinding> {
    if findings.len() < 2 {
        return findings;
    }
    let mut seen = HashSet::with_capacity(findings.len());
    findings.into_iter().filter(|finding| seen.insert(finding.address.to_ascii_lowercase())).collect()
}

/// The lines of a report about one of several recipients: from each line that names it to the next blank
/// line.
fn about(words: &[u8], address: &str) -> Vec<u8> {
    let mut about = Vec::new();
    let mut open = false;
    for line in lines(words) {
        if line.is_empty() {
            open = false;
        } else if contains(line, address.as_bytes()) {
            open = true;
        } else if line.contains(&b'@') && line[0] != b' ' {
            open = false;
        }
        if open && about.len() < 2 * DIAGNOSTIC_OCTETS_MAX {
            about.extend_from_slice(line);
            about.push(b'\n');
        }
    }
    about
}

/// The kind of a report, by the actions for its recipients: one failure makes it a bounce.
fn kind_of(recipients: &[ReportFinding]) -> ReportKind {
    let has = |wanted: Option<ReportedAction>| recipients.iter().any(|finding| finding.action == wanted);
    let lacks_action = recipients
        .iter()
        .any(|finding| finding.action.is_none() && finding.reason != ReportReason::Delivered);
    if lacks_action || has(Some(ReportedAction::Failed)) {
        ReportKind::Bounce
    } else if has(Some(ReportedAction::Delayed)) {
        ReportKind::Delay
    } else {
        ReportKind::Success
    }
}

/// Whether a report in prose is about a delay.
fn is_delay(mail: &ReportMail<'_>, text: &ReportText<'_>) -> bool {
    let subject = mail.header().get(b"subject").unwrap_or_default();
    let titled: [&[u8]; 4] = [b"(delay)", b"delayed mail", b"delivery delayed", b"message delayed"];
    titled.iter().any(|title| contains(subject, title)) || text.notice().delay.is_some()
}
