//! Compares what a file wants with what the server shows. Only fields that the file has are compared.

use std::collections::BTreeSet;

use postway_domain::{
    Time,
    address_pattern::{AddressPattern, DomainPattern},
    key::IpNetwork,
    message::MessagePriority,
};
use serde_json::{Map, Value};

/// The longest value that is shown.
const SHOWN_CHARS_MAX: usize = 60;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference {
    /// Its path.
    pub field: String,
    /// What the server shows.
    pub before: Value,
    /// What the file wants.
    pub after: Value,
}

impl FieldDifference {
    /// For people, on one line.
    pub fn render(&self) -> String {
        format!("{}: {} → {}", self.field, shown(&self.before), shown(&self.after))
    }
}

/// The fields of `wanted` that differ from what is `shown`.
pub fn differences(wanted: &Map<String, Value>, shown: &Map<String, Value>) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    compare("", wanted, shown, &mut found);
    found
}

fn compare(
    place: &str,
    wanted: &Map<String, Value>,
    shown: &Map<String, Value>,
    found: &mut Vec<FieldDifference>,
) {
    for (name, after) in wanted {
        let field = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        match (after, shown.get(name)) {
            (Value::Object(after), Some(Value::Object(before))) => compare(&field, after, before, found),
            (after, before) => {
                let before = before.cloned().unwrap_or(Value::Null);
                if !is_same(name, after, &before) {
                    found.push(FieldDifference { field, before, after: after.clone() });
                }
            }
        }
    }
}

/// Whether two values of the field `name` mean the same. Numbers may be written in several ways, an empty list
/// is the same as none, a text as a list of it alone, and the order of texts in a list means nothing.
fn is_same(name: &str, after: &Value, before: &Value) -> bool {
    match (after, before) {
        (Value::Number(after), Value::Number(before)) => after.as_f64() == before.as_f64(),
        (Value::Array(after), Value::Null) => after.is_empty(),
        // Limits (`per_minute`) that are not set are shown as 0.
        (Value::Null, Value::Number(before)) if name.starts_with("per_") => before.as_u64() == Some(0),
        (Value::Array(after), Value::Array(before)) if after.iter().all(Value::is_string) => {
            let set = |list: &[Value]| list.iter().map(|one| plain_form(name, one)).collect::<BTreeSet<_>>();
            set(after) == set(before)
        }
        (Value::Array(after), Value::Array(before)) => {
            after.len() == before.len()
                && after.iter().zip(before).all(|(after, before)| is_same(name, after, before))
        }
        (Value::String(_), Value::Array(before)) => {
            matches!(&before[..], [before] if is_same(name, after, before))
        }
        (Value::Object(after), Value::Object(before)) => differences(after, before).is_empty(),
        (after, before) => {
            plain_form(name, after) == plain_form(name, before) || is_same_moment(after, before)
        }
    }
}

/// A value in the one form in which the server would show it, where it takes several.
fn plain_form(name: &str, value: &Value) -> String {
    let parsed = value.as_str().and_then(|text| match name {
        "allow_ips" => Some(text.parse::<IpNetwork>().ok()?.to_string()),
        "allowed_senders" | "allowed_recipients" => Some(text.parse::<AddressPattern>().ok()?.to_string()),
        "sender_domains" | "recipient_domains" => Some(text.parse::<DomainPattern>().ok()?.to_string()),
        "host" => Some(text.to_ascii_lowercase()),
        "priorities" => {
            let priority = MessagePriority::ALL.iter().find(|priority| priority.as_str() == text)?;
            Some(priority.code().to_string())
        }
        _ => None,
    });
    parsed.unwrap_or_else(|| value.to_string())
}

/// A moment is the same in whatever zone and precision it is written, or as Unix seconds.
fn is_same_moment(after: &Value, before: &Value) -> bool {
    let after = match after {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return false,
    };
    let is_written = |text: &&str| text.contains(['T', 't']);
    let before = before.as_str().filter(is_written).and_then(|text| text.parse::<Time>().ok());
    before.is_some_and(|before| after.parse::<Time>().is_ok_and(|after| after == before))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fields_that_are_wanted_and_differ_are_found() {
        let wanted = json!({"host": "a", "port": 25, "limits": {"per_day": 9}, "roles": [], "tags": ["x"]});
        let shown = json!({"host": "a", "port": 587, "limits": {"per_day": 9.0, "per_hour": 1}, "tags": ["y"], "version": 3});
        let found = differences(wanted.as_object().unwrap(), shown.as_object().unwrap());
        let fields: Vec<_> = found.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["port", "tags"]);
        assert_eq!(found[0].render(), "port: 587 → 25");
    }

    #[test]
    fn a_moment_is_the_same_however_it_is_written() {
        let shown = json!("2030-01-31T09:00:00.000Z");
        for same in [json!("2030-01-31T09:00:00Z"), json!("2030-01-31T10:00:00+01:00"), json!(1_896_080_400)]
        {
            assert!(is_same("at", &same, &shown), "{same}");
        }
        for other in [json!("2030-01-31T09:00:01Z"), json!(1_896_080_401), json!("soon"), json!(null)] {
            assert!(!is_same("at", &other, &shown), "{other}");
        }
        assert!(!is_same("x", &json!(7), &json!("7")), "a text is no number");
    }

    #[test]
    fn what_the_server_shows_in_one_form_may_be_written_in_several() {
        for (name, after, before) in [
            ("allow_ips", json!(["10.1.2.3", "2001:DB8::/32"]), json!(["2001:db8::/32", "10.1.2.3/32"])),
            ("allowed_senders", json!(["Example.com"]), json!(["example.com"])),
            ("recipient_domains", json!(["müller.example"]), json!(["xn--mller-kva.example"])),
            ("scopes", json!(["read", "send"]), json!(["send", "read"])),
            ("priorities", json!(["low", "high"]), json!([1, 3])),
            ("to", json!("a@example.com"), json!(["a@example.com"])),
            ("host", json!("IMAP.example.com"), json!("imap.example.com")),
        ] {
            assert!(is_same(name, &after, &before), "{name}: {after} {before}");
        }
        for (name, after, before) in [
            ("allow_ips", json!(["10.1.2.3"]), json!(["10.1.2.3/24"])),
            ("name", json!("Acme"), json!("acme")),
            ("priorities", json!(["low"]), json!([1])),
            ("delays_s", json!([1, 2]), json!([2, 1])),
            ("to", json!("a@example.com"), json!(["a@example.com", "b@example.com"])),
            ("events", json!(["email.sent"]), json!(["email.sent", "email.failed"])),
        ] {
            assert!(!is_same(name, &after, &before), "{name}: {after} {before}");
        }
    }
}
