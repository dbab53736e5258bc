//! A recipient as JSON.

use postway_domain::{KnownRecipient, Time};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::address_spelling;

/// Somebody a tenant writes to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KnownRecipient)]
pub(crate) struct RecipientView {
    /// Its id.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// Your own id of it, unique among those not deleted.
    #[schema(example = "C-1")]
    external_id: Option<String>,
    /// The name, for people.
    #[schema(example = "Ada Lovelace")]
    name: Option<String>,
    /// Where to; a domain outside ASCII as A-labels (`xn--…`).
    #[schema(example = "ada@example.net")]
    address: String,
    /// The address as people write it, where that is another spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ada@exämple.net")]
    address_unicode: Option<String>,
    /// The personal number, all but its end hidden; the whole is never shown.
    #[schema(example = "*********234")]
    personal_number: Option<String>,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it was deleted.
    #[schema(value_type = Option<String>, format = DateTime)]
    deleted_at: Option<Time>,
}

/// A page of recipients.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecipientList {
    /// By id, the oldest first.
    pub(super) data: Vec<RecipientView>,
    /// Give this as `cursor` for the next; null at the end.
    pub(super) next_cursor: Option<String>,
}

impl From<KnownRecipient> for RecipientView {
    fn from(recipient: KnownRecipient) -> Self {
        let address = address_spelling::ascii(recipient.address);
        Self {
            address_unicode: address_spelling::unicode(&address),
            id: recipient.id.to_string(),
            external_id: recipient.external_id,
            name: recipient.name,
            address,
            personal_number: recipient.personal_number_masked,
            version: recipient.version,
            created_at: recipient.created_at,
            updated_at: recipient.updated_at,
            deleted_at: recipient.deleted_at,
        }
    }
}
