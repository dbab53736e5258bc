//! Templates from request bodies: only the form. The intake checks the sources.

use postway_domain::{MailLocale, Template, TemplateName, TenantId, Time};
use serde_json::{Map, Value};

use super::RESERVED;
use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The largest body: sources of the largest template as JSON, which writes some characters as several.
pub(crate) const BODY_BYTES_MAX: usize = 4 * Template::BYTES_MAX;
const SUBJECT_CHARS_MAX: usize = 2_000;
const DESCRIPTION_CHARS_MAX: usize = 500;
const SAMPLE_BYTES_MAX: usize = 64 * 1024;

/// The name of a template that is not stored and has none.
const NAMELESS: &str = RESERVED;

/// Where the template's name comes from.
pub(super) enum TemplateNameSource<'a> {
    /// The body must have it.
    InBody,
    /// The path has it; the body may repeat it.
    InPath(&'a TemplateName),
    /// The template is not stored and may have none.
    NotStored,
}

/// The template of a body, as its first version.
pub(super) fn body(
    body: Map<String, Value>,
    named: TemplateNameSource<'_>,
    tenant: &TenantId,
    now: Time,
) -> Result<Template, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let is_in_path = matches!(named, TemplateNameSource::InPath(_));
    let name = name(&mut fields, named);
    let name = in_given_locale(&mut fields, name, is_in_path);
    let template = name.map(|name| Template {
        tenant: tenant.clone(),
        name,
        version: 1,
        subject: String::new(),
        html: None,
        text: None,
        mjml: None,
        layout: None,
        inline_css: false,
        description: None,
        sample: None,
        created_at: now,
    });
    // The other fields are read whatever the name is, so that all faults are reported at once.
    let subject = fields.text("subject", SUBJECT_CHARS_MAX).unwrap_or_default();
    let [html, text, mjml] = ["html", "text", "mjml"].map(|part| source(&mut fields, part));
    if html.is_some() && mjml.is_some() {
        fields.refuse("mjml", "stands in the place of `html`: give one of them");
    }
    let layout: Option<TemplateName> = fields.parsed("layout");
    let inline_css = fields.read("inline_css", "must be true or false").unwrap_or_default();
    let description = fields.text("description", DESCRIPTION_CHARS_MAX).filter(|text| !text.is_empty());
    let sample = object(&mut fields, "sample").map(|sample| Value::Object(sample).to_string());
    if sample.as_ref().is_some_and(|sample| sample.len() > SAMPLE_BYTES_MAX) {
        fields.refuse("sample", format!("must have at most {SAMPLE_BYTES_MAX} bytes"));
    }
    fields.finish("is not a field of a template");
    if html.is_none() && text.is_none() && mjml.is_none() && !names_a_part(&wrong) {
        wrong.push(FieldError::new("html", "give at least one of `html`, `text` and `mjml`"));
    }
    match template {
        Some(template) if wrong.is_empty() => {
            Ok(Template { subject, html, text, mjml, layout, inline_css, description, sample, ..template })
        }
        _ => Err(wrong),
    }
}

fn name(fields: &mut JsonFieldReader<'_>, named: TemplateNameSource<'_>) -> Option<TemplateName> {
    let is_given = fields.has("name");
    let given: Option<TemplateName> = fields.parsed("name");
    match (named, given) {
        (TemplateNameSource::InPath(name), Some(given)) if given != *name => {
            fields.refuse("name", "is another one than in the path; leave it out");
            None
        }
        (TemplateNameSource::InPath(name), _) => Some(name.clone()),
        (TemplateNameSource::NotStored, given) => given.or_else(|| NAMELESS.parse().ok()),
        (TemplateNameSource::InBody, Some(given)) if given.as_str() == RESERVED => {
            fields.refuse("name", format!("`{RESERVED}` is the name of a call: choose another"));
            None
        }
        (TemplateNameSource::InBody, Some(given)) => Some(given),
        (TemplateNameSource::InBody, None) => {
            if !is_given {
                fields.refuse("name", "a template needs a name, as a text");
            }
            None
        }
    }
}

/// The name in the language that the body gives. A name that ends with it already stays, and so does one in
/// the path.
fn in_given_locale(
    fields: &mut JsonFieldReader<'_>,
    name: Option<TemplateName>,
    is_in_path: bool,
) -> Option<TemplateName> {
    let locale: Option<MailLocale> = fields.parsed("locale");
    let (name, locale) = match (name, locale) {
        (Some(name), Some(locale)) => (name, locale),
        (name, _) => return name,
    };
    if name.split_locale().is_some_and(|(_, of_name)| of_name == locale) {
        return Some(name);
    }
    if is_in_path {
        let message = format!("is not that of the path: PUT /v1/templates/{name}.{locale}");
        fields.refuse("locale", message);
        return None;
    }
    let localised = name.in_locale(&locale);
    if localised.is_none() {
        fields.refuse("name", format!("is too long with its language: `{name}.{locale}`"));
    }
    localised
}

/// A source: any text that a database can store. An empty one counts as absent.
fn source(fields: &mut JsonFieldReader<'_>, part: &str) -> Option<String> {
    let text: String = fields.read(part, "must be a text")?;
    if text.contains('\0') {
        fields.refuse(part, "must not have NUL characters");
        return None;
    }
    Some(text).filter(|text| !text.trim().is_empty())
}

/// A nested JSON object, unchanged.
pub(super) fn object(fields: &mut JsonFieldReader<'_>, name: &str) -> Option<Map<String, Value>> {
    fields.read(name, "must be an object: names and what to fill in for them")
}

fn names_a_part(wrong: &[FieldError]) -> bool {
    wrong.iter().any(|wrong| matches!(wrong.field.as_str(), "html" | "text" | "mjml"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(of: Value, named: TemplateNameSource<'_>) -> Result<Template, Vec<String>> {
        let tenant = "acme".parse().unwrap();
        body(of.as_object().unwrap().clone(), named, &tenant, Time::from_millis(0))
            .map_err(|wrong| wrong.into_iter().map(|wrong| wrong.field).collect())
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({}), &["name", "html"][..]),
            (json!({"name": "a b", "html": 1, "subjct": "x"}), &["name", "html", "subjct"]),
            (json!({"name": "preview", "text": "x"}), &["name"]),
            (json!({"name": "a", "html": "x", "mjml": "<mjml/>"}), &["mjml"]),
            (json!({"name": "a", "html": " ", "text": ""}), &["html"]),
            (json!({"name": "a", "text": "x\u{0}y"}), &["text"]),
            (json!({"name": "a", "text": "x", "subject": "a\r\nBcc: b@example.net"}), &["subject"]),
            (json!({"name": "a", "text": "x", "sample": [1]}), &["sample"]),
            (json!({"name": "a", "text": "x", "sample": {"a": "x".repeat(SAMPLE_BYTES_MAX)}}), &["sample"]),
        ] {
            assert_eq!(read(body.clone(), TemplateNameSource::InBody).unwrap_err(), fields, "{body}");
        }
    }

    #[test]
    fn the_name_is_where_it_belongs() {
        let path: TemplateName = "welcome".parse().unwrap();
        assert_eq!(read(json!({"text": "x"}), TemplateNameSource::InPath(&path)).unwrap().name, path);
        let other = read(json!({"name": "other", "text": "x"}), TemplateNameSource::InPath(&path));
        assert_eq!(other.unwrap_err(), ["name"]);
        assert_eq!(
            read(json!({"text": "x"}), TemplateNameSource::NotStored).unwrap().name.as_str(),
            NAMELESS
        );
    }
}
