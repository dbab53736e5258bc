//! A row of the outbox as the message that it asks for.
//!
//! The column `message` is a message as the API takes it; every other column, where it is given, takes the place of the
//! field of its name. What is wrong with a value is for the door to say: here it is only put into the shape that the door
//! reads, and what has no shape goes to the door as the text that it is.

use postway_domain::address::split_list;
use serde_json::{Map, Value};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// One value, several with commas between them, or a JSON list.
    List,
    Json,
    Flag,
    /// Unix seconds.
    Time,
}

/// The columns that say what to send, in the order in which they are read. `message` is the last.
pub(super) const COLUMNS: [(&str, Form); 22] = [
    ("from", Form::Text),
    ("to", Form::List),
    ("cc", Form::List),
    ("bcc", Form::List),
    ("reply_to", Form::List),
    ("subject", Form::Text),
    ("text", Form::Text),
    ("html", Form::Text),
    ("template", Form::Text),
    ("variables", Form::Json),
    ("headers", Form::Json),
    ("metadata", Form::Json),
    ("tags", Form::List),
    ("batch", Form::Text),
    ("priority", Form::Text),
    ("account", Form::Text),
    ("external_id", Form::Text),
    ("collapse_key", Form::Text),
    ("sensitive", Form::Flag),
    ("send_at", Form::Time),
    ("expires_at", Form::Time),
    ("message", Form::Json),
];

/// A row that waits.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Its place in the table.
    pub seq: i64,
    /// Its id.
    pub id: String,
    /// What its columns hold, as text, in the order of [`COLUMNS`].
    pub columns: Vec<Option<String>>,
}

impl Row {
    /// How much of it there is.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().flatten().map(String::len).sum()
    }
}

/// What stands in where a row says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Defaults<'a> {
    pub from: Option<&'a str>,
    pub account: Option<&'a str>,
}

/// The message of a row under this id, as JSON; what cannot be one is told in words.
pub(super) fn message(row: &Row, client_id: &str, defaults: Defaults<'_>) -> Result<String, String> {
    let given = |index: usize| row.columns.get(index).and_then(Option::as_deref);
    let mut fields = match given(COLUMNS.len() - 1) {
        None => Map::new(),
        Some(json) => serde_json::from_str(json).map_err(|_| "message: must be a JSON object".to_owned())?,
    };
    for (index, (name, form)) in COLUMNS.iter().enumerate().take(COLUMNS.len() - 1) {
        let Some(text) = given(index) else { continue };
        let value = value(name, *form, text)?;
        match *name {
            "template" => template(&mut fields, "name", value),
            "variables" => template(&mut fields, "variables", value),
            _ => drop(fields.insert((*name).to_owned(), value)),
        }
    }
    for (name, default) in [("from", defaults.from), ("account", defaults.account)] {
        if let Some(default) = default {
            fields.entry(name).or_insert_with(|| Value::from(default));
        }
    }
    fields.insert("id".to_owned(), Value::from(client_id));
    Ok(Value::Object(fields).to_string())
}

/// Puts one part of the template where the door looks for it.
fn template(fields: &mut Map<String, Value>, part: &str, value: Value) {
    let template = fields.entry("template").or_insert_with(|| Value::Object(Map::new()));
    match template {
        Value::Object(template) => drop(template.insert(part.to_owned(), value)),
        other => {
            let mut template = Map::new();
            template.insert(part.to_owned(), value);
            *other = Value::Object(template);
        }
    }
}

fn value(name: &str, form: Form, text: &str) -> Result<Value, String> {
    let json = |text: &str| serde_json::from_str(text).map_err(|_| format!("{name}: must be JSON"));
    Ok(match form {
        Form::Text => Value::from(text),
        Form::Json => json(text)?,
        Form::List if text.trim_start().starts_with('[') => json(text)?,
        Form::List => Value::from(split_list(text)),
        Form::Flag => Value::from(matches!(text, "1" | "t" | "true")),
        Form::Time => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(columns: &[(&str, &str)]) -> Row {
        let find =
            |name: &str| columns.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned());
        Row { seq: 1, id: "a".to_owned(), columns: COLUMNS.map(|(name, _)| find(name)).to_vec() }
    }

    fn made(columns: &[(&str, &str)]) -> Value {
        let defaults = Defaults { from: Some("shop@example.com"), account: None };
        serde_json::from_str(&message(&row(columns), "outbox:s:a", defaults).unwrap()).unwrap()
    }

    #[test]
    fn columns_are_fields_of_the_message() {
        let columns = [
            ("to", "a@example.net, \"B, C\" <b@example.net>"),
            ("template", "welcome"),
            ("variables", r#"{"name": "Ada"}"#),
            ("tags", r#"["x,y"]"#),
            ("sensitive", "true"),
            ("send_at", "1704067200"),
            ("priority", "1"),
        ];
        assert_eq!(
            made(&columns),
            json!({"id": "outbox:s:a", "from": "shop@example.com", "to": ["a@example.net", "\"B, C\" <b@example.net>"],
                   "template": {"name": "welcome", "variables": {"name": "Ada"}}, "tags": ["x,y"],
                   "sensitive": true, "send_at": 1_704_067_200, "priority": "1"})
        );
    }

    #[test]
    fn a_column_takes_the_place_of_its_field_in_the_whole_message() {
        let whole = r#"{"id": "mine", "from": "b@example.com", "to": "x@example.net", "text": "t",
                        "template": {"name": "old", "version": 2}, "attachments": []}"#;
        let columns = [("message", whole), ("to", "a@example.net"), ("template", "new")];
        assert_eq!(
            made(&columns),
            json!({"id": "outbox:s:a", "from": "b@example.com", "to": ["a@example.net"], "text": "t",
                   "template": {"name": "new", "version": 2}, "attachments": []})
        );
    }

    #[test]
    fn what_is_no_json_is_told_by_the_name_of_its_column() {
        for (column, said) in
            [("variables", "variables: must be JSON"), ("message", "message: must be a JSON object")]
        {
            assert_eq!(
                message(&row(&[(column, "[1")]), "outbox:s:a", Defaults::default()),
                Err(said.to_owned())
            );
        }
        assert!(message(&row(&[("message", "[]")]), "i", Defaults::default()).is_err());
    }
}
