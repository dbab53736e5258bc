//! Conditions, ready to be asked.
//!
//! Patterns are matched in time linear in the text, and the pattern, the machine made of it and what it is matched with are bounded:
//! the worst pattern takes some tenths of a second for one text, and whether to stop is asked before each. Text is
//! compared without regard to case, but for patterns, which say `(?i)` where they mean it.

use std::collections::BTreeSet;

use postway_domain::{
    EmailAddress,
    rule::{Condition, RuleContent, TextMatch},
};
use regex::{Regex, RegexBuilder};

use super::{WorkStop, template::Captures};
use crate::mail::{Mail, Person, bounded};

/// The longest text that a condition compares with, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1_000;
/// The largest machine that a pattern may become.
const REGEX_BYTES_MAX: usize = 64 * 1024;
/// How much of a field is compared.
pub(crate) const COMPARED_BYTES_MAX: usize = 8 * 1024;
/// How much of a capture is kept.
const CAPTURE_CHARS_MAX: usize = 500;
/// How much of what was looked at is told.
const TOLD_CHARS_MAX: usize = 80;

/// Why a condition cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConditionError(pub String);

/// One condition.
pub(crate) enum Ready {
    People(&'static str, Comparison),
    Subject(Comparison),
    Header(String, Option<Comparison>),
    Size(Option<u64>, Option<u64>),
    HasAttachment(bool),
}

/// How text is compared.
pub(crate) enum Comparison {
    Contains(String),
    Equals(String),
    Pattern(Box<Regex>),
}

impl Ready {
    /// Makes a condition ready, or says what is wrong with it.
    pub(crate) fn new(condition: &Condition) -> Result<Self, ConditionError> {
        Ok(match condition {
            Condition::From(text) => Self::People("From", Comparison::new(text)?),
            Condition::To(text) => Self::People("To", Comparison::new(text)?),
            Condition::Cc(text) => Self::People("Cc", Comparison::new(text)?),
            Condition::Subject(text) => Self::Subject(Comparison::new(text)?),
            Condition::Header { name, value } => {
                if postway_mime::check_header(name, "").is_err() {
                    return Err(ConditionError(format!(
                        "{:?} is not the name of a header field",
                        bounded(name, 80)
                    )));
                }
                Self::Header(name.clone(), value.as_ref().map(Comparison::new).transpose()?)
            }
            Condition::Size { min: None, max: None } => {
                return Err(ConditionError("give min, max or both, in bytes".to_owned()));
            }
            Condition::Size { min: Some(min), max: Some(max) } if min > max => {
                return Err(ConditionError("min is greater than max: no mail has such a size".to_owned()));
            }
            Condition::Size { min, max } => Self::Size(*min, *max),
            Condition::HasAttachment { value } => Self::HasAttachment(*value),
        })
    }

    /// Whether it has a pattern.
    pub(crate) fn has_pattern(&self) -> bool {
        match self {
            Self::People(_, comparison) | Self::Subject(comparison) | Self::Header(_, Some(comparison)) => {
                matches!(comparison, Comparison::Pattern(_))
            }
            Self::Header(_, None) | Self::Size(..) | Self::HasAttachment(_) => false,
        }
    }

    /// Whether it holds, and why or why not; adds what its pattern captures. Where the work is stopped meanwhile, the answer says
    /// nothing.
    pub(crate) fn ask(&self, mail: &Mail<'_>, captures: &mut Captures, stop: &WorkStop) -> (bool, String) {
        let mut compare = |what: &str, texts: &[String], comparison: &Comparison| {
            compare(what, texts, comparison, captures, stop)
        };
        match self {
            Self::People(field, comparison) => {
                let people = mail.people(field);
                let texts: Vec<String> = people.iter().flat_map(ways).collect();
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
                let told = match (has, attached.passed.iter().next()) {
                    (true, _) => "it has attachments".to_owned(),
                    (false, None) => "it has no attachment".to_owned(),
                    (false, Some(limit)) => format!("it has no attachment; not looked at: {limit}"),
                };
                (has == *wanted, told)
            }
        }
    }
}

impl Comparison {
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
                // The end of what is compared is not the end of the text, and no pattern shall take it for that.
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

    fn told(&self) -> String {
        match self {
            Self::Contains(part) => format!("contains {:?}", bounded(part, TOLD_CHARS_MAX)),
            Self::Equals(whole) => format!("equals {:?}", bounded(whole, TOLD_CHARS_MAX)),
            Self::Pattern(regex) => format!("matches {:?}", bounded(regex.as_str(), TOLD_CHARS_MAX)),
        }
    }
}

/// The names that a rule's patterns capture.
pub(crate) fn captured_names(content: &RuleContent) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for condition in &content.conditions {
        let text = match condition {
            Condition::From(text) | Condition::To(text) | Condition::Cc(text) | Condition::Subject(text) => {
                text
            }
            Condition::Header { value: Some(text), .. } => text,
            Condition::Header { value: None, .. }
            | Condition::Size { .. }
            | Condition::HasAttachment { .. } => continue,
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
        // The last line of a syntax error says what is wrong; those before it draw where.
        other => {
            let text = other.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").trim().to_owned();
            ConditionError(format!("is not a pattern: {why}"))
        }
    })
}

/// The ways in which somebody can be meant: by address, in either spelling of its domain, by name, by both.
fn ways(person: &Person) -> Vec<String> {
    let mut ways: Vec<String> = EmailAddress::spellings_of(&person.address).collect();
    if let Some(name) = &person.name {
        ways.push(name.clone());
        ways.push(person.full().into_owned());
    }
    ways
}

fn compare(
    what: &str,
    texts: &[String],
    comparison: &Comparison,
    captures: &mut Captures,
    stop: &WorkStop,
) -> (bool, String) {
    let mut asked = texts.iter().take_while(|_| !stop.is_stopped());
    let holds = asked.any(|text| comparison.holds(text, captures));
    let told = comparison.told();
    match (holds, texts.first()) {
        (true, _) => (true, format!("{what} {told}")),
        (false, Some(text)) if !text.is_empty() => {
            (false, format!("{what} is {:?}: not one that {told}", bounded(text, TOLD_CHARS_MAX)))
        }
        (false, _) => (false, format!("{what} is missing or empty: not one that {told}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(condition: serde_json::Value, raw: &str) -> (bool, Captures) {
        let condition: Condition = serde_json::from_value(condition).unwrap();
        let mut captures = Captures::new();
        let ready = Ready::new(&condition).unwrap();
        let (holds, why) = ready.ask(&Mail::new(raw.as_bytes()), &mut captures, &WorkStop::default());
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
            let condition: Condition = serde_json::from_value(condition).unwrap();
            let error = Ready::new(&condition).err().expect("it cannot be asked").to_string();
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

    /// Patterns that keep as many states at once as the bounds allow.
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
        let mail = Mail::new(raw.as_bytes());
        for pattern in worst_patterns() {
            let ready = |field: &str| {
                let condition = json!({"field": field, "regex": pattern.clone()});
                Ready::new(&serde_json::from_value(condition).unwrap()).unwrap()
            };
            let began = std::time::Instant::now();
            ready("subject").ask(&mail, &mut Captures::new(), &WorkStop::default());
            let took = began.elapsed();
            assert!(took < std::time::Duration::from_secs(10), "{pattern}: {took:?}");
            let (condition, stop) = (ready("to"), WorkStop::default());
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
