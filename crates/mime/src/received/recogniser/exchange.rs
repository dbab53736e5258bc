//! Microsoft Exchange without a delivery status: the old connector, and what Outlook leaves of newer ones.
//!
//! ```text
//! Your message
//!   To: …
//! did not reach the following recipient(s):
//!
//! ada@example.org on Thu, 29 Apr 2010 00:00:00 -0000
//!     The recipient name is not recognized
//!     MSEXCH:IMS:NNN:HOST:NAME 0 (000C05A6) Unknown Recipient
//! ```

use super::super::address;
use super::super::bytes::{after, contains, find, lines, starts_with, trim};
use super::super::dsn::RECIPIENTS_MAX;
use super::super::partial_finding::PartialFinding;
use super::super::reason::ReportReason;
use super::super::report::ReportedAction;
use super::ReportText;

const HEADINGS: &[&[u8]] = &[
    b"did not reach the following recipient",
    b"following recipient(s) could not be reached",
    b"following recipient(s) cannot be reached",
    b"could not be delivered to the following recipient",
    b"delivery has failed to these recipients",
    b"delivery to these recipients or distribution lists",
    b"your message couldn't be delivered to",
    b"your message wasn't delivered to",
    b"message can't be delivered to",
    b"impossible de remettre votre message",
    b"fehler bei der nachrichtenzustellung an folgende",
    b"impossibile recapitare il messaggio",
    b"no se pudo entregar el mensaje a estos",
    b"error en la entrega a estos destinatarios",
    b"recapito non riuscito",
];

/// Headings of the section for administrators, in which newer versions repeat the address and quote the
/// server.
const ADMINISTRATORS: &[&[u8]] =
    &[b"diagnostic information for administrators", b"informazioni di diagnostica"];

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    let begin =
        HEADINGS.iter().find_map(|heading| find(text.report, heading).map(|at| at + heading.len()))?;
    if !text.sender.is_machine() {
        return None;
    }
    let below = &text.report[begin..];
    if let Some(administrators) = ADMINISTRATORS.iter().find_map(|heading| after(below, heading)) {
        let findings = read(administrators);
        if !findings.is_empty() {
            return Some(findings);
        }
    }
    Some(read(below))
}

fn read(text: &[u8]) -> Vec<PartialFinding> {
    let mut findings: Vec<PartialFinding> = Vec::new();
    for line in lines(text) {
        let words = trim(line);
        if words.is_empty() || starts_with(words, b"generating server") {
            continue;
        }
        if let Some(address) = recipient(words) {
            if findings.len() < RECIPIENTS_MAX && !findings.iter().any(|finding| finding.address == address) {
                let mut finding = PartialFinding::new(address, b"");
                finding.action = Some(ReportedAction::Failed);
                findings.push(finding);
            }
        } else if let Some(finding) = findings.last_mut() {
            finding.add(words);
        }
    }
    for finding in &mut findings {
        finding.reason = by_number(&finding.words);
    }
    findings
}

/// `a@example.org`, `a@example.org on date`, `a@example.org<mailto:a@example.org>`, `Name (a@example.org)`.
fn recipient(words: &[u8]) -> Option<String> {
    let words = words.strip_prefix(b":").map_or(words, trim);
    if let Some(address) = address::sole(words) {
        return Some(address);
    }
    let bare = words.strip_prefix(b"<").or_else(|| words.strip_prefix(b"'")).unwrap_or(words);
    // c=us;a= ;p=example;dda:smtp=a@example.org; on date
    let bare = after(bare, b"smtp=").unwrap_or(bare);
    let found = address::next(bare, 0)?;
    let rest = trim(&bare[found.end..]);
    let rest = rest.strip_prefix(b";").map_or(rest, trim);
    let on = find(rest, b"on ").is_some_and(|at| at < 3);
    if found.begin == 0 && (on || starts_with(rest, b"<mailto:")) {
        return Some(found.address);
    }
    // Ada Lovelace (ada@example.org)
    (rest == b")" && bare[..found.begin].ends_with(b"(") && words.len() < 160).then_some(found.address)
}

/// The reason by the connector's error numbers (MAPI).
fn by_number(words: &[u8]) -> Option<ReportReason> {
    let numbers: [(&[u8], ReportReason); 8] = [
        (b"000C05A6", ReportReason::UserUnknown),
        (b"000C0595", ReportReason::Filtered),
        (b"00010256", ReportReason::SystemError),
        (b"000D06B5", ReportReason::SystemError),
        (b"00120270", ReportReason::Network),
        (b"00050311", ReportReason::ContentRejected),
        (b"000502CC", ReportReason::ContentRejected),
        (b"000B0981", ReportReason::Security),
    ];
    numbers.into_iter().find(|(number, _)| contains(words, number)).map(|(_, reason)| reason)
}
