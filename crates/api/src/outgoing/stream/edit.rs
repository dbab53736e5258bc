//! Streams from request bodies. Every faulty field is reported, including unknown ones.

use postway_domain::{EmailAddress, MailStream, id::StreamId};
use serde_json::{Map, Value};

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The fields that a body sets; absent fields are `None`.
#[derive(Debug, Default)]
pub(crate) struct StreamEdit {
    pub(crate) id: Option<StreamId>,
    pub(crate) name: Option<String>,
    /// `Some(None)` removes it.
    pub(crate) description: Option<Option<String>>,
    pub(crate) unsubscribe: Option<bool>,
    pub(crate) unsubscribe_mailto: Option<Option<String>>,
    pub(crate) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(crate) fields: Vec<String>,
}

/// Reads a body.
pub(super) fn read(body: Map<String, Value>, is_new: bool) -> Result<StreamEdit, Vec<FieldError>> {
    let names = body.keys().take(8).cloned().collect();
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    // Read-only fields: a client may send back what GET showed.
    for shown in ["created_at", "updated_at"] {
        fields.take(shown);
    }
    let id = match is_new {
        true => fields.parsed::<StreamId>("id"),
        false => fields.take("id").and(None),
    };
    if let Some(reserved) = id.as_ref().filter(|id| MailStream::is_reserved(id)) {
        fields.refuse("id", format!("`{reserved}` is the name of other mail: choose another"));
    }
    let given = StreamEdit {
        id,
        name: fields.text("name", MailStream::NAME_CHARS_MAX).map(|name| name.trim().to_owned()),
        description: fields
            .has("description")
            .then(|| fields.text("description", MailStream::DESCRIPTION_CHARS_MAX)),
        unsubscribe: fields.read("unsubscribe", "must be true or false"),
        unsubscribe_mailto: fields
            .has("unsubscribe_mailto")
            .then(|| fields.parsed::<EmailAddress>("unsubscribe_mailto").map(|address| address.to_string())),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    if given.unsubscribe_mailto.iter().flatten().any(|address| !address.is_ascii()) {
        fields.refuse("unsubscribe_mailto", "must be an address in ASCII: it stands in a header");
    }
    fields.finish("is not a field of a stream");
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({"id": "a b", "title": "x"}), &["id", "title"][..]),
            (json!({"id": "Mailbox"}), &["id"]),
            (json!({"id": "outbound"}), &["id"]),
            (json!({"name": "x".repeat(201), "description": 7}), &["name", "description"]),
            (
                json!({"unsubscribe": "yes", "unsubscribe_mailto": "nobody"}),
                &["unsubscribe", "unsubscribe_mailto"],
            ),
        ] {
            let wrong = read(body.as_object().unwrap().clone(), true).unwrap_err();
            assert_eq!(wrong.into_iter().map(|wrong| wrong.field).collect::<Vec<_>>(), fields, "{body}");
        }
        let taken = read(json!({"description": null}).as_object().unwrap().clone(), false).unwrap();
        assert_eq!((taken.description, taken.unsubscribe_mailto), (Some(None), None));
    }
}
