//! Weighs the addresses of a text by how likely each is that of a recipient.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::super::address;
use super::super::super::bytes::{contains, lines, starts_with, trim};
use super::super::super::diagnosis;
use super::super::super::original_message::{self, OriginalParties};
use super::super::super::reason::{self, ReportReason};
use super::super::ReportText;
use crate::reader::unfold;

/// The maximum number of addresses that are run_heavy.
const CANDIDATES_MAX: usize = 200;

/// How much of a line around an address is read.
const LINE_OCTETS_MAX: usize = 1_000;

/// How an address appears in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressShape {
    /// `<a@example.org>:`, at the beginning of a line.
    Bracketed,
    /// The line contains nothing else.
    Alone,
    /// Right after a word or a colon that announces a recipient.
    Labelled,
    /// In a line of an SMTP session.
    Session,
    /// At the beginning of a line, followed by text.
    Opening,
    /// Somewhere else.
    Inline,
}

impl AddressShape {
    fn feature(self) -> (&'static str, i32) {
        match self {
            Self::Bracketed => ("opens_a_line_in_brackets", 30),
            Self::Labelled => ("behind_a_label", 30),
            Self::Session => ("in_a_session", 28),
            Self::Alone => ("alone_on_a_line", 25),
            Self::Opening => ("opens_a_line", 20),
            Self::Inline => ("in_a_sentence", 10),
        }
    }
}

/// An address of a text, run_heavy as a recipient.
#[derive(Debug, Clone)]
pub struct RecipientCandidate {
    /// The address.
    pub address: String,
    pub(super) shape: AddressShape,
    /// Its features, with their weights.
    pub features: Vec<(&'static str, i32)>,
    /// The sum of the weights.
    pub weight: i32,
    /// Whether it was chosen as a recipient.
    pub is_taken: bool,
}

impl RecipientCandidate {
    /// The candidate as `inspect --why` prints it.
    pub fn to_json(&self) -> Value {
        let features: Vec<_> =
            self.features.iter().map(|(name, weight)| json!({ "feature": name, "weight": weight })).collect();
        json!({ "address": self.address, "taken": self.is_taken, "weight": self.weight, "features": features })
    }
}

/// A candidate, and the position of its address in the text.
pub(super) struct CandidateLine {
    pub(super) candidate: RecipientCandidate,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// Weighs the addresses of a text; of repeated ones the largest weight counts.
pub(super) fn weigh_all(text: &ReportText<'_>) -> Vec<CandidateLine> {
    let parties = original_message::read_parties(text.mail, text.below);
    let own = own_addresses(text, &parties);
    let mut found: Vec<CandidateLine> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut all = lines(text.report);
    let mut looked_at = 0;
    loop {
        let line_begin = all.position();
        let Some(line) = all.next() else { break };
        let mut from = 0;
        while let Some(hit) = address::next(line, from) {
            from = hit.end;
            looked_at += 1;
            if looked_at > CANDIDATES_MAX {
                return found;
            }
            let around = LineAround::new(line, hit.begin, hit.end);
            let candidate = weigh(hit.address, &around, &own, &parties);
            let next = CandidateLine { candidate, begin: line_begin + hit.begin, end: line_begin + hit.end };
            match known.get(&next.candidate.address.to_ascii_lowercase()) {
                Some(&place) => {
                    if found[place].candidate.weight < next.candidate.weight {
                        found[place] = next;
                    }
                }
                None => {
                    known.insert(next.candidate.address.to_ascii_lowercase(), found.len());
                    found.push(next);
                }
            }
        }
    }
    found.sort_by_key(|line| line.begin);
    found
}

/// The addresses of the sender and of the recipient of the report.
fn own_addresses(text: &ReportText<'_>, parties: &OriginalParties) -> Vec<String> {
    let names: [&[u8]; 7] =
        [b"to", b"from", b"reply-to", b"sender", b"delivered-to", b"return-path", b"errors-to"];
    let values = names.into_iter().flat_map(|name| text.mail.header().all(name).take(4));
    let of_original = text.original.return_path.iter().chain(&parties.sender).cloned();
    values.filter_map(|value| address::first(&unfold(value))).chain(of_original).collect()
}

/// The text around an address in its line.
struct LineAround<'a> {
    line: &'a [u8],
    before: &'a [u8],
    after: &'a [u8],
}

impl<'a> LineAround<'a> {
    fn new(line: &'a [u8], begin: usize, end: usize) -> Self {
        let from = begin.saturating_sub(LINE_OCTETS_MAX);
        let until = line.len().min(end + LINE_OCTETS_MAX);
        Self { line: &line[from..until], before: trim(&line[from..begin]), after: trim(&line[end..until]) }
    }

