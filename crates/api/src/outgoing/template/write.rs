//! `POST /v1/templates` and `PUT /v1/templates/{name}`: a template's first version, and its next.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{Template, TemplateName};
use postway_store::record::{Changed, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    NamedTemplate,
    read::{self, Named},
    schema::TemplateRequest,
    view::TemplateView,
};
use crate::{
    auth::{Caller, Manager},
    http::{body, error::ApiError, request_id::RequestId},
    state::{App, Shared},
};

/// How often the next version is tried when somebody else has made it meanwhile.
const TRIES_MAX: u32 = 5;

/// Create a template
///
/// In version 1; 409 where the name is taken.
#[utoipa::path(
    post,
    path = "/v1/templates",
    operation_id = "createTemplate",
    tag = "templates",
    request_body = TemplateRequest,
    responses((status = 201, description = "It is made", body = TemplateView))
)]
pub(crate) async fn create(
    State(app): State<Shared>,
    Manager(caller): Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::json_object_within(request, read::BODY_BYTES_MAX).await?;
    make(&app, &caller, &request_id, body).await
}

/// Makes a template of a body, whichever call brought it.
pub(crate) async fn make(
    app: &App,
    caller: &Caller,
    request_id: &RequestId,
    body: Map<String, Value>,
) -> Result<Response, ApiError> {
    let template =
        read::body(body, Named::InBody, &caller.tenant, app.clock.now()).map_err(ApiError::invalid)?;
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

/// Make the next version of a template
///
/// Its first where there is none. The same as the latest once more makes nothing, and is answered 200 with it. With
/// `version`, only if that is still the latest; 409 otherwise.
#[utoipa::path(
    put,
    path = "/v1/templates/{name}",
    operation_id = "putTemplate",
    tag = "templates",
    params(("name" = String, Path, description = "The template")),
    request_body = TemplateRequest,
    responses(
        (status = 201, description = "The version is made", body = TemplateView),
        (status = 200, description = "It was so already", body = TemplateView),
    )
)]
pub(crate) async fn put(
    State(app): State<Shared>,
    Manager(caller): Manager,
    request_id: RequestId,
    NamedTemplate(name): NamedTemplate,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::json_object_within(request, read::BODY_BYTES_MAX).await?;
    make_next(&app, &caller, &request_id, name, body).await
}

/// Makes the next version of a template of a body, whichever call brought it.
pub(crate) async fn make_next(
    app: &App,
    caller: &Caller,
    request_id: &RequestId,
    name: TemplateName,
    mut body: Map<String, Value>,
) -> Result<Response, ApiError> {
    // What GET shows may be sent back as it is.
    body.remove("created_at");
    let expected = body.remove("version").filter(|version| !version.is_null());
    let named = Named::InPath(&name);
    let template = read::body(body, named, &caller.tenant, app.clock.now()).map_err(ApiError::invalid)?;
    app.door.check_template(&template).await?;
    for _ in 0..TRIES_MAX {
        let latest = app.store.template(&caller.tenant, &name, None).await?;
        let current = latest.as_ref().map_or(0, |latest| latest.version);
        if expected.as_ref().is_some_and(|expected| expected.as_i64() != Some(current)) {
            let message = format!("the template is at version {current} by now; read it and try again");
            return Err(ApiError::conflict(message));
        }
        let next = match latest {
            Some(latest) if is_same(&latest, &template) => {
                return Ok(Json(TemplateView::from(latest)).into_response());
            }
            Some(latest) => latest.version + 1,
            None => 1,
        };
        let template = Template { version: next, ..template.clone() };
        if let Some(made) = store(app, caller, request_id, template).await? {
            return Ok(made);
        }
    }
    Err(ApiError::conflict("the template is being changed by others; read it and try again"))
}

/// Whether two versions say the same.
fn is_same(one: &Template, other: &Template) -> bool {
    let of = |template: &Template| Template { version: 0, created_at: other.created_at, ..template.clone() };
    of(one) == of(other)
}

/// Stores a version; `None` where somebody else was faster.
async fn store(
    app: &App,
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
        Changed::Done => {}
        _ => return Ok(None),
    }
    tracing::info!(%tenant, template = %name, version, "template stored");
    let location = [(header::LOCATION, format!("/v1/templates/{name}"))];
    Ok(Some((StatusCode::CREATED, location, Json(view)).into_response()))
}
