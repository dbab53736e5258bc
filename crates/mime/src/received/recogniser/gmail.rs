//! Gmail before it sent delivery status parts, and its groups.
//!
//! ```text
//! Delivery to the following recipient failed permanently:
//!
//!      ada@example.org
//!
//! Technical details of permanent failure:
//! … The error that the other server returned was: 550 550 5.1.1 no such user (state 14).
//! ```

use super::super::address;
use super::super::bytes::{find, lines, trim};
use super::super::partial_finding::PartialFinding;
use super::super::reason::ReportReason;
use super::super::report::ReportedAction;
use super::ReportText;
use crate::reader::unfold;

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    let delayed = text.says(b"recipient has been delayed") || text.says(b"recipients has been delayed");
    let headings: [&[u8]; 4] = [
        b"delivery to the following recipient",
        b"delivery to the following recipients",
        // A server that copied the format misspells it like this.
        b"delevery to the following recipients",
        b"message to the following recipient",
    ];
    let Some(begin) = headings.iter().find_map(|heading| find(text.report, heading)) else {
        return group(text);
    };
    if !text.sender.is_machine() {
        return None;
    }
    let mut findings: Vec<PartialFinding> = Vec::new();
    let mut words = Vec::new();
    for line in lines(&text.report[begin..]).skip(1) {
        match address::sole(line) {
            Some(address) if words.is_empty() => findings.push(PartialFinding::new(address, b"")),
            _ if findings.is_empty() || trim(line).is_empty() => {}
            _ => {
                words.extend_from_slice(trim(line));
                words.push(b' ');
            }
        }
    }
    for finding in &mut findings {
        finding.add(&words);
        finding.action = Some(if delayed { ReportedAction::Delayed } else { ReportedAction::Failed });
    }
    Some(findings)
}

/// Reads a report about a group that does not exist or does not accept mail from the sender, in any language.
fn group(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    let failed = unfold(text.mail.header().get(b"x-failed-recipients")?);
    if !text.says(b"google") || !text.sender.is_surely_machine() {
        return None;
    }
    let findings = failed.split(|&b| b == b',').filter_map(address::first).map(|address| {
        let is_group = address.ends_with("@googlegroups.com") || text.says(b"groups.google.com");
        let mut finding = PartialFinding::new(address, text.report);
        finding.action = Some(ReportedAction::Failed);
        finding.reason = is_group.then_some(ReportReason::Filtered);
        finding
    });
    Some(findings.collect())
}
