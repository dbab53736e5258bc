//! `<address>: text`, the format of Postfix, qmail and many similar servers (Yahoo, ezmlm, IndiMail, MXLogic
//! …).
//!
//! ```text
//! <ada@example.org>:
//! 192.0.2.7 does not like recipient.
//! Remote host said: 550 no such user
//! ```
//!
//! The text ends at a blank line or at the next address.

use super::super::address;
use super::super::bytes::{lines, starts_with, trim};
use super::super::partial_finding::PartialFinding;
use super::ReportText;

/// Phrases that these servers begin their reports with.
const INTRODUCTIONS: &[&[u8]] = &[
    b"this is the qmail-send program",
    b"this is the mail system at host",
    b"this is the postfix program",
    b"this is the ",
    b"i'm sorry to have to inform you",
    b"i wasn't able to deliver",
    b"unable to deliver",
    b"could not be delivered",
    b"couldn't be delivered",
    b"were unable to deliver",
    b"undeliverable",
    b"delivery failed",
    b"permanent error",
    b"remote host said",
    b"could not deliver",
    b"mail delivery",
    b"delivery to the following",
    b"following address",
    b"following recipient",
];

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    let mut findings: Vec<PartialFinding> = Vec::new();
    let mut open = false;
    // EZweb describes the problem above the address, and only briefly on the same line.
    let mut preface: &[u8] = b"";
    for line in lines(text.report) {
        if starts_with(line, b"the user(s) account") {
            preface = trim(line);
        }
        if let Some((address, original, words)) = opens(line) {
            let mut finding = PartialFinding::new(address, preface);
            finding.add(words);
            finding.original_address = original;
            findings.push(finding);
            open = true;
            continue;
        }
        let Some(finding) = findings.last_mut().filter(|_| open) else { continue };
        let line = trim(line);
        if line.is_empty() {
            open = finding.words.is_empty();
        } else {
            finding.add(line);
        }
    }
    (!findings.is_empty() && text.sender.is_machine() && text.says_any(INTRODUCTIONS)).then_some(findings)
}

/// The address, the address that it was expanded from, and the text of a line that begins with `<address>…:`.
fn opens(line: &[u8]) -> Option<(String, Option<String>, &[u8])> {
    let line = trim(line);
    let inner = line.strip_prefix(b"<")?;
    let close = memchr::memchr(b'>', inner)?;
    let address = address::sole(&inner[..close])?;
    let rest = trim(&inner[close + 1..]);
    if let Some(words) = rest.strip_prefix(b":") {
        return Some((address, None, trim(words)));
    }
    // Postfix: <a@example.org> (expanded from <b@example.org>): words
    if starts_with(rest, b"(expanded from") {
        let end = memchr::memchr(b')', rest)?;
        let words = rest[end + 1..].strip_prefix(b":").unwrap_or(&rest[end + 1..]);
        return Some((address, address::first(&rest[..end]), trim(words)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expanded_address_keeps_the_one_it_came_from() {
        let (address, original, words) =
            opens(b"<a@example.org> (expanded from <b@example.org>): no").unwrap();
        assert_eq!(
            (address.as_str(), original.as_deref(), words),
            ("a@example.org", Some("b@example.org"), &b"no"[..])
        );
        assert!(opens(b"see <a@example.org>: no").is_none());
    }
}
