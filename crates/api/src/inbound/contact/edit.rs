//! Contacts from request bodies. Every faulty field is reported, including unknown ones.

use postway_domain::{Contact, EmailAddress, id::ContactId};
use serde_json::{Map, Value};

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The fields that a body sets; absent fields are `None`.
#[derive(Debug, Default)]
pub(super) struct ContactEdit {
    pub(super) id: Option<ContactId>,
    pub(super) name: Option<String>,
    pub(super) addresses: Option<Vec<String>>,
    pub(super) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(super) fields: Vec<String>,
}

/// Reads a body.
pub(super) fn read(body: Map<String, Value>, is_new: bool) -> Result<ContactEdit, Vec<FieldError>> {
    let names = body.keys().take(8).cloned().collect();
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    // Read-only fields: a client may send back what GET showed.
    for shown in ["created_at", "updated_at"] {
        fields.take(shown);
    }
    let id = match is_new {
        true => fields.parsed("id"),
        false => fields.take("id").and(None),
    };
    let given = ContactEdit {
        id,
        name: name(&mut fields),
        addresses: addresses(&mut fields),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    fields.finish("is not a field of a contact");
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

fn name(fields: &mut JsonFieldReader<'_>) -> Option<String> {
    let name = fields.text("name", Contact::NAME_CHARS_MAX)?;
    if Contact::key(&name).is_empty() {
        fields.refuse("name", "must not be empty: it is what the contact is found by");
    }
    Some(name.trim().to_owned())
}

/// Addresses, as a list or a single one, each once; `null` removes all.
fn addresses(fields: &mut JsonFieldReader<'_>) -> Option<Vec<String>> {
    if !fields.has("addresses") {
        return None;
    }
    let given = match fields.take("addresses") {
        None => Vec::new(),
        Some(Value::Array(given)) if given.len() <= Contact::ADDRESSES_MAX => given,
        Some(one @ Value::String(_)) => vec![one],
        Some(_) => {
            fields.refuse(
                "addresses",
                format!("must be a list of at most {} addresses", Contact::ADDRESSES_MAX),
            );
            return None;
        }
    };
    let mut addresses: Vec<String> = Vec::with_capacity(given.len());
    for (place, address) in given.iter().enumerate() {
        match address.as_str().map(|text| text.trim().parse::<EmailAddress>()) {
            Some(Ok(address)) => {
                let address = address.to_string();
                if !addresses.iter().any(|known| known.eq_ignore_ascii_case(&address)) {
                    addresses.push(address);
                }
            }
            Some(Err(error)) => fields.refuse(&format!("addresses[{place}]"), error.to_string()),
            None => fields.refuse(&format!("addresses[{place}]"), "must be an address, as a text"),
        }
    }
    Some(addresses)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({"name": " "}), &["name"][..]),
            (json!({"name": "x".repeat(201)}), &["name"]),
            (json!({"addresses": {}}), &["addresses"]),
            (json!({"addresses": ["a@example.net", "b", 7]}), &["addresses[1]", "addresses[2]"]),
            (json!({"id": "a b", "email": "x"}), &["id", "email"]),
        ] {
            let wrong = read(body.as_object().unwrap().clone(), true).unwrap_err();
            assert_eq!(wrong.into_iter().map(|wrong| wrong.field).collect::<Vec<_>>(), fields, "{body}");
        }
    }

    #[test]
    fn an_address_may_stand_alone_and_counts_once() {
        let addresses = |given: Value| {
            read(json!({"addresses": given}).as_object().unwrap().clone(), true).unwrap().addresses.unwrap()
        };
        assert_eq!(addresses(json!("ada@example.net")), ["ada@example.net"]);
        assert_eq!(addresses(json!(["ada@example.net", "ADA@example.net"])), ["ada@example.net"]);
        assert!(addresses(Value::Null).is_empty());
    }
}
