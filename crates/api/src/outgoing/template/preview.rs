//! `POST /v1/templates/{name}/preview` and `POST /v1/templates/preview`: what a template makes, without sending it.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::Template;
use postway_intake::{Preview, PreviewOf, VARIABLES};
use serde_json::value::RawValue;

use super::{
    NamedTemplate, find,
    read::{self, Named},
    schema::{PreviewView, SourcePreviewRequest, StoredPreviewRequest},
};
use crate::{
    auth::Reader,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::Fields,
    },
    state::Shared,
};

/// The largest body: variables, and a version.
const STORED_BODY_BYTES_MAX: usize = VARIABLES.text_bytes_max + 64 * 1024;

/// Preview a template
///
/// Fills it in with `variables`, or with its `sample` where none are given. What a message made so would be refused for is
/// in `warnings`; a variable that is missing is 422 and names it.
#[utoipa::path(
    post,
    path = "/v1/templates/{name}/preview",
    operation_id = "previewTemplate",
    tag = "templates",
    params(("name" = String, Path, description = "The template")),
    request_body = StoredPreviewRequest,
    responses((status = 200, description = "What it makes", body = PreviewView))
)]
pub(crate) async fn stored(
    State(app): State<Shared>,
    caller: Reader,
    NamedTemplate(name): NamedTemplate,
    request: Request,
) -> Result<Json<PreviewView>, ApiError> {
    let (parts, body) = request.into_parts();
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, STORED_BODY_BYTES_MAX).await?;
    let (rest, variables) = body::json_beside(&bytes, "variables", body::SMALL_BYTES_MAX)?;
    let mut wrong = Vec::new();
    wrong.extend(variables.and_then(not_an_object));
    let mut fields = Fields::of(rest, &mut wrong);
    let version: Option<i64> = fields.read("version", "must be a whole number");
    fields.finish("is not a field of a preview");
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    let template = find(&app, &caller.tenant, &name, version).await?;
    let variables = variables.map_or_else(|| sample(&template), |variables| variables.get());
    // The version whose sample was read, though a newer one may be there by now.
    let what = PreviewOf::Stored { name, version: Some(template.version) };
    Ok(Json(app.door.preview(&caller.tenant, what, variables).await?.into()))
}

/// Preview a template that is not stored
///
/// A template as for `POST /v1/templates`, which needs no name here, and `variables`. It may extend and include stored
/// ones. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/templates/preview",
    operation_id = "previewSource",
    tag = "templates",
    request_body = SourcePreviewRequest,
    responses((status = 200, description = "What it makes", body = PreviewView))
)]
pub(crate) async fn source(
    State(app): State<Shared>,
    caller: Reader,
    request: Request,
) -> Result<Json<PreviewView>, ApiError> {
    let (parts, body) = request.into_parts();
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, read::BODY_BYTES_MAX + VARIABLES.text_bytes_max).await?;
    let (source, variables) = body::json_beside(&bytes, "variables", read::BODY_BYTES_MAX)?;
    if let Some(fault) = variables.and_then(not_an_object) {
        return Err(ApiError::invalid(vec![fault]));
    }
    let template =
        read::body(source, Named::NotStored, &caller.tenant, app.clock.now()).map_err(ApiError::invalid)?;
    let sample = sample(&template).to_owned();
    let variables = variables.map_or(sample.as_str(), |variables| variables.get());
    let what = PreviewOf::Source(Box::new(template));
    Ok(Json(app.door.preview(&caller.tenant, what, variables).await?.into()))
}

/// The fault of variables that are some other value, found before anything is built of them.
fn not_an_object(variables: &RawValue) -> Option<FieldError> {
    (!variables.get().starts_with('{')).then(|| FieldError::new("variables", "must be an object"))
}

/// The variables a template brings along.
fn sample(template: &Template) -> &str {
    template.sample.as_deref().unwrap_or("{}")
}

impl From<Preview> for PreviewView {
    fn from(Preview { version, subject, html, text, warnings }: Preview) -> Self {
        Self { version, subject, html, text, warnings: warnings.into_iter().map(FieldError::from).collect() }
    }
}
