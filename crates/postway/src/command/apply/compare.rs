//! Compares what a file wants with what the server shows. Only fields that the file has are compared.

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
                if !is_same(after, &before) {
                    found.push(FieldDifference { field, before, after: after.clone() });
                }
            }
        }
    }
}

/// Numbers are the same whichever way they are written, and an empty list is the same as none.
fn is_same(after: &Value, before: &Value) -> bool {
    match (after, before) {
        (Value::Number(after), Value::Number(before)) => after.as_f64() == before.as_f64(),
        (Value::Array(after), Value::Null) => after.is_empty(),
        (Value::Array(after), Value::Array(before)) => {
            after.len() == before.len()
                && after.iter().zip(before).all(|(after, before)| is_same(after, before))
        }
        (Value::Object(after), Value::Object(before)) => differences(after, before).is_empty(),
        (after, before) => after == before,
    }
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
}
