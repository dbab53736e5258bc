//! Conditions that are ready to be checked.
//!
//! Patterns match in time linear in the text, and the pattern, its automaton and the text are bounded: the
//! worst pattern takes some tenths of a second for one text, and the stop signal is checked before each text.
//! Text is compared without regard to case, except by patterns, which say `(?i)` if they want that.

use std::collections::BTreeSet;

use postway_domain::{
    EmailAddress,
    rule::{RuleCondition, RuleContent, TextMatch},
};
use regex::{Regex, RegexBuilder};

use super::{WorkStopSignal, template::Captures};
use crate::mail::{HeaderPerson, ParsedMail, bounded};

/// The longest text that a condition compares with, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1_000;
/// The largest automaton of a pattern, in bytes.
const REGEX_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a field that are compared.
pub(crate) const COMPARED_BYTES_MAX: usize = 8 * 1024;
/// The most characters of a capture.
const CAPTURE_CHARS_MAX: usize = 500;
/// The most characters of a compared text that an explanation quotes.
const QUOTED_CHARS_MAX: usize = 80;

/// Why a condition cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConditionError(pub String);

/// One condition.
pub(crate) enum ReadyCondition {
    People(&'static str, TextComparison),
    Subject(TextComparison),
    Header(String, Option<TextComparison>),
    Size(Option<u64>, Option<u64>),
    HasAttachment(bool),
}

/// How text is compared.
pub(crate) enum TextComparison {
    Contains(String),
    Equals(String),
    Pattern(Box<Regex>),
}

impl ReadyCondition {
    /// Prepares a condition, or says what is wrong with it.
    pub(crate) fn new(condition: &RuleCondition) -> Result<Self, ConditionError> {
        Ok(match condition {
            RuleCondition::From(text) => Self::People("From", TextComparison::new(text)?),
            RuleCondition::To(text) => Self::People("To", TextComparison::new(text)?),
            RuleCondition::Cc(text) => Self::People("Cc", TextComparison::new(text)?),
            RuleCondition::Subject(text) => Self::Subject(TextComparison::new(text)?),
            RuleCondition::Header { name, value } => {
                if postway_mime::check_header(name, "").is_err() {
                    return Err(ConditionError(format!(
                        "{:?} is not the name of a header field",
                        bounded(name, 80)
                    )));
                }
                Self::Header(name.clone(), value.as_ref().map(TextComparison::new).transpose()?)
            }
            RuleCondition::Size { min: None, max: None } => {
                return Err(ConditionError("give min, max or both, in bytes".to_owned()));
            }
            RuleCondition::Size { min: Some(min), max: Some(max) } if min > max => {
                return Err(ConditionError("min is greater than max: no mail has such a size".to_owned()));
            }
            RuleCondition::Size { min, max } => Self::Size(*min, *max),
            RuleCondition::HasAttachment { value } => Self::HasAttachment(*value),
        })
    }

    /// Whether it has a pattern.
    pub(crate) fn has_pattern(&self) -> bool {
        match self {
            Self::People(_, comparison) | Self::Subject(comparison) | Self::Header(_, Some(comparison)) => {
                matches!(comparison, TextComparison::Pattern(_))
            }
            Self::Header(_, None) | Self::Size(..) | Self::HasAttachment(_) => false,
        }
    }

