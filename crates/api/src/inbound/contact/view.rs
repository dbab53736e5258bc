//! Contacts as JSON, and what callers send.

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
    /// The name it is found by.
    #[schema(example = "ACME Ltd")]
    name: String,
    /// Where to; none means that the name is known and has no address.
    #[schema(example = json!(["orders@acme.example"]))]
    addresses: Vec<String>,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A page of contacts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContactList {
    /// By id.
    pub(super) data: Vec<ContactView>,
    /// Give this as `cursor` for the next; null at the end.
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

/// A contact to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContactRequest {
    /// Its id, unique in your tenant; only when it is made. One is made when absent.
    #[schema(example = "acme")]
    id: Option<String>,
    /// The name it is found by, at most 200 characters; needed when it is made.
    #[schema(example = "ACME Ltd")]
    name: Option<String>,
    /// Where to, at most 100: a list, or one address.
    #[schema(inline)]
    addresses: Option<ContactAddresses>,
    /// With `PATCH`: only if the contact still has this version.
    version: Option<i64>,
}

forms! {
    /// Where to: one address, or a list of them.
    ContactAddresses => shown_as(text_or_list(), json!(["orders@acme.example"]));
}
