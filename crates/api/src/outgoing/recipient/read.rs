//! Recipients from request bodies.

use postway_domain::{EmailAddress, MailLocale};
use serde_json::{Map, Value};

use super::personal;
use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The longest external id.
pub(super) const EXTERNAL_ID_BYTES_MAX: usize = 256;
const NAME_CHARS_MAX: usize = 200;

/// The fields that a body sets: each is absent, removed, or given.
#[derive(Debug, Default)]
pub(super) struct RecipientEdit {
    pub(super) external_id: Option<Option<String>>,
    pub(super) name: Option<Option<String>>,
    pub(super) address: Option<String>,
    pub(super) locale: Option<Option<MailLocale>>,
    pub(super) personal_number: Option<Option<String>>,
    pub(super) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(super) fields: Vec<String>,
}

/// Reads a body.
pub(super) fn body(body: Map<String, Value>) -> Result<RecipientEdit, Vec<FieldError>> {
    let names = body.keys().take(10).cloned().collect();
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    // Read-only fields: a client may send back what GET showed.
    for shown in ["id", "address_unicode", "created_at", "updated_at", "deleted_at"] {
        fields.take(shown);
    }
    let given = RecipientEdit {
        external_id: fields.has("external_id").then(|| external_id(&mut fields)),
        name: fields.has("name").then(|| fields.text("name", NAME_CHARS_MAX).filter(|name| !name.is_empty())),
        address: address(&mut fields),
        locale: fields.has("locale").then(|| fields.parsed("locale")),
        personal_number: personal_number(&mut fields),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    fields.finish("is not a field of a recipient");
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

fn external_id(fields: &mut JsonFieldReader<'_>) -> Option<String> {
    let id = fields.text("external_id", EXTERNAL_ID_BYTES_MAX)?;
    if let Err(message) = check_external_id(&id) {
        fields.refuse("external_id", message);
    }
    Some(id)
}

/// Whether this can be an external id.
pub(super) fn check_external_id(id: &str) -> Result<(), String> {
    match id.len() {
        1..=EXTERNAL_ID_BYTES_MAX => Ok(()),
        _ => Err(format!("must have 1 to {EXTERNAL_ID_BYTES_MAX} bytes")),
    }
}

/// The address, by either of its names.
fn address(fields: &mut JsonFieldReader<'_>) -> Option<String> {
    let name = match (fields.has("address"), fields.has("email")) {
        (true, true) => {
            fields.take("email");
            fields.refuse("email", "is another name of `address`: give one of them");
            "address"
        }
        (true, false) => "address",
        (false, true) => "email",
        (false, false) => return None,
    };
    match fields.take(name) {
        Some(Value::String(text)) => match text.trim().parse::<EmailAddress>() {
            Ok(address) => Some(address.to_string()),
            Err(error) => {
                fields.refuse(name, error.to_string());
                None
            }
        },
        _ => {
            fields.refuse(name, "must be an address, as a text");
            None
        }
    }
}

fn personal_number(fields: &mut JsonFieldReader<'_>) -> Option<Option<String>> {
    if !fields.has("personal_number") {
        return None;
    }
    let number = fields.text("personal_number", *personal::CHARS.end());
    let number = number.map(|number| number.trim().to_owned());
    match number {
        Some(number) if !personal::CHARS.contains(&number.chars().count()) => {
            let message =
                format!("must have {} to {} characters", personal::CHARS.start(), personal::CHARS.end());
            fields.refuse("personal_number", message);
            None
        }
        number => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(of: Value) -> Result<RecipientEdit, Vec<String>> {
        body(of.as_object().unwrap().clone())
            .map_err(|wrong| wrong.into_iter().map(|wrong| wrong.field).collect())
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({"address": "nobody"}), &["address"][..]),
            (json!({"email": 7, "external_id": ""}), &["external_id", "email"]),
            (json!({"address": "a@example.net", "email": "a@example.net"}), &["email"]),
            (json!({"external_id": "é".repeat(200)}), &["external_id"]),
            (json!({"personal_number": "123"}), &["personal_number"]),
            (json!({"name": "a\nb", "phone": "1"}), &["name", "phone"]),
        ] {
            assert_eq!(read(body.clone()).unwrap_err(), fields, "{body}");
        }
    }

    #[test]
    fn what_is_absent_is_told_from_what_is_taken_away() {
        let given = read(json!({"name": null, "personal_number": null})).unwrap();
        assert_eq!((given.name, given.personal_number), (Some(None), Some(None)));
        let given = read(json!({"address": "a@example.net"})).unwrap();
        assert_eq!((given.name, given.personal_number), (None, None));
    }
}
