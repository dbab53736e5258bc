//! Reads a text of no known format, with the addresses of the failed recipients somewhere in it.
//!
//! Every address of the text is a [`RecipientCandidate`], run_heavy by how it appears. The one with the
//! largest weight is chosen, and with it those of the same shape: all items of a list of recipients have one
//! shape, and the addresses of the sender, of the administrator and in advice have another. If the text names
//! no recipient, the `To` of the returned mail is used.

mod candidate;

use super::super::address;
use super::super::bytes::trim;
use super::super::dsn::RECIPIENTS_MAX;
use super::super::partial_finding::PartialFinding;
use super::ReportText;
use crate::reader::unfold;

pub use candidate::RecipientCandidate;
use candidate::{AddressShape, CandidateLine};

/// The recipients that a text names.
pub(in crate::received) struct ProseReading {
    pub(in crate::received) findings: Vec<PartialFinding>,
    pub(in crate::received) candidates: Vec<RecipientCandidate>,
    /// The feature of the address family, and its weight.
    pub(in crate::received) feature: (&'static str, i32),
}

/// How much less another recipient of the same shape may weigh: one line may have text that the other lacks.
const SAME_SHAPE_SLACK: i32 = 15;

/// Reads a text; `None` if it names no recipient.
pub(super) fn read(text: &ReportText<'_>) -> Option<ProseReading> {
    let findings = named_in_header(text);
    if !findings.is_empty() {
        return Some(ProseReading { findings, candidates: Vec::new(), feature: ("named_in_the_header", 25) });
    }
    let mut found = candidate::weigh_all(text);
    let best = found.iter().map(|line| line.candidate.weight).max().filter(|weight| *weight > 0);
    let Some(best) = best else {
        let (address, name) = named_elsewhere(text)?;
        let candidates = found.into_iter().map(|line| line.candidate).collect();
        let findings = vec![PartialFinding::new(address, text.report)];
        return Some(ProseReading { findings, candidates, feature: (name, 10) });
    };
    take(&mut found, best, text.report);
    let findings = findings_of(&found, text.report);
    let feature = match best {
        30.. => ("stands_as_a_recipient", 25),
        20.. => ("stands_as_an_address", 20),
        _ => ("stands_in_the_text", 15),
    };
    let candidates = found.into_iter().map(|line| line.candidate).collect();
    Some(ProseReading { findings, candidates, feature })
}

/// The recipients that a header field names.
fn named_in_header(text: &ReportText<'_>) -> Vec<PartialFinding> {
    let head = text.mail.header();
    let fields = head.all(b"x-failed-recipients").chain(head.all(b"x-bounced-address"));
    let mut findings: Vec<PartialFinding> = Vec::new();
    for value in fields {
        let value = unfold(value);
        let named = value.split(|&b| b == b',').filter_map(address::first);
        findings.extend(named.take(RECIPIENTS_MAX).map(|address| PartialFinding::new(address, text.report)));
    }
    findings
}

/// A recipient that the text does not name: that of the returned mail, one in the subject, or one that a
/// mailing list encoded in the return address, as in `users-bounces+ada=example.org@list.example`.
fn named_elsewhere(text: &ReportText<'_>) -> Option<(String, &'static str)> {
    if let Some(to) = text.original.to.clone() {
        return Some((to, "only_in_the_returned_mail"));
    }
    let head = text.mail.header();
    let to: Vec<String> = [&b"to"[..], b"delivered-to"]
        .into_iter()
        .filter_map(|name| address::first(&unfold(head.get(name)?)))
        .collect();
    let subject = head.get(b"subject").and_then(|subject| address::first(&unfold(subject)));
    if let Some(address) = subject.filter(|address| !to.contains(address)) {
        return Some((address, "only_in_the_subject"));
    }
    to.iter().find_map(|to| encoded(to)).map(|address| (address, "only_in_the_return_address"))
}

/// The address that is encoded in a return address: `ada@example.org` of
/// `users-bounces+ada=example.org@list.example`.
fn encoded(address: &str) -> Option<String> {
    let (local, _) = address.rsplit_once('@')?;
    let (user, host) = local.rsplit_once('=')?;
    let user = user.rsplit(['+', '=']).next().unwrap_or(user);
    let is_host = host.contains('.') && host.split('.').all(|label| !label.is_empty());
    (is_host && !user.is_empty()).then(|| address::first(format!("{user}@{host}").as_bytes())).flatten()
}

/// Marks the first candidate with the largest weight, and those of the same shape.
fn take(found: &mut [CandidateLine], best: i32, report: &[u8]) {
    let Some(first) = found.iter().position(|line| line.candidate.weight == best) else { return };
    let shape = found[first].candidate.shape;
    found[first].candidate.is_taken = true;
    if shape == AddressShape::Inline {
        take_enumerated(found, first, report);
        return;
    }
    for line in found.iter_mut().filter(|line| line.candidate.shape == shape) {
        line.candidate.is_taken |=
            line.candidate.weight > 0 && line.candidate.weight + SAME_SHAPE_SLACK >= best;
    }
}

/// Marks the addresses enumerated after the first in a sentence: `a@example.org, b@example.org and
/// c@example.org`.
fn take_enumerated(found: &mut [CandidateLine], first: usize, report: &[u8]) {
    for next in first + 1..found.len() {
        let (end, begin) = (found[next - 1].end, found[next].begin);
        let Some(between) = report.get(end..begin) else { return };
        let words = between.split(|b| !b.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        let is_joined = |word: &[u8]| matches!(word, b"and" | b"und" | b"et" | b"e" | b"y" | b"en");
        if between.len() > 12 || !between.is_ascii() || !words.clone().all(is_joined) {
            return;
        }
        found[next].candidate.is_taken = true;
    }
}

/// The findings of the chosen candidates. Text below an address belongs to it. Without such text, the text
/// below the last or above the first address belongs to all.
fn findings_of(found: &[CandidateLine], report: &[u8]) -> Vec<PartialFinding> {
    let taken: Vec<&CandidateLine> = found.iter().filter(|line| line.candidate.is_taken).collect();
    if let [only] = taken.as_slice() {
        return vec![PartialFinding::new(only.candidate.address.clone(), report)];
    }
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Vec::new() };
    let below = &report[last.end..];
    let shared = if says_something(below) { below } else { &report[..first.begin] };
    taken
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let until = taken.get(number + 1).map_or(report.len(), |next| next.begin);
            let own = &report[line.end.min(until)..until];
            let words = if says_something(own) { own } else { shared };
            let mut finding = PartialFinding::new(line.candidate.address.clone(), b"");
            finding.add(trim(&words[..words.len().min(WORDS_OCTETS_MAX)]));
            finding
        })
        .collect()
}

/// The maximum of text for one of several recipients.
const WORDS_OCTETS_MAX: usize = 2_000;

/// Whether a text has words, and not only punctuation.
fn says_something(text: &[u8]) -> bool {
    text.split(|b| !b.is_ascii_alphanumeric() && b.is_ascii()).filter(|word| word.len() > 2).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_may_carry_the_recipient() {
        assert_eq!(encoded("users-bounces+ada=example.org@list.example").as_deref(), Some("ada@example.org"));
        assert_eq!(encoded("b=1@shop.example"), None);
        assert_eq!(encoded("b@shop.example"), None);
    }
}
