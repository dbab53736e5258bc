//! A JSON schema of the document as HTML: its type and its fields.

use serde_json::Value;

use super::render::{escape, prose};

/// A field of an object.
struct SchemaField<'a> {
    name: &'a str,
    schema: &'a Value,
    needed: bool,
}

/// The schema behind a `$ref`, or the schema itself.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#')) {
        Some(path) => document.pointer(path).unwrap_or(&Value::Null),
        None => schema,
    }
}

fn ref_name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// The alternatives of a schema that is a choice.
fn choices(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)
}

/// The type in words, with a link if it is a named object.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some(name) = ref_name(schema) {
        let name = escape(name);
        return format!("<a href=\"#object-{name}\">{name}</a>");
    }
    if let Some(choices) = choices(schema) {
        return join(choices.iter().map(type_of));
    }
    let one = |word: &str| match word {
        "array" => format!("list of {}", schema.get("items").map_or_else(|| "anything".to_owned(), type_of)),
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some("date-time") => "time".to_owned(),
            Some("uuid") => "UUID".to_owned(),
            _ => "text".to_owned(),
        },
        "boolean" => "true or false".to_owned(),
        "integer" => "whole number".to_owned(),
        other => escape(other),
    };
    match schema.get("type") {
        Some(Value::String(word)) => one(word),
        Some(Value::Array(words)) => join(words.iter().filter_map(Value::as_str).map(one)),
        _ => "anything".to_owned(),
    }
}

/// The types of a choice, null last.
fn join(types: impl Iterator<Item = String>) -> String {
    let (null, mut types): (Vec<_>, Vec<_>) = types.partition(|word| word == "null");
    types.extend(null);
    types.join(" or ")
}

fn fields<'a>(document: &'a Value, schema: &'a Value) -> Vec<SchemaField<'a>> {
    let schema = resolve(document, schema);
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<SchemaField<'a>> = parts.flat_map(|part| fields(document, part)).collect();
    let needed: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    found.extend(own.map(|(name, schema)| SchemaField {
        name,
        schema,
        needed: needed.contains(&name.as_str()),
    }));
    found
}

/// A table of an object's fields; for other types, the type.
pub(super) fn table(document: &Value, schema: &Value, show_needed: bool) -> String {
    let fields = fields(document, schema);
    if fields.is_empty() {
        return format!("<p>{}</p>", type_of(schema));
    }
    let row = |field: &SchemaField<'_>| {
        let about =
            field.schema.get("description").or_else(|| resolve(document, field.schema).get("description"));
        let needed = if show_needed && field.needed { " <span class=\"needed\">required</span>" } else { "" };
        format!(
            "<tr><td><code>{}</code>{needed}</td><td>{}</td><td>{}</td></tr>",
            escape(field.name),
            type_of(field.schema),
            prose(about.and_then(Value::as_str).unwrap_or_default())
        )
    };
    let rows: String = fields.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table><tr><th>Field</th><th>Type</th><th>Meaning</th></tr>{rows}</table></div>"
    )
}
