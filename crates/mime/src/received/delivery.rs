//! Reports about delivery: failures, delays and successes.
//!
//! The part for machines is read first, then a report that is wrapped in this one, then fields that stand in
//! the text, and the words last. Whichever names the recipients, the words of the text add what the fields
//! leave out: the reply code, the command that was answered, the reason.

use std::collections::HashSet;

use super::bytes::{contains, lines};
use super::dsn::{self, Notification};
use super::mail::{Mail, Part, PartKind};
use super::partial_finding::{DIAGNOSTIC_OCTETS_MAX, Draft};
use super::reason::Reason;
use super::recogniser::{self, Text};
use super::report::{Action, Finding, Kind, Report};
use super::sender::Sender;
use super::weighing::Weighing;
use super::{address, original_message};
use crate::reader::unfold;

/// How many reports inside reports are opened.
const WRAPPED_MAX: usize = 2;

/// The most recipients for whom the words are searched one by one.
const CONTEXT_RECIPIENTS_MAX: usize = 32;

/// Reads a report about delivery; none if the mail is not one.
pub(super) fn recognise(mail: &Mail<'_>, weighing: &mut Weighing) -> Option<Report> {
    read(mail, WRAPPED_MAX, weighing)
}

fn read(mail: &Mail<'_>, wrapped_max: usize, weighing: &mut Weighing) -> Option<Report> {
    let sender = Sender::read(mail.head());
    weighing.begin(sender);
    let status = mail.part(PartKind::DeliveryStatus).or_else(|| rejection(mail));
    let may_report = weighing.judgement.may_be_from_machine() || sender.may_return();
    if status.is_none() && !mail.is_report && !may_report {
        return None;
    }
    let whole = mail.report_text();
    let (words, below) = original_message::split(&whole);
    let mut fields = status.map(|part| dsn::parse(&part.content())).unwrap_or_default();
    let is_machine = sender.is_machine();
    if fields.drafts.is_empty() && is_machine && wrapped_max > 0 {
        let wrapped = wrapped_report(mail, below, wrapped_max - 1, weighing);
        if wrapped.is_some() {
            return wrapped;
        }
        weighing.begin(sender);
    }
    if fields.drafts.is_empty() && (mail.is_report || is_machine) && dsn::looks_like(&whole) {
        fields = dsn::parse(&whole);
    }
    let mut original = original_message::original(mail, words, below);
    original.message_id = original.message_id.or(fields.message_id.take());
    let text = Text::new(mail, sender, (words, below), &original);
    name_unnamed(&mut fields, mail, words);
    if !fields.drafts.is_empty() {
        add_words(&mut fields.drafts, &text);
        let recipients = finish(fields.drafts, words);
        let kind = kind_of(&recipients);
        weighing.read_by = Some("fields");
        return Some(Report { kind, recipients, original, feedback_type: None, reporter: fields.reporter });
    }
    weighing.weigh(mail, &text);
    let mut recognised = recogniser::recognise(&text, weighing)?;
    if !weighing.judgement.is_report() {
        return None;
    }
    weighing.read_by = Some(recognised.name);
    let delayed = is_delay(mail, &text);
    for draft in recognised.drafts.iter_mut().filter(|draft| draft.action.is_none()) {
        draft.action = Some(if delayed { Action::Delayed } else { Action::Failed });
    }
    let recipients = match recognised.kind {
        Some(Kind::Complaint) => {
            recognised.drafts.into_iter().map(|draft| Finding::of(draft.address, Reason::Feedback)).collect()
        }
        _ => finish(recognised.drafts, words),
    };
    original.message_id = original.message_id.or(recognised.message_id);
    Some(Report {
        kind: recognised.kind.unwrap_or_else(|| kind_of(&recipients)),
        recipients,
        original,
        feedback_type: recognised.feedback_type,
        reporter: fields.reporter.or_else(|| Some(recognised.name.to_owned())),
    })
}

