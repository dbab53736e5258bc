//! A sentence, then a list of addresses or the one address: OpenSMTPD, the DragonFly mail agent, MailMarshal,
//! m-FILTER, Lotus Notes and others.
//!
//! ```text
//! An error has occurred while attempting to deliver a message for the following list of recipients:
//!
//! ada@example.org: 550 no such user
//! ```

use super::super::address;
use super::super::bytes::{contains, find, lines, starts_with, trim};
use super::super::partial_finding::PartialFinding;
use super::super::report::ReportedAction;
use super::ReportText;

/// Headings above the addresses, each of which is on a separate line, with text after a colon or below.
const HEADINGS: &[&[u8]] = &[
    b"list of recipients:",
    b"failure reasons  ----",
    b"failure reasons ---",
    b"there was an error delivering your mail to",
    b"following recipients were affected",
    b"-server message",
];

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    let (heading, begin) =
        HEADINGS.iter().find_map(|heading| find(text.report, heading).map(|at| (*heading, at)))?;
    if !text.sender.is_machine() {
        return None;
    }
    let below = &text.report[begin + heading.len()..];
    let mut findings = match heading {
        b"there was an error delivering your mail to" => one(below),
        b"following recipients were affected" => affected(below, &text.report[..begin]),
        b"-server message" => filter(&text.report[..begin], below),
        b"failure reasons  ----" | b"failure reasons ---" => notes(below),
        _ => many(below),
    };
    let delayed =
        text.says(b"is delayed for more than") || text.says(b"subject: delivery status notification: warn");
    for finding in &mut findings {
        finding.action = Some(if delayed { ReportedAction::Delayed } else { ReportedAction::Failed });
    }
    Some(findings)
}

/// OpenSMTPD: `address: text`, continued in indented lines.
fn many(below: &[u8]) -> Vec<PartialFinding> {
    let mut findings: Vec<PartialFinding> = Vec::new();
    let mut open = false;
    for line in lines(below) {
        let words = trim(line);
        let bare = words.strip_prefix(b"<").unwrap_or(words);
        if let Some(found) = address::next(bare, 0)
            && found.begin == 0
        {
            let rest = trim(&bare[found.end..]);
            let rest = rest.strip_prefix(b">").unwrap_or(rest);
            findings.push(PartialFinding::new(found.address, trim(rest.strip_prefix(b":").unwrap_or(rest))));
            open = true;
        } else if words.is_empty() {
            open = open && findings.last().is_some_and(|finding| finding.words.is_empty());
        } else if let Some(finding) = findings.last_mut().filter(|_| open) {
            finding.add(words);
        }
    }
    findings
}

/// DragonFly: the address on the same line, the text below.
fn one(below: &[u8]) -> Vec<PartialFinding> {
    let Some(found) = address::next(below, 0) else { return Vec::new() };
    vec![PartialFinding::new(
        found.address,
        below[found.end..].trim_ascii_start().strip_prefix(b">.").unwrap_or(&below[found.end..]),
    )]
}

/// MailMarshal: the text above the heading, the addresses below it.
fn affected(below: &[u8], above: &[u8]) -> Vec<PartialFinding> {
    let words = find(above, b"because of").map_or(above, |at| &above[at + 10..]);
    let mut findings = Vec::new();
    for line in lines(below).skip(1) {
        match address::sole(line) {
            Some(address) => findings.push(PartialFinding::new(address, words)),
            None if !trim(line).is_empty() && !findings.is_empty() => break,
            None => {}
        }
    }
    findings
}

/// m-FILTER: the addresses above the heading, the text below it, then the command that was answered.
fn filter(above: &[u8], below: &[u8]) -> Vec<PartialFinding> {
    let mut words = Vec::new();
    for line in lines(below).skip(1) {
        if starts_with(line, b"-------smtp command") {
            words.extend_from_slice(b" (in reply to");
        } else if starts_with(line, b"-------") {
            break;
        } else if contains(&words, b"(in reply to") && !trim(line).is_empty() {
            words.push(b' ');
            words.extend_from_slice(trim(line));
            words.extend_from_slice(b" command)");
            break;
        } else {
            words.push(b' ');
            words.extend_from_slice(trim(line));
        }
    }
    lines(above).filter_map(address::sole).map(|address| PartialFinding::new(address, &words)).collect()
}

/// Lotus Notes: the text, then the address.
fn notes(below: &[u8]) -> Vec<PartialFinding> {
    let mut words = Vec::new();
    for line in lines(below).skip(1) {
        if let Some(address) = address::sole(line) {
            return vec![PartialFinding::new(address, &words)];
        }
        words.extend_from_slice(trim(line));
        words.push(b' ');
    }
    Vec::new()
}
