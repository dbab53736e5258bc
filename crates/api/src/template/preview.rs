//! `POST /v1/templates/{name}/preview` and `POST /v1/templates/preview`: what a template makes, without sending it.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::Template;
use postway_intake::{Preview, PreviewOf};
use serde_json::{Map, Value};

use super::{
    NamedTemplate, find,
    read::{self, Named},
    schema::{PreviewView, SourcePreviewRequest, StoredPreviewRequest},
};
use crate::{
    auth::Reader,
    body,
    error::{ApiError, FieldError},
    fields::Fields,
    state::Shared,
};

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
    let mut wrong = Vec::new();
    let mut fields = Fields::of(body::json_object(request).await?, &mut wrong);
    let variables = read::object(&mut fields, "variables");
    let version: Option<i64> = fields.read("version", "must be a whole number");
    fields.finish("is not a field of a preview");
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    let template = find(&app, &caller.tenant, &name, version).await?;
    let variables = variables.unwrap_or_else(|| sample(&template));
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
    let mut body = body::json_object_within(request, read::BODY_BYTES_MAX).await?;
    let variables = match body.remove("variables") {
        None | Some(Value::Null) => None,
        Some(Value::Object(variables)) => Some(variables),
        Some(_) => return Err(ApiError::field("variables", "must be an object")),
    };
    let template =
        read::body(body, Named::NotStored, &caller.tenant, app.clock.now()).map_err(ApiError::invalid)?;
    let variables = variables.unwrap_or_else(|| sample(&template));
    let what = PreviewOf::Source(Box::new(template));
    Ok(Json(app.door.preview(&caller.tenant, what, variables).await?.into()))
}

/// The variables a template brings along.
fn sample(template: &Template) -> Map<String, Value> {
    template.sample.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl From<Preview> for PreviewView {
    fn from(Preview { version, subject, html, text, warnings }: Preview) -> Self {
        Self { version, subject, html, text, warnings: warnings.into_iter().map(FieldError::from).collect() }
    }
}
