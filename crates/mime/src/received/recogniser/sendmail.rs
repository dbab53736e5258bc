//! Sendmail and servers that copied its headings: a list of addresses, then a transcript of the session.
//!
//! ```text
//!    ----- The following addresses had permanent fatal errors -----
//! <ada@example.org>
//!     (reason: 550 5.1.1 no such user)
//!
//!    ----- Transcript of session follows -----
//! ... while talking to mx.example.org:
//! >>> RCPT To:<ada@example.org>
//! <<< 550 5.1.1 no such user
//! ```
//!
//! Versions before 8 have only the transcript.

use super::super::address;
use super::super::bytes::{after, contains, lines, starts_with, trim};
use super::super::dsn::RECIPIENTS_MAX;
use super::super::partial_finding::PartialFinding;
use super::super::report::ReportedAction;
use super::ReportText;

const ADDRESSES: &[&[u8]] = &[
    b"addresses had permanent",
    b"addresses had transient",
    b"addresses had fatal",
    b"addresses had delivery",
    b"addresses had successful",
    b"addresses had undeliverable",
    b"recipients of the message",
    b"failed addresses follow",
    b"address had ",
    b"failed recipient",
    b"addresses did not receive",
];

const TRANSCRIPT: &[&[u8]] =
    &[b"transcript of session", b"transcript of the session", b"message log follows", b"session transcript"];

/// The maximum number of recipients for which the transcript is searched individually.
const TRANSCRIPT_RECIPIENTS_MAX: usize = 32;

/// The section of the text that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendmailSection {
    Before,
    Addresses,
    Transcript,
}

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    if !text.sender.is_machine() || !(text.says_any(TRANSCRIPT) || text.says_any(ADDRESSES)) {
        return None;
    }
    let mut findings: Vec<PartialFinding> = Vec::new();
    let mut transcript = Vec::new();
    let mut section = SendmailSection::Before;
    let mut action = ReportedAction::Failed;
    for line in lines(text.report) {
        let words = trim(line);
        if words.starts_with(b"--")
            || words.starts_with(b"|--")
            || starts_with(words, b"the following addresses did not")
        {
            if ADDRESSES.iter().any(|heading| contains(words, heading)) {
                section = SendmailSection::Addresses;
                action = if contains(words, b"successful") {
                    ReportedAction::Delivered
                } else if contains(words, b"transient") {
                    ReportedAction::Delayed
                } else {
                    ReportedAction::Failed
                };
            } else if TRANSCRIPT.iter().any(|heading| contains(words, heading)) {
                section = SendmailSection::Transcript;
            }
            continue;
        }
        match section {
            SendmailSection::Before => {}
            SendmailSection::Addresses => read_address(words, action, &mut findings),
            SendmailSection::Transcript => transcript.push(words),
        }
    }
    read_transcript(&transcript, &mut findings);
    Some(findings)
}

/// Reads a line of the list of addresses.
fn read_address(words: &[u8], action: ReportedAction, findings: &mut Vec<PartialFinding>) {
    if starts_with(words, b"(reason:") || starts_with(words, b"(expanded from:") {
        let Some(finding) = findings.last_mut() else { return };
        match after(words, b"expanded from:") {
            Some(from) => {
                let from = address::first(from);
                match from {
                    Some(from) if finding.address.is_empty() => finding.address = from,
                    from => finding.original_address = from,
                }
            }
            None => {
                let reason = after(words, b"reason:").unwrap_or_default();
                finding.add(trim(reason.strip_suffix(b")").unwrap_or(reason)));
            }
        }
        return;
    }
    if words.is_empty() {
        return;
    }
    // <a@example.org>, >>> a@example.org <a@example.org>, a@example.org [words], a@example.org ... words,
    // [Status: Error, Address: <a@example.org>, ResponseCode 421, words]
    let Some(found) = address::next(words, 0) else {
        if words.starts_with(b"\"|") || words.starts_with(b"|") {
            let mut finding = PartialFinding::new(String::new(), words);
            finding.program = true;
            findings.push(finding);
        } else if let Some(finding) = findings.last_mut() {
            finding.add(words);
        }
        return;
    };
    if findings.len() >= RECIPIENTS_MAX || findings.iter().any(|finding| finding.address == found.address) {
        return;
    }
    let rest = trim(&words[found.end..]);
    let rest = rest.strip_prefix(b">").unwrap_or(rest);
    let mut finding = PartialFinding::new(found.address, trim(rest));
    if address::first(rest).is_some() {
        finding.words.clear();
    }
    finding.action = Some(action);
    findings.push(finding);
}

/// Reads the transcript. A reply to a named recipient belongs to that recipient, any other reply to all.
fn read_transcript(transcript: &[&[u8]], findings: &mut Vec<PartialFinding>) {
    if findings.is_empty() {
        // Old versions: <<< 550 <a@example.org>, no such user / 554 <a@example.org>... words
        for words in transcript {
            let asked = starts_with(words, b">>> rcpt to");
            let is_reply = words.first().is_some_and(u8::is_ascii_digit);
            if (asked || is_reply)
                && findings.len() < RECIPIENTS_MAX
                && let Some(address) = address::first(words)
                && !findings.iter().any(|finding| finding.address == address)
            {
                let mut finding = PartialFinding::new(address, b"");
                finding.action = Some(ReportedAction::Failed);
                findings.push(finding);
            }
        }
    }
    let single = findings.len() == 1;
    if findings.len() > TRANSCRIPT_RECIPIENTS_MAX {
        return;
    }
    for finding in findings.iter_mut().filter(|finding| !finding.words.iter().any(u8::is_ascii_digit)) {
        if !single && let Some(part) = part_of(transcript, &finding.address) {
            part.iter().for_each(|words| finding.add(words));
            continue;
        }
        let mut asked = single;
        let mut words_of = Vec::new();
        for words in transcript {
            let named = contains(words, finding.address.as_bytes());
            if words.starts_with(b">>>") {
                asked = named || single || !starts_with(words, b">>> rcpt");
            }
            if named || (asked && (words.starts_with(b"<<<") || words.starts_with(b">>>") || single)) {
                words_of.push(*words);
            }
        }
        for words in words_of {
            finding.add(words);
        }
    }
}

/// The section of a transcript about an address: it ends with the line `554 <a@example.org>... text` and
/// begins after the line about another address, or at the last server that was contacted; `None` if no such
/// line names the address.
fn part_of<'t, 'a>(transcript: &'t [&'a [u8]], address: &str) -> Option<&'t [&'a [u8]]> {
    let is_about = |words: &[u8]| {
        matches!(words, [b'4' | b'5', b'0'..=b'9', b'0'..=b'9', b' ' | b'-', ..])
            && address::first(words).is_some()
    };
    let end = transcript.iter().position(|words| is_about(words) && contains(words, address.as_bytes()))?;
    let begin = transcript[..end].iter().rposition(|words| is_about(words)).map_or(0, |last| last + 1);
    // Replies of an earlier server are not about this address.
    let server = transcript[begin..end].iter().rposition(|words| contains(words, b"while talking to"));
    Some(&transcript[begin + server.unwrap_or_default()..=end])
}
