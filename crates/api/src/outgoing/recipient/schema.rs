//! What callers send, for the OpenAPI document; never filled. `read` reads the bodies.

use serde::Serialize;
use utoipa::ToSchema;

/// A recipient to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecipientRequest {
    /// Your own id of it, at most 256 bytes.
    #[schema(example = "C-1")]
    external_id: Option<String>,
    /// The name, for people.
    #[schema(example = "Ada Lovelace")]
    name: Option<String>,
    /// Where to; needed when it is made.
    #[schema(nullable = false, example = "ada@example.net")]
    address: Option<String>,
    /// Another name for `address`; only one of them may be given.
    #[schema(nullable = false)]
    email: Option<String>,
    /// A personal number, 4 to 64 characters: encrypted at rest, shown masked, found with `?personal_number=`.
    #[schema(write_only, example = "19800101-1234")]
    personal_number: Option<String>,
    /// With `PATCH`: only if the recipient still has this version.
    version: Option<i64>,
}