    /// The text before the address, without a list bullet.
    fn unlisted(&self) -> &'a [u8] {
        let rest = match self.before {
            [b'*' | b'-' | b'+', rest @ ..] => rest,
            [0xe2, 0x80, 0xa2, rest @ ..] => rest,
            _ => return self.before,
        };
        trim(rest)
    }

    /// The text before the address and its brackets and quotes.
    fn words_before(&self) -> &'a [u8] {
        let mut before = self.unlisted();
        while let [start @ .., b'<' | b'(' | b'[' | b'"' | b'\'' | b'`' | b' '] = before {
            before = start;
        }
        before
    }

    fn shape(&self) -> AddressShape {
        let opens = |marks: &[&[u8]]| marks.iter().any(|mark| starts_with(trim(self.line), mark));
        if opens(&[b">>> rcpt", b"<<< ", b"in:", b"--> rcpt", b"-> rcpt", b"rcpt to"]) || is_reply(self.line)
        {
            return AddressShape::Session;
        }
        let is_enclosed = matches!(
            (self.unlisted(), self.after),
            (b"<", [b'>', ..]) | (b"[", [b']', ..]) | (b"(", [b')', ..])
        );
        if is_enclosed && matches!(self.after, [_, b':' | b' ', ..] | [_]) {
            return AddressShape::Bracketed;
        }
        if address::sole(self.line).is_some() {
            return AddressShape::Alone;
        }
        if ends_in_label(self.words_before()) {
            return AddressShape::Labelled;
        }
        if self.words_before().is_empty() { AddressShape::Opening } else { AddressShape::Inline }
    }
}

/// Whether a line is the reply of a server: `550 <a@example.org>... no such user`.
fn is_reply(line: &[u8]) -> bool {
    matches!(trim(line), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9', b' ' | b'-', ..])
}

/// Words right before the address of a recipient, in lower case; a colon may follow them.
const LABELS: &[&[u8]] = &[
    b"recipient",
    b"recipients",
    b"rcpt to",
    b"mailbox",
    b"user",
    b"account",
    b"address",
    b"addresses",
    b"addressee",
    b"delivered to",
    b"deliver to",
    b"delivery to",
    b"message to",
    b"mail to",
    b"email to",
    b"e-mail to",
    b"sent to",
    b"addressed to",
    b"was addressed",
    b"delivery for",
    b"destination",
    b"destinataire",
    b"destinatario",
    b"empf\xc3\xa4nger",
    b"an",
    b"adresse",
    b"utente",
    b"usuario",
    b"gebruiker",
    b"indirizzo",
    b"odbiorca",
    b"\xe3\x82\xa2\xe3\x83\x89\xe3\x83\xac\xe3\x82\xb9",
    b"\xe5\xae\x9b\xe5\x85\x88",
    b"\xe6\x94\xb6\xe4\xbb\xb6\xe4\xba\xba",
    b"\xe5\x9c\xb0\xe5\x9d\x80",
];

fn ends_in_label(before: &[u8]) -> bool {
    let before = before.strip_suffix(b":").or_else(|| before.strip_suffix("：".as_bytes())).unwrap_or(before);
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b",").unwrap_or(before);
    LABELS.iter().any(|label| {
        let Some(start) = before.len().checked_sub(label.len()) else { return false };
        let is_whole = !label[0].is_ascii() || start == 0 || !before[start - 1].is_ascii_alphanumeric();
        is_whole && before[start..].eq_ignore_ascii_case(label)
    })
}

