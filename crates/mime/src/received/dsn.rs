//! Delivery status notifications (RFC 3464, RFC 6533): fields about the message, then fields about each
//! recipient.
//!
//! They are read leniently: blank lines may be missing or repeated, fields may be in any order, and the
//! notification may be inside a text instead of its own part. A group of fields ends at a blank line or when
//! a field is repeated.

use super::address;
use super::bytes::{contains, lines, squeeze, starts_with, trim};
use super::diagnosis::EnhancedStatus;
use super::partial_finding::PartialFinding;
use super::report::ReportedAction;
use crate::reader::HeaderField;

/// The maximum number of recipients of a report.
pub(super) const RECIPIENTS_MAX: usize = 1_000;
/// The longest ENVID that is kept.
const ENVELOPE_ID_CHARS_MAX: usize = 100;

/// The content of a notification.
#[derive(Debug, Default)]
pub(super) struct StatusNotification {
    pub(super) reporter: Option<String>,
    /// The Message-ID of the original mail, if the notification contains it.
    pub(super) message_id: Option<String>,
    /// The ENVID of the original mail (RFC 3464, 2.2.1).
    pub(super) envelope_id: Option<String>,
    pub(super) findings: Vec<PartialFinding>,
}

/// The fields about one recipient.
#[derive(Debug, Default)]
struct RecipientFields {
    final_recipient: Option<String>,
    original_recipient: Option<String>,
    actual_recipient: Option<String>,
    recipient_path: bool,
    finding: PartialFinding,
    seen: u8,
}

const FINAL: u8 = 1;
const ORIGINAL: u8 = 2;
const ACTION: u8 = 4;
const STATUS: u8 = 8;
const DIAGNOSTIC: u8 = 16;
const ACTUAL: u8 = 32;

impl RecipientFields {
    fn is_empty(&self) -> bool {
        self.seen == 0
    }

    fn has_recipient(&self) -> bool {
        self.final_recipient.is_some() || self.original_recipient.is_some() || self.actual_recipient.is_some()
    }
}

/// Reads the content of a `message/delivery-status` part, or a text that has its fields.
pub(super) fn parse(text: &[u8]) -> StatusNotification {
    let mut notification = StatusNotification::default();
    let mut group = RecipientFields::default();
    let mut all = lines(text).peekable();
    while let Some(line) = all.next() {
        if trim(line).is_empty() {
            // A group without a recipient stays open, because some servers put a blank line between the
            // fields of a recipient.
            if group.has_recipient() && group.seen & (ACTION | STATUS) != 0 {
                close(&mut group, &mut notification);
            }
            continue;
        }
        let Some(field) = HeaderField::from_line(line) else { continue };
        let Some(known) = name_of(field.name) else { continue };
        let mut value = field.value.to_vec();
        while let Some(next) = all.peek()
            && matches!(next.first(), Some(b' ' | b'\t'))
            && !trim(next).is_empty()
        {
            value.push(b' ');
            value.extend_from_slice(trim(next));
            all.next();
        }
        let value = trim(&value);
        match known {
            DsnFieldName::Reporter => {
                notification.reporter.get_or_insert_with(|| squeeze(after_type(value), 255));
            }
            DsnFieldName::MessageId => notification.message_id = super::original_message::bare_id(value),
            DsnFieldName::EnvelopeId => {
                notification.envelope_id.get_or_insert_with(|| squeeze(value, ENVELOPE_ID_CHARS_MAX));
            }
            DsnFieldName::Recipient(mark) => {
                if group.seen & mark != 0 {
                    close(&mut group, &mut notification);
                }
                group.seen |= mark;
                let address = address::in_field(value);
                group.recipient_path |= address.is_none();
                match mark {
                    FINAL => group.final_recipient = address,
                    ORIGINAL => group.original_recipient = address,
                    _ => group.actual_recipient = address,
                }
            }
            DsnFieldName::Action => {
                if group.seen & ACTION != 0 && group.has_recipient() {
                    close(&mut group, &mut notification);
                }
                group.seen |= ACTION;
                group.finding.action = action_of(value);
            }
            DsnFieldName::Status => {
                group.seen |= STATUS;
                let leading = EnhancedStatus::leading(value);
                group.finding.status = leading.or(group.finding.status);
                if let Some(comment) = value.iter().position(|&b| b == b'(') {
                    group.finding.add(&value[comment..]);
                }
            }
            DsnFieldName::Diagnostic => {
                group.seen |= DIAGNOSTIC;
                group.finding.program = starts_with(value, b"x-unix");
                let words = after_type(value);
                if group.finding.words.starts_with(b"(") {
                    group.finding.words.clear();
                }
                group.finding.add(words);
            }
            DsnFieldName::Remote => {
                let host = squeeze(after_type(value), 255);
                group.finding.remote_mta = Some(host).filter(|host| !host.is_empty());
            }
        }
        if notification.findings.len() >= RECIPIENTS_MAX {
            return notification;
        }
    }
    close(&mut group, &mut notification);
    notification
}

