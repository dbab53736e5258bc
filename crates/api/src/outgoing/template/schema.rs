//! What callers send, for the OpenAPI document; never filled. `read` reads the bodies.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::error::FieldError;

/// A template to make. Unknown fields are refused; all sources together have at most 1 MiB.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateRequest {
    /// Its name, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ -`. With `PUT` the path has it.
    #[schema(example = "welcome")]
    name: Option<String>,
    /// The subject.
    #[schema(example = "Welcome, {{ name }}")]
    subject: Option<String>,
    /// The html part; what is filled in is escaped. At least one of `html`, `text` and `mjml`.
    #[schema(example = "<p>Hello {{ name }}</p>")]
    html: Option<String>,
    /// The text part; made from the html when absent.
    #[schema(example = "Hello {{ name }}")]
    text: Option<String>,
    /// The html part as MJML; this or `html`.
    mjml: Option<String>,
    /// What it is for, at most 500 characters.
    description: Option<String>,
    /// Variables to preview it with.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    sample: Option<Value>,
    /// With `PUT`: only if the latest version is this one.
    version: Option<i64>,
}

/// What to fill in. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PreviewRequest)]
pub(crate) struct StoredPreviewRequest {
    /// The variables; the template's `sample` when absent. At most 1 MiB of JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
    /// The version; the latest when absent.
    version: Option<i64>,
}

/// A template that is not stored, as for `POST /v1/templates`, and what to fill in. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourcePreviewRequest {
    /// A name; it need not have one.
    name: Option<String>,
    /// The subject.
    #[schema(example = "Welcome, {{ name }}")]
    subject: Option<String>,
    /// The html part. At least one of `html`, `text` and `mjml`.
    #[schema(example = "<p>Hello {{ name }}</p>")]
    html: Option<String>,
    /// The text part; made from the html when absent.
    text: Option<String>,
    /// The html part as MJML; this or `html`.
    mjml: Option<String>,
    /// What it is for, at most 500 characters.
    description: Option<String>,
    /// Variables that stand in where none are given.
    #[schema(value_type = Option<Object>)]
    sample: Option<Value>,
    /// The variables; `sample` when absent. At most 1 MiB of JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
}

/// A mail as a template would make it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preview)]
pub(crate) struct PreviewView {
    /// The version; null for one that is not stored.
    pub(super) version: Option<i64>,
    /// The subject.
    #[schema(example = "Welcome, Ada")]
    pub(super) subject: String,
    /// The html part.
    pub(super) html: Option<String>,
    /// The text part, as given or made from the html.
    pub(super) text: Option<String>,
    /// Why a message made so would be refused; empty when it would not.
    pub(super) warnings: Vec<FieldError>,
}