    /// Whether the condition holds, and why; adds what its pattern captures. If the work is stopped
    /// meanwhile, the result means nothing.
    pub(crate) fn ask(
        &self,
        mail: &ParsedMail<'_>,
        captures: &mut Captures,
        stop: &WorkStopSignal,
    ) -> (bool, String) {
        let mut compare = |what: &str, texts: &[String], comparison: &TextComparison| {
            compare(what, texts, comparison, captures, stop)
        };
        match self {
            Self::People(field, comparison) => {
                let people = mail.people(field);
                let texts: Vec<String> = people.iter().flat_map(spellings).collect();
                compare(&field.to_lowercase(), &texts, comparison)
            }
            Self::Subject(comparison) => {
                let subject = [mail.subject().unwrap_or_default()];
                compare("subject", &subject, comparison)
            }
            Self::Header(name, Some(comparison)) => {
                let texts: Vec<String> = mail.texts(name).collect();
                compare(&format!("header {name}"), &texts, comparison)
            }
            Self::Header(name, None) => match mail.count(name) {
                0 => (false, format!("there is no header {name}")),
                _ => (true, format!("header {name} is there")),
            },
            Self::Size(min, max) => {
                let size = mail.raw().len() as u64;
                let holds = min.is_none_or(|min| size >= min) && max.is_none_or(|max| size <= max);
                (holds, format!("it has {size} bytes"))
            }
            Self::HasAttachment(wanted) => {
                let attached = mail.attached();
                let has = !attached.names.is_empty();
                let described = match (has, attached.passed.iter().next()) {
                    (true, _) => "it has attachments".to_owned(),
                    (false, None) => "it has no attachment".to_owned(),
                    (false, Some(limit)) => format!("it has no attachment; not read: {limit}"),
                };
                (has == *wanted, described)
            }
        }
    }
}

impl TextComparison {
    fn new(text: &TextMatch) -> Result<Self, ConditionError> {
        let (TextMatch::Contains(given) | TextMatch::Equals(given) | TextMatch::Regex(given)) = text;
        if given.is_empty() && !matches!(text, TextMatch::Equals(_)) {
            return Err(ConditionError("is empty: say what to look for".to_owned()));
        }
        if given.len() > TEXT_BYTES_MAX {
            return Err(ConditionError(format!("is longer than {TEXT_BYTES_MAX} bytes: shorten it")));
        }
        Ok(match text {
            TextMatch::Contains(given) => Self::Contains(given.to_lowercase()),
            TextMatch::Equals(given) => Self::Equals(given.trim().to_lowercase()),
            TextMatch::Regex(given) => Self::Pattern(Box::new(pattern(given)?)),
        })
    }

    fn holds(&self, text: &str, captures: &mut Captures) -> bool {
        let compared = &text[..text.floor_char_boundary(COMPARED_BYTES_MAX)];
        let is_cut = compared.len() < text.len();
        let text = compared;
        match self {
            Self::Contains(part) => text.to_lowercase().contains(part),
            Self::Equals(whole) => text.trim().to_lowercase() == *whole,
            Self::Pattern(regex) => {
                // The end of the compared part is not the end of the text, and no pattern may treat it so.
                let within = |found: &regex::Captures<'_>| {
                    !is_cut || found.get(0).is_some_and(|whole| whole.end() < text.len())
                };
                let Some(found) = regex.captures(text).filter(within) else { return false };
                for name in regex.capture_names().flatten() {
                    if let Some(group) = found.name(name) {
                        captures.insert(name.to_owned(), bounded(group.as_str(), CAPTURE_CHARS_MAX));
                    }
                }
                true
            }
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Contains(part) => format!("contains {:?}", bounded(part, QUOTED_CHARS_MAX)),
            Self::Equals(whole) => format!("equals {:?}", bounded(whole, QUOTED_CHARS_MAX)),
            Self::Pattern(regex) => format!("matches {:?}", bounded(regex.as_str(), QUOTED_CHARS_MAX)),
        }
    }
}

/// The names that a rule's patterns capture.
pub(crate) fn captured_names(content: &RuleContent) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for condition in &content.conditions {
        let text = match condition {
            RuleCondition::From(text)
            | RuleCondition::To(text)
            | RuleCondition::Cc(text)
            | RuleCondition::Subject(text) => text,
            RuleCondition::Header { value: Some(text), .. } => text,
            RuleCondition::Header { value: None, .. }
            | RuleCondition::Size { .. }
            | RuleCondition::HasAttachment { .. } => continue,
        };
        if let TextMatch::Regex(given) = text
            && let Ok(regex) = pattern(given)
        {
            names.extend(regex.capture_names().flatten().map(str::to_owned));
        }
    }
    names
}

