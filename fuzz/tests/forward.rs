//! What rules make of hostile mail: it is asked about and sent on in every form, within bounds, and what is
//! sent can be read.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use postway_domain::{
    NamedAddress,
    rule::{ForwardForm, RuleCondition, RuleContent, TextMatch},
};
use postway_fuzz::{InputGenerator, feed_from, mail::HostileMail, try_seeds};
use postway_inbound::offline::{OfflineRule, forward};
use postway_mime::reader::ReadMail;
use rand::{Rng, rngs::StdRng};

/// A byte of text is three in UTF-8 and nine where all are quoted; html is sent as text beside it.
const GROWTH_MAX: usize = 16;
/// What a forward has beside the mail.
const BESIDE_BYTES_MAX: usize = 64 * 1024;
/// The longest answer to a condition.
const ANSWER_BYTES_MAX: usize = 2_000;
/// Within this many trials, some reach an action.
const ENOUGH: u64 = 200;

fn people(addresses: &[&str]) -> Vec<NamedAddress> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

fn sent(raw: &[u8], form: ForwardForm) -> Result<Vec<u8>, String> {
    forward(raw, form, &people(&["support@example.net"])[0], &people(&["Bob <bob@example.com>"]))
}

/// The lines of a mail, whatever ends them: on the wire that is CRLF.
fn lines(raw: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(raw.len());
    let mut after_cr = false;
    for &byte in raw.trim_ascii_end() {
        match byte {
            b'\n' if after_cr => {}
            b'\r' | b'\n' => lines.push(b'\n'),
            byte => lines.push(byte),
        }
        after_cr = byte == b'\r';
    }
    lines
}

#[test]
fn hostile_mail_is_sent_on_in_every_form_within_bounds() {
    let composed = Cell::new(0);
    let mails = feed_from(&HostileMail, |raw| {
        for form in [ForwardForm::Redirect, ForwardForm::Compose, ForwardForm::Attachment] {
            let sent = sent(raw, form).unwrap_or_else(|why| panic!("{form:?}: {why}"));
            assert!(
                sent.len() <= raw.len() * GROWTH_MAX + BESIDE_BYTES_MAX,
                "{form:?}: {} of {}",
                sent.len(),
                raw.len()
            );
            let mail = ReadMail::read(&sent);
            let header = mail.root().header();
            assert!(header.get(b"x-postway-forwarded").is_some(), "{form:?}");
            assert!(header.get(b"x-postway-id").is_some() || form == ForwardForm::Redirect);
            if form == ForwardForm::Attachment {
                let inside = mail.part(*mail.roles().attachments.last().unwrap()).unwrap().decoded();
                assert!(lines(&inside.bytes) == lines(raw), "it is whole inside");
            }
            let last = mail.roles().attachments.last().and_then(|index| mail.part(*index)?.file_name());
            if form == ForwardForm::Compose && last.as_deref() != Some("original.eml") {
                composed.set(composed.get() + 1);
            }
        }
    });
    println!("{mails} mails, {} composed anew", composed.get());
    assert!(mails < ENOUGH || composed.get() > 0, "none was composed anew");
}

const PATTERNS: &[&str] = &[
    "(a+)+$",
    "(?i)content-(?<what>\\w+)",
    "(?:a?){50}a{50}",
    "[^\\n]*b[a-z ]{0,200}c$",
    "(?s).*\\pL.*x",
    "^$",
    "(?<one>.)(?<two>.)?",
    "\\bx\\b|y|z{1,30}",
];

fn text(random: &mut StdRng) -> TextMatch {
    let pattern = PATTERNS[random.random_range(0..PATTERNS.len())].to_owned();
    match random.random_range(0..4) {
        0 => TextMatch::Contains("B".to_owned()),
        1 => TextMatch::Equals("<i>".to_owned()),
        _ => TextMatch::Regex(pattern),
    }
}

fn condition(random: &mut StdRng) -> RuleCondition {
    let names = ["Content-Type", "Subject", "X-A", "Received", "to", "Content-ID"];
    match random.random_range(0..8) {
        0 => RuleCondition::From(text(random)),
        1 => RuleCondition::To(text(random)),
        2 => RuleCondition::Cc(text(random)),
        3 => RuleCondition::Subject(text(random)),
        4 | 5 => RuleCondition::Header {
            name: names[random.random_range(0..names.len())].to_owned(),
            value: random.random_bool(0.8).then(|| text(random)),
        },
        6 => RuleCondition::Size { min: Some(random.random_range(0..100_000)), max: None },
        _ => RuleCondition::HasAttachment { value: random.random_bool(0.5) },
    }
}

#[test]
fn conditions_of_rules_are_asked_of_hostile_mail_within_bounds() {
    let held = Cell::new(0);
    let trials = try_seeds(|random| {
        let raw = HostileMail.input(random);
        let conditions: Vec<RuleCondition> =
            (0..random.random_range(1..20)).map(|_| condition(random)).collect();
        let count = conditions.len();
        let content = RuleContent { conditions, actions: Vec::new(), follow_up: None };
        let answers = OfflineRule::new("r".parse().unwrap(), content).ask(&raw).unwrap();
        assert_eq!(answers.len(), count);
        assert!(answers.iter().all(|(_, why)| !why.is_empty() && why.len() <= ANSWER_BYTES_MAX));
        held.set(held.get() + answers.iter().filter(|(holds, _)| *holds).count());
    });
    println!("{trials} rules, {} conditions held", held.get());
    assert!(trials < ENOUGH || held.get() > 0, "no condition ever held");
}
