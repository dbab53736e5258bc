//! `POST /v1/templates/{name}/preview` and `POST /v1/templates/preview`: what a template renders, without
//! sending it.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{MailLocale, Template};
use postway_intake::{PreviewTarget, TemplatePreview, VARIABLES};
use serde_json::value::RawValue;

use super::{
    NamedTemplate, chosen,
    read::{self, TemplateNameSource},
    schema::{SourcePreviewRequest, StoredPreviewRequest, TemplatePreviewView},
};
use crate::{
    auth::Reader,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
    },
    state::SharedState,
};

/// The largest body: variables, and a version.
pub(super) const STORED_BODY_BYTES_MAX: usize = VARIABLES.text_bytes_max + 64 * 1024;

/// Preview a template
///
/// Renders it with `variables`, or with its `sample` if none are given, in the language that a message with
/// this `locale` would get. `warnings` lists why such a message
/// would be refused; a missing variable is 422 and named.
#[utoipa::path(
    post,
    path = "/v1/templates/{name}/preview",
    operation_id = "previewTemplate",
    tag = "templates",
    params(("name" = String, Path, description = "The template")),
    request_body = StoredPreviewRequest,
    responses((status = 200, description = "The rendered mail", body = TemplatePreviewView))
)]
pub(crate) async fn stored(
    State(app): State<SharedState>,
    caller: Reader,
    NamedTemplate(name): NamedTemplate,
    request: Request,
) -> Result<Json<TemplatePreviewView>, ApiError> {
    let (parts, body) = request.into_parts();
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, STORED_BODY_BYTES_MAX).await?;
    let (rest, variables) = body::json_beside(&bytes, "variables", body::SMALL_BYTES_MAX)?;
    let mut wrong = Vec::new();
    wrong.extend(variables.and_then(not_an_object));
    let mut fields = JsonFieldReader::new(rest, &mut wrong);
    let version: Option<i64> = fields.read("version", "must be a whole number");
    let locale: Option<MailLocale> = fields.parsed("locale");
    fields.finish("is not a field of a preview");
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    let template = chosen(&app, &caller.tenant, &name, version, locale.as_ref()).await?;
    let variables = variables.map_or_else(|| sample(&template), |variables| variables.get());
    // The version whose sample was read, although a newer one may exist by now.
    let (name, version) = (template.name.clone(), Some(template.version));
    let what = PreviewTarget::Stored { name, version, locale };
    Ok(Json(app.door.preview(&caller.tenant, what, variables).await?.into()))
}

/// Preview a template that is not stored
///
/// A template as for `POST /v1/templates`, without a required name, and `variables`. It may extend and
/// include stored templates. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/templates/preview",
    operation_id = "previewSource",
    tag = "templates",
    request_body = SourcePreviewRequest,
    responses((status = 200, description = "The rendered mail", body = TemplatePreviewView))
)]
pub(crate) async fn source(
    State(app): State<SharedState>,
    caller: Reader,
    request: Request,
) -> Result<Json<TemplatePreviewView>, ApiError> {
    let (parts, body) = request.into_parts();
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, read::BODY_BYTES_MAX + VARIABLES.text_bytes_max).await?;
    let (source, variables) = body::json_beside(&bytes, "variables", read::BODY_BYTES_MAX)?;
    if let Some(fault) = variables.and_then(not_an_object) {
        return Err(ApiError::invalid(vec![fault]));
    }
    let template = read::body(source, TemplateNameSource::NotStored, &caller.tenant, app.clock.now())
        .map_err(ApiError::invalid)?;
    let sample = sample(&template).to_owned();
    let variables = variables.map_or(sample.as_str(), |variables| variables.get());
    let what = PreviewTarget::Source(Box::new(template));
    Ok(Json(app.door.preview(&caller.tenant, what, variables).await?.into()))
}

/// The fault of `variables` that is not an object, found before anything is built from it.
pub(super) fn not_an_object(variables: &RawValue) -> Option<FieldError> {
    (!variables.get().starts_with('{')).then(|| FieldError::new("variables", "must be an object"))
}

/// The template's own sample variables.
pub(super) fn sample(template: &Template) -> &str {
    template.sample.as_deref().unwrap_or("{}")
}

impl From<TemplatePreview> for TemplatePreviewView {
    fn from(preview: TemplatePreview) -> Self {
        let TemplatePreview { stored, locale, subject, html, text, warnings } = preview;
        let (name, version) = stored.unzip();
        let warnings = warnings.into_iter().map(FieldError::from).collect();
        Self { name, version, locale, subject, html, text, warnings }
    }
}