fn weigh(
    address: String,
    around: &LineAround<'_>,
    own: &[String],
    parties: &OriginalParties,
) -> RecipientCandidate {
    let shape = around.shape();
    let mut features = vec![shape.feature()];
    let is = |other: &str| other.eq_ignore_ascii_case(&address);
    if parties.recipients.iter().any(|to| is(to)) {
        features.push(("recipient_of_the_returned_mail", 30));
    } else if own.iter().any(|own| is(own)) {
        features.push(("sender_or_reader_of_the_report", -80));
    }
    if is_role(&address) {
        features.push(("name_of_a_role", -40));
    }
    let before = around.words_before();
    let ends = |words: &[&[u8]]| {
        words.iter().any(|word| {
            before.len() >= word.len() && before[before.len() - word.len()..].eq_ignore_ascii_case(word)
        })
    };
    if ends(&[
        b"from",
        b"from:",
        b"sender",
        b"sender:",
        b"reply-to:",
        b"von",
        b"von:",
        b"de:",
        b"da:",
        b" by",
    ]) {
        features.push(("behind_a_word_for_the_sender", -50));
    }
    let about_ids: [&[u8]; 4] = [b"message-id", b"message id", b"in-reply-to", b"references:"];
    if about_ids.iter().any(|name| contains(before, name)) {
        features.push(("id_of_a_mail", -100));
    }
    let advice: [&[u8]; 9] = [
        b"contact",
        b"please",
        b"question",
        b"assistance",
        b"for help",
        b"report this",
        b"administrator",
        b"http:",
        b"https:",
    ];
    if matches!(shape, AddressShape::Inline | AddressShape::Labelled)
        && advice.iter().any(|word| contains(before, word))
    {
        features.push(("in_advice", -25));
    }
    if is_telling(around.line) {
        features.push(("reason_on_the_line", 12));
    }
    if contains(address.as_bytes(), b".prod.outlook.com") {
        features.push(("id_of_a_mail", -100));
    }
    if !address.rsplit('@').next().is_some_and(|domain| domain.contains(['.', '['])) {
        features.push(("name_of_one_host", -10));
    }
    let weight = features.iter().map(|(_, weight)| weight).sum();
    RecipientCandidate { address, shape, features, weight, is_taken: false }
}

fn is_role(address: &str) -> bool {
    let local = address.split('@').next().unwrap_or_default().to_ascii_lowercase();
    let roles = [
        "mailer-daemon",
        "postmaster",
        "abuse",
        "support",
        "helpdesk",
        "noreply",
        "no-reply",
        "webmaster",
        "hostmaster",
    ];
    roles.contains(&local.as_str())
}

/// Whether a line contains a reason for a failure.
fn is_telling(line: &[u8]) -> bool {
    let telling = [
        ReportReason::UserUnknown,
        ReportReason::HostUnknown,
        ReportReason::MailboxFull,
        ReportReason::AccountDisabled,
        ReportReason::HasMoved,
    ];
    let codes = diagnosis::codes(line);
    codes.reply.is_some()
        || codes.status.is_some_and(|status| status.class != 2)
        || reason::speaks_for(line, &telling)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &str) -> AddressShape {
        let hit = address::next(line.as_bytes(), 0).unwrap();
        LineAround::new(line.as_bytes(), hit.begin, hit.end).shape()
    }

    #[test]
    fn an_address_has_the_shape_of_its_line() {
        assert_eq!(shape("<a@example.org>: no such user"), AddressShape::Bracketed);
        assert_eq!(shape("  * [a@example.org]: no such user"), AddressShape::Bracketed);
        assert_eq!(shape("   a@example.org"), AddressShape::Alone);
        assert_eq!(shape("You sent mail to a@example.org. Bad."), AddressShape::Labelled);
        assert_eq!(shape("宛先：<a@example.org> です"), AddressShape::Labelled);
        assert_eq!(shape("550 <a@example.org>... unknown"), AddressShape::Session);
        assert_eq!(shape("a@example.org is gone"), AddressShape::Opening);
        assert_eq!(shape("we know nobody like a@example.org here"), AddressShape::Inline);
        assert_eq!(shape("the busy van of a@example.org is red"), AddressShape::Inline);
    }
}
