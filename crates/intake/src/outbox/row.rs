//! Turns a row of the outbox into a message.
//!
//! The column `message` is a message as the API accepts it; every other column replaces the field of its
//! name, if it is set. The door checks the values: here they only get the shape that the door reads, and a
//! value without a valid shape is passed on as text.

use std::borrow::Cow;

use postway_domain::address::split_list;
use serde_json::{Value, value::RawValue};

use crate::{accept::parse::defaults::write_object, json::JsonEntries};

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    /// One value, several separated by commas, or a JSON list.
    List,
    Json,
    Flag,
    /// Unix seconds.
    Time,
}

/// The columns that describe the message, in the order in which they are read. `message` is the last.
pub(super) const COLUMNS: [(&str, ColumnKind); 22] = [
    ("from", ColumnKind::Text),
    ("to", ColumnKind::List),
    ("cc", ColumnKind::List),
    ("bcc", ColumnKind::List),
    ("reply_to", ColumnKind::List),
    ("subject", ColumnKind::Text),
    ("text", ColumnKind::Text),
    ("html", ColumnKind::Text),
    ("template", ColumnKind::Text),
    ("variables", ColumnKind::Json),
    ("headers", ColumnKind::Json),
    ("metadata", ColumnKind::Json),
    ("tags", ColumnKind::List),
    ("batch", ColumnKind::Text),
    ("priority", ColumnKind::Text),
    ("account", ColumnKind::Text),
    ("external_id", ColumnKind::Text),
    ("collapse_key", ColumnKind::Text),
    ("sensitive", ColumnKind::Flag),
    ("send_at", ColumnKind::Time),
    ("expires_at", ColumnKind::Time),
    ("message", ColumnKind::Json),
];

/// A pending row.
#[derive(Clone, Debug)]
pub(super) struct OutboxRow {
    /// The `seq` of the row.
    pub seq: i64,
    /// The id of the row.
    pub id: String,
    /// The values of its columns as text, in the order of [`COLUMNS`].
    pub columns: Vec<Option<String>>,
}

impl OutboxRow {
    /// The bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().flatten().map(String::len).sum()
    }
}

/// Values for rows that do not set them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowDefaults<'a> {
    pub from: Option<&'a str>,
    pub account: Option<&'a str>,
}

/// The message of a row under this id, as JSON, or the fault. JSON in a column stays text: only the door
/// builds values from it, within its limits.
pub(super) fn message(row: &OutboxRow, client_id: &str, defaults: RowDefaults<'_>) -> Result<String, String> {
    let given = |index: usize| row.columns.get(index).and_then(Option::as_deref);
    let mut fields = JsonFields::default();
    if let Some(json) = given(COLUMNS.len() - 1) {
        let JsonEntries(entries): RawFields<'_> =
            serde_json::from_str(json).map_err(|error| match error.is_data() {
                true if json.trim_start().starts_with('{') => format!("message: {error}"),
                _ => "message: must be a JSON object".to_owned(),
            })?;
        entries.into_iter().for_each(|(name, value)| fields.set(name.0, Cow::Borrowed(value.get())));
    }
    for (index, (name, form)) in COLUMNS.iter().enumerate().take(COLUMNS.len() - 1) {
        let Some(text) = given(index) else { continue };
        let value = value(name, *form, text)?;
        match *name {
            "template" => fields.set_within("template", "name", value),
            "variables" => fields.set_within("template", "variables", value),
            _ => fields.set(Cow::Borrowed(name), value),
        }
    }
    for (name, default) in [("from", defaults.from), ("account", defaults.account)] {
        if let Some(default) = default
            && fields.get(name).is_none()
        {
            fields.set(Cow::Borrowed(name), text_json(default));
        }
    }
    fields.set(Cow::Borrowed("id"), text_json(client_id));
    Ok(fields.into_json())
}

/// The most fields of a message that are read.
const FIELDS_READ_MAX: usize = 1_000;

type RawFields<'a> = JsonEntries<'a, &'a RawValue, FIELDS_READ_MAX>;

/// An object under construction: names, and the JSON of their values.
#[derive(Default)]
struct JsonFields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> JsonFields<'a> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, json)| &**json)
    }

    fn set(&mut self, name: Cow<'a, str>, json: Cow<'a, str>) {
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, before)) => *before = json,
            None => self.0.push((name, json)),
        }
    }

    /// Sets one field of a nested object; a value that is not an object is replaced.
    fn set_within(&mut self, name: &'static str, part: &'static str, json: Cow<'a, str>) {
        let mut inner = JsonFields::default();
        let before = self.get(name).map(str::to_owned).unwrap_or_default();
        if let Ok(JsonEntries(entries)) = serde_json::from_str::<RawFields<'_>>(&before) {
            entries.into_iter().for_each(|(name, value)| inner.set(name.0, Cow::Borrowed(value.get())));
        }
        inner.set(Cow::Borrowed(part), Cow::Borrowed(&*json));
        let json = inner.into_json();
        self.set(Cow::Borrowed(name), Cow::Owned(json));
    }

    fn into_json(self) -> String {
        write_object(self.0.iter().map(|(name, json)| (&**name, Cow::Borrowed(&**json))))
    }
}

fn text_json(text: &str) -> Cow<'static, str> {
    Cow::Owned(Value::from(text).to_string())
}

/// The value of a column as JSON.
fn value<'a>(name: &str, form: ColumnKind, text: &'a str) -> Result<Cow<'a, str>, String> {
    let json = |text: &'a str| match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => Ok(Cow::Borrowed(value.get())),
        Err(_) => Err(format!("{name}: must be JSON")),
    };
    Ok(match form {
        ColumnKind::Text => text_json(text),
        ColumnKind::Json => json(text)?,
        ColumnKind::List if text.trim_start().starts_with('[') => json(text)?,
        ColumnKind::List => Cow::Owned(Value::from(split_list(text)).to_string()),
        ColumnKind::Flag => Cow::Borrowed(if matches!(text, "1" | "t" | "true") { "true" } else { "false" }),
        ColumnKind::Time => {
            text.parse::<i64>().map_or_else(|_| text_json(text), |time| time.to_string().into())
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(columns: &[(&str, &str)]) -> OutboxRow {
        let find =
            |name: &str| columns.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned());
        OutboxRow { seq: 1, id: "a".to_owned(), columns: COLUMNS.map(|(name, _)| find(name)).to_vec() }
    }

    fn made(columns: &[(&str, &str)]) -> Value {
        let defaults = RowDefaults { from: Some("shop@example.com"), account: None };
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
                message(&row(&[(column, "[1")]), "outbox:s:a", RowDefaults::default()),
                Err(said.to_owned())
            );
        }
        assert!(message(&row(&[("message", "[]")]), "i", RowDefaults::default()).is_err());
    }
}
