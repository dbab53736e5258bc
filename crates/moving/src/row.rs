//! One row as texts, and its typed values.

use serde_json::{Map, Value};

use crate::{
    column::CELL_BYTES_MAX,
    verdict::{RowFault, RowLocation},
};

/// The longest key that is shown.
const KEY_CHARS_MAX: usize = 200;

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OldCellValue {
    Null,
    /// It was not read; the value is its length in bytes.
    TooLong(i64),
    /// It is not text.
    Unreadable,
    Text(String),
}

/// A row, its key first.
#[derive(Clone, Debug)]
pub(crate) struct OldTableRow {
    place: RowLocation,
    cells: Vec<(&'static str, OldCellValue)>,
    faults: Vec<RowFault>,
}

impl OldTableRow {
    pub(crate) fn new(table: &str, cells: Vec<(&'static str, OldCellValue)>) -> Self {
        let key = match cells.first() {
            Some((_, OldCellValue::Text(key))) => key.chars().take(KEY_CHARS_MAX).collect(),
            _ => String::new(),
        };
        Self { place: RowLocation { table: table.to_owned(), key }, cells, faults: Vec::new() }
    }

    pub(crate) fn place(&self) -> &RowLocation {
        &self.place
    }

    /// Records that a field is wrong.
    pub(crate) fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.faults.push(RowFault::new(&self.place, field, message));
    }

    /// Returns the recorded faults.
    pub(crate) fn faults(self) -> Vec<RowFault> {
        self.faults
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// A text; `None` if it is empty.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let place = self.cells.iter().position(|(cell, _)| *cell == name)?;
        match std::mem::replace(&mut self.cells[place].1, OldCellValue::Null) {
            OldCellValue::Null => None,
            OldCellValue::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
            OldCellValue::TooLong(bytes) => {
                let message =
                    format!("has {bytes} bytes, and {CELL_BYTES_MAX} are the most: shorten it there");
                self.refuse(name, message);
                None
            }
            OldCellValue::Unreadable => {
                self.refuse(name, "is no UTF-8 text: write it as text there");
                None
            }
        }
    }

    /// A required text.
    pub(crate) fn needed(&mut self, name: &str) -> String {
        let before = self.faults.len();
        let text = self.text(name);
        if text.is_none() && self.faults.len() == before {
            self.refuse(name, "is empty: it is needed");
        }
        text.unwrap_or_default()
    }

    /// A whole number.
    pub(crate) fn number(&mut self, name: &str) -> Option<i64> {
        let text = self.text(name)?;
        let number = whole(text.trim());
        if number.is_none() {
            self.refuse(name, format!("must be a whole number and is `{}`", shown(&text)));
        }
        number
    }

    /// A boolean, in the spellings that databases and users write.
    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let text = self.text(name)?;
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "yes" | "on" => Some(true),
            "0" | "f" | "false" | "no" | "off" => Some(false),
            _ => {
                self.refuse(name, format!("must be true or false and is `{}`", shown(&text)));
                None
            }
        }
    }

    /// A JSON document.
    pub(crate) fn json(&mut self, name: &str) -> Option<Value> {
        let text = self.text(name)?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(value).filter(|value| *value != Value::Null),
            Err(error) => {
                self.refuse(name, format!("is no JSON: {error}"));
                None
            }
        }
    }

    /// A required JSON object.
    pub(crate) fn object(&mut self, name: &str) -> Map<String, Value> {
        let before = self.faults.len();
        match self.json(name) {
            Some(Value::Object(object)) => object,
            Some(_) => {
                self.refuse(name, "must be a JSON object");
                Map::new()
            }
            None => {
                if self.faults.len() == before {
                    self.refuse(name, "is empty: it is needed");
                }
                Map::new()
            }
        }
    }

    /// A JSON list or a text, as the compatibility APIs accept it; PostgreSQL arrays become lists.
    pub(crate) fn list(&mut self, name: &str) -> Option<Value> {
        let text = self.text(name)?;
        let trimmed = text.trim();
        if trimmed.starts_with('[')
            && let Ok(list @ Value::Array(_)) = serde_json::from_str(trimmed)
        {
            return Some(list);
        }
        if let Some(inner) = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let items = postgres_items(inner);
            return (!items.is_empty()).then(|| items.into_iter().map(Value::String).collect());
        }
        Some(Value::String(text))
    }
}

/// Parses a whole number, also `2.0`.
fn whole(text: &str) -> Option<i64> {
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|byte| byte == b'0') => digits,
        Some(_) => return None,
        None => text,
    };
    digits.parse().ok()
}

/// Parses the items of a PostgreSQL array, without its braces.
fn postgres_items(inner: &str) -> Vec<String> {
    let (mut items, mut item, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for character in inner.chars() {
        match character {
            _ if escaped => {
                item.push(character);
                escaped = false;
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            _ => item.push(character),
        }
    }
    items.push(item);
    items.retain(|item| !item.is_empty());
    items
}

/// The beginning of a text from the old database, for errors.
fn shown(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(cells: &[(&'static str, &str)]) -> OldTableRow {
        let cells = cells.iter().map(|(name, text)| (*name, OldCellValue::Text((*text).to_owned())));
        OldTableRow::new("messages", cells.collect())
    }

    #[test]
    fn texts_are_read_as_what_they_should_be() {
        let mut row = row(&[("id", "a"), ("n", " 2 "), ("d", "3.000"), ("f", "t"), ("g", "0"), ("e", "  ")]);
        assert_eq!((row.number("n"), row.number("d")), (Some(2), Some(3)));
        assert_eq!((row.flag("f"), row.flag("g")), (Some(true), Some(false)));
        assert_eq!((row.text("e"), row.text("absent")), (None, None));
        assert!(row.is_sound());
    }

    #[test]
    fn what_is_wrong_is_named_by_row_and_field() {
        let mut wrong = row(&[("id", "a"), ("n", "soon"), ("f", "perhaps"), ("j", "{"), ("o", "[1]")]);
        let _ =
            (wrong.number("n"), wrong.flag("f"), wrong.object("j"), wrong.object("o"), wrong.needed("none"));
        let faults = wrong.faults();
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["n", "f", "j", "o", "none"]);
        assert!(faults.iter().all(|fault| fault.place.key == "a" && fault.place.table == "messages"));
        let mut long =
            OldTableRow::new("t", vec![("id", OldCellValue::TooLong(9)), ("b", OldCellValue::Unreadable)]);
        let _ = (long.needed("id"), long.text("b"));
        assert_eq!(long.faults().len(), 2);
    }

    #[test]
    fn lists_come_as_json_as_arrays_or_as_text() {
        for (text, list) in [
            (r#"["a@x.example","b@x.example"]"#, json!(["a@x.example", "b@x.example"])),
            (r#"{a@x.example,"B \"b\" <b@x.example>"}"#, json!(["a@x.example", "B \"b\" <b@x.example>"])),
            ("a@x.example, b@x.example", json!("a@x.example, b@x.example")),
        ] {
            assert_eq!(row(&[("id", "1"), ("to", text)]).list("to"), Some(list), "{text}");
        }
        assert_eq!(row(&[("id", "1"), ("to", "{}")]).list("to"), None);
    }
}
