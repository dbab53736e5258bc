//! Request bodies as the OpenAPI document describes them. The structs are never filled; `read` reads the
//! bodies.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::error::FieldError;

/// A template to create. Unknown fields are refused; all sources together have at most 1 MiB.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TemplateRequest)]
pub(crate) struct TemplateSourceRequest {
    /// The name, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ -`. With `PUT` it is in the path.
    #[schema(example = "welcome")]
    name: Option<String>,
    /// The subject.
    #[schema(example = "Welcome, {{ name }}")]
    subject: Option<String>,
    /// The html part; values are escaped. At least one of `html`, `text` and `mjml` is required.
    #[schema(example = "<p>Hello {{ name }}</p>")]
    html: Option<String>,
    /// The text part; derived from the html when absent.
    #[schema(example = "Hello {{ name }}")]
    text: Option<String>,
    /// The html part as MJML; this or `html`.
    mjml: Option<String>,
    /// The purpose, at most 500 characters.
    description: Option<String>,
    /// Variables to preview it with.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    sample: Option<Value>,
    /// With `PUT`: create the next version only if the latest is this one.
    version: Option<i64>,
}

/// The values to render with. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PreviewRequest)]
pub(crate) struct StoredPreviewRequest {
    /// The variables; the template's `sample` when absent. At most 1 MiB of JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
    /// The version; the latest when absent.
    version: Option<i64>,
}

/// A template that is not stored, as for `POST /v1/templates`, and the values to render with. Unknown fields
/// are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourcePreviewRequest {
    /// A name; optional.
    name: Option<String>,
    /// The subject.
    #[schema(example = "Welcome, {{ name }}")]
    subject: Option<String>,
    /// The html part. At least one of `html`, `text` and `mjml` is required.
    #[schema(example = "<p>Hello {{ name }}</p>")]
    html: Option<String>,
    /// The text part; derived from the html when absent.
    text: Option<String>,
    /// The html part as MJML; this or `html`.
    mjml: Option<String>,
    /// The purpose, at most 500 characters.
    description: Option<String>,
    /// Variables to use if none are given.
    #[schema(value_type = Option<Object>)]
    sample: Option<Value>,
    /// The variables; `sample` when absent. At most 1 MiB of JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
}

/// A mail as a template would render it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preview)]
pub(crate) struct TemplatePreviewView {
    /// The version; null if the template is not stored.
    pub(super) version: Option<i64>,
    /// The subject.
    #[schema(example = "Welcome, Ada")]
    pub(super) subject: String,
    /// The html part.
    pub(super) html: Option<String>,
    /// The text part, as given or derived from the html.
    pub(super) text: Option<String>,
    /// Why such a message would be refused; empty if it would not.
    pub(super) warnings: Vec<FieldError>,
}