/// The findings of the drafts, each address once.
fn finish(drafts: Vec<Draft>, words: &[u8]) -> Vec<Finding> {
    let count = drafts.len();
    let finish = |draft: Draft| match count {
        1 => draft.finish(words),
        2..=CONTEXT_RECIPIENTS_MAX => {
            let about = about(words, &draft.address);
            draft.finish(&about)
        }
        _ => draft.finish(b""),
    };
    unique(drafts).into_iter().map(finish).collect()
}

/// The part of a receipt that says that a rule of the recipient refused the mail unread (RFC 5429, 2.1.3).
pub(super) fn rejection<'m, 'a>(mail: &'m Mail<'a>) -> Option<&'m Part<'a>> {
    let part = mail.part(PartKind::Disposition)?;
    let content = part.content();
    let refused = contains(&content, b"automatic-action") && contains(&content, b"; deleted");
    (refused && contains(&mail.report_text(), b"reject")).then_some(part)
}

/// A report that a mail system passes on inside a mail of its own.
fn wrapped_report(
    mail: &Mail<'_>,
    below: Option<&[u8]>,
    wrapped_max: usize,
    weighing: &mut Weighing,
) -> Option<Report> {
    let part = mail.part(PartKind::Returned).map(Part::content);
    let inner = part.as_deref().or(below)?;
    let inner = Mail::parse(inner);
    let is_report = inner.is_report && inner.part(PartKind::DeliveryStatus).is_some();
    if is_report { read(&inner, wrapped_max, weighing) } else { None }
}

/// Gives the words of the text to recipients whose fields have none.
fn add_words(drafts: &mut [Draft], text: &Text<'_>) {
    if drafts.iter().all(|draft| !draft.words.is_empty()) {
        return;
    }
    let Some(recognised) = recogniser::recognise_form(text) else { return };
    for draft in drafts.iter_mut().filter(|draft| draft.words.is_empty()) {
        let same = recognised.drafts.iter().find(|other| other.address.eq_ignore_ascii_case(&draft.address));
        if let Some(same) = same {
            draft.words.clone_from(&same.words);
            draft.phase = draft.phase.or(same.phase);
            draft.reason = draft.reason.or(same.reason);
        }
    }
}

/// Names recipients whose field has a path or a program: the header or the words may tell whose it is.
fn name_unnamed(fields: &mut Notification, mail: &Mail<'_>, words: &[u8]) {
    fields.drafts.retain_mut(|draft| {
        if draft.address.is_empty() {
            let failed =
                mail.head().get(b"x-failed-recipients").and_then(|value| address::first(&unfold(value)));
            draft.address = failed.or_else(|| address::first(words)).unwrap_or_default();
        }
        !draft.address.is_empty()
    });
}

/// Each address once, the first time that it is named.
fn unique(drafts: Vec<Draft>) -> Vec<Draft> {
    if drafts.len() < 2 {
        return drafts;
    }
    let mut seen = HashSet::with_capacity(drafts.len());
    drafts.into_iter().filter(|draft| seen.insert(draft.address.to_ascii_lowercase())).collect()
}

/// The lines of a report that are about one of several recipients: from each that names it to the next blank
/// one.
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

/// What a report is, by what became of the recipients: one failure makes a bounce.
fn kind_of(recipients: &[Finding]) -> Kind {
    let has = |wanted: Option<Action>| recipients.iter().any(|finding| finding.action == wanted);
    let untold =
        recipients.iter().any(|finding| finding.action.is_none() && finding.reason != Reason::Delivered);
    if untold || has(Some(Action::Failed)) {
        Kind::Bounce
    } else if has(Some(Action::Delayed)) {
        Kind::Delay
    } else {
        Kind::Success
    }
}

/// Whether a report in words is about a delay.
fn is_delay(mail: &Mail<'_>, text: &Text<'_>) -> bool {
    let subject = mail.head().get(b"subject").unwrap_or_default();
    let titled: [&[u8]; 4] = [b"(delay)", b"delayed mail", b"delivery delayed", b"message delayed"];
    titled.iter().any(|title| contains(subject, title)) || text.notice().delay.is_some()
}