/// Ends a group, and adds it if it names a recipient.
fn close(group: &mut RecipientFields, notification: &mut StatusNotification) {
    let done = std::mem::take(group);
    if done.is_empty() {
        return;
    }
    let mut finding = done.finding;
    let original = done.original_recipient;
    let known = |address: &String| original.is_none() || is_on_the_net(address);
    match done.final_recipient.filter(known).or(done.actual_recipient.filter(known)) {
        Some(address) => {
            finding.original_address = original.filter(|original| !original.eq_ignore_ascii_case(&address));
            finding.address = address;
        }
        None => match original {
            Some(address) => finding.address = address,
            // A path or a program instead of an address: the text may name the recipient.
            None if done.recipient_path => {}
            None => return,
        },
    }
    notification.findings.push(finding);
}

/// Whether the address has a public domain rather than a host name that only the reporting server knows.
fn is_on_the_net(address: &str) -> bool {
    address.rsplit('@').next().is_some_and(|domain| domain.contains('.'))
}

enum DsnFieldName {
    Reporter,
    MessageId,
    EnvelopeId,
    Recipient(u8),
    Action,
    Status,
    Diagnostic,
    Remote,
}

fn name_of(name: &[u8]) -> Option<DsnFieldName> {
    let table: [(&[u8], DsnFieldName); 12] = [
        (b"reporting-mta", DsnFieldName::Reporter),
        (b"x-original-message-id", DsnFieldName::MessageId),
        (b"original-message-id", DsnFieldName::MessageId),
        (b"original-envelope-id", DsnFieldName::EnvelopeId),
        (b"final-recipient", DsnFieldName::Recipient(FINAL)),
        (b"original-recipient", DsnFieldName::Recipient(ORIGINAL)),
        (b"x-actual-recipient", DsnFieldName::Recipient(ACTUAL)),
        (b"action", DsnFieldName::Action),
        (b"status", DsnFieldName::Status),
        (b"diagnostic-code", DsnFieldName::Diagnostic),
        (b"x-supplementary-info", DsnFieldName::Diagnostic),
        (b"remote-mta", DsnFieldName::Remote),
    ];
    table.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, name)| name)
}

/// The value after `smtp;` or `dns;`.
fn after_type(value: &[u8]) -> &[u8] {
    match memchr::memchr(b';', &value[..value.len().min(40)]) {
        Some(at) if value[..at].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b' ')) => {
            trim(&value[at + 1..])
        }
        _ => value,
    }
}

fn action_of(value: &[u8]) -> Option<ReportedAction> {
    let known: [(&[u8], ReportedAction); 9] = [
        (b"fail", ReportedAction::Failed),
        (b"delayed", ReportedAction::Delayed),
        (b"delivered", ReportedAction::Delivered),
        (b"deliverable", ReportedAction::Delivered),
        (b"relayed", ReportedAction::Relayed),
        (b"expanded", ReportedAction::Expanded),
        (b"expired", ReportedAction::Failed),
        (b"undeliver", ReportedAction::Failed),
        (b"error", ReportedAction::Failed),
    ];
    known.into_iter().find(|(name, _)| starts_with(value, name)).map(|(_, action)| action)
}

/// Whether a text has the fields of a notification: a recipient, and an action or a status.
pub(super) fn looks_like(text: &[u8]) -> bool {
    (contains(text, b"final-recipient:") || contains(text, b"original-recipient:"))
        && (contains(text, b"\naction:") || contains(text, b"\nstatus:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recipient_has_its_own_fields() {
        let text =
            b"Reporting-MTA: dns; mx.example.org\n\nFinal-Recipient: rfc822; a@example.org\nAction: failed\n\
            EnhancedStatus: 5.1.1 (bad)\nDiagnostic-Code: smtp; 550 5.1.1\n no such user\n\nOriginal-Recipient: \
            rfc822;b@example.org\nFinal-Recipient: rfc822; c@example.org\nAction: delayed\nStatus: 4.4.1\n";
        let found = parse(text);
        assert_eq!(found.reporter.as_deref(), Some("mx.example.org"));
        assert_eq!(found.findings.len(), 2);
        assert_eq!(found.findings[0].words, b"550 5.1.1 no such user");
        assert_eq!(found.findings[0].action, Some(ReportedAction::Failed));
        assert_eq!(found.findings[1].address, "c@example.org");
        assert_eq!(found.findings[1].original_address.as_deref(), Some("b@example.org"));
    }

    #[test]
    fn missing_blank_lines_do_not_merge_recipients() {
        let text =
            b"Action: failed\nStatus: 5.0.0\nOriginal-recipient: rfc822;a@example.org\nFinal-recipient: \
            rfc822;a@example.org\nAction: failed\nFinal-recipient: rfc822;b@example.org\n";
        let addresses: Vec<_> = parse(text).findings.into_iter().map(|finding| finding.address).collect();
        assert_eq!(addresses, ["a@example.org", "b@example.org"]);
    }

    #[test]
    fn the_number_of_recipients_is_bounded() {
        let text = b"Final-Recipient: rfc822; a@example.org\nAction: failed\n\n".repeat(5_000);
        assert!(parse(&text).findings.len() <= RECIPIENTS_MAX);
    }
}
