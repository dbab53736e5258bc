//! Reads a JSON object field by field. Faults are collected under their paths, fields that remain at the end
//! are unknown, and all faults are reported at once.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::error::FieldError;

/// How many unknown fields an error lists; a body can have thousands.
const UNKNOWN_TOLD_MAX: usize = 100;

/// An object being read. `null` counts as absent.
pub(crate) struct JsonFieldReader<'w> {
    path: String,
    object: Map<String, Value>,
    wrong: &'w mut Vec<FieldError>,
}

impl<'w> JsonFieldReader<'w> {
    /// Reads a complete body.
    pub(crate) fn new(object: Map<String, Value>, wrong: &'w mut Vec<FieldError>) -> Self {
        Self { path: String::new(), object, wrong }
    }

    /// Records a fault of a field.
    pub(crate) fn refuse(&mut self, name: &str, message: impl Into<String>) {
        self.wrong.push(FieldError::new(format!("{}{name}", self.path), message));
    }

    /// Whether a field is present, `null` or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// A field's value.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.object.remove(name).filter(|value| !value.is_null())
    }

    /// A field of type `T`; `form` describes the expected form.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, name: &str, form: &str) -> Option<T> {
        let value = self.take(name)?;
        let read = serde_json::from_value(value).ok();
        if read.is_none() {
            self.refuse(name, form);
        }
        read
    }

    /// A text of at most `chars_max` characters, without control characters.
    pub(crate) fn text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        let text: String = self.read(name, "must be a text")?;
        if text.chars().count() > chars_max || text.chars().any(char::is_control) {
            self.refuse(name, format!("must have at most {chars_max} characters, and no control characters"));
            return None;
        }
        Some(text)
    }

    /// A text that parses as `T`; the parser's error describes the expected form.
    pub(crate) fn parsed<T: std::str::FromStr<Err: ToString>>(&mut self, name: &str) -> Option<T> {
        let text: String = self.read(name, "must be a text")?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(name, error.to_string());
                None
            }
        }
    }

    /// A whole number.
    pub(crate) fn number(&mut self, name: &str) -> Option<u32> {
        self.read(name, "must be a whole number, at most 4294967295")
    }

    /// Reads a nested object.
    pub(crate) fn object<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut JsonFieldReader<'_>) -> T,
    ) -> Option<T> {
        let object = self.read(name, "must be an object or null")?;
        let mut fields = JsonFieldReader { path: format!("{}{name}.", self.path), object, wrong: self.wrong };
        let value = read(&mut fields);
        fields.finish("is not a field here");
        Some(value)
    }

    /// Ends the reading: each remaining field is refused with this message.
    pub(crate) fn finish(mut self, message: &str) {
        for name in std::mem::take(&mut self.object).keys().take(UNKNOWN_TOLD_MAX) {
            let name: String = name.chars().take(100).collect();
            self.refuse(&name, message);
        }
    }
}

/// Merges a patch into a value (RFC 7396): objects field by field, `null` removes, all else replaces.
pub(crate) fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    into.remove(&name);
                } else {
                    merge(into.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (into, Value::Object(patch)) => {
            *into = Value::Object(Map::new());
            merge(into, Value::Object(patch));
        }
        (into, patch) => *into = patch,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_is_merged_field_by_field() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "d": 3});
        merge(&mut value, json!({"a": {"b": null, "e": {"f": null, "g": 4}}, "d": [5]}));
        assert_eq!(value, json!({"a": {"c": 2, "e": {"g": 4}}, "d": [5]}));
    }

    #[test]
    fn every_wrong_field_is_named_by_its_path() {
        let body = json!({"n": "x", "o": {"t": 1, "u": "\u{7}", "v": 2}, "l": null, "z": 1});
        let mut wrong = Vec::new();
        let mut fields = JsonFieldReader::new(body.as_object().unwrap().clone(), &mut wrong);
        assert_eq!(fields.number("n"), None);
        fields.object("o", |inner| (inner.text("t", 5), inner.text("u", 5)));
        assert_eq!(fields.text("l", 5), None);
        fields.finish("is unknown");
        let names: Vec<&str> = wrong.iter().map(|wrong| wrong.field.as_str()).collect();
        assert_eq!(names, ["n", "o.t", "o.u", "o.v", "z"]);
    }
}
