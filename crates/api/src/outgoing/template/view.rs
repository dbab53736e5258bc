//! A template as JSON.

use postway_domain::{MailLocale, Template, Time};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A template in one of its versions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Template)]
pub(crate) struct TemplateView {
    /// Its name.
    #[schema(example = "welcome")]
    name: String,
    /// The language that its name ends with.
    #[schema(value_type = Option<String>, example = "de-AT")]
    locale: Option<MailLocale>,
    /// Its version, from 1.
    #[schema(example = 3)]
    version: i64,
    /// The subject.
    #[schema(example = "Welcome, {{ name }}")]
    subject: String,
    /// The html part.
    html: Option<String>,
    /// The text part; derived from the html when null.
    text: Option<String>,
    /// The html part as MJML, instead of `html`.
    mjml: Option<String>,
    /// The template that wraps this one.
    #[schema(example = "base")]
    layout: Option<String>,
    /// Whether the rules of `<style>` are written into the elements that they select.
    inline_css: bool,
    /// The purpose.
    description: Option<String>,
    /// Variables to preview it with.
    #[schema(value_type = Option<Object>)]
    sample: Option<Box<RawValue>>,
    /// When this version was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

/// A template without its sources.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateSummary {
    /// Its name.
    #[schema(example = "welcome")]
    name: String,
    /// The language that its name ends with.
    #[schema(value_type = Option<String>, example = "de-AT")]
    locale: Option<MailLocale>,
    /// Its version, from 1.
    #[schema(example = 3)]
    version: i64,
    /// The subject.
    subject: String,
    /// Which of `html`, `text` and `mjml` it has.
    #[schema(example = json!(["html", "text"]))]
    parts: Vec<&'static str>,
    /// The template that wraps this one.
    layout: Option<String>,
    /// The purpose.
    description: Option<String>,
    /// When this version was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

/// A page of templates, or of the versions of one.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateList {
    /// The templates, without their sources.
    pub(super) data: Vec<TemplateSummary>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<Template> for TemplateView {
    fn from(template: Template) -> Self {
        Self {
            name: template.name.to_string(),
            locale: template.locale(),
            version: template.version,
            subject: template.subject,
            html: template.html,
            text: template.text,
            mjml: template.mjml,
            layout: template.layout.map(|layout| layout.to_string()),
            inline_css: template.inline_css,
            description: template.description,
            sample: template.sample.and_then(|text| RawValue::from_string(text).ok()),
            created_at: template.created_at,
        }
    }
}

impl From<Template> for TemplateSummary {
    fn from(template: Template) -> Self {
        let parts = [("html", &template.html), ("text", &template.text), ("mjml", &template.mjml)];
        Self {
            name: template.name.to_string(),
            locale: template.locale(),
            version: template.version,
            parts: parts.into_iter().filter(|(_, part)| part.is_some()).map(|(name, _)| name).collect(),
            subject: template.subject,
            layout: template.layout.map(|layout| layout.to_string()),
            description: template.description,
            created_at: template.created_at,
        }
    }
}
