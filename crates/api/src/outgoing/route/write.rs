//! `POST /v1/routes` and `PATCH /v1/routes/{id}`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{MailRoute, route::RouteContent};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{NamedRoute, RouteView, check_accounts, edit, existing, find, view::RouteRequest};
use crate::{
    auth::Manager,
    http::{
        body,
        error::ApiError,
        new_id::fresh_id,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::SharedState,
};

/// Create a route
///
/// It applies to mail that is accepted from now on and names no account. 409 if the id is taken, or your
/// tenant has the maximum number of routes.
#[utoipa::path(
    post,
    path = "/v1/routes",
    operation_id = "createRoute",
    tag = "routes",
    request_body = RouteRequest,
    responses((status = 201, description = "Created", body = RouteView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let given = edit::read(body::json_object(request).await?, true).map_err(ApiError::invalid)?;
    if given.accounts.is_none() {
        return Err(ApiError::field("accounts", "are needed: the accounts it chooses from"));
    }
    let (tenant, now) = (caller.tenant.clone(), app.clock.now());
    let others = app.store.routes(&tenant).await?;
    let max = MailRoute::PER_TENANT_MAX;
    if others.len() >= max {
        return Err(ApiError::conflict(format!("there are {max} routes already, the most of a tenant")));
    }
    let last = others.iter().map(|route| route.position).max();
    let route = MailRoute {
        tenant: tenant.clone(),
        id: given.id.clone().map_or_else(|| fresh_id("route_", now), Ok)?,
        position: last.map_or(1, |last| last.saturating_add(1).min(MailRoute::POSITION_MAX)),
        active: true,
        content: RouteContent::default(),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let route = given.apply_to(route);
    let existing = existing(&app, &tenant).await?;
    check_accounts(&route, &existing)?;
    let id = route.id.clone();
    let entry = app.audit(&caller.actor, Some(&tenant), "route.create", id.as_str(), &request_id, None);
    match app.store.change(DirectoryChange::CreateRoute(route.clone()), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => return Err(ApiError::conflict("there is a route with this id already; change it with PATCH")),
    }
    tracing::info!(%tenant, route = %id, "route created");
    let location = [(header::LOCATION, format!("/v1/routes/{id}"))];
    Ok((StatusCode::CREATED, location, Json(RouteView::new(route, &existing))).into_response())
}

/// Change a route
///
/// Changes the given fields and leaves the others; `match` and `accounts` are replaced as a whole. It applies
/// to mail that is accepted from now on. With `version`, the change is made only if the route still has that
/// version; 409 otherwise.
#[utoipa::path(
    patch,
    path = "/v1/routes/{id}",
    operation_id = "changeRoute",
    tag = "routes",
    params(("id" = String, Path, description = "The route")),
    request_body = RouteRequest,
    responses((status = 200, description = "The route after the change", body = RouteView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedRoute(id): NamedRoute,
    request: Request,
) -> Result<Json<RouteView>, ApiError> {
    let given = edit::read(body::json_object(request).await?, false).map_err(ApiError::invalid)?;
    let tenant = &caller.tenant;
    change_versioned("route", || async {
        let current = find(&app, tenant, &id).await?;
        let expected = current.version;
        check_version("route", given.version, expected)?;
        let (version, updated_at) = (expected + 1, app.clock.now());
        let names_accounts = given.accounts.is_some();
        let route = given.clone().apply_to(MailRoute { version, updated_at, ..current });
        let existing = existing(&app, tenant).await?;
        // A route that lost an account can be changed otherwise.
        if names_accounts {
            check_accounts(&route, &existing)?;
        }
        let detail = Some(json!({"fields": given.fields, "version": version}));
        let entry = app.audit(&caller.actor, Some(tenant), "route.change", id.as_str(), &request_id, detail);
        let change = DirectoryChange::UpdateRoute(route.clone(), expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            tracing::info!(%tenant, route = %id, version, "route changed");
            return Ok(Some(Json(RouteView::new(route, &existing))));
        }
        Ok::<_, ApiError>(None)
    })
    .await
}
