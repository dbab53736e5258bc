//! Sendmail and those who took its headings: a list of addresses, then a transcript of the session.
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
//! Versions before 8 have the transcript only.

use super::super::address;
use super::super::bytes::{after, contains, lines, starts_with, trim};
use super::super::dsn::RECIPIENTS_MAX;
use super::super::partial_finding::Draft;
use super::super::report::Action;
use super::Text;

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

/// The most recipients for whom a transcript is searched one by one.
const TRANSCRIPT_RECIPIENTS_MAX: usize = 32;

/// Where we are in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Addresses,
    Transcript,
}

pub(super) fn recognise(text: &Text<'_>) -> Option<Vec<Draft>> {
    if !text.sender.is_machine() || !(text.says_any(TRANSCRIPT) || text.says_any(ADDRESSES)) {
        return None;
    }
    let mut drafts: Vec<Draft> = Vec::new();
    let mut transcript = Vec::new();
    let mut section = Section::Before;
    let mut action = Action::Failed;
    for line in lines(text.report) {
        let words = trim(line);
        if words.starts_with(b"--")
            || words.starts_with(b"|--")
            || starts_with(words, b"the following addresses did not")
        {
            if ADDRESSES.iter().any(|heading| contains(words, heading)) {
                section = Section::Addresses;
                action = if contains(words, b"successful") {
                    Action::Delivered
                } else if contains(words, b"transient") {
                    Action::Delayed
                } else {
                    Action::Failed
                };
            } else if TRANSCRIPT.iter().any(|heading| contains(words, heading)) {
                section = Section::Transcript;
            }
            continue;
        }
        match section {
            Section::Before => {}
            Section::Addresses => read_address(words, action, &mut drafts),
            Section::Transcript => transcript.push(words),
        }
    }
    read_transcript(&transcript, &mut drafts);
    Some(drafts)
}

/// A line of the list of addresses.
fn read_address(words: &[u8], action: Action, drafts: &mut Vec<Draft>) {
    if starts_with(words, b"(reason:") || starts_with(words, b"(expanded from:") {
        let Some(draft) = drafts.last_mut() else { return };
        match after(words, b"expanded from:") {
            Some(from) => {
                let from = address::first(from);
                match from {
                    Some(from) if draft.address.is_empty() => draft.address = from,
                    from => draft.original_address = from,
                }
            }
            None => {
                let reason = after(words, b"reason:").unwrap_or_default();
                draft.add(trim(reason.strip_suffix(b")").unwrap_or(reason)));
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
            let mut draft = Draft::of(String::new(), words);
            draft.program = true;
            drafts.push(draft);
        } else if let Some(draft) = drafts.last_mut() {
            draft.add(words);
        }
        return;
    };
    if drafts.len() >= RECIPIENTS_MAX || drafts.iter().any(|draft| draft.address == found.address) {
        return;
    }
    let rest = trim(&words[found.end..]);
    let rest = rest.strip_prefix(b">").unwrap_or(rest);
    let mut draft = Draft::of(found.address, trim(rest));
    if address::first(rest).is_some() {
        draft.words.clear();
    }
    draft.action = Some(action);
    drafts.push(draft);
}

/// The transcript: what was said to whom. The reply to a named recipient is theirs, any other is everybody's.
fn read_transcript(transcript: &[&[u8]], drafts: &mut Vec<Draft>) {
    if drafts.is_empty() {
        // Old versions: <<< 550 <a@example.org>, no such user / 554 <a@example.org>... words
        for words in transcript {
            let asked = starts_with(words, b">>> rcpt to");
            let told = words.first().is_some_and(u8::is_ascii_digit);
            if (asked || told)
                && drafts.len() < RECIPIENTS_MAX
                && let Some(address) = address::first(words)
                && !drafts.iter().any(|draft| draft.address == address)
            {
                let mut draft = Draft::of(address, b"");
                draft.action = Some(Action::Failed);
                drafts.push(draft);
            }
        }
    }
    let single = drafts.len() == 1;
    if drafts.len() > TRANSCRIPT_RECIPIENTS_MAX {
        return;
    }
    for draft in drafts.iter_mut().filter(|draft| !draft.words.iter().any(u8::is_ascii_digit)) {
        if !single && let Some(part) = part_of(transcript, &draft.address) {
            part.iter().for_each(|words| draft.add(words));
            continue;
        }
        let mut asked = single;
        let mut words_of = Vec::new();
        for words in transcript {
            let named = contains(words, draft.address.as_bytes());
            if words.starts_with(b">>>") {
                asked = named || single || !starts_with(words, b">>> rcpt");
            }
            if named || (asked && (words.starts_with(b"<<<") || words.starts_with(b">>>") || single)) {
                words_of.push(*words);
            }
        }
        for words in words_of {
            draft.add(words);
        }
    }
}

/// The part of a transcript that ends with the line about an address, `554 <a@example.org>... words`: what was said since the line about
/// another one, and by the last server that was talked to. None where no such line names it.
fn part_of<'t, 'a>(transcript: &'t [&'a [u8]], address: &str) -> Option<&'t [&'a [u8]]> {
    let is_about = |words: &[u8]| {
        matches!(words, [b'4' | b'5', b'0'..=b'9', b'0'..=b'9', b' ' | b'-', ..])
            && address::first(words).is_some()
    };
    let end = transcript.iter().position(|words| is_about(words) && contains(words, address.as_bytes()))?;
    let begin = transcript[..end].iter().rposition(|words| is_about(words)).map_or(0, |last| last + 1);
    // What another server said before is not about this address.
    let server = transcript[begin..end].iter().rposition(|words| contains(words, b"while talking to"));
    Some(&transcript[begin + server.unwrap_or_default()..=end])
}
