//! `POST /v1/templates` and `PUT /v1/templates/{name}`: the first version of a template, and the next.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{Template, TemplateName};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    NamedTemplate,
    read::{self, TemplateNameSource},
    schema::TemplateSourceRequest,
    view::TemplateView,
};
use crate::{
    auth::{Caller, Manager},
    http::{body, error::ApiError, request_id::RequestId, resource::change_versioned},
    state::{AppState, SharedState},
};

/// Create a template
///
/// As version 1; 409 if the name is taken.
#[utoipa::path(
    post,
    path = "/v1/templates",
    operation_id = "createTemplate",
    tag = "templates",
    request_body = TemplateSourceRequest,
    responses((status = 201, description = "Created", body = TemplateView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::json_object_within(request, read::BODY_BYTES_MAX).await?;
    make(&app, &caller, &request_id, body).await
}

/// Creates a template from a body, for any call.
pub(crate) async fn make(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    body: Map<String, Value>,
) -> Result<Response, ApiError> {
    let template = read::body(body, TemplateNameSource::InBody, &caller.tenant, app.clock.now())
        .map_err(ApiError::invalid)?;
    let name = template.name.clone();
    let taken = || {
        let message =
            format!("there is a template `{name}` already; PUT /v1/templates/{name} makes its next version");
        ApiError::conflict(message)
    };
    if app.store.template(&caller.tenant, &name, None).await?.is_some() {
        return Err(taken());
    }
    app.door.check_template(&template).await?;
    store(app, caller, request_id, template).await?.ok_or_else(taken)
}

/// Create the next version of a template
///
/// The first if the template does not exist. If the body equals the latest version, nothing is created and
/// the answer is 200 with that version. With `version`, the change is made only if that is still the latest;
/// 409 otherwise.
#[utoipa::path(
    put,
    path = "/v1/templates/{name}",
    operation_id = "putTemplate",
    tag = "templates",
    params(("name" = String, Path, description = "The template")),
    request_body = TemplateSourceRequest,
    responses(
        (status = 201, description = "The new version", body = TemplateView),
        (status = 200, description = "It is unchanged", body = TemplateView),
    )
)]
pub(crate) async fn put(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    NamedTemplate(name): NamedTemplate,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::json_object_within(request, read::BODY_BYTES_MAX).await?;
    make_next(&app, &caller, &request_id, name, body).await
}

/// Creates the next version of a template from a body, for any call.
pub(crate) async fn make_next(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    name: TemplateName,
    mut body: Map<String, Value>,
) -> Result<Response, ApiError> {
    // A client may send back what GET showed.
    body.remove("created_at");
    let expected = body.remove("version").filter(|version| !version.is_null());
    let named = TemplateNameSource::InPath(&name);
    let template = read::body(body, named, &caller.tenant, app.clock.now()).map_err(ApiError::invalid)?;
    app.door.check_template(&template).await?;
    change_versioned("template", || async {
        let latest = app.store.template(&caller.tenant, &name, None).await?;
        let current = latest.as_ref().map_or(0, |latest| latest.version);
        if expected.as_ref().is_some_and(|expected| expected.as_i64() != Some(current)) {
            let message = format!("the template is at version {current} by now; read it and try again");
            return Err(ApiError::conflict(message));
        }
        let next = match latest {
            Some(latest) if is_same(&latest, &template) => {
                return Ok(Some(Json(TemplateView::from(latest)).into_response()));
            }
            Some(latest) => latest.version + 1,
            None => 1,
        };
        let template = Template { version: next, ..template.clone() };
        store(app, caller, request_id, template).await
    })
    .await
}

/// Whether two versions have the same content.
fn is_same(one: &Template, other: &Template) -> bool {
    let of = |template: &Template| Template { version: 0, created_at: other.created_at, ..template.clone() };
    of(one) == of(other)
}

/// Stores a version; `None` if another request was faster.
async fn store(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    template: Template,
) -> Result<Option<Response>, ApiError> {
    let (tenant, name, version) = (&caller.tenant, template.name.clone(), template.version);
    let action = if version == 1 { "template.create" } else { "template.update" };
    let detail = Some(json!({"version": version}));
    let entry = app.audit(&caller.actor, Some(tenant), action, name.as_str(), request_id, detail);
    let view = TemplateView::from(template.clone());
    match app.store.change(DirectoryChange::CreateTemplate(template), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => return Ok(None),
    }
    tracing::info!(%tenant, template = %name, version, "template stored");
    let location = [(header::LOCATION, format!("/v1/templates/{name}"))];
    Ok(Some((StatusCode::CREATED, location, Json(view)).into_response()))
}
