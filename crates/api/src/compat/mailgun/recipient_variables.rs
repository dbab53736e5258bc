//! `recipient-variables`: what is filled in for each recipient of a call, at `%recipient.NAME%`.

use std::collections::HashMap;

use postway_domain::NamedAddress;
use postway_intake::JsonBounds;
use serde_json::{Map, Value};

use super::option::bounded;
use crate::{
    compat::placeholder::{PlaceholderFault, Placeholders},
    http::error::FieldError,
};

const FIELD: &str = "recipient-variables";
/// Bounds of all of them together.
const BOUNDS: JsonBounds = JsonBounds { values_max: 50_000, text_bytes_max: 4 * 1024 * 1024 };

/// The variables of every recipient, by address in lower case.
#[derive(Debug)]
pub(super) struct RecipientVariables(HashMap<String, Map<String, Value>>);

impl RecipientVariables {
    /// Reads `{"address": {"name": "value"}}`.
    pub(super) fn read(json: &str) -> Result<Self, FieldError> {
        let mut each = HashMap::new();
        for (address, values) in bounded(FIELD, json, BOUNDS)? {
            let Value::Object(values) = values else {
                return Err(FieldError::new(FIELD, "must have an object for each address"));
            };
            each.insert(address.trim().to_lowercase(), values);
        }
        Ok(Self(each))
    }

    /// What is filled in for this recipient, as it stands in `to`.
    pub(super) fn of(&self, recipient: &str) -> Result<Option<Placeholders>, FieldError> {
        let parsed = recipient.parse::<NamedAddress>().ok();
        let address = parsed.as_ref().map_or(recipient, |named| named.address().as_str());
        let name = parsed.as_ref().and_then(|named| named.name()).unwrap_or_default();
        let own = [("%recipient%", recipient), ("%recipient_email%", address), ("%recipient_name%", name)];
        let own = own.map(|(placeholder, value)| (placeholder.to_owned(), value.to_owned()));
        let given = self.0.get(&address.to_lowercase()).into_iter().flatten();
        let given = given.map(|(name, value)| (format!("%recipient.{name}%"), shown(value)));
        Placeholders::new(own.into_iter().chain(given)).map_err(|fault| match fault {
            PlaceholderFault::TooMany | PlaceholderFault::TooLong => {
                FieldError::new(FIELD, "there are too many for one recipient")
            }
        })
    }
}

/// A value as it stands in a text.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recipient_has_its_own() {
        let json = r#"{"Ada@example.net": {"name": "Ada", "id": 7, "v:x": true}}"#;
        let variables = RecipientVariables::read(json).unwrap();
        let filled =
            |to: &str, text: &str| variables.of(to).unwrap().unwrap().fill(text, 1_000).unwrap().into_owned();
        let text = "%recipient.name% %recipient.id% %recipient.v:x% %recipient.none% %recipient_email%";
        assert_eq!(filled("Ada <ada@example.net>", text), "Ada 7 true %recipient.none% ada@example.net");
        assert_eq!(
            filled("bob@example.net", "%recipient% %recipient.name%"),
            "bob@example.net %recipient.name%"
        );
        assert!(RecipientVariables::read("[]").is_err() && RecipientVariables::read(r#"{"a": 1}"#).is_err());
    }
}
