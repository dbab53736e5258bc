//! The sources of templates: Resend's `{{{NAME}}}` as our `{{ NAME }}`, and back.
//!
//! Everything but a variable is text there, so what would have a meaning here is quoted. A fallback becomes a
//! default in the source, so that a message needs nothing but its template.

use serde_json::{Map, Value};

/// What begins a tag in our sources.
const MARKS: [&str; 3] = ["{{", "{%", "{#"];

/// Translates a source. `fallbacks` has the values for variables that a message does not set.
pub(super) fn ours(theirs: &str, fallbacks: &Map<String, Value>) -> String {
    let mut made = String::with_capacity(theirs.len() + 64);
    let mut rest = theirs;
    while let Some(at) = MARKS.iter().filter_map(|mark| rest.find(mark)).min() {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        match variable(rest) {
            Some((name, fallback, after)) => {
                let declared = fallbacks.get(name).filter(|value| !value.is_null()).cloned();
                made.push_str(&match declared.or_else(|| fallback.map(Value::from)) {
                    Some(value) => format!("{{{{ {name} | default({}) }}}}", literal(&value)),
                    None => format!("{{{{ {name} }}}}"),
                });
                rest = after;
            }
            None => {
                made.push_str(&format!("{{{{ \"{}\" }}}}", &rest[..2]));
                rest = &rest[2..];
            }
        }
    }
    made.push_str(rest);
    made
}

/// Translates a source back; what cannot be expressed there stays as it is.
pub(super) fn theirs(ours: &str) -> String {
    let mut made = String::with_capacity(ours.len());
    let mut rest = ours;
    while let Some((before, after)) = rest.split_once("{{") {
        made.push_str(before);
        let Some((inside, after)) = after.split_once("}}") else {
            made.push_str("{{");
            rest = after;
            continue;
        };
        let said = inside.trim();
        let quoted = said.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let name = said.split_once('|').map_or(said, |(name, _)| name).trim();
        let is_plain = said == name || said[name.len()..].trim_start().starts_with("| default(");
        match quoted.filter(|mark| MARKS.contains(mark)) {
            Some(mark) => made.push_str(mark),
            None if is_plain && is_name(name) => made.push_str(&format!("{{{{{{{name}}}}}}}")),
            None => made.push_str(&format!("{{{{{inside}}}}}")),
        }
        rest = after;
    }
    made.push_str(rest);
    made
}

/// A variable at the beginning of a text, `{{{NAME}}}` or `{{{NAME|fallback}}}`: its name, its fallback and
/// the rest.
fn variable(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let (inside, after) = text.strip_prefix("{{{")?.split_once("}}}")?;
    let (name, fallback) = match inside.split_once('|') {
        Some((name, fallback)) => (name.trim(), Some(fallback)),
        None => (inside.trim(), None),
    };
    is_name(name).then_some((name, fallback, after))
}

/// Whether it can be a variable's name.
pub(super) fn is_name(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    begins && name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A value as a literal of our source, without braces.
fn literal(value: &Value) -> String {
    value.to_string().replace('{', "\\u007b").replace('}', "\\u007d")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fallbacks() -> Map<String, Value> {
        json!({"NAME": "you \"}}\"", "PRICE": 25, "CODE": null}).as_object().unwrap().clone()
    }

    #[test]
    fn variables_are_ours_and_the_rest_is_text() {
        for (said, made) in [
            ("<p>{{{CODE}}}</p>", "<p>{{ CODE }}</p>"),
            ("{{{ PRICE }}}", "{{ PRICE | default(25) }}"),
            ("{{{NAME}}}", r#"{{ NAME | default("you \"\u007d\u007d\"") }}"#),
            ("{{{OTHER|there}}}", r#"{{ OTHER | default("there") }}"#),
            ("a{#b{c}} {% x %}", r#"a{{ "{#" }}b{c}} {{ "{%" }} x %}"#),
            ("{{NAME}} {{{no name}}} {{{", r#"{{ "{{" }}NAME}} {{ "{{" }}{no name}}} {{ "{{" }}{"#),
            ("", ""),
        ] {
            assert_eq!(ours(said, &fallbacks()), made, "{said}");
        }
    }

    #[test]
    fn what_was_made_reads_back_as_it_was_said() {
        for said in
            ["<p>{{{CODE}}} {{{PRICE}}}</p>", "{{{NAME}}}", "a{#b{c}} {% x %}", "{{NAME}} {{{no name}}} {{{"]
        {
            assert_eq!(theirs(&ours(said, &fallbacks())), said);
        }
        for native in ["{% if a %}{{ a.b | upper }}{% endif %}", "{{ open", "{{ a | upper }}"] {
            assert_eq!(theirs(native), native, "it cannot be said there");
        }
    }
}
