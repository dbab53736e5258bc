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
    /// Its language, which its name then ends with: `welcome` with `de-AT` is stored as `welcome.de-AT`. With
    /// `PUT` the path has it.
    #[schema(example = "de-AT")]
    locale: Option<String>,
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
    /// The template that wraps this one: its block `content` holds each part.
    #[schema(example = "base")]
    layout: Option<String>,
    /// Whether the rules of `<style>` are written into the elements that they select, for mail programs that
    /// read no style sheets.
    #[schema(default = false)]
    inline_css: Option<bool>,
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
    /// The language; the tenant's when absent.
    #[schema(example = "de-AT")]
    locale: Option<String>,
}

/// Where a test of a template goes. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateTestRequest {
    /// The recipients, at most 10.
    #[schema(example = json!(["ada@example.net"]))]
    to: Vec<String>,
    /// The sender; required unless the tenant has a `default_from`.
    #[schema(example = "Shop <shop@example.com>")]
    from: Option<String>,
    /// The account that sends it; as for any message when absent.
    account: Option<String>,
    /// The variables; the template's `sample` when absent. At most 1 MiB of JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
    /// The version; the latest when absent.
    version: Option<i64>,
    /// The language; the tenant's when absent.
    #[schema(example = "de-AT")]
    locale: Option<String>,
}

/// A template that is not stored, as for `POST /v1/templates`, and the values to render with. Unknown fields
/// are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourcePreviewRequest {
    /// A name; optional.
    name: Option<String>,
    /// Its language, in which the templates that it refers to are looked up.
    locale: Option<String>,
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
    /// The template that wraps this one: its block `content` holds each part.
    #[schema(example = "base")]
    layout: Option<String>,
    /// Whether the rules of `<style>` are written into the elements that they select, for mail programs that
    /// read no style sheets.
    #[schema(default = false)]
    inline_css: Option<bool>,
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
    /// The name, which ends with the language if one was chosen; null if the template is not stored.
    #[schema(example = "welcome.de")]
    pub(super) name: Option<String>,
    /// The version; null if the template is not stored.
    pub(super) version: Option<i64>,
    /// The language that was chosen; null if the template has none for this request.
    #[schema(value_type = Option<String>, example = "de")]
    pub(super) locale: Option<postway_domain::MailLocale>,
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
