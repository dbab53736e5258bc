//! A recipient as JSON.

use postway_domain::{KnownRecipient, Time};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::address_spelling;

/// A recipient of the directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KnownRecipient)]
pub(crate) struct RecipientEntryView {
    /// Its id.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// Your own id of the recipient, unique among those not deleted.
    #[schema(example = "C-1")]
    external_id: Option<String>,
    /// The display name.
    #[schema(example = "Ada Lovelace")]
    name: Option<String>,
    /// The address; a domain outside ASCII as A-labels (`xn--…`).
    #[schema(example = "ada@example.net")]
    address: String,
    /// The address in Unicode, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ada@exämple.net")]
    address_unicode: Option<String>,
    /// The language of its mail; null means the tenant's.
    #[schema(value_type = Option<String>, example = "de-AT")]
    locale: Option<postway_domain::MailLocale>,
    /// The personal number, masked except for its end; it is never shown completely.
    #[schema(example = "*********234")]
    personal_number: Option<String>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it was deleted.
    #[schema(value_type = Option<String>, format = DateTime)]
    deleted_at: Option<Time>,
}

/// A page of recipients.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecipientList {
    /// The recipients by id, the oldest first.
    pub(super) data: Vec<RecipientEntryView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<KnownRecipient> for RecipientEntryView {
    fn from(recipient: KnownRecipient) -> Self {
        let address = address_spelling::ascii(recipient.address);
        Self {
            address_unicode: address_spelling::unicode(&address),
            id: recipient.id.to_string(),
            external_id: recipient.external_id,
            name: recipient.name,
            address,
            locale: recipient.locale,
            personal_number: recipient.personal_number_masked,
            version: recipient.version,
            created_at: recipient.created_at,
            updated_at: recipient.updated_at,
            deleted_at: recipient.deleted_at,
        }
    }
}
