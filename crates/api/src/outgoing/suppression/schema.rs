//! What callers send, for the OpenAPI document; never filled. `read` reads the bodies.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::schema_form::When;

/// Addresses to suppress: one, or many that share the rest. Unknown fields are refused.
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
    /// More about it, at most 500 characters.
    note: Option<String>,
    /// Until when, as RFC 3339 or Unix seconds; for ever when absent.
    #[schema(inline)]
    expires_at: Option<When>,
}

/// What to change of a suppression. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionChange {
    /// `manual`, `hard_bounce`, `complaint` or `unsubscribe`.
    #[schema(example = "complaint")]
    reason: Option<String>,
    /// More about it, at most 500 characters; `null` takes it away.
    #[schema(example = "by phone")]
    note: Option<String>,
    /// Until when, as RFC 3339 or Unix seconds; `null` means for ever.
    #[schema(inline)]
    expires_at: Option<When>,
}
