//! Request bodies as the OpenAPI document describes them. The structs are never filled; `read` reads the
//! bodies.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::schema_form::When;

/// Addresses to suppress: one, or several that share the other fields. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionRequest {
    /// The address; this or `addresses`.
    #[schema(example = "ada@example.net")]
    address: Option<String>,
    /// At most 1,000 addresses.
    addresses: Option<Vec<String>>,
    /// `manual` (default), `hard_bounce`, `complaint` or `unsubscribe`.
    #[schema(example = "manual")]
    reason: Option<String>,
    /// A note, at most 500 characters.
    note: Option<String>,
    /// When it expires, as RFC 3339 or Unix seconds; never when absent.
    #[schema(inline)]
    expires_at: Option<When>,
}

/// The fields of a suppression to change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionChange {
    /// `manual`, `hard_bounce`, `complaint` or `unsubscribe`.
    #[schema(example = "complaint")]
    reason: Option<String>,
    /// A note, at most 500 characters; `null` removes it.
    #[schema(example = "by phone")]
    note: Option<String>,
    /// When it expires, as RFC 3339 or Unix seconds; `null` means never.
    #[schema(inline)]
    expires_at: Option<When>,
}
