//! Request bodies as the OpenAPI document describes them. The structs are never filled; `read` reads the
//! bodies.

use serde::Serialize;
use utoipa::ToSchema;

/// A recipient to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecipientRequest)]
pub(crate) struct RecipientEntryRequest {
    /// Your own id of the recipient, at most 256 bytes.
    #[schema(example = "C-1")]
    external_id: Option<String>,
    /// The display name.
    #[schema(example = "Ada Lovelace")]
    name: Option<String>,
    /// The address; required on creation.
    #[schema(nullable = false, example = "ada@example.net")]
    address: Option<String>,
    /// Another name for `address`; only one of them may be given.
    #[schema(nullable = false)]
    email: Option<String>,
    /// The language of its mail, such as `de-AT`; the tenant's when absent. A message may name another.
    #[schema(example = "de-AT")]
    locale: Option<String>,
    /// A personal number, 4 to 64 characters: encrypted at rest, shown masked, found with
    /// `?personal_number=`.
    #[schema(write_only, example = "19800101-1234")]
    personal_number: Option<String>,
    /// With `PATCH`: change only if the recipient still has this version.
    version: Option<i64>,
}
