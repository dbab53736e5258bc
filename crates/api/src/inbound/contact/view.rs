//! Contacts as JSON, and their request bodies.

use postway_domain::{Contact, Time};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::http::schema_form::{forms, shown_as, text_or_list};

/// A name and its addresses.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Contact)]
pub(crate) struct ContactView {
    /// Its id.
    #[schema(example = "acme")]
    id: String,
    /// The name that rules look up.
    #[schema(example = "ACME Ltd")]
    name: String,
    /// The addresses; an empty list means that the name is known and has no address.
    #[schema(example = json!(["orders@acme.example"]))]
    addresses: Vec<String>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A page of contacts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContactList {
    /// By id.
    pub(super) data: Vec<ContactView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<Contact> for ContactView {
    fn from(contact: Contact) -> Self {
        Self {
            id: contact.id.to_string(),
            name: contact.name,
            addresses: contact.addresses,
            version: contact.version,
            created_at: contact.created_at,
            updated_at: contact.updated_at,
        }
    }
}

/// A contact to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContactRequest {
    /// The id, unique in your tenant; on creation only. Generated when absent.
    #[schema(example = "acme")]
    id: Option<String>,
    /// The name that rules look up, at most 200 characters; required on creation.
    #[schema(example = "ACME Ltd")]
    name: Option<String>,
    /// The addresses, at most 100: a list or a single one.
    #[schema(inline)]
    addresses: Option<ContactAddresses>,
    /// With `PATCH`: change only if the contact still has this version.
    version: Option<i64>,
}

forms! {
    /// The addresses: one, or a list.
    ContactAddresses => shown_as(text_or_list(), json!(["orders@acme.example"]));
}