fn pattern(given: &str) -> Result<Regex, ConditionError> {
    let mut builder = RegexBuilder::new(given);
    builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).nest_limit(50);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            ConditionError("is a pattern too large to be used: make it simpler".to_owned())
        }
        // The last line of a syntax error says what is wrong; the lines before it point to the place.
        other => {
            let text = other.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").trim().to_owned();
            ConditionError(format!("is not a pattern: {why}"))
        }
    })
}

/// The texts by which a person may be matched: the address in either spelling of its domain, the name, and
/// both.
fn spellings(person: &HeaderPerson) -> Vec<String> {
    let mut spellings: Vec<String> = EmailAddress::spellings_of(&person.address).collect();
    if let Some(name) = &person.name {
        spellings.push(name.clone());
        spellings.push(person.full().into_owned());
    }
    spellings
}

fn compare(
    what: &str,
    texts: &[String],
    comparison: &TextComparison,
    captures: &mut Captures,
    stop: &WorkStopSignal,
) -> (bool, String) {
    let mut asked = texts.iter().take_while(|_| !stop.is_stopped());
    let holds = asked.any(|text| comparison.holds(text, captures));
    let described = comparison.describe();
    match (holds, texts.first()) {
        (true, _) => (true, format!("{what} {described}")),
        (false, Some(text)) if !text.is_empty() => {
            (false, format!("{what} is {:?}: not one that {described}", bounded(text, QUOTED_CHARS_MAX)))
        }
        (false, _) => (false, format!("{what} is missing or empty: not one that {described}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(condition: serde_json::Value, raw: &str) -> (bool, Captures) {
        let condition: RuleCondition = serde_json::from_value(condition).unwrap();
        let mut captures = Captures::new();
        let ready = ReadyCondition::new(&condition).unwrap();
        let (holds, why) =
            ready.ask(&ParsedMail::new(raw.as_bytes()), &mut captures, &WorkStopSignal::default());
        assert!(!why.is_empty());
        (holds, captures)
    }

    const RAW: &str = "From: Ada Lovelace <Ada@Example.org>\nTo: shop@example.net\nSubject: Order 17 for ACME\n\
        List-Id: <news.example.net>\n\nhello\n";

    #[test]
    fn people_are_found_by_address_name_or_both_whatever_the_case() {
        for (comparison, holds) in [
            (json!({"field": "from", "equals": "ada@example.ORG"}), true),
            (json!({"field": "from", "equals": "ada lovelace"}), true),
            (json!({"field": "from", "contains": "lovelace <ADA"}), true),
            (json!({"field": "from", "equals": "ada"}), false),
            (json!({"field": "to", "contains": "@example.net"}), true),
            (json!({"field": "cc", "contains": "@"}), false),
        ] {
            assert_eq!(ask(comparison.clone(), RAW).0, holds, "{comparison}");
        }
    }

    #[test]
    fn a_pattern_captures_its_named_groups() {
        let (holds, captures) =
            ask(json!({"field": "subject", "regex": "Order (?<order>\\d+)(?: for (?<who>\\w+))?"}), RAW);
        assert!(holds);
        assert_eq!(
            captures.into_iter().collect::<Vec<_>>(),
            [("order".into(), "17".into()), ("who".into(), "ACME".into())]
        );
        assert!(!ask(json!({"field": "subject", "regex": "order"}), RAW).0, "patterns mind the case");
    }

    #[test]
    fn headers_sizes_and_attachments_are_asked_about() {
        for (condition, holds) in [
            (json!({"field": "header", "name": "list-id"}), true),
            (json!({"field": "header", "name": "List-ID", "value": {"contains": "news."}}), true),
            (json!({"field": "header", "name": "X-None"}), false),
            (json!({"field": "size", "min": 10, "max": 1000}), true),
            (json!({"field": "size", "max": 10}), false),
            (json!({"field": "has_attachment", "value": false}), true),
        ] {
            assert_eq!(ask(condition.clone(), RAW).0, holds, "{condition}");
        }
    }

    #[test]
    fn a_condition_that_cannot_be_asked_says_why() {
        for (condition, why) in [
            (json!({"field": "subject", "regex": "(unclosed"}), "unclosed group"),
            (json!({"field": "subject", "regex": "(?:x{1000}){1000}"}), "too large"),
            (json!({"field": "subject", "contains": ""}), "is empty"),
            (json!({"field": "subject", "equals": "x".repeat(2_000)}), "longer than"),
            (json!({"field": "header", "name": "a b"}), "header field"),
            (json!({"field": "size"}), "min, max"),
            (json!({"field": "size", "min": 2, "max": 1}), "no mail"),
        ] {
            let condition: RuleCondition = serde_json::from_value(condition).unwrap();
            let error = ReadyCondition::new(&condition).err().expect("it cannot be asked").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn of_a_field_no_more_is_compared_than_is_said() {
        let with = |before: usize| format!("Subject: {}needle\n\n", "x".repeat(before));
        for comparison in [
            json!({"field": "subject", "contains": "needle"}),
            json!({"field": "subject", "regex": "needle"}),
        ] {
            assert!(ask(comparison.clone(), &with(COMPARED_BYTES_MAX - 6)).0);
            assert!(!ask(comparison, &with(COMPARED_BYTES_MAX - 5)).0);
        }
    }

    /// Patterns with as many states at once as the limits allow.
    fn worst_patterns() -> impl Iterator<Item = String> {
        let states = (1..200).rev().map(|times| times * 10);
        let pattern = |times: usize| format!("(?-u)^(?:a?b?c?d?){{{times}}}(?:x|y)+z$");
        let largest = states.map(pattern).find(|given| super::pattern(given).is_ok());
        let words = (1..200).rev().map(|times| format!(r"(?:\w{{1,{times}}}\s?){{1,3}}!$"));
        largest.into_iter().chain(words.into_iter().find(|given| super::pattern(given).is_ok()))
    }

    #[test]
    fn the_worst_pattern_ends_soon_and_stops_when_it_is_told_to() {
        let people = format!("\"{}\" <a@example.org>, ", "abcd".repeat(60)).repeat(100);
        let raw = format!("Subject: {}\nTo: {}b@example.org\n\n", "abcd".repeat(8_000), people);
        let mail = ParsedMail::new(raw.as_bytes());
        for pattern in worst_patterns() {
            let ready = |field: &str| {
                let condition = json!({"field": field, "regex": pattern.clone()});
                ReadyCondition::new(&serde_json::from_value(condition).unwrap()).unwrap()
            };
            let began = std::time::Instant::now();
            ready("subject").ask(&mail, &mut Captures::new(), &WorkStopSignal::default());
            let took = began.elapsed();
            assert!(took < std::time::Duration::from_secs(10), "{pattern}: {took:?}");
            let (condition, stop) = (ready("to"), WorkStopSignal::default());
            let began = std::time::Instant::now();
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| condition.ask(&mail, &mut Captures::new(), &stop));
                stop.stop();
                asked.join().unwrap();
            });
            assert!(began.elapsed() < took + std::time::Duration::from_secs(5), "{pattern}");
        }
    }

    #[test]
    fn a_costly_pattern_takes_linear_time() {
        let began = std::time::Instant::now();
        for letters in [8_000, 16_000] {
            let raw = format!("Subject: {}!\n\n", "a".repeat(letters));
            assert!(!ask(json!({"field": "subject", "regex": "^(a+)+$"}), &raw).0);
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(30));
    }
}
